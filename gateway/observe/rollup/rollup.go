// Package rollup counts the calls to APIs by key, status and reason, a minute at a
// time, for whoever takes the counts away every few seconds.
//
// A call costs a lock that is held for one look-up, or for none where its key has
// a Seat, and no allocation: calls with a key spread over the locks by their key,
// those without by chance. At most 262,144 rows are held between two Takes, in 32
// MiB, and as much is kept for the next ones; calls of keys that find no room are
// counted all the same, as those of other keys.
package rollup

import (
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition/usage"
)

// shards is how many parts of the counts are written to at a time; a power of two.
const shards = 64

// limits bound the rows of one shard.
type limits struct {
	keys int // beyond them, keys without a row count as others
	rows int // beyond them, calls are lost but for their number
}

var standard = limits{keys: 3584, rows: 4096}

// Counts are those of all APIs of a gateway. They are safe for concurrent use.
type Counts struct {
	shards [shards]shard // first, so that each begins a line of the processor's cache
	limits limits
	seed   maphash.Seed
	lanes  uint32 // of rows without a key, less one
	lost   atomic.Uint64
	others atomic.Uint64

	taking sync.Mutex
}

// New returns counts of nothing.
func New() *Counts { return newCounts(standard) }

func newCounts(l limits) *Counts {
	lanes := uint32(1)
	for int(lanes) < min(runtime.GOMAXPROCS(0), 16) {
		lanes *= 2
	}
	return &Counts{limits: l, seed: maphash.MakeSeed(), lanes: lanes - 1}
}

// A Meter knows of an API what its calls do not say.
type Meter interface {
	// Latencies returns how many calls took how long, ever. It is asked by one
	// goroutine at a time.
	Latencies() usage.Latencies
	// ReasonName returns what the reason of a refusal is called; "" for 0.
	ReasonName(reason uint8) string
}

// API is where the calls of one API are counted.
type API struct {
	id, org string
	hash    uint64
	meter   Meter

	// What only Take uses.
	seen   usage.Latencies // when they were last taken
	minute uint32          // of the last call; 0: there was none since the last Take
}

// NewAPI returns what counts the calls of an API of an organisation.
func NewAPI(id, org string, m Meter) *API {
	return &API{id: id, org: org, hash: rand.Uint64(), meter: m}
}

// SkipLatencies has those that there were so far count elsewhere. It is for
// whoever makes the API.
func (a *API) SkipLatencies() { a.seen = a.meter.Latencies() }

// Org returns the organisation in whose name calls are counted.
func (a *API) Org() string { return a.org }

// A Call is one that has been answered.
type Call struct {
	API    *API
	Key    string // identity; "" without one
	Name   string // what logs call the key: the beginning of Key, unless that is the key itself
	Seat   *Seat  // of the key at the API; nil: there is none
	Status int    // 0 when nothing was answered
	Reason uint8  // of a refusal; 0 without one
	End    time.Time

	Total, Upstream time.Duration // not negative
}

// Clear tells whether Key is the key itself, which must not leave the process.
func (c *Call) Clear() bool { return !strings.HasPrefix(c.Key, c.Name) }

// minute returns when the call ended, in minutes since 1970.
func (c *Call) minute() uint32 { return uint32(c.End.Unix() / 60) }

// Count counts a call.
func (c *Counts) Count(call *Call) {
	if call.Key != "" && call.Seat != nil && c.countAt(call) {
		return
	}
	c.addRow(row{
		api: call.API, key: call.Key, clear: call.Clear(), minute: call.minute(),
		kind: kind{uint16(call.Status), call.Reason},
		hits: 1, total: call.Total, upstream: call.Upstream,
	})
}

// addRow counts what is in a row in the shard where it belongs.
func (c *Counts) addRow(r row) {
	at := r.api.hash
	if r.key != "" {
		at ^= maphash.String(c.seed, r.key)
	}
	r.hash = r.hashWith(at)
	if r.key == "" && c.lanes > 0 {
		at += uint64(rand.Uint32() & c.lanes)
	}
	s := &c.shards[at%shards]
	s.mu.Lock()
	c.add(s, &r)
	s.mu.Unlock()
}

// add counts what is in a row. The lock of the shard is held.
func (c *Counts) add(s *shard, r *row) {
	if s.rows.add(r, c.limits.keys-len(s.places)) {
		return
	}
	if r.key != "" && r.key != usage.Other {
		r.key, r.clear = usage.Other, false
		r.hash = r.hashWith(r.api.hash + 1)
		c.others.Add(uint64(r.hits))
	}
	if !s.rows.add(r, c.limits.rows-len(s.places)) {
		c.lost.Add(uint64(r.hits))
	}
}

// Others returns how many calls were counted as those of other keys.
func (c *Counts) Others() uint64 { return c.others.Load() }

// Lost returns how many calls were counted nowhere else.
func (c *Counts) Lost() uint64 { return c.lost.Load() }

// shard is a part of the counts.
type shard struct {
	mu     sync.Mutex
	rows   table
	places []*place // that have counted since the last Take

	// Only Take uses these, which are empty otherwise.
	spare table
	left  []*place

	_ [8]byte // so that no two share a line of the processor's cache
}

// Take hands out what was counted since the last Take, and forgets it. Several
// rows may be of the same calls but for their number.
func (c *Counts) Take(each func(usage.Row), latency func(usage.Latency)) {
	c.taking.Lock()
	defer c.taking.Unlock()
	var called []*API
	export := func(r *row) {
		each(r.export())
		if r.api.minute == 0 {
			called = append(called, r.api)
		}
		r.api.minute = max(r.api.minute, r.minute)
	}
	for i := range c.shards {
		c.shards[i].take(export)
	}
	for _, api := range called {
		latency(api.latency())
	}
}

// take hands out what was counted, and forgets it.
func (s *shard) take(export func(*row)) {
	s.mu.Lock()
	s.rows, s.spare = s.spare, s.rows
	s.places, s.left = s.left, s.places
	s.mu.Unlock()
	for at := range s.spare.list {
		if r := &s.spare.list[at]; r.hits > 0 {
			export(r)
		}
	}
	s.spare.reset()
	for _, p := range s.left {
		p.mu.Lock()
		r := p.row()
		p.mu.Unlock()
		export(&r)
	}
	clear(s.left) // of keys that are gone nothing stays
	s.left = s.left[:0]
}

// latency returns how long the calls took since it was last asked. Those of two
// minutes count as the later one's.
func (a *API) latency() usage.Latency {
	l := usage.Latency{Minute: int64(a.minute) * 60, Org: a.org, API: a.id}
	now := a.meter.Latencies()
	for i := range now {
		l.Counts[i] = now[i] - a.seen[i]
	}
	a.seen, a.minute = now, 0
	return l
}
