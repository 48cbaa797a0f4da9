package sample

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

func ask(t testing.TB, query string, variables map[string]any, operation string) (int, string) {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]any{"query": query, "variables": variables, "operationName": operation})
	status, answer := s.Answer(body)
	if !json.Valid(answer) {
		t.Fatalf("%s is no JSON", answer)
	}
	return status, string(answer)
}

func TestOperationsAreAnswered(t *testing.T) {
	for _, c := range []struct {
		query     string
		variables map[string]any
		status    int
		want      string
	}{
		{
			`{ country(code: "ch") { name capital population continent { name } languages { code } } }`, nil, 200,
			`{"data":{"country":{"name":"Switzerland","capital":"Bern","population":8.9,"continent":{"name":"Europe"},"languages":[{"code":"de"},{"code":"fr"},{"code":"it"},{"code":"rm"}]}}}`,
		},
		{`{ country(code: "XX") { name } }`, nil, 200, `{"data":{"country":null}}`},
		{`query A($c: ID!) { a: continent(code: $c) { __typename c: code } }`, map[string]any{"c": "EU"}, 200, `{"data":{"a":{"__typename":"Continent","c":"EU"}}}`},
		{`{ countries(continent: "OC") { ...F ... on Country { name } } } fragment F on Country { code name }`, nil, 200, `{"data":{"countries":[{"code":"AU","name":"Australia"},{"code":"NZ","name":"New Zealand"}]}}`},
		{`query($s: Boolean = true) { country(code: "NZ") { name @skip(if: $s) code @include(if: $s) } }`, nil, 200, `{"data":{"country":{"code":"NZ"}}}`},
		{`query($s: Boolean!) { country(code: "NZ") { name @skip(if: $s) code @include(if: $s) } }`, map[string]any{"s": false}, 200, `{"data":{"country":{"name":"New Zealand"}}}`},
		{`{ country(code: "KE") { neighbours { code } neighbours { name } } }`, nil, 200, `{"data":{"country":{"neighbours":[{"code":"TZ","name":"Tanzania"}]}}}`},
		{`{ countries(first: 1) { code } languages { code countries { code } } }`, nil, 200, `{"data":{"countries":[{"code":"AR"}],"languages":[{"code":"ar","countries":[{"code":"EG"}]},`},
		{`{ __type(name: "Country") { kind name fields { name } } }`, nil, 200, `{"data":{"__type":{"kind":"OBJECT","name":"Country","fields":[{"name":"code"},`},
		{`{ __schema { queryType { name } mutationType { name } } __typename }`, nil, 200, `{"data":{"__schema":{"queryType":{"name":"Query"},"mutationType":null},"__typename":"Query"}}`},
		{`{ nothing }`, nil, 400, `{"errors":[{"locations":[{"line":1,"column":3}],"message":"field: nothing not defined on type: Query"}]}`},
		{`{ country(code: "CH") { name `, nil, 400, `{"errors":[{"locations":[{"line":1,"column":30}],"message":"Syntax Error: `},
		{`query A { __typename } query B { __typename }`, nil, 400, `{"errors":[`},
		{`{ continents { countries { neighbours { neighbours { neighbours { neighbours { neighbours { neighbours { neighbours { neighbours { neighbours { neighbours { code } } } } } } } } } } } } }`, nil, 400, `{"errors":[{"message":"the response would be too large`},
	} {
		if status, got := ask(t, c.query, c.variables, ""); status != c.status || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s\n%d %.400s\nwant %d %s", c.query, status, got, c.status, c.want)
		}
	}
}

// TestSubgraphsAnswerForEntities: each subgraph resolves the countries that the other names.
func TestSubgraphsAnswerForEntities(t *testing.T) {
	ofCountries, ofCurrencies, err := NewSubgraphs()
	if err != nil {
		t.Fatal(err)
	}
	const entities = `{"query":"query($r: [_Any!]!) { _entities(representations: $r) { __typename ... on Country { %s } } }",
		"variables":{"r":[{"__typename":"Country","code":"CH"},{"__typename":"Country","code":"XX"},{"__typename":"Town","code":"CH"}]}}`
	for _, c := range []struct {
		server     *Server
		body, want string
	}{
		{ofCountries, fmt.Sprintf(entities, "name"), `{"data":{"_entities":[{"__typename":"Country","name":"Switzerland"},null,null]}}`},
		{ofCurrencies, fmt.Sprintf(entities, "currency { name }"), `{"data":{"_entities":[{"__typename":"Country","currency":{"name":"Swiss franc"}},null,null]}}`},
		{ofCurrencies, `{"query":"{ currencies { code countries { code } } }"}`, `{"data":{"currencies":[{"code":"ARS","countries":[{"code":"AR"}]},`},
		{ofCurrencies, `{"query":"{ _service { sdl } }"}`, `{"data":{"_service":{"sdl":"type Query {\n  currencies: `},
	} {
		if status, got := c.server.Answer([]byte(c.body)); status != 200 || !strings.HasPrefix(string(got), c.want) {
			t.Errorf("%s\n%d %.400s\nwant %s", c.body, status, got, c.want)
		}
	}
}

// TestEveryCountryHasACurrencyAndADiallingCode compares the parts of the fixed data.
func TestEveryCountryHasACurrencyAndADiallingCode(t *testing.T) {
	_, all, err := world()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		code := c.(object)["code"].(string)
		if DiallingCode(code) == nil || !strings.Contains(string(currencies), `"`+code+`"`) {
			t.Errorf("%s has no dialling code or no currency", code)
		}
	}
	if DiallingCode("XX") != nil {
		t.Error("a country that does not exist has a dialling code")
	}
}

func TestOtherBodiesAreRefused(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "x", "[]", `{"query":1}`, `{}`} {
		if status, answer := s.Answer([]byte(body)); status != 400 || !strings.Contains(string(answer), `"errors"`) {
			t.Errorf("%q: %d %s", body, status, answer)
		}
	}
}

// TestIntrospectionDescribesTheSchema rebuilds the schema from an introspection response.
func TestIntrospectionDescribesTheSchema(t *testing.T) {
	const ref = `kind name ofType { kind name ofType { kind name ofType { kind name } } }`
	status, answer := ask(t, `{ __schema { queryType { name } mutationType { name } subscriptionType { name }
		types { kind name description fields(includeDeprecated: true) { name args { name defaultValue type { `+ref+` } } type { `+ref+` } isDeprecated }
			inputFields { name } interfaces { name } enumValues(includeDeprecated: true) { name } possibleTypes { name } }
		directives { name locations isRepeatable args { name defaultValue type { `+ref+` } } } } }`, nil, "")
	if status != 200 {
		t.Fatal(answer)
	}
	text, err := sdl.FromIntrospection([]byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	told, err := schema.Load(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	own, err := schema.Load(Schema)
	if err != nil {
		t.Fatal(err)
	}
	if changes := change.Compare(own, told); len(changes) > 0 {
		t.Errorf("%v", changes)
	}
}

func FuzzAnswer(f *testing.F) {
	s, err := New()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"query":"{ countries { name } }"}`))
	f.Add([]byte(`{"query":"query($a: ID!) { country(code: $a) { ...F } } fragment F on Country { name }","variables":{"a":1}}`))
	f.Add([]byte(`{"query":"{ __schema { types { name fields { name } } } }"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if status, answer := s.Answer(body); !json.Valid(answer) || status != 200 && status != 400 {
			t.Errorf("%d %s", status, answer)
		}
	})
}
