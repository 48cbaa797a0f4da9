package rules

import (
	"fmt"
	"testing"
)

// The examples that users know: what is counted, and what is refused.

func TestDepthOfKnownOperations(t *testing.T) {
	s := load(t, continents)
	for text, levels := range map[string]int{
		`{ version }`:                           1,
		`{ continents { name } }`:               2,
		`{ continents { countries { name } } }`: 3,
		`{ countries { code name continent { code: name countries { code name } } } }`:                      4,
		`{ version continents { name } a: countries { continent { countries { code } } } }`:                 4,
		`{ __typename continents { __typename } }`:                                                          1,
		`{ ...F } fragment F on QueryRoot { continents { ...C } } fragment C on Continent { ... { name } }`: 2,
		`{ continents @include(if: false) { name @skip(if: true) } }`:                                       2,
		`{ pet { ... on Animal { friend { name } } } }`:                                                     3,
	} {
		f := factsOf(t, s, text)
		for base := range 2 {
			depth := base + levels
			for _, limit := range []int{depth - 1, depth, -1, 0} {
				want := None
				if 0 < limit && limit < depth {
					want = Depth
				}
				if got := Compile(s, limited(limit), Options{DepthBase: base}).checkDepth(f); got.Kind != want || want == Depth && got.Found != int64(depth) {
					t.Errorf("%s with base %d and limit %d: %+v", text, base, limit, got)
				}
			}
		}
	}
}

