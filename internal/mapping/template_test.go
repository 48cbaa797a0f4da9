package mapping

import (
	"strings"
	"testing"
)

func TestTemplates(t *testing.T) {
	d := NewDoc([]byte(`{"a":"x","n":1.50,"big":9007199254740993,"list":[1,{"k":"v"}],"null":null,"t":true}`))
	d.SetMeta("m", "meta")
	for template, want := range map[string]string{
		"":                             "",
		"plain $ } { text":             "plain $ } { text",
		"costs $${! 5 }":               "costs ${! 5 }",
		"$$${x}":                       "$${x}",
		"${! this.a }":                 "x",
		"${!this.a}-${!@m}":            "x-meta",
		"${! this.n }":                 "1.50",
		"${! this.big }":               "9007199254740993",
		"${! this.list }":              `[1,{"k":"v"}]`,
		"${! this.null }":              "null",
		"${! this.t }":                 "true",
		`${! {"a":"}"}.a }!`:           "}!",
		`${! "a\"}" }`:                 `a"}`,
		"${! \"\"\"}\"\"\" }":          "}",
		"${! if this.t { \"y\" } }":    "y",
		"${! if !this.t { \"y\" } }.":  ".",
		"${! content().length() }":     "83",
		"a${!\n  this.a\n}b":           "axb",
		`${! this.missing.or("none")}`: "none",
		`${! "2021-01-02T03:04:05Z".ts_parse("2006-01-02T15:04:05Z") }`: "2021-01-02T03:04:05Z",
		"ü ${! this.a } ü": "ü x ü",
	} {
		compiled, err := CompileTemplate(template)
		if err != nil {
			t.Errorf("%q: %v", template, err)
			continue
		}
		got, err := compiled.Text(func() *Doc { return d })
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", template, got, err, want)
		}
	}
}

func TestTemplateProblemsHaveAPlace(t *testing.T) {
	for template, want := range map[string]string{
		"a ${b}":                   "1:3: expected ${! expression }, or $${",
		"a\nb ${! this.a":          "2:3: the expression has no closing }",
		"a\nb ${! }":               "2:7: the expression is empty",
		"ü ${! this. }":            "1:12: ",
		"a\n${! env(\"HOME\") }":   "2:",
		"${! count(\"x\") }":       "unrecognised function 'count'",
		"${! root.a = 1 }":         "1:",
		"${! this.a\n + ) }":       "2:2: ",
		"${! \"a }":                "the expression has no closing }",
		"${! import \"x\" }":       "imports are disabled",
		"${! this.a this.b }":      "1:",
		"x ${! this.a.foo() } x":   "unrecognised method 'foo'",
		"${! range(0, 1000000) }":  "at most 10000",
		"${! this.a # comment }":   "no closing }",
		"${! let a = 1\nroot = 1}": "1:",
	} {
		_, err := CompileTemplate(template)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want %s", template, err, want)
		}
	}
	failing, err := CompileTemplate("${! this.a.uppercase() }")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = failing.Text(func() *Doc { return NewDoc([]byte(`{"a":1}`)) }); err == nil {
		t.Error("no error")
	}
	if deleting, err := CompileTemplate("${! deleted() }"); err == nil {
		if _, err = deleting.Text(func() *Doc { return NewDoc(nil) }); err == nil {
			t.Error("a deleted value is no text")
		}
	}
}

func TestStaticTemplatesCostNothing(t *testing.T) {
	template, err := CompileTemplate("orders")
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := template.Static(); !ok || text != "orders" {
		t.Errorf("%q, %v", text, ok)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = template.Text(func() *Doc { panic("the doc is not needed") })
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzTemplate looks for panics, for problems of more than one line, and for texts that
// are lost.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "a", "${! this.a }", "$${", "$${! a }", `${! "}" }`, "${", "${! {\"a\": [1] } }", "${!\"\"\"", "$$$${!1}", "${! # }\n }", "\xff${!\xff}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped := strings.ReplaceAll(text, "${", "$${")
		plain, err := CompileTemplate(escaped)
		if err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		if got, ok := plain.Static(); !ok || got != text {
			t.Fatalf("%q: %q", escaped, got)
		}
		template, err := CompileTemplate(text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q: a problem of more than one line: %v", text, err)
			}
			return
		}
		d := NewDoc([]byte(`{"a":1}`))
		if _, err = template.Text(func() *Doc { return d }); err == nil && !strings.Contains(text, "$") {
			if got, ok := template.Static(); !ok || got != text {
				t.Fatalf("%q: %q", text, got)
			}
		}
	})
}
