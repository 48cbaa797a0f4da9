package counter

import (
	"context"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// shards is how many locks the cells are spread over: with two limits per call,
// 64 concurrent callers with different keys rarely meet.
const shards = 256

// Memory counts in this process. It is exact and allocates nothing for a key
// that it has seen before. Expired cells are swept while new ones arrive, so that
// it holds at most about twice the live cells.
type Memory struct {
	shard [shards]shard
	clock func() time.Time
	seed  maphash.Seed
}

// NewMemory returns an empty counter. Every call reads the clock once; nil means
// time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	m := &Memory{clock: clock, seed: maphash.MakeSeed()}
	for i := range m.shard {
		m.shard[i] = shard{memory: m, number: uint8(i), cells: make(map[string]*cell), sweepAt: sweepLeast}
	}
	return m
}

// A Slot caches where a Memory counts under one limit, for a caller that uses the
// same limit again and again: it saves the lookup by key. The zero value is empty.
// A slot is for one key only, and safe for concurrent use. It stays correct when
// its key is reset or swept and when it is used with another Memory.
type Slot struct{ cell atomic.Pointer[cell] }

// in returns the cell of a key in m, or nil if the slot does not know it. Whether
// the cell has gone is known under its shard's lock only.
func (s *Slot) in(m *Memory, kind Kind) *cell {
	if c := s.cell.Load(); c != nil && c.kind == kind && c.memory == m {
		return c
	}
	return nil
}

// Take implements Counter. It waits for nothing but the short critical sections of
// other calls, and ignores ctx.
func (m *Memory) Take(_ context.Context, limits []Limit, calls int, counts []Count) (int, error) {
	if calls < 1 || calls > MaxCalls {
		return 0, ErrCalls
	}
	return m.count(limits, nil, counts, int64(calls))
}

// TakeSlots is Take with a slot for each limit, always the same for a key.
func (m *Memory) TakeSlots(limits []Limit, slots []Slot, calls int, counts []Count) (int, error) {
	switch {
	case calls < 1 || calls > MaxCalls:
		return 0, ErrCalls
	case len(slots) < len(limits):
		return 0, ErrTooMany
	}
	return m.count(limits, slots[:len(limits)], counts, int64(calls))
}

// Peek implements Counter.
func (m *Memory) Peek(_ context.Context, limits []Limit, counts []Count) error {
	_, err := m.count(limits, nil, counts, 0)
	return err
}

// count counts calls, or with calls 0 only fills counts. slots may be nil.
func (m *Memory) count(limits []Limit, slots []Slot, counts []Count, calls int64) (int, error) {
	if err := fits(limits, counts); err != nil {
		return 0, err
	}
	t := take{calls: calls}
	m.locate(&t, limits, slots)
	m.lock(&t)
	t.now = m.clock().UnixMicro() // under the locks: a time before that of a concurrent call would look like a clock set back
	refused, err := m.check(&t, limits, counts)
	if calls > 0 && refused < 0 && err == nil {
		m.add(&t, limits, counts)
	}
	m.unlock(&t)
	for i := range slots {
		if c := t.cells[i]; c != nil && slots[i].cell.Load() != c {
			slots[i].cell.Store(c)
		}
	}
	return refused, err
}

// Reset implements Counter.
func (m *Memory) Reset(_ context.Context, keys ...string) error {
	for _, key := range keys {
		s := m.shardOf(key)
		s.mu.Lock()
		if c := s.cells[key]; c != nil {
			s.note(key, c)
			s.remove(key, c)
		}
		s.mu.Unlock()
	}
	return nil
}

// A take is the scratch space of one call, on the stack.
type take struct {
	calls, now int64
	n          int              // of order
	order      [MaxLimits]uint8 // the shards of the limits, ascending, each once
	shards     [MaxLimits]uint8 // the shard of each limit
	cells      [MaxLimits]*cell // of each limit: from its slot, then from its shard
}

func (m *Memory) shardOf(key string) *shard {
	return &m.shard[maphash.String(m.seed, key)%shards]
}

// locate notes the shards of all limits, in ascending order so that two calls
// cannot deadlock.
func (m *Memory) locate(t *take, limits []Limit, slots []Slot) {
	for i := range limits {
		if slots != nil {
			t.cells[i] = slots[i].in(m, limits[i].Kind)
		}
		if c := t.cells[i]; c != nil {
			t.shards[i] = c.shard
		} else {
			t.shards[i] = m.shardOf(limits[i].Key).number
		}
		t.insert(t.shards[i])
	}
}

