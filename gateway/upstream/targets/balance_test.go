package targets

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

func TestTurnsAreSpreadByWeight(t *testing.T) {
	for _, c := range []struct {
		weights []int
		want    []uint16
	}{
		{[]int{1}, []uint16{0}},
		{[]int{7}, []uint16{0}},
		{[]int{1, 1, 1}, []uint16{0, 1, 2}},
		{[]int{2, 0, 2}, []uint16{0, 2}},
		{[]int{5, 1, 1}, []uint16{0, 0, 1, 0, 2, 0, 0}},
		{[]int{30, 10}, []uint16{0, 0, 1, 0}},
	} {
		if got := turnsOf(c.weights); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.weights, got, c.want)
		}
	}
	counts := make([]int, 3)
	for _, i := range turnsOf([]int{997, 500, 3}) {
		counts[i]++
	}
	if !slices.Equal(counts, []int{997, 500, 3}) {
		t.Errorf("counts %v", counts)
	}
}

// fakeTarget answers for a target, and counts the calls to it.
type fakeTarget struct {
	status int
	reason pipeline.Reason
	calls  int
}

func (f *fakeTarget) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	f.calls++
	if f.reason != pipeline.ReasonNone {
		return ex.Reject(pipeline.NewRejection(f.reason, 502, "no"))
	}
	ex.Upstream.Status = f.status
	return pipeline.Answered
}

type balanceRig struct {
	t       *testing.T
	group   *group
	stage   *balancer
	targets []*fakeTarget

	mu     sync.Mutex
	events []event.Event
	now    time.Time
}

func newBalanceRig(t *testing.T, ejection *definition.EjectionRule, weights ...int) *balanceRig {
	r := &balanceRig{t: t}
	o := groupOptions{API: "a", Ejection: ejection, Raise: func(e event.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}}
	var calls []pipeline.Stage
	for i, w := range weights {
		f := &fakeTarget{status: 200}
		r.targets = append(r.targets, f)
		calls = append(calls, f)
		o.Targets = append(o.Targets, member{URL: "http://" + string(rune('a'+i)), Host: string(rune('a' + i)), Weight: w})
	}
	r.group = newGroup(o)
	r.stage = newBalancer(r.group, calls)
	r.now = time.Now()
	return r
}

// send makes n calls, each a millisecond after the one before, and returns the
// last one's verdict.
func (r *balanceRig) send(n int) (v pipeline.Verdict) {
	for range n {
		ex := pipeline.For(&wire.Call{Started: r.now})
		v = r.stage.Handle(ex)
		ex.Release()
		r.now = r.now.Add(time.Millisecond)
	}
	return v
}

func (r *balanceRig) counts() (counts []int) {
	for _, f := range r.targets {
		counts = append(counts, f.calls)
		f.calls = 0
	}
	return counts
}

func (r *balanceRig) names() (names []event.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		names = append(names, e.Name)
	}
	return names
}

var usual = &definition.EjectionRule{Failures: 3, For: 10 * time.Second, Longest: 30 * time.Second}

func TestCallsFollowTheWeights(t *testing.T) {
	r := newBalanceRig(t, usual, 3, 1)
	r.send(400)
	if got := r.counts(); !slices.Equal(got, []int{300, 100}) {
		t.Errorf("calls %v", got)
	}
}

func TestATargetThatFailsIsLeftOutForLongerEachTime(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1, 1)
	r.targets[1].status = 503
	r.send(30)
	if got := r.counts(); got[1] != 3 || got[0]+got[1]+got[2] != 30 || got[0] < 13 || got[2] < 13 {
		t.Fatalf("calls %v", got)
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.HostDown}) || r.events[0].Upstream.Status != 503 || r.events[0].Upstream.Host != "b" {
		t.Fatalf("events %v", r.events)
	}
	r.now = r.now.Add(9 * time.Second)
	if r.send(6); r.counts()[1] != 0 {
		t.Error("it is back before its time")
	}
	r.now = time.Now().Add(11 * time.Second)
	r.send(9)
	if got := r.counts(); got[1] != 1 {
		t.Errorf("calls %v: the first failure after its return ends it", got)
	}
	for _, s := range r.group.States() {
		if s.Host == "b" && (!s.Ejected || s.Times != 2) || s.Host != "b" && s.Ejected {
			t.Errorf("state %+v", s)
		}
	}
	if again := r.group.order.Load().again - r.group.now(time.Now()); again < 19*time.Second || again > 20*time.Second {
		t.Errorf("left out for %v, want twice as long", again)
	}
	if got := r.group.length(9); got != 30*time.Second {
		t.Errorf("the longest time is %v", got)
	}
}

