package rights

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
)

const (
	strict = `{"id": "strict", "rate": 5, "per": 1, "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"x": {}}}`
	trial  = `{"id": "trial", "enforcement": "measure", "rate": 2, "per": 1, "quota_max": 3, "quota_renewal_rate": 60, "access_rights": {"x": {}, "y": {}}}`
)

// What a policy would refuse is measured where no other enforces the same group.
func TestPoliciesThatMeasureNeitherLoosenNorTightenOthers(t *testing.T) {
	const quota = `{"id": "quota", "enforcement": "measure", "quota_max": 3, "quota_renewal_rate": 60, "partitions": {"quota": true}}`
	const base = `{"id": "base", "rate": 5, "per": 1, "partitions": {"acl": true, "rate_limit": true}, "access_rights": {"x": {}}}`
	for _, c := range []struct {
		name, session string
		policies      []string
		want          ReportOnly
		rate          float64
		quota         int64
		apis          int
	}{
		{"alone", `{"apply_policies": ["trial"]}`, []string{trial}, ReportOnly{"trial", "trial", "trial", "trial"}, 2, 3, 2},
		{"beside one that enforces all", `{"apply_policies": ["trial", "strict"]}`, []string{trial, strict}, ReportOnly{}, 5, 10, 1},
		{"in another order", `{"apply_policies": ["strict", "trial"]}`, []string{trial, strict}, ReportOnly{}, 5, 10, 1},
		{"a group that nobody enforces", `{"apply_policies": ["base", "quota"]}`, []string{base, quota}, ReportOnly{Quota: "quota"}, 5, 3, 1},
		{"limits alone, and the key's own list", `{"apply_policies": ["quota"], "access_rights": {"x": {}}}`, []string{quota}, ReportOnly{Quota: "quota"}, 0, 3, 1},
		{"none", `{"apply_policies": ["strict"]}`, []string{strict}, ReportOnly{}, 5, 10, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := effective(t, c.session, c.policies...)
			if got := r.ReportOnly(); got != c.want {
				t.Errorf("measured %+v, want %+v", got, c.want)
			}
			a := access(t, r, "x")
			if a.Rate.Calls != c.rate || a.Quota.Max != c.quota || len(r.APIs()) != c.apis {
				t.Errorf("rate %v, quota %d, APIs %v", a.Rate.Calls, a.Quota.Max, r.APIs())
			}
		})
	}
}

// A policy on trial takes nothing away of what a key's own rights refuse.
func TestWhatKeysSayThemselvesHoldsBesidePoliciesOnTrial(t *testing.T) {
	const loose = `{"id": "loose", "enforcement": "measure", "rate": 1000, "per": 1, "quota_max": 1000, "max_query_depth": 100, "access_rights": {"x": {}, "y": {}}}`
	const parts = `{"id": "parts", "partitions": {"acl": true}, "access_rights": {"x": {}, "z": {}}}`
	for _, c := range []struct {
		name, session string
		want          ReportOnly
		rate          float64
		quota         int64
		depth         int
		apis          string
	}{
		{"a list", `{"apply_policies": ["loose"], "access_rights": {"x": {}}}`, ReportOnly{Rate: "loose", Quota: "loose", Complexity: "loose"}, 1000, 1000, 100, "[x]"},
		{"numbers", `{"apply_policies": ["loose"], "rate": 5, "per": 1, "quota_max": 7, "max_query_depth": 3}`, ReportOnly{Access: "loose"}, 5, 7, 3, "[x y]"},
		{"one number", `{"apply_policies": ["loose"], "quota_max": 7}`, ReportOnly{Access: "loose", Rate: "loose", Complexity: "loose"}, 1000, 7, 100, "[x y]"},
		{"numbers that limit nothing", `{"apply_policies": ["loose"], "quota_max": -1, "rate": -1, "max_query_depth": -1}`, ReportOnly{"loose", "loose", "loose", "loose"}, 1000, 1000, 100, "[x y]"},
		{"numbers of an entry", `{"apply_policies": ["loose"], "access_rights": {"x": {"limit": {"rate": 2, "per": 1, "quota_max": 4}}}}`, ReportOnly{Complexity: "loose"}, 2, 4, 100, "[x]"},
		{"an entry that other lists replace", `{"apply_policies": ["loose", "parts"], "access_rights": {"x": {"limit": {"quota_max": 4}}}}`, ReportOnly{Rate: "loose", Quota: "loose", Complexity: "loose"}, 1000, 1000, 100, "[x z]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := effective(t, c.session, loose, parts)
			if got := r.ReportOnly(); got != c.want {
				t.Errorf("measured %+v, want %+v", got, c.want)
			}
			a := access(t, r, "x")
			if a.Rate.Calls != c.rate || a.Quota.Max != c.quota || a.Depth.Value != c.depth || fmt.Sprint(r.APIs()) != c.apis {
				t.Errorf("rate %v, quota %d, depth %d, APIs %v", a.Rate.Calls, a.Quota.Max, a.Depth.Value, r.APIs())
			}
		})
	}
}

