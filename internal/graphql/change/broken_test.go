package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

const before = `
	type Query { user(id: ID): User gone: Int }
	type User { name: String mail: String }
	type Mutation { rename(to: String): User }`

const after = `
	type Query { user(id: ID!): User }
	type User { name: String email: String }`

// stored is an API that holds operations.
func stored(t testing.TB) *definition.API {
	t.Helper()
	api, err := definition.ParseAPI([]byte(`{"api_id":"g","name":"g","use_keyless":true,"proxy":{"listen_path":"/g","target_url":"http://up.example"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"use_extended_paths":true,"extended_paths":{"persist_graphql":[
			{"method":"GET","path":"/good","operation":"{ user(id: 1) { name } }"},
			{"method":"GET","path":"/gone","operation":"{\n  gone\n}"},
			{"method":"GET","path":"/never","operation":"{ never }"},
			{"method":"GET","path":"/cut","operation":"{ user"},
			{"method":"GET","path":"/off","operation":"{ gone }","disabled":true}]}}}},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { a: Int }","trusted_documents":{"documents":{
			"1d5c4fd30fdbbd9b2b0f3ac8ad6b4b5ac22c4a4b4b3b4c7e4e4e4e4e4e4e4e4e":"x"}}}}`))
	if api == nil {
		t.Fatal(err)
	}
	api.GraphQL.TrustedDocuments.Documents = map[string]string{"aa": "query A { user { name } }", "bb": "query B { user(id: 1) { name } }"}
	return api
}

func TestWhatANewSchemaBreaksIsNamed(t *testing.T) {
	holders := []Holder{
		{Policy: "gold", Access: &definition.Access{
			RestrictedTypes:   []definition.TypeFields{{Name: "User", Fields: []string{"name", "mail"}}, {Name: "Ghost", Fields: []string{"*"}}},
			AllowedTypes:      []definition.TypeFields{{Name: "Mutation", Fields: []string{"*"}}},
			FieldAccessRights: []definition.FieldAccess{{TypeName: "Query", FieldName: "gone"}, {TypeName: "Query", FieldName: "user"}},
		}},
		{Key: "abc", Access: &definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "User", Fields: []string{"*", "mail"}}}}},
		{Key: "none"},
	}
	show := func(all []Break) (lines []string) {
		for _, b := range all {
			lines = append(lines, fmt.Sprintf("%s %s%s %s: %s", b.Kind, b.Policy, b.Key, b.Path, b.Message))
		}
		return lines
	}
	const list = `version_data.versions["Default"].extended_paths.persist_graphql`
	want := []string{
		`field_rule gold access_rights["g"].restricted_types[0].fields[1]: field User.mail is not in the schema: the rule holds back nothing; whatever took the place is open`,
		`field_rule gold access_rights["g"].allowed_types[0].fields[0]: type Mutation is not in the schema: the rule opens nothing; whatever took the place is closed`,
		`field_rule gold access_rights["g"].field_access_rights[0]: field Query.gone is not in the schema: the limit has no effect; whatever took the place has the limit of all`,
		`field_rule abc access_rights["g"].restricted_types[0].fields[1]: field User.mail is not in the schema: the rule holds back nothing; whatever took the place is open`,
		`persisted_query  ` + list + `: GET /gone: 2:3: field: gone not defined on type: Query`,
		`trusted_document  graphql.trusted_documents.documents["aa"]: 1:11: `,
	}
	api := stored(t)
	got := show(Broken(load(t, before), load(t, after), api, holders))
	if len(got) != len(want) {
		t.Fatalf("got\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	all := show(Broken(nil, load(t, after), api, holders))
	for _, more := range []string{"type Ghost", "GET /never", "GET /cut: 1:7: Syntax Error"} {
		if !slices.ContainsFunc(all, func(line string) bool { return strings.Contains(line, more) }) {
			t.Errorf("without an old schema %q is missing:\n%s", more, strings.Join(all, "\n"))
		}
	}
	if same := Broken(load(t, before), load(t, before), api, holders); len(same) > 0 {
		t.Errorf("the same schema breaks %v", show(same))
	}
}

func TestRulesMayCallRootsByTheirUsualNames(t *testing.T) {
	old := load(t, `schema { query: QueryRoot } type QueryRoot { a: Int b: Int }`)
	now := load(t, `schema { query: QueryRoot } type QueryRoot { a: Int }`)
	holders := []Holder{{Policy: "p", Access: &definition.Access{RestrictedTypes: []definition.TypeFields{{Name: "Query", Fields: []string{"a", "b"}}}}}}
	got := Broken(old, now, &definition.API{ID: "g"}, holders)
	if len(got) != 1 || !strings.Contains(got[0].Message, "Query.b") {
		t.Errorf("%v", got)
	}
}
