// Package usage counts the operations that GraphQL APIs are asked for: how often
// each was run and what came of it, and which fields of the schema which key has
// read, so that one can see who uses a field before it is removed.
//
// A request costs a look-up and a few additions: what is counted is the pair of
// operation and key. Fields are worked out when somebody asks, and when a pair
// has to make room for another.
package usage

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// limits bound what clients can have remembered.
type limits struct {
	pairs int   // of operation and key in one shard, whose fields are not worked out yet
	bytes int   // that these pairs hold on to, in one shard
	rows  int   // of one API: its fields and, for each, its keys
	all   int64 // rows of all APIs
	names int   // of operations, for one API
}

// standard are the limits of a gateway: at most about 150 MiB, and next to
// nothing without GraphQL traffic.
var standard = limits{pairs: 1024, bytes: 1 << 20, rows: 100_000, all: 1_000_000, names: 200}

// Usage counts for all APIs of a gateway. It is safe for concurrent use.
type Usage struct {
	limits limits
	seed   maphash.Seed
	shards [shards]shard
	rows   atomic.Int64 // of all APIs

	mu   sync.Mutex
	apis map[string]*API
}

// New returns what has counted nothing.
func New() *Usage { return newUsage(standard) }

func newUsage(l limits) *Usage {
	return &Usage{limits: l, seed: maphash.MakeSeed(), apis: make(map[string]*API)}
}

// An API is what was counted for one API. It is safe for concurrent use.
type API struct {
	usage  *Usage
	since  time.Time
	names  names
	depths depths
	totals totals
}

// Open returns where the operations of an API are counted. It goes on where it
// was, until Keep drops the API.
func (u *Usage) Open(api string) *API {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.apis[api]
	if a == nil {
		a = &API{usage: u, since: time.Now()}
		a.names.max = u.limits.names
		a.totals.open(u.limits, &u.rows)
		u.apis[api] = a
	}
	return a
}

// Gone tells whether Keep has dropped the API: what is counted there is lost.
func (a *API) Gone() bool {
	a.totals.mu.Lock()
	defer a.totals.mu.Unlock()
	return a.totals.closed
}

// find returns what was counted for an API, or nil when that is nothing.
func (u *Usage) find(api string) *API {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.apis[api]
}

// Result is what came of an operation.
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

// An Operation is one that was asked for.
type Operation struct {
	Facts  *validate.Facts
	Schema *schema.Schema // that the facts refer to
	Key    string         // what logs call the key, never the key itself; "" without one
	At     time.Time
}

// Count counts an operation. Fields count as read unless it was refused. It does
// not allocate for an operation that was counted for the key before.
func (a *API) Count(o Operation, r Result) {
	a.depths.count(int(o.Facts.Depth))
	if r >= Refused {
		a.names.find(o.Facts.Kind, o.Facts.Name).results[Refused].Add(1)
		return
	}
	a.usage.count(pair{a, o.Facts, o.Key}, &o).results[r].Add(1)
}

// Keep drops what was counted for other APIs than these, given with the schemas
// that they have now, and lets go of all other schemas.
func (u *Usage) Keep(live map[string]*schema.Schema) {
	u.mu.Lock()
	var gone []*API
	for id, a := range u.apis {
		if _, ok := live[id]; !ok {
			delete(u.apis, id)
			gone = append(gone, a)
		}
	}
	u.mu.Unlock()
	for _, a := range gone {
		a.totals.close()
	}
	used := make(map[*API]*schema.Schema, len(live))
	for id, s := range live {
		if a := u.find(id); a != nil {
			used[a] = s
		}
	}
	u.retire(used)
	for a, s := range used {
		a.totals.forget(s)
	}
}
