package targets

import (
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// span is how many seconds calls are remembered.
const span = 10

// circuit counts the calls of one rule, and decides whether they pass. It takes no
// lock. It is safe for concurrent use.
type circuit struct {
	rule  definition.Breaker
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

// newCircuit returns a closed circuit. It calls raise when it opens or closes; raise
// must not wait.
func newCircuit(rule definition.Breaker, api, path string, raise func(event.Event)) *circuit {
	return &circuit{rule: rule, path: path, api: api, raise: raise, epoch: time.Now().Add(-time.Minute)}
}

// pass is a circuit's decision on a call.
type pass uint8

const (
	passes  pass = iota
	refused      // it must not be made
	trial        // it decides whether others may be
)

// now is the time by the circuit's clock.
func (c *circuit) now(at time.Time) time.Duration { return at.Sub(c.epoch) }

// admit decides on a call.
func (c *circuit) admit(now time.Duration) pass {
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
	// The call that extends the time is the trial. Should its result never be recorded,
	// another trial follows after the same time.
	if c.until.CompareAndSwap(until, int64(now+c.rule.Return)) {
		return trial
	}
	return refused
}

// peek is admit without the effect.
func (c *circuit) peek(now time.Duration) pass {
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
func (c *circuit) wait(now time.Duration) int {
	left := time.Duration(c.until.Load()) - now
	return max(1, int((left+time.Second-1)/time.Second))
}

// record records the result of a call that passed or was a trial.
func (c *circuit) record(how pass, failed bool, status int, now time.Duration) {
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

// undecided ends a trial without a result: the next call is the trial.
func (c *circuit) undecided(how pass, now time.Duration) {
	if until := c.until.Load(); how == trial && until > int64(now) {
		c.until.CompareAndSwap(until, int64(now))
	}
}

func (c *circuit) reset(until int64, why string) {
	// Forgotten first: a failure that comes meanwhile must not meet the old ones.
	for i := range c.calls {
		c.calls[i].Store(0)
	}
	if until != 0 && c.until.CompareAndSwap(until, 0) {
		c.announce(event.BreakerReset, 0, "calls pass again: "+why)
	}
}

// count adds a call to its second, and reports whether too many have failed.
func (c *circuit) count(now time.Duration, failed bool) (tooMany bool) {
	second := uint64(now/time.Second) % maxSecond
	word := &c.calls[second%span]
	for {
		old := word.Load()
		sum := old
		if old>>secondAt != second {
			sum = second << secondAt
		}
		if sum&countMask == countMask || sum>>countBits&countMask == countMask {
			break // the counter is full
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
func (c *circuit) tooMany(second uint64) bool {
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

func (c *circuit) announce(name event.Name, status int, detail string) {
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

// circuitState is how a circuit is.
type circuitState struct {
	Path  string // of the calls that it is for; "" for all
	Open  bool   // calls are refused
	Trips uint64 // ever
}

// State returns how the circuit is.
func (c *circuit) state() circuitState {
	return circuitState{Path: c.path, Open: c.until.Load() != 0, Trips: c.trips.Load()}
}
