package targets

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// circuitRig is a circuit with a clock that the test moves on.
type circuitRig struct {
	t      *testing.T
	c      *circuit
	at     time.Time
	events []event.Event
}

func newCircuitRig(t *testing.T, rule definition.Breaker) *circuitRig {
	r := &circuitRig{t: t, at: time.Now()}
	r.c = newCircuit(rule, "a", "/p", func(e event.Event) {
		if e.Name != event.BreakerTriggered {
			r.events = append(r.events, e)
		}
	})
	return r
}

// call asks, and tells how it went when it may be made.
func (r *circuitRig) call(failed bool) pass {
	now := r.c.now(r.at)
	how := r.c.admit(now)
	if how != refused {
		r.c.record(how, failed, 500, now)
	}
	return how
}

func (r *circuitRig) calls(n int, failed bool) (made int) {
	for range n {
		if r.call(failed) != refused {
			made++
		}
	}
	return made
}

func (r *circuitRig) names() (names []event.Name) {
	for _, e := range r.events {
		names = append(names, e.Name)
	}
	return names
}

var half = definition.Breaker{Share: 0.5, Samples: 10, Return: 30 * time.Second, HalfOpen: true}

func TestItTripsAtTheShareOfEnoughCalls(t *testing.T) {
	r := newCircuitRig(t, half)
	if made := r.calls(9, true); made != 9 {
		t.Fatalf("%d of 9 calls were made before there were enough", made)
	}
	r.calls(10, false)
	if made := r.calls(3, true); made != 1 {
		t.Fatalf("%d calls were made where 10 of 20 had failed with the first", made)
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.BreakerTripped}) || r.events[0].Upstream.Path != "/p" || r.events[0].Upstream.Status != 500 {
		t.Errorf("events %+v", r.events)
	}
	if wait := r.c.wait(r.c.now(r.at)); wait != 30 {
		t.Errorf("clients are told to wait %d s", wait)
	}
	if s := r.c.state(); !s.Open || s.Trips != 1 {
		t.Errorf("state %+v", s)
	}
}

func TestFailuresAreForgottenAfterTenSeconds(t *testing.T) {
	r := newCircuitRig(t, half)
	for range 30 {
		if r.calls(3, true) != 3 {
			t.Fatal("it tripped on failures of long ago")
		}
		r.at = r.at.Add(4 * time.Second)
	}
}

func TestOneCallIsTriedWhenTheTimeIsOver(t *testing.T) {
	r := newCircuitRig(t, half)
	r.calls(10, true)
	r.at = r.at.Add(29 * time.Second)
	if r.call(false) != refused {
		t.Fatal("a call is made before the time is over")
	}
	r.at = r.at.Add(2 * time.Second)
	now := r.c.now(r.at)
	if got := r.c.admit(now); got != trial {
		t.Fatalf("the first call: %d", got)
	}
	if got := r.c.admit(now); got != refused {
		t.Fatalf("a second call beside it: %d", got)
	}
	r.c.record(trial, true, 503, now)
	r.at = r.at.Add(29 * time.Second)
	if r.call(false) != refused {
		t.Fatal("the trial failed, and calls are made all the same")
	}
	r.at = r.at.Add(2 * time.Second)
	if r.call(false) != trial || r.calls(9, true) != 9 {
		t.Fatal("the trial went well, and calls are refused, or old failures count")
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.BreakerTripped, event.BreakerReset}) {
		t.Errorf("events %v", got)
	}
}

func TestFailuresFromBeforeAreForgottenWhenItIsReset(t *testing.T) {
	rule := half
	rule.Return = time.Second
	r := newCircuitRig(t, rule)
	r.calls(10, true)
	r.at = r.at.Add(1100 * time.Millisecond)
	if r.call(false) != trial || r.calls(9, true) != 9 {
		t.Error("failures of a second ago count once more")
	}
}

func TestATrialThatSaysNothingIsFollowedByAnother(t *testing.T) {
	r := newCircuitRig(t, half)
	r.calls(10, true)
	r.at = r.at.Add(31 * time.Second)
	now := r.c.now(r.at)
	if r.c.admit(now) != trial {
		t.Fatal("no trial")
	}
	r.c.undecided(trial, now)
	if r.c.admit(now) != trial {
		t.Error("no other trial")
	}
}

func TestWithoutTheHalfOpenStateAllCallsPassAfterTheTime(t *testing.T) {
	rule := half
	rule.HalfOpen = false
	r := newCircuitRig(t, rule)
	r.calls(10, true)
	r.at = r.at.Add(31 * time.Second)
	if made := r.calls(9, true); made != 9 {
		t.Errorf("%d of 9 calls", made)
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.BreakerTripped, event.BreakerReset}) {
		t.Errorf("events %v", got)
	}
}

