package definition

import "github.com/sluicegate/sluice/internal/definition/object"

// PolicySet is an immutable set of policies. Two requests that see the same
// *PolicySet see the same policies, so what was derived from one may be kept
// for as long as the pointer stays the same.
type PolicySet struct{ byID map[string]*Policy }

// NewPolicySet returns the set of policies, found by Policy.Key. Of two with
// one id the first stays.
func NewPolicySet(policies []*Policy) *PolicySet {
	set := &PolicySet{byID: make(map[string]*Policy, len(policies))}
	for _, p := range policies {
		if _, taken := set.byID[p.Key()]; !taken {
			set.byID[p.Key()] = p
		}
	}
	return set
}

// Get returns the policy of that id, or nil. The caller must not change it.
func (s *PolicySet) Get(id string) *Policy {
	if s == nil {
		return nil
	}
	return s.byID[id]
}

// All returns the policies, ordered by id. The caller must not change them.
func (s *PolicySet) All() []*Policy {
	if s == nil {
		return nil
	}
	all := make([]*Policy, 0, len(s.byID))
	for _, id := range object.SortedKeys(s.byID) {
		all = append(all, s.byID[id])
	}
	return all
}

// Len returns how many policies the set holds.
func (s *PolicySet) Len() int {
	if s == nil {
		return 0
	}
	return len(s.byID)
}
