package rights

import (
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
)

// Access is what a key may do with one API.
type Access struct {
	API      string     `json:"api_id"`
	Rate     Rate       `json:"rate"`
	Quota    Quota      `json:"quota"`
	Throttle Throttle   `json:"throttle"`
	Depth    Value[int] `json:"max_query_depth"` // 0 or -1: unlimited

	// Of one GraphQL operation; 0 or -1: unlimited.
	Aliases    Value[int]   `json:"max_query_aliases"`
	RootFields Value[int]   `json:"max_query_root_fields"`
	Directives Value[int]   `json:"max_query_directives"`
	Tokens     Value[int]   `json:"max_query_tokens"`
	Cost       Value[int64] `json:"max_query_cost"`

	Versions             []Item[string]                  `json:"versions"`
	AllowedURLs          []Item[definition.AllowedURL]   `json:"allowed_urls"` // empty: every path is allowed
	RestrictedTypes      []Item[definition.TypeFields]   `json:"restricted_types"`
	AllowedTypes         []Item[definition.TypeFields]   `json:"allowed_types"`
	FieldAccess          []Value[definition.FieldAccess] `json:"field_access_rights"`
	Endpoints            []EndpointRate                  `json:"endpoints"`
	DisableIntrospection Value[bool]                     `json:"disable_introspection"`
	TrustedDocumentsOnly Value[bool]                     `json:"trusted_documents_only"`

	stamp string
}

// EndpointRate is the rate of one method of one path.
type EndpointRate struct {
	Path   string `json:"path"`
	Method string `json:"method"`
	Rate   Rate   `json:"rate"`
}