func TestATargetThatIsWellAgainTakesItsTurns(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1)
	r.targets[0].status = 500
	r.send(10)
	r.targets[0].status = 200
	r.counts()
	r.now = time.Now().Add(11 * time.Second)
	if r.send(10); r.counts()[0] != 5 {
		t.Error("it is not called as before")
	}
	r.now = r.now.Add(11 * time.Second) // as long as it was out
	r.send(2)
	if r.group.hosts[0].trouble.Load() != 0 {
		t.Error("its past is not forgotten")
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.HostDown, event.HostUp}) {
		t.Errorf("events %v", got)
	}
}

func TestTheLastTargetIsNeverLeftOut(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1)
	r.targets[0].status, r.targets[1].status = 500, 502
	r.send(100)
	if got := r.counts(); got[0]+got[1] != 100 {
		t.Errorf("calls %v", got)
	}
	if got := r.names(); len(got) != 1 {
		t.Errorf("events %v", got)
	}
	// Checks may find all of them unwell: then all are called.
	for i := range r.targets {
		r.group.Turn(i, false, failure{Error: "no"})
	}
	r.now = time.Now().Add(time.Minute)
	r.send(10)
	if got := r.counts(); got[0] == 0 || got[1] == 0 {
		t.Errorf("calls %v", got)
	}
}

func TestAnAnswerInBetweenEndsARowOfFailures(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1)
	for range 10 {
		r.targets[0].status = 500
		r.send(4)
		r.targets[0].status = 404
		r.send(2)
	}
	if got := r.names(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

func TestWhatTheClientDidSaysNothingOfATarget(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1)
	r.targets[0].reason, r.targets[1].reason = pipeline.ReasonClientGone, pipeline.ReasonUpstreamBusy
	r.send(50)
	if got := r.names(); len(got) != 0 {
		t.Errorf("events %v", got)
	}
}

func TestARequestThatReachedNobodyGoesToAnotherTarget(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1, 1)
	r.targets[0].reason = pipeline.ReasonUpstreamConnect
	r.targets[1].reason = pipeline.ReasonUpstreamTLS
	for range 30 {
		if v := r.send(1); v != pipeline.Answered {
			t.Fatalf("verdict %d", v)
		}
	}
	if got := r.counts(); got[2] != 30 || got[0] != 3 || got[1] != 3 {
		t.Errorf("calls %v", got)
	}
}

func TestARequestThatWasSentIsNotSentAgain(t *testing.T) {
	r := newBalanceRig(t, nil, 1, 1)
	r.targets[0].reason, r.targets[1].reason = pipeline.ReasonUpstreamReset, pipeline.ReasonUpstreamReset
	if v := r.send(10); v != pipeline.Rejected {
		t.Error("it was answered")
	}
	if got := r.counts(); got[0] != 5 || got[1] != 5 {
		t.Errorf("calls %v", got)
	}
	if got := r.names(); len(got) != 0 {
		t.Errorf("without ejection: events %v", got)
	}
}

func TestChecksDecideOnTargets(t *testing.T) {
	r := newBalanceRig(t, nil, 1, 1)
	r.group.Turn(0, false, failure{Status: 503})
	r.group.Turn(0, false, failure{Error: "refused"}) // another check of it
	r.send(10)
	if got := r.counts(); got[0] != 0 {
		t.Errorf("calls %v", got)
	}
	r.group.Turn(0, true, failure{})
	r.send(10)
	if got := r.counts(); got[0] != 0 {
		t.Errorf("one of two checks finds it well: calls %v", got)
	}
	r.group.Turn(0, true, failure{Status: 200})
	r.send(10)
	if got := r.counts(); got[0] != 5 {
		t.Errorf("calls %v", got)
	}
	if got := r.names(); !slices.Equal(got, []event.Name{event.HostDown, event.HostUp}) {
		t.Errorf("events %v", got)
	}
}

