package developers

import (
	"crypto/sha256"
	"net"
	"sync"
	"time"

	"github.com/sluicegate/sluice/internal/throttle"
)

// recentLogins remembers which accounts logged in from which networks lately. The limit
// of guesses by address does not apply to them: many developers may share the address of
// one proxy, and guesses of one of them must not lock out the others. It is safe for
// concurrent use.
type recentLogins struct {
	now func() time.Time

	mu sync.Mutex
	at map[[sha256.Size]byte]time.Time // the last log-in, by hash of account and network, so that all take the same memory
}

const (
	recentFor = 30 * 24 * time.Hour
	maxRecent = 50_000
)

func newRecentLogins(now func() time.Time) *recentLogins {
	return &recentLogins{now: now, at: make(map[[sha256.Size]byte]time.Time)}
}

func loginKey(account string, from net.IP) [sha256.Size]byte {
	return sha256.Sum256([]byte(account + "\x00" + throttle.NetworkOf(from).String()))
}

// add records a log-in.
func (r *recentLogins) add(account string, from net.IP) {
	key, now := loginKey(account, from), r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.at[key]; !known {
		r.evict(now)
	}
	r.at[key] = now
}

// has reports whether there was a log-in of the account from the network lately.
func (r *recentLogins) has(account string, from net.IP) bool {
	key := loginKey(account, from)
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.at[key]
	return known && r.now().Sub(at) < recentFor
}

// evict makes room for one more log-in: it deletes old ones or, if that is not enough,
// half of all.
func (r *recentLogins) evict(now time.Time) {
	if len(r.at) < maxRecent {
		return
	}
	for key, at := range r.at {
		if now.Sub(at) >= recentFor {
			delete(r.at, key)
		}
	}
	if len(r.at) < maxRecent {
		return
	}
	for key := range r.at {
		if delete(r.at, key); len(r.at) <= maxRecent/2 {
			return
		}
	}
}
