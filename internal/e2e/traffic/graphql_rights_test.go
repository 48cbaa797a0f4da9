package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

var (
	tooDeep   = expectation{403, "depth_limit", errorBody("depth limit exceeded")}
	noSchema  = expectation{403, "introspection_disabled", errorBody("introspection is disabled")}
	noneOfCat = expectation{400, "field_restricted", graphError("all fields of Cat type are restricted")}
)

func fieldRefused(field, of string) expectation {
	return expectation{400, "field_restricted", graphError("field: " + field + " is restricted on type: " + of)}
}

// depthLimit limits one field.
func depthLimit(of, field string, most int) object {
	return object{"type_name": of, "field_name": field, "limits": object{"max_query_depth": most}}
}

// How deep an operation is, who limits it, and which limit holds.
func TestDepthIsLimitedWhereItIsSet(t *testing.T) {
	t.Parallel()
	policies := object{
		"three": object{"name": "three", "max_query_depth": 3, "access_rights": rig.AccessTo("g", "zero")},
		"free":  object{"name": "free", "max_query_depth": -1, "access_rights": rig.AccessTo("g")},
	}
	g := newGraphs(t, nil, policies, func(target string) []object {
		return []object{rig.GraphDef("g", target, false, nil), rig.GraphDef("zero", target, false, object{"depth_base": 0})}
	})
	entry := func(most int, fields ...object) object {
		return rig.AccessWith("g", object{"limit": object{"max_query_depth": most}, "field_access_rights": fields})
	}
	key := func(most int, rights object) string {
		return g.newKey(object{"access_rights": rights, "max_query_depth": most})
	}
	keys := map[string]string{
		"none":    key(0, rig.AccessTo("g")),
		"2":       key(2, rig.AccessTo("g", "zero")),
		"3":       key(3, rig.AccessTo("g", "zero")),
		"1":       key(1, rig.AccessTo("g", "zero")),
		"api 3":   key(2, entry(3)),
		"api -1":  key(2, entry(-1)),
		"api 0":   key(3, entry(0)),
		"a 2":     key(2, entry(0, depthLimit("Query", "a", 2))),
		"a 3":     key(2, entry(2, depthLimit("Query", "a", 3))),
		"a -1":    key(2, entry(2, depthLimit("Query", "a", -1))),
		"a 1":     key(-1, entry(-1, depthLimit("Query", "a", 1))),
		"three":   g.newKey(object{"apply_policies": []string{"three"}}),
		"largest": g.newKey(object{"apply_policies": []string{"three", "free"}}),
	}
	for _, c := range []struct {
		api, key, query string
		want            expectation
	}{
		// { a { b } } is 3, and 2 with a base of 0.
		{"g", "3", "{ a { b } }", passes},
		{"g", "2", "{ a { b } }", tooDeep},
		{"zero", "2", "{ a { b } }", passes},
		{"zero", "1", "{ a { b } }", tooDeep},
		{"g", "2", "{ secret }", passes},
		{"g", "1", "{ secret }", tooDeep},
		{"zero", "1", "{ secret }", passes},
		{"g", "3", "{ a { a { b } } }", tooDeep},
		{"zero", "3", "{ a { a { b } } }", passes},
		{"g", "three", "{ a { b } }", passes},
		{"g", "three", "{ a { a { b } } }", tooDeep},
		{"zero", "three", "{ a { a { b } } }", passes},
		{"g", "largest", "{ a { a { a { b } } } }", passes},
		{"g", "none", "{ a { a { a { b } } } }", passes},

		// Nothing but fields makes levels, wherever they are written.
		{"g", "3", "{ ... { ... on Query { a { ... on A { ...F } } } } } fragment F on A { ...G } fragment G on A { x: b @include(if: true) __typename }", passes},
		{"g", "3", "{ ...F } fragment F on Query { a { ...G } } fragment G on A { a { __typename } }", passes},
		{"g", "3", "{ secret x: secret a { b } countries { continent { code } } }", tooDeep},
		{"g", "3", "{ a { a @skip(if: true) { b } } }", tooDeep},
		{"g", "2", "mutation { rename(code: 1, name: \"\") { code } }", tooDeep},

		// Introspection by itself has no depth, beside fields these have theirs.
		{"g", "2", "{ __schema { types { fields { type { ofType { name } } } } } }", passes},
		{"g", "3", "{ __schema { types { fields { type { ofType { name } } } } } a { a { b } } }", tooDeep},

		// The API's limit before the key's, the field's before both.
		{"g", "api 3", "{ a { b } }", passes},
		{"g", "api 3", "{ a { a { b } } }", tooDeep},
		{"g", "api -1", "{ a { a { a { b } } } }", passes},
		{"g", "api 0", "{ a { b } }", passes},
		{"g", "api 0", "{ a { a { b } } }", tooDeep},
		{"g", "a 2", "{ a { b } }", passes},
		{"g", "a 2", "{ a { a { b } } }", tooDeep},
		{"g", "a 3", "{ a { a { b } } }", passes},
		{"g", "a 3", "{ a { a { a { b } } } }", tooDeep},
		{"g", "a 3", "{ x: a { b } y: a { a { a { b } } } }", tooDeep},
		{"g", "a 3", "{ a { a { b } } countries { code } }", tooDeep},
		{"g", "a 3", "{ a { a { b } } secret }", passes},
		{"g", "a -1", "{ a { a { a { a { b } } } } }", passes},
		{"g", "a -1", "{ countries { code } }", tooDeep},
		{"g", "a 1", "{ a { b } }", tooDeep},
		{"g", "a 1", "{ countries { continent { code } } }", passes},
	} {
		g.check(c.api+", "+c.key+": "+c.query, g.ask(c.api, keys[c.key], c.query), c.want)
	}
}