// insert adds a shard to the order unless it is there.
func (t *take) insert(number uint8) {
	j := t.n
	for ; j > 0 && t.order[j-1] >= number; j-- {
		if t.order[j-1] == number {
			return
		}
	}
	copy(t.order[j+1:t.n+1], t.order[j:t.n])
	t.order[j] = number
	t.n++
}

func (m *Memory) lock(t *take) {
	for _, number := range t.order[:t.n] {
		m.shard[number].mu.Lock()
	}
}

func (m *Memory) unlock(t *take) {
	for _, number := range t.order[:t.n] {
		m.shard[number].mu.Unlock()
	}
}

// check finds and ages the cells and fills counts with what is free before the
// calls. It returns the first limit that cannot take all of them, or -1.
func (m *Memory) check(t *take, limits []Limit, counts []Count) (int, error) {
	refused := -1
	for i := range limits {
		l := &limits[i]
		if t.cells[i] == nil || t.cells[i].gone {
			t.cells[i] = m.shard[t.shards[i]].cells[l.Key]
		}
		used, reset := int64(0), int64(0)
		if c := t.cells[i]; c != nil {
			if c.kind != l.Kind {
				return 0, ErrNotCounter
			}
			used, reset = c.standing(t.now, l)
		}
		counts[i] = Count{Remaining: max(l.Max-used, 0), ResetAt: reset}
		if used > l.Max-t.calls && refused < 0 {
			refused = i
		}
	}
	return refused, nil
}

// add counts the calls in every cell, and makes the cells that do not exist yet.
func (m *Memory) add(t *take, limits []Limit, counts []Count) {
	for i := range limits {
		if t.cells[i] == nil {
			m.shard[t.shards[i]].sweepIfDue(t.now) // may remove a cell that check has found
		}
	}
	for i := range limits {
		s, l := &m.shard[t.shards[i]], &limits[i]
		if t.cells[i] == nil || t.cells[i].gone {
			t.cells[i] = s.add(l.Key, l.Kind)
		}
		counts[i].Remaining -= t.calls
		counts[i].ResetAt = t.cells[i].add(t.now, t.calls, l)
		s.note(l.Key, t.cells[i])
	}
}

// Len returns how many cells are held, including expired ones that were not swept
// yet.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.Lock()
		n += len(s.cells)
		s.mu.Unlock()
	}
	return n
}

// begin opens a quota's period that ends at a known time, in unix microseconds, 0
// for never, unless one is open.
func (m *Memory) begin(key string, end int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock().UnixMicro()
	c := s.cells[key]
	if c == nil {
		s.sweepIfDue(now)
		c = s.add(key, Quota)
	}
	if c.kind == Quota && (c.used == 0 || c.expired(now)) {
		c.used, c.edge, c.period = 0, end, 0
	}
}

// uncount subtracts calls from a quota.
func (m *Memory) uncount(key string, calls int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cells[key]; c != nil && c.kind == Quota && c.used > 0 {
		c.used = max(c.used-calls, 0)
		s.note(key, c)
	}
}

// sweepLeast is the number of cells below which a shard is not worth sweeping.
const sweepLeast = 32

// shard holds a part of the cells. Its methods need its lock.
type shard struct {
	mu      sync.Mutex
	cells   map[string]*cell
	memory  *Memory
	sweepAt int // the number of cells that starts the next sweep
	number  uint8
	saves   bool     // changes are noted for a Saver
	changed []string // keys whose cell differs from what was saved; twice if one was removed in between
}

// sweepIfDue sweeps a shard that has twice the cells that the last sweep left, so
// that sweeping costs every new cell a small constant. Without new cells nothing
// grows, so nothing needs sweeping.
func (s *shard) sweepIfDue(now int64) {
	if len(s.cells) >= s.sweepAt {
		s.sweep(now)
	}
}

// sweep removes expired cells.
func (s *shard) sweep(now int64) {
	before := len(s.cells)
	for key, c := range s.cells {
		if c.expired(now) {
			s.remove(key, c)
		}
	}
	if len(s.cells) < before/4 { // a map does not shrink
		smaller := make(map[string]*cell, len(s.cells))
		maps.Copy(smaller, s.cells)
		s.cells = smaller
	}
	s.sweepAt = max(2*len(s.cells), sweepLeast)
}

// add makes the cell of a key that has none.
func (s *shard) add(key string, kind Kind) *cell {
	c := &cell{memory: s.memory, shard: s.number, kind: kind}
	s.cells[key] = c
	return c
}

func (s *shard) remove(key string, c *cell) {
	c.gone = true
	delete(s.cells, key)
}

// note marks a cell as changed since the last save.
func (s *shard) note(key string, c *cell) {
	if s.saves && !c.dirty {
		c.dirty = true
		s.changed = append(s.changed, key)
	}
}
