package change

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// BreakKind is the kind of what a schema breaks.
type BreakKind string

// The kinds of what a schema breaks.
const (
	FieldRule       BreakKind = "field_rule"
	PersistedQuery  BreakKind = "persisted_query"
	TrustedDocument BreakKind = "trusted_document"
)

// A Break is a rule or a stored operation that a new schema breaks.
type Break struct {
	// What breaks: a field rule, a persisted query or a trusted document.
	Kind BreakKind `json:"kind" enum:"field_rule,persisted_query,trusted_document"`
	// Id of the policy with the rule; left out: it is of no policy.
	Policy string `json:"policy,omitempty"`
	// Hash of the key with the rule; left out: it is of no key.
	Key string `json:"key,omitempty"`
	// Path of the member in the policy, the key or the API definition.
	Path string `json:"path"`
	// What is wrong with it under the new schema, in English.
	Message string `json:"message"`
}

// A Holder is a policy or a key with an entry for the API.
type Holder struct {
	Policy string // id; "" of a key
	Key    string // hash; "" of a policy
	Access *definition.Access
}

// Broken returns what is right with one schema of an API and wrong with another:
// field rules of policies and keys that name what is gone, and stored operations
// that are no longer valid. What was wrong already is not listed; with old nil
// everything is that is wrong with new.
func Broken(old, new *schema.Schema, api *definition.API, holders []Holder) []Break {
	var all []Break
	for _, h := range holders {
		if h.Access == nil {
			continue
		}
		for _, r := range rulesOf(api.ID, h.Access) {
			if old != nil && missing(old, r) != "" {
				continue
			}
			if message := missing(new, r); message != "" {
				all = append(all, Break{Kind: FieldRule, Policy: h.Policy, Key: h.Key, Path: r.path, Message: message + r.effect})
			}
		}
	}
	for _, o := range Operations(api) {
		if old != nil && len(o.Problems(old)) > 0 {
			continue
		}
		if problems := o.Problems(new); len(problems) > 0 {
			all = append(all, Break{Kind: o.Kind, Path: o.Path, Message: o.Describe(problems[0])})
		}
	}
	return all
}

// rule is one field, or all fields of a type, that an access entry names.
type rule struct {
	path, effect string
	typ, field   string // field "*": the type alone
}

// What becomes of a rule that names what does not exist.
const (
	opens  = ": the rule holds back nothing; whatever took the place is open"
	closes = ": the rule opens nothing; whatever took the place is closed"
	loses  = ": the limit has no effect; whatever took the place has the limit of all"
)

func rulesOf(api string, a *definition.Access) (all []rule) {
	at := fmt.Sprintf("access_rights[%q].", api)
	list := func(name, effect string, types []definition.TypeFields) {
		for i, t := range types {
			for j, field := range t.Fields {
				all = append(all, rule{fmt.Sprintf("%s%s[%d].fields[%d]", at, name, i, j), effect, t.Name, field})
			}
		}
	}
	list("restricted_types", opens, a.RestrictedTypes)
	list("allowed_types", closes, a.AllowedTypes)
	for i, f := range a.FieldAccessRights {
		all = append(all, rule{fmt.Sprintf("%sfield_access_rights[%d]", at, i), loses, f.TypeName, f.FieldName})
	}
	return all
}

// missing says what a rule names and a schema does not have, or "".
func missing(s *schema.Schema, r rule) string {
	t, found := s.TypeNamed([]byte(r.typ))
	if !found {
		t, found = s.RootNamed(r.typ)
	}
	switch {
	case !found:
		return "type " + r.typ + " is not in the schema"
	case r.field == "*":
		return ""
	}
	if _, found := s.FieldNamed(t, []byte(r.field)); !found {
		return "field " + r.typ + "." + r.field + " is not in the schema"
	}
	return ""
}

// Operations returns the operations that an API definition holds: persisted ones
// in use, by version, then trusted documents by hash. Those that the definition's
// own checks refuse are left out.
func Operations(api *definition.API) (all []Operation) {
	if api.VersionData != nil {
		for _, name := range slices.Sorted(maps.Keys(api.VersionData.Versions)) {
			all = append(all, persisted(name, api.VersionData.Versions[name])...)
		}
	}
	if api.GraphQL == nil || api.GraphQL.TrustedDocuments == nil {
		return all
	}
	documents := api.GraphQL.TrustedDocuments.Documents
	for _, hash := range slices.Sorted(maps.Keys(documents)) {
		all = append(all, Operation{
			Kind: TrustedDocument, Path: fmt.Sprintf("graphql.trusted_documents.documents[%q]", hash), Text: documents[hash],
		})
	}
	return all
}

func persisted(version string, v *definition.Version) (all []Operation) {
	if v == nil {
		return nil
	}
	for _, p := range v.PersistedOperations() {
		all = append(all, Operation{
			Kind: PersistedQuery, Name: p.Method + " " + p.Path, Text: p.Operation,
			Path: fmt.Sprintf("version_data.versions[%q].extended_paths.persist_graphql", version),
		})
	}
	return all
}
