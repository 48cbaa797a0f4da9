package definition

import (
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
