package counter

import (
	"context"
	"hash/maphash"
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
}

// NewMemory returns an empty counter. Every call reads the clock once; nil means
// time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	m := &Memory{clock: clock, seed: maphash.MakeSeed()}
	for i := range m.shard {
		m.shard[i] = shard{of: m, at: uint8(i), cells: make(map[string]*cell), sweepAt: sweepLeast}
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
		s := m.shardOf(key)
		s.mu.Lock()
		if c := s.cells[key]; c != nil {
			s.note(key, c)
			s.drop(key, c)
		}
		s.mu.Unlock()
	}
	return nil
}

// A call is the scratch space of one Take: on the stack, so that it is free.
type call struct {
	calls, now int64
	n          int              // of order
	order      [MaxLimits]uint8 // the shards of the limits, ascending, each once
	at         [MaxLimits]uint8 // the shard of each limit
	cells      [MaxLimits]*cell // of each limit: what its seat says, then what its shard holds
}

func (m *Memory) shardOf(key string) *shard { return &m.shard[uint8(maphash.String(m.seed, key))] }

// find notes the shards of all limits, in ascending order so that two calls
// never wait for each other.
func (m *Memory) find(c *call, limits []Limit, seats []Seat) {
	for i := range limits {
		var home *shard
		if seats != nil {
			if c.cells[i] = seats[i].in(m, limits[i].Kind); c.cells[i] != nil {
				home = c.cells[i].home
			}
		}
		if home == nil {
			home = m.shardOf(limits[i].Key)
		}
		c.at[i] = home.at
		c.enter(home.at)
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
			if held := m.shard[c.at[i]].cells[l.Key]; held != nil {
				found, c.cells[i] = held, held
			}
		}
		used, reset := int64(0), int64(0)
		if found != nil && !found.gone {
			if found.kind != l.Kind {
				return 0, ErrNotCounter
			}
			used, reset = found.standing(c.now, l)
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
		l, found := &limits[i], c.cells[i]
		counts[i].Remaining -= c.calls
		counts[i].ResetAt = found.add(c.now, c.calls, l)
		found.home.note(l.Key, found)
	}
}

// open makes the cells that a call lacks, side by side, and takes those up again
// that were dropped since somebody sat there.
func (m *Memory) open(c *call, limits []Limit) {
	lacking := 0
	for i := range limits {
		if c.cells[i] == nil {
			lacking++
		}
		if c.cells[i] == nil || c.cells[i].gone {
			m.shard[c.at[i]].makeRoom(c.now) // which may drop one that look has found
		}
	}
	var made []cell
	if lacking > 0 {
		made = make([]cell, lacking)
	}
	for i := range limits {
		s := &m.shard[c.at[i]]
		switch found := c.cells[i]; {
		case found == nil:
			found, made = &made[0], made[1:]
			found.home, found.kind = s, limits[i].Kind
			c.cells[i], s.cells[limits[i].Key] = found, found
		case found.gone:
			found.empty()
			s.cells[limits[i].Key] = found
		}
	}
}

// Len is how many cells are held, expired ones not yet swept included.
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

// begin opens a quota's period that ends at a known time, in unix
// microseconds, 0 for never, unless one is open.
func (m *Memory) begin(key string, end int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock().UnixMicro()
	c := s.cells[key]
	if c == nil {
		s.makeRoom(now)
		c = &cell{home: s, kind: Quota}
		s.cells[key] = c
	}
	if c.kind == Quota && (c.used == 0 || c.over(now)) {
		c.used, c.edge, c.period = 0, end, 0
	}
}

// uncount takes calls back from a quota.
func (m *Memory) uncount(key string, calls int64) {
	s := m.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cells[key]; c != nil && c.kind == Quota && c.used > 0 {
		c.used = max(c.used-calls, 0)
		s.note(key, c)
	}
}
