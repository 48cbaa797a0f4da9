// Package rights works out what a key may do: its session and the policies it
// carries, merged. It is pure: the same session and policies give the same
// rights, and every value says where it came from, so that traffic, explanations
// and the admin all speak of the same thing.
package rights

import (
	"encoding/json"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// Kind is the kind of place that a value came from.
type Kind string

// The places that a value can come from. An entry is the access entry for one
// API, of a key or of a policy.
const (
	Default     Kind = "default"
	Key         Kind = "key"
	KeyEntry    Kind = "key_entry"
	Policy      Kind = "policy"
	PolicyEntry Kind = "policy_entry"
)

// Origin is the place that a value came from.
type Origin struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id,omitempty"` // of the policy
}

// String describes the origin to people.
func (o Origin) String() string {
	switch o.Kind {
	case KeyEntry:
		return "the key's entry for the API"
	case Key:
		return "the key"
	case Policy:
		return "policy " + o.ID
	case PolicyEntry:
		return "the entry for the API in policy " + o.ID
	}
	return "the default"
}

// Value is a value and where it came from.
type Value[T any] struct {
	Value T      `json:"value"`
	From  Origin `json:"from"`
}

// Item is an element of a united list and everywhere it came from, in order.
type Item[T any] struct {
	Value T        `json:"value"`
	From  []Origin `json:"from"`
}

// Rights are what a key may do. They share parts of the session and policies
// they were made from and must not be changed.
type Rights struct {
	Session  *definition.Session               `json:"-"`
	Policies []string                          `json:"policies"`          // that take part, in order
	Missing  []string                          `json:"missing,omitempty"` // that the key names and that do not exist
	Master   bool                              `json:"master,omitempty"`  // neither policies nor access rights: every API is open
	Inactive Value[bool]                       `json:"inactive"`
	Tags     []Item[string]                    `json:"tags"`
	Meta     map[string]Value[json.RawMessage] `json:"meta_data"`

	applied  []*definition.Policy
	lists    int          // how many of applied write access rights
	enforced [groups]bool // a policy that enforces writes the group, or the key says something of it where only ones on trial do
}

// Effective merges a session with the policies it carries. A session without
// policies has its own rights. The error, one of the types of this package, says
// why a key cannot be used at all.
func Effective(s *definition.Session, policies *definition.PolicySet) (*Rights, error) {
	r := new(Rights)
	if err := r.Enforce(s, policies); err != nil {
		return nil, err
	}
	r.mergeTags()
	r.mergeMeta()
	return r, nil
}

// Enforce makes r what Effective returns, without Tags and Meta, on which no call
// depends. It reuses r's memory: this happens at the first request of each key.
func (r *Rights) Enforce(s *definition.Session, policies *definition.PolicySet) error {
	r.Forget()
	r.Session = s
	if err := r.apply(policies); err != nil {
		return err
	}
	r.mergeActivity()
	return nil
}

// Forget empties r, so that it keeps nothing of what it was made from alive.
func (r *Rights) Forget() {
	clear(r.Policies)
	clear(r.applied)
	*r = Rights{Policies: r.Policies[:0], applied: r.applied[:0]}
}

// apply finds the policies and refuses those that do not go together.
func (r *Rights) apply(policies *definition.PolicySet) error {
	ids := distinct(r.Session.Policies())
	for _, id := range ids {
		p := policies.Get(id)
		switch {
		case p == nil && len(ids) == 1:
			return &MissingError{Policy: id}
		case p == nil:
			r.Missing = append(r.Missing, id)
			continue
		case p.OrgID != r.Session.OrgID:
			return &ForeignError{Policy: id}
		case p.Partitions.PerAPI && partitioned(p):
			return &ConflictError{Policy: id}
		}
		r.applied = append(r.applied, p)
		r.Policies = append(r.Policies, p.Key()) // id, but as text that all keys share
		for g := range groups {
			r.enforced[g] = r.enforced[g] || g.written(p) && !p.Measures()
		}
	}
	r.hearKey()
	if err := compatible(r.applied); err != nil {
		return err
	}
	if len(ids) == 0 {
		r.Master = len(r.Session.AccessRights) == 0
		return nil
	}
	if len(r.applied) == 0 || r.lists == 0 && len(r.Session.AccessRights) == 0 && r.Measured().Access == "" {
		return &NoneError{}
	}
	return nil
}

