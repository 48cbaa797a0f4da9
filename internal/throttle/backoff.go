package throttle

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A Pace configures a Backoff.
type Pace struct {
	Free    int           // tries without a wait after them
	First   time.Duration // wait after the first try that is not free; it doubles with each further one
	Longest time.Duration // wait that it doubles up to
	Quiet   time.Duration // without a try, after which all is forgotten
}

// A Backoff makes repeated tries at one subject, such as the password of one account,
// wait longer each time, wherever they come from. Unlike a Throttle it refuses before
// anything is checked, so that parallel guesses do not get past it. It is safe for
// concurrent use.
type Backoff struct {
	pace Pace
	now  func() time.Time

	mu    sync.Mutex
	tries map[[sha256.Size]byte]tries // by SHA-256 of the subject, so that all take the same memory
}

// tries are the recorded tries at one subject.
type tries struct {
	count int
	last  time.Time
	next  time.Time // when another one is taken
}

// maxSubjects bounds the memory that tries at many subjects can take.
const maxSubjects = 50_000

// NewBackoff returns a Backoff with a pace.
func NewBackoff(p Pace, now func() time.Time) *Backoff {
	return &Backoff{pace: p, now: now, tries: make(map[[sha256.Size]byte]tries)}
}

// Try counts a try at a subject and returns 0, or returns how long until the next try
// is accepted.
func (b *Backoff) Try(subject string) time.Duration {
	key, now := sha256.Sum256([]byte(subject)), b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	t, known := b.tries[key]
	if known && now.Sub(t.last) >= b.pace.Quiet && !now.Before(t.next) {
		t = tries{}
	}
	if now.Before(t.next) {
		return t.next.Sub(now)
	}
	if !known {
		b.evict(now)
	}
	t.count++
	t.last, t.next = now, now.Add(b.wait(t.count))
	b.tries[key] = t
	return 0
}

// wait returns the wait after a number of tries.
func (b *Backoff) wait(count int) time.Duration {
	if count < b.pace.Free {
		return 0
	}
	wait := b.pace.First
	for range min(count-b.pace.Free, 30) {
		if wait *= 2; wait >= b.pace.Longest {
			return b.pace.Longest
		}
	}
	return wait
}

// Pardon takes back a try that was neither right nor wrong.
func (b *Backoff) Pardon(subject string) {
	key := sha256.Sum256([]byte(subject))
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, known := b.tries[key]; known {
		t.count, t.next = max(t.count-1, 0), t.last
		b.tries[key] = t
	}
}

// Forget deletes the tries at a subject, after a right one.
func (b *Backoff) Forget(subject string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tries, sha256.Sum256([]byte(subject)))
}

// evict deletes quiet subjects; if that is not enough, those with the fewest tries:
// a client that fills the table tries many subjects a few times each.
func (b *Backoff) evict(now time.Time) {
	if len(b.tries) < maxSubjects {
		return
	}
	for key, t := range b.tries {
		if now.Sub(t.last) >= b.pace.Quiet && !now.Before(t.next) {
			delete(b.tries, key)
		}
	}
	for least := 1; len(b.tries) >= maxSubjects; least *= 2 {
		for key, t := range b.tries {
			if t.count <= least {
				delete(b.tries, key)
			}
		}
	}
}
