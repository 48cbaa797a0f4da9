package overload

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestWithoutATargetThereIsNoStage(t *testing.T) {
	g := New(Options{}, slog.New(slog.DiscardHandler))
	if g != nil || g.Compile(new(Stage), &definition.API{ID: "a"}) != nil {
		t.Error("there is a stage")
	}
	if err := g.Run(context.Background()); err != nil || g.Stats() != (Stats{}) {
		t.Errorf("running nothing: %v, %+v", err, g.Stats())
	}
}

// greedy is a guard at work with one API that is over its share.
func greedy(t testing.TB) (*Guard, *Stage) {
	t.Helper()
	g := New(Options{TargetDelay: target, MaxDelay: 5 * target}, slog.New(slog.DiscardHandler))
	s := g.Compile(new(Stage), &definition.API{ID: "a"}).(*Stage)
	g.phase.Store(uint32(shedding))
	d := s.own()
	d.interval.Store(intervalOf(1000))
	keys := new(keyTable)
	keys.start(int64(time.Hour))
	keys.interval.Store(intervalOf(10))
	d.keys.Store(keys)
	return g, s
}

func (g *Guard) exchange(key string, at time.Duration) *pipeline.Exchange {
	return &pipeline.Exchange{Caller: pipeline.Caller{KeyHash: key}, Started: g.epoch.Add(time.Hour + at)}
}

func TestACallThatIsShedIsToldToTryAgain(t *testing.T) {
	g, s := greedy(t)
	passed := 0
	for range 100 {
		ex := g.exchange("key", 0)
		switch s.Handle(ex) {
		case pipeline.Next:
			passed++
			continue
		case pipeline.Answered:
			t.Fatal("answered")
		}
		r := ex.Rejection
		if r.Status != 503 || r.Reason != pipeline.ReasonOverloaded || ex.RetryAfter != 1 || r.Event != "" {
			t.Fatalf("%+v, retry after %d", r, ex.RetryAfter)
		}
	}
	if passed != 1 {
		t.Errorf("%d calls at the same time passed", passed)
	}
}

func TestAKeyPassesAtItsPaceAndHasCreditWhenItWasCalm(t *testing.T) {
	g, s := greedy(t)
	count := func(from, every time.Duration, calls int) (passed int) {
		for i := range calls {
			if s.Handle(g.exchange("key", from+time.Duration(i)*every)) == pipeline.Next {
				passed++
			}
		}
		return passed
	}
	if got := count(0, time.Millisecond, 10_000); got < 98 || got > 102 { // 10 a second, for 10 s
		t.Errorf("%d calls passed in ten seconds", got)
	}
	if got := count(15*time.Second, time.Microsecond, 100); got != creditCalls+1 {
		t.Errorf("%d calls of a burst passed after five calm seconds", got)
	}
	if got := count(20*time.Second, 100*time.Millisecond, 50); got != 50 {
		t.Errorf("%d of 50 calls at the pace passed", got)
	}
}

func TestHandleDoesNotAllocate(t *testing.T) {
	g, s := greedy(t)
	at := time.Duration(0)
	for _, ex := range []*pipeline.Exchange{
		{Caller: pipeline.Caller{KeyHash: "key"}}, {Client: netip.MustParseAddr("192.0.2.1")}, {Client: netip.MustParseAddr("2001:db8::1")},
	} {
		for _, p := range []phase{calm, watching, shedding} {
			g.phase.Store(uint32(p))
			allocs := testing.AllocsPerRun(100, func() {
				at += time.Millisecond
				ex.Started = g.epoch.Add(time.Hour + at)
				s.Handle(ex)
			})
			if allocs != 0 {
				t.Errorf("phase %d: %v allocations", p, allocs)
			}
		}
	}
}

// Calls, windows and the end of shedding at the same time; for the race detector.
func TestCallsGoOnWhileTheGuardDecides(t *testing.T) {
	g := New(Options{TargetDelay: time.Millisecond, MaxDelay: time.Second}, slog.New(slog.DiscardHandler))
	k := &keeper{guard: g, control: control{Options: g.Options}}
	var ended atomic.Bool
	var calls sync.WaitGroup
	for _, api := range []string{"one", "two"} {
		s := g.Compile(new(Stage), &definition.API{ID: api})
		for range 2 {
			calls.Go(func() {
				for !ended.Load() {
					s.Handle(&pipeline.Exchange{Caller: pipeline.Caller{KeyHash: "key"}, Started: time.Now()})
					runtime.Gosched()
				}
			})
		}
	}
	now, shed := time.Now(), 0
	for i := range 600 {
		delay := time.Duration(0)
		if i%100 < 50 {
			delay = 5 * time.Second // few calls are many when they wait for long
		}
		k.endWindow(now, window, delay)
		now = now.Add(window)
		if g.Stats().Shedding {
			shed++
		}
		runtime.Gosched()
	}
	k.stop()
	ended.Store(true)
	calls.Wait()
	if shed == 0 || shed == 600 || g.Stats().Shedding {
		t.Errorf("%d of 600 windows were shed", shed)
	}
}

