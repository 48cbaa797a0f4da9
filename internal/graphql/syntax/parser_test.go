package syntax_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func parse(t *testing.T, source string) *syntax.Document {
	t.Helper()
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(source), syntax.Limits{}); err != nil {
		t.Fatalf("%q: %v", source, err)
	}
	return &doc
}

func TestChildrenOfOneParentAreContiguousAndInOrder(t *testing.T) {
	doc := parse(t, `{ a { b(x: {k: [1, [2, 3], 4] l: {m: 5}} y: 6) { c } d } e }`)
	names := func(r syntax.Range) (all []string) {
		for _, s := range doc.Selections[r.Lo:r.Hi] {
			all = append(all, doc.Text(s.Name))
		}
		return all
	}
	top := doc.Operations[0].Selections
	a := doc.Selections[top.Lo]
	b := doc.Selections[a.Selections.Lo]
	for _, c := range []struct {
		set  syntax.Range
		want []string
	}{{top, []string{"a", "e"}}, {a.Selections, []string{"b", "d"}}, {b.Selections, []string{"c"}}} {
		if got := names(c.set); !slices.Equal(got, c.want) {
			t.Errorf("set has %v, want %v", got, c.want)
		}
	}
	arguments := doc.Arguments[b.Arguments.Lo:b.Arguments.Hi]
	if len(arguments) != 2 || doc.Text(arguments[1].Name) != "y" {
		t.Fatalf("b has arguments %v", arguments)
	}
	object := doc.Values[arguments[0].Value]
	k := doc.Arguments[object.Items.Lo]
	var items []string
	for _, v := range doc.Values[doc.Values[k.Value].Items.Lo:doc.Values[k.Value].Items.Hi] {
		items = append(items, doc.Text(v.Text))
	}
	if want := []string{"1", "[2, 3]", "4"}; !slices.Equal(items, want) {
		t.Errorf("k has %q, want %q", items, want)
	}
}

func TestTypeDefinitionsInAnOperationAreKept(t *testing.T) {
	doc := parse(t, `{ a } type B { c: D } extend schema @e`)
	want := []syntax.Definition{
		{Kind: syntax.OperationDefinition},
		{Kind: syntax.TypeSystemDefinition},
		{Kind: syntax.TypeSystemDefinition, Index: 1},
	}
	if !slices.Equal(doc.Definitions, want) {
		t.Errorf("got %v", doc.Definitions)
	}
}

func TestWhatIsNotUTF8IsRefusedWhereItStands(t *testing.T) {
	cases := []struct {
		name, source string
		want         string
		at           syntax.Location
	}{
		{"in white space", "{ a }\n \xff", "0xFF", syntax.Location{Line: 2, Column: 2}},
		{"in a string", "{ a(x: \"😀\xc3\") }", "0xC3", syntax.Location{Line: 1, Column: 11}},
		{"in a comment", "# \xe2\x82\n{ a }", "0xE2", syntax.Location{Line: 1, Column: 3}},
		{"a surrogate", "# \xed\xa0\x80", "0xED", syntax.Location{Line: 1, Column: 3}},
		{"longer than need be", "\xc0\x80", "0xC0", syntax.Location{Line: 1, Column: 1}},
		{"behind another fault", "{ ? \xff }", "0xFF", syntax.Location{Line: 1, Column: 5}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var doc syntax.Document
			err := syntax.Parse(&doc, []byte(c.source), syntax.Limits{})
			fault, ok := errors.AsType[*syntax.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if want := "Syntax Error: Invalid UTF-8: byte " + c.want + "."; fault.Message != want || fault.Locations[0] != c.at {
				t.Errorf("got %q at %v, want %q at %v", fault.Message, fault.Locations, want, c.at)
			}
		})
	}
}

