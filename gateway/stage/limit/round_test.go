package limit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
)

// sharing is an API with rates that all callers share.
func sharing(t testing.TB, more string) (*definition.API, *definition.Version) {
	t.Helper()
	api := new(definition.API)
	text := `{"api_id": "sample", "proxy": {"listen_path": "/", "target_url": "http://a"}, ` + more + `}`
	if err := json.Unmarshal([]byte(text), api); err != nil {
		t.Fatal(err)
	}
	if err := api.Validate(); err != nil {
		t.Fatal(err)
	}
	return api, api.Unversioned()
}

const pathRates = `"version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {"rate_limit": [
	{"path": "/items/{id}", "method": "GET", "rate": 2, "per": 10}, {"path": "/search", "rate": 1, "per": 10}]}}}}`

func request(grant *pipeline.Grant, method, path string) *pipeline.Exchange {
	ex := exchange(grant)
	ex.Call = &wire.Call{Method: []byte(method), Started: start}
	ex.Path = []byte(path)
	return ex
}

// admitted counts how many of so many calls pass, and tells why the last did not.
func admitted(s pipeline.Stage, calls int, of func() *pipeline.Exchange) (passed int, why string) {
	for range calls {
		ex := of()
		if s.Handle(ex) == pipeline.Next {
			passed++
		} else {
			why = fmt.Sprintf("%d %s %d", ex.Rejection.Status, ex.Rejection.Message, ex.RetryAfter)
		}
	}
	return passed, why
}

func TestAllCallersOfAnAPIShareItsRate(t *testing.T) {
	def, version := sharing(t, `"global_rate_limit": {"rate": 3, "per": 10}`)
	l := limiter(memoryAtStart())
	keyed, err := l.Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	def.UseKeyless = true
	keyless, err := l.CompileShared(def, version)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := admitted(keyless, 2, func() *pipeline.Exchange { return request(nil, "GET", "/") }); n != 2 {
		t.Fatalf("%d of 2 pass without a key", n)
	}
	n, why := admitted(keyed, 5, func() *pipeline.Exchange { return request(grantOf(100, 100), "GET", "/") })
	if n != 1 || why != "429 API Rate Limit Exceeded 10" {
		t.Errorf("%d more pass with a key: %s", n, why)
	}
}

// The key's own limits are told first, and none is charged for what another
// refuses.
func TestACallThatTheAPIRefusesCostsItsKeyNothing(t *testing.T) {
	def, version := sharing(t, `"global_rate_limit": {"rate": 3, "per": 10}`)
	memory := memoryAtStart()
	s, err := limiter(memory).Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	grant := grantOf(100, 10)
	of := func() *pipeline.Exchange { return request(grant, "GET", "/") }
	if n, _ := admitted(s, 20, of); n != 3 {
		t.Fatalf("%d pass", n)
	}
	if rate, quota := free(t, memory, grant); rate != 97 || quota != 7 {
		t.Errorf("%d and %d are left, want 97 and 7", rate, quota)
	}
	used := grantOf(1, 0)
	if n, why := admitted(s, 2, func() *pipeline.Exchange { return request(used, "GET", "/") }); n != 0 || why != "429 Rate Limit Exceeded 10" {
		t.Errorf("%d pass, %s", n, why)
	}
}

func TestPathsHaveRatesOfTheirOwn(t *testing.T) {
	def, version := sharing(t, pathRates)
	s, err := limiter(memoryAtStart()).Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/items/1", 2},
		{"GET", "/items/2", 0},
		{"POST", "/items/2", 9},
		{"GET", "/items", 9},
		{"POST", "/search", 1},
		{"GET", "/search/deep", 0},
		{"GET", "/search;v=1", 0}, // as some upstreams read it
		{"GET", "/search%2Fdeep", 0},
		{"GET", "/items//1", 0},
		{"GET", "/other", 9},
	} {
		n, why := admitted(s, 9, func() *pipeline.Exchange { return request(grantOf(0, 0), c.method, c.path) })
		if n != c.want || n < 9 && why != "429 API Rate Limit Exceeded 10" {
			t.Errorf("%s %s: %d pass, want %d (%s)", c.method, c.path, n, c.want, why)
		}
	}
}

