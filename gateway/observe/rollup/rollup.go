// Package rollup counts the calls to APIs by key, status and reason, a minute at a
// time, for whoever takes the counts away every few seconds.
//
// A call costs a lock that is held for one look-up, and no allocation: calls with
// a key spread over the locks by their key, those without by chance. At most
// 262,144 rows are held between two Takes, in 32 MiB, and as much is kept for the
// next ones; calls of keys that find no room are counted all the same, as those
// of other keys.
package rollup

import (
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
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

// A Timer knows how long the calls of an API took.
type Timer interface {
	// Latencies returns how many calls took how long, ever. It is asked by one
	// goroutine at a time.
	Latencies() usage.Latencies
}

// API is where the calls of one API are counted.
type API struct {
	id, org string
	hash    uint64
	timer   Timer

	// What only Take uses.
	seen   usage.Latencies // when they were last taken
	minute uint32          // of the last call; 0: there was none since the last Take
}

// NewAPI returns what counts the calls of an API of an organisation.
func NewAPI(id, org string, t Timer) *API {
	return &API{id: id, org: org, hash: rand.Uint64(), timer: t}
}

// SkipLatencies has those that there were so far count elsewhere. It is for
// whoever makes the API.
func (a *API) SkipLatencies() { a.seen = a.timer.Latencies() }

// Org returns the organisation in whose name calls are counted.
func (a *API) Org() string { return a.org }

// A Call is one that has been answered.
type Call struct {
	API    *API
	Key    string // identity; "" without one
	Clear  bool   // Key is the key itself, which must not leave the process
	Status int    // 0 when nothing was answered
	Reason pipeline.Reason
	End    time.Time

	Total, Upstream time.Duration // not negative
}

// Count counts a call.
func (c *Counts) Count(call *Call) {
	r := row{
		api: call.API, key: call.Key, clear: call.Clear, minute: uint32(call.End.Unix() / 60),
		status: uint16(call.Status), reason: call.Reason,
		hits: 1, total: call.Total, upstream: call.Upstream,
	}
	at := call.API.hash
	if call.Key != "" {
		at ^= maphash.String(c.seed, call.Key)
	}
	r.hash = r.hashWith(at)
	if call.Key == "" && c.lanes > 0 {
		at += uint64(rand.Uint32() & c.lanes)
	}
	s := &c.shards[at%shards]
	s.mu.Lock()
	c.add(s, &r)
	s.mu.Unlock()
}

// add counts what is in a row. The lock of the shard is held.
func (c *Counts) add(s *shard, r *row) {
	if s.rows.add(r, c.limits.keys) {
		return
	}
	if r.key != "" && r.key != usage.Other {
		r.key, r.clear = usage.Other, false
		r.hash = r.hashWith(r.api.hash + 1)
		c.others.Add(uint64(r.hits))
	}
	if !s.rows.add(r, c.limits.rows) {
		c.lost.Add(uint64(r.hits))
	}
}

// Others returns how many calls were counted as those of other keys.
func (c *Counts) Others() uint64 { return c.others.Load() }

// Lost returns how many calls were counted nowhere else.
func (c *Counts) Lost() uint64 { return c.lost.Load() }

// shard is a part of the counts.
type shard struct {
	mu    sync.Mutex
	rows  table
	spare table    // empty; only Take uses it
	_     [56]byte // so that no two share a line of the processor's cache
}

// Take hands out what was counted since the last Take, and forgets it. Several
// rows may be of the same calls but for their number.
func (c *Counts) Take(row func(usage.Row), latency func(usage.Latency)) {
	c.taking.Lock()
	defer c.taking.Unlock()
	var called []*API
	for i := range c.shards {
		list := c.shards[i].swap()
		for at := range list {
			r := &list[at]
			if r.hits == 0 {
				continue
			}
			row(r.export())
			if r.api.minute == 0 {
				called = append(called, r.api)
			}
			r.api.minute = max(r.api.minute, r.minute)
		}
		c.shards[i].spare.reset()
	}
	for _, api := range called {
		latency(api.latency())
	}
}

// swap returns the rows that were counted, which nobody adds to any more.
func (s *shard) swap() []row {
	s.mu.Lock()
	s.rows, s.spare = s.spare, s.rows
	s.mu.Unlock()
	return s.spare.list
}

// latency returns how long the calls took since it was last asked. Those of two
// minutes count as the later one's.
func (a *API) latency() usage.Latency {
	l := usage.Latency{Minute: int64(a.minute) * 60, Org: a.org, API: a.id}
	now := a.timer.Latencies()
	for i := range now {
		l.Counts[i] = now[i] - a.seen[i]
	}
	a.seen, a.minute = now, 0
	return l
}
