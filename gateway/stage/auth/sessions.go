package auth

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/pace"
	"github.com/sluicegate/sluice/internal/sleep"
)

// SessionOptions configure Sessions.
type SessionOptions struct {
	Store  keystore.Store
	Hasher *credential.Hasher
	Log    *slog.Logger

	Size     int           // cached sessions
	TTL      time.Duration // how long one is used before the store is asked again
	StaleTTL time.Duration // how much longer one is used while the store is away

	UnknownSize int           // cached unknown credentials
	UnknownTTL  time.Duration // how long one is refused without asking the store; 0: not at all

	Timeout time.Duration // for one look-up in the store, and for the wait before it

	// MayServe reports whether a session that was loaded at a time is used without a
	// look-up after its TTL, because the store is known to be away. nil: never.
	MayServe func(loaded time.Time) bool

	Changed func() // called when sessions may have changed; must not block; may be nil

	// Legacy is called when a key was found under a legacy hash, with the SHA-256 hashes
	// that can take its place. It must not block; nil: nothing is done.
	Legacy func(identity string, hashes []string)
}

// Sessions finds the sessions of credentials, for all APIs: in a cache, or in the
// store. It is safe for concurrent use.
//
// A cached session is found by a keyed hash of the credential and confirmed by
// comparing all of it; only a session that is not cached costs the hash that the
// store knows it by. What the store reports as changed is looked up again. While the
// store is away, cached sessions stay valid for StaleTTL.
type Sessions struct {
	opts    SessionOptions
	base    time.Time // times are durations since then
	seed    maphash.Seed
	second  maphash.Seed // of the second half of an unknown credential's hash
	entries *cache.Cache[uint64, *entry]
	unknown *cache.Cache[uint64, unknownKey]
	changes invalidations
	lanes   [2]chan struct{}
	away    breaker

	mu    sync.Mutex
	calls map[string]*call // look-ups in progress

	lastLog atomic.Int64 // when a failed look-up was last logged, in seconds since base, from 1
	hits    [hitCounters]hitCounter
	stats   struct{ misses, unknown, malformed, stale, busy atomic.Uint64 }
}

// hitCounters is over how many cache lines hits are counted, as all CPUs do all the
// time.
const hitCounters = 64

type hitCounter struct {
	atomic.Uint64
	_ [56]byte
}

// Stats is what Sessions did and holds.
type Stats struct {
	Hits      uint64 // found in the cache
	Misses    uint64 // looked up in the store
	Unknown   uint64 // refused by the cache
	Malformed uint64 // refused by their checksum
	Stale     uint64 // served past their TTL while the store was away
	Busy      uint64 // not looked up in time, because of too many others
	Entries   int    // cached sessions
	Unknowns  int    // cached unknown credentials
}

// NewSessions returns sessions with empty caches. Run keeps them in step with the
// store.
func NewSessions(o SessionOptions) *Sessions {
	s := &Sessions{
		opts: o, base: time.Now(), seed: maphash.MakeSeed(), second: maphash.MakeSeed(),
		entries: cache.New[uint64, *entry](cache.Options{Entries: o.Size}),
		unknown: cache.New[uint64, unknownKey](cache.Options{Entries: o.UnknownSize}),
		calls:   make(map[string]*call),
	}
	for i := range s.lanes {
		s.lanes[i] = make(chan struct{}, lookupsAtOnce)
	}
	return s
}

// rewatch is how long Run waits before it watches the store again after an error.
const rewatch = time.Second

// sweepEvery is how often entries that are too old or have changed are removed, and sweepShare the
// share of a CPU that this may take.
const (
	sweepEvery = 30 * time.Second
	sweepShare = 0.2
)

// Run watches the store for changes and removes sessions that are too old, until ctx
// ends.
func (s *Sessions) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() { s.sweepUntil(ctx); close(done) }()
	for ctx.Err() == nil {
		err := s.opts.Store.Watch(ctx, s.changed)
		s.changed("") // changes before the next watch begins are missed
		if ctx.Err() == nil {
			s.opts.Log.Warn("watching the key store ended, trying again", "err", err)
			_ = sleep.For(ctx, rewatch)
		}
	}
	<-done
}

