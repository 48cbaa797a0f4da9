package throttle

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newBrake() (*Backoff, *clock) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	return NewBackoff(Pace{Free: 3, First: time.Second, Longest: 10 * time.Second, Quiet: time.Minute}, c.now), c
}

func TestABrakeSlowsDownEachTimeMore(t *testing.T) {
	b, c := newBrake()
	for i, want := range []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second} {
		if wait := b.Try("a"); wait != 0 {
			t.Fatalf("try %d has to wait %v", i, wait)
		}
		if want > 0 {
			if wait := b.Try("a"); wait != want {
				t.Errorf("after try %d: wait %v, want %v", i, wait, want)
			}
		}
		c.at = c.at.Add(want)
	}
	if wait := b.Try("b"); wait != 0 {
		t.Errorf("another thing has to wait %v", wait)
	}
	c.at = c.at.Add(time.Minute)
	for range 3 {
		if wait := b.Try("a"); wait != 0 {
			t.Errorf("after a quiet minute: wait %v", wait)
		}
	}
	if b.Try("a") == 0 {
		t.Error("what was forgotten is not counted again")
	}
}

func TestABrakeForgetsAndPardons(t *testing.T) {
	b, _ := newBrake()
	for range 3 {
		b.Try("a")
	}
	b.Pardon("a")
	if wait := b.Try("a"); wait != 0 {
		t.Errorf("after a pardon: wait %v", wait)
	}
	if b.Try("a") == 0 {
		t.Error("one pardon takes back several tries")
	}
	b.Forget("a")
	if wait := b.Try("a"); wait != 0 {
		t.Errorf("after all is forgotten: wait %v", wait)
	}
	b.Pardon("nobody")
}

func TestTriesAtOnceDoNotGetPastABrake(t *testing.T) {
	b, _ := newBrake()
	var taken atomic.Int64
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if b.Try("a") == 0 {
				taken.Add(1)
			}
		})
	}
	group.Wait()
	if taken.Load() != 3 {
		t.Errorf("%d tries at once were taken, want 3", taken.Load())
	}
}

func TestWhoTriesManyThingsDoesNotMakeABrakeForgetOne(t *testing.T) {
	b, _ := newBrake()
	for range 4 {
		b.Try("victim")
	}
	for i := range 2*maxSubjects + 10 {
		b.Try(fmt.Sprint("thing ", i))
	}
	if len(b.tries) > maxSubjects {
		t.Errorf("%d things are kept", len(b.tries))
	}
	if b.Try("victim") == 0 {
		t.Error("the victim's tries were forgotten")
	}
}

func TestAFailureThatWasNoneIsTakenBack(t *testing.T) {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	g := New(1, c.now)
	ip := net.ParseIP("192.0.2.1")
	g.Pardon(ip)
	for range 5 {
		if wait := g.Failed(ip); wait != 0 {
			t.Fatalf("wait %v", wait)
		}
		g.Pardon(ip)
	}
	g.Failed(ip)
	if g.Failed(ip) == 0 {
		t.Error("a failure that stays is not counted")
	}
}
