package overload

import (
	"slices"
	"time"
)

const (
	maxTables  = 64 // APIs whose keys are counted at the same time
	calmToFree = 20 // consecutive windows within its share before an API's keys are dropped
	pruneEvery = 20 // windows, after which APIs that are no longer called are dropped
)

// idleRate is the rate below which an API is dropped, in calls per second.
const idleRate = 0.05

// keeper is the state of the goroutine of Run.
type keeper struct {
	guard   *Guard
	control control
	windows int // since the guard began to watch

	holders []*demand // of tables
	free    []*keyTable
	wants   []float64 // scratch

	began   time.Time // of the shedding
	shed    uint64    // calls since then
	top     string    // the API with the most of them
	topShed uint64
}

// pace returns how long to wait until the next probe.
func (k *keeper) pace(delay time.Duration) time.Duration {
	if k.control.phase == calm && delay < k.control.TargetDelay/8 {
		return tickCalm
	}
	return tickBusy
}

// endWindow ends a window and sets the limits of the next.
func (k *keeper) endWindow(now time.Time, took, delay time.Duration) {
	r := reading{delay: delay}
	before := k.control.phase
	if before != calm {
		k.collect(took, &r)
	}
	after := k.control.step(r)
	switch {
	case before != shedding && after == shedding:
		k.begin(now, r)
	case before == shedding && after != shedding:
		k.end(now)
	}
	switch {
	case after == shedding:
		k.divide(int64(now.Sub(k.guard.epoch)), r.wanted)
	case after == calm && before != calm:
		k.reset()
	}
	k.guard.phase.Store(uint32(after))
	k.report(delay)
}

// collect adds up the calls of the window.
func (k *keeper) collect(took time.Duration, r *reading) {
	for _, d := range k.guard.called() {
		passed, shed := d.collect(took)
		r.passed += float64(passed) / took.Seconds()
		r.shed += float64(shed) / took.Seconds()
		r.wanted += d.rate
		k.shed += shed
		if d.total > k.topShed {
			k.top, k.topShed = d.api, d.total
		}
	}
	if k.windows++; k.windows%pruneEvery == 0 {
		k.guard.prune()
	}
}

// divide distributes the calls that may pass between the APIs, at a time on the
// guard's clock.
func (k *keeper) divide(now int64, wanted float64) {
	listed := k.guard.called()
	k.wants = k.wants[:0]
	for _, d := range listed {
		k.wants = append(k.wants, d.rate)
	}
	each := level(k.wants, k.control.limit)
	for _, d := range listed {
		if d.rate <= each {
			d.interval.Store(0)
			if d.within++; d.within == calmToFree {
				k.release(d)
			}
			continue
		}
		d.within = 0
		if d.interval.Swap(intervalOf(each)) == 0 {
			d.turn.next.Store(now)
		}
		if t := d.keys.Load(); t != nil {
			t.limit(each / d.rate)
		} else if t := k.table(d, wanted); t != nil {
			t.start(now)
			d.keys.Store(t)
			k.holders = append(k.holders, d)
		}
	}
}

// table returns a table for an API, or nil when there is none. An API with a large
// part of the load gets the table of the one with the smallest.
func (k *keeper) table(d *demand, wanted float64) *keyTable {
	if len(k.free) == 0 && len(k.holders) == maxTables && d.rate > 2*wanted/maxTables {
		k.release(slices.MinFunc(k.holders, func(a, b *demand) int {
			if a.rate < b.rate {
				return -1
			}
			return 1
		}))
	}
	switch last := len(k.free) - 1; {
	case last >= 0:
		t := k.free[last]
		k.free = k.free[:last]
		return t
	case len(k.holders) < maxTables:
		return new(keyTable)
	}
	return nil
}

// release frees the table of an API, if it has one.
func (k *keeper) release(d *demand) {
	if t := d.keys.Swap(nil); t != nil {
		k.free = append(k.free, t)
		k.holders = slices.DeleteFunc(k.holders, func(h *demand) bool { return h == d })
	}
}

func (k *keeper) begin(now time.Time, r reading) {
	k.began = now
	k.guard.log.Warn("overloaded: calls that are too many get 503", "delay", r.delay, "target", k.control.TargetDelay,
		"served", int(r.passed), "limit", int(k.control.limit))
}

func (k *keeper) end(now time.Time) {
	k.guard.log.Info("no longer overloaded", "after", now.Sub(k.began).Round(time.Millisecond),
		"shed", k.shed, "most_of", k.top, "most_shed", k.topShed)
	k.shed, k.top, k.topShed = 0, "", 0
}

// reset drops all counts of calls.
func (k *keeper) reset() {
	k.guard.reset()
	k.holders, k.free, k.windows = nil, nil, 0
}

// stop ends the guard's work: all calls pass.
func (k *keeper) stop() {
	k.guard.phase.Store(uint32(calm))
	if k.control.phase == shedding {
		k.end(time.Now())
	}
	k.control = control{Options: k.control.Options}
	k.reset()
	k.report(0)
}

// report updates Stats.
func (k *keeper) report(delay time.Duration) {
	s := &k.guard.stats
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.now.Shedding
	s.now.Delay, s.now.Shedding, s.now.Limit = delay, k.control.phase == shedding, k.control.limit
	if s.now.Shedding && !was {
		s.now.Times++
	}
}
