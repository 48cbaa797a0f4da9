// Package breaker refuses calls for a while when too many of them have failed, so
// that an upstream in trouble is left alone and callers are not kept waiting.
package breaker

import (
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition/upstreams"
	"github.com/sluicegate/sluice/internal/event"
)

// span is how many seconds calls are remembered.
const span = 10

// Circuit counts the calls of one rule, and decides whether they pass. It takes no
// lock. It is safe for concurrent use.
type Circuit struct {
	rule  upstreams.Breaker
	path  string // of the calls that it is for; "" for all
	api   string
	raise func(event.Event)
	epoch time.Time

	until atomic.Int64  // by nanoseconds after epoch: calls are refused before, and one is tried from then on; 0: all pass
	trips atomic.Uint64 // ever
	calls [span]atomic.Uint64
}

// A second's calls are one word: the second, and how many there were and failed.
const (
	countBits = 22
	countMask = 1<<countBits - 1
	oneCall   = 1 << countBits
	secondAt  = 2 * countBits
	maxSecond = 1 << (64 - secondAt)
)

// NewCircuit returns a circuit through which calls pass. raise is told when that
// changes; it must not wait.
func NewCircuit(rule upstreams.Breaker, api, path string, raise func(event.Event)) *Circuit {
	return &Circuit{rule: rule, path: path, api: api, raise: raise, epoch: time.Now().Add(-time.Minute)}
}

// pass is what a circuit says to a call.
type pass uint8

const (
	passes  pass = iota
	refused      // it must not be made
	trial        // it decides whether others may be
)

// now is the time by the circuit's clock.
func (c *Circuit) now(at time.Time) time.Duration { return at.Sub(c.epoch) }

// ask decides on a call.
func (c *Circuit) ask(now time.Duration) pass {
	until := c.until.Load()
	if until == 0 {
		return passes
	}
	if int64(now) < until {
		return refused
	}
	if !c.rule.HalfOpen {
		c.reset(until, "the time that it was open is over")
		return passes
	}
	// Whoever extends the time is the one that is tried. Should nothing be heard of
	// it, the next one is after as long again.
	if c.until.CompareAndSwap(until, int64(now+c.rule.Return)) {
		return trial
	}
	return refused
}

// look is ask without the effect.
func (c *Circuit) look(now time.Duration) pass {
	until := c.until.Load()
	switch {
	case until == 0 || !c.rule.HalfOpen && int64(now) >= until:
		return passes
	case int64(now) < until:
		return refused
	}
	return trial
}

// wait is how long calls will be refused, in whole seconds, at least 1.
func (c *Circuit) wait(now time.Duration) int {
	left := time.Duration(c.until.Load()) - now
	return max(1, int((left+time.Second-1)/time.Second))
}

// tell notes how a call went that passed or was tried.
func (c *Circuit) tell(how pass, failed bool, status int, now time.Duration) {
	until := c.until.Load()
	switch {
	case how == trial && !failed:
		c.reset(until, "a call that was tried did not fail")
	case how == trial:
		c.until.CompareAndSwap(until, int64(now+c.rule.Return))
	case until != 0: // it was sent before the circuit opened
	case c.count(now, failed) && c.until.CompareAndSwap(0, int64(now+c.rule.Return)):
		c.trips.Add(1)
		c.announce(event.BreakerTripped, status, "too many calls failed; calls are refused for "+c.rule.Return.String())
	}
}

// undecided gives a trial back that came to nothing: the next call is one.
func (c *Circuit) undecided(how pass, now time.Duration) {
	if until := c.until.Load(); how == trial && until > int64(now) {
		c.until.CompareAndSwap(until, int64(now))
	}
}

func (c *Circuit) reset(until int64, why string) {
	// Forgotten first: a failure that comes meanwhile must not meet the old ones.
	for i := range c.calls {
		c.calls[i].Store(0)
	}
	if until != 0 && c.until.CompareAndSwap(until, 0) {
		c.announce(event.BreakerReset, 0, "calls pass again: "+why)
	}
}

// count adds a call to its second, and tells whether too many have failed.
func (c *Circuit) count(now time.Duration, failed bool) (tooMany bool) {
	second := uint64(now/time.Second) % maxSecond
	word := &c.calls[second%span]
	for {
		old := word.Load()
		sum := old
		if old>>secondAt != second {
			sum = second << secondAt
		}
		if sum&countMask == countMask || sum>>countBits&countMask == countMask {
			break // as many as can be told apart
		}
		sum += oneCall
		if failed {
			sum++
		}
		if word.CompareAndSwap(old, sum) {
			break
		}
	}
	return failed && c.tooMany(second)
}

// tooMany looks at the last seconds.
func (c *Circuit) tooMany(second uint64) bool {
	var all, failed uint64
	for i := range c.calls {
		word := c.calls[i].Load()
		if (second-word>>secondAt)%maxSecond < span {
			all += word >> countBits & countMask
			failed += word & countMask
		}
	}
	return all >= uint64(c.rule.Samples) && float64(failed) >= c.rule.Share*float64(all)
}

func (c *Circuit) announce(name event.Name, status int, detail string) {
	what := "all calls"
	if c.path != "" {
		what = c.path
	}
	e := event.Event{
		Name: name, At: time.Now(), API: c.api, Detail: what + ": " + detail,
		Upstream: &event.Upstream{Path: c.path, Status: status, Open: name == event.BreakerTripped},
	}
	c.raise(e)
	e.Name = event.BreakerTriggered
	c.raise(e)
}

// State is how a circuit is.
type State struct {
	Path  string // of the calls that it is for; "" for all
	Open  bool   // calls are refused
	Trips uint64 // ever
}

// State returns how the circuit is.
func (c *Circuit) State() State {
	return State{Path: c.path, Open: c.until.Load() != 0, Trips: c.trips.Load()}
}
