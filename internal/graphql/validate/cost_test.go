package validate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func TestCostMultipliesFieldsByTheSizesOfTheirLists(t *testing.T) {
	s := loaded(t, petSchema)
	cases := []struct {
		text  string
		sizes []int64
		want  uint64
	}{
		{"{ __typename }", nil, 0},
		{"{ me { id name __typename } }", nil, 3},
		{"{ me { pets { id } } }", nil, 1 + 1 + 10},
		{"{ me { pets(first: 3) { id name } } }", nil, 1 + 1 + 3*2},
		{"{ pets(first: 3) { owner { pets(first: 4) { id } } } }", nil, 1 + 3*(1+1+4)},
		{"{ pet(id: 1) { friends(first: 5) { count nodes { id } } } }", nil, 1 + 1 + 1 + 1 + 5},
		{"{ pet(id: 1) { friends(first: 5, last: 7) { nodes { id } } } }", nil, 1 + 1 + 1 + 7},
		{"{ pet(id: 1) { friends(first: 5) { ...on Pets { nodes { owner { pets { id } } } } } } }", nil, 3 + 5*(1+1+10)},
		{"{ pet(id: 1) { friends { nodes { id } } } }", nil, 3 + 10},
		{"{ pets(first: null) { id } }", nil, 1 + 10},
		{"{ pets(first: 0) { id } }", nil, 1 + 10},
		{"{ pets(first: -4) { id } }", nil, 1 + 10},
		{"{ beings { __typename } }", nil, 1},
		{"{ __schema { types { name fields { name } } } me { id } }", nil, 1 + 2},
		{"query($n: Int) { pets(first: $n) { id name } }", []int64{-1}, 1 + 10*2},
		{"query($n: Int) { pets(first: $n) { id name } }", nil, 1 + 10*2},
		{"query($n: Int) { pets(first: $n) { id name } }", []int64{4}, 1 + 4*2},
		{"query($n: Int) { pets(first: $n) { id name } }", []int64{0}, 1 + 10*2},
		{"query($n: Int = 50) { pets(first: $n) { id } }", []int64{-1}, 1 + 50},
		{"query($n: Int = 2) { pets(first: $n) { id } }", []int64{-1}, 1 + 10}, // null may have come
		{"query($n: Int! = 2) { pets(first: $n) { id } }", []int64{-1}, 1 + 2},
		{
			"query($m: Int, $n: Int) { pets(first: $n) { owner { pets(first: 3) { friends(last: $m) { nodes { id } } } } id } me { id } }",
			[]int64{2, 5},
			1 + 5*(1+1+3*(1+1+2)+1) + 2,
		},
		{"query($m: Int, $n: Int) { pet(id: 1) { friends(last: $m, first: $n) { nodes { id } } } }", []int64{2, 5}, 3 + 5},
		{
			"query($n: Int) { a: pets(first: $n) { ...F } b: pets(first: 2) { ...F } } fragment F on Pet { id owner { pets(first: $n) { id } } }",
			[]int64{3},
			1 + 3*(3+3) + 1 + 2*(3+3),
		},
		{"query($n: Int) { pets(first: $n) { owner { pets(first: $n) { owner { pets(first: $n) { id } } } } } }", []int64{math.MaxInt64}, math.MaxUint64},
		{"{ pets(first: 2147483647) { owner { pets(first: 2147483647) { owner { pets(first: 2147483647) { id } } } } } }", nil, math.MaxUint64},
	}
	for _, c := range cases {
		f := factsOf(t, s, c.text, Options{})
		if got := f.Cost.At(c.sizes); got != c.want {
			t.Errorf("%s, %v: %d, want %d", c.text, c.sizes, got, c.want)
		}
	}
}

func TestCostAssumesWhatIsConfigured(t *testing.T) {
	s := loaded(t, petSchema)
	text := "{ pets(first: 3) { id } pet(id: 1) { friends(last: 4) { nodes { id } } } }"
	if got := factsOf(t, s, text, Options{ListSize: 100, SizeArguments: []string{"last"}}).Cost.At(nil); got != 1+100+3+4 {
		t.Errorf("cost %d", got)
	}
}