// No way of writing a query gets at a field that the key may not have.
func TestFieldRulesHoldOnEveryWay(t *testing.T) {
	t.Parallel()
	g := oneGraph(t, false, nil)
	key := func(rules object) string {
		return g.newKey(object{"access_rights": rig.AccessWith("g", rules)})
	}
	restricted := func(types ...object) string { return key(object{"restricted_types": types}) }
	allowed := func(types ...object) string { return key(object{"allowed_types": types}) }
	lives := restricted(rig.Restrict("Cat", "lives", "name"))
	catless := restricted(rig.Restrict("Cat", "*"))
	animal := restricted(rig.Restrict("Animal", "name"))
	country := restricted(rig.Restrict("Query", "secret"), rig.Restrict("Country", "name"), rig.Restrict("Mutation", "rename"))
	only := allowed(rig.Restrict("Query", "countries", "animals", "pet"), rig.Restrict("Country", "code"), rig.Restrict("Animal", "name"), rig.Restrict("Dog", "*"))
	both := key(object{"allowed_types": []object{rig.Restrict("Query", "secret")}, "restricted_types": []object{rig.Restrict("Query", "secret")}})
	for _, c := range []struct {
		key, query string
		want       expectation
	}{
		{country, "{ countries { code continent { code } } }", passes},
		{country, "{ countries { name } }", fieldRefused("name", "Country")},
		{country, "{ secret }", fieldRefused("secret", "Query")},
		{country, "{ x: secret @skip(if: true) }", fieldRefused("secret", "Query")},
		{country, "query($no: Boolean = false) { countries { code name @include(if: $no) } }", fieldRefused("name", "Country")},
		{country, "{ ...F } fragment F on Query { ...G } fragment G on Query { countries { continent { countries { ...H } } } } fragment H on Country { code: name }", fieldRefused("name", "Country")},
		{country, "{ ... { ... on Query { ... @include(if: true) { secret } } } }", fieldRefused("secret", "Query")},
		{country, `mutation { rename(code: 1, name: "") { code } }`, fieldRefused("rename", "Mutation")},
		{country, "{ __schema { queryType { name } } secret }", fieldRefused("secret", "Query")},
		{country, "{ __type(name: \"Country\") { name } countries { name } }", fieldRefused("name", "Country")},
		{country, "{ __schema { types { name } } __type(name: \"Country\") { fields { name } } }", passes},
		{country, "{ __typename countries { __typename } }", passes},

		// A cat's fields, by any other name.
		{lives, "{ pet { ... on Cat { lives } } }", fieldRefused("lives", "Cat")},
		{lives, "{ animals { ... on Cat { ... on Animal { name } } } }", fieldRefused("name", "Animal")},
		{lives, "{ animals { name } }", fieldRefused("name", "Animal")},
		{lives, "{ animals { ... on Animal { name } } }", fieldRefused("name", "Animal")},
		{lives, "{ pet { ... on Animal { name } } }", fieldRefused("name", "Animal")},
		{lives, "{ pet { ...F } } fragment F on Animal { ...G } fragment G on Animal { x: name }", fieldRefused("name", "Animal")},
		{lives, "{ pet { ... on Dog { ... on Animal { name } } } animals { ... on Dog { name barks } } }", passes},
		{lives, "{ pet { __typename ... on Cat { __typename } } animals { __typename } }", passes},
		{catless, "{ pet { ... on Cat { lives } } }", noneOfCat},
		{catless, "{ pet { ... on Animal { name } } }", fieldRefused("name", "Animal")},
		{catless, "{ pet { ... on Cat { __typename } ... on Dog { name } } }", passes},
		{animal, "{ pet { ... on Cat { name } } }", fieldRefused("name", "Cat")},
		{animal, "{ animals { name } }", fieldRefused("name", "Animal")},
		{animal, "{ pet { ... on Cat { lives } } }", passes},

		{only, "{ countries { code } animals { name ... on Dog { barks } } pet { ... on Dog { name } __typename } __typename }", passes},
		{only, "{ countries { code name } }", fieldRefused("name", "Country")},
		{only, "{ secret }", fieldRefused("secret", "Query")},
		{only, "{ countries { continent { code } } }", fieldRefused("continent", "Country")},
		{only, "{ pet { ... on Cat { lives } } }", fieldRefused("lives", "Cat")},
		{only, `mutation { rename(code: 1, name: "") { code } }`, fieldRefused("rename", "Mutation")},
		{only, "{ __schema { queryType { name } } }", passes},
		{only, "{ __schema { queryType { name } } secret }", fieldRefused("secret", "Query")},
		{both, "{ secret }", passes},
		{both, "{ countries { code } }", fieldRefused("countries", "Query")},
	} {
		g.check(c.query, g.ask("g", c.key, c.query), c.want)
	}
}