func TestALimitIsReachedButNotExceeded(t *testing.T) {
	cases := []struct {
		what   string
		limits func(n int) syntax.Limits
		fits   string // with a limit of 3
		excess string
	}{
		{"bytes", func(n int) syntax.Limits { return syntax.Limits{Bytes: n} }, "{a}", "{ab}"},
		{"tokens", func(n int) syntax.Limits { return syntax.Limits{Tokens: n} }, "{a}#b c d", "{a b}"},
		{"depth", func(n int) syntax.Limits { return syntax.Limits{Depth: n} }, "{a{b{c}}}{a{b{c}}}", "{a{b{...{c}}}}"},
		{"value depth", func(n int) syntax.Limits { return syntax.Limits{ValueDepth: n} }, "{a(x:[{y:[1]}]z:[{y:[1]}])}", "{a(x:[{y:[{}]}])}"},
		{"value depth", func(n int) syntax.Limits { return syntax.Limits{ValueDepth: n} }, "query($a:[[[A!]!]!]!){b}", "query($a:[[[[A]]]]){b}"},
		{"aliases", func(n int) syntax.Limits { return syntax.Limits{Aliases: n} }, "{a:b c:d{e:f}}", "{a:b c:d{e:f}} fragment F on T{a:b}"},
		{"directives", func(n int) syntax.Limits { return syntax.Limits{Directives: n} }, "query @a{b @c ...@d{e}}", "query($b:C @d)@a{e @f ...@g{h}}"},
		{"directives", func(n int) syntax.Limits { return syntax.Limits{Directives: n} }, "query($b:C @d @e @f){g}", "query($b:C @d @e @f @g){h}"},
		{"literals", func(n int) syntax.Limits { return syntax.Limits{Literals: n} }, "{a(x:[1,2]y:$z)}", "{a(x:{y:1}z:null)@b(c:\"\")}"},
		{"fragments", func(n int) syntax.Limits { return syntax.Limits{Fragments: n} }, strings.Repeat("fragment F on T{a}", 3), strings.Repeat("fragment F on T{a}", 4)},
		{"operations", func(n int) syntax.Limits { return syntax.Limits{Operations: n} }, "{a}{a}query{b}", "{a}{a}{a}{a}"},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			var doc syntax.Document
			if err := syntax.Parse(&doc, []byte(c.fits), c.limits(3)); err != nil {
				t.Errorf("%s: %v", c.fits, err)
			}
			err := syntax.Parse(&doc, []byte(c.excess), c.limits(3))
			limit, ok := errors.AsType[*syntax.LimitError](err)
			if !ok || *limit != (syntax.LimitError{What: c.what, Max: 3}) {
				t.Errorf("%s: %v", c.excess, err)
			}
			if err := syntax.Parse(&doc, []byte(c.excess), c.limits(100)); err != nil {
				t.Errorf("%s: %v", c.excess, err)
			}
		})
	}
}

