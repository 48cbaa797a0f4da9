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
