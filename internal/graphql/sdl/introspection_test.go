package sdl_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/testenv"
)

// everything uses all that an introspection can tell.
const everything = `
"""
The whole.
"""
schema {
  query: Root
  mutation: Change
}

directive @tag(
  "what it is called"
  name: String! = "a\"b"
  n: [Int!] = [1, 2]
) repeatable on FIELD_DEFINITION | OBJECT | QUERY

"  starts with blanks"
scalar Date @specifiedBy(url: "https://example.com/date")

interface Node {
  id: ID!
}

interface Named implements Node {
  id: ID!
  name: String
}

"""
Two lines, with \""" and "quotes"
    and one that is indented.

And a last one. \U0001F600 is not an escape here.
"""
type Root implements Named & Node {
  id: ID!
  name: String @deprecated
  things(filter: Filter = {text: "x", kind: B, deep: {kind: A}}, old: Int @deprecated(reason: "no \"longer\"\n")): [[Thing!]]!
}

type Change {
  do(one: One!): Boolean
}

type Query {
  unused: Int
}

union Thing = Root | Change

enum Kind {
  A
  "not this"
  B @deprecated(reason: "use A")
}

input Filter {
  text: String = ""
  kind: Kind! = A
  deep: Filter
  old: Float = 1.5e3 @deprecated
}

input One @oneOf {
  a: Int
  b: Date
}
`

// introspected returns what graphql-js answers the introspection of a schema.
func introspected(t testing.TB, js *testenv.Oracle, text string) []byte {
	t.Helper()
	answer := js.Ask(t, testenv.Question{Op: "introspect", Schema: text})
	if len(answer.Errors) > 0 {
		t.Fatal(answer.Errors)
	}
	return answer.Data
}

func TestAnIntrospectionTellsTheSameAsTheSchemaItIsOf(t *testing.T) {
	t.Parallel()
	js := testenv.GraphQLJS(t)
	schemas := map[string]string{"everything": everything}
	for _, name := range []string{"schemas/swapi.graphql", "schemas/github.graphql"} {
		if content, ok := testenv.Data(t, name); ok {
			schemas[name] = string(content)
		}
	}
	for name, text := range schemas {
		t.Run(name, func(t *testing.T) {
			first := introspected(t, js, text)
			printed, err := sdl.FromIntrospection(first)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sdl.Parse(printed); err != nil {
				t.Fatal(err)
			}
			again, err := sdl.FromIntrospection(introspected(t, js, printed))
			if err != nil {
				t.Fatal(err)
			}
			if again != printed {
				t.Errorf("printed again it is another text:\n%s", firstDifference(printed, again))
			}
			if want, got := clientSDL(t, js, first), clientSDL(t, js, introspected(t, js, printed)); want != got {
				t.Errorf("graphql-js reads another schema:\n%s", firstDifference(want, got))
			}
		})
	}
}

// clientSDL returns what graphql-js makes of an introspection, its lines sorted:
// the order of types and directives is our own.
func clientSDL(t testing.TB, js *testenv.Oracle, data []byte) string {
	t.Helper()
	answer := js.Ask(t, testenv.Question{Op: "clientSDL", Variables: json.RawMessage(data)})
	var text string
	if err := json.Unmarshal(answer.Data, &text); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "want " + a[i] + "\n got " + b[i]
		}
	}
	return "one is longer"
}

// answerWith returns an introspection whose types are a query type and the given
// ones.
func answerWith(types string) string {
	return `{"data": {"__schema": {"queryType": {"name": "Query"}, "types": [
		{"kind": "OBJECT", "name": "Query", "fields": [{"name": "a", "args": [], "type": {"kind": "SCALAR", "name": "Int"}}]}` + types + `]}}}`
}