func TestRatesThatAreOffAreNoStage(t *testing.T) {
	l := limiter(memoryAtStart())
	for _, more := range []string{
		`"use_keyless": true`, `"use_keyless": true, "disable_rate_limit": true, "global_rate_limit": {"rate": 3, "per": 10}`,
		`"use_keyless": true, "global_rate_limit": {"rate": 3, "per": 10, "disabled": true}`,
		`"global_rate_limit": {"rate": 3, "per": 10}`, // has keys: the stage for those does it
	} {
		if s, err := l.CompileShared(sharing(t, more)); s != nil || err != nil {
			t.Errorf("%s: %v, %v", more, s, err)
		}
	}
	if s, err := l.Compile(sharing(t, `"global_rate_limit": {"rate": 3, "per": 10, "disabled": true}`)); s != pipeline.Stage(l.plain) || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

// endpoints is a rate for calls with one method.
type endpoints struct {
	method string
	limit  counter.Limit
}

func (e *endpoints) Limit(method, _, room []byte) (*counter.Limit, []byte) {
	if string(method) != e.method {
		return nil, room
	}
	return &e.limit, room
}

func TestSingleCallsOfAKeyHaveARateBesideTheKeys(t *testing.T) {
	memory := memoryAtStart()
	s := compiled(t, memory)
	grant := grantOf(5, 100)
	grant.Special = &pipeline.Special{Endpoints: &endpoints{"POST", counter.Limit{Key: "rate-e", Kind: counter.Rate, Max: 2, Period: 30 * time.Second}}}
	if n, why := admitted(s, 4, func() *pipeline.Exchange { return request(grant, "POST", "/") }); n != 2 || why != "429 Rate Limit Exceeded 30" {
		t.Errorf("%d posts pass: %s", n, why)
	}
	if n, why := admitted(s, 9, func() *pipeline.Exchange { return request(grant, "GET", "/") }); n != 3 || why != "429 Rate Limit Exceeded 10" {
		t.Errorf("%d others pass: %s", n, why)
	}
	if _, quota := free(t, memory, grant); quota != 95 {
		t.Errorf("%d left of the quota", quota)
	}
}

func TestRulesOnTrialNoteWhatTheyWouldRefuse(t *testing.T) {
	memory := memoryAtStart()
	s := compiled(t, memory)
	grant := grantOf(2, 3)
	grant.Special = &pipeline.Special{ReportOnly: pipeline.ReportOnlyPolicies{Rate: "trial", Quota: "trial"}}
	var reasons []string
	for range 5 {
		ex := request(grant, "GET", "/")
		if s.Handle(ex) != pipeline.Next || !ex.Charge.Whole {
			t.Fatalf("refused: %+v", ex.Rejection)
		}
		var text strings.Builder
		for _, spared := range ex.ReportOnly {
			if spared.Reason != pipeline.ReasonNone {
				text.WriteString(spared.Reason.String() + " of " + spared.Policy + ";")
			}
		}
		reasons = append(reasons, text.String())
	}
	want := []string{"", "", "rate_limit of trial;", "rate_limit of trial;quota_exceeded of trial;", "rate_limit of trial;quota_exceeded of trial;"}
	if fmt.Sprint(reasons) != fmt.Sprint(want) {
		t.Errorf("noted %q, want %q", reasons, want)
	}
}

// A rate on trial does not hide a quota that refuses, nor is it charged for it.
func TestRulesBesideOnesOnTrialRefuse(t *testing.T) {
	s := compiled(t, memoryAtStart())
	grant := grantOf(1, 3)
	grant.Special = &pipeline.Special{ReportOnly: pipeline.ReportOnlyPolicies{Rate: "trial"}}
	if n, why := admitted(s, 5, func() *pipeline.Exchange { return request(grant, "GET", "/") }); n != 3 || why != "403 Quota exceeded 0" {
		t.Errorf("%d pass: %s", n, why)
	}
}

func TestARateOnTrialIsPassedBeforeTheOtherLimitsAreAsked(t *testing.T) {
	l := limiter(memoryAtStart())
	grant := grantOf(1, 10)
	grant.Special = &pipeline.Special{ReportOnly: pipeline.ReportOnlyPolicies{Rate: "trial"}}
	for i := range 3 {
		ex := request(grant, "POST", "/")
		if v := l.chargeRate(ex); v != pipeline.Next || ex.Charge.Rate != 1 || ex.Rejection != nil || ex.RetryAfter != 0 {
			t.Fatalf("call %d: verdict %d, rated %d, %+v", i, v, ex.Charge.Rate, ex.Rejection)
		}
		if noted := ex.ReportOnly[0].Reason == pipeline.ReasonRateLimit; noted != (i > 0) {
			t.Errorf("call %d: noted %v", i, ex.ReportOnly)
		}
		if stageOf(t, l).Handle(ex) != pipeline.Next || ex.Charge.Counts[grant.Quota].Remaining != int64(9-i) {
			t.Errorf("call %d: %d left", i, ex.Charge.Counts[grant.Quota].Remaining)
		}
	}
}

func TestQuotasRenewByTheCalendar(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 31, 23, 59, 30, 0, vienna)
	memory := counter.NewMemory(func() time.Time { return now })
	s := compiled(t, memory)
	clock, err := definition.NewQuotaClock(definition.Calendar{Every: "month", Zone: "Europe/Vienna"})
	if err != nil {
		t.Fatal(err)
	}
	grant := grantOf(0, 2)
	grant.Special = &pipeline.Special{Calendar: clock}
	call := func() *pipeline.Exchange {
		ex := request(grant, "GET", "/")
		ex.Started = now
		return ex
	}
	november, december := time.Date(2026, 11, 1, 0, 0, 0, 0, vienna), time.Date(2026, 12, 1, 0, 0, 0, 0, vienna)
	for _, c := range []struct {
		at     time.Time
		passes int
		reset  time.Time
	}{
		{now, 2, november},
		{november.Add(-200 * time.Millisecond), 0, november},
		{november, 2, december},
		{december.Add(-time.Hour), 0, december},
		{december, 2, time.Date(2027, 1, 1, 0, 0, 0, 0, vienna)},
	} {
		now = c.at
		if n, why := admitted(s, 3, call); n != c.passes || why != "403 Quota exceeded 0" {
			t.Errorf("at %s: %d pass, want %d (%s)", c.at, n, c.passes, why)
		}
		ex := call()
		s.Handle(ex)
		if got := time.UnixMilli(ex.Charge.Counts[grant.Quota].ResetAt); !got.Equal(c.reset) {
			t.Errorf("at %s it renews at %s, want %s", c.at, got, c.reset)
		}
	}
}

