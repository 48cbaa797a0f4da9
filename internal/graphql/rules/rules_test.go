package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/rights"
)

const continents = `
	schema { query: QueryRoot mutation: Change }
	type QueryRoot { countries: [Country] country(code: ID!): Country continents: [Continent] animals: [Animal] pet: Pet version: String }
	type Change { rename(code: ID!): Country }
	type Country { code: ID name: String continent: Continent }
	type Continent { name: String countries: [Country] }
	interface Animal { name: String friend: Animal }
	type Cat implements Animal { name: String friend: Animal lives: Int }
	type Dog implements Animal { name: String friend: Animal }
	union Pet = Cat | Dog
`

func limited(n int) *rights.Access {
	v := rights.Value[int]{Value: n}
	return &rights.Access{Depth: v, Aliases: v, RootFields: v, Directives: v, Tokens: v, Cost: rights.Value[int64]{Value: int64(n)}}
}

func TestLimitsOnSizes(t *testing.T) {
	s := load(t, continents)
	for _, c := range []struct {
		name  string
		facts validate.Facts
		cost  uint64
		want  Verdict
		text  string
	}{
		{"none is exceeded", validate.Facts{Aliases: 5, RootFields: 5, Directives: 5, Tokens: 5}, 5, passed, ""},
		{"aliases", validate.Facts{Aliases: 6, RootFields: 9}, 0, Verdict{Aliases, schema.NoField, 6, 5}, "alias limit exceeded"},
		{"root fields", validate.Facts{RootFields: 6, Directives: 9}, 0, Verdict{RootFields, schema.NoField, 6, 5}, "root field limit exceeded"},
		{"directives", validate.Facts{Directives: 6, Tokens: 9}, 0, Verdict{Directives, schema.NoField, 6, 5}, "directive limit exceeded"},
		{"tokens", validate.Facts{Tokens: 6}, 9, Verdict{Tokens, schema.NoField, 6, 5}, "token limit exceeded"},
		{"cost", validate.Facts{}, 6, Verdict{CostTooHigh, schema.NoField, 6, 5}, "cost limit exceeded"},
		{"a cost beyond numbers", validate.Facts{}, math.MaxUint64, Verdict{CostTooHigh, schema.NoField, math.MaxInt64, 5}, "cost limit exceeded"},
		{"depth before all", validate.Facts{Depth: 9, Aliases: 9, Introspects: true, Roots: []validate.Root{{Below: 8}}}, 9, Verdict{Depth, schema.NoField, 10, 5}, "depth limit exceeded"},
	} {
		table := Compile(s, limited(5), Options{DepthBase: 1, HidesSchema: true})
		if got := table.Check(&c.facts, c.cost); got != c.want || table.Message(got) != c.text {
			t.Errorf("%s: %+v %q, want %+v %q", c.name, got, table.Message(got), c.want, c.text)
		}
		for name, free := range map[string]*Table{
			"no keys": Compile(s, nil, Options{}), "unlimited": Compile(s, limited(-1), Options{}), "nothing set": Compile(s, limited(0), Options{}),
		} {
			if got := free.Check(&c.facts, c.cost); got != passed {
				t.Errorf("%s, %s: %+v", c.name, name, got)
			}
		}
	}
}

