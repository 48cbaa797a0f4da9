package counter

import (
	"context"
	"hash/maphash"
	"math/rand/v2"
	"time"
)

// shards is how many locks the cells are spread over: with two limits a call,
// 64 callers on different keys rarely meet.
const shards = 256

// Memory counts in this process. It is exact and allocates nothing for a key
// that it has seen before. Cells whose period is over are swept while new ones
// arrive, so it holds at most about twice the cells that are alive.
type Memory struct {
	shard [shards]shard
	clock func() time.Time
	seed  maphash.Seed
	id    uint64 // what cells know it by
}

// NewMemory returns an empty counter. Every call reads the clock once; nil means
// time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	m := &Memory{clock: clock, seed: maphash.MakeSeed(), id: rand.Uint64()}
	for i := range m.shard {
		m.shard[i] = shard{of: m, at: uint8(i), cells: &cells{}, sweepAt: sweepLeast}
	}
	return m
}

// Take implements Counter. It never waits for anything but other calls' short
// critical sections, and does not look at ctx.
func (m *Memory) Take(_ context.Context, limits []Limit, calls int, counts []Count) (int, error) {
	if calls < 1 || calls > MaxCalls {
		return 0, ErrCalls
	}
	return m.ask(limits, counts, int64(calls))
}

// TakeSeated is Take with a seat for each limit, always the same for a key.
func (m *Memory) TakeSeated(limits []Limit, seats []Seat, calls int, counts []Count) (int, error) {
	switch {
	case calls < 1 || calls > MaxCalls:
		return 0, ErrCalls
	case len(seats) < len(limits):
		return 0, ErrTooMany
	}
	return m.askSeated(limits, seats[:len(limits)], counts, int64(calls))
}

// Peek implements Counter.
func (m *Memory) Peek(_ context.Context, limits []Limit, counts []Count) error {
	_, err := m.ask(limits, counts, 0)
	return err
}

// ask counts calls, or with calls 0 only looks.
func (m *Memory) ask(limits []Limit, counts []Count, calls int64) (int, error) {
	return m.askSeated(limits, nil, counts, calls)
}

func (m *Memory) askSeated(limits []Limit, seats []Seat, counts []Count, calls int64) (int, error) {
	if err := fits(limits, counts); err != nil {
		return 0, err
	}
	c := call{calls: calls}
	m.find(&c, limits, seats)
	m.lock(&c)
	c.now = m.clock().UnixMicro() // under the locks: an older time than a neighbour's would look like a clock set back
	refused, err := m.look(&c, limits, counts)
	if calls > 0 && refused < 0 && err == nil {
		m.count(&c, limits, counts)
	}
	m.unlock(&c)
	if seats != nil {
		c.keep(seats)
	}
	return refused, err
}

// Reset implements Counter.
func (m *Memory) Reset(_ context.Context, keys ...string) error {
	for _, key := range keys {
		sum := m.sumOf(key)
		s := m.shardOf(sum)
		s.mu.Lock()
		if c := s.cells.Find(sum, key); c != nil {
			s.note(key, c)
			s.cells.drop(key, c)
		}
		s.mu.Unlock()
	}
	return nil
}

// A call is the scratch space of one Take: on the stack, so that it is free.
type call struct {
	calls, now int64
	n          int               // of order
	order      [MaxLimits]uint8  // the shards of the limits, ascending, each once
	at         [MaxLimits]uint8  // the shard of each limit
	cells      [MaxLimits]*cell  // of each limit: what its seat says, then what its shard holds
	sums       [MaxLimits]uint64 // of the keys that no seat knew
}

func (m *Memory) sumOf(key string) uint64 { return maphash.String(m.seed, key) }

// shardOf returns the shard of a key by its sum, of which cells use the other end.
func (m *Memory) shardOf(sum uint64) *shard { return &m.shard[sum>>56] }