// APIs returns the ids of the APIs that the key may call, in order; none for a master
// key.
func (r *Rights) APIs() []string {
	if r.lists == 0 {
		return slices.Sorted(maps.Keys(r.Session.AccessRights))
	}
	all := make(map[string]bool)
	for _, p := range r.applied {
		if r.writes(acl, p) {
			for id := range p.AccessRights {
				all[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// For returns the access rights of the key for the API, or false if it may not call
// the API.
func (r *Rights) For(api string) (*Access, bool) {
	a := new(Access)
	if !r.Fill(a, api) {
		return nil, false
	}
	return a, true
}

// Fill sets a to what For returns, and reports whether the key may call the API. It
// reuses the memory of a.
func (r *Rights) Fill(a *Access, api string) bool {
	a.Forget()
	a.API, a.stamp = api, r.Session.LastUpdated
	if !r.lend(a) {
		return false
	}
	r.limit(a)
	return true
}

// Forget empties a, so that it keeps nothing of the session and the policies alive.
func (a *Access) Forget() {
	clear(a.FieldAccess)
	clear(a.Endpoints)
	*a = Access{
		Versions: emptied(a.Versions), AllowedURLs: emptied(a.AllowedURLs),
		RestrictedTypes: emptied(a.RestrictedTypes), AllowedTypes: emptied(a.AllowedTypes),
		FieldAccess: a.FieldAccess[:0], Endpoints: a.Endpoints[:0],
	}
}

// emptied returns an empty list in the memory of list and of its items.
func emptied[T any](list []Item[T]) []Item[T] {
	for i := range list {
		from := list[i].From
		clear(from)
		list[i] = Item[T]{From: from[:0]}
	}
	return list[:0]
}

// Unlisted returns the limits of calls to an API that the key may not call, for the
// case that access rights are report-only. It has no rules on paths or fields.
func (r *Rights) Unlisted(api string) *Access {
	a := &Access{API: api, stamp: r.Session.LastUpdated}
	a.DisableIntrospection.From = Origin{Kind: Default}
	a.TrustedDocumentsOnly.From = Origin{Kind: Default}
	r.limit(a)
	return a
}

func (r *Rights) limit(a *Access) {
	a.Rate = r.rate(a.API)
	a.Quota = r.quota(a.API)
	a.Throttle = r.throttle(a.API)
	r.complexity(a)
}

// lend copies the rules of access entries, without their limits, and reports whether
// there is an entry for the API.
func (r *Rights) lend(a *Access) bool {
	a.DisableIntrospection.From = Origin{Kind: Default}
	a.TrustedDocumentsOnly.From = Origin{Kind: Default}
	if r.Master {
		return true
	}
	m := listsIn(a)
	found := false
	if r.lists == 0 {
		if e := r.Session.AccessRights[a.API]; e != nil {
			m.add(e, Origin{Kind: KeyEntry})
			found = true
		}
	}
	for _, p := range r.applied {
		if e := p.AccessRights[a.API]; e != nil && r.writes(acl, p) {
			m.add(e, Origin{Kind: PolicyEntry, ID: p.Key()})
			found = true
		}
	}
	m.fill(a)
	return found
}

// A lists merges the rules of several access entries for one API.
type lists struct {
	versions   union[string, string]
	urls       union[string, definition.AllowedURL]
	restricted union[string, definition.TypeFields]
	allowed    union[string, definition.TypeFields]
	fields     best[[2]string, definition.FieldAccess]
	endpoints  best[[2]string, EndpointRate]
	hidden     Value[bool]
	trusted    Value[bool]
}

// listsIn returns empty lists in the memory of those of a, which is empty.
func listsIn(a *Access) lists {
	var m lists
	m.versions.items, m.urls.items = a.Versions, a.AllowedURLs
	m.restricted.items, m.allowed.items = a.RestrictedTypes, a.AllowedTypes
	m.fields.values = a.FieldAccess
	return m
}

func (m *lists) add(e *definition.Access, from Origin) {
	m.versions.addAll(e.Versions, self, from, nil)
	m.urls.addAll(e.AllowedURLs, func(u definition.AllowedURL) string { return u.URL }, from, uniteMethods)
	m.restricted.addAll(e.RestrictedTypes, typeName, from, uniteFields)
	m.allowed.addAll(e.AllowedTypes, typeName, from, uniteFields)
	for _, f := range e.FieldAccessRights {
		m.fields.add([2]string{f.TypeName, f.FieldName}, Value[definition.FieldAccess]{Value: f, From: from}, deeper)
	}
	for _, endpoint := range e.Endpoints {
		for _, method := range endpoint.Methods {
			limit := method.Limit
			if limit.Disabled || !sets(limit.Rate, limit.Per) {
				continue
			}
			rate := Rate{Calls: limit.Rate, Per: limit.Per, From: from}
			one := EndpointRate{Path: endpoint.Path, Method: method.Name, Rate: rate}
			m.endpoints.add([2]string{one.Path, one.Method}, Value[EndpointRate]{Value: one, From: from}, freer)
		}
	}
	if e.DisableIntrospection && !m.hidden.Value {
		m.hidden = Value[bool]{Value: true, From: from}
	}
	if e.TrustedDocumentsOnly && !m.trusted.Value {
		m.trusted = Value[bool]{Value: true, From: from}
	}
}

func (m *lists) fill(a *Access) {
	a.Versions, a.AllowedURLs = m.versions.items, m.urls.items
	a.RestrictedTypes, a.AllowedTypes = m.restricted.items, m.allowed.items
	a.FieldAccess = m.fields.values
	for _, e := range m.endpoints.values {
		a.Endpoints = append(a.Endpoints, e.Value)
	}
	if m.hidden.Value {
		a.DisableIntrospection = m.hidden
	}
	if m.trusted.Value {
		a.TrustedDocumentsOnly = m.trusted
	}
}

func self(s string) string                    { return s }
func typeName(t definition.TypeFields) string { return t.Name }
func deeper(a, b definition.FieldAccess) bool {
	return larger(a.Limits.MaxQueryDepth, b.Limits.MaxQueryDepth)
}
func freer(a, b EndpointRate) bool { return a.Rate.freer(b.Rate) }
func uniteMethods(a, b definition.AllowedURL) definition.AllowedURL {
	a.Methods = unite(a.Methods, b.Methods)
	return a
}

func uniteFields(a, b definition.TypeFields) definition.TypeFields {
	a.Fields = unite(a.Fields, b.Fields)
	return a
}

// unite returns the elements of both, each once, and changes neither.
func unite(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// A union collects elements in order, each key once.
type union[K comparable, T any] struct {
	items []Item[T]
	at    map[K]int // made when there are more than few
}

// few is the number of elements up to which a search is faster than a map.
const few = 8

// addAll adds elements. An element that exists gets another origin and, with join, the
// contents of the new one.
func (u *union[K, T]) addAll(more []T, key func(T) K, from Origin, join func(a, b T) T) {
	for _, one := range more {
		i := u.find(key(one), key)
		if i < 0 {
			if u.at != nil {
				u.at[key(one)] = len(u.items)
			}
			u.append(one, from)
			continue
		}
		if join != nil {
			u.items[i].Value = join(u.items[i].Value, one)
		}
		if !slices.Contains(u.items[i].From, from) {
			u.items[i].From = append(u.items[i].From, from)
		}
	}
}

// append adds a new element, in the memory of a former one if possible.
func (u *union[K, T]) append(one T, from Origin) {
	n := len(u.items)
	if n == cap(u.items) {
		u.items = append(u.items, Item[T]{Value: one, From: []Origin{from}})
		return
	}
	u.items = u.items[:n+1]
	u.items[n] = Item[T]{Value: one, From: append(u.items[n].From[:0], from)}
}

// find returns the index of the element with a key, or -1. Joining elements does not
// change their keys.
func (u *union[K, T]) find(k K, key func(T) K) int {
	if u.at == nil && len(u.items) <= few {
		return slices.IndexFunc(u.items, func(i Item[T]) bool { return key(i.Value) == k })
	}
	if u.at == nil {
		u.at = make(map[K]int, 2*len(u.items))
		for i := range u.items {
			u.at[key(u.items[i].Value)] = i
		}
	}
	if i, known := u.at[k]; known {
		return i
	}
	return -1
}

// A best collects elements in order, and keeps the better of two with one key.
type best[K comparable, T any] struct {
	values []Value[T]
	at     map[K]int
}

func (b *best[K, T]) add(key K, one Value[T], better func(a, b T) bool) {
	if b.at == nil {
		b.at = make(map[K]int)
	}
	i, known := b.at[key]
	switch {
	case !known:
		b.at[key] = len(b.values)
		b.values = append(b.values, one)
	case better(one.Value, b.values[i].Value):
		b.values[i] = one
	}
}