func TestADefectOfAnIntrospectionIsNamed(t *testing.T) {
	input := func(value string) string {
		return answerWith(`, {"kind": "INPUT_OBJECT", "name": "I", "inputFields": [
			{"name": "f", "type": {"kind": "SCALAR", "name": "Int"}, "defaultValue": ` + value + `}]}`)
	}
	ofType := func(ref string) string {
		return answerWith(`, {"kind": "OBJECT", "name": "T", "fields": [{"name": "f", "type": ` + ref + `}]}`)
	}
	cases := []struct{ name, answer, want string }{
		{"nothing", ``, "it is not JSON: unexpected end of JSON input"},
		{"no JSON", `<html>`, "it is not JSON: invalid character '<' looking for beginning of value"},
		{"a list", `[]`, `"" is a JSON array and has to be an object`},
		{"no schema", `{"data": {}}`, `it has no "__schema"`},
		{"null", `{"data": null}`, `it has no "__schema"`},
		{"no types", `{"__schema": {}}`, `"__schema" has no "types"`},
		{"no query type", `{"__schema": {"types": [{}]}}`, `"__schema" has no "queryType"`},
		{"a number for a name", `{"__schema": {"types": [{"name": 3}]}}`, `"__schema.types.name" is a JSON number and has to be text`},
		{"a text for a list", `{"__schema": {"types": "x"}}`, `"__schema.types" is a JSON string and has to be a list`},
		{"a type of no name", answerWith(`, {"kind": "SCALAR"}`), `type : a name is missing`},
		{"no type", answerWith(`, null`), `type : a name is missing`},
		{"a name that is none", answerWith(`, {"kind": "SCALAR", "name": "A } type B"}`), `type A } type B: "A } type B" cannot be a name`},
		{"a name that begins with a digit", answerWith(`, {"kind": "SCALAR", "name": "1A"}`), `type 1A: "1A" cannot be a name`},
		{"a root of no name", `{"__schema": {"queryType": {}, "types": [{}]}}`, `the query type: a name is missing`},
		{
			"a kind that is none", answerWith(`, {"kind": "LIST", "name": "A"}`),
			`type A: "kind" is "LIST"; it has to be SCALAR, OBJECT, INTERFACE, UNION, ENUM or INPUT_OBJECT`,
		},
		{"a value that is no name", answerWith(`, {"kind": "ENUM", "name": "A", "enumValues": [{"name": "a-b"}]}`), `type A, value a-b: "a-b" cannot be a name`},
		{
			"a value that is a keyword", answerWith(`, {"kind": "ENUM", "name": "A", "enumValues": [{"name": "true"}]}`),
			`type A, value true: a value of an enum cannot have this name`,
		},
		{"no type of a field", ofType(`null`), `type T, field f: its type is missing`},
		{
			"no end of a type", ofType(`{"kind": "LIST", "ofType": {"kind": "NON_NULL", "ofType": null}}`),
			`type T, field f: its type […!] has no name within; the lists and non-nulls around it may be more than were asked for, or than the 16 that are possible`,
		},
		{
			"non-null twice", ofType(`{"kind": "NON_NULL", "ofType": {"kind": "NON_NULL", "ofType": {"kind": "SCALAR", "name": "Int"}}}`),
			`type T, field f: its type is a non-null of a non-null`,
		},
		{"a default that is none", input(`"{"`), `type I, field f: the default value { is no value of the query language: Syntax Error: Expected Name, found <EOF>.`},
		{"an empty default", input(`""`), `type I, field f: the default value  is no value of the query language: Syntax Error: Unexpected "}".`},
		{"a default and more", input(`"1 g: Int"`), `type I, field f: the default value 1 g: Int is more than one value`},
		{"a default and a directive", input(`"1 @x"`), `type I, field f: the default value 1 @x is more than one value`},
		{"a default and a type", input(`"1 } type X { a: Int"`), `type I, field f: the default value 1 } type X { a: Int is more than one value`},
		{"a default and a comment", input(`"1 # x"`), `type I, field f: the default value 1 # x is more than one value`},
		{"a variable for a default", input(`"$x"`), `type I, field f: the default value $x is no value of the query language: Syntax Error: Unexpected variable "$x" in constant value.`},
		{"a directive of no name", strings.Replace(answerWith(""), `"types"`, `"directives": [{"locations": ["FIELD"]}], "types"`, 1), `directive @: a name is missing`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text, err := sdl.FromIntrospection([]byte(c.answer))
			if want := "reading an introspection: " + c.want; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s\n%s", err, want, text)
			}
		})
	}
}