func TestTheFirstExcessEndsParsing(t *testing.T) {
	var doc syntax.Document
	err := syntax.Parse(&doc, []byte("{ a b c ? "), syntax.Limits{Tokens: 3})
	if _, ok := errors.AsType[*syntax.LimitError](err); !ok || doc.Tokens != 4 {
		t.Errorf("got %v after %d tokens, want the limit's error after the fourth", err, doc.Tokens)
	}
	if err := syntax.Parse(&doc, []byte("{ a ? b c"), syntax.Limits{Tokens: 3}); !strings.Contains(err.Error(), "Unexpected character") {
		t.Errorf("got %v, want the fault before the excess", err)
	}
	want := "document exceeds the limit on tokens: at most 3"
	if err := syntax.Parse(&doc, []byte("{ a b c }"), syntax.Limits{Tokens: 3}); err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestHostileDocumentsEndSoon parses what would cost a careless parser its stack
// or its time. Without limits given, the parser's own must hold.
func TestHostileDocumentsEndSoon(t *testing.T) {
	const size = 2 << 20
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, source := range map[string]string{
		"selection sets":        fill("{a"),
		"lists":                 "{a(x:" + fill("["),
		"objects":               "{a(x:" + fill("{a:"),
		"list types":            "query($a:" + fill("["),
		"schema types":          "type A{b:" + fill("["),
		"inline fragments":      "{" + fill("...{"),
		"quotes":                `{a(x:` + fill(`"`),
		"quotes in a block":     `{a(x:"""` + fill(`""\"""`),
		"backslashes":           `{a(x:"` + fill(`\`),
		"escapes":               `{a(x:"` + fill(`\u{1F600}`) + `")}`,
		"comments":              fill("#\n"),
		"returns":               fill("\r") + "?",
		"fields":                "{" + fill("a ") + "}",
		"aliases":               "{" + fill("a:b ") + "}",
		"directives":            "{a" + fill("@b") + "}",
		"documents":             fill("{a}"),
		"descriptions":          fill(`"" `),
		"a name":                "{" + fill("a") + "}",
		"a number":              "{" + fill("1") + "}",
		"byte order marks":      fill("\ufeff"),
		"members of a union":    "union A=" + fill("|B"),
		"a long wrong string":   "{ " + `"` + fill("é") + `"}`,
		"a long wrong variable": "query($a:B=$" + fill("c") + "){d}",
	} {
		t.Run(name, func(t *testing.T) {
			var doc syntax.Document
			began := processorTime(t)
			err := syntax.Parse(&doc, []byte(source), syntax.Limits{})
			// What is not linear takes minutes; the race detector takes a second.
			if took := processorTime(t) - began; took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

// processorTime is what this process has used, however busy the machine is.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestNestingIsBoundedWithoutALimit(t *testing.T) {
	nested := func(n int) map[string]string {
		return map[string]string{
			"depth":       strings.Repeat("{a", n) + strings.Repeat("}", n),
			"value depth": "{a(x:" + strings.Repeat("[", n) + strings.Repeat("]", n) + ")}",
		}
	}
	var doc syntax.Document
	for what, source := range nested(1000) {
		for _, limits := range []syntax.Limits{{}, {Depth: 5000, ValueDepth: 5000}, {Depth: -1, ValueDepth: -1}} {
			if err := syntax.Parse(&doc, []byte(source), limits); err != nil {
				t.Errorf("%s of 1000, %+v: %v", what, limits, err)
			}
			deeper := nested(1001)[what]
			limit, ok := errors.AsType[*syntax.LimitError](syntax.Parse(&doc, []byte(deeper), limits))
			if !ok || limit.What != what || limit.Max != 1000 {
				t.Errorf("%s of 1001, %+v: %v", what, limits, limit)
			}
		}
	}
}

func TestLocationsCountLinesAndUTF16Units(t *testing.T) {
	doc := syntax.Document{Source: []byte("a\nb\r\nc\rd\n\ré😀f\r\r\n")}
	cases := []struct {
		of   string
		want syntax.Location
	}{
		{"a", syntax.Location{Line: 1, Column: 1}},
		{"\n", syntax.Location{Line: 1, Column: 2}},
		{"b", syntax.Location{Line: 2, Column: 1}},
		{"c", syntax.Location{Line: 3, Column: 1}},
		{"d", syntax.Location{Line: 4, Column: 1}},
		{"é", syntax.Location{Line: 6, Column: 1}},
		{"😀", syntax.Location{Line: 6, Column: 2}},
		{"f", syntax.Location{Line: 6, Column: 4}},
	}
	for _, c := range cases {
		if got := doc.Location(uint32(strings.Index(string(doc.Source), c.of))); got != c.want {
			t.Errorf("%q is at %v, want %v", c.of, got, c.want)
		}
	}
	end := syntax.Location{Line: 8, Column: 1}
	for _, at := range []uint32{uint32(len(doc.Source)), 1 << 30} {
		if got := doc.Location(at); got != end {
			t.Errorf("%d is at %v, want the end, %v", at, got, end)
		}
	}
}

func TestParsingAgainAllocatesNothing(t *testing.T) {
	for _, source := range []string{operation, corpus[8], `type A implements B & C @d { "f" b(x: Int = {y: [1]}): C! } enum E { A B }`} {
		var doc syntax.Document
		src := []byte(source)
		if n := testing.AllocsPerRun(20, func() {
			if err := syntax.Parse(&doc, src, syntax.Limits{Tokens: 1000}); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%.40s: %v allocations", source, n)
		}
	}
}

func TestAppendStringReusesItsBuffer(t *testing.T) {
	doc := parse(t, `{ a(x: "b\u00e9", y: """`+"\n  c\n   d\n"+`""", z: 12) }`)
	dst := make([]byte, 0, 64)
	for i, want := range []string{"bé", "c\n d", "12"} {
		v := &doc.Values[i]
		if got := doc.StringValue(v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		var got []byte
		if n := testing.AllocsPerRun(10, func() { got = doc.AppendString(dst, v) }); n != 0 || string(got) != want {
			t.Errorf("got %q with %v allocations, want %q", got, n, want)
		}
	}
}

func TestResponseKeyIsTheAliasIfThereIsOne(t *testing.T) {
	doc := parse(t, `{ a b: c }`)
	var got []string
	for i := range doc.Selections {
		got = append(got, doc.Text(doc.Selections[i].ResponseKey()))
	}
	if fmt.Sprint(got) != "[a b]" {
		t.Errorf("got %v", got)
	}
}
