package inproc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// A topic passes messages from outputs to groups.
type topic struct {
	broker *Broker
	org    *organisation
	name   string
	demand *stream.Demand // on while there is room; set without mu

	mu        sync.Mutex
	open      bool // what demand is to be
	closed    bool
	groups    map[string]*group
	live      []*group // of inputs without a group
	listeners int      // inputs without a group, whether in live or away
	outputs   int      // that always publish to it
	unclaimed *group   // messages for the first group to come; nil if there is one
	queue     []*publication

	// Of the journal.
	journal   *journal // nil: in memory
	batch     []*publication
	reserved  int // messages on their way to the journal, and their bytes
	inFlight  int
	seq       uint64 // of the last message that was given a number
	committed uint64 // of the last one on disk
	writing   bool
	written   *sync.Cond // writing has ended
	joined    bool       // the groups are not those on disk
	dirty     bool       // the cursors will be written
}

func newTopic(b *Broker, org *organisation, name string) *topic {
	t := &topic{broker: b, org: org, name: name, demand: stream.NewDemand(true), open: true, groups: make(map[string]*group), joined: true}
	t.written = sync.NewCond(&t.mu)
	if b.dir != "" {
		t.journal = newJournal(b.dir, org.name, name, b.limits.segmentBytes)
	}
	return t
}

// refill gives a group of the journal the entries after its cursor.
func (t *topic) refill(g *group, cursor uint64, entries []*entry) {
	for _, e := range entries {
		if e.seq <= cursor {
			continue
		}
		if e.holders == 0 {
			t.org.bytes.Add(int64(e.size))
		}
		g.push(e)
	}
}

// A publication is a message on its way into a topic.
type publication struct {
	entry *entry
	timer *time.Timer // while it waits for room
	end   func(error) // called once
}

// publish adds a message to the topic, or has it wait for room.
func (t *topic) publish(p *publication) {
	if used := t.org.bytes.Add(int64(p.entry.size)); used > t.broker.limits.orgBytes && used > int64(p.entry.size) {
		t.release(p.entry)
		p.end(stream.Failf(stream.Transient, "the messages that the in-process broker keeps for the organisation have reached %d MiB", t.broker.limits.orgBytes>>20))
		return
	}
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.release(p.entry)
		p.end(stream.ErrClosed)
		return
	}
	if len(t.queue) > 0 || !t.room(p.entry.size) {
		t.queue = append(t.queue, p)
		p.timer = time.AfterFunc(t.broker.limits.publish, func() { t.giveUp(p) })
	}
	var done []*publication
	if p.timer == nil {
		done = t.admit(p, nil)
	}
	t.unlock(done)
}

// unlock ends a change of the topic: it ends the publications that are done, and sets the
// demand.
func (t *topic) unlock(done []*publication) {
	was := t.open
	if t.open {
		t.open = !t.full()
	} else {
		t.open = t.calm()
	}
	changed := was != t.open
	t.mu.Unlock()
	for _, p := range done {
		p.end(nil)
	}
	for changed {
		want := t.level()
		t.demand.Set(want)
		changed = t.level() != want // another change may have been set before
	}
}

func (t *topic) level() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// takers calls do for each group that gets the next message, until it returns false.
func (t *topic) takers(do func(*group) bool) bool {
	if len(t.groups) == 0 && t.listeners == 0 && t.unclaimed == nil {
		t.unclaimed, t.joined = newGroup(""), true
	}
	if len(t.groups) == 0 && t.listeners == 0 && !do(t.unclaimed) {
		return false
	}
	for _, g := range t.groups {
		if !do(g) {
			return false
		}
	}
	for _, g := range t.live {
		if !do(g) {
			return false
		}
	}
	return true
}

// room reports whether all groups can take a message of a size. Groups in its way that no
// stream has any more are removed.
func (t *topic) room(size int) bool {
	return t.takers(func(g *group) bool {
		count, bytes := len(g.items)+t.inFlight, g.bytes+t.reserved
		if count == 0 || count < t.broker.limits.ring && bytes+size <= t.broker.limits.ringBytes {
			return true
		}
		return t.removeOrphan(g)
	})
}

