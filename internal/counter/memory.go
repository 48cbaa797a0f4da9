package counter

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// shards is how many locks the cells are spread over: with two limits a call,
// 64 callers on different keys rarely meet.
const shards = 256

// Memory counts in this process. It is exact and allocates nothing for a key
// that it has seen before. Cells whose period is over are swept while new ones
// arrive, so it holds at most about twice the cells that are alive.
type Memory struct {
	clock func() time.Time
	seed  maphash.Seed
	shard [shards]shard
}

type shard struct {
	mu      sync.Mutex
	cells   map[string]*cell
	sweepAt int      // the number of cells that starts the next sweep
	keeps   bool     // changes are noted for a Saver
	changed []string // keys whose cell differs from what was saved, each once
}

// A cell is one counter. Fields past kind are those of its kind.
type cell struct {
	kind   Kind
	dirty  bool  // its key stands in its shard's changed
	used   int64 // quota: calls in this period
	end    int64 // unix microseconds when all of it is forgotten; 0 never
	period int64 // microseconds, as of the call that set end; 0 never renews
	window window
}

// NewMemory returns an empty counter. Every call reads the clock once; nil means
// time.Now.
func NewMemory(clock func() time.Time) *Memory {
	if clock == nil {
		clock = time.Now
	}
	m := &Memory{clock: clock, seed: maphash.MakeSeed()}
	for i := range m.shard {
		m.shard[i].cells = make(map[string]*cell)
		m.shard[i].sweepAt = sweepLeast
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

// Peek implements Counter.
func (m *Memory) Peek(_ context.Context, limits []Limit, counts []Count) error {
	_, err := m.ask(limits, counts, 0)
	return err
}

// ask counts calls, or with calls 0 only looks.
func (m *Memory) ask(limits []Limit, counts []Count, calls int64) (int, error) {
	if err := fits(limits, counts); err != nil {
		return 0, err
	}
	var c call
	m.lock(&c, limits)
	now := m.clock().UnixMicro() // under the locks: an older time than a neighbour's would look like a clock set back
	refused, err := c.look(now, limits, calls, counts)
	if calls > 0 && refused < 0 && err == nil {
		c.count(now, limits, calls, counts)
	}
	m.unlock(&c, limits)
	return refused, err
}

// Reset implements Counter.
func (m *Memory) Reset(_ context.Context, keys ...string) error {
	for _, key := range keys {
		s := &m.shard[m.shardOf(key)]
		s.mu.Lock()
		if c := s.cells[key]; c != nil {
			s.note(key, c)
			delete(s.cells, key)
		}
		s.mu.Unlock()
	}
	return nil
}

// A call is the scratch space of one Take: on the stack, so that it is free.
type call struct {
	order [MaxLimits]uint8 // shards of the limits, ascending
	shard [MaxLimits]*shard
	cells [MaxLimits]*cell
}

func (m *Memory) shardOf(key string) uint8 { return uint8(maphash.String(m.seed, key)) }

// lock takes the shards of all limits, in ascending order so that two calls
// never wait for each other, each once.
func (m *Memory) lock(c *call, limits []Limit) {
	for i := range limits {
		at := m.shardOf(limits[i].Key)
		c.shard[i] = &m.shard[at]
		j := i
		for ; j > 0 && c.order[j-1] > at; j-- {
			c.order[j] = c.order[j-1]
		}
		c.order[j] = at
	}
	for i := range limits {
		if i == 0 || c.order[i] != c.order[i-1] {
			m.shard[c.order[i]].mu.Lock()
		}
	}
}

func (m *Memory) unlock(c *call, limits []Limit) {
	for i := range limits {
		if i == 0 || c.order[i] != c.order[i-1] {
			m.shard[c.order[i]].mu.Unlock()
		}
	}
}

// look finds and ages the cells and fills counts with what is free before the
// calls. It returns the first limit without room for all of them, or -1.
func (c *call) look(now int64, limits []Limit, calls int64, counts []Count) (int, error) {
	refused := -1
	for i := range limits {
		l := &limits[i]
		found := c.shard[i].cells[l.Key]
		if found != nil && found.kind != l.Kind {
			return 0, ErrNotCounter
		}
		if found != nil && found.kind == Quota && found.end != 0 && found.end <= now {
			found.used, found.end, found.period = 0, 0, 0
		}
		c.cells[i] = found
		used, reset := int64(0), int64(0)
		if found != nil {
			used, reset = found.standing(now, l)
		}
		counts[i] = Count{Remaining: max(l.Max-used, 0), ResetAt: reset}
		if used > l.Max-calls && refused < 0 {
			refused = i
		}
	}
	return refused, nil
}

// standing is what a cell holds against l, and when it next lets go, in unix
// milliseconds.
func (c *cell) standing(now int64, l *Limit) (used, reset int64) {
	if c.kind == Quota {
		return c.used, c.end / 1000
	}
	period := micros(l.Period)
	c.window.age(now, period)
	return c.window.total, c.window.frees(period) / 1000
}

// count adds calls to every cell that look found, making those that are new.
func (c *call) count(now int64, limits []Limit, calls int64, counts []Count) {
	for i := range limits {
		l, found := &limits[i], c.cells[i]
		if found == nil {
			found = c.shard[i].open(l, now)
		}
		found.add(now, calls, l)
		c.shard[i].note(l.Key, found)
		counts[i].Remaining -= calls
		if found.kind == Quota {
			counts[i].ResetAt = found.end / 1000
		} else {
			counts[i].ResetAt = found.window.frees(micros(l.Period)) / 1000
		}
	}
}

func (c *cell) add(now, calls int64, l *Limit) {
	if c.kind == Rate {
		c.period = micros(l.Period)
		c.end = now + c.period
		c.window.add(now, calls, groupSize(l.Max))
		return
	}
	if c.used == 0 && c.end == 0 { // its period opens now; a change of Period waits for the next
		if c.period = micros(l.Period); c.period > 0 {
			c.end = now + c.period
		}
	}
	c.used += calls
}

// open makes the cell of a key seen for the first time.
func (s *shard) open(l *Limit, now int64) *cell {
	if len(s.cells) >= s.sweepAt {
		s.sweep(now)
	}
	made := &cell{kind: l.Kind}
	s.cells[l.Key] = made
	return made
}

// note marks a cell as changed since the last save.
func (s *shard) note(key string, c *cell) {
	if s.keeps && !c.dirty {
		c.dirty = true
		s.changed = append(s.changed, key)
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
	s := &m.shard[m.shardOf(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := m.clock().UnixMicro()
	c := s.cells[key]
	if c == nil {
		c = s.open(&Limit{Key: key, Kind: Quota}, now)
	}
	if c.kind == Quota && (c.used == 0 || c.over(now)) {
		c.used, c.end, c.period = 0, end, 0
	}
}

// uncount takes calls back from a quota.
func (m *Memory) uncount(key string, calls int64) {
	s := &m.shard[m.shardOf(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cells[key]; c != nil && c.kind == Quota && c.used > 0 {
		c.used = max(c.used-calls, 0)
		s.note(key, c)
	}
}
