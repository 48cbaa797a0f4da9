// Package rights merges a key's session and its policies into what the key may do. It
// has no state: the same session and policies give the same rights. Every value has
// its origin, so that traffic, explanations and the admin agree.
package rights

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// Kind is the kind of source that a value came from.
type Kind string

// The sources of values. An entry is the access entry for one API, of a key or of a
// policy.
const (
	Default     Kind = "default"
	Key         Kind = "key"
	KeyEntry    Kind = "key_entry"
	Policy      Kind = "policy"
	PolicyEntry Kind = "policy_entry"
)

// Origin is the source of a value.
type Origin struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id,omitempty"` // of the policy
}

// String returns the origin as text for users.
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

// Value is a value and its origin.
type Value[T any] struct {
	Value T      `json:"value"`
	From  Origin `json:"from"`
}

// Item is an element of a merged list and all of its origins, in order.
type Item[T any] struct {
	Value T        `json:"value"`
	From  []Origin `json:"from"`
}

// Rights are what a key may do. They share memory with the session and the policies,
// and must not be changed.
type Rights struct {
	Session  *definition.Session               `json:"-"`
	Policies []string                          `json:"policies"`          // in force for the key, in order
	Missing  []string                          `json:"missing,omitempty"` // that the key names but that do not exist
	Master   bool                              `json:"master,omitempty"`  // neither policies nor access rights: every API may be called
	Inactive Value[bool]                       `json:"inactive"`
	Tags     []Item[string]                    `json:"tags"`
	Meta     map[string]Value[json.RawMessage] `json:"meta_data"`

	applied  []*definition.Policy
	lists    int          // how many of applied write access rights
	enforced [groups]bool // a policy that enforces writes the group, or the key says something of it where only ones on trial do
}

// Effective merges a session and its policies. A session without policies has its own
// rights. The error has one of the types of this package, and means that the key
// cannot be used at all.
func Effective(s *definition.Session, policies *definition.PolicySet) (*Rights, error) {
	r := new(Rights)
	if err := r.Enforce(s, policies); err != nil {
		return nil, err
	}
	r.mergeTags()
	r.mergeMeta()
	return r, nil
}

// Enforce sets r to what Effective returns, without Tags and Meta, which no call
// depends on. It reuses r's memory: it runs at the first request of each key.
func (r *Rights) Enforce(s *definition.Session, policies *definition.PolicySet) error {
	r.Forget()
	r.Session = s
	if err := r.apply(policies); err != nil {
		return err
	}
	r.mergeActivity()
	return nil
}

// Forget empties r, so that it keeps nothing of the session and the policies alive.
func (r *Rights) Forget() {
	clear(r.Policies)
	clear(r.applied)
	*r = Rights{Policies: r.Policies[:0], applied: r.applied[:0]}
}

// apply finds the policies and refuses those that cannot be combined.
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
			r.enforced[g] = r.enforced[g] || g.written(p) && !p.ReportOnly()
		}
	}
	r.includeKey()
	if err := compatible(r.applied); err != nil {
		return err
	}
	if len(ids) == 0 {
		r.Master = len(r.Session.AccessRights) == 0
		return nil
	}
	if len(r.applied) == 0 || r.lists == 0 && len(r.Session.AccessRights) == 0 && r.ReportOnly().Access == "" {
		return &NoneError{}
	}
	return nil
}

// includeKey counts the lists of APIs, and marks the groups that the key itself sets as
// enforced if only report-only policies write them: such a policy must not disable
// what refuses without it.
func (r *Rights) includeKey() {
	if len(r.applied) == 0 {
		return
	}
	r.enforced[acl] = r.enforced[acl] || len(r.Session.AccessRights) > 0
	for _, p := range r.applied {
		if r.writes(acl, p) && len(p.AccessRights) > 0 {
			r.lists++
		}
	}
	r.markEnforced(&r.Session.Limits)
	if r.lists > 0 {
		return // the key's entries do not apply
	}
	for _, e := range r.Session.AccessRights {
		if e != nil && e.Limit != nil {
			r.markEnforced(&e.Limit.Limits)
		}
	}
}

// markEnforced marks the groups that l limits as enforced.
func (r *Rights) markEnforced(l *definition.Limits) {
	r.enforced[rates] = r.enforced[rates] || l.Rate > 0 && l.Per > 0
	r.enforced[quotas] = r.enforced[quotas] || l.QuotaMax > 0
	r.enforced[complexity] = r.enforced[complexity] || l.MaxQueryCost > 0 ||
		max(l.MaxQueryDepth, l.MaxQueryAliases, l.MaxQueryRootFields, l.MaxQueryDirectives, l.MaxQueryTokens) > 0
}

// distinct removes duplicate ids: a policy applies once.
func distinct(ids []string) []string {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return unite(nil, ids)
		}
	}
	return ids
}

// compatible refuses a policy with limits per API in combination with a partitioned
// one. Report-only policies are ignored, as they must not make a key unusable.
func compatible(policies []*definition.Policy) error {
	perAPI, parts := false, false
	for _, p := range policies {
		if p.ReportOnly() {
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

// mergeActivity reports whether the key is inactive. One policy is enough; the key's
// own setting is ignored if it has policies that are not report-only.
func (r *Rights) mergeActivity() {
	r.Inactive = Value[bool]{From: Origin{Kind: Default}}
	if r.Session.IsInactive && !slices.ContainsFunc(r.applied, func(p *definition.Policy) bool { return !p.ReportOnly() }) {
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

// PolicyMeta returns the meta data of the policies in force, nil if there is none: a
// later policy's value replaces an earlier one's. It replaces the key's own. It is
// shared with a policy if only one has meta data, and must not be changed.
func (r *Rights) PolicyMeta() map[string]json.RawMessage {
	var all map[string]json.RawMessage
	merged := false
	for _, p := range r.applied {
		switch {
		case len(p.MetaData) == 0:
		case all == nil:
			all = p.MetaData
		default:
			if !merged {
				all, merged = maps.Clone(all), true
			}
			maps.Copy(all, p.MetaData)
		}
	}
	return all
}

// mergeMeta is PolicyMeta merged over the key's own meta data, each value with its
// origin.
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