// removeOrphan removes a group that no stream has had for a while, and reports whether it
// did. Its messages are lost, which is logged.
func (t *topic) removeOrphan(g *group) bool {
	if g.name == "" || g.users > 0 || time.Since(g.orphaned) < t.broker.limits.orphan {
		return false
	}
	t.broker.log.Warn("consumer group removed: it is full, and no stream has it any more",
		"organisation", t.org.name, "topic", t.name, "consumer_group", g.name, "messages", len(g.items))
	delete(t.groups, g.name)
	t.discard(g)
	t.joined = true
	t.touch()
	return true
}

// discard takes everything out of a group that is no longer one of the topic.
func (t *topic) discard(g *group) {
	g.gone = true
	for _, it := range g.items {
		if it.entry != nil {
			t.drop(it.entry)
			it.entry = nil
		}
	}
	g.items, g.bytes, g.ready = nil, 0, 0
}

// full reports whether the next message may have to wait.
func (t *topic) full() bool {
	return len(t.queue) > 0 || !t.below(t.broker.limits.ring, t.broker.limits.ringBytes)
}

// calm reports whether there is room for many messages.
func (t *topic) calm() bool {
	return len(t.queue) == 0 && t.below(t.broker.limits.ring*3/4+1, t.broker.limits.ringBytes*3/4+1)
}

func (t *topic) below(count, bytes int) bool {
	less := func(g *group) bool { return len(g.items)+t.inFlight < count && g.bytes+t.reserved < bytes }
	for _, g := range t.groups {
		if !less(g) {
			return false
		}
	}
	for _, g := range t.live {
		if !less(g) {
			return false
		}
	}
	return t.unclaimed == nil || t.listeners > 0 || less(t.unclaimed)
}

// admit lets a publication into the groups, or on its way to the journal. It adds to done
// what has been acknowledged.
func (t *topic) admit(p *publication, done []*publication) []*publication {
	if t.journal == nil || len(t.groups) == 0 && t.listeners > 0 {
		t.add(p.entry)
		return append(done, p)
	}
	t.batch = append(t.batch, p)
	t.inFlight++
	t.reserved += p.entry.size
	if !t.writing {
		t.writing = true
		go t.commit()
	}
	return done
}

// add gives an entry to all groups.
func (t *topic) add(e *entry) {
	e.holders++ // until all have it
	t.takers(func(g *group) bool {
		g.push(e)
		g.wake()
		return true
	})
	t.drop(e)
}

// drop ends the hold of a group on an entry.
func (t *topic) drop(e *entry) {
	if e.holders--; e.holders == 0 {
		t.release(e)
	}
}

func (t *topic) release(e *entry) { t.org.bytes.Add(-int64(e.size)) }

// admitQueue lets in what waits, as far as there is room.
func (t *topic) admitQueue() (done []*publication) {
	for len(t.queue) > 0 && t.room(t.queue[0].entry.size) {
		p := t.queue[0]
		t.queue[0] = nil
		t.queue = t.queue[1:]
		p.timer.Stop()
		done = t.admit(p, done)
	}
	if len(t.queue) == 0 {
		t.queue = nil
	}
	return done
}

// giveUp ends a publication that has waited for too long.
func (t *topic) giveUp(p *publication) {
	if t.withdraw(p) {
		p.end(stream.Failf(stream.Transient, "topic %s is full: %s", t.name, t.why()))
	}
}

// withdraw takes a publication out of the queue, and reports whether it was there.
func (t *topic) withdraw(p *publication) bool {
	t.mu.Lock()
	i := slices.Index(t.queue, p)
	if i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		p.timer.Stop()
		t.release(p.entry)
	}
	t.unlock(t.admitQueue()) // the next one may be smaller
	return i >= 0
}

// why names a full group.
func (t *topic) why() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.groups {
		if len(g.items) >= t.broker.limits.ring/2 || g.bytes >= t.broker.limits.ringBytes/2 {
			text := fmt.Sprintf("consumer group %s has %d unsettled messages", g.name, len(g.items))
			if g.users == 0 {
				text += ", and no stream has that group"
			}
			return text
		}
	}
	if len(t.groups) == 0 && t.listeners == 0 {
		return "no stream takes messages from it"
	}
	return "its messages are taken too slowly"
}

// finish settles an item of a group.
func (t *topic) finish(g *group, it *item) {
	t.mu.Lock()
	if e := g.finish(it); e != nil {
		t.drop(e)
		if it.seq > 0 {
			t.touch()
		}
	}
	t.unlock(t.admitQueue())
}