func TestAPolicyOnTrialSwitchesNoKeyOn(t *testing.T) {
	const strictToo = `{"id": "enforced", "access_rights": {"x": {}}}`
	for session, want := range map[string]Value[bool]{
		`{"is_inactive": true, "apply_policies": ["trial"]}`:             {Value: true, From: Origin{Kind: Key}},
		`{"is_inactive": true, "apply_policies": ["trial", "enforced"]}`: {From: Origin{Kind: Default}},
		`{"apply_policies": ["trial"]}`:                                  {From: Origin{Kind: Default}},
	} {
		if got := effective(t, session, trial, strictToo).Inactive; got != want {
			t.Errorf("%s: %+v, want %+v", session, got, want)
		}
	}
}

// A list on trial does not open to a key what its own list does not.
func TestListsOfThoseThatEnforceRefuseBesideOnesOnTrial(t *testing.T) {
	const master = `{"id": "master", "enforcement": "measure", "rate": 2, "per": 1}`
	r := effective(t, `{"apply_policies": ["master"], "access_rights": {"x": {}}}`, master)
	if m := r.ReportOnly(); m.Access != "" || m.Rate != "master" {
		t.Errorf("measured %+v", m)
	}
	r = effective(t, `{"apply_policies": ["master"]}`, master)
	if m := r.ReportOnly(); m.Access != "master" {
		t.Errorf("a key without any list: measured %+v", m)
	}
	if a := r.Unlisted("z"); a.Rate.Calls != 2 || a.API != "z" {
		t.Errorf("unlisted: %+v", a)
	}
}

func TestCalendarComesWithTheQuotaThatWins(t *testing.T) {
	const month = `{"id": "month", "quota_max": 100, "quota_renewal_calendar": "month", "quota_renewal_zone": "Asia/Tokyo", "access_rights": {"x": {}}}`
	const rolling = `{"id": "rolling", "quota_max": 50, "quota_renewal_rate": 60, "access_rights": {"x": {}}}`
	const larger = `{"id": "larger", "quota_max": 500, "quota_renewal_rate": 60, "access_rights": {"x": {}}}`
	const endless = `{"id": "endless", "quota_max": -1, "quota_renewal_calendar": "day", "access_rights": {"x": {}}}`
	for _, c := range []struct {
		session        string
		policies       []string
		max            int64
		calendar, zone string
		renewal        int64
		period         time.Duration
	}{
		{`{"apply_policies": ["month"]}`, []string{month}, 100, "month", "Asia/Tokyo", 0, 33 * 24 * time.Hour},
		{`{"apply_policies": ["month", "rolling"]}`, []string{month, rolling}, 100, "month", "Asia/Tokyo", 0, 33 * 24 * time.Hour},
		{`{"apply_policies": ["rolling", "month"]}`, []string{month, rolling}, 100, "month", "Asia/Tokyo", 0, 33 * 24 * time.Hour},
		{`{"apply_policies": ["month", "larger"]}`, []string{month, larger}, 500, "", "", 60, time.Minute},
		{`{"apply_policies": ["endless"]}`, []string{endless}, -1, "", "", 0, 0},
		{`{"quota_max": 7, "quota_renewal_calendar": "week", "access_rights": {"x": {}}}`, nil, 7, "week", "", 0, 8 * 24 * time.Hour},
		{`{"quota_max": 7, "access_rights": {"x": {"limit": {"quota_max": 2, "quota_renewal_calendar": "hour"}}}}`, nil, 2, "hour", "", 0, 3 * time.Hour},
	} {
		a := access(t, effective(t, c.session, c.policies...), "x")
		q := a.Quota
		if q.Max != c.max || q.Calendar != c.calendar || q.Zone != c.zone || q.Renewal != c.renewal {
			t.Errorf("%s: %+v", c.session, q)
		}
		if l, ok := a.QuotaLimit(counter.Naming{}, "k"); ok && l.Period != c.period {
			t.Errorf("%s: period %s, want %s", c.session, l.Period, c.period)
		}
	}
}

func TestEndpointsAreCountedForTheKeyAndApart(t *testing.T) {
	r := effective(t, `{"last_updated": "7", "access_rights": {"x": {"endpoints": [
		{"path": "/a", "methods": [{"name": "GET", "limit": {"rate": 3, "per": 1}}, {"name": "POST", "limit": {"rate": 1, "per": 60}}]}]}}}`)
	a := access(t, r, "x")
	if len(a.Endpoints) != 2 {
		t.Fatalf("%+v", a.Endpoints)
	}
	got := a.EndpointNames(counter.Naming{Tagged: true}, "k").Limit(&a.Endpoints[1])
	want := counter.Limit{Key: "rate-x:POST:/a-{k}-7", Kind: counter.Rate, Max: 1, Period: time.Minute}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAPolicyOnTrialKeepsNoKeyFromBeingUsed(t *testing.T) {
	const perAPI = `{"id": "each", "enforcement": "measure", "partitions": {"per_api": true}, "access_rights": {"x": {"limit": {"quota_max": 3}}}}`
	const parts = `{"id": "parts", "partitions": {"acl": true, "quota": true}, "quota_max": 10, "access_rights": {"x": {}}}`
	r := effective(t, `{"apply_policies": ["each", "parts"]}`, perAPI, parts)
	if a := access(t, r, "x"); a.Quota.Max != 10 || r.ReportOnly().Quota != "" || r.ReportOnly().Rate != "each" {
		t.Errorf("quota %d, measured %+v", a.Quota.Max, r.ReportOnly())
	}
}