// introspections ask for the schema in every place.
var introspections = []string{
	"{ __schema { types { name } } }", `{ __type(name: "Country") { name } }`, "{ secret x: __schema { queryType { name } } }",
	"{ ...F } fragment F on Query { ...G } fragment G on Query { __schema { queryType { name } } }",
	"{ secret ... on Query { ... { __type(name: \"A\") @skip(if: true) { name } } } }",
	"query($s: String!) { __type(name: $s) { fields { name } } }",
}

// The schema is told by the upstream, to whom it may be told.
func TestIntrospectionIsForWhoMayHaveIt(t *testing.T) {
	t.Parallel()
	off := object{"introspection": object{"disabled": true}}
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			rig.GraphDef("g", target, false, nil), rig.GraphDef("off", target, false, off),
			rig.GraphDef("open", target, true, off), rig.GraphDef("other", target, false, nil),
		}
	})
	blind := rig.AccessWith("g", object{"disable_introspection": true})
	blind["other"] = rig.AccessTo("other")["other"]
	for name, c := range map[string]struct {
		api string
		key string
		may bool
	}{
		"a key":                          {"g", g.newKey(object{"access_rights": rig.AccessTo("g")}), true},
		"a key without":                  {"g", g.newKey(object{"access_rights": blind}), false},
		"the same key, another API":      {"other", g.newKey(object{"access_rights": blind}), true},
		"a key of an API that is off":    {"off", g.newKey(object{"access_rights": rig.AccessTo("off")}), false},
		"no key, though the API is off":  {"open", "", true},
		"a useless key of a keyless API": {"open", g.newKey(object{"access_rights": blind}), true},
	} {
		for _, query := range introspections {
			want := passes
			if !c.may {
				want = noSchema
			}
			body := `{"query":` + rig.Quoted(query) + `,"variables":{"s":"A"}}`
			g.check(name+": "+query, g.post(c.api, body, "Authorization", c.key), want)
		}
		g.check(name, g.ask(c.api, c.key, "{ secret __typename countries { __typename code } }"), passes)
	}
}

