package limit

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// heard keeps events.
type heard struct {
	mu  sync.Mutex
	all []event.Event
}

func (h *heard) Raise(e event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) triggers() (all []string) {
	for _, e := range h.all {
		all = append(all, fmt.Sprintf("%d at %d", e.Trigger.Limit, e.Trigger.Usage))
	}
	slices.Sort(all)
	return all
}

func watched(m *Monitor) *Limiter {
	return New(Options{Counter: memoryAtStart(), Monitor: m, Log: quiet()})
}

func keyed(grant *pipeline.Grant, calls uint16) *pipeline.Exchange {
	ex := request(grant, "GET", "/")
	ex.Session, ex.KeyName, ex.Charge.Calls = &definition.Session{OrgID: "acme"}, "0123456789ab", calls
	return ex
}

// Each threshold is told by the call that reaches it, and by no other: whatever
// the order, and how many calls come at once.
func TestEachThresholdIsToldOnceInAPeriod(t *testing.T) {
	for _, c := range []struct {
		name   string
		global float64
		own    []float64
		max    int64
		calls  []uint16
		want   []string
	}{
		{"of all", 80, nil, 10, []uint16{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []string{"80 at 80"}},
		{"of the key", 0, []float64{50, 100}, 10, []uint16{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, []string{"100 at 100", "50 at 50"}},
		{"both, one of them twice", 80, []float64{50, 80}, 10, []uint16{4, 1, 1, 1, 1, 1, 1}, []string{"50 at 50", "80 at 80"}},
		{"passed over", 80, []float64{50}, 10, []uint16{4, 6}, []string{"50 at 100", "80 at 100"}},
		{"between two calls", 33.3, nil, 3, []uint16{1, 1, 1}, []string{"33 at 33"}},
		{"rounded up", 34, nil, 3, []uint16{1, 1, 1}, []string{"34 at 66"}},
		{"not reached", 80, []float64{90}, 10, []uint16{1, 1, 1, 1, 1, 1, 1}, nil},
		{"none", 0, nil, 10, []uint16{10}, nil},
		{"refused calls reach nothing", 80, nil, 10, []uint16{7, 5, 4}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := &heard{}
			s := stageOf(t, watched(&Monitor{Events: to, Global: c.global, Keys: true}))
			grant := grantOf(0, c.max)
			if c.own != nil {
				grant.Special = &pipeline.Special{Triggers: c.own}
			}
			for _, n := range c.calls {
				s.Handle(keyed(grant, n))
			}
			if got := to.triggers(); !slices.Equal(got, c.want) {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
}

func TestCallsThatComeTogetherReachAThresholdOnce(t *testing.T) {
	to := &heard{}
	s := stageOf(t, watched(&Monitor{Events: to, Global: 50, Keys: true}))
	grant := grantOf(0, 1000)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 90 {
				s.Handle(keyed(grant, 1))
			}
		})
	}
	all.Wait()
	if got := to.triggers(); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}

func TestAThresholdSaysWhose(t *testing.T) {
	to := &heard{}
	s := stageOf(t, watched(&Monitor{Events: to, Global: 80, Keys: true}))
	s.Handle(keyed(grantOf(0, 1), 1))
	want := event.Event{
		Name: event.TriggerExceeded, At: start, API: "sample", Key: "0123456789ab", Org: "acme",
		Detail: "80 % of the quota is reached: 100 % is used", Trigger: event.Trigger{Limit: 80, Usage: 100},
	}
	if len(to.all) != 1 || to.all[0] != want {
		t.Errorf("told %+v, want %+v", to.all, want)
	}
}

func TestNothingIsToldOfWhatIsNotWatched(t *testing.T) {
	to := &heard{}
	for name, m := range map[string]*Monitor{"organisations alone": {Events: to, Global: 1, Orgs: true}, "nobody": nil} {
		s := stageOf(t, watched(m))
		s.Handle(keyed(grantOf(0, 1), 1))
		if len(to.all) > 0 {
			t.Errorf("%s: told %+v", name, to.all)
		}
	}
	m := &Monitor{Events: to, Global: 1, Keys: true}
	dry := keyed(grantOf(0, 1), 1)
	dry.DryRun = &pipeline.DryRun{}
	stageOf(t, watched(m)).Handle(dry)
	stageOf(t, watched(m)).Handle(keyed(grantOf(5, 0), 1))
	trial := grantOf(0, 1)
	trial.Special = &pipeline.Special{ReportOnly: pipeline.ReportOnlyPolicies{Quota: "trial"}}
	s := stageOf(t, watched(m))
	for range 5 {
		s.Handle(keyed(trial, 1))
	}
	if got := to.triggers(); !slices.Equal(got, []string{"1 at 100"}) {
		t.Errorf("told %q", got)
	}
}

func TestWatchingDoesNotAllocate(t *testing.T) {
	bus := event.NewBus(1)
	s := stageOf(t, watched(&Monitor{Events: bus, Global: 0.0001, Keys: true}))
	grant := grantOf(0, 1<<40)
	grant.Special = &pipeline.Special{Triggers: []float64{0.00001, 50}}
	ex := keyed(grant, 1)
	if n := testing.AllocsPerRun(1000, func() { s.Handle(ex) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