func TestAnswersToCallsFromBeforeDoNotDecide(t *testing.T) {
	r := newCircuitRig(t, half)
	early := r.c.admit(r.c.now(r.at))
	r.calls(10, true)
	r.c.record(early, false, 200, r.c.now(r.at))
	if r.call(false) != refused {
		t.Error("a call that was made before closed the circuit")
	}
}

func TestManyCallsTripItOnce(t *testing.T) {
	var trips atomic.Int64
	c := newCircuit(half, "a", "", func(e event.Event) {
		if e.Name == event.BreakerTripped {
			trips.Add(1)
		}
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				now := c.now(time.Now())
				if how := c.admit(now); how != refused {
					c.record(how, true, 500, now)
				}
			}
		})
	}
	all.Wait()
	if trips.Load() != 1 {
		t.Errorf("it tripped %d times", trips.Load())
	}
}

type answers struct {
	status int
	reason pipeline.Reason
	calls  int
}

func (a *answers) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	a.calls++
	if a.reason != pipeline.ReasonNone {
		return ex.Reject(pipeline.NewRejection(a.reason, 502, "no"))
	}
	ex.Upstream.Status = a.status
	return pipeline.Answered
}

func send(s pipeline.Stage, path string, dry bool) (v pipeline.Verdict, r *pipeline.Rejection, after int) {
	ex := pipeline.For(&wire.Call{Started: time.Now(), Method: []byte("GET")})
	defer ex.Release()
	ex.Path = []byte(path)
	if dry {
		ex.DryRun = &pipeline.DryRun{}
	}
	v = s.Handle(ex)
	return v, ex.Rejection, ex.RetryAfter
}

func newTestBreaker(t *testing.T, next pipeline.Stage, all *circuit) *breaker {
	quiet := func(event.Event) {}
	byPath, err := match.CompileEndpoints([]match.Endpoint[*circuit]{{Path: "/a", Method: "GET", Value: newCircuit(half, "a", "/a", quiet)}})
	if err != nil {
		t.Fatal(err)
	}
	return newBreaker(next, all, byPath)
}

func TestOnlyCallsOfThePathAreRefused(t *testing.T) {
	next := &answers{status: 500}
	s := newTestBreaker(t, next, nil)
	for range 20 {
		send(s, "/a/b", false)
	}
	if next.calls != 10 {
		t.Errorf("%d calls were made", next.calls)
	}
	v, r, after := send(s, "/a", false)
	if v != pipeline.Rejected || r.Status != 503 || r.Message != "Service temporarily unavailable." || r.Reason != pipeline.ReasonBreakerOpen || after < 29 {
		t.Errorf("%d %+v after %d", v, r, after)
	}
	if v, _, _ := send(s, "/other", false); v != pipeline.Answered {
		t.Error("calls of another path are refused")
	}
	if v, _, _ := send(s, "/a", true); v != pipeline.Rejected {
		t.Error("a dry call is not shown that the circuit is open")
	}
}

func TestACircuitOfAllCallsCountsThoseOfEveryPath(t *testing.T) {
	next := &answers{reason: pipeline.ReasonUpstreamTimeout}
	s := newTestBreaker(t, next, newCircuit(half, "a", "", func(event.Event) {}))
	for range 5 {
		send(s, "/a", false)
		send(s, "/b", false)
	}
	if v, r, _ := send(s, "/c", false); v != pipeline.Rejected || r.Reason != pipeline.ReasonBreakerOpen {
		t.Errorf("%d %+v", v, r)
	}
}

func TestWhatTheClientDidDoesNotCount(t *testing.T) {
	next := &answers{reason: pipeline.ReasonClientGone}
	s := newTestBreaker(t, next, nil)
	for range 50 {
		send(s, "/a", false)
	}
	if next.calls != 50 {
		t.Errorf("%d calls were made", next.calls)
	}
}

func TestDryCallsAreNotCounted(t *testing.T) {
	next := &answers{status: 500}
	s := newTestBreaker(t, next, nil)
	for range 50 {
		send(s, "/a", true)
	}
	if v, _, _ := send(s, "/a", false); v != pipeline.Answered {
		t.Error("dry calls tripped it")
	}
}

func TestPassingDoesNotAllocate(t *testing.T) {
	s := newTestBreaker(t, &answers{status: 200}, newCircuit(half, "a", "", func(event.Event) {}))
	call, path := &wire.Call{Started: time.Now(), Method: []byte("GET")}, []byte("/a")
	if n := testing.AllocsPerRun(1000, func() {
		ex := pipeline.For(call)
		ex.Path = path
		s.Handle(ex)
		ex.Release()
	}); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBreaker(b *testing.B) {
	s := newBreaker(&answers{status: 200}, newCircuit(half, "a", "", func(event.Event) {}), nil)
	ex := pipeline.For(&wire.Call{Started: time.Now(), Method: []byte("GET")})
	b.ReportAllocs()
	for b.Loop() {
		s.Handle(ex)
	}
}
