package rollup

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// A Seat remembers where the calls of one key to one API are counted, for whoever
// counts them again and again: nothing need be looked up then, and of all that a
// processor fetches from main memory for a call only one line is for its count.
// The zero value remembers nothing yet. It is safe for concurrent use.
type Seat struct{ place atomic.Pointer[place] }

// A place counts the calls of one key to one API that came last and are alike. It
// fills a line of the processor's cache.
type place struct {
	mu              sync.Mutex
	api             *API
	key             string
	total, upstream time.Duration
	hits            uint32 // 0: it stands in no shard's list
	minute          uint32
	kind            kind
	clear           bool
	shard           uint8
}

// kind is what calls must have in common, besides their minute, to be alike.
type kind struct {
	status uint16
	reason uint8
}

// row takes what was counted out of a place. Its lock is held.
func (p *place) row() row {
	r := row{
		api: p.api, key: p.key, clear: p.clear, minute: p.minute, kind: p.kind,
		hits: p.hits, total: p.total, upstream: p.upstream,
	}
	p.hits, p.total, p.upstream = 0, 0, 0
	return r
}

// countAt counts a call at its seat, or tells that there is no room for that.
func (c *Counts) countAt(call *Call) bool {
	p := call.Seat.place.Load()
	if p == nil || p.api != call.API || p.key != call.Key {
		p = &place{api: call.API, key: call.Key, clear: call.Clear(), shard: uint8(rand.Uint32() % shards)}
		call.Seat.place.Store(p)
	}
	minute, like := call.minute(), kind{uint16(call.Status), call.Reason}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.hits == 0:
		if !c.list(p) {
			return false
		}
		p.minute, p.kind = minute, like
	case p.minute != minute || p.kind != like:
		c.addRow(p.row())
		p.minute, p.kind = minute, like
	}
	p.hits++
	p.total += call.Total
	p.upstream += call.Upstream
	return true
}

// list has the next Take find a place, and tells whether there was room for it.
func (c *Counts) list(p *place) bool {
	s := &c.shards[p.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.places)+s.rows.n >= c.limits.keys {
		return false
	}
	s.places = append(s.places, p)
	return true
}
