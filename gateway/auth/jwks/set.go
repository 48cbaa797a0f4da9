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
	ErrUnavailable = errors.New("the issuer's keys cannot be had at the moment")
)

// A Set is what an issuer publishes at one address, kept at hand. It is safe for
// concurrent use.
type Set struct {
	url   string
	sets  *Sets
	state atomic.Pointer[state]

	mu     sync.Mutex
	flight *flight   // nil: nobody fetches
	tried  time.Time // when the last fetch began
	failed error     // how it ended
}

// state is what is known of an issuer's keys.
type state struct {
	keys       *Keys
	generation uint64    // another one for other keys
	confirmed  time.Time // when the issuer last said so
}

type flight struct {
	done chan struct{}
	err  error
}

// Generation changes when the keys do: what was verified before may not stand
// any more. It is 0 as long as none are known.
func (s *Set) Generation() uint64 {
	if st := s.state.Load(); st != nil {
		return st.generation
	}
	return 0
}

// Find returns the keys to try for a token with a key id, or without one. It
// fetches the set when nothing is known yet, and when the id is not known, as
// after an issuer has changed its keys, but not more often than every
// Options.Retry. The errors are ErrUnknownKey and ErrUnavailable.
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

// usable returns what is known, unless that is too old to be believed.
func (s *Set) usable() *state {
	st := s.state.Load()
	if st == nil || s.sets.now().Sub(st.confirmed) > s.sets.opts.Stale {
		return nil
	}
	return st
}

// fetch asks the issuer, or waits for whoever asks at the moment. Unless forced
// it does not ask shortly after the last time, and ends as that did.
func (s *Set) fetch(force bool) error {
	s.mu.Lock()
	if f := s.flight; f != nil {
		s.mu.Unlock()
		<-f.done
		return f.err
	}
	now := s.sets.now()
	if !force && !s.tried.IsZero() && now.Sub(s.tried) < s.sets.opts.Retry {
		defer s.mu.Unlock()
		return s.failed
	}
	f := &flight{done: make(chan struct{}), err: errors.New("fetching ended in a fault")}
	s.flight, s.tried = f, now
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flight, s.failed = nil, f.err
		s.mu.Unlock()
		close(f.done)
	}()
	f.err = s.update(now)
	return f.err
}

// update fetches the keys and puts them in force.
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

// expire forgets keys that are too old to be believed, so that what was verified
// with them does not stand either.
func (s *Set) expire() {
	if old := s.state.Load(); old != nil && len(old.keys.all) > 0 && s.usable() == nil {
		s.state.Store(&state{keys: NewKeys(), generation: old.generation + 1, confirmed: old.confirmed})
	}
}
