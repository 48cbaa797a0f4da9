package usage

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// shards is how many parts of the table are written to at a time.
const shards = 64

// buckets is how many chains a shard has.
const buckets = 1024

// pair is an operation that a key ran. Facts are known by where they are: those
// of one text are the same for as long as they are remembered, and no others can
// take their place while a pair points to them.
type pair struct {
	api   *API
	facts *validate.Facts
	key   string
}

// entry counts a pair. Only the atomic members change once it is in a chain.
type entry struct {
	pair
	hash   uint64
	schema *schema.Schema
	run    *operation
	cost   int

	count atomic.Uint64
	last  atomic.Int64          // unix seconds
	next  atomic.Pointer[entry] // in the bucket; stays when the entry is taken out, for who is just reading it
}

// retired is set in the count of an entry that was taken out. Who adds to it
// then finds out by the sum, and counts again elsewhere.
const retired = 1 << 63

// add counts once, or tells that nobody will see it.
func (e *entry) add(at int64) bool {
	if at > e.last.Load() { // read mostly, so that cores share the line
		e.last.Store(at)
	}
	return e.count.Add(1)&retired == 0
}

// A delta is what a pair counted since it was last looked at.
type delta struct {
	pair
	schema *schema.Schema
	count  uint64
	last   int64
}

// take returns what e has counted, and leaves left in its place.
func (e *entry) take(left uint64) delta {
	n := e.count.Swap(left)
	return delta{pair: e.pair, schema: e.schema, count: n, last: e.last.Load()}
}

// shard is a part of the table. Reading takes no lock.
type shard struct {
	chains atomic.Pointer[[buckets]atomic.Pointer[entry]] // nil before the first entry

	mu      sync.Mutex
	entries []*entry
	hand    int // where the next search for something to evict begins
	bytes   int
}

func (u *Usage) shardOf(hash uint64) *shard { return &u.shards[hash%shards] }

func bucketOf(hash uint64) uint64 { return hash / shards % buckets }

// count counts a pair, and returns the operation that it is of.
func (u *Usage) count(p pair, o *Operation) *operation {
	hash := maphash.Comparable(u.seed, p)
	s := u.shardOf(hash)
	at := o.At.Unix()
	if e := s.find(hash, &p); e != nil && e.add(at) {
		return e.run
	}
	cost := sizeOf(&p)
	if cost > u.limits.bytes/4 {
		p.api.totals.fold([]delta{{p, o.Schema, 1, at}})
		return p.api.names.add(o.Facts.Kind, o.Facts.Name)
	}
	e, evicted := s.insert(u, hash, p, o)
	if len(evicted) > 0 {
		fold(evicted)
	}
	return e.run
}

// find returns the entry of a pair, or nil.
func (s *shard) find(hash uint64, p *pair) *entry {
	chains := s.chains.Load()
	if chains == nil {
		return nil
	}
	for e := chains[bucketOf(hash)].Load(); e != nil; e = e.next.Load() {
		if e.hash == hash && e.pair == *p {
			return e
		}
	}
	return nil
}

// insert counts a pair that was not there a moment ago, and returns what had to
// make room for it.
func (s *shard) insert(u *Usage, hash uint64, p pair, o *Operation) (*entry, []delta) {
	at := o.At.Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.find(hash, &p); e != nil {
		e.add(at) // nothing is taken out under the lock
		return e, nil
	}
	p.key = strings.Clone(p.key)
	e := &entry{pair: p, hash: hash, schema: o.Schema, run: p.api.names.add(o.Facts.Kind, o.Facts.Name), cost: sizeOf(&p)}
	e.add(at)
	var evicted []delta
	for len(s.entries) >= u.limits.pairs || len(s.entries) > 0 && s.bytes+e.cost > u.limits.bytes {
		evicted = append(evicted, s.remove(s.stalest()))
	}
	if s.chains.Load() == nil {
		s.chains.Store(new([buckets]atomic.Pointer[entry]))
	}
	head := &s.chains.Load()[bucketOf(hash)]
	e.next.Store(head.Load())
	head.Store(e)
	s.entries = append(s.entries, e)
	s.bytes += e.cost
	return e, evicted
}

// sample is how many entries are compared to find one to evict.
const sample = 8

// stalest returns the index of the entry, of the next few, that was not counted
// for the longest time. There is one.
func (s *shard) stalest() int {
	best := -1
	for range min(sample, len(s.entries)) {
		s.hand = (s.hand + 1) % len(s.entries)
		if best < 0 || s.entries[s.hand].last.Load() < s.entries[best].last.Load() {
			best = s.hand
		}
	}
	return best
}

// remove takes an entry out and returns what it has counted. The lock is held.
func (s *shard) remove(i int) delta {
	gone := s.entries[i]
	last := len(s.entries) - 1
	s.entries[i], s.entries[last] = s.entries[last], nil
	s.entries = s.entries[:last]
	s.bytes -= gone.cost
	at := &s.chains.Load()[bucketOf(gone.hash)]
	for e := at.Load(); e != gone; e = at.Load() {
		at = &e.next
	}
	at.Store(gone.next.Load())
	return gone.take(retired)
}

// drain has the totals of an API hold everything that was counted for it.
func (u *Usage) drain(a *API) {
	for i := range u.shards {
		a.totals.fold(u.shards[i].taken(a))
	}
}

// taken returns what was counted for an API since it was last asked.
func (s *shard) taken(a *API) (all []delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.api == a && e.count.Load() > 0 {
			all = append(all, e.take(0))
		}
	}
	return all
}

// retire takes out the pairs of all APIs but these, and of all schemas but
// theirs.
func (u *Usage) retire(used map[*API]*schema.Schema) {
	for i := range u.shards {
		fold(u.shards[i].retire(used))
	}
}

func (s *shard) retire(used map[*API]*schema.Schema) (all []delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(s.entries); {
		if e := s.entries[i]; used[e.api] == e.schema {
			i++
			continue
		}
		all = append(all, s.remove(i))
	}
	return all
}

// fold adds to the totals of the APIs that were counted for.
func fold(all []delta) {
	for i := range all {
		all[i].api.totals.fold(all[i : i+1])
	}
}

// sizeOf estimates what a pair holds on to, in bytes, as if its facts were its
// own.
func sizeOf(p *pair) int {
	f := p.facts
	size := 600 + len(p.key) + len(f.Name) + 6*len(f.Fields) + 16*len(f.Narrowed) + 4*len(f.Objects) + 8*len(f.Roots)
	for i := range f.Variables {
		size += 64 + len(f.Variables[i].Name)
	}
	return size
}
