package overload

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// cells is how many keys of one API have a cell of their own; more keys share them.
const cells = 1024

// demand is the load of one API, and its share.
type demand struct {
	api string

	seen     atomic.Uint32 // calls in this window
	shed     atomic.Uint32 // of them
	interval atomic.Int64  // nanoseconds between two calls that pass; 0: all pass
	turn     turn          // of the API as a whole, while keys are not counted
	keys     atomic.Pointer[keyTable]
	listed   atomic.Bool

	// Used by the goroutine of Run only.
	rate   float64 // calls per second that arrive, smoothed
	within int     // consecutive windows in which the API was within its share
	total  uint64  // calls shed since the API was listed
}

// keyTable counts the keys of an API in two rows of cells, with an independent hash
// in each: a quiet key that shares its cell with a greedy one in one row is unlikely
// to do so in the other, and passes if one of its cells is due.
type keyTable struct {
	interval atomic.Int64 // nanoseconds between two calls of one key; 0: not set yet
	seen     [cells]atomic.Uint32
	turns    [2][cells]turn

	// Used by the goroutine of Run only.
	rates      [cells]float64 // calls per second, smoothed
	fresh      bool           // no window has been counted yet
	correction float64        // of the level, by its effect
}

// smoothing is the weight of the last window in the rate of an API or a key.
const smoothing = 0.25

func smoothed(rate, last float64) float64 { return rate + smoothing*(last-rate) }

// pass counts a call of the API and reports whether it may pass.
func (d *demand) pass(seed maphash.Seed, now int64, ex *pipeline.Exchange) bool {
	d.seen.Add(1)
	keys, interval := d.keys.Load(), d.interval.Load()
	if keys != nil {
		own := keys.interval.Load()
		at := keys.count(seed, ex)
		if own > 0 && interval > 0 {
			return d.record(keys.pass(at, now, own))
		}
	}
	if interval == 0 {
		return true
	}
	due := d.turn.due(now)
	if due {
		d.turn.take(now, interval)
	}
	return d.record(due)
}

// wouldPass returns what pass would, and counts nothing. d is nil for an API that was
// not called yet, whose calls pass.
func (d *demand) wouldPass(seed maphash.Seed, now int64, ex *pipeline.Exchange) bool {
	if d == nil || d.interval.Load() == 0 {
		return true
	}
	if keys := d.keys.Load(); keys != nil && keys.interval.Load() > 0 {
		at := cellsOf(seed, ex)
		return keys.turns[0][at[0]].due(now) || keys.turns[1][at[1]].due(now)
	}
	return d.turn.due(now)
}

// record counts a call that is shed. It returns passes.
func (d *demand) record(passes bool) bool {
	if !passes {
		d.shed.Add(1)
	}
	return passes
}

// count counts a call of a key and returns the key's two cells.
func (t *keyTable) count(seed maphash.Seed, ex *pipeline.Exchange) (at [2]uint32) {
	at = cellsOf(seed, ex)
	t.seen[at[0]].Add(1)
	return at
}

// cellsOf returns the two cells of a request's key.
func cellsOf(seed maphash.Seed, ex *pipeline.Exchange) [2]uint32 {
	var sum uint64
	if ex.KeyHash != "" {
		sum = maphash.String(seed, ex.KeyHash)
	} else {
		sum = hashOf(seed, ex.Client)
	}
	return [2]uint32{uint32(sum) % cells, uint32(sum>>32) % cells}
}

// hashOf returns the hash of a client without a key: of its IPv4 address, or of the
// /64 of its IPv6 address, which commonly belongs to one client.
func hashOf(seed maphash.Seed, client netip.Addr) uint64 {
	b := client.As16()
	if client.Is4() || client.Is4In6() {
		return maphash.Bytes(seed, b[:])
	}
	return maphash.Bytes(seed, b[:8])
}

// pass takes the turn of a key in both rows if it is due in one.
func (t *keyTable) pass(at [2]uint32, now, interval int64) bool {
	first, second := &t.turns[0][at[0]], &t.turns[1][at[1]]
	if !first.due(now) && !second.due(now) {
		return false
	}
	first.take(now, interval)
	second.take(now, interval)
	return true
}

// start resets a table for an API, at a time on the guard's clock.
func (t *keyTable) start(now int64) {
	t.interval.Store(0)
	for i := range cells {
		t.seen[i].Store(0)
		t.turns[0][i].next.Store(now)
		t.turns[1][i].next.Store(now)
	}
	t.fresh, t.correction = true, 1
}

// collect ends a window for the API. It returns the calls that passed and those that
// were shed.
func (d *demand) collect(took time.Duration) (passed, shed uint64) {
	seen, refused := d.seen.Swap(0), d.shed.Swap(0)
	refused = min(refused, seen)
	d.total += uint64(refused)
	last := float64(seen) / took.Seconds()
	if d.rate == 0 {
		d.rate = last
	} else {
		d.rate = smoothed(d.rate, last)
	}
	if t := d.keys.Load(); t != nil {
		t.collect(took, d.share(), float64(seen-refused)/took.Seconds())
	}
	return uint64(seen - refused), uint64(refused)
}

// share returns how many calls of the API may pass, per second; +Inf for all.
func (d *demand) share() float64 {
	if interval := d.interval.Load(); interval > 0 {
		return 1e9 / float64(interval)
	}
	return math.Inf(1)
}

// collect ends a window for the keys of an API, with its share and the calls that
// passed, per second.
func (t *keyTable) collect(took time.Duration, share, had float64) {
	for i := range cells {
		last := float64(t.seen[i].Swap(0)) / took.Seconds()
		if t.fresh {
			t.rates[i] = last
		} else {
			t.rates[i] = smoothed(t.rates[i], last)
		}
	}
	t.fresh = false
	if t.interval.Load() > 0 && !math.IsInf(share, 1) && had > 0 {
		t.correct(share / had)
	}
}

// correct adjusts the level by the ratio of the share to the calls that passed. Rates
// of keys that call rarely are coarse, and lead to a level that is too high.
func (t *keyTable) correct(off float64) {
	off = min(max(off, 0.5), 2)
	t.correction = min(max(t.correction*math.Pow(off, 0.2), 0.1), 2)
}

// limit sets the level of the keys so that part of the API's calls pass.
func (t *keyTable) limit(part float64) {
	sum := 0.0
	for _, rate := range t.rates {
		sum += rate
	}
	t.interval.Store(intervalOf(level(t.rates[:], sum*part) * t.correction))
}

// intervalOf returns the nanoseconds between two calls at a rate per second; 0 for
// +Inf.
func intervalOf(rate float64) int64 {
	if math.IsInf(rate, 1) {
		return 0
	}
	return int64(min(max(1e9/max(rate, 1e-3), 1), 1e12))
}
