package graphql_test

import (
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// Rules on trial refuse no operation; those of the same key that are not, do.
func TestRulesOnTrialRefuseNoOperation(t *testing.T) {
	w := newWorld(t)
	entry := func() map[string]*definition.Access {
		return map[string]*definition.Access{"a": {
			APIID: "a", DisableIntrospection: true, TrustedDocumentsOnly: true,
			RestrictedTypes: []definition.TypeFields{{Name: "Cat", Fields: []string{"name"}}},
		}}
	}
	deep := definition.Limits{QuotaMax: -1, MaxQueryDepth: 3, MaxQueryAliases: 1}
	measure := &definition.Policy{ID: "all", OrgID: "o", Enforcement: "measure", Limits: deep, AccessRights: entry()}
	fields := &definition.Policy{ID: "fields", OrgID: "o", Enforcement: "measure", AccessRights: entry(), Partitions: definition.Partitions{ACL: true}}
	sizes := &definition.Policy{ID: "sizes", OrgID: "o", Limits: deep, Partitions: definition.Partitions{Complexity: true, Quota: true}}
	elsewhere := &definition.Policy{ID: "elsewhere", OrgID: "o", Enforcement: "measure", Limits: deep, AccessRights: map[string]*definition.Access{"b": {APIID: "b"}}}
	for id, err := range w.Apply(&definition.Bundle{
		Revision: "with policies", APIs: []*definition.API{w.api("a", keyed)},
		Policies: []*definition.Policy{measure, fields, sizes, elsewhere},
	}) {
		t.Fatalf("%s is not served: %v", id, err)
	}
	for name, policies := range map[string][]string{"trial": {"all"}, "both": {"fields", "sizes"}, "other": {"elsewhere"}} {
		w.Put(name, &definition.Session{OrgID: "o", ApplyPolicies: policies})
	}
	const tooDeep, cat, schema = "{ countries { continent { name } } }", "{ animals { ... on Cat { name } } }", `{ secret __type(name: "Cat") { name } }`
	for _, c := range []struct {
		key, query string
		status     int
		reason     string
	}{
		{"trial", tooDeep, 200, ""},
		{"trial", cat, 200, ""},
		{"trial", schema, 200, ""},
		{"trial", "{ a: secret b: secret }", 200, ""},
		{"trial", "{ nowhere }", 400, "graphql_invalid"},
		{"both", "{ secret }", 200, ""},
		{"both", cat, 200, ""},
		{"both", schema, 200, ""},
		{"both", tooDeep, 403, "depth_limit"},
		{"both", "{ a: secret b: secret }", 403, "operation_limit"},
		{"other", "{ secret }", 200, ""},
		{"other", tooDeep, 200, ""},
	} {
		for range 2 {
			got := w.post(fmt.Sprintf(`{"query":%q}`, c.query), authorized(c.key))
			if got.status != c.status || got.header.Get("X-Sluice-Reason") != c.reason || len(got.seen) > 0 != (c.status == 200) {
				t.Errorf("%s, %s: %v %s, want %d %s", c.key, c.query, got, got.header.Get("X-Sluice-Reason"), c.status, c.reason)
			}
		}
	}
}
