package cache

import (
	"sync"
	"sync/atomic"
)

// A shard decides which entries of its buckets stay. New ones are on probation;
// those that are asked for again before their time is over move to the main
// queue, where they stay as long as they are asked for every now and then. So
// texts that nobody repeats only take each other's place.
type shard[V any] struct {
	hits atomic.Uint64

	mu        sync.Mutex
	max       int // bytes
	probation queue[V]
	main      queue[V]
}

func (s *shard[V]) init(size int) { s.max = size }

func (s *shard[V]) size() int { return s.probation.bytes + s.main.bytes }

// trial is the part of a shard, one in so many, that probation may always have.
const trial = 10

// evict takes the entry that is missed least off its queue. There is one.
func (s *shard[V]) evict() *entry[V] {
	for {
		if s.probation.bytes > s.max/trial || s.main.oldest == nil {
			e := s.probation.oldest
			s.probation.remove(e)
			if !e.used.Swap(false) {
				return e
			}
			s.main.push(e)
			continue
		}
		e := s.main.oldest
		s.main.remove(e)
		if !e.used.Swap(false) {
			return e
		}
		s.main.push(e)
	}
}

// A queue is entries in the order of their arrival.
type queue[V any] struct {
	newest, oldest *entry[V]
	entries, bytes int
}

func (q *queue[V]) push(e *entry[V]) {
	e.queue, e.older, e.newer = q, q.newest, nil
	if q.newest != nil {
		q.newest.newer = e
	} else {
		q.oldest = e
	}
	q.newest = e
	q.entries++
	q.bytes += e.cost
}

func (q *queue[V]) remove(e *entry[V]) {
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		q.newest = e.older
	}
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		q.oldest = e.newer
	}
	e.newer, e.older = nil, nil
	q.entries--
	q.bytes -= e.cost
}
