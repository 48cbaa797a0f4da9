package auth

import (
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/pace"
)

// SessionOptions says how sessions are found and kept.
type SessionOptions struct {
	Store  keystore.Store
	Hasher *credential.Hasher
	Log    *slog.Logger

	Size     int           // sessions in memory
	Ready    int           // of them, those that are ready for requests, while the others are packed; 0: 65,536
	TTL      time.Duration // how long one is used before the store is asked again
	StaleTTL time.Duration // how much longer it is used while the store is away

	UnknownSize int           // unknown credentials that are remembered
	UnknownTTL  time.Duration // how long one is refused without asking the store; 0: not at all

	Timeout time.Duration // for one look-up in the store, and as long again to wait for its turn

	Changed func() // is told, without waiting, that sessions may have changed; nil: nobody is
}

// Sessions finds the sessions of credentials, for all APIs: in memory, or in the
// store. It is safe for concurrent use.
//
// It is found by a keyed hash of the credential, confirmed by comparing all of
// it; only what is not in memory pays for the hash that the store knows it by.
// What the store reports as changed is asked for again. A store that is away
// leaves the sessions in memory valid for a while. Of very many sessions only
// some are objects that a collection of garbage has to look through; the others
// are packed, and made ready when a request comes.
type Sessions struct {
	opts   SessionOptions
	base   time.Time // times are kept as distances from here
	seed   maphash.Seed
	second maphash.Seed // of the second half of what an unknown credential is remembered by
	shards []shard      // a power of two
	epochs epochs
	lanes  [2]chan struct{}
	away   breaker

	lastLog atomic.Int64 // when a key that cannot be looked up was last logged, in seconds since base, from 1
	stats   struct{ misses, malformed, stale, busy atomic.Uint64 }
}

// Stats is what Sessions did and holds.
type Stats struct {
	Hits      uint64 // found in memory
	Unpacked  uint64 // found in memory, and packed
	Misses    uint64 // looked up in the store
	Unknown   uint64 // refused from memory
	Malformed uint64 // refused by their checksum
	Stale     uint64 // served past their age while the store was away
	Busy      uint64 // not looked up in time, since too many others were
	Entries   int    // sessions in memory
	Unknowns  int    // unknown credentials in memory
}

// NewSessions returns sessions of which none is in memory. Run keeps them in
// step with the store.
func NewSessions(o SessionOptions) *Sessions {
	if o.Ready == 0 {
		o.Ready = readySessions
	}
	s := &Sessions{opts: o, base: time.Now(), seed: maphash.MakeSeed(), second: maphash.MakeSeed()}
	s.shards = newShards(&o)
	for i := range s.lanes {
		s.lanes[i] = make(chan struct{}, lookupsAtOnce)
	}
	return s
}

// rewatch is how long Run waits before it watches the store again after that
// ended in an error.
const rewatch = time.Second

// sweepEvery is how often entries are looked for that nobody may use any more, and
// sweepShare the share of a processor that this may take: there may be a million.
const (
	sweepEvery = 30 * time.Second
	sweepShare = 0.2
)

// Run watches the store for changes and forgets sessions that are too old to be
// used, until ctx ends.
func (s *Sessions) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() { s.sweepUntil(ctx); close(done) }()
	for ctx.Err() == nil {
		err := s.opts.Store.Watch(ctx, s.changed)
		s.changed("") // what happens until the next watch begins is missed
		if ctx.Err() == nil {
			s.opts.Log.Warn("watching the key store ended, trying again", "err", err)
			pause(ctx, rewatch)
		}
	}
	<-done
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *Sessions) sweepUntil(ctx context.Context) {
	rests := pace.New(sweepShare)
	for pause(ctx, sweepEvery); ctx.Err() == nil; pause(ctx, sweepEvery) {
		oldest := time.Since(s.base) - s.opts.TTL - s.opts.StaleTTL
		if err := pace.Each(ctx, rests, len(s.shards), func(i int) { s.shards[i].sweep(oldest) }); err != nil {
			return
		}
	}
}

