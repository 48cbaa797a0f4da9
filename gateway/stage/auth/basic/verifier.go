package basic

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/password"
)

// Options configure a Verifier.
type Options struct {
	Size       int           // cached correct passwords
	TTL        time.Duration // how long one counts as correct without being hashed
	PerUser    int           // wrong passwords for one user per minute; 0: no limit
	PerAddress int           // wrong passwords from one address per minute; 0: no limit
	AtOnce     int           // hashes at a time, in each of two lanes; Look has one more
}

const (
	// waitMost is how long a password may wait to be hashed, and waiting how many may
	// wait: about as many as are hashed in that time.
	waitMost = time.Second
	waiting  = 32

	// answerAfter is when the result for a wrong password is returned: later than any
	// hash takes, so that the time does not reveal which users exist.
	answerAfter = 250 * time.Millisecond

	// remembered is how much longer than Options.TTL a correct password is cached: it
	// is hashed again, but does not count as a guess.
	remembered = time.Hour
)

// An Outcome is the result of checking a password.
type Outcome uint8

// The outcomes.
const (
	Right     Outcome = iota
	Wrong             // Wrong means that there is no such user or that it has another password.
	Throttled         // Throttled means that too many were wrong lately: the password was not checked.
	Busy              // Busy means that too many passwords were being checked.
)

// An Attempt is a user and a password to check.
type Attempt struct {
	User     []byte // organisation and name
	Password []byte
	Stored   string     // the hash of the user's password; "" if there is no such user
	From     netip.Addr // the client
}

// A Verifier checks passwords. It is safe for concurrent use.
//
// A password that was correct lately is not hashed again, and not throttled because of
// others who guess. Passwords that were correct before are hashed in a lane of their
// own, so that they do not wait behind guesses.
type Verifier struct {
	opts  Options
	base  time.Time
	macs  *macs
	right *cache.Cache[sum, proof]
	lanes [3]*password.Hasher

	users, addresses *guesses
	looks            *guesses // of Look, by user

	mu    sync.Mutex
	calls map[callKey]*call

	stats struct{ hashes, wrong, throttled, busy atomic.Uint64 }
}

// Lanes.
const (
	guessLane = iota
	knownLane
	lookLane
)

// looksPerUser is how often per minute Look may find a user's password wrong, unless
// guesses are not limited at all, so that explanations cannot be used to guess
// passwords.
const looksPerUser = 10

// callKey names a check in progress.
type callKey struct {
	sum    sum
	stored string
}

// call is a single-flight check: several requests wait for it.
type call struct {
	done  chan struct{}
	right bool
	err   error
}

// Stats is what a Verifier did and holds.
type Stats struct {
	Hashes    uint64 // passwords hashed
	Wrong     uint64
	Throttled uint64
	Busy      uint64
	Entries   int // cached correct passwords
}

// New returns a Verifier with an empty cache.
func New(o Options) *Verifier {
	v := &Verifier{
		opts: o, base: time.Now(), macs: newMacs(), right: cache.New[sum, proof](cache.Options{Entries: o.Size}),
		users: newGuesses(o.PerUser), addresses: newGuesses(o.PerAddress), calls: make(map[callKey]*call),
	}
	for i := range v.lanes {
		v.lanes[i] = password.NewHasher(o.AtOnce, waiting, waitMost)
	}
	v.lanes[lookLane] = password.NewHasher(1, waiting, waitMost)
	v.looks = newGuesses(min(o.PerUser, 1) * looksPerUser)
	return v
}

// Stats returns current numbers.
func (v *Verifier) Stats() Stats {
	return Stats{
		Hashes: v.stats.hashes.Load(), Wrong: v.stats.wrong.Load(), Throttled: v.stats.throttled.Load(),
		Busy: v.stats.busy.Load(), Entries: v.right.Len(),
	}
}

// Run removes old passwords from the cache until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	every := time.NewTicker(remembered / 4)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			oldest := time.Since(v.base) - v.opts.TTL - remembered
			v.right.DeleteFunc(func(_ sum, p proof) bool { return p.at < oldest }, nil)
		case <-ctx.Done():
			return
		}
	}
}

