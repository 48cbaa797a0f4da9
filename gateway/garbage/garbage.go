// Package garbage gives the collection of garbage room beside requests where a
// process has few processors.
//
// With one to three of them Go's runtime collects on those that serve requests, in
// stretches that grow to a fourteenth of what the collection has taken so far: a
// tenth of a second where it takes more than one. From four processors on it
// collects on one of its own. So a collection that is about to come is brought
// forward, and while it lasts there are four, whatever the cores: the system then
// shares these out, and it does so every few milliseconds.
package garbage

import (
	"context"
	"os"
	"runtime"
	"time"
)

// enough is how many processors it takes for one to be the collector's own.
const enough = 4

// The runtime collects two minutes after the last collection, and when the heap
// reaches its goal. Looking at it every so often, a collection is begun before
// either. Of a heap that is smaller it takes no time that matters.
const (
	every = 250 * time.Millisecond
	age   = 118 * time.Second
	small = 128 << 20 // bytes in use after the last collection
)

// Collect collects all garbage. Two calls must not overlap.
func Collect() {
	before := runtime.GOMAXPROCS(0)
	if before < enough {
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

// Run collects before the runtime would, until ctx ends.
func Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	read, last, since := heapReader(), heap{}, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := read()
		if now.collections != last.collections {
			since, last.used = time.Now(), now.used
		}
		if now.due(last.used, time.Since(since)) {
			Collect()
			since = time.Now()
		}
		last = now
	}
}

// A heap is how the memory of the process is, in bytes.
type heap struct {
	collections uint64
	live        uint64 // that the last collection left
	used        uint64
	goal        uint64 // when used reaches it the runtime collects
}

// due tells whether a collection is about to come: it is old, or memory is used
// up soon at the speed at which it was since the last look.
func (h heap) due(before uint64, old time.Duration) bool {
	if h.live < small || h.goal == 0 {
		return false
	}
	grown := max(h.used, before) - before
	return old >= age || h.used+3*grown >= h.goal-h.goal/20
}
