package rights

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// world parses a session and policies by id; every one belongs to organisation o.
func world(t testing.TB, session string, policies ...string) (*definition.Session, *definition.PolicySet) {
	t.Helper()
	s := new(definition.Session)
	if err := json.Unmarshal([]byte(session), s); err != nil {
		t.Fatalf("%v in %s", err, session)
	}
	if s.OrgID == "" {
		s.OrgID = "o"
	}
	var all []*definition.Policy
	for _, text := range policies {
		p := new(definition.Policy)
		if err := json.Unmarshal([]byte(text), p); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if p.OrgID == "" {
			p.OrgID = "o"
		}
		all = append(all, p)
	}
	return s, definition.NewPolicySet(all)
}

func effective(t testing.TB, session string, policies ...string) *Rights {
	t.Helper()
	r, err := Effective(world(t, session, policies...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func access(t testing.TB, r *Rights, api string) *Access {
	t.Helper()
	a, ok := r.For(api)
	if !ok {
		t.Fatalf("no access to %s", api)
	}
	return a
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	const two = `{"apply_policies": ["a", "b"]}`
	for _, c := range []struct {
		name, session string
		policies      []string
		want          string
	}{
		{"its only policy does not exist", `{"apply_policies": ["a"]}`, nil, `policy not found: "a"`},
		{"its only policy, in the older form, does not exist", `{"apply_policy_id": "a"}`, nil, `policy not found: "a"`},
		{"none of its policies exists", two, nil, `key has no valid policies to be applied`},
		{
			"limits per API and a partition in one policy", `{"apply_policies": ["a"]}`,
			[]string{`{"id": "a", "partitions": {"per_api": true, "acl": true}, "access_rights": {"x": {}}}`},
			`cannot apply policy "a", which has per_api set and is partitioned`,
		},
		{
			"limits per API beside a partitioned policy", two,
			[]string{`{"id": "a", "partitions": {"per_api": true}, "access_rights": {"x": {}}}`, `{"id": "b", "partitions": {"quota": true}}`},
			`cannot apply multiple policies when some have per_api set and some are partitioned`,
		},
		{
			"a partitioned policy beside limits per API", `{"apply_policies": ["b", "a"]}`,
			[]string{`{"id": "a", "partitions": {"per_api": true}, "access_rights": {"x": {}}}`, `{"id": "b", "partitions": {"quota": true}}`},
			`cannot apply multiple policies when some have per_api set and some are partitioned`,
		},
		{
			"a policy of another organisation", two,
			[]string{`{"id": "a", "access_rights": {"x": {}}}`, `{"id": "b", "org_id": "other", "access_rights": {"x": {}}}`},
			`policy "b" belongs to another organisation than the key`,
		},
		{
			"policies that bring no access rights", two,
			[]string{`{"id": "a", "rate": 1, "per": 1}`, `{"id": "b", "partitions": {"acl": true}}`},
			`key has no valid policies to be applied`,
		},
	} {
		_, err := Effective(world(t, c.session, c.policies...))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	var missing *MissingError
	if _, err := Effective(world(t, `{"apply_policies": ["a"]}`)); !errors.As(err, &missing) || missing.Policy != "a" {
		t.Errorf("a missing policy is a %T", err)
	}
}

func TestOneMissingPolicyOfSeveralIsSkipped(t *testing.T) {
	r := effective(t, `{"apply_policies": ["gone", "a", "a"]}`, `{"id": "a", "access_rights": {"x": {}}}`)
	if !slices.Equal(r.Policies, []string{"a"}) || !slices.Equal(r.Missing, []string{"gone"}) {
		t.Errorf("took part %q, missing %q", r.Policies, r.Missing)
	}
	if got := access(t, r, "x").Quota.Scope; got != "" {
		t.Errorf("a policy that stands twice counts as two: scope %q", got)
	}
}

func TestKeyWithoutPoliciesOrRightsIsMaster(t *testing.T) {
	r := effective(t, `{"rate": 5, "per": 1, "apply_policies": []}`)
	if a := access(t, r, "anything"); !r.Master || a.Rate.Calls != 5 || len(r.APIs()) != 0 {
		t.Errorf("master %v, rate %v", r.Master, a.Rate)
	}
	if r = effective(t, `{"access_rights": {"x": {}}}`); r.Master {
		t.Error("a key with access rights is a master key")
	}
	if _, ok := r.For("y"); ok {
		t.Error("access to an API that is not listed")
	}
}

// A case compares what one API's limits came to, written as
// "rate/per@scope<origin quota/renewal@scope<origin depth<origin".
func TestLimits(t *testing.T) {
	const (
		keyed   = `"rate": 5, "per": 1, "quota_max": 50, "quota_renewal_rate": 60, "max_query_depth": 5`
		listed  = `"access_rights": {"x": {}, "y": {}}`
		carries = `{"apply_policies": ["a"], ` + keyed + `, ` + listed + `}`
		both    = `{"apply_policies": ["a", "b"], ` + keyed + `, ` + listed + `}`
		allOf   = `"rate": 2, "per": 1, "quota_max": 20, "quota_renewal_rate": 20, "max_query_depth": 2`
	)
	for _, c := range []struct {
		name, session string
		policies      []string
		want          string
	}{
		// Inheritance of an access entry's limit, by group.
		{"no limit inherits all", `{` + keyed + `, "access_rights": {"x": {}}}`, nil, "5/1<key 50/60<key 5<key"},
		{"null limit inherits all", `{` + keyed + `, "access_rights": {"x": {"limit": null}}}`, nil, "5/1<key 50/60<key 5<key"},
		{"zero limit inherits all", `{` + keyed + `, "access_rights": {"x": {"limit": {"rate": 0, "per": 60, "quota_max": 0, "quota_renewal_rate": 3600}}}}`, nil, "5/1<key 50/60<key 5<key"},
		{"depth alone leaves rate and quota", `{` + keyed + `, "access_rights": {"x": {"limit": {"max_query_depth": 4}}}}`, nil, "5/1<key 50/60<key 4<entry"},
		{"rate alone leaves quota", `{` + keyed + `, "access_rights": {"x": {"limit": {"rate": 1, "per": 2}}}}`, nil, "1/2@x<entry 50/60<key 5<key"},
		{"quota alone leaves rate", `{` + keyed + `, "access_rights": {"x": {"limit": {"quota_max": 7}}}}`, nil, "5/1<key 7/0@x<entry 5<key"},
		{"-1 is explicitly unlimited", `{` + keyed + `, "access_rights": {"x": {"limit": {"rate": -1, "quota_max": -1, "max_query_depth": -1}}}}`, nil, "-1/0@x<entry -1/0@x<entry -1<entry"},
		{"nothing set", `{"access_rights": {"x": {}}}`, nil, "0/0<default 0/0<default 0<default"},
		{"a rate without a period limits nothing", `{"rate": 5, "access_rights": {"x": {}}}`, nil, "0/0<default 0/0<default 0<default"},

		// Partitions.
		{"no partition writes everything", carries, []string{`{"id": "a", ` + allOf + `, "access_rights": {"x": {}}}`}, "2/1<a 20/20<a 2<a"},
		{"no partition resets what it does not set", carries, []string{`{"id": "a", "quota_max": 20, "access_rights": {"x": {}}}`}, "0/0<default 20/0<a 0<default"},
		{"quota writes the quota", carries, []string{`{"id": "a", "partitions": {"quota": true}, ` + allOf + `}`}, "5/1<key 20/20<a 5<key"},
		{"rate_limit writes the rate", carries, []string{`{"id": "a", "partitions": {"rate_limit": true}, ` + allOf + `}`}, "2/1<a 50/60<key 5<key"},
		{"complexity writes the depth", carries, []string{`{"id": "a", "partitions": {"complexity": true}, ` + allOf + `}`}, "5/1<key 50/60<key 2<a"},
		{"acl writes no number", carries, []string{`{"id": "a", "partitions": {"acl": true}, ` + allOf + `, "access_rights": {"x": {"limit": {"rate": 9, "per": 9}}}}`}, "5/1<key 50/60<key 5<key"},
		{
			"a list without limits inherits those of other policies", both,
			[]string{`{"id": "a", "partitions": {"acl": true}, "access_rights": {"x": {}}}`, `{"id": "b", "partitions": {"quota": true, "rate_limit": true}, ` + allOf + `, "access_rights": {"y": {}}}`},
			"2/1<b 20/20<b 5<key",
		},
		{"a policy in master form changes limits only", carries, []string{`{"id": "a", ` + allOf + `}`}, "2/1<a 20/20<a 2<a"},
		{
			"a policy's numbers win over those of the key's entry", `{"apply_policies": ["a"], "access_rights": {"x": {"limit": {"rate": 9, "per": 1, "quota_max": 9}}}}`,
			[]string{`{"id": "a", "partitions": {"rate_limit": true}, "rate": 2, "per": 1}`},
			"2/1<a 9/0@x<entry 0<default",
		},

		// Limits per API.
		{
			"per API, an entry with limits has its own counter", carries,
			[]string{`{"id": "a", "partitions": {"per_api": true}, ` + allOf + `, "access_rights": {"x": {"limit": {"rate": 3, "per": 1, "quota_max": 30, "quota_renewal_rate": 30, "max_query_depth": 3}}}}`},
			"3/1@x<a.entry 30/30@x<a.entry 3<a.entry",
		},
		{
			"per API, an entry without limits shares one counter under the policy", carries,
			[]string{`{"id": "a", "partitions": {"per_api": true}, ` + allOf + `, "access_rights": {"x": {}}}`},
			"2/1@a<a 20/20@a<a 2<a",
		},
		{
			"per API, an entry inherits by group", carries,
			[]string{`{"id": "a", "partitions": {"per_api": true}, ` + allOf + `, "access_rights": {"x": {"limit": {"quota_max": 30}}}}`},
			"2/1@a<a 30/0@x<a.entry 2<a",
		},
		{
			"per API, the larger of two entries wins", both,
			[]string{
				`{"id": "a", "partitions": {"per_api": true}, "access_rights": {"x": {"limit": {"quota_max": 30, "quota_renewal_rate": 90}}}}`,
				`{"id": "b", "partitions": {"per_api": true}, "access_rights": {"x": {"limit": {"quota_max": -1, "quota_renewal_rate": 30}}}}`,
			},
			"0/0<default -1/0@x<b.entry 0<default",
		},

		// Several policies.
		{
			"the higher throughput wins", both,
			[]string{`{"id": "a", "rate": 10, "per": 1, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 100, "per": 20, "access_rights": {"x": {}}}`},
			"10/1@a<a 0/0<default 0<default",
		},
		{
			"of equal throughputs the first wins", both,
			[]string{`{"id": "a", "rate": 600, "per": 60, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 10, "per": 1, "access_rights": {"x": {}}}`},
			"600/60@a<a 0/0<default 0<default",
		},
		{
			"a rate of 0, or per 0, takes no part", both,
			[]string{`{"id": "a", "rate": 0, "per": 1, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 1, "per": 5, "access_rights": {"x": {}}}`},
			"1/5@b<b 0/0<default 0<default",
		},
		{
			"a rate of -1 is the highest throughput", both,
			[]string{`{"id": "a", "rate": 1e6, "per": 1, "access_rights": {"x": {}}}`, `{"id": "b", "rate": -1, "per": -1, "access_rights": {"x": {}}}`},
			"-1/0@b<b 0/0<default 0<default",
		},
		{
			"the larger quota and the larger renewal win, each for itself", both,
			[]string{`{"id": "a", "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"x": {}}}`, `{"id": "b", "quota_max": 20, "quota_renewal_rate": 30, "access_rights": {"x": {}}}`},
			"0/0<default 20/60@b<b<a 0<default",
		},
		{
			"a quota of -1 is the largest and renews nothing", both,
			[]string{`{"id": "a", "quota_max": -1, "quota_renewal_rate": 60, "access_rights": {"x": {}}}`, `{"id": "b", "quota_max": 20, "quota_renewal_rate": 90, "access_rights": {"x": {}}}`},
			"0/0<default -1/0@a<a 0<default",
		},
		{
			"the larger depth wins", both,
			[]string{`{"id": "a", "max_query_depth": 3, "access_rights": {"x": {}}}`, `{"id": "b", "max_query_depth": 4, "access_rights": {"x": {}}}`},
			"0/0<default 0/0<default 4<b",
		},
		{
			"a depth of -1 is the largest", both,
			[]string{`{"id": "a", "max_query_depth": -1, "access_rights": {"x": {}}}`, `{"id": "b", "max_query_depth": 4, "access_rights": {"x": {}}}`},
			"0/0<default 0/0<default -1<a",
		},
		{
			"policies with lists of their own count apart", both,
			[]string{`{"id": "a", ` + allOf + `, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 9, "per": 1, "quota_max": 90, "access_rights": {"y": {}}}`},
			"2/1@a<a 20/20@a<a 2<a",
		},
		{
			"a policy in master form takes part for every API, counted for the key", both,
			[]string{`{"id": "a", ` + allOf + `, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 9, "per": 1, "quota_max": 90, "quota_renewal_rate": 1}`},
			"9/1<b 90/20<b<a 2<a",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := access(t, effective(t, c.session, c.policies...), "x")
			renewal := ""
			if a.Quota.RenewalFrom != a.Quota.From && a.Quota.Renewal != 0 {
				renewal = short(a.Quota.RenewalFrom)
			}
			got := fmt.Sprintf("%v/%v%s%s %d/%d%s%s%s %d%s", a.Rate.Calls, a.Rate.Per, scoped(a.Rate.Scope), short(a.Rate.From),
				a.Quota.Max, a.Quota.Renewal, scoped(a.Quota.Scope), short(a.Quota.From), renewal, a.Depth.Value, short(a.Depth.From))
			if got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func scoped(scope string) string {
	if scope == "" {
		return ""
	}
	return "@" + scope
}

func short(o Origin) string {
	switch o.Kind {
	case KeyEntry:
		return "<entry"
	case PolicyEntry:
		return "<" + o.ID + ".entry"
	case Policy:
		return "<" + o.ID
	}
	return "<" + string(o.Kind)
}

func TestThrottleTakesTheLargerOfEach(t *testing.T) {
	r := effective(t, `{"apply_policies": ["a", "b"]}`,
		`{"id": "a", "throttle_interval": -1, "throttle_retry_limit": 3, "access_rights": {"x": {}}}`,
		`{"id": "b", "throttle_interval": 2, "throttle_retry_limit": -1, "access_rights": {"x": {}}}`)
	got := access(t, r, "x").Throttle
	if got.Interval != 2 || got.IntervalFrom.ID != "b" || got.Retries != 3 || got.RetriesFrom.ID != "a" {
		t.Errorf("got %+v", got)
	}
}

func TestAccessRightsAreUnited(t *testing.T) {
	r := effective(t, `{"apply_policies": ["a", "b"], "access_rights": {"own": {}}}`,
		`{"id": "a", "access_rights": {"x": {"versions": ["v1", "v2"],
			"allowed_urls": [{"url": "/a", "methods": ["GET"]}],
			"restricted_types": [{"name": "T", "fields": ["a"]}], "allowed_types": [{"name": "A", "fields": ["a"]}],
			"field_access_rights": [{"type_name": "T", "field_name": "f", "limits": {"max_query_depth": 3}}, {"type_name": "T", "field_name": "g", "limits": {"max_query_depth": 9}}],
			"endpoints": [{"path": "/e", "methods": [{"name": "GET", "limit": {"rate": 1, "per": 1}}, {"name": "PUT", "limit": {"rate": 0, "per": 1}}]}]}}}`,
		`{"id": "b", "access_rights": {"y": {}, "x": {"versions": ["v2", "v3"], "disable_introspection": true,
			"allowed_urls": [{"url": "/a", "methods": ["GET", "POST"]}, {"url": "/b", "methods": ["GET"]}],
			"restricted_types": [{"name": "T", "fields": ["b", "a"]}, {"name": "U", "fields": ["*"]}], "allowed_types": [{"name": "A", "fields": ["b"]}],
			"field_access_rights": [{"type_name": "T", "field_name": "f", "limits": {"max_query_depth": -1}}, {"type_name": "T", "field_name": "g", "limits": {"max_query_depth": 2}}],
			"endpoints": [{"path": "/e", "methods": [{"name": "GET", "limit": {"rate": 5, "per": 1}}]}]}}}`)
	if got := r.APIs(); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("APIs %q: those of the key stay out when policies bring their own", got)
	}
	a := access(t, r, "x")
	for name, c := range map[string]struct{ got, want any }{
		"versions":              {a.Versions, `[{v1 [A]} {v2 [A B]} {v3 [B]}]`},
		"allowed_urls":          {a.AllowedURLs, `[{/a GET,POST [A B]} {/b GET [B]}]`},
		"restricted_types":      {a.RestrictedTypes, `[{T a,b [A B]} {U * [B]}]`},
		"allowed_types":         {a.AllowedTypes, `[{A a,b [A B]}]`},
		"field_access_rights":   {a.FieldAccess, `[{T.f -1 B} {T.g 9 A}]`},
		"endpoints":             {a.Endpoints, `[{/e GET 5 B}]`},
		"disable_introspection": {a.DisableIntrospection, `{true B}`},
	} {
		if got := render(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if _, ok := r.For("own"); ok {
		t.Error("the key's own list is used beside that of its policies")
	}
}

// render writes lists compactly; A and B are entries of policies a and b.
func render(v any) string {
	from := func(all ...Origin) string {
		var s []string
		for _, o := range all {
			if o.Kind != PolicyEntry {
				s = append(s, o.String())
				continue
			}
			s = append(s, strings.ToUpper(o.ID))
		}
		return strings.Join(s, " ")
	}
	var parts []string
	switch v := v.(type) {
	case []Item[string]:
		for _, i := range v {
			parts = append(parts, fmt.Sprintf("{%s [%s]}", i.Value, from(i.From...)))
		}
	case []Item[definition.AllowedURL]:
		for _, i := range v {
			parts = append(parts, fmt.Sprintf("{%s %s [%s]}", i.Value.URL, strings.Join(i.Value.Methods, ","), from(i.From...)))
		}
	case []Item[definition.TypeFields]:
		for _, i := range v {
			parts = append(parts, fmt.Sprintf("{%s %s [%s]}", i.Value.Name, strings.Join(i.Value.Fields, ","), from(i.From...)))
		}
	case []Value[definition.FieldAccess]:
		for _, i := range v {
			parts = append(parts, fmt.Sprintf("{%s.%s %d %s}", i.Value.TypeName, i.Value.FieldName, i.Value.Limits.MaxQueryDepth, from(i.From)))
		}
	case []EndpointRate:
		for _, i := range v {
			parts = append(parts, fmt.Sprintf("{%s %s %v %s}", i.Path, i.Method, i.Rate.Calls, from(i.Rate.From)))
		}
	case Value[bool]:
		return fmt.Sprintf("{%v %s}", v.Value, from(v.From))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func TestMergingLeavesPoliciesAsTheyAre(t *testing.T) {
	s, set := world(t, `{"apply_policies": ["a", "b"]}`,
		`{"id": "a", "tags": ["t"], "access_rights": {"x": {"allowed_urls": [{"url": "/a", "methods": ["GET"]}]}}}`,
		`{"id": "b", "tags": ["u"], "access_rights": {"x": {"allowed_urls": [{"url": "/a", "methods": ["PUT"]}]}}}`)
	before, _ := json.Marshal([]any{s, set.Get("a"), set.Get("b")})
	r, err := Effective(s, set)
	if err != nil {
		t.Fatal(err)
	}
	access(t, r, "x")
	if after, _ := json.Marshal([]any{s, set.Get("a"), set.Get("b")}); string(after) != string(before) {
		t.Errorf("changed to %s", after)
	}
}

func TestInactive(t *testing.T) {
	const on, off = `{"id": "a", "access_rights": {"x": {}}}`, `{"id": "b", "is_inactive": true, "access_rights": {"x": {}}}`
	for _, c := range []struct {
		name, session string
		policies      []string
		want          bool
	}{
		{"own flag", `{"is_inactive": true, "access_rights": {"x": {}}}`, nil, true},
		{"neither", `{"apply_policies": ["a"]}`, []string{on}, false},
		{"any policy", `{"apply_policies": ["a", "b"]}`, []string{on, off}, true},
		{"a policy that denies", `{"apply_policies": ["a"]}`, []string{`{"id": "a", "state": "deny", "access_rights": {"x": {}}}`}, true},
		{"a draft works", `{"apply_policies": ["a"]}`, []string{`{"id": "a", "state": "draft", "access_rights": {"x": {}}}`}, false},
		{"own flag of a key with policies is not asked", `{"is_inactive": true, "apply_policies": ["a"]}`, []string{on}, false},
	} {
		if got := effective(t, c.session, c.policies...).Inactive; got.Value != c.want {
			t.Errorf("%s: %+v, want %v", c.name, got, c.want)
		}
	}
}

func TestTagsAndMetaData(t *testing.T) {
	r := effective(t, `{"apply_policies": ["a", "b"], "tags": ["k", "t"], "meta_data": {"own": "k", "m": "k"}}`,
		`{"id": "a", "tags": ["t"], "meta_data": {"m": "a", "n": {"x": 1}}, "access_rights": {"x": {}}}`,
		`{"id": "b", "tags": ["u"], "meta_data": {"n": "b"}, "access_rights": {"x": {}}}`)
	var tags []string
	for _, i := range r.Tags {
		tags = append(tags, i.Value)
	}
	if !slices.Equal(tags, []string{"t", "u", "k"}) || len(r.Tags[0].From) != 2 {
		t.Errorf("tags %v", r.Tags)
	}
	for name, want := range map[string]string{"own": `"k" the key`, "m": `"a" policy a`, "n": `"b" policy b`} {
		if got := fmt.Sprintf("%s %s", r.Meta[name].Value, r.Meta[name].From); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestCounters(t *testing.T) {
	r := effective(t, `{"last_updated": "77", "rate": 5, "per": 0.5, "quota_max": 50, "quota_renewal_rate": 60,
		"access_rights": {"x": {"limit": {"quota_max": 7}}, "y": {}, "z": {"limit": {"rate": -1, "quota_max": -1}}, "slow": {"limit": {"rate": 0.5, "per": 1}}}}`)
	var n counter.Naming
	for _, c := range []struct {
		api         string
		rate, quota counter.Limit
	}{
		{"x", counter.Limit{Key: n.Rate("", "h", "77"), Kind: counter.Rate, Max: 5, Period: 500 * time.Millisecond}, counter.Limit{Key: n.Quota("x", "h"), Kind: counter.Quota, Max: 7}},
		{"y", counter.Limit{Key: n.Rate("", "h", "77"), Kind: counter.Rate, Max: 5, Period: 500 * time.Millisecond}, counter.Limit{Key: n.Quota("", "h"), Kind: counter.Quota, Max: 50, Period: time.Minute}},
		{"z", counter.Limit{}, counter.Limit{}},
		{"slow", counter.Limit{Key: n.Rate("slow", "h", "77"), Kind: counter.Rate, Max: 1, Period: 2 * time.Second}, counter.Limit{Key: n.Quota("", "h"), Kind: counter.Quota, Max: 50, Period: time.Minute}},
	} {
		a := access(t, r, c.api)
		rate, hasRate := a.RateLimit(n, "h")
		quota, hasQuota := a.QuotaLimit(n, "h")
		if rate != c.rate || hasRate != (c.rate.Max > 0) || quota != c.quota || hasQuota != (c.quota.Max > 0) {
			t.Errorf("%s:\n got %+v %v %+v %v\nwant %+v %+v", c.api, rate, hasRate, quota, hasQuota, c.rate, c.quota)
		}
		for _, l := range []counter.Limit{rate, quota} {
			if err := counter.Check([]counter.Limit{l}); l.Key != "" && err != nil {
				t.Error(err)
			}
		}
	}
	if got := r.QuotaScopes(); !slices.Equal(got, []string{"", "x", "z"}) {
		t.Errorf("quota scopes %q", got)
	}
}

func TestLimitsBeyondWhatCountersHoldAreCut(t *testing.T) {
	r := effective(t, `{"rate": 1e300, "per": 1e300, "quota_max": 9223372036854775807, "quota_renewal_rate": 9223372036854775807, "access_rights": {"x": {}}}`)
	rate, _ := access(t, r, "x").RateLimit(counter.Naming{}, "h")
	quota, _ := access(t, r, "x").QuotaLimit(counter.Naming{}, "h")
	if err := counter.Check([]counter.Limit{rate, quota}); err != nil {
		t.Error(err)
	}
}

// Lists of many elements are united as lists of few are, also where one grows from
// the one to the other.
func TestListsOfAllLengthsAreUnited(t *testing.T) {
	urls := func(from, to int, method string) string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(`{"url": "/%d", "methods": [%q]}`, i, method))
		}
		return strings.Join(all, ",")
	}
	for n := range 4 * few {
		policy := func(id string, from int, method string) string {
			return fmt.Sprintf(`{"id": %q, "access_rights": {"x": {"allowed_urls": [%s]}}}`, id, urls(from, from+n, method))
		}
		r := effective(t, `{"apply_policies": ["a", "b"]}`, policy("a", 0, "GET"), policy("b", n/2, "PUT"))
		got := access(t, r, "x").AllowedURLs
		if len(got) != n+n/2 {
			t.Fatalf("%d and %d lists with %d in common: %d", n, n, n-n/2, len(got))
		}
		for i, item := range got {
			want := "GET"
			switch {
			case i >= n:
				want = "PUT"
			case i >= n/2:
				want = "GET PUT"
			}
			if item.Value.URL != fmt.Sprintf("/%d", i) || strings.Join(item.Value.Methods, " ") != want || len(item.From) != len(item.Value.Methods) {
				t.Errorf("of %d, element %d is %+v, want %s", n, i, item, want)
			}
		}
	}
}

func TestRightsThatAreMadeAgainAreNew(t *testing.T) {
	rich, richPolicies := world(t, `{"apply_policies": ["a", "b"]}`,
		`{"id": "a", "is_inactive": true, "access_rights": {"x": {}}}`, `{"id": "b", "rate": 5, "per": 1, "access_rights": {"x": {}}}`)
	poor, poorPolicies := world(t, `{"apply_policies": ["c"]}`, `{"id": "c", "access_rights": {"y": {}}}`)
	var r Rights
	var a Access
	if err := r.Enforce(rich, richPolicies); err != nil || !r.Fill(&a, "x") {
		t.Fatal(err)
	}
	r.Forget()
	if err := r.Enforce(poor, poorPolicies); err != nil {
		t.Fatal(err)
	}
	if r.Inactive.Value || !slices.Equal(r.Policies, []string{"c"}) || r.Fill(&a, "x") {
		t.Errorf("%+v", r)
	}
	if !r.Fill(&a, "y") || a.Rate.Calls != 0 || a.API != "y" {
		t.Errorf("%+v", a)
	}
}

func TestWhatIsFilledAgainIsLikeWhatIsMadeAnew(t *testing.T) {
	entry := func(n int) string {
		var versions, urls, types, fields, endpoints []string
		for i := range n {
			versions = append(versions, fmt.Sprintf("%q", fmt.Sprint("v", n-i)))
			urls = append(urls, fmt.Sprintf(`{"url": "/%d", "methods": ["M%d"]}`, i, n))
			types = append(types, fmt.Sprintf(`{"name": "T%d", "fields": ["f%d"]}`, i, n))
			fields = append(fields, fmt.Sprintf(`{"type_name": "T", "field_name": "f%d", "limits": {"max_query_depth": %d}}`, i, n))
			endpoints = append(endpoints, fmt.Sprintf(`{"path": "/%d", "methods": [{"name": "GET", "limit": {"rate": %d, "per": 1}}]}`, i, n))
		}
		list := func(all []string) string { return "[" + strings.Join(all, ", ") + "]" }
		return fmt.Sprintf(`{"versions": %s, "allowed_urls": %s, "restricted_types": %s, "allowed_types": %s, "field_access_rights": %s, "endpoints": %s}`,
			list(versions), list(urls), list(types), list(types), list(fields), list(endpoints))
	}
	var r Rights
	var a Access
	sizes := []int{3, 1, 12, 0, 2, 9, 20, 1}
	for i, n := range sizes {
		s, policies := world(t, `{"apply_policies": ["a", "b"]}`,
			fmt.Sprintf(`{"id": "a", "access_rights": {"x": %s}}`, entry(n)), fmt.Sprintf(`{"id": "b", "access_rights": {"x": %s}}`, entry(sizes[(i+3)%len(sizes)])))
		if err := r.Enforce(s, policies); err != nil || !r.Fill(&a, "x") {
			t.Fatal(err)
		}
		if want := access(t, &r, "x"); fmt.Sprintf("%+v", a) != fmt.Sprintf("%+v", *want) {
			t.Errorf("%d items: filled again\n%+v, anew\n%+v", n, a, *want)
		}
		r.Forget()
		if i%2 == 0 {
			a.Forget()
		}
	}
}