func TestTheStricterOfKeyAndAPICounts(t *testing.T) {
	s := load(t, continents)
	big := &validate.Facts{Aliases: 10}
	for _, c := range []struct{ key, api, max int }{{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {-1, 5, 5}, {5, 7, 5}, {7, 5, 5}} {
		o := Options{Limits: Limits{Aliases: c.api}}
		if got := Compile(s, limited(c.key), o).Check(big, 0); got.Max != int64(c.max) {
			t.Errorf("key %d, API %d: %+v", c.key, c.api, got)
		}
		if got := Compile(s, nil, o).Check(big, 0); got.Max != int64(c.api) {
			t.Errorf("no key, API %d: %+v", c.api, got)
		}
	}
}

func TestTheDepthOfAnAPIHoldsWhateverTheKeySays(t *testing.T) {
	s := load(t, continents)
	countries := fieldOf(s, "QueryRoot", "countries")
	deep := &validate.Facts{Depth: 4, Fields: []schema.FieldID{countries}, Below: []uint16{3}, Roots: []validate.Root{{Field: countries, Below: 3}}}
	free := (&lists{fields: map[string]int{"Query.countries": -1}}).access()
	o := Options{DepthBase: 1, Limits: Limits{Depth: 4}}
	want := Verdict{Depth, schema.NoField, 5, 4}
	if got := Compile(s, free, o).Check(deep, 0); got != want {
		t.Errorf("with a key: %+v", got)
	}
	if got := Compile(s, nil, o).Check(deep, 0); got != want {
		t.Errorf("without: %+v", got)
	}
	deep.OnlyIntrospects = true
	if got := Compile(s, nil, o).Check(deep, 0); got != passed {
		t.Errorf("introspection: %+v", got)
	}
}

func TestIntrospectionIsRuledByItsSwitchAlone(t *testing.T) {
	s := load(t, continents)
	none := (&lists{allowed: []string{"Nothing.x"}}).access()
	all := (&lists{restricted: []string{"Query.*"}}).access()
	hidden := &rights.Access{DisableIntrospection: rights.Value[bool]{Value: true}}
	asks := &validate.Facts{Introspects: true, OnlyIntrospects: true, Fields: []schema.FieldID{s.SchemaField, s.TypeField}, Below: []uint16{9, 9}, Depth: 10}
	for _, c := range []struct {
		name string
		may  *rights.Access
		o    Options
		want Kind
	}{
		{"no keys", nil, Options{HidesSchema: true}, None},
		{"a key", &rights.Access{}, Options{}, None},
		{"hidden from the key", hidden, Options{}, Introspection},
		{"hidden by the API", &rights.Access{}, Options{HidesSchema: true}, Introspection},
		{"nothing allowed", none, Options{}, None},
		{"everything restricted", all, Options{}, None},
		{"the depth of the key", limited(1), Options{DepthBase: 1}, None},
	} {
		table := Compile(s, c.may, c.o)
		got := table.Check(asks, 0)
		if got.Kind != c.want || got.Field != schema.NoField {
			t.Errorf("%s: %+v", c.name, got)
		}
		mixed := validate.Facts{Introspects: true, Depth: 1}
		if v := table.Check(&mixed, 0); v.Kind != c.want {
			t.Errorf("%s, beside a field: %+v", c.name, v)
		}
		if c.want == Introspection && table.Message(got) != "introspection is disabled" {
			t.Errorf("%s: %q", c.name, table.Message(got))
		}
	}
}

func TestTextsNameFieldAndTypeAsSelected(t *testing.T) {
	s := load(t, continents)
	read := func(at ...string) *validate.Facts {
		f := &validate.Facts{}
		for _, one := range at {
			owner, name, _ := strings.Cut(one, ".")
			f.Fields, f.Below = append(f.Fields, fieldOf(s, owner, name)), append(f.Below, 0)
		}
		return f
	}
	for _, c := range []struct {
		l    lists
		read *validate.Facts
		want string
	}{
		{lists{restricted: []string{"Country.name"}}, read("QueryRoot.countries", "Country.code"), ""},
		{lists{restricted: []string{"Country.name"}}, read("QueryRoot.countries", "Country.name"), "field: name is restricted on type: Country"},
		{lists{restricted: []string{"Country.*"}}, read("QueryRoot.countries", "Country.code"), "all fields of Country type are restricted"},
		{lists{restricted: []string{"Query.*"}}, read("QueryRoot.countries"), "all fields of QueryRoot type are restricted"},
		{lists{restricted: []string{"Mutation.rename"}}, read("Change.rename"), "field: rename is restricted on type: Change"},
		{lists{restricted: []string{"Cat.name"}}, read("Animal.name"), "field: name is restricted on type: Animal"},
		{lists{restricted: []string{"Cat.*"}}, read("Animal.name"), "field: name is restricted on type: Animal"},
		{lists{restricted: []string{"Animal.name"}}, read("Cat.name"), "field: name is restricted on type: Cat"},
		{lists{allowed: []string{"Query.countries"}}, read("QueryRoot.countries", "Country.name"), "field: name is restricted on type: Country"},
		{lists{allowed: []string{"Query.*", "Country.name"}, restricted: []string{"Country.name"}}, read("QueryRoot.countries", "Country.name"), ""},
		{lists{allowed: []string{"Animal.name"}}, read("Animal.name"), ""},
		{lists{allowed: []string{"Animal.name"}}, read("Cat.name"), "field: name is restricted on type: Cat"},
		{lists{allowed: []string{"Cat.name"}}, read("Animal.name"), "field: name is restricted on type: Animal"},
		{lists{allowed: []string{"Cat.name", "Dog.name"}}, read("Animal.name"), ""},
	} {
		table := Compile(s, c.l.access(), Options{})
		if got := table.Message(table.Check(c.read, 0)); got != c.want {
			t.Errorf("%v: %q, want %q", c.l, got, c.want)
		}
	}
}

func TestNamesThatTheSchemaLacksAreTold(t *testing.T) {
	s := load(t, continents)
	l := lists{restricted: []string{"Nope.*", "Country.nme", "Pet.name", "Subscription.x", "Query.countries"}, fields: map[string]int{"Country.nope": 3, "Query.pet": 2}}
	want := []string{
		"restricted_types: no type Nope", "restricted_types: no field nme on type Country", "restricted_types: type Pet has no fields of its own",
		"restricted_types: no type Subscription", "field_access_rights: no field nope on type Country",
	}
	if got := Compile(s, l.access(), Options{}).Unknown; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	l = lists{}
	for i := range 100 {
		l.allowed = append(l.allowed, fmt.Sprintf("T%d.a", i))
	}
	if got := Compile(s, l.access(), Options{}).Unknown; len(got) != maxUnknown+1 || got[maxUnknown] != "and others" {
		t.Errorf("%d names, the last is %q", len(got), got[len(got)-1])
	}
}

func TestARootTypeKeepsItsNameWhereAnotherTypeHasTheDefaultOne(t *testing.T) {
	s := load(t, `schema { query: Start } type Start { a: Int q: Query } type Query { a: Int }`)
	table := Compile(s, (&lists{restricted: []string{"Query.a"}}).access(), Options{})
	for owner, want := range map[string]Kind{"Start": None, "Query": Restricted} {
		f := &validate.Facts{Fields: []schema.FieldID{fieldOf(s, owner, "a")}, Below: []uint16{0}}
		if got := table.Check(f, 0); got.Kind != want {
			t.Errorf("%s.a: %+v", owner, got)
		}
	}
}

func TestTrustedOnlyWhereKeyOrAPISaySo(t *testing.T) {
	s := load(t, continents)
	trusted := &rights.Access{TrustedDocumentsOnly: rights.Value[bool]{Value: true}}
	for _, c := range []struct {
		may  *rights.Access
		api  bool
		want bool
	}{{nil, false, false}, {nil, true, true}, {&rights.Access{}, false, false}, {&rights.Access{}, true, true}, {trusted, false, true}} {
		if got := Compile(s, c.may, Options{TrustedOnly: c.api}).TrustedOnly; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestOptionsOfADefinition(t *testing.T) {
	zero := 0
	g := &definition.GraphQL{
		DepthBase:        &zero,
		Introspection:    &definition.GraphQLIntrospection{Disabled: true},
		TrustedDocuments: &definition.GraphQLTrustedDocuments{Required: true},
		Limits:           &definition.GraphQLLimits{MaxDepth: 1, MaxAliases: 2, MaxRootFields: 3, MaxDirectives: 4, MaxTokens: 5, MaxCost: 6},
	}
	want := Options{HidesSchema: true, TrustedOnly: true, Limits: Limits{Depth: 1, Aliases: 2, RootFields: 3, Directives: 4, Tokens: 5, Cost: 6}}
	if got := OptionsOf(g); got != want {
		t.Errorf("got %+v", got)
	}
	if got := OptionsOf(&definition.GraphQL{}); got != (Options{DepthBase: 1}) {
		t.Errorf("by default %+v", got)
	}
}
