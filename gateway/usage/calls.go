// Package usage counts what passes through a gateway: calls by API, key, status
// and reason, which a Sender ships to the admin every few seconds, and the GraphQL
// operations and fields that are used, which stay in the gateway.
//
// Counting a call costs one lock and one look-up, and does not allocate once its
// row exists. At most 262,144 rows are held between two Takes, in about 32 MiB;
// calls with keys beyond that are counted under the key "other".
package usage

import (
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/usage"
)

// callShards is how many parts of the counts have their own lock.
const callShards = 64

// callLimits bound the rows of one shard.
type callLimits struct {
	keys int // beyond them, keys without a row count as usage.Other
	rows int // beyond them, only the number of lost calls is kept
}

var standardCallLimits = callLimits{keys: 3584, rows: 4096}

// Calls counts the calls to all APIs of a gateway. It is safe for concurrent use.
type Calls struct {
	shards [callShards]callShard
	limits callLimits
	seed   maphash.Seed
	lanes  uint32 // number of shards that share the calls without a key of one API, less one
	lost   atomic.Uint64
	others atomic.Uint64

	taking sync.Mutex
}

// NewCalls returns counts of nothing.
func NewCalls() *Calls { return newCalls(standardCallLimits) }

func newCalls(l callLimits) *Calls {
	lanes := uint32(1)
	for int(lanes) < min(runtime.GOMAXPROCS(0), 16) {
		lanes *= 2
	}
	return &Calls{limits: l, seed: maphash.MakeSeed(), lanes: lanes - 1}
}

// APICalls identifies the API that calls are counted for.
type APICalls struct {
	id, org   string
	hash      uint64
	latencies func() usage.Latencies

	// Only Take uses these.
	seen   usage.Latencies // as of the last Take
	minute uint32          // of the last call; 0: there was none since the last Take
}

// NewAPICalls returns the identity of an API of an organisation. latencies returns
// how many calls took how long since the API was first called; one goroutine calls
// it at a time.
func NewAPICalls(id, org string, latencies func() usage.Latencies) *APICalls {
	return &APICalls{id: id, org: org, hash: rand.Uint64(), latencies: latencies}
}

// SkipLatencies leaves out the latencies up to now, which were reported for another
// organisation. It must be called before the first call is counted.
func (a *APICalls) SkipLatencies() { a.seen = a.latencies() }

// Org returns the id of the organisation that calls are counted for.
func (a *APICalls) Org() string { return a.org }

// A Call is one that has been answered.
type Call struct {
	API    *APICalls
	Key    string // identity; "" without a key
	Name   string // of the key in logs: a prefix of Key, unless Key is the key itself
	Status int    // 0 when nothing was answered
	Reason pipeline.Reason
	End    time.Time

	Total, Upstream time.Duration // not negative
}

// rowKey is what the calls of a row have in common.
type rowKey struct {
	api    *APICalls
	key    string // not copied: it is held until the second next Take
	minute uint32 // since 1970
	status uint16
	reason pipeline.Reason
	clear  bool // key is the key itself, which must not leave the process
}

// rowSums are the numbers of the calls of a row.
type rowSums struct {
	total, upstream time.Duration
	hits            uint32
}

// Count counts a call.
func (c *Calls) Count(call *Call) {
	k := rowKey{
		api: call.API, key: call.Key, minute: uint32(call.End.Unix() / 60), status: uint16(call.Status), reason: call.Reason,
		clear: !strings.HasPrefix(call.Key, call.Name),
	}
	at := k.api.hash
	if k.key != "" {
		at ^= maphash.String(c.seed, k.key)
	} else if c.lanes > 0 {
		at += uint64(rand.Uint32() & c.lanes)
	}
	s := &c.shards[at%callShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows.find(k, c.limits.keys)
	if row == nil && k.key != "" && k.key != usage.Other {
		k.key, k.clear = usage.Other, false
		c.others.Add(1)
	}
	if row == nil {
		row = s.rows.find(k, c.limits.rows)
	}
	if row == nil {
		c.lost.Add(1)
		return
	}
	row.hits++
	row.total += call.Total
	row.upstream += call.Upstream
}

// Others returns how many calls were counted under usage.Other for want of memory.
func (c *Calls) Others() uint64 { return c.others.Load() }

// Lost returns how many calls were not counted for want of memory.
func (c *Calls) Lost() uint64 { return c.lost.Load() }

// callShard is a part of the counts. Take swaps its tables.
type callShard struct {
	mu   sync.Mutex
	rows rowTable

	spare rowTable // empty between Takes; only Take uses it
	_     [64]byte // keeps the locks of two shards in different cache lines
}

// Take hands out what was counted since the last Take, and forgets it. Several
// rows may differ in their numbers only.
func (c *Calls) Take(each func(usage.Row), latency func(usage.Latency)) {
	c.taking.Lock()
	defer c.taking.Unlock()
	var called []*APICalls
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.rows, s.spare = s.spare, s.rows
		s.mu.Unlock()
		for k, at := range s.spare.index {
			each(k.export(&s.spare.sums[at]))
			if k.api.minute == 0 {
				called = append(called, k.api)
			}
			k.api.minute = max(k.api.minute, k.minute)
		}
		s.spare.reset()
	}
	for _, api := range called {
		latency(api.latency())
	}
}

func (k *rowKey) export(sums *rowSums) usage.Row {
	return usage.Row{
		Minute: int64(k.minute) * 60, Org: k.api.org, API: k.api.id, Key: usage.KeyOf(k.key, k.clear),
		Status: int(k.status), Reason: k.reason.String(),
		Hits: int64(sums.hits), Total: sums.total.Microseconds(), Upstream: sums.upstream.Microseconds(),
	}
}

// latency returns how long the calls took since the last Take. Those of several
// minutes count for the last of them.
func (a *APICalls) latency() usage.Latency {
	l := usage.Latency{Minute: int64(a.minute) * 60, Org: a.org, API: a.id}
	now := a.latencies()
	for i := range now {
		l.Counts[i] = now[i] - a.seen[i]
	}
	a.seen, a.minute = now, 0
	return l
}

// A rowTable holds rows in memory that it keeps from one Take to the next.
type rowTable struct {
	index map[rowKey]uint32 // into sums
	sums  []rowSums
	peak  int // rows that the memory of index is for
}

// find returns the row of k. It adds one where there is none and fewer than most
// rows; otherwise it returns nil.
func (t *rowTable) find(k rowKey, most int) *rowSums {
	if at, ok := t.index[k]; ok {
		return &t.sums[at]
	}
	if len(t.sums) >= most {
		return nil
	}
	if t.index == nil {
		t.index = make(map[rowKey]uint32)
	}
	t.index[k] = uint32(len(t.sums))
	t.sums = append(t.sums, rowSums{})
	return &t.sums[len(t.sums)-1]
}

// leastPeak is up to how many rows a table keeps its memory whatever it is used
// for.
const leastPeak = 128

// reset empties the table. It gives memory back when most of it was not needed.
func (t *rowTable) reset() {
	t.peak = max(t.peak, len(t.sums))
	if t.peak > leastPeak && len(t.sums) < t.peak/16 {
		*t = rowTable{}
		return
	}
	clear(t.index)
	t.sums = t.sums[:0]
}
