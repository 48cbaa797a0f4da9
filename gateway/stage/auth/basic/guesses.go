package basic

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// bucketCount is how many buckets guesses has. Far fewer guesses can be checked in a
// minute, so that two users rarely share a bucket.
const bucketCount = 1 << 14

// guesses is a set of leaky buckets that count attempts, by user or by address. A keyed
// hash selects the bucket, so that memory is constant and a client cannot choose whose
// bucket it fills.
type guesses struct {
	perMinute float64 // 0: no limit
	seed      maphash.Seed

	mu      sync.Mutex
	buckets []bucket
}

// bucket is a leaky bucket.
type bucket struct {
	level float32
	at    time.Duration
}

func newGuesses(perMinute int) *guesses {
	return &guesses{perMinute: float64(perMinute), seed: maphash.MakeSeed(), buckets: make([]bucket, bucketCount)}
}

func (g *guesses) bucket(key uint64) *bucket { return &g.buckets[key%bucketCount] }

// level returns how full a bucket is. The caller holds the lock.
func (g *guesses) level(b *bucket, now time.Duration) float64 {
	return max(0, float64(b.level)-(now-b.at).Minutes()*g.perMinute)
}

// wait returns how long until an attempt is accepted; 0 is now.
func (g *guesses) wait(key uint64, now time.Duration) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.excess(g.level(g.bucket(key), now))
}

// excess returns how long until a bucket accepts one more attempt.
func (g *guesses) excess(level float64) time.Duration {
	if level+1 <= g.perMinute {
		return 0
	}
	return time.Duration((level + 1 - g.perMinute) / g.perMinute * float64(time.Minute))
}

// take counts an attempt, or returns how long until one is accepted.
func (g *guesses) take(key uint64, now time.Duration) time.Duration {
	if g.perMinute == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	b := g.bucket(key)
	level := g.level(b, now)
	if wait := g.excess(level); wait > 0 {
		return wait
	}
	b.level, b.at = float32(level+1), now
	return 0
}

// giveBack uncounts an attempt that was not a guess.
func (g *guesses) giveBack(key uint64) {
	if g.perMinute == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if b := g.bucket(key); b.level >= 1 {
		b.level--
	} else {
		b.level = 0
	}
}

// ofUser returns the bucket key of a user.
func (g *guesses) ofUser(user []byte) uint64 { return maphash.Bytes(g.seed, user) }

// ofAddress returns the bucket key of an address; for IPv6 that of its /64, which is
// one customer's.
func (g *guesses) ofAddress(a netip.Addr) uint64 {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	network, _ := a.Prefix(bits) // an invalid address has the zero prefix
	return maphash.Comparable(g.seed, network)
}
