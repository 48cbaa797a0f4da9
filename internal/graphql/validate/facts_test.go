package validate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

const petSchema = `
directive @tag(name: String!, level: Int = 1) repeatable on FIELD | QUERY | FRAGMENT_DEFINITION
directive @once on FIELD | QUERY | FRAGMENT_SPREAD | VARIABLE_DEFINITION
interface Node { id: ID! }
interface Pet implements Node { id: ID! name(upper: Boolean): String! owner: Person friends(first: Int, last: Int): Pets }
type Dog implements Pet & Node { id: ID! name(upper: Boolean): String! owner: Person friends(first: Int, last: Int): Pets barks: Boolean size: Float! }
type Cat implements Pet & Node { id: ID! name(upper: Boolean): String! owner: Person friends(first: Int, last: Int): Pets meows: Boolean size: Int lives: [Int!]! }
type Person implements Node { id: ID! name: String pets(first: Int): [Pet!]! home(near: Place, at: [Place!], by: Spot): String }
type Pets { nodes: [Pet!] count: Int! }
union Being = Dog | Person
enum Color { RED GREEN BLUE }
scalar Anything
input Place { x: Int! y: Int = 3 color: Color next: Place tags: [String!] any: Anything }
input Spot @oneOf { a: Int b: String }
type Query { pet(id: ID!): Pet pets(first: Int, color: Color): [Pet!]! beings: [Being] node(id: ID): Node me: Person paint(colors: [Color!], f: Float, any: Anything, b: Boolean, s: String): Int query: Query count(n: Int! = 1): Int }
type Mutation { rename(id: ID!, name: String!): Pet }
type Subscription { renamed: Pet born(first: Int): [Pet] }
`

func loaded(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parsed(t testing.TB, text string) *syntax.Document {
	t.Helper()
	doc := &syntax.Document{}
	if err := syntax.Parse(doc, []byte(text), syntax.Limits{}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

func factsOf(t testing.TB, s *schema.Schema, text string, o Options) *Facts {
	t.Helper()
	var v Validator
	doc := parsed(t, text)
	for _, err := range v.Check(s, doc, o) {
		t.Errorf("%s: %v", text, err)
	}
	f, err := v.Facts(s, doc, 0, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// describe writes what facts tell of fields: "Type.field/below", narrowed ones
// with their objects, then roots.
func describe(s *schema.Schema, f *Facts) string {
	name := func(id schema.FieldID) string { return s.Types[s.Fields[id].Owner].Name + "." + s.Fields[id].Name }
	var out []string
	for i, id := range f.Fields {
		out = append(out, fmt.Sprintf("%s/%d", name(id), f.Below[i]))
	}
	for _, n := range f.Narrowed {
		var objects []string
		for _, id := range f.Objects[n.Objects.Lo:n.Objects.Hi] {
			objects = append(objects, name(id))
		}
		out = append(out, fmt.Sprintf("%s(%s)/%d", name(n.Field), strings.Join(objects, " "), n.Below))
	}
	for _, r := range f.Roots {
		out = append(out, fmt.Sprintf("%s>%d", name(r.Field), r.Below))
	}
	return strings.Join(out, " ")
}

func TestFactsTellWhichFieldsCanBeReadOnWhichObjects(t *testing.T) {
	s := loaded(t, petSchema)
	cases := []struct{ text, want string }{
		{"{ me { name } }", "Query.me/1 Person.name/0 Query.me>1"},
		{"{ a: me { n: name } b: me { name pets { id } } }", "Query.me/2 Person.name/0 Person.pets/1 Pet.id/0 Query.me>2"},
		{`{ pet(id: 1) { name ... on Dog { barks owner { name } } } }`, "Query.pet/2 Pet.name/0 Dog.barks/0 Dog.owner/1 Person.name/0 Query.pet>2"},
		{"{ node { ... on Pet { name } } }", "Query.node/1 Pet.name/0 Query.node>1"},
		{"{ node { ... on Pet { ... on Node { id } } } }", "Query.node/1 Node.id(Dog.id Cat.id)/0 Query.node>1"},
		{"{ node { ...P } } fragment P on Pet { ...N } fragment N on Node { id ... on Dog { id } }", "Query.node/1 Dog.id/0 Node.id(Dog.id Cat.id)/0 Query.node>1"},
		{"{ beings { ... on Pet { name } ... on Node { id } } }", "Query.beings/1 Pet.name(Dog.name)/0 Node.id(Dog.id Person.id)/0 Query.beings>1"},
		{"{ beings { ... on Pet { owner { pets { id } } } } node { ... on Pet { owner { id } } } }", "Query.beings/3 Person.pets/1 Pet.id/0 Query.node/2 Pet.owner/1 Person.id/0 Pet.owner(Dog.owner)/2 Query.beings>3 Query.node>2"},
		{"{ pet(id: 1) { ... on Dog { ... on Pet { ... on Cat { lives } } } } }", "Query.pet/1 Cat.lives/0 Query.pet>1"},
		{"{ pet(id: 1) { ... on Dog { ... on Pet { name } } } }", "Query.pet/1 Pet.name(Dog.name)/0 Query.pet>1"},
		{"{ __schema { types { name fields { name } } } me { id } }", "Query.__schema/3 Query.me/1 Person.id/0 Query.__schema>3 Query.me>1"},
		{"{ __typename me { __typename } }", "Query.me/0 Query.me>0"},
		{"{ ... on Query { me { id } } ...Q } fragment Q on Query { query { query { me { id } } } }", "Query.me/1 Person.id/0 Query.query/3 Query.me>1 Query.query>3"},
		{"mutation { rename(id: 1, name: \"x\") { id } }", "Mutation.rename/1 Pet.id/0 Mutation.rename>1"},
	}
	for _, c := range cases {
		if got := describe(s, factsOf(t, s, c.text, Options{})); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}
