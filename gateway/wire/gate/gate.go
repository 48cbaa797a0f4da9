// Package gate lets requests in one after the other when more of them are there
// than the processors get done.
//
// A gateway that begins with every request as soon as it hears of it has all of
// them under way at once under load: each is begun, waits behind the beginnings
// of all others until the answer of its upstream is looked at, and finds nothing
// of its memory in the processor's caches any more. With a thousand busy
// connections that makes a request twice as dear, with four thousand three
// times. So who comes while enough are inside waits at the gate, before anything
// is read or held for him, in the order of arrival, and the first of them goes
// in for each one that is done.
//
// That is no limit on requests that only wait for their upstream: whenever the
// processors have nothing to do while somebody waits at the gate, more are let
// in, until either nobody waits or the processors are busy.
package gate

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// perProcessor is how many requests are let in for each processor before anybody
// has to wait. With fewer, a processor runs out of work; with many more, what the
// first has used is no longer in the caches when its turn comes again.
const perProcessor = 48

// tick is how often it is looked at whether more can be let in, while somebody
// waits.
const tick = time.Millisecond

// A Gate counts who is inside. Its methods are safe for concurrent use, and cost
// two atomic operations a request while nobody waits.
type Gate struct {
	inside  atomic.Int64
	allowed atomic.Int64 // inside, before others wait
	waiting atomic.Int64

	base     int64 // allowed at least
	least    int64 // let in with every tick, whatever the processors do
	runnable func() int64

	mu      sync.Mutex // guards all below
	turn    sync.Cond  // who waited longest is woken first
	next    uint64     // number of the next one to wait
	granted uint64     // those with lower numbers may go in
	ticked  uint64     // granted at the last tick
	ticking bool
	timer   *time.Timer

	shortest time.Duration // that somebody waited who went in since the last look
	seen     bool          // somebody did
}

// New returns a gate for all processors that the process may use.
func New() *Gate { return newGate(int64(runtime.GOMAXPROCS(0)), runnable()) }

// newGate returns a gate for some processors. queued tells how much is ready to
// run and does not.
func newGate(processors int64, queued func() int64) *Gate {
	g := &Gate{base: perProcessor * processors, least: 4 * processors, runnable: queued}
	g.allowed.Store(g.base)
	g.turn.L = &g.mu
	g.timer = time.AfterFunc(time.Hour, g.look)
	g.timer.Stop()
	return g
}

// Enter returns once the caller may begin. Every Enter needs a Leave.
func (g *Gate) Enter() {
	if g.inside.Add(1) > g.allowed.Load() || g.waiting.Load() > 0 {
		g.wait()
	}
}

// Leave lets the next one in.
func (g *Gate) Leave() {
	if g.inside.Add(-1) < g.allowed.Load() && g.waiting.Load() > 0 {
		g.mu.Lock()
		g.fill()
		g.mu.Unlock()
	}
}

// wait is Enter for whoever may have to wait.
func (g *Gate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside.Add(-1)
	mine, since := g.next, time.Now()
	g.next++
	g.waiting.Add(1) // before inside is looked at: who leaves looks in the other order
	if !g.ticking {
		g.ticking, g.ticked = true, g.granted
		g.timer.Reset(tick)
		g.widen(g.runnable())
	}
	for g.fill(); mine >= g.granted; {
		g.turn.Wait()
	}
	if waited := time.Since(since); !g.seen || waited < g.shortest {
		g.seen, g.shortest = true, waited
	}
}

// fill lets those in for whom there is room.
func (g *Gate) fill() {
	for g.granted < g.next && g.inside.Load() < g.allowed.Load() {
		g.grant()
	}
}

func (g *Gate) grant() {
	g.granted++
	g.inside.Add(1)
	g.waiting.Add(-1)
	g.turn.Signal()
}

// widen decides by what is ready to run how many are allowed inside. Nothing:
// those inside wait for others, and there is room for more. Much: they are too
// many, and who leaves is not replaced until they are fewer.
func (g *Gate) widen(queued int64) {
	allowed := g.allowed.Load()
	switch {
	case queued == 0:
		inside := g.inside.Load()
		allowed = max(allowed, inside+max(g.base, inside)/2)
	case queued >= g.base/2:
		allowed -= (allowed - g.base) / 8
	}
	g.allowed.Store(allowed)
}

// look is called with every tick while somebody waits.
func (g *Gate) look() {
	queued := g.runnable()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.granted == g.next {
		g.ticking = false
		return
	}
	g.widen(queued)
	g.fill()
	// Those inside may stay for hours, and the processors be busy with them all
	// the time: nobody else may wait for that.
	for g.granted < g.next && g.granted < g.ticked+uint64(g.least) {
		g.grant()
	}
	g.ticked = g.granted
	g.timer.Reset(tick)
}

// Inside is how many have entered and not left.
func (g *Gate) Inside() int { return int(g.inside.Load()) }

// Waiting is how many wait.
func (g *Gate) Waiting() int { return int(g.waiting.Load()) }

// Waited returns the shortest time that anybody waited who went in since Waited
// was last asked: 0 when nobody waits, and when nobody went in.
func (g *Gate) Waited() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	shortest := g.shortest
	g.seen, g.shortest = false, 0
	if g.granted == g.next {
		return 0
	}
	return shortest
}
