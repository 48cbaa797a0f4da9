package traffic

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// moody is an upstream that answers as it is told, and counts.
type moody struct {
	url    string
	status atomic.Int64 // of calls
	health atomic.Int64 // of /health
	delay  atomic.Int64 // nanoseconds before an answer
	calls  atomic.Int64 // those of /health left out
	checks atomic.Int64
}

func newMoody(t testing.TB) *moody {
	m := &moody{}
	m.status.Store(200)
	m.health.Store(200)
	m.url = "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		if string(ctx.Path()) == "/health" {
			m.checks.Add(1)
			ctx.SetStatusCode(int(m.health.Load()))
			return
		}
		m.calls.Add(1)
		if d := time.Duration(m.delay.Load()); d > 0 {
			<-time.After(d)
		}
		ctx.SetStatusCode(int(m.status.Load()))
		ctx.SetBodyString(m.url)
	})
	return m
}

// balanced is a definition whose calls are spread over targets; more is added to
// its proxy part.
func balanced(id string, targets []any, more object) object {
	api := rig.APIDef(id, "http://127.0.0.1:1", true)
	proxy := api["proxy"].(object)
	proxy["enable_load_balancing"], proxy["target_list"] = true, targets
	maps.Copy(proxy, more)
	return api
}

// gets makes n calls and counts their statuses.
func (g *traffic) gets(n int, path string) map[int]int {
	g.T.Helper()
	statuses := make(map[int]int)
	for range n {
		statuses[rig.Call(g.T, http.MethodGet, g.Traffic+path, nil).Status]++
	}
	return statuses
}

func TestCallsAreSpreadOverTargetsByWeight(t *testing.T) {
	t.Parallel()
	a, b := newMoody(t), newMoody(t)
	g := newTraffic(t, nil, nil,
		balanced("weighted", []any{object{"url": a.url, "weight": 3}, object{"url": b.url, "weight": 1}}, nil),
		balanced("classic", []any{a.url, b.url, b.url}, nil),
	)
	if got := g.gets(100, "/weighted/x"); got[200] != 100 || a.calls.Swap(0) != 75 || b.calls.Swap(0) != 25 {
		t.Errorf("3 to 1: %v", got)
	}
	if got := g.gets(99, "/classic/x"); got[200] != 99 || a.calls.Load() != 33 || b.calls.Load() != 66 {
		t.Errorf("1 to 2: %v, %d, %d", got, a.calls.Load(), b.calls.Load())
	}
	if got := rig.Call(t, "GET", g.Telemetry+"/metrics", nil); !strings.Contains(got.Body, fmt.Sprintf("sluice_target_up{api=\"weighted\",target=%q} 1", a.url)) {
		t.Errorf("metrics: %s", got.Body)
	}
}

