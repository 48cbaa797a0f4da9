// Package attempts counts what failed by where it came from, so that whoever
// guesses has to go slowly.
package attempts

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Guard counts failed authentications by address, so that guessing is slow and
// a misconfigured client does not fill the log. It never stands in the way of a
// right credential: behind one address there may be others who have one. It is
// safe for concurrent use.
type Guard struct {
	perMinute float64
	now       func() time.Time

	mu    sync.Mutex
	fails map[netip.Prefix]*failures
}

// failures is a bucket that empties with time.
type failures struct {
	level float64
	at    time.Time
}

// maxAddresses bounds what an attacker with many addresses can make us keep.
const maxAddresses = 10_000

// New returns a Guard that takes a number of failures a minute from an address.
func New(perMinute int, now func() time.Time) *Guard {
	return &Guard{perMinute: float64(perMinute), now: now, fails: make(map[netip.Prefix]*failures)}
}

// Failed counts a failure, and returns how long until the next attempt would be
// taken; 0: it is now.
func (g *Guard) Failed(from net.IP) time.Duration { return g.count(network(from)) }

// Pardon takes back a failure that was counted before it was known to be none.
func (g *Guard) Pardon(from net.IP) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.fails[network(from)]; f != nil {
		f.level = max(0, f.level-1)
	}
}

// count returns how long until the next attempt would only be refused, 0 for
// now.
func (g *Guard) count(from netip.Prefix) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	f := g.fails[from]
	if f == nil {
		g.makeRoom(now)
		f = &failures{at: now}
		g.fails[from] = f
	}
	f.level = max(0, f.level-now.Sub(f.at).Minutes()*g.perMinute)
	f.at = now
	if f.level+1 > g.perMinute {
		return time.Duration((f.level + 1 - g.perMinute) / g.perMinute * float64(time.Minute))
	}
	f.level++
	return 0
}

// makeRoom forgets addresses that have been quiet for a minute, or all of them
// when that is not enough.
func (g *Guard) makeRoom(now time.Time) {
	if len(g.fails) < maxAddresses {
		return
	}
	for from, f := range g.fails {
		if now.Sub(f.at) > time.Minute {
			delete(g.fails, from)
		}
	}
	if len(g.fails) >= maxAddresses {
		clear(g.fails)
	}
}

// network is the address, or in IPv6 the network that one customer gets.
func network(ip net.IP) netip.Prefix {
	address, _ := netip.AddrFromSlice(ip)
	bits := 32
	if address = address.Unmap(); address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // an address without bits has the zero prefix
	return prefix
}
