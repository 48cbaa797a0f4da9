// Package garbage has the collection of garbage get in the way of requests as
// little as may be where a process has few processors.
//
// With one to three of them Go's runtime collects on those that serve requests, in
// stretches that grow to a fourteenth of what the collection has taken so far: a
// tenth of a second where it takes more than one. And it collects every two
// minutes, whether there is any garbage or not. From four processors on it
// collects on one of its own.
//
// So collections are begun here, when there is as much garbage as the runtime
// would wait for (GOGC), and at no other time: of a gateway that serves what it has
// served before, hardly ever. While one goes on there are four processors, whatever
// the cores: the system then shares these out, and it is told to do so often.
//
// It matters how one is begun. The collection that the runtime begins of itself,
// because the last is two minutes old, is done by the collector's own processor
// alone. In any other, all processors that have nothing else to do take part, and
// on one core these are three threads more beside the one that serves. Hence where
// the last is old enough the runtime is allowed to begin, and where it is not there
// may be twice as much garbage, within the limit on memory. Of a process that has
// just started there may not: it loads what it is to have, and hardly serves.
package garbage

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"
)

// enough is how many processors it takes for one to be the collector's own.
const enough = 4

const (
	every = 100 * time.Millisecond // the heap is looked at; it is never larger than wanted by more than what is allocated meanwhile
	young = 110 * time.Second      // a collection is; the runtime begins another when it is old
	old   = 2 * time.Minute        // runtime/proc.go, forcegcperiod
	small = 128 << 20              // bytes in use; of a heap that is smaller collecting takes no time that matters
)

const (
	never = -1 // has SetGCPercent let the runtime collect for a limit on memory only
	late  = 3  // times as much garbage as usual the runtime waits for where collections are begun here
)

// Run decides when memory is collected until ctx ends, and then leaves it to the
// runtime again. Where somebody has switched collecting off, or there are
// processors enough, it leaves it to the runtime all along. A limit on memory holds in
// any case: GOMEMLIMIT, or nine tenths of what the container or the machine has.
func Run(ctx context.Context, log *slog.Logger) error {
	limit(log)
	read := heapReader()
	now := read()
	if now.percent <= 0 {
		return nil
	}
	c := &collector{read: read, percent: now.percent, set: now.percent, last: now, began: time.Now(), since: time.Now()}
	c.collect = c.collectAll
	defer c.let(c.percent)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.look(ctx, time.Now())
		}
	}
}

// A collector decides when memory is collected.
type collector struct {
	read    func() heap
	collect func(ctx context.Context, allow bool) // allow: have the runtime begin
	percent int                                   // by how much the heap may grow; later on, where the last collection is young, by twice as much
	set     int                                   // by how much the runtime lets it grow
	last    heap
	began   time.Time // to decide
	since   time.Time // when the last collection ended
}

// look collects if it is time, and sees to it that the runtime does not.
func (c *collector) look(ctx context.Context, at time.Time) {
	now := c.read()
	if now.collections != c.last.collections {
		c.since = at
	}
	mine := now.live >= small && runtime.GOMAXPROCS(0) < enough
	allow, growth := at.Sub(c.since) >= old, c.percent
	if !allow && at.Sub(c.began) >= old {
		growth *= 2
	}
	if mine && now.due(c.last.used, growth) {
		c.collect(ctx, allow)
		now, c.since = c.read(), time.Now()
	}
	switch {
	case !mine:
		c.let(c.percent)
	case at.Sub(c.since) < young:
		// So that the runtime is late, but there, should this goroutine be held up: it
		// begins when up to three tenths of this are left. With a goal it also gives
		// memory back that the last collection has freed.
		c.let(c.percent * late)
	default:
		c.let(never)
	}
	c.last = now
}

// let has the runtime collect when the heap has grown by so many percent.
func (c *collector) let(percent int) {
	if c.set != percent {
		debug.SetGCPercent(percent)
		c.set = percent
	}
}

// A heap is how the memory of the process is, in bytes.
type heap struct {
	collections uint64
	live        uint64 // that the last collection left
	used        uint64
	freed       uint64 // since the process began
	percent     int    // by how much the runtime lets it grow; 0: it is not told
}

// due tells whether the heap has grown by so many percent, or will have before it
// is looked at again, at the speed at which it grew since it was before.
func (h heap) due(before uint64, percent int) bool {
	grown := max(h.used, before) - before
	return h.used+grown >= h.live+h.live/100*uint64(percent)
}
