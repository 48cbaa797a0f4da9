package targets

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

type rig struct {
	t     *testing.T
	calls *Registry
	pools *upstream.Pools

	mu     sync.Mutex
	events []event.Event
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, pools: upstream.NewPools()}
	t.Cleanup(r.pools.Close)
	r.calls = New(Options{
		Pools: r.pools,
		Upstream: upstream.Config{
			DialTimeout: 30 * time.Second, ResponseTimeout: 30 * time.Second, MaxConns: 8, IdleTimeout: time.Minute,
		},
		Raise: func(e event.Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.calls.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// define reads a definition whose proxy part has more members, and compiles its
// only version.
func (r *rig) define(target, proxy, extended string) *pipeline.API {
	r.t.Helper()
	raw := fmt.Sprintf(`{"api_id": "a", "proxy": {"listen_path": "/", "target_url": %q%s}, "version_data": {"not_versioned": true,
		"versions": {"Default": {"use_extended_paths": true, "extended_paths": {%s}}}}}`, target, proxy, extended)
	def, err := definition.ParseAPI([]byte(raw))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.compile(def, def.VersionData.Versions["Default"])
}

func (r *rig) compile(def *definition.API, versions ...*definition.Version) *pipeline.API {
	r.t.Helper()
	api := &pipeline.API{Definition: def}
	for _, v := range versions {
		stage, err := r.calls.Compile(def, v)
		if err != nil {
			r.t.Fatal(err)
		}
		api.Versions = append(api.Versions, &pipeline.Version{Upstream: stage})
	}
	return api
}

func (r *rig) swap(came, gone []*pipeline.API) {
	r.pools.Swap(came, gone)
	r.pools.Swapped()
	r.calls.Swap(came, gone)
}

func (r *rig) get(api *pipeline.API, path string, dry bool) (status int, address string, f pipeline.Finding) {
	r.t.Helper()
	call, fault := wire.NewCall([]byte("GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
	if fault != nil {
		r.t.Fatal(fault)
	}
	ex := pipeline.For(call)
	defer ex.Release()
	ex.API, ex.Path, ex.Rest = api, call.Path, call.Path
	if dry {
		ex.DryRun = &pipeline.DryRun{}
	}
	stage := api.Versions[0].Upstream
	if stage.Handle(ex) == pipeline.Rejected {
		status = ex.Rejection.Status
	} else {
		status = ex.Answer.Status
	}
	if e, ok := stage.(pipeline.Explainer); ok && dry {
		e.Explain(ex, &f)
	}
	return status, ex.Upstream.Address, f
}

func answering(t *testing.T, status int, asked *atomic.Int64) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked != nil {
			asked.Add(1)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAnAPIThatSaysNothingMoreHasNothingInFrontOfItsUpstream(t *testing.T) {
	r := newRig(t)
	for _, api := range []*pipeline.API{
		r.define(answering(t, 200, nil), "", ""),
		r.define("http://127.0.0.1:1", `, "enable_load_balancing": true, "target_list": ["`+answering(t, 200, nil)+`"]`, ""),
	} {
		if stage, ok := api.Versions[0].Upstream.(*Stage); ok {
			t.Errorf("there is %+v", stage)
		}
		if status, _, _ := r.get(api, "/", false); status != 200 {
			t.Errorf("status %d", status)
		}
	}
	if n := len(r.calls.known); n != 0 {
		t.Errorf("%d definitions are remembered", n)
	}
}

func TestVersionsShareWhatIsKnownOfTargets(t *testing.T) {
	r := newRig(t)
	def := &definition.API{ID: "a", Proxy: definition.Proxy{
		TargetURL: "http://127.0.0.1:1", CircuitBreaker: testenv.Part[definition.APIBreaker](`{"threshold_percent": 1, "samples": 1}`), HealthCheck: testenv.Part[definition.HealthCheck](`{"path": "/health", "interval": 3600}`),
	}}
	one := &definition.Version{UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](`{"circuit_breakers": [{"path": "/x", "threshold_percent": 1, "samples": 9}]}`)}
	api := r.compile(def, one, nil)
	r.swap([]*pipeline.API{api}, nil)
	first, second := api.Versions[0].Upstream.(*Stage), api.Versions[1].Upstream.(*Stage)
	if first.shared != second.shared || first == second {
		t.Error("the versions do not share it")
	}
	if n := r.calls.checker.Len(); n != 1 {
		t.Errorf("%d tasks for one target", n)
	}
	r.get(api, "/", false)
	breakers, targets := r.calls.Breakers(), r.calls.Targets()
	if len(breakers) != 2 || !breakers[0].Open || breakers[0].Trips != 1 || breakers[1].Path != "/x" || len(targets) != 1 || !targets[0].Up {
		t.Errorf("%+v %+v", breakers, targets)
	}
	r.swap(nil, []*pipeline.API{api})
	if n := r.calls.checker.Len(); n != 0 || len(r.calls.live)+len(r.calls.users) != 0 {
		t.Errorf("%d tasks are left, %v, %v", n, r.calls.live, r.calls.users)
	}
}

func TestAChangeOfSomethingElseKeepsWhatIsKnown(t *testing.T) {
	r := newRig(t)
	list := fmt.Sprintf(`, "enable_load_balancing": true, "target_list": ["http://127.0.0.1:1", %q], "ejection": {"failures": 1}, "health_check": {"path": "/", "interval": 3600}`, answering(t, 200, nil))
	first := r.define("http://127.0.0.1:1", list, "")
	r.swap([]*pipeline.API{first}, nil)
	for range 2 {
		r.get(first, "/", false)
	}
	if targets := r.calls.Targets(); targets[0].Up || !targets[1].Up {
		t.Fatalf("%+v", targets)
	}
	again := r.define("http://127.0.0.1:1", list, `"hard_timeouts": [{"path": "/slow", "timeout": 1}]`)
	r.swap([]*pipeline.API{again}, []*pipeline.API{first})
	if targets := r.calls.Targets(); targets[0].Up || !targets[1].Up || r.calls.checker.Len() != 2 {
		t.Errorf("%+v, %d tasks", targets, r.calls.checker.Len())
	}
	other := r.define("http://127.0.0.1:1", strings.Replace(list, `"failures": 1`, `"failures": 2`, 1), "")
	r.swap([]*pipeline.API{other}, []*pipeline.API{again})
	if targets := r.calls.Targets(); !targets[0].Up || r.calls.checker.Len() != 2 {
		t.Errorf("%+v, %d tasks", targets, r.calls.checker.Len())
	}
	r.swap(nil, []*pipeline.API{other})
	if n := len(r.calls.same) + len(r.calls.users) + len(r.calls.live) + r.calls.checker.Len(); n != 0 {
		t.Errorf("%d things are left", n)
	}
}

func TestDefinitionsThatAreGoneAreForgotten(t *testing.T) {
	r := newRig(t)
	r.define("http://127.0.0.1:1", `, "circuit_breaker": {"threshold_percent": 1, "samples": 1}`, "")
	for range 100 {
		runtime.GC()
		r.calls.mu.Lock()
		n := len(r.calls.known)
		r.calls.mu.Unlock()
		if n == 0 {
			return
		}
	}
	t.Error("a definition is remembered that nobody has")
}

func TestPoolsOfAllTargetsAreKeptWhileTheAPIIsInService(t *testing.T) {
	r := newRig(t)
	list := fmt.Sprintf(`, "enable_load_balancing": true, "target_list": [%q, %q]`, answering(t, 200, nil), answering(t, 200, nil))
	api := r.define("http://127.0.0.1:1", list, `"hard_timeouts": [{"path": "/slow", "timeout": 45}]`)
	r.swap([]*pipeline.API{api}, nil)
	for range 2 {
		r.get(api, "/", false)
		r.get(api, "/slow", false)
	}
	r.swap([]*pipeline.API{r.define(answering(t, 200, nil), "", "")}, nil)
	if s := r.pools.Stats(); s.Idle != 2 {
		t.Errorf("%+v: the times of paths share the connections", s)
	}
	r.swap(nil, []*pipeline.API{api})
	if s := r.pools.Stats(); s.Idle != 0 {
		t.Errorf("%+v after it left", s)
	}
}

func TestAnUptimeTestOfATargetDecidesOnIt(t *testing.T) {
	r := newRig(t)
	var asked atomic.Int64
	good, bad := answering(t, 200, nil), answering(t, 500, &asked)
	raw := fmt.Sprintf(`{"api_id": "a", "proxy": {"listen_path": "/", "target_url": "http://127.0.0.1:1", "enable_load_balancing": true, "target_list": [%q, %q]},
		"uptime_tests": {"check_list": [{"url": "%s/up?token=secret", "interval": 0.1, "unhealthy": 1}, {"url": "%s/up", "interval": 3600}]}}`, good, bad, bad, answering(t, 200, nil))
	def, err := definition.ParseAPI([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	api := r.compile(def, nil)
	r.swap([]*pipeline.API{api}, nil)
	down := func() bool {
		for _, target := range r.calls.Targets() {
			if target.URL == bad && !target.Up {
				return true
			}
		}
		return false
	}
	wait.Until(t, "the target is down", down)
	for range 6 {
		if status, address, _ := r.get(api, "/", false); status != 200 || "http://"+address != good {
			t.Errorf("%d by %s", status, address)
		}
	}
	if n := len(r.calls.Targets()); n != 3 {
		t.Errorf("%d targets, with the one that is watched alone", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == 0 || r.events[0].Name != event.HostDown || r.events[0].Upstream.Status != 500 || strings.Contains(r.events[0].Upstream.URL, "secret") {
		t.Errorf("events %+v", r.events)
	}
}

func TestDryCallsAreToldWhatWouldHappen(t *testing.T) {
	r := newRig(t)
	var asked atomic.Int64
	list := fmt.Sprintf(`, "enable_load_balancing": true, "target_list": [%q, %q], "circuit_breaker": {"threshold_percent": 1, "samples": 1}`,
		answering(t, 200, &asked), answering(t, 200, &asked))
	api := r.define("http://127.0.0.1:1", list, `"hard_timeouts": [{"path": "/slow", "timeout": 45}]`)
	_, address, f := r.get(api, "/slow", true)
	var rules []string
	for _, fact := range f.Facts {
		rules = append(rules, fact.Rule)
	}
	if got := strings.Join(rules, " "); address == "" || asked.Load() != 0 ||
		got != "proxy.circuit_breaker extended_paths.hard_timeouts proxy.target_list proxy.target_list" {
		t.Errorf("%q by %q, %d calls", got, address, asked.Load())
	}
}

func TestTargetsThatMustNotBeCalledAreRefusedByTheirPath(t *testing.T) {
	r := newRig(t)
	def := &definition.API{ID: "a", Proxy: definition.Proxy{
		TargetURL: "http://127.0.0.1:1", EnableLoadBalancing: true,
		TargetList: []definition.Target{{URL: "http://127.0.0.1:2"}, {URL: "http://169.254.169.254/"}},
	}}
	if _, err := r.calls.Compile(def, nil); err == nil || !strings.Contains(err.Error(), "proxy.target_list[1]") {
		t.Errorf("%v", err)
	}
	def = &definition.API{ID: "a", Proxy: definition.Proxy{TargetURL: "http://169.254.169.254/"}}
	if _, err := r.calls.Compile(def, nil); err == nil || strings.Count(err.Error(), "proxy.target_url") != 1 {
		t.Errorf("%v", err)
	}
	def = &definition.API{ID: "a", UptimeTests: &definition.UptimeTests{List: []definition.UptimeCheck{{URL: "http://169.254.169.254/"}}}, Proxy: definition.Proxy{TargetURL: "http://127.0.0.1:1"}}
	if _, err := r.calls.Compile(def, nil); err == nil || !strings.Contains(err.Error(), "uptime_tests.check_list[0]") {
		t.Errorf("%v", err)
	}
}
