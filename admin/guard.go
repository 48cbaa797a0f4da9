package admin

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// A guard counts failed authentications by address, so that guessing is slow and
// a misconfigured client does not fill the log. It never stands in the way of a
// right credential: behind one address there may be others who have one.
type guard struct {
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

func newGuard(perMinute int, now func() time.Time) *guard {
	return &guard{perMinute: float64(perMinute), now: now, fails: make(map[netip.Prefix]*failures)}
}

// refuse counts a failed authentication and returns the answer to it.
func (g *guard) refuse(ip net.IP) *fault {
	wait := g.count(network(ip))
	if wait == 0 {
		return refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	f := refuse(fasthttp.StatusTooManyRequests, "Too many failed attempts from this address; try again later")
	f.header = map[string]string{fasthttp.HeaderRetryAfter: strconv.Itoa(int(wait.Seconds()) + 1)}
	return f
}

// count returns how long until the next attempt would only be refused, 0 for
// now.
func (g *guard) count(from netip.Prefix) time.Duration {
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
func (g *guard) makeRoom(now time.Time) {
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
