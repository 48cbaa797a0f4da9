package targets

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// atOnce is how many checks may be under way at the same time: with more targets
// than that in trouble, checks come late rather than take the machine.
const atOnce = 64

// checker makes checks when they are due. It is safe for concurrent use.
type checker struct {
	wake  chan struct{} // takes one without blocking
	slots chan struct{} // holds one for every check under way

	mu  sync.Mutex
	due queue
}

// newChecker returns a checker, whose checks are made by Run.
func newChecker() *checker {
	return &checker{wake: make(chan struct{}, 1), slots: make(chan struct{}, atOnce)}
}

// Add has a task's checks made from now on, the first one at any time within the
// first interval, so that the checks of one configuration do not come all at once.
func (c *checker) Add(t *task) {
	c.mu.Lock()
	t.gone = false
	if t.place < 0 && !t.busy { // else it is queued once its check is over
		t.at = time.Now().Add(time.Duration(rand.Int64N(int64(t.check.Interval))))
		heap.Push(&c.due, t)
	}
	c.mu.Unlock()
	c.signal()
}

// Remove ends the checks of a task. One that is under way is still reported.
func (c *checker) Remove(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t.gone = true
	if t.place >= 0 {
		heap.Remove(&c.due, t.place)
	}
}

// Len returns how many tasks wait for their next check.
func (c *checker) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.due)
}

func (c *checker) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Run makes checks until ctx ends, and then waits for those under way.
func (c *checker) Run(ctx context.Context) {
	var underWay sync.WaitGroup
	defer underWay.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		t, wait := c.next(time.Now())
		if t == nil {
			timer.Reset(wait)
			select {
			case <-ctx.Done():
				return
			case <-c.wake:
			case <-timer.C:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case c.slots <- struct{}{}:
		}
		underWay.Go(func() {
			t.run(ctx)
			<-c.slots
			c.again(t)
		})
	}
}

// idle is how long the checker waits when there is nothing to wait for.
const idle = time.Hour

// next removes the task whose check is due from the queue, or returns how long to wait
// for one.
func (c *checker) next(now time.Time) (*task, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.due) == 0 {
		return nil, idle
	}
	if wait := c.due[0].at.Sub(now); wait > 0 {
		return nil, wait
	}
	t := heap.Pop(&c.due).(*task)
	t.busy = true
	return t, 0
}

// again queues a task for its next check, give or take a fifth of the interval.
func (c *checker) again(t *task) {
	interval := t.check.Interval
	wait := interval - interval/5 + time.Duration(rand.Int64N(int64(interval/5*2)+1))
	c.mu.Lock()
	if t.busy = false; !t.gone {
		t.at = time.Now().Add(wait)
		heap.Push(&c.due, t)
	}
	c.mu.Unlock()
	c.signal()
}

// queue is tasks by the time of their next check. It implements heap.Interface.
type queue []*task

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

func (q *queue) Push(t any) {
	t.(*task).place = len(*q)
	*q = append(*q, t.(*task))
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.place = -1
	return t
}