// changed takes note that a session was written or deleted; "" says that some
// may have been.
func (s *Sessions) changed(identity string) {
	if s.opts.Changed != nil {
		defer s.opts.Changed()
	}
	if identity == "" {
		s.epochs.all.Add(1)
		return
	}
	// The store tells of a write: it is there. First, because what is in memory
	// of the key is of no use from then on, and the next request has to ask.
	s.reached()
	s.epochs.slots[s.slotOf(identity)].Add(1)
}

// Mark returns a number that is another one once the session of an identity may
// have changed.
func (a *Auth) Mark(identity string) uint64 {
	m := a.sessions.epochs.mark(a.sessions.slotOf(identity))
	return uint64(m.all)<<32 | uint64(m.slot)
}

// Stats returns current numbers.
func (s *Sessions) Stats() Stats {
	st := Stats{
		Misses: s.stats.misses.Load(), Malformed: s.stats.malformed.Load(),
		Stale: s.stats.stale.Load(), Busy: s.stats.busy.Load(),
	}
	for i := range s.shards {
		s.shards[i].addTo(&st)
	}
	return st
}

// scope is the organisation in whose name credentials are looked up: one that
// was named by hand may be another key in another organisation.
type scope struct {
	org  string
	salt uint64
	kind kind // of the sessions that are found
}

// scopeOf returns a scope for keys.
func (s *Sessions) scopeOf(org string) scope { return s.scopeFor(ofKey, org) }

// scopeFor returns a scope for credentials of a kind.
func (s *Sessions) scopeFor(k kind, org string) scope {
	return scope{org: org, salt: maphash.String(s.seed, scopeNames[k]+org), kind: k}
}

// find returns the session of a credential. The error is keystore.ErrNotFound
// when there is none; any other says that this is not known. What it finds in
// memory, known or unknown, costs no allocation, unless host is nil or the session
// is one of those that are to be ready from now on. Else it may be of use until
// host is released, and no longer.
func (s *Sessions) find(sc *scope, token []byte, at time.Time, host *pipeline.Exchange) (*entry, error) {
	now := at.Sub(s.base)
	hash := s.hashOf(sc, token)
	sh := s.shardOf(hash)
	old := sh.get(hash, token, sc, host)
	if old != nil && s.isFresh(old, now) {
		sh.hits.Add(1)
		return old, nil
	}
	usable := old != nil && s.isUsable(old, now)
	if usable && s.away.isOpen(now) {
		s.stats.stale.Add(1)
		return old, nil
	}
	e, err := s.miss(sh, &wanted{scope: sc, token: token, hash: hash, now: now})
	if err != nil && usable && !errors.Is(err, keystore.ErrNotFound) {
		s.stats.stale.Add(1)
		return old, nil
	}
	return e, err
}

// hashOf is what a credential is found by in memory.
func (s *Sessions) hashOf(sc *scope, token []byte) uint64 {
	return maphash.Bytes(s.seed, token) ^ sc.salt
}

func (s *Sessions) shardOf(hash uint64) *shard {
	return &s.shards[hash>>32&uint64(len(s.shards)-1)]
}

// isFresh tells whether e may be used without asking the store.
func (s *Sessions) isFresh(e *entry, now time.Duration) bool {
	return now-e.loaded < s.opts.TTL && e.mark == s.epochs.mark(e.slot)
}

// isUsable tells whether e may be used when the store cannot be asked. A session
// that is known to have changed may not.
func (s *Sessions) isUsable(e *entry, now time.Duration) bool {
	return now-e.loaded < s.opts.TTL+s.opts.StaleTTL && e.mark.slot == s.epochs.mark(e.slot).slot
}

// wanted is one credential that is not in memory.
type wanted struct {
	*scope
	token []byte
	hash  uint64
	now   time.Duration
	named bool // by the identity, in place of the credential, which is not known
}

// miss finds a credential that is not in memory, or not fresh.
func (s *Sessions) miss(sh *shard, w *wanted) (*entry, error) {
	if !credential.Check(s.opts.Hasher.Prefix, w.token) {
		s.stats.malformed.Add(1)
		return nil, keystore.ErrNotFound
	}
	check := maphash.Bytes(s.second, w.token) ^ w.salt
	if sh.isUnknown(&s.epochs, w.hash, check, w.now) {
		return nil, keystore.ErrNotFound
	}
	return s.join(sh, w, check)
}