func TestATargetWhoseTimeIsOverComesBackWhateverHappenedMeanwhile(t *testing.T) {
	r := newBalanceRig(t, &definition.EjectionRule{Failures: 1, For: 20 * time.Millisecond, Longest: time.Second}, 1, 1, 1)
	r.targets[0].status = 500
	r.send(3)
	r.targets[0].status = 200
	if got := r.names(); len(got) != 1 {
		t.Fatalf("events %v", got)
	}
	for r.group.now(time.Now()) < r.group.order.Load().again {
	}
	r.group.Turn(1, false, failure{}) // the turns are written anew, and no call came in between
	r.counts()
	r.now = time.Now()
	if r.send(10); r.counts()[0] == 0 {
		t.Error("it never comes back")
	}
}

func TestADryExchangeTakesNoTurn(t *testing.T) {
	r := newBalanceRig(t, usual, 1, 1)
	next := r.group.peek(r.group.order.Load())
	for range 5 {
		ex := pipeline.For(&wire.Call{Started: time.Now()})
		ex.DryRun = &pipeline.DryRun{}
		r.stage.Handle(ex)
		ex.Release()
	}
	if got := r.counts(); got[next] != 5 {
		t.Errorf("calls %v", got)
	}
	if r.send(1); r.targets[next].calls != 1 {
		t.Error("the turn was taken")
	}
}

func TestManyCallsAtOnceWhileTargetsComeAndGo(t *testing.T) {
	r := newBalanceRig(t, &definition.EjectionRule{Failures: 1, For: time.Millisecond, Longest: 2 * time.Millisecond}, 1, 2, 3)
	flaky := func(i int) pipeline.Stage {
		return stageFunc(func(ex *pipeline.Exchange) pipeline.Verdict {
			ex.Upstream.Status = 200
			if i == 1 {
				ex.Upstream.Status = 500
			}
			return pipeline.Answered
		})
	}
	stage := newBalancer(r.group, []pipeline.Stage{flaky(0), flaky(1), flaky(2)})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3000 {
				ex := pipeline.For(&wire.Call{Started: time.Now()})
				if stage.Handle(ex) != pipeline.Answered {
					t.Error("not answered")
				}
				ex.Release()
			}
		})
	}
	all.Go(func() {
		for range 200 {
			r.group.Turn(0, false, failure{})
			r.group.Turn(0, true, failure{})
		}
	})
	all.Wait()
}

type stageFunc func(*pipeline.Exchange) pipeline.Verdict

func (f stageFunc) Handle(ex *pipeline.Exchange) pipeline.Verdict { return f(ex) }

func TestChoosingATargetDoesNotAllocate(t *testing.T) {
	r := newBalanceRig(t, usual, 3, 1)
	call := &wire.Call{Started: time.Now()}
	if n := testing.AllocsPerRun(1000, func() {
		ex := pipeline.For(call)
		r.stage.Handle(ex)
		ex.Release()
	}); n > 0.5 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBalancer(b *testing.B) {
	g := newGroup(groupOptions{Targets: []member{{Weight: 3}, {Weight: 1}}, Ejection: usual, Raise: func(event.Event) {}})
	well := stageFunc(func(ex *pipeline.Exchange) pipeline.Verdict {
		ex.Upstream.Status = 200
		return pipeline.Answered
	})
	for _, c := range []struct {
		name  string
		stage pipeline.Stage
	}{{"one", well}, {"balanced", newBalancer(g, []pipeline.Stage{well, well})}} {
		b.Run(c.name, func(b *testing.B) {
			ex := pipeline.For(&wire.Call{Started: time.Now()})
			b.ReportAllocs()
			for b.Loop() {
				c.stage.Handle(ex)
			}
		})
	}
}
