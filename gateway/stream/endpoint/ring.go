package endpoint

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/stream"
)

// Bounds of a ring.
const (
	maxKept      = 1024    // messages that became events
	maxKeptBytes = 4 << 20 // of all messages
	keptOverhead = 160     // bytes charged for a message beside its content
	maxRead      = 64      // messages that are read at a time
)

// A Memory bounds what the rings of several outputs keep together: in excess of Limit, each
// keeps its last message alone.
type Memory struct {
	Limit int64 // bytes
	used  atomic.Int64
}

// A ring has the last messages of a log, as events.
type ring struct {
	memory   *Memory
	attached chan struct{} // closed once the log is read

	mu         sync.Mutex
	entries    []entry // in the order in which they were read
	first      uint64  // number of entries[0]
	full       int     // entries with events
	bytes      int
	begun      bool
	generation int              // of the log: numbers change their meaning with it
	start      []int64          // position before entries[0]; nil: not known
	end        *stream.Position // behind the last entry
	id         string           // of end
	changed    chan struct{}    // closed with the next change; nil: it is not waited for
}

// An entry is a message of the log.
type entry struct {
	partition int
	offset    int64
	mark      uint32
	events    []event
	id        string // of the position behind it
	gap       bool   // messages are missing here; it is no message itself
	size      int
}

// A place is where a client is.
type place struct {
	number     uint64           // of its next entry in the ring
	id         string           // of its position, "" if that is not known
	own        *stream.Position // its position, unless that is before the entry of its number
	generation int              // of the log, that own is in
	outside    bool             // it is not in the ring
}

func newRing(m *Memory) *ring { return &ring{memory: m, attached: make(chan struct{})} }

// begin notes that the log is read from a position. With gap set, what was kept is not
// before that.
func (r *ring) begin(at *stream.Position, id string, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gap {
		r.drop(len(r.entries))
		r.start = nil
		r.generation++
		r.push(entry{partition: -1, id: id, gap: true, size: keptOverhead})
	}
	r.end, r.id = clone(at), id
	if !r.begun {
		r.begun = true
		close(r.attached)
	}
	r.tell()
}

// add adds a message that was read.
func (r *ring) add(e *stream.Entry, events []event, idOf func(*stream.Position) string) {
	k := entry{partition: e.Partition, offset: e.Offset, mark: e.Mark, events: events, size: keptOverhead}
	for i := range events {
		events[i].body = bytes.Clone(events[i].body) // it may be of a buffer with much more
		k.size += len(events[i].name) + len(events[i].body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start == nil {
		r.start = slices.Clone(r.end.Next)
		r.setStart(e.Partition, e.Offset)
	}
	r.end.Pass(e)
	r.id = idOf(r.end)
	k.id = r.id
	k.size += len(k.id)
	r.push(k)
	r.tell()
}

// push needs mu, as the methods below.
func (r *ring) push(k entry) {
	r.entries = append(r.entries, k)
	r.bytes += k.size
	if len(k.events) > 0 {
		r.full++
	}
	r.memory.used.Add(int64(k.size))
	n, full, bytes, used := 0, r.full, r.bytes, r.memory.used.Load()
	for ; n < len(r.entries)-1 && (full > maxKept || bytes > maxKeptBytes || used > r.memory.Limit); n++ {
		one := &r.entries[n]
		bytes -= one.size
		used -= int64(one.size)
		if len(one.events) > 0 {
			full--
		}
	}
	r.drop(n)
}

// drop forgets the first n entries.
func (r *ring) drop(n int) {
	for i := range n {
		one := &r.entries[i]
		r.bytes -= one.size
		r.memory.used.Add(-int64(one.size))
		if len(one.events) > 0 {
			r.full--
		}
		if !one.gap && r.start != nil {
			r.setStart(one.partition, one.offset+1)
		}
	}
	r.first += uint64(n)
	clear(r.entries[:n])
	r.entries = r.entries[n:]
}

func (r *ring) setStart(partition int, offset int64) {
	for len(r.start) <= partition {
		r.start = append(r.start, 0)
	}
	r.start[partition] = offset
}

func (r *ring) tell() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *ring) waits() <-chan struct{} {
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// find returns the place behind an id: with "", behind the last entry.
func (r *ring) find(id string) place {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id == "" || id == r.id {
		return place{number: r.first + uint64(len(r.entries)), id: r.id}
	}
	for i := len(r.entries) - 1; i >= 0; i-- {
		if r.entries[i].id == id {
			return place{number: r.first + uint64(i) + 1, id: id}
		}
	}
	return place{id: id, outside: true}
}

// read returns entries that follow a place, or what is closed when there are some. The error
// is errBehind.
func (r *ring) read(p *place) ([]entry, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.outside || p.number < r.first {
		return nil, nil, errBehind
	}
	rest := r.entries[p.number-r.first:]
	if len(rest) > 0 {
		return slices.Clone(rest[:min(len(rest), maxRead)]), nil, nil
	}
	if p.own != nil && slices.Equal(p.own.Next, r.end.Next) {
		p.own, p.id = nil, r.id
	}
	return nil, r.waits(), nil
}

// meet puts a place with a position of its own into the ring, if that has all that follows.
// Otherwise it returns what is closed when the ring has changed.
func (r *ring) meet(p *place) (met bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.own == nil || p.generation != r.generation || !r.has(p.own) {
		return false, r.waits()
	}
	p.number, p.outside = r.first, false
	if len(r.entries) > 0 && r.entries[0].gap { // the position is behind it
		p.number++
	}
	return true, nil
}

// has reports whether all that follows a position is kept, or will be.
func (r *ring) has(p *stream.Position) bool {
	if r.start == nil {
		return false
	}
	for i, start := range r.start {
		if nextOf(p, i) < start {
			return false
		}
	}
	return true
}

// nextOf returns the next offset of a partition.
func nextOf(p *stream.Position, partition int) int64 {
	if partition < len(p.Next) {
		return p.Next[partition]
	}
	return 0
}

// current returns the generation of the log.
func (r *ring) current() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation
}

// release forgets all entries.
func (r *ring) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(len(r.entries))
	r.tell()
}
