package wire

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// processors is what a test's gate believes of them: how much waits to run.
type processors struct{ queued atomic.Int64 }

func (p *processors) busy(queued int64) { p.queued.Store(queued) }

// requests enter a gate one after the other, and stay until they are told.
type requests struct {
	admission *admission

	mu   sync.Mutex
	went []int // in, in that order
	all  sync.WaitGroup
}

// come has another one enter. He leaves once out is closed.
func (g *requests) come(number int, out chan struct{}) {
	g.all.Go(func() {
		g.admission.enter()
		g.mu.Lock()
		g.went = append(g.went, number)
		g.mu.Unlock()
		<-out
		g.admission.leave()
	})
	synctest.Wait()
}

func (g *requests) in() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.went)
}

// fill has as many enter as there is room for, and returns what lets them out.
func (g *requests) fill(n int) (out chan struct{}) {
	out = make(chan struct{})
	for i := range n {
		g.come(i, out)
	}
	return out
}

func TestWhoComesWhileTheProcessorsAreBusyWaitsForOneToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		p.busy(admissionPerProcessor)
		g := requests{admission: newAdmission(1, p.queued.Load)}
		g.admission.least = 0 // seen on its own below
		first, out := make(chan struct{}), g.fill(admissionPerProcessor-1)
		g.come(admissionPerProcessor-1, first)
		outs := make([]chan struct{}, 10)
		for i := range outs {
			outs[i] = make(chan struct{})
			g.come(admissionPerProcessor+i, outs[i])
		}
		time.Sleep(time.Second) // of the bubble's time
		if in, waiting := g.in(), int(g.admission.waiting.Load()); in != admissionPerProcessor || waiting != len(outs) {
			t.Fatalf("%d are inside and %d wait, want %d and %d", in, waiting, admissionPerProcessor, len(outs))
		}
		close(first)
		for _, o := range outs { // each lets the next one in
			synctest.Wait()
			close(o)
		}
		synctest.Wait()
		if got := g.went[admissionPerProcessor:]; !slices.IsSorted(got) || len(got) != len(outs) {
			t.Errorf("they went in as %v", got)
		}
		close(out)
		g.all.Wait()
		if inside := g.admission.active.Load(); inside != 0 {
			t.Errorf("%d are inside when all have left", inside)
		}
	})
}

// Those inside wait for others, as requests do for a slow upstream: however many
// they are, nobody else has to wait for them.
func TestWhoeverOnlyWaitsInsideKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		g := requests{admission: newAdmission(1, p.queued.Load)}
		out := g.fill(5000)
		time.Sleep(20 * admissionTick)
		synctest.Wait()
		if in := g.in(); in != 5000 {
			t.Errorf("%d of 5000 are inside", in)
		}
		close(out)
		g.all.Wait()
	})
}

// Many come in the same moment, when the processors have no time to look.
func TestABurstGoesInAsSoonAsTheProcessorsHaveNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		p.busy(1000)
		g := requests{admission: newAdmission(1, p.queued.Load)}
		out := g.fill(2000)
		if in := g.in(); in >= 2000 {
			t.Fatalf("all %d went in at once", in)
		}
		p.busy(0)
		began := time.Now()
		for g.in() < 2000 {
			time.Sleep(admissionTick)
			synctest.Wait()
		}
		if took := time.Since(began); took > 20*admissionTick {
			t.Errorf("they waited for %v", took)
		}
		close(out)
		g.all.Wait()
	})
}

// The processors are busy with those inside for ever, and none of them leaves.
func TestSomeGoInWhateverHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		p.busy(admissionPerProcessor)
		g := requests{admission: newAdmission(1, p.queued.Load)}
		out := g.fill(admissionPerProcessor + 40)
		time.Sleep(time.Second)
		synctest.Wait()
		if in := g.in(); in != admissionPerProcessor+40 {
			t.Errorf("%d are inside", in)
		}
		close(out)
		g.all.Wait()
	})
}

// What was right while all waited for a slow upstream is too much for a quick one.
func TestTheGateNarrowsWhenTheProcessorsAreBusyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		g := requests{admission: newAdmission(1, p.queued.Load)}
		out := g.fill(1000)
		time.Sleep(20 * admissionTick)
		synctest.Wait()
		wide := g.admission.limit.Load()
		p.busy(1000)
		more := g.fill(1000)
		time.Sleep(100 * admissionTick)
		if narrow := g.admission.limit.Load(); narrow > wide/4 {
			t.Errorf("%d are allowed inside, where it were %d", narrow, wide)
		}
		close(out)
		close(more)
		g.all.Wait()
	})
}

func TestWaitedIsTheShortestWaitSinceItWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		p.busy(admissionPerProcessor)
		g := requests{admission: newAdmission(1, p.queued.Load)}
		g.admission.least = 0
		first, second := g.fill(admissionPerProcessor-1), make(chan struct{})
		g.come(0, second)
		if got := g.admission.shortestWait(); got != 0 {
			t.Errorf("%v when nobody waits", got)
		}
		third := g.fill(3)
		time.Sleep(30 * time.Millisecond)
		if got := g.admission.shortestWait(); got != 0 {
			t.Errorf("%v when nobody went in", got)
		}
		close(second)
		synctest.Wait()
		if got := g.admission.shortestWait(); got != 30*time.Millisecond {
			t.Errorf("%v, want 30ms", got)
		}
		if got := g.admission.shortestWait(); got != 0 {
			t.Errorf("%v when asked again", got)
		}
		close(first)
		close(third)
		g.all.Wait()
	})
}

func TestManyGoInAndOutAndNobodyIsForgotten(t *testing.T) {
	g := processorAdmission()
	var all sync.WaitGroup
	var inside atomic.Int64
	for range 500 {
		all.Go(func() {
			for range 200 {
				g.enter()
				inside.Add(1)
				inside.Add(-1)
				g.leave()
			}
		})
	}
	all.Wait()
	if g.active.Load() != 0 || g.waiting.Load() != 0 {
		t.Errorf("%d inside, %d waiting, at the end", g.active.Load(), g.waiting.Load())
	}
}

func TestTheRuntimeTellsWhatWaitsToRun(t *testing.T) {
	queued := processorAdmission().runnable
	if got := queued(); got < 0 || got > 1000 {
		t.Errorf("%d goroutines wait to run", got)
	}
	if allocs := testing.AllocsPerRun(100, func() { queued() }); allocs > 0 {
		t.Errorf("looking allocates %v times", allocs)
	}
}

func TestAFreeGateAllocatesNothing(t *testing.T) {
	g := processorAdmission()
	if allocs := testing.AllocsPerRun(1000, func() { g.enter(); g.leave() }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}
