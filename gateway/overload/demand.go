package overload

import (
	"hash/maphash"
	"math"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// cells is how many keys of one API are told apart. More share.
const cells = 1024

// demand is what is asked of one API, and what it may have.
type demand struct {
	api string

	seen     atomic.Uint32 // calls in this window
	shed     atomic.Uint32 // of them
	interval atomic.Int64  // nanoseconds between two calls that pass; 0: all do
	turn     turn          // of the API as a whole, as long as keys cannot be told apart
	keys     atomic.Pointer[keyTable]
	listed   atomic.Bool

	// Only the goroutine of Run uses these.
	rate   float64 // calls per second that are asked for, smoothed
	within int     // windows in a row that the API was within its share
	total  uint64  // calls shed since the API was listed
}

// keyTable tells the keys of an API apart, in two rows of cells with different
// places for each key: where a quiet key shares its cell with a greedy one in
// one row, it hardly does in the other, and one that is due is enough.
type keyTable struct {
	interval atomic.Int64 // nanoseconds between two calls of one key; 0: not known yet
	seen     [cells]atomic.Uint32
	turns    [2][cells]turn

	// Only the goroutine of Run uses these.
	rates      [cells]float64 // calls per second, smoothed
	fresh      bool           // rates are of no window yet
	correction float64        // of the level, by what came of it
}

// smoothing is the weight of the last window in what an API or a key asks for.
const smoothing = 0.25

func smoothed(rate, last float64) float64 { return rate + smoothing*(last-rate) }

// pass tells whether a call of the API may go on.
func (d *demand) pass(seed maphash.Seed, now int64, ex *pipeline.Exchange) bool {
	d.seen.Add(1)
	keys, interval := d.keys.Load(), d.interval.Load()
	if keys != nil {
		own := keys.interval.Load()
		at := keys.count(seed, ex)
		if own > 0 && interval > 0 {
			return d.settle(keys.pass(at, now, own))
		}
	}
	if interval == 0 {
		return true
	}
	due := d.turn.due(now)
	if due {
		d.turn.take(now, interval)
	}
	return d.settle(due)
}

// wouldPass tells what pass would, and takes no turn. Nobody has to wait for an
// API that was not called yet: d is nil.
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

func (d *demand) settle(passes bool) bool {
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

// hashOf tells clients without a key apart by address. Whoever has one IPv6
// address commonly has the 2^64 beside it too.
func hashOf(seed maphash.Seed, client netip.Addr) uint64 {
	b := client.As16()
	if client.Is4() || client.Is4In6() {
		return maphash.Bytes(seed, b[:])
	}
	return maphash.Bytes(seed, b[:8])
}

// pass takes the turn of a key in both rows once it is due in one.
func (t *keyTable) pass(at [2]uint32, now, interval int64) bool {
	first, second := &t.turns[0][at[0]], &t.turns[1][at[1]]
	if !first.due(now) && !second.due(now) {
		return false
	}
	first.take(now, interval)
	second.take(now, interval)
	return true
}

// start makes a table ready for an API, at a time on the guard's clock.
func (t *keyTable) start(now int64) {
	t.interval.Store(0)
	for i := range cells {
		t.seen[i].Store(0)
		t.turns[0][i].next.Store(now)
		t.turns[1][i].next.Store(now)
	}
	t.fresh, t.correction = true, 1
}

// collect ends a window for the API: it returns the calls that passed and those
// that were shed.
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

// share is what the API may have, in calls per second; +Inf for all.
func (d *demand) share() float64 {
	if interval := d.interval.Load(); interval > 0 {
		return 1e9 / float64(interval)
	}
	return math.Inf(1)
}

// collect ends a window for the keys of an API that had so many calls per second
// of the share that was meant for it.
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

// correct adjusts the level by how much of what was meant was used. Rates of
// keys that call rarely are coarse, and lead to a level that is too high.
func (t *keyTable) correct(off float64) {
	off = min(max(off, 0.5), 2)
	t.correction = min(max(t.correction*math.Pow(off, 0.2), 0.1), 2)
}

// limit sets the level of the keys so that the API has its share of what it asks
// for.
func (t *keyTable) limit(part float64) {
	sum := 0.0
	for _, rate := range t.rates {
		sum += rate
	}
	t.interval.Store(intervalOf(level(t.rates[:], sum*part) * t.correction))
}

// intervalOf turns calls per second into the nanoseconds between two of them; 0
// for any number.
func intervalOf(rate float64) int64 {
	if math.IsInf(rate, 1) {
		return 0
	}
	return int64(min(max(1e9/max(rate, 1e-3), 1), 1e12))
}