func TestATargetThatIsAwayCostsNoCall(t *testing.T) {
	t.Parallel()
	a, dead := newMoody(t), deadAddress(t)
	g := newTraffic(t, nil, nil, balanced("half", []any{a.url, dead}, object{"ejection": object{"failures": 3, "seconds": 60}}))
	if got := g.gets(40, "/half/x"); got[200] != 40 {
		t.Errorf("statuses %v", got)
	}
	// Nothing of a call was sent, so that one that must not be repeated goes on too.
	if got := rig.Call(t, "POST", g.Traffic+"/half/x", object{}); got.Status != 200 {
		t.Errorf("POST: %s", got)
	}
	metrics := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body
	for _, want := range []string{
		fmt.Sprintf("sluice_target_up{api=\"half\",target=%q} 0", dead),
		fmt.Sprintf("sluice_target_ejections_total{api=\"half\",target=%q} 1", dead),
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	if got := rig.Call(t, "GET", g.Control+"/hello", nil); !strings.Contains(got.Body, "1 of 2 targets that are looked after are called") || !strings.Contains(got.Body, `"warn"`) {
		t.Errorf("/hello: %s", got)
	}
	g.AwaitLog("HostDown")
}

func TestATargetThatFailsIsLeftOutUntilItRecovers(t *testing.T) {
	t.Parallel()
	a, b := newMoody(t), newMoody(t)
	b.status.Store(503)
	g := newTraffic(t, nil, nil, balanced("flaky", []any{a.url, b.url}, object{"ejection": object{"failures": 3, "seconds": 0.5}}))
	if got := g.gets(20, "/flaky/x"); got[503] < 3 || got[503] > 5 {
		t.Errorf("statuses %v", got)
	}
	b.status.Store(200)
	b.calls.Store(0)
	rig.Eventually(t, "the target is called again", func() error {
		if g.gets(2, "/flaky/x"); b.calls.Load() == 0 {
			return fmt.Errorf("no call yet")
		}
		return nil
	})
	if got := g.gets(20, "/flaky/x"); got[200] != 20 {
		t.Errorf("statuses %v", got)
	}
	g.AwaitLog("HostUp")
}

func TestTheOnlyTargetLeftIsCalledHoweverItFails(t *testing.T) {
	t.Parallel()
	a, b := newMoody(t), newMoody(t)
	a.status.Store(500)
	b.status.Store(502)
	g := newTraffic(t, nil, nil, balanced("bad", []any{a.url, b.url}, object{"ejection": object{"failures": 2, "seconds": 60}}))
	if got := g.gets(30, "/bad/x"); got[500]+got[502] != 30 {
		t.Errorf("statuses %v", got)
	}
}

func TestHealthChecksDecideOnTargets(t *testing.T) {
	t.Parallel()
	a, b := newMoody(t), newMoody(t)
	b.health.Store(500)
	check := object{"path": "/health", "interval": 0.1, "timeout": 0.1, "healthy": 1, "unhealthy": 2, "expected": []int{200}}
	g := newTraffic(t, nil, nil, balanced("checked", []any{a.url, b.url}, object{"health_check": check}))
	g.AwaitLog("HostDown")
	b.calls.Store(0)
	if got := g.gets(20, "/checked/x"); got[200] != 20 || b.calls.Load() != 0 {
		t.Errorf("statuses %v, %d calls", got, b.calls.Load())
	}
	b.health.Store(200)
	g.AwaitLog("HostUp")
	if got := g.gets(20, "/checked/x"); got[200] != 20 || b.calls.Load() != 10 {
		t.Errorf("statuses %v, %d calls", got, b.calls.Load())
	}
}

func TestUptimeTestsRaiseEventsForAnyAddress(t *testing.T) {
	t.Parallel()
	a, other := newMoody(t), newMoody(t)
	api := rig.APIDef("watched", a.url, true)
	api["uptime_tests"] = object{"check_list": []any{object{"url": other.url + "/health", "interval": 0.1, "unhealthy": 1, "healthy": 1, "timeout": "50ms"}}}
	g := newTraffic(t, nil, nil, api)
	rig.Eventually(t, "a check", func() error {
		if other.checks.Load() == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	other.health.Store(500)
	g.AwaitLog("HostDown")
	if got := g.gets(5, "/watched/x"); got[200] != 5 {
		t.Errorf("statuses %v", got)
	}
	other.health.Store(200)
	g.AwaitLog("HostUp")
}

// Targets, checks, breakers and kept answers of an API that changes all the time,
// under load.
func TestReloadsDisturbNoCallOfABalancedAPI(t *testing.T) {
	t.Parallel()
	a, b := newMoody(t), newMoody(t)
	api := balanced("busy", []any{a.url, object{"url": b.url, "weight": 2}}, object{
		"health_check":    object{"path": "/health", "interval": 0.1},
		"circuit_breaker": object{"threshold_percent": 0.5, "samples": 5},
	})
	cached(api, object{"cache_all_safe_requests": false})
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "use_extended_paths": true, "extended_paths": object{
			"cache": []string{"/kept"}, "hard_timeouts": []any{object{"path": "/timed", "timeout": 2}},
		},
	}}}
	g := newTraffic(t, nil, nil, api)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var calls atomic.Int64
	for i, path := range []string{"/kept", "/timed", "/other"} {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				got, err := rig.Send("GET", fmt.Sprintf("%s/busy%s?%d", g.Traffic, path, n%(i+3)), nil)
				if err != nil || got.Status != 200 {
					t.Errorf("%s: %v %s", path, err, got)
				}
				calls.Add(1)
			}
		})
	}
	for i := range 30 {
		if api["name"] = fmt.Sprint("busy ", i); i%2 == 0 {
			api["proxy"].(object)["target_list"] = []any{a.url, object{"url": b.url, "weight": i + 1}}
		}
		rig.Call(t, http.MethodPut, g.Control+"/svc/apis/busy", api, "X-Svc-Authorization", testSecret)
		if got := rig.Call(t, http.MethodGet, g.Control+"/svc/reload?block=true", nil, "X-Svc-Authorization", testSecret); got.Status != 200 {
			t.Errorf("reload: %s", got)
		}
	}
	close(stop)
	all.Wait()
	if calls.Load() < 100 {
		t.Errorf("only %d calls", calls.Load())
	}
	if metrics := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body; strings.Count(metrics, "\nsluice_target_up{") != 2 {
		t.Error("targets of definitions that are gone are in the metrics")
	}
}

