package datagraph

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// FuzzTemplate checks that templates lose nothing of the text, and that nothing is evaluated
// that is not a variable.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"", "a{{.arguments.x.y}}b", "{{ .object.id }}", "{{.request.headers.X-A}}", "{{.request.headers.}}", "{{", "}}", "{{}}", "{{.}}", "{{.object.a|b}}", "{{{.object.a}}}", "{{.arguments.a}}{{.object.b}}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTemplate(text)
		if err != nil {
			return
		}
		rest := text
		for _, p := range got {
			if p.Root == Text {
				var ok bool
				if rest, ok = strings.CutPrefix(rest, p.Text); !ok || strings.Contains(p.Text, "{{") || p.Text == "" {
					t.Fatalf("%q: text %q", text, p.Text)
				}
				continue
			}
			inner, after, ok := strings.Cut(strings.TrimPrefix(rest, "{{"), "}}")
			want := map[Root]string{Arguments: ".arguments.", Object: ".object.", Header: ".request.headers."}[p.Root] + strings.Join(p.Path, ".") + p.Text
			if !ok || strings.TrimPrefix(strings.TrimSpace(inner), ".") != strings.TrimPrefix(want, ".") || strings.ContainsAny(want, "{}()| \"'") {
				t.Fatalf("%q: %+v", text, p)
			}
			rest = after
		}
		if rest != "" {
			t.Fatalf("%q: %q is lost", text, rest)
		}
	})
}

// FuzzBody checks that bodies are JSON whatever values their variables have.
func FuzzBody(f *testing.F) {
	for _, text := range []string{`{"a": {{.arguments.id}}}`, `{"a": "-{{.arguments.id}}\\\""}`, `[{{.arguments.id}},"{{.arguments.id}}"]`, `{{.arguments.id}}`, `"\{{.arguments.id}}"`, `{"{{.arguments.id}}": 1}`, `1{{.arguments.id}}`, `-{{.arguments.id}}`, `{{.arguments.id}}{{.arguments.id}}`} {
		f.Add(text, `x"\`)
	}
	s, err := schema.Load(schemaText)
	if err != nil {
		f.Fatal(err)
	}
	user, _ := s.TypeNamed([]byte("Query"))
	field, _ := s.FieldNamed(user, []byte("user"))
	f.Fuzz(func(t *testing.T, text, value string) {
		c := compiler{engine: new(definition.GraphQLEngine), graph: &Graph{Schema: s}}
		body := c.body("body", text, &Source{REST: true, Fields: []schema.FieldID{field}})
		if len(c.problems) > 0 {
			return
		}
		quoted, _ := json.Marshal(value)
		for _, whole := range []string{"null", string(quoted), `{"x":[1]}`, "-1.5e3"} {
			var b strings.Builder
			for _, p := range body {
				switch {
				case p.Root == Text:
					b.WriteString(p.Text)
				case p.Quoted:
					b.Write(quoted[1 : len(quoted)-1])
				default:
					b.WriteString(whole)
				}
			}
			if len(body) > 0 && !json.Valid([]byte(b.String())) {
				t.Fatalf("%q with %s makes %s", text, whole, &b)
			}
		}
	})
}
