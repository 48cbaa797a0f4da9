package rights

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The order of policies decides on meta data, and between rates of equal
// throughput; never on anything else.
func TestOrderOfPoliciesDoesNotMatter(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ids := []string{"a", "b", "c", "d"}[:2+rng.IntN(3)]
		perAPI := rng.IntN(3) == 0
		var policies []string
		for i, id := range ids {
			policies = append(policies, randomPolicy(rng, id, i, perAPI))
		}
		want := ""
		for try := range 6 {
			quoted := strings.Join(ids, `","`)
			session := fmt.Sprintf(`{"apply_policies": ["%s"], "rate": 5, "per": 1, "quota_max": 9, "access_rights": {"x": {"limit": {"quota_max": 3}}}}`, quoted)
			got := said(t, session, policies)
			if try > 0 && got != want {
				t.Fatalf("seed %d: with %s\n%s\nwith another order\n%s\npolicies %s", seed, quoted, got, want, policies)
			}
			want = got
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		}
	}
}

// randomPolicy never gives two policies rates of equal throughput.
func randomPolicy(rng *rand.Rand, id string, i int, perAPI bool) string {
	limits := func() string {
		return fmt.Sprintf(`"rate": %d, "per": %d, "quota_max": %d, "quota_renewal_rate": %d, "max_query_depth": %d, "throttle_retry_limit": %d,
			"max_query_aliases": %d, "max_query_cost": %d`,
			rng.IntN(2)*(100+7*i), rng.IntN(2), rng.IntN(4)-1, rng.IntN(3), rng.IntN(4)-1, rng.IntN(3)-1, rng.IntN(4)-1, rng.IntN(4)-1)
	}
	var entries []string
	for _, api := range []string{"x", "y", "z"} {
		if rng.IntN(2) == 0 {
			continue
		}
		own := ""
		if perAPI && rng.IntN(2) == 0 {
			own = fmt.Sprintf(`"limit": {"quota_max": %d, "max_query_depth": %d},`, rng.IntN(3)-1, rng.IntN(3)-1)
		}
		entries = append(entries, fmt.Sprintf(`%q: {%s "versions": ["v%d"], "disable_introspection": %t, "allowed_urls": [{"url": "/%d", "methods": ["M%d"]}],
			"restricted_types": [{"name": "T%d", "fields": ["f%d"]}], "field_access_rights": [{"type_name": "T", "field_name": "f", "limits": {"max_query_depth": %d}}]}`,
			api, own, rng.IntN(3), rng.IntN(4) == 0, rng.IntN(2), rng.IntN(3), rng.IntN(2), rng.IntN(3), rng.IntN(4)-1))
	}
	parts := `"per_api": true`
	if !perAPI {
		parts = fmt.Sprintf(`"acl": %t, "quota": %t, "rate_limit": %t, "complexity": %t`, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0)
	}
	return fmt.Sprintf(`{"id": %q, %s, "is_inactive": %t, "tags": ["t%d"], "partitions": {%s}, "access_rights": {%s}}`,
		id, limits(), rng.IntN(5) == 0, rng.IntN(3), parts, strings.Join(entries, ","))
}

// said writes what a key may do, leaving out where from, and lists in order.
func said(t *testing.T, session string, policies []string) string {
	r, err := Effective(world(t, session, policies...))
	if err != nil {
		return err.Error()
	}
	out := []string{fmt.Sprint(r.Inactive.Value, r.APIs(), r.QuotaScopes(), values(r.Tags))}
	for _, api := range r.APIs() {
		a := access(t, r, api)
		fields := a.FieldAccess
		out = append(out, fmt.Sprint(api, a.Rate.Calls, a.Rate.Per, a.Rate.Scope, a.Quota.Max, a.Quota.Renewal, a.Quota.Scope, a.Depth.Value, a.Aliases.Value, a.Cost.Value,
			a.Throttle.Interval, a.Throttle.Retries, values(a.Versions), values(a.AllowedURLs), values(a.RestrictedTypes), len(fields), a.DisableIntrospection.Value))
		for _, f := range fields {
			out = append(out, fmt.Sprint(f.Value.TypeName, f.Value.FieldName, f.Value.Limits.MaxQueryDepth))
		}
	}
	return strings.Join(out, "\n")
}

// values writes the elements of a list, and the texts in each, in order.
func values[T any](items []Item[T]) []string {
	var out []string
	for _, i := range items {
		text, _ := json.Marshal(i.Value)
		letters := strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(`[]{}",:`, r) })
		slices.Sort(letters)
		out = append(out, strings.Join(letters, " "))
	}
	slices.Sort(out)
	return out
}

func BenchmarkEffective(b *testing.B) {
	s, set := world(b, `{"apply_policies": ["a"]}`, `{"id": "a", "rate": 5, "per": 1, "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"x": {}, "y": {}}}`)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Effective(s, set)
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := r.For("x"); !ok {
			b.Fatal("no access")
		}
	}
}
