package garbage

import (
	"context"
	"os"
	"runtime"
	"time"
)

// short is a turn of a thread on a processor while memory is collected: so long, and
// not the system's three milliseconds, a request may wait for the collector's.
const short = 300 * time.Microsecond

// collectAll collects all garbage, or allows the runtime to and waits until it has.
// There are more processors until what is free was given back as well: taken back
// before, requests waited twice as long.
func (c *collector) collectAll(ctx context.Context, allow bool) {
	setTurns(short)
	defer setTurns(0)
	if before := runtime.GOMAXPROCS(0); before < enough {
		runtime.GOMAXPROCS(enough)
		defer restore(before)
	}
	if allow {
		c.allow(ctx)
	} else {
		runtime.GC()
	}
}

// restore has as many processors again as there were.
func restore(before int) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS() // which follows the limit of a container from here on, as it did
	} else {
		runtime.GOMAXPROCS(before)
	}
}

// allow has the runtime begin a collection, which it does within moments where the
// last one is old, and waits until all was given back, or ctx ends. Should the
// runtime have it otherwise, it begins for as much garbage as it is told to.
func (c *collector) allow(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	c.let(c.percent * late)
	begun := c.read()
	for freed, now := begun.freed, begun; now.collections == begun.collections || now.freed != freed; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		freed, now = now.freed, c.read()
	}
}
