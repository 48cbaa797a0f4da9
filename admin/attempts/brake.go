package attempts

import (
	"crypto/sha256"
	"sync"
	"time"
)

// A Pace says how a Brake slows down.
type Pace struct {
	Free    int           // tries without a wait after them
	First   time.Duration // wait after the first try that is not free; it doubles with each further one
	Longest time.Duration // wait that it doubles up to
	Quiet   time.Duration // without a try, after which all is forgotten
}

// A Brake makes whoever tries one thing again and again, such as the password of
// one account, wait longer each time, wherever they are. Unlike a Guard it refuses
// before anything is looked at, so that guesses at once do not get past it. It is
// safe for concurrent use.
type Brake struct {
	pace Pace
	now  func() time.Time

	mu    sync.Mutex
	tries map[[sha256.Size]byte]tries // by what was tried; hashed, so that none takes more room than others
}

// tries are what is remembered of one thing.
type tries struct {
	count int
	last  time.Time
	next  time.Time // when another one is taken
}

// maxThings bounds what somebody who tries many things can make us keep.
const maxThings = 50_000

// NewBrake returns a Brake with a pace.
func NewBrake(p Pace, now func() time.Time) *Brake {
	return &Brake{pace: p, now: now, tries: make(map[[sha256.Size]byte]tries)}
}

// Try takes a try at something and returns 0, or returns how long until one is
// taken.
func (b *Brake) Try(what string) time.Duration {
	key, now := sha256.Sum256([]byte(what)), b.now()
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
		b.makeRoom(now)
	}
	t.count++
	t.last, t.next = now, now.Add(b.wait(t.count))
	b.tries[key] = t
	return 0
}

// wait is how long the next try waits for after so many.
func (b *Brake) wait(count int) time.Duration {
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

// Pardon takes a try back that could be neither right nor wrong.
func (b *Brake) Pardon(what string) {
	key := sha256.Sum256([]byte(what))
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, known := b.tries[key]; known {
		t.count, t.next = max(t.count-1, 0), t.last
		b.tries[key] = t
	}
}

// Forget forgets the tries at something: the last one was right.
func (b *Brake) Forget(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.tries, sha256.Sum256([]byte(what)))
}

// makeRoom forgets what has been quiet; where that is not enough what was tried
// least often, for whoever fills the table tries much a few times.
func (b *Brake) makeRoom(now time.Time) {
	if len(b.tries) < maxThings {
		return
	}
	for key, t := range b.tries {
		if now.Sub(t.last) >= b.pace.Quiet && !now.Before(t.next) {
			delete(b.tries, key)
		}
	}
	for least := 1; len(b.tries) >= maxThings; least *= 2 {
		for key, t := range b.tries {
			if t.count <= least {
				delete(b.tries, key)
			}
		}
	}
}