// guarded runs a guard until the test ends.
func guarded(t *testing.T, g *Guard) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		if got := g.Stats(); got.Shedding || g.phase.Load() != uint32(calm) {
			t.Errorf("after the end: %+v", got)
		}
	})
}

// relays is work that goes through the poller, as requests do: a ring of pipes,
// in each of which a byte waits that takes some time to pass on.
func relays(t *testing.T, n int, cost time.Duration) (stop func()) {
	t.Helper()
	outs, ins := make([]*os.File, n), make([]*os.File, n)
	for i := range n {
		var err error
		if outs[i], ins[i], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	for i, out := range outs {
		next := ins[(i+1)%n]
		running.Go(func() { relay(out, next, cost) })
	}
	for _, in := range ins {
		if _, err := in.Write([]byte{'.'}); err != nil {
			t.Fatal(err)
		}
	}
	return sync.OnceFunc(func() {
		for i := range n {
			_, _ = outs[i].Close(), ins[i].Close()
		}
		running.Wait()
	})
}

func relay(from, to *os.File, cost time.Duration) {
	one := make([]byte, 1)
	for {
		if _, err := from.Read(one); err != nil {
			return
		}
		for began := time.Now(); time.Since(began) < cost; {
		}
		if _, err := to.Write(one); err != nil {
			return
		}
	}
}

// A hundred relays that take a millisecond each leave a queue of 100 ms, which
// timers do not see.
func TestTheDelayIsThatOfWhoWaitsInThePoller(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	g := New(Options{TargetDelay: target, MaxDelay: 5 * target}, slog.New(slog.DiscardHandler))
	guarded(t, g)
	wait.Until(t, "short delay without work", func() bool { return g.Stats().Delay < 10*time.Millisecond })
	stop := relays(t, 100, time.Millisecond)
	defer stop()
	wait.Until(t, "long delay under work", func() bool { return g.Stats().Delay > 50*time.Millisecond })
	s := g.Compile(new(Stage), &definition.API{ID: "a"})
	wait.Until(t, "shedding", func() bool { // the calls of this loop are too few
		for range 1000 {
			s.Handle(&pipeline.Exchange{Caller: pipeline.Caller{KeyHash: "key"}, Started: time.Now()})
		}
		return g.Stats().Shedding
	})
	stop()
	wait.Until(t, "short delay after the work", func() bool { return g.Stats().Delay < 10*time.Millisecond })
	wait.Until(t, "the end of shedding", func() bool { return !g.Stats().Shedding })
}

func TestAFailedProbeReturnsItsError(t *testing.T) {
	c, err := newProbe(time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	// Who sends finds out by himself, or from the other end when that was first.
	if err := c.send(time.Now(), 0); !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.EOF) {
		t.Errorf("sending: %v", err)
	}
	<-c.ended
	if err := c.send(time.Now(), 0); err == nil {
		t.Error("sending again succeeded")
	}
	c.close()
}

func TestAReadingIsTheDelayLessWhatTheProcessDidNotRun(t *testing.T) {
	epoch := time.Now().Add(-time.Hour)
	at := func(d time.Duration) time.Time { return epoch.Add(time.Hour + d) }
	c := &probe{epoch: epoch}
	want := func(name string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	c.seen, c.least = true, 30*time.Millisecond
	want("a byte arrived", c.reading(at(0)), 30*time.Millisecond)
	c.sent.Store(int64(time.Hour))
	want("one on its way for less than the last", c.reading(at(20*time.Millisecond)), 30*time.Millisecond)
	want("one on its way for longer", c.reading(at(70*time.Millisecond)), 70*time.Millisecond)
	c.pause = 60 * time.Millisecond
	want("a pause", c.reading(at(120*time.Millisecond)), 60*time.Millisecond)
	c.seen, c.least = true, 80*time.Millisecond
	want("a pause in the window before", c.reading(at(130*time.Millisecond)), 20*time.Millisecond)
	want("no pause", c.reading(at(130*time.Millisecond)), 130*time.Millisecond)
}
