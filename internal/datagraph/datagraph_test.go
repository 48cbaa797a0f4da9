package datagraph

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

const schemaText = `
type Query { user(id: ID!): User users: [User] any: Any }
type Mutation { add: User }
type Subscription { added: User }
type User { id: ID! name(long: Boolean): String todos: [Todo] at: Place any: Any tags: [String] }
type Place { city: String }
type Todo { id: ID! owner: User }
interface Any { id: ID }
`

// compiled compiles data sources and field_configs.
func compiled(t *testing.T, sources, configs string) (*Graph, []string) {
	t.Helper()
	var e definition.GraphQLEngine
	if err := json.Unmarshal([]byte(`{"data_sources": [`+sources+`], "field_configs": [`+configs+`]}`), &e); err != nil {
		t.Fatal(err)
	}
	s, err := schema.Load(schemaText)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Compile(&definition.API{GraphQL: &definition.GraphQL{Engine: &e}}, s)
	var texts []string
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		for _, p := range *wrong {
			texts = append(texts, p.Path+": "+p.Message)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	return g, texts
}

const roots = `{"kind": "GraphQL", "name": "roots", "root_fields": [{"type": "Query", "fields": ["user", "users", "any"]}, {"type": "Mutation", "fields": ["add"]}, {"type": "Subscription", "fields": ["added"]}], "config": {}}`

func rest(typ, field, config string) string {
	return roots + `, {"kind": "REST", "name": "r", "root_fields": [{"type": "` + typ + `", "fields": ["` + field + `"]}], "config": ` + config + `}`
}

// own is a GraphQL source with an operation of its own.
func own(config string) string {
	return strings.Replace(rest("User", "todos", `{"has_operation": true, `+config+`}`), "REST", "GraphQL", 1)
}

func TestProblemsOfSources(t *testing.T) {
	const at = "graphql.engine.data_sources[1]"
	for _, c := range []struct{ sources, configs, want string }{
		{"", "", "graphql.engine.data_sources: have no source of Query.user; list it in the root_fields of one"},
		{rest("None", "a", `{}`), "", at + ".root_fields[0].type: is no type of the schema"},
		{rest("Any", "id", `{}`), "", at + ".root_fields[0].type: must be an object type; list the fields of each type that implements it"},
		{rest("User", "nope", `{}`), "", at + ".root_fields[0].fields[0]: is no field of the type User"},
		{rest("Query", "user", `{}`), "", at + ".root_fields[0].fields[0]: has the data source roots already"},
		{strings.Replace(rest("Query", "user", `{}`), "REST", "msgbroker", 1), "", at + ".root_fields[0].type: must be the subscription type: the source is of kind msgbroker"},
		{rest("Subscription", "added", `{}`), "", at + ".root_fields[0].type: is the subscription type, whose fields need a source of kind msgbroker, or GraphQL without has_operation"},
		{strings.Replace(rest("User", "todos", `{}`), "REST", "GraphQL", 1), "", at + ".root_fields[0].type: must be the query, mutation or subscription type: a source of kind GraphQL is asked for root fields; use one of kind REST, or has_operation, to join"},
		{rest("User", "todos", `{"url": "http://x/{{.arguments.n}}"}`), "", at + ".config.url: names {{.arguments.n}}, and User.todos has no such argument"},
		{rest("User", "todos", `{"url": "http://x/{{.object.nope}}"}`), "", at + ".config.url: names {{.object.nope}}: User has no field nope"},
		{rest("User", "todos", `{"url": "http://x/{{.object.at}}"}`), "", at + ".config.url: names {{.object.at}}: User.at is an object; name a field of it"},
		{rest("User", "todos", `{"url": "http://x/{{.object.name}}"}`), "", at + ".config.url: names {{.object.name}}: User.name has arguments; name a field without"},
		{rest("User", "todos", `{"url": "http://x/{{.object.any.id}}"}`), "", at + ".config.url: names {{.object.any.id}}: User.any is no object type"},
		{rest("User", "todos", `{"url": "http://x/{{.other.id}}"}`), "", at + ".config.url: has {{.other.id}}; variables are {{.arguments.name}}, {{.object.name}} and {{.request.headers.Name}}"},
		{rest("User", "todos", `{"url": "http://x/{{.object.id"}`), "", at + ".config.url: has a variable without an end: {{.object.id"},
		{rest("User", "todos", `{"body": "{\"a\": {{.object.id}}"}`), "", at + `.config.body: must be JSON, such as {"name": {{.arguments.name}}}: a variable stands for a whole value, or for text within a string`},
		{own(`"operation": "query {"`), "", at + ".config.operation: must be an operation of GraphQL: "},
		{own(`"operation": "query A{a} query B{a}"`), "", at + ".config.operation: must be one operation of GraphQL, with the fragments that it uses"},
		{own(`"operation": "subscription {a}"`), "", at + ".config.operation: must be a query or a mutation"},
		{own(`"operation": "{a}", "variables": {"a": "{{.object.nope}}"}`), "", at + ".config.variables: names {{.object.nope}}: User has no field nope"},
		{strings.Replace(roots, `"config": {}`, `"config": {"headers": {"X": "{{.object.id}}"}}`, 1), "", `graphql.engine.data_sources[0].config.headers["X"]: may have {{.request.headers.Name}} only`},
		{roots, `{"type_name": "None", "field_name": "a"}`, "graphql.engine.field_configs[0].type_name: is no type of the schema"},
		{roots, `{"type_name": "User", "field_name": "a"}`, "graphql.engine.field_configs[0].field_name: is no field of an object type User"},
		{roots, `{"type_name": "Query", "field_name": "user"}`, "graphql.engine.field_configs[0].field_name: has the source roots, which is of kind GraphQL; only values of REST sources, of message brokers and of sources with has_operation are mapped"},
		{roots, `{"type_name": "User", "field_name": "id", "path": ["a"]}, {"type_name": "User", "field_name": "id"}`, "graphql.engine.field_configs[1].field_name: is mapped by an entry before it"},
	} {
		if _, got := compiled(t, c.sources, c.configs); len(got) == 0 || got[0] != c.want && (!strings.HasSuffix(c.want, ": ") || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s\n got %q\nwant %q", c.sources, got, c.want)
		}
	}
}

func TestWhatASourceHas(t *testing.T) {
	g, wrong := compiled(t, rest("User", "todos", `{"url": "http://x/{{.object.id}}/{{ .object.at.city }}", "body": "{\"a\": {{.object.id}}, \"b\": \"-{{.object.id}}\\\"\"}"}`), `{"type_name": "Todo", "field_name": "id", "path": ["a", "0"]}, {"type_name": "Todo", "field_name": "owner", "path": [""]}`)
	if wrong != nil {
		t.Fatal(wrong)
	}
	var below []string
	g.Below(g.Sources[0], func(f schema.FieldID) {
		below = append(below, g.Schema.Types[g.Schema.Fields[f].Owner].Name+"."+g.Schema.Fields[f].Name)
	})
	slices.Sort(below)
	if want := []string{"Any.id", "Place.city", "User.any", "User.at", "User.id", "User.name", "User.tags"}; !slices.Equal(below, want) {
		t.Errorf("below %q", below)
	}
	r := g.Sources[1]
	if len(r.Needs) != 2 || strings.Join(r.Needs[1], ".") != "at.city" {
		t.Errorf("needs %q", r.Needs)
	}
	if len(r.Body) != 5 || r.Body[1].Quoted || !r.Body[3].Quoted {
		t.Errorf("body %+v", r.Body)
	}
	todo, _ := g.Schema.TypeNamed([]byte("Todo"))
	id, _ := g.Schema.FieldNamed(todo, []byte("id"))
	owner, _ := g.Schema.FieldNamed(todo, []byte("owner"))
	if m := g.Mapping(id); m.Whole || strings.Join(m.Path, ".") != "a.0" {
		t.Errorf("mapping of id: %+v", m)
	}
	if !g.Mapping(owner).Whole {
		t.Error("the owner is not the whole value")
	}
}
