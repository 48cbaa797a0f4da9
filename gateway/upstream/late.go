package upstream

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/rawio"
)

// A connection that was in use a moment ago takes its next request blind, if that
// may be repeated: to ask it first whether anything has come meanwhile costs a
// system call, which finds nothing. What the poller has told of before the request
// is out announces itself no more: the first read happens when something comes
// behind it, and then holds both. An answer that leaves bytes over is therefore
// not believed on such a connection. What remains is an upstream that went away in
// that moment without a word, or sent something and then keeps silent: nothing
// wakes the call that waits. The lookout finds those.
//
// A poller that has much else to do may tell of something only after the request
// is out, though it came before. If that is a whole answer, it passes for this
// one's, as does in any case what comes a moment later. Connections are therefore
// asked first behind exchanges of the kinds to which an upstream is known to say
// more than one answer: requests with a body, which it may leave unread and take
// for the next request, and answers without a body, or with others before them.
const (
	// blindWithin is how long after its last answer a connection is used blind.
	blindWithin = time.Millisecond
	// waryFor is how long all connections of a pool are asked first, after one
	// was not what it had to be.
	waryFor = time.Minute
	// lookAfter is how long a blind request waits before it is looked at, and
	// lookEvery how often the lookout does so.
	lookAfter = 50 * time.Millisecond
	lookEvery = 25 * time.Millisecond
	// wakeWithin is how long a call has to wake to what came for it. In a gateway
	// that has more to do than it can, all calls take long to wake.
	wakeWithin = time.Second
	// mostLooks bounds how many connections of a pool are looked at in a row, as
	// the pool's lock is held meanwhile.
	mostLooks = 64
)

// watch is when a blind request was sent, by the pool's clock, or as a negative
// number when something was found on its connection, or one of the states below.
// Its connection's user begins and ends it, the lookout moves it on in between.
type watch struct{ atomic.Int64 }

const (
	notWatched int64 = -iota
	foundQuiet       // nothing had come: whatever comes wakes the call
	woken            // something had, which did not wake the call: its time was declared to be up
)

// begin has a request of p watched.
func (w *watch) begin(p *pool, start time.Duration) {
	w.Store(int64(start))
	if !p.watched.Load() && p.watched.CompareAndSwap(false, true) {
		p.lookout.add(p)
	}
}

// end tells whether the lookout has declared the request's time to be up. The
// connection's deadline is not touched by it any more.
func (w *watch) end(p *pool) bool {
	if w.Swap(notWatched) != woken {
		return false
	}
	p.mu.Lock() // under which the deadline is set
	defer p.mu.Unlock()
	return true
}

// lost finds out what a connection holds that did not wake the request on it.
func (c *conn) lost() error {
	c.out = nil
	c.armed = 0
	if err := c.sock.SetDeadline(c.pool.epoch.Add(c.pool.now() + lookAfter)); err != nil {
		return err
	}
	if _, err := c.read(c.buf); err != nil {
		return err
	}
	return errSurplus
}

// surplus tells, at the end of an answer, whether it may be something that had
// come before its request.
func (c *conn) surplus() bool {
	return c.blind && (c.r != c.w || c.full && !c.isQuiet())
}

// waryUntil returns the time from which on connections may be used blind.
func (p *pool) waryUntil() time.Duration { return time.Duration(p.wary.Load()) }

// beWary has all connections looked at before their use for a while.
func (p *pool) beWary() { p.wary.Store(int64(p.now() + waryFor)) }

// look looks at requests that have waited for long, and tells whether any are
// left to watch.
func (p *pool) look() (waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, looks := p.now(), 0
	for c := p.all; c != nil; c = c.next {
		state := c.watch.Load()
		if state == notWatched || state == foundQuiet {
			continue
		}
		waiting = true
		switch {
		case looks == mostLooks || state > 0 && now-time.Duration(state) < lookAfter:
		case state > 0:
			looks++
			c.glance(state, now)
		case state != woken && now+time.Duration(state) >= wakeWithin:
			c.rouse(state)
		}
	}
	return waiting
}

// glance moves a watch on by what its connection holds. An end that nobody has
// noticed can be told at once, as it is all that will ever come; bytes may be the
// answer, to which the call is about to wake.
func (c *conn) glance(state int64, now time.Duration) {
	quiet, ended := true, false // one that is closed wakes its user by itself
	_ = c.below.Control(func(fd uintptr) {
		if quiet = rawio.Quiet(fd); !quiet {
			ended = rawio.Ended(fd)
		}
	})
	switch {
	case quiet:
		c.watch.CompareAndSwap(state, foundQuiet)
	case ended:
		c.rouse(state)
	default:
		c.watch.CompareAndSwap(state, -int64(now))
	}
}

// rouse wakes the call that waits, unless it has woken. It needs the pool's mu.
func (c *conn) rouse(state int64) {
	if c.watch.CompareAndSwap(state, woken) {
		_ = c.sock.SetReadDeadline(time.Unix(1, 0))
	}
}

// lookout looks at the pools that have blind requests.
type lookout struct {
	wake chan struct{} // takes one without blocking

	mu    sync.Mutex
	pools []*pool
}

// add has a pool looked at. It is the caller who has set p.watched.
func (l *lookout) add(p *pool) {
	l.mu.Lock()
	l.pools = append(l.pools, p)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run looks until stop is closed, and only while there is something to look at.
func (l *lookout) run(stop <-chan struct{}) {
	tick := time.NewTimer(lookEvery)
	defer tick.Stop()
	var looked []*pool
	for {
		select {
		case <-stop:
			return
		case <-l.wake:
		}
		tick.Reset(lookEvery)
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		looked, l.pools = l.pools, looked[:0]
		l.mu.Unlock()
		for i, p := range looked {
			// In this order: a request that begins now either finds that nobody
			// looks, and says so again, or is seen here.
			p.watched.Store(false)
			if p.look() && p.watched.CompareAndSwap(false, true) {
				l.add(p)
			}
			looked[i] = nil
		}
	}
}
