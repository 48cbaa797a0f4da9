package testenv_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

const starSchema = `
type Query { star(id: ID!, near: Place): Star }
type Star { name: String! mass: Float @deprecated(reason: "unsure") }
input Place { x: Int! y: Int = 3 }
`

func TestGraphQLJSAnswersEveryKindOfQuestion(t *testing.T) {
	js := testenv.GraphQLJS(t)
	cases := []struct {
		name   string
		q      testenv.Question
		errors []string // "line:column message"
		data   string   // what is in it
	}{
		{
			name:   "syntax",
			q:      testenv.Question{Op: "parse", Source: "{ é: }"},
			errors: []string{`1:3 Syntax Error: Unexpected character: U+00E9.`},
		},
		{
			name: "nodes",
			q:    testenv.Question{Op: "parse", Source: `{ a(b: "x\ty") }`, Dump: true},
			data: `StringValue@7-13(\"x\\ty\")`,
		},
		{
			name:   "rules of definitions",
			q:      testenv.Question{Op: "validateSDL", Source: "type Query { a: Strin }"},
			errors: []string{`1:17 Unknown type "Strin". Did you mean "String"?`},
		},
		{
			name:   "rules of schemas",
			q:      testenv.Question{Op: "validateSDL", Source: "type Query { a: String } type B"},
			errors: []string{`1:26 Type B must define one or more fields.`},
		},
		{
			name: "a good schema",
			q:    testenv.Question{Op: "validateSDL", Source: starSchema},
		},
		{
			name:   "validation",
			q:      testenv.Question{Op: "validate", Schema: starSchema, Source: "{ star(id: 1) { nam } }"},
			errors: []string{`1:17 Cannot query field "nam" on type "Star". Did you mean "name"?`},
		},
		{
			name:   "validation, tight-lipped",
			q:      testenv.Question{Op: "validate", Schema: starSchema, Source: "{ star(id: 1) { nam } }", NoSuggestions: true},
			errors: []string{`1:17 Cannot query field "nam" on type "Star".`},
		},
		{
			name: "variables",
			q: testenv.Question{
				Op: "coerce", Schema: starSchema, Source: "query Q($p: Place) { star(id: 1, near: $p) { name } }",
				Variables: map[string]any{"p": map[string]any{"x": 7}},
			},
			data: `{"p":{"x":7,"y":3}}`,
		},
		{
			name: "bad variables",
			q: testenv.Question{
				Op: "coerce", Schema: starSchema, Source: "query Q($p: Place) { star(id: 1, near: $p) { name } }",
				Variables: json.RawMessage(`{"p":{"x":"7"}}`),
			},
			errors: []string{`1:9 Variable "$p" got invalid value "7" at "p.x"; Int cannot represent non-integer value: "7"`},
		},
		{
			name: "introspection",
			q:    testenv.Question{Op: "introspect", Schema: starSchema},
			data: `"deprecationReason":"unsure"`,
		},
		{
			name: "introspection by a query",
			q:    testenv.Question{Op: "introspect", Schema: starSchema, Source: `{ __type(name: "Star") { kind } }`},
			data: `{"__type":{"kind":"OBJECT"}}`,
		},
		{
			name: "changes",
			q:    testenv.Question{Op: "changes", Schema: starSchema, Source: "type Query { star: Int }"},
			data: `ARG_REMOVED`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := js.Ask(t, c.q)
			var errors []string
			for _, e := range got.Errors {
				errors = append(errors, fmt.Sprintf("%d:%d %s", e.Locations[0].Line, e.Locations[0].Column, e.Message))
			}
			if !slices.Equal(errors, c.errors) {
				t.Errorf("errors\n%q\nwant\n%q", errors, c.errors)
			}
			if !strings.Contains(string(got.Data), c.data) {
				t.Errorf("data %s has no %s", got.Data, c.data)
			}
		})
	}
}

func TestAnIntrospectionBecomesASchemaAgain(t *testing.T) {
	js := testenv.GraphQLJS(t)
	introspection := js.Ask(t, testenv.Question{Op: "introspect", Schema: starSchema})
	sdl := js.Ask(t, testenv.Question{Op: "clientSDL", Variables: introspection.Data})
	var text string
	if err := json.Unmarshal(sdl.Data, &text); err != nil || !strings.Contains(text, "input Place {") {
		t.Errorf("got %s, %v", sdl.Data, err)
	}
}

func TestGraphQLJSForgetsSchemasAndIsToldAgain(t *testing.T) {
	js := testenv.GraphQLJS(t)
	for i := range 2 * 250 { // more than are remembered, twice
		field := fmt.Sprintf("field%d", i%250)
		q := testenv.Question{Op: "validate", Schema: "type Query { " + field + ": Int }", Source: "{ " + field + " }"}
		if errors := js.Ask(t, q).Errors; len(errors) > 0 {
			t.Fatalf("%s: %v", field, errors)
		}
	}
}

func TestTheLockFileNamesNoRegistry(t *testing.T) {
	lock, err := os.ReadFile(filepath.Join(testenv.Root(t), "internal/testenv/graphqljs/package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(lock), `"resolved"`) || strings.Contains(string(lock), "://") {
		t.Error("package-lock.json says where packages are fetched from: that is for each machine's npm configuration to say")
	}
}