func TestAnIntrospectionOfAnOldServerIsEnough(t *testing.T) {
	text, err := sdl.FromIntrospection([]byte(`{"__schema": {
		"queryType": {"name": "Q"}, "mutationType": null,
		"types": [
			{"kind": "OBJECT", "name": "Q", "description": null, "fields": [
				{"name": "a", "args": [], "type": {"kind": "SCALAR", "name": "Int"}, "isDeprecated": true, "deprecationReason": null}], "interfaces": []},
			{"kind": "SCALAR", "name": "Int"}, {"kind": "OBJECT", "name": "__Schema"}, {"kind": "SCALAR", "name": "__Own"},
			{"kind": "SCALAR", "name": "Date", "specifiedByUrl": "u"}],
		"directives": [
			{"name": "skip", "locations": ["FIELD"]}, {"name": "here", "locations": ["NOWHERE", "FIELD"]}, {"name": "gone", "locations": ["NOWHERE"]}]}}`))
	want := "schema {\n  query: Q\n}\n\ndirective @here on FIELD\n\nscalar Date @specifiedBy(url: \"u\")\n\ntype Q {\n  a: Int @deprecated\n}\n\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestDescriptionsComeBackAsTheyWere(t *testing.T) {
	for _, description := range []string{
		"plain", "two\nlines", "  indented\n    more", "first\n  second\n\n    third", "\nblank at the front", "blank at the end\n", " ", "\t", "\"", `"""`,
		`\"""`, `\\"""`, `ends with \`, `ends with "`, "a\rb", "a\r\nb", "bell\a", "del\x7f", "é 😀 \u2028", `\u0041`, "a\n   \nb", "a\n \n", "   a\nb", "a\n\t\n  b",
	} {
		said, _ := json.Marshal(description)
		answer := answerWith(`, {"kind": "SCALAR", "name": "A", "description": ` + string(said) + `, "specifiedByURL": ` + string(said) + `},
			{"kind": "ENUM", "name": "E", "enumValues": [{"name": "V", "description": ` + string(said) + `}]}`)
		text, err := sdl.FromIntrospection([]byte(answer))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := sdl.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v\n%s", description, err, text)
		}
		if got := doc.StringValue(&doc.Values[doc.TypeDefs[0].Description]); got != description {
			t.Errorf("%q became %q\n%s", description, got, text)
		}
		if got := doc.StringValue(&doc.Values[doc.EnumValues[0].Description]); got != description {
			t.Errorf("of a value, %q became %q\n%s", description, got, text)
		}
		if got := doc.StringValue(&doc.Values[doc.Arguments[0].Value]); got != description {
			t.Errorf("as a string, %q became %q\n%s", description, got, text)
		}
	}
}

func FuzzFromIntrospection(f *testing.F) {
	f.Add(answerWith(`, {"kind": "INPUT_OBJECT", "name": "I", "isOneOf": true, "inputFields": [{"name": "f", "description": "a\"\"\"b",
		"type": {"kind": "LIST", "ofType": {"kind": "SCALAR", "name": "Int"}}, "defaultValue": "[1, {a: \"x\"}]", "isDeprecated": true, "deprecationReason": "\n"}]}`))
	f.Add(answerWith(`, {"kind": "UNION", "name": "U", "possibleTypes": [{"name": "Query"}]}, {"kind": "SCALAR", "name": "S", "specifiedByURL": "\\"}`))
	f.Fuzz(func(t *testing.T, answer string) {
		text, err := sdl.FromIntrospection([]byte(answer))
		if err != nil || len(text) > sdl.MaxBytes {
			return
		}
		for _, p := range problems(t, text) {
			if strings.HasPrefix(p.Message, "Syntax Error") {
				t.Errorf("%v\n%s", p, text)
			}
		}
	})
}