func (s *Sessions) sweepUntil(ctx context.Context) {
	rests := pace.New(sweepShare)
	for sleep.For(ctx, sweepEvery) == nil {
		oldest := time.Since(s.base) - s.opts.TTL - s.opts.StaleTTL
		rests.Begin()
		s.entries.DeleteFunc(func(_ uint64, e *entry) bool {
			return e.loaded < oldest || e.stamp.slot != s.changes.stamp(e.slot).slot
		}, func() { _ = rests.Step(ctx) })
	}
}

// changed records that a session was written or deleted; "" means that any may have
// been.
func (s *Sessions) changed(identity string) {
	if s.opts.Changed != nil {
		defer s.opts.Changed()
	}
	if identity == "" {
		s.changes.all.Add(1)
		return
	}
	// A store that reports a write is not away. This comes first because the next
	// request for the key has to ask the store.
	s.reached()
	s.changes.slots[s.slotOf(identity)].Add(1)
}

// Stamp returns a number that differs once the session of an identity may have
// changed.
func (a *Auth) Stamp(identity string) uint64 {
	at := a.sessions.changes.stamp(a.sessions.slotOf(identity))
	return uint64(at.all)<<32 | uint64(at.slot)
}

// Stats returns current numbers.
func (s *Sessions) Stats() Stats {
	st := Stats{
		Misses: s.stats.misses.Load(), Unknown: s.stats.unknown.Load(), Malformed: s.stats.malformed.Load(),
		Stale: s.stats.stale.Load(), Busy: s.stats.busy.Load(),
		Entries: s.entries.Len(), Unknowns: s.unknown.Len(),
	}
	for i := range s.hits {
		st.Hits += s.hits[i].Load()
	}
	return st
}

// scope is what credentials are looked up in: a custom key may name one session in
// one organisation and another in another.
type scope struct {
	org  string
	salt uint64
	kind definition.CredentialKind // of the sessions that are found
}

// scope returns a scope for credentials of a kind.
func (s *Sessions) scope(k definition.CredentialKind, org string) scope {
	return scope{org: org, salt: maphash.String(s.seed, k.String()+":"+org), kind: k}
}

// find returns the session of a credential. The error is keystore.ErrNotFound if
// there is none; any other means that it is unknown whether there is. A cached
// answer, known or unknown, does not allocate.
func (s *Sessions) find(sc *scope, token []byte, at time.Time) (*entry, error) {
	now := at.Sub(s.base)
	hash := s.hashOf(sc, token)
	old := s.get(hash, token, sc)
	if old != nil && s.isFresh(old, now) {
		s.hits[hash%hitCounters].Add(1)
		return old, nil
	}
	usable := old != nil && s.isUsable(old, now)
	if usable && (s.away.isOpen(now) || s.opts.MayServe != nil && s.opts.MayServe(s.base.Add(old.loaded))) {
		s.stats.stale.Add(1)
		return old, nil
	}
	e, err := s.miss(&wanted{scope: sc, token: token, hash: hash, now: now})
	if err != nil && usable && !errors.Is(err, keystore.ErrNotFound) {
		s.stats.stale.Add(1)
		return old, nil
	}
	return e, err
}

// hashOf returns the hash of a credential in the caches.
func (s *Sessions) hashOf(sc *scope, token []byte) uint64 {
	return maphash.Bytes(s.seed, token) ^ sc.salt
}

// isFresh reports whether e may be used without asking the store.
func (s *Sessions) isFresh(e *entry, now time.Duration) bool {
	return now-e.loaded < s.opts.TTL && e.stamp == s.changes.stamp(e.slot)
}

// isUsable reports whether e may be used while the store is away. A session that is
// known to have changed may not.
func (s *Sessions) isUsable(e *entry, now time.Duration) bool {
	return now-e.loaded < s.opts.TTL+s.opts.StaleTTL && e.stamp.slot == s.changes.stamp(e.slot).slot
}

// wanted is a credential to look up.
type wanted struct {
	*scope
	token []byte
	hash  uint64
	now   time.Duration
	named bool // by its identity; the credential is unknown
}

// miss finds a credential that is not cached, or not fresh.
func (s *Sessions) miss(w *wanted) (*entry, error) {
	if !credential.Check(s.opts.Hasher.Prefix, w.token) {
		s.stats.malformed.Add(1)
		return nil, keystore.ErrNotFound
	}
	check := maphash.Bytes(s.second, w.token) ^ w.salt
	if s.isUnknown(w.hash, check, w.now) {
		return nil, keystore.ErrNotFound
	}
	return s.join(w, check)
}
