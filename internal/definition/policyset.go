package definition

import (
	"slices"

	"github.com/sluicegate/sluice/internal/frozen"
)

// PolicySet is an immutable set of policies. Two requests that see the same
// *PolicySet see the same policies, so what was derived from one may be kept
// for as long as the pointer stays the same.
type PolicySet struct {
	given []*Policy // that the set was made of
	byID  *frozen.Map[*Policy]
}

// NewPolicySet returns the set of policies, found by Policy.Key. Of two with
// one id the first stays. The policies must not change any more.
func NewPolicySet(policies []*Policy) *PolicySet {
	var none *frozen.Map[*Policy]
	edit := none.Edit()
	for _, p := range policies {
		if _, taken := edit.Get(p.Key()); !taken {
			edit.Set(p.Key(), p)
		}
	}
	return &PolicySet{given: slices.Clone(policies), byID: edit.Done()}
}

// With returns the set of policies, as NewPolicySet does, at the cost of what
// it differs by from s: s itself when no policy says anything else than before.
// A policy that is the same object, or says the same, stays the object it was.
//
// step is called between small pieces of work and may wait; With returns its
// error.
func (s *PolicySet) With(policies []*Policy, step func() error) (*PolicySet, error) {
	if s == nil || s.byID.Len() < len(s.given) { // with doubles, taking one out may bring up another
		return NewPolicySet(policies), step()
	}
	gone, come, err := frozen.Diff(s.given, policies, step)
	if err != nil {
		return nil, err
	}
	edit, changed := s.byID.Edit(), false
	back := make(map[string]bool, len(come))
	if err := frozen.InSteps(come, step, func(i int) { back[policies[i].Key()] = true }); err != nil {
		return nil, err
	}
	if err := frozen.InSteps(gone, step, func(i int) {
		if key := s.given[i].Key(); !back[key] {
			edit.Delete(key)
			changed = true
		}
	}); err != nil {
		return nil, err
	}
	for _, i := range come {
		p := policies[i]
		if old, _ := edit.Get(p.Key()); old == nil || old.ContentHash() != p.ContentHash() {
			edit.Set(p.Key(), p)
			changed = true
		}
		if err := step(); err != nil {
			return nil, err
		}
	}
	switch {
	case edit.Len() < len(policies):
		return NewPolicySet(policies), nil
	case !changed:
		return s, nil
	}
	byID, err := edit.DoneBySteps(step)
	return &PolicySet{given: slices.Clone(policies), byID: byID}, err
}

// Get returns the policy of that id, or nil. The caller must not change it.
func (s *PolicySet) Get(id string) *Policy {
	if s == nil {
		return nil
	}
	p, _ := s.byID.Get(id)
	return p
}

// All returns the policies, ordered by id. The caller must not change them.
func (s *PolicySet) All() []*Policy {
	if s == nil {
		return nil
	}
	all := make([]*Policy, 0, s.byID.Len())
	for _, id := range s.byID.Sorted() {
		all = append(all, s.Get(id))
	}
	return all
}

// Len returns how many policies the set holds.
func (s *PolicySet) Len() int {
	if s == nil {
		return 0
	}
	return s.byID.Len()
}
