package inproc

import (
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// An entry is a published message. Groups share it.
type entry struct {
	seq  uint64 // in the journal, from 1; 0: it is not journaled
	id   string
	at   time.Time
	key  []byte
	meta []stream.Meta
	body []byte

	size    int // bytes that it is charged
	holders int // groups that have not settled it
}

// entrySize is charged for a message beside its content.
const entrySize = 256

func newEntry(m *stream.Message, key []byte) *entry {
	return &entry{id: m.ID, at: time.Now(), key: key, meta: m.Meta, body: m.Body, size: m.Size() + len(key) + entrySize}
}

// An item is an entry in a group.
type item struct {
	entry   *entry // nil: settled
	seq     uint64
	pos     uint64 // in the group
	size    int
	state   itemState
	attempt int // deliveries
}

type itemState uint8

const (
	waiting itemState = iota
	out               // with a member
	resting           // it failed, and waits before the next delivery
	settled
)

// A group is a consumer group of one topic, with the messages that it has not settled. An
// input without a group has one of its own. The lock of the topic guards it.
type group struct {
	name     string
	items    []*item // by position; the first one is not settled
	base     uint64  // position of items[0]
	next     uint64  // no item before this position is waiting
	bytes    int
	ready    int // waiting items
	readers  []*Input
	users    int       // inputs that were started and not closed
	orphaned time.Time // since when there are no users
	gone     bool
}

func newGroup(name string) *group { return &group{name: name} }

// push adds an entry.
func (g *group) push(e *entry) {
	e.holders++
	g.items = append(g.items, &item{entry: e, seq: e.seq, pos: g.base + uint64(len(g.items)), size: e.size})
	g.bytes += e.size
	g.ready++
}

// pop takes the first waiting item out, nil if there is none.
func (g *group) pop() *item {
	if g.ready == 0 {
		return nil
	}
	for _, it := range g.items[max(g.next, g.base)-g.base:] {
		if it.state == waiting {
			it.state = out
			it.attempt++
			g.ready--
			g.next = it.pos + 1
			return it
		}
	}
	return nil
}

// back makes an item wait again, before those that came after it.
func (g *group) back(it *item) {
	if it.entry == nil || it.state == waiting {
		return
	}
	it.state = waiting
	g.ready++
	g.next = min(g.next, it.pos)
}

// finish settles an item and returns its entry, nil if it was settled before.
func (g *group) finish(it *item) *entry {
	e := it.entry
	if e == nil {
		return nil
	}
	if it.state == waiting {
		g.ready--
	}
	it.entry, it.state = nil, settled
	n := 0
	for n < len(g.items) && g.items[n].state == settled {
		g.bytes -= g.items[n].size
		g.items[n] = nil
		n++
	}
	g.items, g.base = g.items[n:], g.base+uint64(n)
	if len(g.items) == 0 {
		g.items = nil
	}
	return e
}

// floor returns the number of the last message before which, itself included, all are
// settled. committed is the last one of the topic.
func (g *group) floor(committed uint64) uint64 {
	if len(g.items) == 0 {
		return committed
	}
	return g.items[0].seq - 1
}

// wake has the members look for waiting items.
func (g *group) wake() {
	if g.ready == 0 {
		return
	}
	for _, in := range g.readers {
		in.wake()
	}
}