func TestAskingForACostAllocatesNothing(t *testing.T) {
	f := factsOf(t, loaded(t, petSchema), "query($n: Int) { pets(first: $n) { owner { pets(first: $n) { id } } } }", Options{})
	sizes := []int64{4}
	if n := testing.AllocsPerRun(100, func() { f.Cost.At(sizes) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFactsTellCountsAndFlags(t *testing.T) {
	s := loaded(t, petSchema)
	cases := []struct {
		text string
		want Facts
	}{
		{"query Q { a: me { id } b: me { n: name } }", Facts{Name: "Q", Depth: 2, Aliases: 3, RootFields: 2}},
		{"{ ...F ...F } fragment F on Query @tag(name: \"x\") { me { x: id @once } __typename }", Facts{Depth: 2, Aliases: 2, RootFields: 4, Directives: 4}},
		{
			"{ __typename a: __typename ... on Query { b: __typename a: __typename } }",
			Facts{OnlyTypename: `{"__typename":"Query","a":"Query","b":"Query"}`, Aliases: 3, RootFields: 4},
		},
		{"{ __typename @skip(if: true) }", Facts{RootFields: 1, Directives: 1}},
		{"mutation M { __typename }", Facts{Kind: 1, Name: "M", OnlyTypename: `{"__typename":"Mutation"}`, RootFields: 1}},
		{"{ __schema { types { name } } __typename }", Facts{Introspects: true, OnlyIntrospects: true, Depth: 3, RootFields: 2}},
		{"{ query { __type(name: \"Dog\") { name } } }", Facts{Introspects: true, Depth: 3, RootFields: 1}},
		{"{ __schema { types { name } } me { id } }", Facts{Introspects: true, Depth: 3, RootFields: 2}},
		{"query Q($n: Int @once) @tag(name: \"x\") { pets(first: $n) { id } }", Facts{Name: "Q", Depth: 2, RootFields: 1, Directives: 2}},
	}
	for _, c := range cases {
		f := factsOf(t, s, c.text, Options{})
		got := Facts{
			Kind: f.Kind, Name: f.Name, Depth: f.Depth, Introspects: f.Introspects, OnlyIntrospects: f.OnlyIntrospects,
			OnlyTypename: f.OnlyTypename, Aliases: f.Aliases, RootFields: f.RootFields, Directives: f.Directives,
		}
		if same := got.Kind == c.want.Kind && got.Name == c.want.Name && got.Depth == c.want.Depth && got.Introspects == c.want.Introspects &&
			got.OnlyIntrospects == c.want.OnlyIntrospects && got.OnlyTypename == c.want.OnlyTypename && got.Aliases == c.want.Aliases &&
			got.RootFields == c.want.RootFields && got.Directives == c.want.Directives; !same {
			t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
		}
	}
}

func TestFactsKeepVariablesApartFromTheDocument(t *testing.T) {
	s := loaded(t, petSchema)
	doc := parsed(t, "query Named($id: ID!,\n  $n: [Color!] = [RED]) { pet(id: $id) { id } paint(colors: $n) }")
	var v Validator
	f, err := v.Facts(s, doc, 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	clear(doc.Source)
	if _, err := v.Facts(s, parsed(t, "query Other($x: Int) { pets(first: $x) { id } me { id } }"), 0, Options{}); err != nil {
		t.Fatal(err)
	}
	if f.Name != "Named" || len(f.Variables) != 2 || describe(s, f) != "Query.pet/1 Pet.id/0 Query.paint/0 Query.pet>1 Query.paint>0" {
		t.Errorf("%+v", f)
	}
	if x := f.Variables[0]; x.Name != "id" || s.RefString(x.Type) != "ID!" || x.HasDefault || x.Location != (syntax.Location{Line: 1, Column: 13}) {
		t.Errorf("%+v", x)
	}
	if x := f.Variables[1]; x.Name != "n" || s.RefString(x.Type) != "[Color!]" || !x.HasDefault || x.Location != (syntax.Location{Line: 2, Column: 3}) {
		t.Errorf("%+v", x)
	}
}

func TestFactsOfTooLargeOperationsAreRefused(t *testing.T) {
	s := loaded(t, petSchema)
	text := "{ me { ...F0 } }" + repeat(20, "fragment F# on Person { ...F#+ ...F#+ }") + "fragment F20 on Person { id }"
	var v Validator
	doc := parsed(t, text)
	_, err := v.Facts(s, doc, 0, Options{})
	if refused, ok := errors.AsType[*syntax.LimitError](err); !ok || refused.Max != DefaultMaxExpanded {
		t.Errorf("%v", err)
	}
	if errs := v.Check(s, doc, Options{}); len(errs) != 1 || !strings.Contains(errs[0].Message, "too complex") {
		t.Errorf("%v", errs)
	}
	// A cycle, which Check would have found.
	if _, err := v.Facts(s, parsed(t, "{ me { ...F } } fragment F on Person { ...F }"), 0, Options{}); err == nil {
		t.Error("a cycle has facts")
	}
}
