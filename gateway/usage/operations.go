package usage

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// operationLimits bound the memory that clients can have filled.
type operationLimits struct {
	pairs int   // in one shard
	bytes int   // that the pairs of one shard keep from being freed
	rows  int   // of one API: its fields and, for each, its keys
	all   int64 // rows of all APIs
	names int   // of operations, for one API
}

// standardOperationLimits bound a gateway to about 150 MiB.
var standardOperationLimits = operationLimits{pairs: 1024, bytes: 1 << 20, rows: 100_000, all: 1_000_000, names: 200}

// Operations counts the GraphQL operations of all APIs of a gateway: how often each
// was run with which result, and which key read which fields of the schema. It is
// safe for concurrent use.
//
// A request costs a look-up and a few additions, since only pairs of operation and
// key are counted. Fields are worked out when a report is made, and when a pair is
// evicted.
type Operations struct {
	limits operationLimits
	seed   maphash.Seed
	shards [pairShards]pairShard
	rows   atomic.Int64 // of all APIs

	mu   sync.Mutex
	apis map[string]*APIOperations
}

// NewOperations returns counts of nothing.
func NewOperations() *Operations { return newOperations(standardOperationLimits) }

func newOperations(l operationLimits) *Operations {
	return &Operations{limits: l, seed: maphash.MakeSeed(), apis: make(map[string]*APIOperations)}
}

// APIOperations counts the operations of one API. It is safe for concurrent use.
type APIOperations struct {
	usage  *Operations
	since  time.Time
	names  operationNames
	depths depths
	totals totals
}

// Open returns the counts of an API. They go on until Keep drops the API.
func (u *Operations) Open(api string) *APIOperations {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.apis[api]
	if a == nil {
		a = &APIOperations{usage: u, since: time.Now()}
		a.names.max = u.limits.names
		a.totals.open(u.limits, &u.rows)
		u.apis[api] = a
	}
	return a
}

// Dropped reports whether Keep has dropped the API: what is counted here is lost.
func (a *APIOperations) Dropped() bool {
	a.totals.mu.Lock()
	defer a.totals.mu.Unlock()
	return a.totals.closed
}

// find returns the counts of an API, or nil without any.
func (u *Operations) find(api string) *APIOperations {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.apis[api]
}

// Result is what became of an operation.
type Result uint8

// The results.
const (
	OK      Result = iota
	Failed         // at the upstream
	Refused        // by the gateway
	results
)

// String returns the result's name in metrics.
func (r Result) String() string { return [results]string{"ok", "failed", "refused"}[r] }

// An Operation is one that a request ran.
type Operation struct {
	Facts  *validate.Facts
	Schema *schema.Schema // that the facts refer to
	Key    string         // name of the key in logs, never the key itself; "" without one
	At     time.Time
}

// Count counts an operation. Its fields count as read unless it was refused. It does
// not allocate for an operation that was counted for the key before.
func (a *APIOperations) Count(o Operation, r Result) {
	a.depths.count(int(o.Facts.Depth))
	if r >= Refused {
		a.names.find(o.Facts.Kind, o.Facts.Name).results[Refused].Add(1)
		return
	}
	a.usage.count(pair{a, o.Facts, o.Key}, &o).results[r].Add(1)
}

// Keep drops the counts of other APIs than these, given with their current schemas,
// and releases all other schemas.
func (u *Operations) Keep(live map[string]*schema.Schema) {
	u.mu.Lock()
	var gone []*APIOperations
	used := make(map[*APIOperations]*schema.Schema, len(live))
	for id, a := range u.apis {
		if s, ok := live[id]; ok {
			used[a] = s
			continue
		}
		delete(u.apis, id)
		gone = append(gone, a)
	}
	u.mu.Unlock()
	for _, a := range gone {
		a.totals.close()
	}
	u.retire(used)
	for a, s := range used {
		a.totals.release(s)
	}
}
