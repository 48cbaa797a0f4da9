package jwks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The errors of Find.
var (
	ErrUnknownKey  = errors.New("the issuer has no such key")
	ErrUnavailable = errors.New("the issuer's keys are not available at the moment")
)

// A Set is the cached key set at one URL. It is safe for concurrent use.
type Set struct {
	url   string
	sets  *Sets
	state atomic.Pointer[state]

	mu     sync.Mutex
	call   *call     // the fetch in progress, or nil
	tried  time.Time // when the last fetch began
	failed error     // its error
}

// state is the keys of an issuer.
type state struct {
	keys       *Keys
	generation uint64    // differs for different keys
	confirmed  time.Time // when they were last fetched
}

// call is a single-flight fetch: several callers wait for it.
type call struct {
	done chan struct{}
	err  error
}

// Generation returns a number that changes when the keys do, so that tokens have to be
// verified again. It is 0 before the first fetch.
func (s *Set) Generation() uint64 {
	if st := s.state.Load(); st != nil {
		return st.generation
	}
	return 0
}

// Find returns the keys to try for a token with a key id, or "". It fetches the set if
// it was not fetched yet, and if the id is unknown, as after an issuer has changed its
// keys, but at most once every Options.Retry. The error is ErrUnknownKey or wraps
// ErrUnavailable.
func (s *Set) Find(id string) ([]Key, error) {
	st := s.usable()
	if st != nil {
		if keys := st.keys.Of(id); len(keys) > 0 {
			return keys, nil
		}
	}
	err := s.fetch(false)
	if st = s.usable(); st != nil {
		if keys := st.keys.Of(id); len(keys) > 0 {
			return keys, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil, ErrUnknownKey
}

// usable returns the current state unless it is too old.
func (s *Set) usable() *state {
	st := s.state.Load()
	if st == nil || s.sets.now().Sub(st.confirmed) > s.sets.opts.Stale {
		return nil
	}
	return st
}

// fetch fetches the set, or waits for the fetch in progress. Unless forced it returns the
// outcome of the last fetch if that was less than Options.Retry ago.
func (s *Set) fetch(force bool) error {
	s.mu.Lock()
	if f := s.call; f != nil {
		s.mu.Unlock()
		<-f.done
		return f.err
	}
	now := s.sets.now()
	if !force && !s.tried.IsZero() && now.Sub(s.tried) < s.sets.opts.Retry {
		defer s.mu.Unlock()
		return s.failed
	}
	f := &call{done: make(chan struct{}), err: errors.New("the fetch panicked")}
	s.call, s.tried = f, now
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.call, s.failed = nil, f.err
		s.mu.Unlock()
		close(f.done)
	}()
	f.err = s.update(now)
	return f.err
}

// update fetches the keys and replaces the current ones.
func (s *Set) update(now time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.sets.opts.Timeout)
	defer cancel()
	keys, err := s.sets.get(ctx, s.url)
	if err != nil {
		s.sets.opts.Log.Warn("keys of a token issuer cannot be fetched", "url", s.url, "err", err)
		s.expire()
		return err
	}
	next := &state{keys: keys, generation: 1, confirmed: now}
	if old := s.state.Load(); old != nil {
		next.generation = old.generation
		if !keys.equal(old.keys) {
			next.generation++
		}
	}
	s.state.Store(next)
	return nil
}

// expire removes keys that are too old, which also invalidates the tokens that were
// verified with them.
func (s *Set) expire() {
	if old := s.state.Load(); old != nil && len(old.keys.all) > 0 && s.usable() == nil {
		s.state.Store(&state{keys: NewKeys(), generation: old.generation + 1, confirmed: old.confirmed})
	}
}