// hearKey counts the lists of APIs, and lets what the key itself says hold where
// policies on trial alone write a group: one of these must not take away what
// refuses without it.
func (r *Rights) hearKey() {
	if len(r.applied) == 0 {
		return
	}
	r.enforced[acl] = r.enforced[acl] || len(r.Session.AccessRights) > 0
	for _, p := range r.applied {
		if r.writes(acl, p) && len(p.AccessRights) > 0 {
			r.lists++
		}
	}
	r.heed(&r.Session.Limits)
	if r.lists > 0 {
		return // the key's entries are not asked
	}
	for _, e := range r.Session.AccessRights {
		if e != nil && e.Limit != nil {
			r.heed(&e.Limit.Limits)
		}
	}
}

// heed has the groups enforced in which l holds somebody back.
func (r *Rights) heed(l *definition.Limits) {
	r.enforced[rates] = r.enforced[rates] || l.Rate > 0 && l.Per > 0
	r.enforced[quotas] = r.enforced[quotas] || l.QuotaMax > 0
	r.enforced[complexity] = r.enforced[complexity] || l.MaxQueryCost > 0 ||
		max(l.MaxQueryDepth, l.MaxQueryAliases, l.MaxQueryRootFields, l.MaxQueryDirectives, l.MaxQueryTokens) > 0
}

// distinct leaves out what stands in ids before: a policy takes part once.
func distinct(ids []string) []string {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return unite(nil, ids)
		}
	}
	return ids
}

// compatible refuses a policy with limits per API beside a partitioned one. One on
// trial must not keep a key from being used: it is not looked at.
func compatible(policies []*definition.Policy) error {
	perAPI, parts := false, false
	for _, p := range policies {
		if p.Measures() {
			continue
		}
		perAPI = perAPI || p.Partitions.PerAPI
		parts = parts || partitioned(p)
	}
	if perAPI && parts {
		return &ConflictError{}
	}
	return nil
}

// mergeActivity tells whether the key is switched off. One policy is enough; a
// key that carries policies which are not on trial is not asked itself.
func (r *Rights) mergeActivity() {
	r.Inactive = Value[bool]{From: Origin{Kind: Default}}
	if r.Session.IsInactive && !slices.ContainsFunc(r.applied, func(p *definition.Policy) bool { return !p.Measures() }) {
		r.Inactive = Value[bool]{Value: true, From: Origin{Kind: Key}}
		return
	}
	for _, p := range r.applied {
		if p.IsInactive || p.State == "deny" {
			r.Inactive = Value[bool]{Value: true, From: Origin{Kind: Policy, ID: p.Key()}}
			return
		}
	}
}

func (r *Rights) mergeTags() {
	var all union[string, string]
	for _, p := range r.applied {
		all.addAll(p.Tags, self, Origin{Kind: Policy, ID: p.Key()}, nil)
	}
	all.addAll(r.Session.Tags, self, Origin{Kind: Key}, nil)
	r.Tags = all.items
}

// mergeMeta lets a policy win over the key, and a later policy over an earlier.
func (r *Rights) mergeMeta() {
	if len(r.applied) == 0 && len(r.Session.MetaData) == 0 {
		return
	}
	r.Meta = make(map[string]Value[json.RawMessage])
	for name, v := range r.Session.MetaData {
		r.Meta[name] = Value[json.RawMessage]{Value: v, From: Origin{Kind: Key}}
	}
	for _, p := range r.applied {
		for name, v := range p.MetaData {
			r.Meta[name] = Value[json.RawMessage]{Value: v, From: Origin{Kind: Policy, ID: p.Key()}}
		}
	}
}