const textBreaker = "Service temporarily unavailable."

func TestABreakerRefusesCallsOfItsPathUntilTheUpstreamRecovers(t *testing.T) {
	t.Parallel()
	up := newMoody(t)
	api := rig.APIDef("fragile", up.url, true)
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "use_extended_paths": true,
		"extended_paths": object{"circuit_breakers": []any{
			object{"path": "/a", "method": "GET", "threshold_percent": 0.5, "samples": 5, "return_to_service_after": 1},
		}},
	}}}
	g := newTraffic(t, nil, nil, api)
	up.status.Store(500)
	if got := g.gets(10, "/fragile/a"); got[500] != 5 || got[503] != 5 {
		t.Errorf("statuses %v", got)
	}
	got := rig.Call(t, "GET", g.Traffic+"/fragile/a/b", nil)
	if got.Status != 503 || got.Body != errorBody(textBreaker) || got.Reason() != "breaker_open" || got.Header.Get("Retry-After") != "1" {
		t.Errorf("refused: %s %v", got, got.Header)
	}
	if got := g.gets(3, "/fragile/other"); got[500] != 3 {
		t.Errorf("another path: %v", got)
	}
	if metrics := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body; !strings.Contains(metrics, `sluice_breaker_open{api="fragile",path="/a"} 1`) {
		t.Error("the metrics do not tell that it is open")
	}
	g.AwaitLog("BreakerTripped")
	up.status.Store(200)
	rig.Eventually(t, "calls pass again", func() error {
		if got := rig.Call(t, "GET", g.Traffic+"/fragile/a", nil); got.Status != 200 {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	g.AwaitLog("BreakerReset")
}

func TestABreakerOfTheWholeAPI(t *testing.T) {
	t.Parallel()
	api := rig.APIDef("all", deadAddress(t), true)
	api["proxy"].(object)["circuit_breaker"] = object{"threshold_percent": 1, "samples": 4, "return_to_service_after": 60}
	g := newTraffic(t, nil, nil, api)
	if got := g.gets(4, "/all/a"); got[502] != 4 {
		t.Errorf("statuses %v", got)
	}
	if got := g.gets(4, "/all/b"); got[503] != 4 {
		t.Errorf("statuses %v", got)
	}
}

func TestAPathHasATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	up := newMoody(t)
	api := rig.APIDef("timed", up.url, true)
	api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
		"name": "Default", "use_extended_paths": true,
		"extended_paths": object{"hard_timeouts": []any{object{"path": "/slow", "method": "GET", "timeout": 0.2}}},
	}}}
	g := newTraffic(t, nil, nil, api)
	up.delay.Store(int64(700 * time.Millisecond))
	if got := rig.Call(t, "GET", g.Traffic+"/timed/slow", nil); got.Status != 504 || got.Body != errorBody("Upstream service reached hard timeout.") {
		t.Errorf("%s", got)
	}
	if got := rig.Call(t, "GET", g.Traffic+"/timed/other", nil); got.Status != 200 {
		t.Errorf("another path: %s", got)
	}
	if got := rig.Call(t, "POST", g.Traffic+"/timed/slow", object{}); got.Status != 200 {
		t.Errorf("another method: %s", got)
	}
}