func TestLimitsOfFieldsGoBeforeThoseOfOperations(t *testing.T) {
	s := load(t, continents)
	const two, three = `{ countries { name } }`, `{ countries { continent { name } } }`
	for _, c := range []struct {
		name   string
		fields map[string]int
		limit  int
		text   string
		want   string // "kind field found max", with a base of 1
	}{
		{"none", nil, 3, two, "0 - 0 0"},
		{"the operation's", nil, 2, two, "1 - 3 2"},
		{"the field's, which counts one less", map[string]int{"Query.countries": 2}, 1, two, "0 - 0 0"},
		{"by the root's own name", map[string]int{"QueryRoot.countries": 2}, 1, two, "0 - 0 0"},
		{"the field's, exceeded", map[string]int{"Query.countries": 2}, 9, three, "1 countries 3 2"},
		{"a field without limit", map[string]int{"Query.countries": -1}, 1, three, "0 - 0 0"},
		{"a field whose limit is not set", map[string]int{"Query.countries": 0}, 1, two, "1 - 3 1"},
		{"other root fields", map[string]int{"Query.countries": -1}, 2, `{ countries { continent { name } } continents { name } }`, "1 - 3 2"},
		{"other root fields that are flat", map[string]int{"Query.countries": -1}, 2, `{ countries { continent { name } } version }`, "0 - 0 0"},
		{"below the root, besides", map[string]int{"Country.continent": 1}, -1, three, "1 continent 2 1"},
		{"below the root, kept", map[string]int{"Country.continent": 2}, -1, three, "0 - 0 0"},
		{"below the root, the operation's stays", map[string]int{"Country.continent": -1}, 3, three, "1 - 4 3"},
		{"an object's, where an interface is selected on", map[string]int{"Cat.friend": 1}, -1, `{ animals { friend { name } } }`, "1 friend 2 1"},
		{"an interface's, where an object is selected on", map[string]int{"Animal.friend": 1}, -1, `{ animals { ... on Dog { friend { name } } } }`, "1 friend 2 1"},
		{"an object's that cannot come", map[string]int{"Cat.friend": 1}, -1, `{ animals { ... on Dog { ... on Animal { friend { name } } } } }`, "0 - 0 0"},
		{"an object's that is left", map[string]int{"Cat.friend": 1}, -1, `{ animals { ... on Cat { ... on Animal { friend { name } } } } }`, "1 friend 2 1"},
		{"introspection beside it counts", nil, 3, `{ __schema { types { ofType { name } } } version }`, "1 - 5 3"},
		{"introspection alone does not", nil, 3, `{ __typename __schema { types { ofType { name } } } }`, "0 - 0 0"},
	} {
		may := (&lists{fields: c.fields}).access()
		may.Depth.Value = c.limit
		v := Compile(s, may, Options{DepthBase: 1}).Check(factsOf(t, s, c.text), 0)
		field := "-"
		if int(v.Field) < len(s.Fields) {
			field = s.Fields[v.Field].Name
		}
		if got := fmt.Sprint(v.Kind, " ", field, " ", v.Found, " ", v.Max); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestNoDetourGetsRoundARule(t *testing.T) {
	s := load(t, continents)
	for _, c := range []struct {
		name string
		l    lists
		text string
		want string
	}{
		{"an alias", lists{restricted: []string{"Country.name"}}, `{ countries { code: name } }`, "field: name is restricted on type: Country"},
		{"a directive", lists{restricted: []string{"Country.name"}}, `{ countries { name @include(if: false) } }`, "field: name is restricted on type: Country"},
		{"a fragment", lists{restricted: []string{"Country.name"}}, `{ countries { ...F } } fragment F on Country { name }`, "field: name is restricted on type: Country"},
		{"__schema beside it", lists{restricted: []string{"Country.name"}}, `{ __schema { types { name } } countries { name } }`, "field: name is restricted on type: Country"},
		{"__type beside it", lists{allowed: []string{"Query.countries"}}, `{ countries { name } __type(name: "X") { name } }`, "field: name is restricted on type: Country"},
		{"the interface", lists{restricted: []string{"Cat.name"}}, `{ animals { name } }`, "field: name is restricted on type: Animal"},
		{"the interface by a union", lists{restricted: []string{"Cat.name"}}, `{ pet { ... on Animal { name } } }`, "field: name is restricted on type: Animal"},
		{"the interface within the object", lists{restricted: []string{"Cat.name"}}, `{ pet { ... on Cat { ... on Animal { name } } } }`, "field: name is restricted on type: Animal"},
		{"the object of a restricted interface", lists{restricted: []string{"Animal.*"}}, `{ pet { ... on Cat { name } } }`, "field: name is restricted on type: Cat"},
		{"an object that cannot come", lists{restricted: []string{"Cat.name"}}, `{ pet { ... on Dog { ... on Animal { name } } } }`, ""},
		{"__typename", lists{allowed: []string{"Query.pet"}}, `{ __typename pet { __typename } }`, ""},
		{"__typename, restricted", lists{restricted: []string{"Query.__typename", "Cat.*"}}, `{ __typename pet { __typename } }`, ""},
		{"introspection under an allow list", lists{allowed: []string{"Query.pet"}}, `{ __schema { queryType { fields { name } } } }`, ""},
		{"one object listed of two", lists{allowed: []string{"Query.*", "Cat.*"}}, `{ animals { name } }`, "field: name is restricted on type: Animal"},
		{"both objects listed", lists{allowed: []string{"Query.*", "Cat.*", "Dog.name"}}, `{ animals { name } }`, ""},
		{"one object listed, which alone is left", lists{allowed: []string{"Query.*", "Cat.name"}}, `{ animals { ... on Cat { ... on Animal { name } } } }`, ""},
		{"the interface listed, one object left", lists{allowed: []string{"Query.*", "Animal.name"}}, `{ animals { ... on Cat { ... on Animal { name } } } }`, ""},
		{"the interface listed, the object asked", lists{allowed: []string{"Query.*", "Animal.name"}}, `{ animals { ... on Cat { name } } }`, "field: name is restricted on type: Cat"},
		{"a field of the type that a listed one returns", lists{allowed: []string{"Query.*"}}, `{ countries { name } }`, "field: name is restricted on type: Country"},
		{"a mutation", lists{restricted: []string{"Mutation.*"}}, `mutation { rename(code: 1) { code } }`, "all fields of Change type are restricted"},
	} {
		table := Compile(s, c.l.access(), Options{})
		if got := table.Message(table.Check(factsOf(t, s, c.text), 0)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