// leaks are requests that err next to names of the schema.
var leaks = []string{
	`{"query":"{ countrie }"}`, `{"query":"{ secre }"}`, `{"query":"{ secret { x } }"}`, `{"query":"{ countries }"}`, `{"query":"{ countries(frst: 1) { x } }"}`,
	`{"query":"{ country { x } }"}`, `{"query":"{ country(code: {}) { x } }"}`, `{"query":"{ country(code: [1, 2]) { x } }"}`, `{"query":"{ countries(first: \"\") { x } }"}`,
	`{"query":"{ countries(filter: {}) { __typename } }"}`, `{"query":"{ countries(filter: {minmum: 1}) { __typename } }"}`, `{"query":"{ countries(filter: 1) { __typename } }"}`,
	`{"query":"{ countries(filter: {minimum: 1, order: ASCENDIN}) { __typename } }"}`, `{"query":"{ countries(filter: {minimum: \"\"}) { __typename } }"}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { __typename } }","variables":{"f":{}}}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { __typename } }","variables":{"f":{"minmum":1}}}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { __typename } }","variables":{"f":{"minimum":"x"}}}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { __typename } }","variables":{"f":{"minimum":1,"order":"ASCENDIN"}}}`,
	`{"query":"query($f: Filter) { countries(filter: $f) { __typename } }","variables":{"f":5}}`,
	`{"query":"query($f: Filte) { countries(filter: $f) { __typename } }"}`, `{"query":"query($f: Int) { countries(filter: $f) { __typename } }"}`,
	`{"query":"query($c: String) { country(code: $c) { __typename } }"}`, `{"query":"query($o: Ordr) { secret }"}`, `{"query":"query($o: Order = UP) { secret }"}`,
	`{"query":"query($o: Country) { secret }"}`, `{"query":"query($o: Order) { countries(filter: {minimum: 1, order: $o}) { __typename } }","variables":{"o":"U"}}`,
	`{"query":"{ animals { lives } }"}`, `{"query":"{ animals { barks } }"}`, `{"query":"{ pet { lives } }"}`, `{"query":"{ animals { nam } }"}`,
	`{"query":"{ pet { ... on Ct { x } } }"}`, `{"query":"{ pet { ... on Country { x } } }"}`, `{"query":"{ animals { ... on A { b } } }"}`, `{"query":"{ pet { ...F } } fragment F on Order { x }"}`,
	`{"query":"{ a { x: a { b } x: b } }"}`, `{"query":"{ pet { ... on Cat { x: lives } ... on Dog { x: barks } } }"}`, `{"query":"{ secret @skp }"}`,
	`{"query":"mutation { renme }"}`, `{"query":"mutation { rename(code: 1) { x } }"}`, `{"query":"subscription { renamd }"}`, `{"query":"{ __typ { x } }"}`,
	`{"query":"{ country(code: 1, code: 2) { x } }"}`, `{"query":"{ country(cod: 1) { x } }"}`, `{"query":"query($c: ID!) { country(code: $c) { code } }","variables":{"c":{}}}`,
}

// schemaNames are those of the schema that a client could wish to know.
var schemaNames = []string{
	"country", "countries", "animals", "secret", "rename", "Country", "Continent", "continent", "Animal", "Cat", "Dog", "lives", "barks", "Filter", "minimum",
	"prefix", "Order", "ASCENDING", "DESCENDING", "first", "Mutation", "Subscription", "name",
}

// Without introspection no error tells a name that the client has not said.
func TestHiddenSchemasAreNotToldByErrors(t *testing.T) {
	t.Parallel()
	g := newGraphs(t, nil, nil, func(target string) []object {
		return []object{
			rig.GraphDef("g", target, false, object{"suggestions": true}),
			rig.GraphDef("off", target, false, object{"suggestions": true, "introspection": object{"disabled": true}}),
		}
	})
	open := g.newKey(object{"access_rights": rig.AccessTo("g", "off")})
	keys := map[string]string{"g": g.newKey(object{"access_rights": rig.AccessWith("g", object{"disable_introspection": true})}), "off": open}
	told := 0
	for _, body := range leaks {
		for _, first := range []string{open, keys["g"]} { // what is known for one is not told the other
			if got := g.post("g", body, "Authorization", first); got.Status != 400 {
				t.Errorf("%s: %s", body, got)
			} else if first == open {
				told += len(namesIn(got.Body, body))
			}
		}
		for api, key := range keys {
			for range 2 {
				got := g.post(api, body, "Authorization", key)
				if found := namesIn(got.Body, body); got.Status != 400 || len(found) > 0 {
					t.Errorf("%s, %s tells %q: %s", api, body, found, got)
				}
			}
		}
	}
	if told < 20 {
		t.Errorf("to who may know the schema the errors tell %d names: the test does not ask for any", told)
	}
}

// namesIn returns the names in an answer that are not in what was asked.
func namesIn(answer, asked string) (found []string) {
	for _, name := range schemaNames {
		if !strings.Contains(asked, name) && containsWord(answer, name) {
			found = append(found, name)
		}
	}
	return found
}

// containsWord tells whether a text has a word, case heeded.
func containsWord(text, word string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') }), word)
}