// Knows reports whether a password was correct for stored within the last
// Options.TTL. It does not allocate.
func (v *Verifier) Knows(user, plain []byte, stored string, now time.Time) bool {
	p, ok := v.right.Get(v.macs.sum(user, plain))
	return ok && p.stored == stored && now.Sub(v.base)-p.at < v.opts.TTL
}

// Check checks a password. If the outcome is Throttled, it also returns the time until
// the next attempt is accepted. Wrong takes as long whether the user exists or not.
func (v *Verifier) Check(a Attempt) (Outcome, time.Duration) {
	began := time.Now()
	s := v.macs.sum(a.User, a.Password)
	lane := guessLane
	if p, known := v.right.Get(s); known && p.stored == a.Stored && a.Stored != "" {
		lane = knownLane
	}
	f, wait := v.join(callKey{s, a.Stored}, lane, a, began)
	switch {
	case f == nil:
		v.stats.throttled.Add(1)
		return Throttled, wait
	case f.err != nil:
		v.stats.busy.Add(1)
		return Busy, waitMost
	case f.right:
		return Right, 0
	}
	v.stats.wrong.Add(1)
	time.Sleep(time.Until(began.Add(answerAfter)))
	return Wrong, 0
}

// Look is Check for a dry run: it caches nothing, does not count as a guess, and has a
// throttle of its own.
func (v *Verifier) Look(a Attempt) (Outcome, time.Duration) {
	now := time.Now()
	if v.Knows(a.User, a.Password, a.Stored, now) {
		return Right, 0
	}
	since := now.Sub(v.base)
	wait := max(v.users.wait(v.users.ofUser(a.User), since), v.addresses.wait(v.addresses.ofAddress(a.From), since))
	if wait == 0 {
		wait = v.looks.take(v.looks.ofUser(a.User), since)
	}
	if wait > 0 {
		return Throttled, wait
	}
	right, err := v.lanes[lookLane].Verify(context.Background(), a.Stored, a.Password)
	right = right && a.Stored != ""
	if right || err != nil {
		v.looks.giveBack(v.looks.ofUser(a.User))
	}
	switch {
	case err != nil:
		return Busy, waitMost
	case right:
		return Right, 0
	}
	return Wrong, 0
}

// guess counts an attempt as a guess, or returns how long until one is accepted.
func (v *Verifier) guess(a Attempt, now time.Time) time.Duration {
	since := now.Sub(v.base)
	if wait := v.addresses.take(v.addresses.ofAddress(a.From), since); wait > 0 {
		return wait
	}
	wait := v.users.take(v.users.ofUser(a.User), since)
	if wait > 0 {
		v.addresses.giveBack(v.addresses.ofAddress(a.From))
	}
	return wait
}

func (v *Verifier) giveBack(a Attempt) {
	v.users.giveBack(v.users.ofUser(a.User))
	v.addresses.giveBack(v.addresses.ofAddress(a.From))
}

// join checks a password once for all requests that have it now: together they are one
// guess. It returns nil, and how long to wait, if no further guess is accepted.
func (v *Verifier) join(key callKey, lane int, a Attempt, now time.Time) (*call, time.Duration) {
	v.mu.Lock()
	if f := v.calls[key]; f != nil {
		v.mu.Unlock()
		<-f.done
		return f, 0
	}
	if lane == guessLane {
		if wait := v.guess(a, now); wait > 0 {
			v.mu.Unlock()
			return nil, wait
		}
	}
	f := &call{done: make(chan struct{}), err: password.ErrBusy}
	v.calls[key] = f
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		delete(v.calls, key)
		v.mu.Unlock()
		close(f.done)
	}()
	v.hash(f, key, lane, a.Password)
	if lane == guessLane && (f.right || f.err != nil) {
		v.giveBack(a)
	}
	return f, 0
}

// hash checks a password and caches a correct one.
func (v *Verifier) hash(f *call, key callKey, lane int, plain []byte) {
	f.right, f.err = v.lanes[lane].Verify(context.Background(), key.stored, plain)
	f.right = f.right && key.stored != ""
	if f.err == nil {
		v.stats.hashes.Add(1)
	}
	if f.right {
		v.right.Put(key.sum, proof{stored: key.stored, at: time.Since(v.base)})
	}
}
