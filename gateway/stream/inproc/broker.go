// Package inproc is the message broker inside the gateway, which msgbroker connectors use
// when they have no address. Topics belong to an organisation. Each consumer group of a
// topic gets every message, and hands each to one of its members until one settles it.
//
// A group holds a bounded number of messages. Publishing to a topic with a full group
// waits, and then fails: nothing that was acknowledged is dropped to make room. With a
// journal a message is acknowledged once it is on disk, and outlives a crash; without one
// it is acknowledged once it is in memory. Other gateways do not share the topics.
package inproc

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluicegate/sluice/gateway/stream"
)

// Options configure a Broker.
type Options struct {
	Dir string       // of the journal, made when the first connector needs it; "": messages are kept in memory only
	Log *slog.Logger // nil: nothing is logged
}

// A Broker has the topics of one gateway. It takes no memory and no file before the first
// connector uses it. It is safe for concurrent use.
type Broker struct {
	dir    string
	log    *slog.Logger
	limits limits

	mu     sync.Mutex
	opened bool
	closed bool
	lock   *os.File
	orgs   map[string]*organisation
}

// limits are what tests make smaller.
type limits struct {
	ring         int // messages of a group
	ringBytes    int
	orgBytes     int64         // of all topics of an organisation
	topics       int           // of an organisation
	publish      time.Duration // that a publication waits for room
	cursors      time.Duration // after which they are written
	away         time.Duration // without demand, after which an input without a group misses messages
	orphan       time.Duration // without a stream, after which a full group is removed
	segmentBytes int64
	again        time.Duration // before a message is handed out for the second time
}

func defaults() limits {
	return limits{
		ring: 1024, ringBytes: 8 << 20, orgBytes: 64 << 20, topics: 1024,
		publish: 5 * time.Second, cursors: 100 * time.Millisecond, away: 2 * time.Second, orphan: 10 * time.Minute,
		segmentBytes: 4 << 20, again: 100 * time.Millisecond,
	}
}

// An organisation has topics that no other organisation can reach.
type organisation struct {
	name   string
	topics map[string]*topic
	bytes  atomic.Int64
}

// New returns a broker.
func New(o Options) *Broker {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Broker{dir: o.Dir, log: o.Log, limits: defaults(), orgs: make(map[string]*organisation)}
}

// Durable reports whether messages outlive the process.
func (b *Broker) Durable() bool { return b.dir != "" }

// open reads the journal, unless that was done.
func (b *Broker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return stream.ErrClosed
	case b.opened:
		return nil
	}
	if b.dir != "" {
		if err := b.load(); err != nil {
			if b.lock != nil {
				b.lock.Close()
				b.lock = nil
			}
			clear(b.orgs)
			return fmt.Errorf("journal of the in-process broker in %s: %w", b.dir, err)
		}
	}
	b.opened = true
	return nil
}

func (b *Broker) load() error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	var err error
	if b.lock, err = os.OpenFile(filepath.Join(b.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(b.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock: another process uses it: %w", err)
	}
	folders, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if !folder.IsDir() || !strings.HasPrefix(folder.Name(), folderPrefix) {
			continue
		}
		if err := b.restore(filepath.Join(b.dir, folder.Name())); err != nil {
			return err
		}
	}
	return nil
}

// restore makes the topic whose journal is in a folder.
func (b *Broker) restore(folder string) error {
	kept, err := readJournal(folder, b.log)
	if err != nil || kept == nil {
		return err
	}
	org := b.organisation(kept.cursors.Org)
	t := newTopic(b, org, kept.cursors.Topic)
	t.journal.segments, t.journal.made = kept.segments, true
	t.seq, t.committed = kept.last, kept.last
	for name, cursor := range kept.cursors.Groups {
		g := newGroup(name)
		g.orphaned = time.Now()
		t.groups[name] = g
		t.refill(g, cursor, kept.entries)
	}
	if len(t.groups) == 0 {
		t.unclaimed = newGroup("")
		t.refill(t.unclaimed, kept.cursors.Unclaimed, kept.entries)
	}
	t.open = t.calm()
	t.demand.Set(t.open)
	org.topics[t.name] = t
	return nil
}

// organisation returns an organisation. b.mu is held.
func (b *Broker) organisation(name string) *organisation {
	org := b.orgs[name]
	if org == nil {
		org = &organisation{name: name, topics: make(map[string]*topic)}
		b.orgs[name] = org
	}
	return org
}

// topic returns a topic of an organisation, which it makes if need be.
func (b *Broker) topic(org, name string) (*topic, error) {
	if err := checkTopic(name); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, stream.ErrClosed
	}
	of := b.organisation(org)
	if t := of.topics[name]; t != nil {
		return t, nil
	}
	if len(of.topics) >= b.limits.topics && !of.sweep() {
		return nil, stream.Failf(stream.Transient, "the organisation has %d topics already, the most that the in-process broker keeps", len(of.topics))
	}
	t := newTopic(b, of, name)
	of.topics[name] = t
	return t, nil
}

// sweep removes the topics that nobody uses and that have no messages, and reports
// whether there were any.
func (o *organisation) sweep() (any bool) {
	for name, t := range o.topics {
		if t.retire() {
			delete(o.topics, name)
			any = true
		}
	}
	return any
}

// maxName is how long names of topics and groups may be, in bytes.
const maxName = 255

// checkTopic refuses names that are not the same with every broker.
func checkTopic(name string) error {
	switch {
	case name == "":
		return stream.Failf(stream.Permanent, "the topic is empty")
	case len(name) > maxName:
		return stream.Failf(stream.Permanent, "the topic has %d bytes; at most %d are allowed", len(name), maxName)
	case strings.ContainsAny(name, "*#") || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return stream.Failf(stream.Permanent, "the topic %q has *, #, or characters that are not printable", name)
	}
	return nil
}

// Close writes what the journal does not have yet and closes it. Connectors should be
// closed before.
func (b *Broker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	var errs []error
	for _, org := range b.orgs {
		for _, t := range org.topics {
			errs = append(errs, t.close())
		}
	}
	if b.lock != nil {
		errs = append(errs, b.lock.Close())
	}
	return errors.Join(errs...)
}
