package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store"
)

// Bounds of the messages that one admin sends at once.
const (
	maxSending  = 64             // of one kind
	maxToTarget = 4              // to one target
	maxFailing  = maxSending / 2 // to failing targets, each of which gets one
)

// maxRemembered bounds the failing targets that a worker remembers.
const maxRemembered = 10_000

// A worker sends the messages of one kind, so that kinds do not wait for each other.
type worker struct {
	queue  *Queue
	kind   string
	sender Sender
	woken  chan struct{}

	mu      sync.Mutex
	sending int
	to      map[string]int      // messages being sent, by target
	failing map[string]struct{} // targets whose last attempt failed
}

func newWorker(q *Queue, kind string, s Sender) *worker {
	return &worker{
		queue: q, kind: kind, sender: s, woken: make(chan struct{}, 1),
		to: make(map[string]int), failing: make(map[string]struct{}),
	}
}

// wake makes the worker look for messages.
func (l *worker) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// run sends messages until ctx ends, and then waits for those being sent.
func (l *worker) run(ctx context.Context) {
	// Messages being sent when ctx ends get a little time.
	sends, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var sending sync.WaitGroup
	defer func() {
		last := time.AfterFunc(min(lastWait, l.queue.opts.Timeout), cut)
		defer last.Stop()
		sending.Wait()
	}()
	ticks := time.NewTicker(l.queue.opts.Poll)
	defer ticks.Stop()
	for ctx.Err() == nil {
		l.fill(ctx, sends, &sending)
		select {
		case <-ctx.Done():
		case <-l.woken:
		case <-ticks.C:
		}
	}
}

// lastWait bounds the wait for messages being sent when the queue stops.
const lastWait = 5 * time.Second

// fill takes messages while there are some that can be sent now.
func (l *worker) fill(ctx, sends context.Context, sending *sync.WaitGroup) {
	for ctx.Err() == nil {
		busy, free := l.busy()
		if free == 0 {
			return
		}
		begun := time.Now() // before the lease begins, so that an attempt ends before the lease
		rows, err := l.queue.opts.Store.LeaseMessages(ctx, store.MessageQuery{
			Kind: l.kind, Busy: busy, Max: free, Lease: l.queue.lease(),
		})
		if err != nil {
			if ctx.Err() == nil {
				l.queue.opts.Log.Warn("taking messages to send was interrupted", "kind", l.kind, "err", err)
			}
			return
		}
		for i := range rows {
			l.begin(rows[i].Target)
			sending.Go(func() { l.deliver(sends, &rows[i], begun) })
		}
		if len(rows) == 0 {
			return
		}
	}
}

// lease returns how long a message is leased: for an attempt, and twice as long again to
// record its outcome if the database is unavailable for a moment.
func (q *Queue) lease() time.Duration { return 3 * q.opts.Timeout }

// busy returns the targets that get no more messages for now, and how many messages can
// be taken. The query cannot know how many of them are for failing targets: while these
// may get more, no more than that are taken at once.
func (l *worker) busy() (targets []string, free int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	targets, free = []string{}, maxSending-l.sending
	spare := maxFailing
	for target, n := range l.to {
		_, trouble := l.failing[target]
		if trouble {
			spare -= n
		}
		if trouble || n >= maxToTarget {
			targets = append(targets, target)
		}
	}
	if spare > 0 {
		return targets, min(free, spare)
	}
	for target := range l.failing {
		if l.to[target] == 0 {
			targets = append(targets, target)
		}
	}
	return targets, free
}

// begin records that a message is being sent.
func (l *worker) begin(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending++
	l.to[target]++
}

// end records that a message is no longer being sent, and whether its target works.
func (l *worker) end(target string, worked bool) {
	l.mu.Lock()
	l.sending--
	if l.to[target]--; l.to[target] == 0 {
		delete(l.to, target)
	}
	if worked {
		delete(l.failing, target)
	} else if len(l.failing) < maxRemembered {
		l.failing[target] = struct{}{}
	}
	l.mu.Unlock()
	l.wake()
}
