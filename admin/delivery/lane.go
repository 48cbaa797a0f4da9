package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/sluicegate/sluice/admin/store/deliveries"
)

// How many messages are on their way at once, from one admin.
const (
	maxSending  = 64             // of one kind
	maxToTarget = 4              // to one target
	maxTroubled = maxSending / 2 // to targets whose last attempt did not work, each of which gets one
)

// maxRemembered is of how many troubled targets a lane knows.
const maxRemembered = 10_000

// A lane sends the messages of one kind, so that no kind waits for another.
type lane struct {
	queue  *Queue
	kind   string
	sender Sender
	poked  chan struct{}

	mu       sync.Mutex
	sending  int
	to       map[string]int      // messages on their way, by target
	troubled map[string]struct{} // targets whose last attempt did not work
}

func newLane(q *Queue, kind string, s Sender) *lane {
	return &lane{
		queue: q, kind: kind, sender: s, poked: make(chan struct{}, 1),
		to: make(map[string]int), troubled: make(map[string]struct{}),
	}
}

// poke has the lane look for messages, soon.
func (l *lane) poke() {
	select {
	case l.poked <- struct{}{}:
	default:
	}
}

// run looks for messages and has them sent until ctx ends, and then for those that
// are on their way.
func (l *lane) run(ctx context.Context) {
	// What is on its way when ctx ends gets a little time.
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
		case <-l.poked:
		case <-ticks.C:
		}
	}
}

// lastWait is how long what is on its way may take when the queue is to end.
const lastWait = 5 * time.Second

// fill takes messages as long as there are some that can be sent now.
func (l *lane) fill(ctx, sends context.Context, sending *sync.WaitGroup) {
	for ctx.Err() == nil {
		busy, room := l.busy()
		if room == 0 {
			return
		}
		begun := time.Now() // before the lease begins, so that an attempt ends before it does
		rows, err := deliveries.Take(ctx, l.queue.opts.Store, deliveries.Want{
			Kind: l.kind, Busy: busy, Max: room, Lease: l.queue.lease(),
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

// lease is how long a message is nobody else's: an attempt and twice as long, to
// note what came of it while the database is away for a moment.
func (q *Queue) lease() time.Duration { return 3 * q.opts.Timeout }

// busy lists the targets that get no more for now, and tells how many messages
// can be taken. Whoever takes them cannot know how many are for troubled targets,
// so that as long as those may have more, no more than that are taken at once.
func (l *lane) busy() (targets []string, room int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	targets, room = []string{}, maxSending-l.sending
	spare := maxTroubled
	for target, n := range l.to {
		_, trouble := l.troubled[target]
		if trouble {
			spare -= n
		}
		if trouble || n >= maxToTarget {
			targets = append(targets, target)
		}
	}
	if spare > 0 {
		return targets, min(room, spare)
	}
	for target := range l.troubled {
		if l.to[target] == 0 {
			targets = append(targets, target)
		}
	}
	return targets, room
}

// begin notes that a message is on its way.
func (l *lane) begin(target string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending++
	l.to[target]++
}

// end notes that a message is no longer on its way, and whether its target
// answered as it should.
func (l *lane) end(target string, worked bool) {
	l.mu.Lock()
	l.sending--
	if l.to[target]--; l.to[target] == 0 {
		delete(l.to, target)
	}
	if worked {
		delete(l.troubled, target)
	} else if len(l.troubled) < maxRemembered {
		l.troubled[target] = struct{}{}
	}
	l.mu.Unlock()
	l.poke()
}