// Who asks at the last moment of a period, when its counter is closed already,
// does not get the next period's calls beside it.
func TestTheEveOfAPeriodCountsForTheNext(t *testing.T) {
	clock, err := definition.NewQuotaClock(definition.Calendar{Every: "day"})
	if err != nil {
		t.Fatal(err)
	}
	midnight := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC).UnixMilli()
	for before, end := range map[int64]int64{0: 86_400_000, 1: 86_400_000, 100: 86_400_000, 101: 0, 1000: 0, 5_000_000: 0} {
		rest := time.Duration(end+before) * time.Millisecond
		if got := untilRenewal(clock, midnight-before); got > rest-margin || got < rest-margin-grain || got%time.Millisecond != 0 {
			t.Errorf("%d ms before midnight: %s, want about %s", before, got, rest)
		}
	}
}

func TestDryRequestsOnlyLook(t *testing.T) {
	def, version := sharing(t, `"global_rate_limit": {"rate": 3, "per": 10}`)
	memory := memoryAtStart()
	s, err := limiter(memory).Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	grant := grantOf(5, 5)
	grant.Special = &pipeline.Special{Throttle: pipeline.Throttle{Interval: time.Hour, Retries: 9}}
	dry := func() *pipeline.Exchange {
		ex := request(grant, "GET", "/")
		ex.DryRun = &pipeline.DryRun{}
		return ex
	}
	if n, _ := admitted(s, 50, dry); n != 50 {
		t.Errorf("%d of 50 pass", n)
	}
	if rate, quota := free(t, memory, grant); rate != 5 || quota != 5 {
		t.Errorf("%d and %d are left", rate, quota)
	}
	admitted(s, 3, func() *pipeline.Exchange { return request(grant, "GET", "/") })
	if n, why := admitted(s, 1, dry); n != 0 || why != "429 API Rate Limit Exceeded 10" {
		t.Errorf("%d pass: %s", n, why)
	}
}

func TestManyLimitsDoNotAllocate(t *testing.T) {
	def, version := sharing(t, `"global_rate_limit": {"rate": 1000000000, "per": 10}, `+pathRates)
	clock, err := definition.NewQuotaClock(definition.Calendar{Every: "month", Zone: "Asia/Tokyo"})
	if err != nil {
		t.Fatal(err)
	}
	for name, special := range map[string]*pipeline.Special{
		"none": nil, "calendar": {Calendar: clock}, "trial": {ReportOnly: pipeline.ReportOnlyPolicies{Rate: "a", Quota: "a"}},
		"endpoints": {Endpoints: &endpoints{"GET", counter.Limit{Key: "e", Kind: counter.Rate, Max: 1 << 30, Period: time.Second}}},
	} {
		s, err := limiter(memoryAtStart()).Compile(def, version)
		if err != nil {
			t.Fatal(err)
		}
		for _, rate := range []int64{1, 1 << 30} { // refused, and not
			grant := grantOf(rate, 1<<40)
			grant.Special = special
			ex := request(grant, "GET", "/other")
			s.Handle(ex)
			if n := testing.AllocsPerRun(1000, func() { ex.ReportOnly = [pipeline.MaxReportOnly]pipeline.ReportOnlyRefusal{}; s.Handle(ex) }); n != 0 {
				t.Errorf("%s, rate %d: %v allocations", name, rate, n)
			}
		}
	}
}

func BenchmarkShared(b *testing.B) {
	def, version := sharing(b, `"global_rate_limit": {"rate": 1000000000, "per": 10}, `+pathRates)
	clock, err := definition.NewQuotaClock(definition.Calendar{Every: "month", Zone: "Asia/Tokyo"})
	if err != nil {
		b.Fatal(err)
	}
	plain := &definition.API{}
	for _, c := range []struct {
		name    string
		def     *definition.API
		version *definition.Version
		special *pipeline.Special
	}{{"key alone", plain, nil, nil}, {"key and API", def, version, nil}, {"calendar", plain, nil, &pipeline.Special{Calendar: clock}}} {
		b.Run(c.name, func(b *testing.B) {
			s, err := limiter(counter.NewMemory(nil)).Compile(c.def, c.version)
			if err != nil {
				b.Fatal(err)
			}
			grant := grantOf(1<<30, 1<<40)
			grant.Special = c.special
			ex := request(grant, "GET", "/other")
			b.ReportAllocs()
			for b.Loop() {
				s.Handle(ex)
			}
		})
	}
}
