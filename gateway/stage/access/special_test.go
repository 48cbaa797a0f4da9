package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

func parsed[T any](t testing.TB, text string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// granted is what a session may do with the API "sample".
func granted(t *testing.T, a *Access, session string, policies ...string) *pipeline.Exchange {
	t.Helper()
	var all []*definition.Policy
	for _, text := range policies {
		all = append(all, parsed[definition.Policy](t, text))
	}
	ex := exchange(parsed[definition.Session](t, session), definition.NewPolicySet(all), nil)
	if a.Compile(sample).Handle(ex) != pipeline.Next {
		t.Fatalf("%s: refused: %+v", session, ex.Rejection)
	}
	return ex
}

func TestMostKeysHaveNothingSpecial(t *testing.T) {
	a := New(Options{Triggers: true, Log: quiet()})
	for _, session := range []string{
		`{"rate": 5, "per": 1, "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"sample": {}}}`,
		`{"throttle_interval": 1, "throttle_retry_limit": 3, "access_rights": {"sample": {}}}`, // nothing to wait for
		`{"rate": 5, "per": 1, "throttle_retry_limit": 3, "access_rights": {"sample": {}}}`,
		`{"quota_max": -1, "quota_renewal_calendar": "day", "access_rights": {"sample": {}}}`,
		`{"monitor": {"trigger_limits": [50]}, "access_rights": {"sample": {}}}`, // of no quota
		`{"access_rights": {"sample": {"endpoints": [{"path": "/a", "methods": [{"name": "GET", "limit": {"rate": -1, "per": 0}}]}]}}}`,
	} {
		if sp := granted(t, a, session).Grant.Special; sp != nil {
			t.Errorf("%s: %+v", session, sp)
		}
	}
}

func TestWhatFewKeysHave(t *testing.T) {
	a := New(Options{Triggers: true, Log: quiet()})
	session := `{"rate": 5, "per": 1, "throttle_interval": 0.25, "throttle_retry_limit": 3, "quota_max": 10,
		"quota_renewal_calendar": "week", "quota_renewal_zone": "Asia/Tokyo", "monitor": {"trigger_limits": [50, 90]}, "access_rights": {"sample": {}}}`
	one, two := granted(t, a, session).Grant.Special, granted(t, a, session).Grant.Special
	if one.Throttle != (pipeline.Throttle{Interval: 250 * time.Millisecond, Retries: 3}) || fmt.Sprint(one.Triggers) != "[50 90]" {
		t.Errorf("%+v", one)
	}
	if one.Calendar == nil || one.Calendar != two.Calendar || one.Calendar.Unit().String() != "week" || one.Calendar.Zone() != "Asia/Tokyo" {
		t.Errorf("calendars %v and %v", one.Calendar, two.Calendar)
	}
	if sp := granted(t, New(Options{Log: quiet()}), `{"quota_max": 5, "monitor": {"trigger_limits": [50]}, "access_rights": {"sample": {}}}`).Grant.Special; sp != nil {
		t.Errorf("nobody wants to know of thresholds: %+v", sp)
	}
}

func TestRatesOfSingleCallsAreSharedAsRulesAndCountedApart(t *testing.T) {
	a := New(Options{Log: quiet()})
	const session = `{"last_updated": "7", "access_rights": {"sample": {"endpoints": [
		{"path": "/things/{id}", "methods": [{"name": "GET", "limit": {"rate": 3, "per": 10}}]}, {"path": "/b", "methods": []}]}}}`
	one, two := granted(t, a, session).Grant.Special.Endpoints.(*endpointRates), granted(t, a, session).Grant.Special.Endpoints.(*endpointRates)
	if one.endpointRules != two.endpointRules {
		t.Error("keys with the same rates do not share them")
	}
	want := counter.Limit{Key: "rate-sample:GET:/things/{id}-0123456789abcdef-7", Kind: counter.Rate, Max: 3, Period: 10 * time.Second}
	var room []byte
	limit := func(method, path string) (l *counter.Limit) {
		l, room = one.Limit([]byte(method), []byte(path), room)
		return l
	}
	got := limit("GET", "/things/5")
	if got == nil || *got != want || limit("GET", "/things/6") != got || limit("GET", "/things;a//6") != got {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, c := range [][2]string{{"POST", "/things/5"}, {"GET", "/things"}, {"GET", "/b"}} {
		if got := limit(c[0], c[1]); got != nil {
			t.Errorf("%v: %+v", c, got)
		}
	}
	method, path := []byte("GET"), []byte("/things/5")
	if n := testing.AllocsPerRun(100, func() { _, room = one.Limit(method, path, room) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func spared(ex *pipeline.Exchange) string {
	var text strings.Builder
	for _, one := range ex.ReportOnly {
		if one.Reason != pipeline.ReasonNone {
			text.WriteString(one.Reason.String() + " of " + one.Policy + ";")
		}
	}
	return text.String()
}

func TestAccessRightsOnTrialNoteWhatTheyWouldRefuse(t *testing.T) {
	const trial = `{"id": "trial", "org_id": "org1", "enforcement": "measure", "access_rights": {"sample": {"allowed_urls": [{"url": "^/other", "methods": ["GET"]}]}}}`
	const elsewhere = `{"id": "elsewhere", "org_id": "org1", "enforcement": "measure", "rate": 7, "per": 1, "access_rights": {"other": {}}}`
	a := New(Options{Log: quiet()})
	if got := spared(granted(t, a, `{"org_id": "org1", "apply_policies": ["trial"]}`, trial)); got != "url_denied of trial;" {
		t.Errorf("noted %q", got)
	}
	ex := granted(t, a, `{"org_id": "org1", "apply_policies": ["elsewhere"]}`, elsewhere)
	if got := spared(ex); got != "access_denied of elsewhere;" || ex.Grant.Limits()[0].Max != 7 {
		t.Errorf("noted %q under %+v", got, ex.Grant.Limits())
	}
	// A list on trial opens the APIs of its own organisation alone.
	foreign := exchange(parsed[definition.Session](t, `{"org_id": "org2", "apply_policies": ["elsewhere"]}`),
		definition.NewPolicySet([]*definition.Policy{parsed[definition.Policy](t, `{"id": "elsewhere", "org_id": "org2", "enforcement": "measure", "access_rights": {"other": {}}}`)}), nil)
	if New(Options{Log: quiet()}).Compile(sample).Handle(foreign) != pipeline.Rejected || foreign.Rejection != denied {
		t.Errorf("of another organisation: %+v", foreign.Rejection)
	}
}
