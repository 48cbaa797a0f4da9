package basic

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/password"
)

// Options says how passwords are checked.
type Options struct {
	Size       int           // passwords that are remembered as right
	TTL        time.Duration // how long one is taken for right without a hash
	PerUser    int           // wrong passwords for one user in a minute; 0: any number
	PerAddress int           // wrong passwords from one address in a minute; 0: any number
	AtOnce     int           // hashes at a time, in each of two lanes; Look has one besides
}

const (
	// waitMost is how long a password waits for its turn to be hashed, and
	// waiting how many may wait: about as many as get their turn in that time.
	waitMost = time.Second
	waiting  = 32

	// answerAfter is when a wrong password is told to be wrong: later than any
	// hash takes, so that time does not tell which users there are.
	answerAfter = 250 * time.Millisecond

	// remembered is how long it is known that a password was right, beyond the
	// time that it is taken for right. Who shows it again is not guessing.
	remembered = time.Hour
)

// An Outcome is what came of checking a password.
type Outcome uint8

// The outcomes.
const (
	Right     Outcome = iota
	Wrong             // Wrong says that there is no such user, or that it is not the password.
	Throttled         // Throttled says that too many were wrong lately: this one was not looked at.
	Busy              // Busy says that too many passwords were being checked.
)

// An Attempt is a user and a password that somebody shows.
type Attempt struct {
	User     []byte // organisation and name
	Password []byte
	Stored   string     // the hash of the user's password; "" when there is no such user
	From     netip.Addr // where it comes from
}

// A Verifier checks passwords. It is safe for concurrent use.
//
// Whoever was right lately is right again without a hash, and is not held back
// by others who guess. Two lanes keep those whose password was known before from
// waiting behind those who guess.
type Verifier struct {
	opts  Options
	base  time.Time
	macs  *macs
	right *table
	lanes [3]*password.Hasher

	users, addresses *guesses
	looks            *guesses // of Look, by user

	mu      sync.Mutex
	flights map[flightKey]*flight

	stats struct{ hashes, wrong, throttled, busy atomic.Uint64 }
}

// The lanes.
const (
	strangerLane = iota
	knownLane
	lookLane
)

// looksPerUser is how often in a minute Look finds a user's password wrong, unless
// guesses are not held back at all: whoever may ask for explanations must not
// find a password out in that way.
const looksPerUser = 10

// flightKey names one check that is under way.
type flightKey struct {
	sum    sum
	stored string
}

// flight is a check that several requests wait for.
type flight struct {
	done  chan struct{}
	right bool
	err   error
}

// Stats is what a Verifier did and holds.
type Stats struct {
	Hashes    uint64 // passwords that were hashed
	Wrong     uint64
	Throttled uint64
	Busy      uint64
	Entries   int // passwords that are remembered as right
}

// New returns a Verifier that has seen no password.
func New(o Options) *Verifier {
	v := &Verifier{
		opts: o, base: time.Now(), macs: newMacs(), right: newTable(o.Size),
		users: newGuesses(o.PerUser), addresses: newGuesses(o.PerAddress), flights: make(map[flightKey]*flight),
	}
	for i := range v.lanes {
		v.lanes[i] = password.NewHasher(o.AtOnce, waiting, waitMost)
	}
	v.lanes[lookLane] = password.NewHasher(1, waiting, waitMost)
	v.looks = newGuesses(min(o.PerUser, 1) * looksPerUser)
	return v
}

// Stats returns what was done so far.
func (v *Verifier) Stats() Stats {
	return Stats{
		Hashes: v.stats.hashes.Load(), Wrong: v.stats.wrong.Load(), Throttled: v.stats.throttled.Load(),
		Busy: v.stats.busy.Load(), Entries: v.right.len(),
	}
}

// Run forgets passwords that were not shown for long, until ctx ends.
func (v *Verifier) Run(ctx context.Context) {
	every := time.NewTicker(remembered / 4)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			v.right.sweep(time.Since(v.base) - v.opts.TTL - remembered)
		case <-ctx.Done():
			return
		}
	}
}

// Knows tells whether a password was right for what is stored a short while ago.
// It does not allocate.
func (v *Verifier) Knows(user, plain []byte, stored string, now time.Time) bool {
	s := v.macs.of(user, plain)
	at, ok := v.right.find(&s, stored)
	return ok && now.Sub(v.base)-at < v.opts.TTL
}

// Check finds out whether an attempt's password is right. When it is Throttled
// the time until the next attempt is returned too. What is not Right is told
// after the same time whether there is such a user or not.
func (v *Verifier) Check(a Attempt) (Outcome, time.Duration) {
	began := time.Now()
	s := v.macs.of(a.User, a.Password)
	lane := strangerLane
	if _, known := v.right.find(&s, a.Stored); known && a.Stored != "" {
		lane = knownLane
	}
	f, wait := v.join(flightKey{s, a.Stored}, lane, a, began)
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

// Look is Check without a trace: nothing is remembered or waited for, and nothing
// counted that Check asks. Looks are held back among themselves.
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

// guess counts an attempt until it turns out to be none, or returns how long
// until one would be taken.
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

// join has a password hashed, once for all who show it now: together they are
// one guess. It returns nil, and how long to wait, when no further guess is
// taken.
func (v *Verifier) join(key flightKey, lane int, a Attempt, now time.Time) (*flight, time.Duration) {
	v.mu.Lock()
	if f := v.flights[key]; f != nil {
		v.mu.Unlock()
		<-f.done
		return f, 0
	}
	if lane == strangerLane {
		if wait := v.guess(a, now); wait > 0 {
			v.mu.Unlock()
			return nil, wait
		}
	}
	f := &flight{done: make(chan struct{}), err: password.ErrBusy}
	v.flights[key] = f
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		delete(v.flights, key)
		v.mu.Unlock()
		close(f.done)
	}()
	v.hash(f, key, lane, a.Password)
	if lane == strangerLane && (f.right || f.err != nil) {
		v.giveBack(a)
	}
	return f, 0
}

// hash finds out whether a password is right, and remembers one that is.
func (v *Verifier) hash(f *flight, key flightKey, lane int, plain []byte) {
	f.right, f.err = v.lanes[lane].Verify(context.Background(), key.stored, plain)
	f.right = f.right && key.stored != ""
	if f.err == nil {
		v.stats.hashes.Add(1)
	}
	if f.right {
		v.right.put(&key.sum, proof{stored: key.stored, at: time.Since(v.base)})
	}
}
