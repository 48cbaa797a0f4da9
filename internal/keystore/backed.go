package keystore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/metrics"
)

// ErrBusy is an ErrUnavailable because too many keys are asked of the admin. It says
// nothing about other keys.
var ErrBusy = fmt.Errorf("%w: too many keys are asked of the admin", ErrUnavailable)

// BackedOptions configure a Backed.
type BackedOptions struct {
	Store Store // shared, and perhaps away

	// Ask returns the session of a key from the admin. The error is ErrNotFound or wraps
	// ErrUnavailable. nil: there is no admin.
	Ask func(ctx context.Context, keyHash string) (*definition.Session, error)

	Log *slog.Logger
}

// Backed is a shared store and the admin that fills it, which is asked while the store
// is away, for keys whose session in the store cannot be read, and for keys that the
// admin reports as changed before the store does. Run must run while it is used.
//
// The admin is protected from floods: look-ups at once are bounded, and so is the rate
// of those that find nothing.
type Backed struct {
	opts BackedOptions

	away     atomic.Bool  // the store failed several times in a row
	failures atomic.Int32 // in a row
	answered atomic.Bool  // the store answered once
	admin    atomic.Bool  // the admin answered the last look-up
	since    atomic.Int64 // when any key may have changed unnoticed, in unix nanoseconds
	cause    atomic.Pointer[error]
	down     chan struct{} // the store went away; capacity 1

	asking  chan struct{} // holds an element for each look-up of the admin
	absent  allowance     // of look-ups that find nothing
	overdue hashSet       // changed at the admin; the store has not reported it
	written hashSet       // reported by the store a moment ago

	watchers watchers
	stats    struct{ outages, asked atomic.Uint64 }
}

// Bounds of look-ups of the admin.
const (
	asksAtOnce   = 32
	absentRate   = 200 // a second
	absentBurst  = 400
	maxOverdue   = 100_000
	awayFailures = 2 // in a row that the store survives
)

// How often Run looks at the store.
const (
	lookEvery    = time.Second
	lookAwayEach = 250 * time.Millisecond
	lookWithin   = time.Second
)

// How long hashes are remembered, between once and twice the time.
const (
	keepOverdue = 30 * time.Second // after the store answered; by then the admin has delivered what waited
	keepWritten = 2 * time.Second
)

// probe is a hash that no key has: hashes are hexadecimal.
const probe = "health check"

// NewBacked returns a Backed.
func NewBacked(o BackedOptions) *Backed {
	return &Backed{opts: o, down: make(chan struct{}, 1), asking: make(chan struct{}, asksAtOnce), absent: allowance{left: absentBurst}}
}

// BackedState says what answers questions about keys.
type BackedState struct {
	Away  bool  // the store does not answer
	Cause error // why
	Admin bool  // while the store is away, the admin answers
}

// CanDecide reports whether there is an answer about keys that are not in memory.
func (s BackedState) CanDecide() bool { return !s.Away || s.Admin }

// State returns what Run saw last. Before it has seen anything the store is away.
func (b *Backed) State() BackedState {
	if b.answered.Load() && !b.away.Load() {
		return BackedState{}
	}
	s := BackedState{Away: true, Admin: b.opts.Ask != nil && b.admin.Load()}
	if cause := b.cause.Load(); cause != nil {
		s.Cause = *cause
	}
	return s
}

// MayServe reports whether a session that was loaded at a time is to be used without a
// look-up, although it is old: the store is away, and the admin would have reported a
// change.
func (b *Backed) MayServe(loaded time.Time) bool {
	return b.away.Load() && loaded.UnixNano() > b.since.Load()
}

