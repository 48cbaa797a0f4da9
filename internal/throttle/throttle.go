// Package throttle slows down those who guess: at credentials, by the address that they
// guess from (Throttle), or at one subject, such as the password of an account, wherever
// they come from (Backoff).
package throttle

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Throttle counts failed authentications by address, so that guessing is slow and a
// misconfigured client does not fill the log. It never refuses a right credential:
// other clients may share the address. It is safe for concurrent use.
type Throttle struct {
	perMinute float64
	now       func() time.Time

	mu    sync.Mutex
	fails map[netip.Prefix]*failures
}

// failures is a bucket that leaks with time.
type failures struct {
	level float64
	at    time.Time
}

// maxAddresses bounds the memory that an attacker with many addresses can take.
const maxAddresses = 10_000

// New returns a Throttle that accepts a number of failures a minute from one
// address.
func New(perMinute int, now func() time.Time) *Throttle {
	return &Throttle{perMinute: float64(perMinute), now: now, fails: make(map[netip.Prefix]*failures)}
}

// Failed counts a failure. It returns 0, or how long until the next failure would be
// accepted.
func (g *Throttle) Failed(from net.IP) time.Duration { return g.count(NetworkOf(from)) }

// Pardon takes back a failure that was counted before the result was known.
func (g *Throttle) Pardon(from net.IP) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.fails[NetworkOf(from)]; f != nil {
		f.level = max(0, f.level-1)
	}
}

func (g *Throttle) count(from netip.Prefix) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	f := g.fails[from]
	if f == nil {
		g.evict(now)
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

// evict deletes addresses without a failure for a minute, or all of them if that is not
// enough.
func (g *Throttle) evict(now time.Time) {
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

// NetworkOf returns the address, or in IPv6 the /64 network, which is what one customer
// gets.
func NetworkOf(ip net.IP) netip.Prefix {
	address, _ := netip.AddrFromSlice(ip)
	bits := 32
	if address = address.Unmap(); address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits) // an address without bits has the zero prefix
	return prefix
}
