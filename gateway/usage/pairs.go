package usage

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// pairShards is how many parts of the pairs have their own lock.
const pairShards = 64

// pair is an operation that a key ran. Facts are compared by address: the facts of
// one text are the same as long as they are cached, and no others can take their
// place while a pair points to them.
type pair struct {
	api   *APIOperations
	facts *validate.Facts
	key   string
}

// pairCount is how often a pair ran since it was last added to the totals.
type pairCount struct {
	schema *schema.Schema
	runs   *runs
	cost   int // in bytes
	count  uint64
	last   int64 // unix seconds
}

// A delta is a count that is to be added to the totals of its API.
type delta struct {
	pair
	schema *schema.Schema
	count  uint64
	last   int64
}

// pairShard is a part of the pairs.
type pairShard struct {
	mu    sync.Mutex
	pairs map[pair]*pairCount // nil before the first
	bytes int
}

// count counts a pair, and returns where the runs of its operation are counted.
func (u *Operations) count(p pair, o *Operation) *runs {
	s, at := &u.shards[maphash.Comparable(u.seed, p)%pairShards], o.At.Unix()
	s.mu.Lock()
	if c := s.pairs[p]; c != nil {
		c.count++
		c.last = max(c.last, at)
		s.mu.Unlock()
		return c.runs
	}
	s.mu.Unlock()
	cost, r := sizeOf(&p), p.api.names.add(o.Facts.Kind, o.Facts.Name)
	if cost > u.limits.bytes/4 {
		p.api.totals.fold([]delta{{p, o.Schema, 1, at}})
		return r
	}
	p.key = strings.Clone(p.key)
	fold(s.add(u.limits, p, &pairCount{schema: o.Schema, runs: r, cost: cost, count: 1, last: at}))
	return r
}

// add adds the first count of a pair, and returns what was evicted for it.
func (s *pairShard) add(l operationLimits, p pair, first *pairCount) (evicted []delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.pairs[p]; c != nil { // another request was faster
		c.count++
		c.last = max(c.last, first.last)
		return nil
	}
	for len(s.pairs) >= l.pairs || len(s.pairs) > 0 && s.bytes+first.cost > l.bytes {
		evicted = append(evicted, s.remove(s.stalest()))
	}
	if s.pairs == nil {
		s.pairs = make(map[pair]*pairCount)
	}
	s.pairs[p] = first
	s.bytes += first.cost
	return evicted
}

// sample is how many pairs are compared to find one to evict.
const sample = 8

// stalest returns the pair, of a random few, that was not counted for the longest
// time. There must be one.
func (s *pairShard) stalest() (stalest pair) {
	var oldest *pairCount
	n := 0
	for p, c := range s.pairs { // begins at a random place
		if oldest == nil || c.last < oldest.last {
			stalest, oldest = p, c
		}
		if n++; n == sample {
			break
		}
	}
	return stalest
}

// remove deletes a pair and returns its count. The lock is held.
func (s *pairShard) remove(p pair) delta {
	c := s.pairs[p]
	delete(s.pairs, p)
	s.bytes -= c.cost
	return delta{p, c.schema, c.count, c.last}
}

// drain adds everything that was counted for an API to its totals.
func (u *Operations) drain(a *APIOperations) {
	for i := range u.shards {
		a.totals.fold(u.shards[i].take(a))
	}
}

// take returns what was counted for an API since the last take.
func (s *pairShard) take(a *APIOperations) (all []delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, c := range s.pairs {
		if p.api == a && c.count > 0 {
			all = append(all, delta{p, c.schema, c.count, c.last})
			c.count = 0
		}
	}
	return all
}

// retire removes the pairs of all APIs but these, and of all schemas but theirs.
func (u *Operations) retire(used map[*APIOperations]*schema.Schema) {
	for i := range u.shards {
		fold(u.shards[i].retire(used))
	}
}

func (s *pairShard) retire(used map[*APIOperations]*schema.Schema) (all []delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, c := range s.pairs {
		if used[p.api] != c.schema {
			all = append(all, s.remove(p))
		}
	}
	return all
}

// fold adds deltas to the totals of their APIs.
func fold(all []delta) {
	for i := range all {
		all[i].api.totals.fold(all[i : i+1])
	}
}

// sizeOf estimates how many bytes a pair keeps from being freed, as if it alone
// referred to its facts.
func sizeOf(p *pair) int {
	f := p.facts
	size := 600 + len(p.key) + len(f.Name) + 6*len(f.Fields) + 16*len(f.Narrowed) + 4*len(f.Objects) + 8*len(f.Roots)
	for i := range f.Variables {
		size += 64 + len(f.Variables[i].Name)
	}
	return size
}
