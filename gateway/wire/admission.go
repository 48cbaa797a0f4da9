package wire

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// admissionPerProcessor is how many requests per processor are admitted before
// further ones wait. With fewer, a processor runs out of work; with many more, what
// a request used last has left the processor's caches when it continues.
const admissionPerProcessor = 48

// admissionTick is how often the limit is adjusted while requests wait.
const admissionTick = time.Millisecond

// admission queues requests when there are more than the processors can serve.
//
// A gateway that starts every request at once has all of them in progress at once
// under load: each waits behind the start of all others before the answer of its
// upstream is read, and finds none of its memory in the processor's caches. With a
// thousand busy connections that doubles the CPU of a request, with four thousand
// it triples it. Requests above the limit therefore wait, in order of arrival,
// before anything is read or allocated for them.
//
// The limit is not one on requests that wait for their upstream: whenever requests
// are queued and no goroutine is ready to run, the limit grows.
//
// Its methods are safe for concurrent use, and cost two atomic operations a request
// while none waits.
type admission struct {
	active  atomic.Int64
	limit   atomic.Int64 // of active, before others wait
	waiting atomic.Int64

	base     int64        // the least limit
	least    int64        // admitted with every tick, however busy the processors are
	runnable func() int64 // how many goroutines are ready to run and do not

	mu       sync.Mutex // guards all below
	turn     sync.Cond  // wakes the request that has waited longest
	next     uint64     // number of the next request to wait
	admitted uint64     // requests with lower numbers are admitted
	ticked   uint64     // admitted at the last tick
	ticking  bool
	timer    *time.Timer

	shortest time.Duration // wait of a request admitted since the last report
	any      bool          // one was
}

// newAdmission returns an admission for a number of processors.
func newAdmission(processors int64, runnable func() int64) *admission {
	a := &admission{base: admissionPerProcessor * processors, least: 4 * processors, runnable: runnable}
	a.limit.Store(a.base)
	a.turn.L = &a.mu
	a.timer = time.AfterFunc(time.Hour, a.tick)
	a.timer.Stop()
	return a
}

// processorAdmission returns an admission for all processors of the process.
func processorAdmission() *admission {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	return newAdmission(int64(runtime.GOMAXPROCS(0)), func() int64 {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindUint64 {
			return 0 // the runtime does not report it: admit all
		}
		return int64(sample[0].Value.Uint64())
	})
}

// enter returns once the request may start. Every enter needs a leave.
func (a *admission) enter() {
	if a.active.Add(1) > a.limit.Load() || a.waiting.Load() > 0 {
		a.wait()
	}
}

// leave ends a request and admits the next one.
func (a *admission) leave() {
	if a.active.Add(-1) < a.limit.Load() && a.waiting.Load() > 0 {
		a.mu.Lock()
		a.fill()
		a.mu.Unlock()
	}
}

// wait is the slow path of enter.
func (a *admission) wait() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active.Add(-1)
	mine, since := a.next, time.Now()
	a.next++
	a.waiting.Add(1) // before fill reads active: leave does both in the other order
	if !a.ticking {
		a.ticking, a.ticked = true, a.admitted
		a.timer.Reset(admissionTick)
		a.adjust(a.runnable())
	}
	for a.fill(); mine >= a.admitted; {
		a.turn.Wait()
	}
	if waited := time.Since(since); !a.any || waited < a.shortest {
		a.any, a.shortest = true, waited
	}
}

// fill admits requests up to the limit. It needs mu.
func (a *admission) fill() {
	for a.admitted < a.next && a.active.Load() < a.limit.Load() {
		a.admit()
	}
}

func (a *admission) admit() {
	a.admitted++
	a.active.Add(1)
	a.waiting.Add(-1)
	a.turn.Signal()
}

// adjust sets the limit by how many goroutines are ready to run. None: the active
// requests wait for others, and there is capacity for more. Many: there are too many
// active requests, and some that end are not replaced. It needs mu.
func (a *admission) adjust(runnable int64) {
	limit := a.limit.Load()
	switch {
	case runnable == 0:
		active := a.active.Load()
		limit = max(limit, active+max(a.base, active)/2)
	case runnable >= a.base/2:
		limit -= (limit - a.base) / 8
	}
	a.limit.Store(limit)
}

// tick adjusts the limit while requests wait.
func (a *admission) tick() {
	runnable := a.runnable()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.admitted == a.next {
		a.ticking = false
		return
	}
	a.adjust(runnable)
	a.fill()
	// Active requests may last for hours while the processors are busy with them:
	// the others must not wait for that.
	for a.admitted < a.next && a.admitted < a.ticked+uint64(a.least) {
		a.admit()
	}
	a.ticked = a.admitted
	a.timer.Reset(admissionTick)
}

// shortestWait returns the shortest wait of the requests admitted since it was last
// called: 0 when no request waits, and when none was admitted.
func (a *admission) shortestWait() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	shortest := a.shortest
	a.any, a.shortest = false, 0
	if a.admitted == a.next {
		return 0
	}
	return shortest
}