// back hands an item out again.
func (t *topic) back(g *group, it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.back(it)
	g.wake()
}

// longestRest is the pause between two deliveries of a message that fails all the time.
const longestRest = 10 * time.Second

// rest hands an item out again after a pause, which doubles with each attempt.
func (t *topic) rest(g *group, it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if it.entry == nil {
		return
	}
	it.state = resting
	pause := min(t.broker.limits.again<<min(it.attempt-1, 10), longestRest)
	time.AfterFunc(pause/2+rand.N(pause/2+1), func() { t.back(g, it) })
}

// deadSuffix ends the names of topics with messages that their group could not process.
const deadSuffix = ".dead"

// bury moves an item, which its group will never be able to process, to the topic of dead
// messages. While that does not work the item is handed out again.
func (t *topic) bury(g *group, it *item, cause error) {
	t.mu.Lock()
	e := it.entry
	attempts := it.attempt
	t.mu.Unlock()
	if e == nil {
		return
	}
	if strings.HasSuffix(t.name, deadSuffix) {
		t.rest(g, it)
		return
	}
	to, err := t.broker.topic(t.org.name, t.name+deadSuffix)
	if err != nil {
		t.rest(g, it)
		return
	}
	dead := &entry{id: e.id, at: time.Now(), key: e.key, body: e.body, size: e.size + entrySize}
	dead.meta = append(slices.Clip(slices.Clone(e.meta)),
		stream.Meta{Name: "svc-error", Value: cause.Error()},
		stream.Meta{Name: "svc-group", Value: g.name},
		stream.Meta{Name: "svc-attempts", Value: fmt.Sprint(attempts)})
	to.publish(&publication{entry: dead, end: func(err error) {
		if err != nil {
			t.rest(g, it)
			return
		}
		t.finish(g, it)
	}})
}

// join makes an input a member of a group. Without a name that is a group of its own, of
// what is published from now on.
func (t *topic) join(in *Input, name string) *group {
	t.mu.Lock()
	var g *group
	switch {
	case name == "":
		g = newGroup("")
		t.live = append(t.live, g)
	case t.groups[name] != nil:
		g = t.groups[name]
	default:
		g = newGroup(name)
		if len(t.groups) == 0 && t.unclaimed != nil {
			g, t.unclaimed = t.unclaimed, nil
			g.name = name
		}
		t.groups[name] = g
		t.joined = true
		t.touch()
	}
	g.users++
	g.readers = append(g.readers, in)
	t.unlock(t.admitQueue())
	return g
}

// leave ends the membership of an input.
func (t *topic) leave(in *Input, g *group) {
	t.mu.Lock()
	g.readers = slices.DeleteFunc(g.readers, func(one *Input) bool { return one == in })
	if g.users--; g.users == 0 {
		g.orphaned = time.Now()
	}
	if i := slices.Index(t.live, g); i >= 0 {
		t.live = slices.Delete(t.live, i, i+1)
		t.discard(g)
	}
	g.wake() // what the input was to take
	t.unlock(t.admitQueue())
}

// listen counts inputs without a group.
func (t *topic) listen(n int) {
	t.mu.Lock()
	t.listeners += n
	t.unlock(t.admitQueue())
}

// take returns the next item of a group for a member, and how many wait after it.
func (t *topic) take(g *group) (*item, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return g.pop(), g.ready
}

// retire reports whether the topic has no users, groups and messages. It takes none after
// that.
func (t *topic) retire() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.groups) > 0 || t.listeners+t.outputs > 0 || t.unclaimed != nil && len(t.unclaimed.items) > 0 ||
		len(t.queue) > 0 || t.writing || t.journal != nil && t.journal.made {
		return false
	}
	t.closed = true
	return true
}

// publisher counts outputs that always publish to the topic.
func (t *topic) publisher(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outputs += n
}

// content returns what an item has, and how often it was delivered.
func (t *topic) content(it *item) (*entry, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return it.entry, it.attempt
}

// refuse takes a delivery back that did not happen.
func (t *topic) refuse(g *group, it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	it.attempt--
	g.back(it)
}

// wake has the members of a group look for messages.
func (t *topic) wake(g *group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g.wake()
}
