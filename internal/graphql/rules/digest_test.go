package rules

import (
	"testing"

	"github.com/sluicegate/sluice/internal/rights"
)

func TestDigestsTellRulesApart(t *testing.T) {
	on := rights.Value[bool]{Value: true}
	depth := func(n int) *rights.Access { return &rights.Access{Depth: rights.Value[int]{Value: n}} }
	seen := map[[32]byte]string{}
	for name, one := range map[string]struct {
		may *rights.Access
		o   Options
	}{
		"no keys":             {nil, Options{}},
		"no rules":            {&rights.Access{}, Options{}},
		"base":                {&rights.Access{}, Options{DepthBase: 1}},
		"hidden":              {&rights.Access{DisableIntrospection: on}, Options{}},
		"trusted":             {&rights.Access{TrustedDocumentsOnly: on}, Options{}},
		"no keys, trusted":    {nil, Options{TrustedOnly: true}},
		"depth":               {depth(5), Options{}},
		"depth of the API":    {depth(0), Options{Limits: Limits{Depth: 5}}},
		"aliases":             {&rights.Access{Aliases: rights.Value[int]{Value: 5}}, Options{}},
		"cost":                {&rights.Access{Cost: rights.Value[int64]{Value: 5}}, Options{}},
		"allowed":             {(&lists{allowed: []string{"A.b"}}).access(), Options{}},
		"restricted":          {(&lists{restricted: []string{"A.b"}}).access(), Options{}},
		"other names":         {(&lists{restricted: []string{"Ab.b"}}).access(), Options{}},
		"two fields":          {(&lists{restricted: []string{"A.b", "A.c"}}).access(), Options{}},
		"two types":           {(&lists{restricted: []string{"A.b", "C.c"}}).access(), Options{}},
		"ends of fields":      {(&lists{restricted: []string{"A.b", "A.c", "D.e"}}).access(), Options{}},
		"and of others":       {(&lists{restricted: []string{"A.b", "c.D", "c.e"}}).access(), Options{}},
		"a field's depth":     {(&lists{fields: map[string]int{"A.b": 1}}).access(), Options{}},
		"a field's other one": {(&lists{fields: map[string]int{"A.b": 2}}).access(), Options{}},
	} {
		d := Digest(one.may, one.o)
		if other, taken := seen[d]; taken {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}

func TestDigestsAreOfRulesAlone(t *testing.T) {
	on := rights.Value[bool]{Value: true, From: rights.Origin{Kind: rights.Policy, ID: "p"}}
	for name, pair := range map[string][2]*rights.Access{
		"order":                   {(&lists{restricted: []string{"A.b", "A.c", "D.e"}}).access(), (&lists{restricted: []string{"D.e", "A.c", "A.b"}}).access()},
		"unlimited and not set":   {{Depth: rights.Value[int]{Value: -1}}, {}},
		"the API":                 {{API: "a"}, {API: "b"}},
		"where from":              {{TrustedDocumentsOnly: on}, {TrustedDocumentsOnly: rights.Value[bool]{Value: true}}},
		"what an allowance hides": {(&lists{allowed: []string{"A.b"}, restricted: []string{"A.b"}}).access(), (&lists{allowed: []string{"A.b"}}).access()},
	} {
		if Digest(pair[0], Options{}) != Digest(pair[1], Options{}) {
			t.Errorf("%s changes the digest", name)
		}
	}
	hidden := &rights.Access{DisableIntrospection: rights.Value[bool]{Value: true}}
	if Digest(hidden, Options{}) != Digest(&rights.Access{}, Options{HidesSchema: true}) {
		t.Error("who hides the schema changes the digest")
	}
}
