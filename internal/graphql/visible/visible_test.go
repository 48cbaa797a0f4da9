package visible_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/visible"
)

// cut returns what is left of a schema without some fields, "T.f" each.
func cut(t *testing.T, text string, hidden ...string) (p *visible.Part, left string) {
	t.Helper()
	doc, err := sdl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s := schema.Compile(doc)
	p = visible.Cut(s, func(f schema.FieldID) bool {
		return !slices.Contains(hidden, s.Types[s.Fields[f].Owner].Name+"."+s.Fields[f].Name)
	})
	if left, err = p.SDL(doc); err != nil {
		t.Fatal(err)
	}
	if !p.Empty() {
		if _, err := schema.Load(left); err != nil {
			t.Errorf("what is left is invalid: %v\n%s", err, left)
		}
	}
	return p, left
}

const everything = `"The whole." schema { query: Query mutation: Mutation }
"Marks." directive @mark(by: Mark = BLUE) on FIELD | OBJECT
directive @inner(on: Secret) on OBJECT
type Query {
  "Everybody." users(first: Int = 10, by: Order, "Filters." where: Filter = {name: "x"}): [User!]!
  node(id: ID!): Node
  found: Found
  old: Date @deprecated(reason: "Use \"users\".")
}
type Mutation { rename(name: String!): User }
interface Node { id: ID! }
type User implements Node @mark { id: ID! name: String "Private." email: Email! orders: [Order2!] friend: User }
type Order2 implements Node { id: ID! total: Money! }
union Found = User | Order2
enum Order { NAME @deprecated AGE }
enum Mark { BLUE }
enum Secret { A }
input Filter { name: String! = "y" inner: Filter2 }
input Filter2 @oneOf { a: Int b: Int }
scalar Date @specifiedBy(url: "https://date.example")
scalar Email
scalar Money
extend type Query { extra: Int }
`

func TestWithoutRulesTheWholeSchemaIsLeft(t *testing.T) {
	_, left := cut(t, everything)
	for _, text := range []string{
		"The whole.", "Marks.", "@mark(", "by: Mark = BLUE", "Everybody.", "first: Int = 10", `where: Filter = {name: "x"}`, "Filters.", "node(", "): Node",
		`old: Date @deprecated(reason: "Use \"users\".")`, "type User implements Node {", "Private.", "union Found = ", "NAME @deprecated\n", "input Filter2 @oneOf {",
		`scalar Date @specifiedBy(url: "https://date.example")`, `name: String! = "y"`, "extra: Int",
	} {
		if !strings.Contains(left, text) {
			t.Errorf("%s is gone from\n%s", text, left)
		}
	}
}

func TestWhatIsHiddenTakesWithItWhatIsForItAlone(t *testing.T) {
	_, left := cut(t, everything, "User.email", "Order2.total", "Query.old")
	for _, gone := range []string{"email", "Email", "Private", "total", "Money", "old", "Date", "Secret", "@inner"} {
		if strings.Contains(left, gone) {
			t.Errorf("%s is left in\n%s", gone, left)
		}
	}
	for _, there := range []string{"type Order2 implements Node {\n  id: ID!\n}", "orders: [Order2!]", "Filter2"} {
		if !strings.Contains(left, there) {
			t.Errorf("%s is gone from\n%s", there, left)
		}
	}
}

func TestTypesWithoutFieldsAreGone(t *testing.T) {
	_, left := cut(t, everything, "Order2.id", "Order2.total", "Mutation.rename", "Node.id")
	for _, gone := range []string{"Order2", "orders", "mutation", "Mutation", "implements"} {
		if strings.Contains(left, gone) {
			t.Errorf("%s is left in\n%s", gone, left)
		}
	}
	if !strings.Contains(left, "union Found = User\n") || !strings.Contains(left, "union Node = User\n") {
		t.Errorf("left is\n%s", left)
	}
	p, left := cut(t, "type Query { a: A } type A { b: Int }", "A.b")
	if !p.Empty() || left != "" {
		t.Errorf("nothing may be called, and left is\n%s", left)
	}
}

func TestRelationsThatDoNotHoldAreGone(t *testing.T) {
	p, left := cut(t, `type Query { pet: Pet cat: Cat } interface Pet { name: String friend: Pet } interface Furry implements Pet { name: String friend: Pet fur: Int }
		type Cat implements Pet & Furry { name: String friend: Cat fur: Int } type Dog implements Pet { name: String friend: Dog }`, "Dog.name")
	if !strings.Contains(left, "type Dog {\n  friend: Dog\n}") && strings.Contains(left, "Dog") {
		t.Errorf("left is\n%s", left)
	}
	if !strings.Contains(left, "type Cat implements Pet & Furry {") {
		t.Errorf("left is\n%s", left)
	}
	dog, _ := p.TypeNamed([]byte("Dog"))
	name, _ := p.FieldNamed(dog, []byte("name"))
	if p.Has(name) {
		t.Error("Dog.name is left")
	}
}

func TestIntrospectionDescribesWhatIsLeft(t *testing.T) {
	doc, err := sdl.Parse(everything)
	if err != nil {
		t.Fatal(err)
	}
	s := schema.Compile(doc)
	answer, err := visible.Cut(s, func(schema.FieldID) bool { return true }).Introspection(doc)
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Schema struct {
			Types []struct {
				Kind, Name    string
				PossibleTypes []struct{ Name string }
				Fields        []struct{ Name string }
			}
			Directives []struct{ Name string }
		} `json:"__schema"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, one := range said.Schema.Types {
		kinds[one.Name] = one.Kind
		if one.Name == "Node" && len(one.PossibleTypes) != 2 || one.Name == "Query" && len(one.Fields) != 5 {
			t.Errorf("%+v", one)
		}
	}
	for name, kind := range map[string]string{"__Schema": "OBJECT", "__TypeKind": "ENUM", "String": "SCALAR", "Node": "INTERFACE", "Found": "UNION", "Filter": "INPUT_OBJECT"} {
		if kinds[name] != kind {
			t.Errorf("%s is %q, want %q", name, kinds[name], kind)
		}
	}
	if _, there := kinds["Secret"]; there || len(said.Schema.Directives) < 4 {
		t.Errorf("%v, %v", kinds, said.Schema.Directives)
	}
	text, err := sdl.FromIntrospection(answer)
	if err != nil || strings.Contains(text, "__") {
		t.Errorf("%v\n%s", err, text)
	}
}
