package basic

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// places is how many buckets a table of guesses has. Far fewer guesses can be
// checked in a minute, so that two who fail hardly ever share a bucket.
const places = 1 << 14

// guesses counts attempts, each kind of origin in its own table. Who or what an
// attempt came from is kept nowhere: a keyed hash names a bucket, so that the
// table is as large as it is whatever comes, and nobody can choose whose bucket
// to fill.
type guesses struct {
	perMinute float64 // 0: any number
	seed      maphash.Seed

	mu      sync.Mutex
	buckets []bucket
}

// bucket empties with time.
type bucket struct {
	level float32
	at    time.Duration
}

func newGuesses(perMinute int) *guesses {
	return &guesses{perMinute: float64(perMinute), seed: maphash.MakeSeed(), buckets: make([]bucket, places)}
}

func (g *guesses) placeOf(key uint64) *bucket { return &g.buckets[key%places] }

// level returns how full a bucket is at a time. The caller holds the lock.
func (g *guesses) level(b *bucket, now time.Duration) float64 {
	return max(0, float64(b.level)-(now-b.at).Minutes()*g.perMinute)
}

// wait returns how long until an attempt would be taken; 0: it is now.
func (g *guesses) wait(key uint64, now time.Duration) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.excess(g.level(g.placeOf(key), now))
}

// excess is how long a bucket takes until there is room for one more.
func (g *guesses) excess(level float64) time.Duration {
	if level+1 <= g.perMinute {
		return 0
	}
	return time.Duration((level + 1 - g.perMinute) / g.perMinute * float64(time.Minute))
}

// take counts an attempt, or returns how long until one would be taken.
func (g *guesses) take(key uint64, now time.Duration) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.placeOf(key)
	level := g.level(b, now)
	if wait := g.excess(level); wait > 0 {
		return wait
	}
	b.level, b.at = float32(level+1), now
	return 0
}

// giveBack takes the count of an attempt back that was no guess.
func (g *guesses) giveBack(key uint64) {
	if g.perMinute == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.placeOf(key); b.level >= 1 {
		b.level--
	} else {
		b.level = 0
	}
}

// ofUser and ofAddress name what attempts are counted by.
func (g *guesses) ofUser(user []byte) uint64 { return maphash.Bytes(g.seed, user) }

// ofAddress counts a network of IPv6 as the one customer that it is given to.
func (g *guesses) ofAddress(a netip.Addr) uint64 {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits) // an address that is none has the zero prefix
	return maphash.Comparable(g.seed, network)
}
