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
// the cores: the system then shares these out, and does so every few milliseconds.
package garbage

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// enough is how many processors it takes for one to be the collector's own.
const enough = 4

const (
	every = 100 * time.Millisecond // the heap is looked at; it is never larger than wanted by more than what is allocated meanwhile
	young = 110 * time.Second      // a collection is; the runtime begins another after two minutes
	small = 128 << 20              // bytes in use; of a heap that is smaller collecting takes no time that matters
)

// never has SetGCPercent let the runtime collect for a limit on memory only.
const never = -1

// Run decides when memory is collected until ctx ends, and then leaves it to the
// runtime again. Where somebody has switched collecting off, or there are
// processors enough, it leaves it to the runtime all along. A limit on memory
// (GOMEMLIMIT) holds in any case.
func Run(ctx context.Context) error {
	read := heapReader()
	now := read()
	if now.percent <= 0 {
		return nil
	}
	c := &collector{read: read, percent: now.percent, set: now.percent, last: now, since: time.Now()}
	defer c.let(c.percent)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.look(time.Now())
		}
	}
}

// A collector decides when memory is collected.
type collector struct {
	read    func() heap
	percent int // by how much the heap may grow
	set     int // by how much the runtime lets it grow
	last    heap
	since   time.Time // when the last collection ended
}

// look collects if it is time, and sees to it that the runtime does not.
func (c *collector) look(at time.Time) {
	now := c.read()
	if now.collections != c.last.collections {
		c.since = at
	}
	mine := now.live >= small && runtime.GOMAXPROCS(0) < enough
	if mine && now.due(c.last.used, c.percent) {
		collect()
		now, c.since = c.read(), time.Now()
	}
	switch {
	case !mine:
		c.let(c.percent)
	case at.Sub(c.since) < young:
		// The runtime begins when up to three tenths of this are left, so that it is
		// late, but there should this goroutine be held up. With a goal it also gives
		// memory back that the last collection has freed.
		c.let(c.percent + c.percent/2)
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

// collect collects all garbage. There are more processors until what is free was
// given back as well: taken back before, requests waited twice as long.
func collect() {
	if before := runtime.GOMAXPROCS(0); before < enough {
		runtime.GOMAXPROCS(enough)
		defer restore(before)
	}
	runtime.GC()
}

// restore has as many processors again as there were.
func restore(before int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS() // which follows the limit of a container from here on, as it did
	} else {
		runtime.GOMAXPROCS(before)
	}
}

// A heap is how the memory of the process is, in bytes.
type heap struct {
	collections uint64
	live        uint64 // that the last collection left
	used        uint64
	percent     int // by how much the runtime lets it grow; 0: it is not told
}

// due tells whether the heap has grown by so many percent, or will have before it
// is looked at again, at the speed at which it grew since it was before.
func (h heap) due(before uint64, percent int) bool {
	grown := max(h.used, before) - before
	return h.used+grown >= h.live+h.live/100*uint64(percent)
}