// find notes the shards of all limits, in ascending order so that two calls
// never wait for each other.
func (m *Memory) find(c *call, limits []Limit, seats []Seat) {
	for i := range limits {
		if seats != nil {
			c.cells[i] = seats[i].in(m, limits[i].Kind)
		}
		if found := c.cells[i]; found != nil {
			c.at[i], c.sums[i] = found.at, found.sum
		} else {
			c.sums[i] = m.sumOf(limits[i].Key)
			c.at[i] = m.shardOf(c.sums[i]).at
		}
		c.enter(c.at[i])
	}
}

// enter puts a shard into the order, unless it is there.
func (c *call) enter(at uint8) {
	j := c.n
	for ; j > 0 && c.order[j-1] >= at; j-- {
		if c.order[j-1] == at {
			return
		}
	}
	copy(c.order[j+1:c.n+1], c.order[j:c.n])
	c.order[j] = at
	c.n++
}

func (m *Memory) lock(c *call) {
	for _, at := range c.order[:c.n] {
		m.shard[at].mu.Lock()
	}
}

func (m *Memory) unlock(c *call) {
	for _, at := range c.order[:c.n] {
		m.shard[at].mu.Unlock()
	}
}

// look finds and ages the cells and fills counts with what is free before the
// calls. It returns the first limit without room for all of them, or -1.
func (m *Memory) look(c *call, limits []Limit, counts []Count) (int, error) {
	refused := -1
	for i := range limits {
		l := &limits[i]
		found := c.cells[i]
		if found == nil || found.gone {
			if held := m.shard[c.at[i]].cells.Find(c.sums[i], l.Key); held != nil {
				found, c.cells[i] = held, held
			}
		}
		used, reset := int64(0), int64(0)
		if found != nil && !found.gone {
			if found.kind != l.Kind {
				return 0, ErrNotCounter
			}
			used, reset = found.standing(&m.shard[c.at[i]].cells.rings, c.now, l)
		}
		counts[i] = Count{Remaining: max(l.Max-used, 0), ResetAt: reset}
		if used > l.Max-c.calls && refused < 0 {
			refused = i
		}
	}
	return refused, nil
}

// count adds calls to every cell that look found, making those that are new.
func (m *Memory) count(c *call, limits []Limit, counts []Count) {
	m.open(c, limits)
	for i := range limits {
		l, found, home := &limits[i], c.cells[i], &m.shard[c.at[i]]
		counts[i].Remaining -= c.calls
		counts[i].ResetAt = found.add(&home.cells.rings, c.now, c.calls, l)
		home.note(l.Key, found)
	}
}

// open makes the cells that a call lacks.
func (m *Memory) open(c *call, limits []Limit) {
	for i := range limits {
		if c.cells[i] == nil || c.cells[i].gone {
			m.shard[c.at[i]].makeRoom(c.now) // which may drop one that look has found, or have it move
		}
	}
	for i := range limits {
		if found := c.cells[i]; found != nil && !found.gone {
			continue
		}
		s := &m.shard[c.at[i]]
		if c.cells[i] = s.cells.Find(c.sums[i], limits[i].Key); c.cells[i] == nil {
			c.cells[i] = s.add(c.sums[i], limits[i].Key, limits[i].Kind)
		}
	}
}

// Len is how many cells are held, expired ones not yet swept included.
func (m *Memory) Len() int {
	n := 0
	for i := range m.shard {
		s := &m.shard[i]
		s.mu.Lock()
		n += s.cells.Len()
		s.mu.Unlock()
	}
	return n
}

// begin opens a quota's period that ends at a known time, in unix
// microseconds, 0 for never, unless one is open.
func (m *Memory) begin(key string, end int64) {
	sum := m.sumOf(key)
	s := m.shardOf(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock().UnixMicro()
	c := s.cells.Find(sum, key)
	if c == nil {
		s.makeRoom(now)
		c = s.add(sum, key, Quota)
	}
	if c.kind == Quota && (c.used == 0 || c.over(now)) {
		c.used, c.edge, c.period = 0, end, 0
	}
}

// uncount takes calls back from a quota.
func (m *Memory) uncount(key string, calls int64) {
	sum := m.sumOf(key)
	s := m.shardOf(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cells.Find(sum, key); c != nil && c.kind == Quota && c.used > 0 {
		c.used = max(c.used-calls, 0)
		s.note(key, c)
	}
}
