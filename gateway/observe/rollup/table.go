package rollup

import (
	"time"

	"github.com/sluicegate/sluice/internal/definition/usage"
)

// row counts the calls of a minute that are alike. It fills a line of the
// processor's cache.
type row struct {
	api             *API
	key             string // not copied: it lives until the next Take but one
	hash            uint64
	total, upstream time.Duration
	hits            uint32
	minute          uint32 // since 1970
	kind            kind
	clear           bool // key is the key itself
}

func (r *row) isLike(o *row) bool {
	return r.hash == o.hash && r.api == o.api && r.minute == o.minute && r.kind == o.kind && r.key == o.key
}

// hashWith returns the hash of the row of a key and an API that hash to at.
func (r *row) hashWith(at uint64) uint64 {
	at ^= uint64(r.minute)<<32 ^ uint64(r.kind.status)<<8 ^ uint64(r.kind.reason)
	at *= 0x9e3779b97f4a7c15 // spreads what is different in few bits over all of them
	return at ^ at>>32
}

func (r *row) export() usage.Row {
	return usage.Row{
		Minute: int64(r.minute) * 60, Org: r.api.org, API: r.api.id, Key: usage.KeyOf(r.key, r.clear),
		Status: int(r.kind.status), Reason: r.api.meter.ReasonName(r.kind.reason),
		Hits: int64(r.hits), Total: r.total.Microseconds(), Upstream: r.upstream.Microseconds(),
	}
}

// A table finds rows by their hash, in one piece of memory that it keeps.
type table struct {
	list []row // a power of two; those without hits are free
	n    int
}

// The sizes of a table.
const (
	leastRows = 16
	idleShare = 16 // of a table, below which it is too large
)

// add adds r to the row that is like it, or as one more where there are fewer
// than most. It tells whether it did.
func (t *table) add(r *row, most int) bool {
	if t.list != nil {
		if found := t.find(r); found.hits > 0 {
			found.hits += r.hits
			found.total += r.total
			found.upstream += r.upstream
			return true
		}
	}
	if t.n >= most {
		return false
	}
	if t.n >= len(t.list)/2 { // mostly the first look hits: each is a trip to main memory
		t.grow()
	}
	*t.find(r) = *r
	t.n++
	return true
}

// find returns the row that is like r, or the free one where it belongs. There
// is always a free one.
func (t *table) find(r *row) *row {
	mask := uint64(len(t.list) - 1)
	for i := r.hash & mask; ; i = (i + 1) & mask {
		if at := &t.list[i]; at.hits == 0 || at.isLike(r) {
			return at
		}
	}
}

func (t *table) grow() {
	old := t.list
	t.list = make([]row, max(leastRows, 2*len(old)))
	for i := range old {
		if old[i].hits > 0 {
			*t.find(&old[i]) = old[i]
		}
	}
}

// reset empties the table. One that was far too large begins anew.
func (t *table) reset() {
	if len(t.list) > leastRows*idleShare && t.n < len(t.list)/idleShare {
		t.list = nil
	} else if t.n > 0 {
		clear(t.list)
	}
	t.n = 0
}
