package definition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestPoliciesOfASetAreListedInOrderAndOnce(t *testing.T) {
	set := NewPolicySet([]*Policy{{ID: "silver"}, {StoreID: "gold"}, {ID: "bronze"}, {ID: "gold", Name: "second"}})
	var ids []string
	for _, p := range set.All() {
		ids = append(ids, p.Key())
	}
	if got := strings.Join(ids, " "); got != "bronze gold silver" {
		t.Errorf("got %s", got)
	}
	if set.Get("gold").Name != "" {
		t.Error("the second of two with one id won")
	}
	if all := (*PolicySet)(nil).All(); len(all) != 0 {
		t.Errorf("no set lists %v", all)
	}
}

func TestValidIDsAreSafeAsFileNames(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "weather-v2_1.0": true, strings.Repeat("a", 128): true,
		"": false, ".": false, "..": false, ".hidden": false, "a/b": false, `a\b`: false, "a b": false,
		"a\x00": false, "ä": false, strings.Repeat("a", 129): false,
	} {
		if ValidID(id) != want {
			t.Errorf("ValidID(%q) = %v", id, !want)
		}
	}
}

func with(t *testing.T, s *PolicySet, policies []*Policy) *PolicySet {
	t.Helper()
	set, err := s.With(policies, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestSetsMadeOfOthersHoldWhatNewOnesDo(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	make := func() *Policy {
		return &Policy{ID: fmt.Sprint("p", random.IntN(40)), Name: fmt.Sprint(random.IntN(3))}
	}
	for range 50 {
		var set *PolicySet
		var given []*Policy
		for range 50 {
			given = slices.Clone(given)
			for range random.IntN(4) {
				switch at := random.IntN(len(given) + 1); {
				case at == len(given):
					given = append(given, make())
				case random.IntN(2) == 0:
					given[at] = make()
				default:
					given = slices.Delete(given, at, at+1)
				}
			}
			set = with(t, set, given)
			want := NewPolicySet(given)
			if !slices.EqualFunc(set.All(), want.All(), func(a, b *Policy) bool { return a.ID == b.ID && a.Name == b.Name }) || set.Len() != want.Len() {
				t.Fatalf("%d policies, want %d", set.Len(), want.Len())
			}
		}
	}
}

func TestASetStaysItselfWhereNoPolicySaysAnythingElse(t *testing.T) {
	a, b := &Policy{ID: "a", Name: "A"}, &Policy{ID: "b"}
	set := NewPolicySet([]*Policy{a, b})
	for _, again := range [][]*Policy{{a, b}, {b, a}, {{ID: "a", Name: "A"}, b}} {
		if with(t, set, again) != set {
			t.Errorf("another set for %v", again)
		}
	}
	other := with(t, set, []*Policy{{ID: "a", Name: "other"}, b})
	if other == set || other.Get("a").Name != "other" || other.Get("b") != b || set.Get("a") != a {
		t.Error("a policy that changed did not replace the one before, and it alone")
	}
}