// Run watches whether the store answers, until ctx ends.
func (b *Backed) Run(ctx context.Context) {
	var aged [2]time.Time // when hashes were last forgotten: written, overdue
	for ctx.Err() == nil {
		b.look(ctx)
		now := time.Now()
		if now.Sub(aged[0]) >= keepWritten {
			b.written.age()
			aged[0] = now
		}
		if b.away.Load() {
			aged[1] = now
		} else if now.Sub(aged[1]) >= keepOverdue {
			b.overdue.age()
			aged[1] = now
		}
		wait := lookEvery
		if b.away.Load() || !b.answered.Load() {
			wait = lookAwayEach
		}
		timer := time.NewTimer(wait)
		select {
		case <-b.down:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// look asks the store, and while it is away the admin, for a key that does not exist.
func (b *Backed) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	_, err := b.opts.Store.Get(ctx, probe)
	b.note(ctx, err)
	if err = absence(err); err == nil || b.opts.Ask == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	_, err = b.opts.Ask(asked, probe)
	b.admin.Store(err == nil || errors.Is(err, ErrNotFound))
}

// absence returns an error of the store that concerns all keys, else nil.
func absence(err error) error {
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnreadable) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// note records the outcome of a question to the store.
func (b *Backed) note(ctx context.Context, err error) {
	if errors.Is(ctx.Err(), context.Canceled) { // it says nothing about the store
		return
	}
	if err = absence(err); err == nil {
		b.failures.Store(0)
		b.answered.Store(true)
		if b.away.Swap(false) {
			b.opts.Log.Info("the key store is back")
		}
		return
	}
	b.cause.Store(&err)
	refilling := errors.Is(err, ErrRefilling)
	if !refilling && b.failures.Add(1) <= awayFailures || b.away.Swap(true) {
		return
	}
	b.stats.outages.Add(1)
	what := "keys in memory are served"
	if b.opts.Ask != nil {
		what += ", others are asked of the admin"
	}
	b.opts.Log.Warn("the key store is away: "+what, "err", err)
	select {
	case b.down <- struct{}{}:
	default:
	}
}

// Get implements Store.
func (b *Backed) Get(ctx context.Context, keyHash string) (*definition.Session, error) {
	cause := error(ErrUnavailable)
	if b.opts.Ask == nil || !b.away.Load() && !b.overdue.has(keyHash) {
		session, err := b.read(ctx, keyHash)
		b.note(ctx, err)
		if err == nil || errors.Is(err, ErrNotFound) || b.opts.Ask == nil {
			return session, err
		}
		cause = err
	}
	session, err := b.ask(ctx, keyHash)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w; the admin: %w", cause, err)
	}
	return session, err
}

// read asks the store, and leaves half of the time for the admin.
func (b *Backed) read(ctx context.Context, keyHash string) (*definition.Session, error) {
	if end, ok := ctx.Deadline(); ok && b.opts.Ask != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	return b.opts.Store.Get(ctx, keyHash)
}

// ask asks the admin for a key.
func (b *Backed) ask(ctx context.Context, keyHash string) (*definition.Session, error) {
	if !b.absent.take(time.Now()) {
		return nil, ErrBusy
	}
	select {
	case b.asking <- struct{}{}:
		defer func() { <-b.asking }()
	case <-ctx.Done():
		b.absent.giveBack()
		return nil, ErrBusy
	}
	b.stats.asked.Add(1)
	session, err := b.opts.Ask(ctx, keyHash)
	if !errors.Is(err, ErrNotFound) { // only those that find nothing are counted
		b.absent.giveBack()
	}
	b.admin.Store(err == nil || errors.Is(err, ErrNotFound))
	return session, err
}

// Put implements Store.
func (b *Backed) Put(ctx context.Context, keyHash string, s *definition.Session) error {
	return b.opts.Store.Put(ctx, keyHash, s)
}

// Delete implements Store.
func (b *Backed) Delete(ctx context.Context, keyHash string) error {
	return b.opts.Store.Delete(ctx, keyHash)
}

// List implements Store.
func (b *Backed) List(ctx context.Context, cursor string, count int) ([]string, string, error) {
	return b.opts.Store.List(ctx, cursor, count)
}

// Watch implements Store. It also calls changed with what Changed was called with.
func (b *Backed) Watch(ctx context.Context, changed func(keyHash string)) error {
	one := &watcher{changed: changed}
	b.watchers.add(one)
	defer b.watchers.remove(one)
	return b.opts.Store.Watch(ctx, func(keyHash string) {
		if keyHash != "" {
			b.written.add(keyHash)
			b.overdue.remove(keyHash)
		}
		one.notify(keyHash)
	})
}

// Changed records that the admin reports a key as changed, or with "" that any may have
// changed. Until the store reports it too, the admin is asked for the key.
func (b *Backed) Changed(keyHash string) {
	switch {
	case keyHash == "":
		b.since.Store(time.Now().UnixNano())
	case !b.written.has(keyHash):
		b.overdue.add(keyHash)
	}
	b.watchers.notify(keyHash)
}

// An allowance is spent by look-ups and renews itself with time.
type allowance struct {
	mu   sync.Mutex
	left float64
	at   time.Time
}

// take spends one and reports whether there was one.
func (a *allowance) take(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() {
		a.left = min(absentBurst, a.left+now.Sub(a.at).Seconds()*absentRate)
	}
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

func (a *allowance) giveBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left++
}

// A hashSet remembers hashes for a while, up to a number of them.
type hashSet struct {
	size     atomic.Int32 // of both; most of the time there is nothing to look for
	mu       sync.Mutex
	now, old map[string]struct{}
}

func (h *hashSet) has(keyHash string) bool {
	if h.size.Load() == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, now := h.now[keyHash]
	_, old := h.old[keyHash]
	return now || old
}

func (h *hashSet) add(keyHash string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		h.now = make(map[string]struct{})
	}
	if len(h.now) < maxOverdue {
		h.now[keyHash] = struct{}{}
	}
	h.count()
}

func (h *hashSet) remove(keyHash string) {
	if h.size.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.now, keyHash)
	delete(h.old, keyHash)
	h.count()
}

// age forgets what was added before the last call.
func (h *hashSet) age() {
	if h.size.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.old = nil, h.now
	h.count()
}

func (h *hashSet) count() { h.size.Store(int32(len(h.now) + len(h.old))) }

// Health returns the state of the shared store for metrics. The store is always up if b
// is nil.
func (b *Backed) Health() metrics.Store {
	s := metrics.Store{Name: "keys"}
	if b != nil {
		s.Away, s.Outages, s.Without = b.State().Away, b.stats.outages.Load(), b.stats.asked.Load()
	}
	return s
}
