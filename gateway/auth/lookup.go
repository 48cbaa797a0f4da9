package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// lookupsAtOnce is how many credentials of a lane are looked up in the store at
// once. It bounds what a flood of different credentials that nobody ever issued
// can ask of the store: the others wait their turn, first come first served, and
// are told after a while that keys cannot be checked. Credentials whose checksum
// shows that they were issued here have a lane of their own, so that such a
// flood does not even delay the first request of a new key.
const lookupsAtOnce = 64

// The lanes.
const (
	issuedLane = iota
	otherLane
)

// attempts is how often a session is read that changes while it is read.
const attempts = 3

var errBusy = fmt.Errorf("%w: too many look-ups at once", keystore.ErrUnavailable)

// flight is a look-up that several requests wait for.
type flight struct {
	done  chan struct{}
	entry *entry
	err   error
	seen  trail // what entry, or that there is none, relies on
}

// isCurrent tells whether nothing has changed that the outcome relies on. That
// the store could not be asked relies on nothing.
func (f *flight) isCurrent(e *epochs) bool {
	failed := f.err != nil && !errors.Is(f.err, keystore.ErrNotFound)
	return failed || f.seen.holds(e)
}

// join looks a credential up, once for all requests that want it now. A request
// that came when the look-up was almost over may know of a change that this one
// missed: it looks again.
func (s *Sessions) join(sh *shard, w *wanted, check uint64) (*entry, error) {
	key := w.name()
	for attempt := 1; ; attempt++ {
		sh.mu.Lock()
		f := sh.flights[key]
		if f == nil {
			break
		}
		sh.mu.Unlock()
		<-f.done
		if attempt == attempts || f.isCurrent(&s.epochs) {
			return f.entry, f.err
		}
	}
	f := &flight{done: make(chan struct{}), err: keystore.ErrUnavailable}
	sh.flights[key] = f
	sh.mu.Unlock()
	defer func() {
		sh.mu.Lock()
		delete(sh.flights, key)
		sh.mu.Unlock()
		close(f.done)
	}()
	f.entry, f.seen, f.err = s.load(w)
	if f.isCurrent(&s.epochs) {
		s.remember(sh, w, f, check)
	}
	return f.entry, f.err
}

// name tells one credential that is looked up from all others.
func (w *wanted) name() string {
	return w.org + string([]byte{0, byte(w.kind)}) + string(w.token)
}

// load looks a credential up, again when it changes meanwhile.
func (s *Sessions) load(w *wanted) (*entry, trail, error) {
	if !s.away.mayTry(w.now) {
		return nil, trail{}, keystore.ErrUnavailable
	}
	lane := s.laneOf(w.token)
	if err := s.enter(lane); err != nil {
		return nil, trail{}, err
	}
	defer func() { <-lane }()
	s.stats.misses.Add(1)
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		e, seen, err := s.ask(ctx, w)
		if attempt == attempts || err != nil && !errors.Is(err, keystore.ErrNotFound) || seen.holds(&s.epochs) {
			s.settle(w, err)
			return e, seen, err
		}
	}
}

// laneOf returns the lane of a credential.
func (s *Sessions) laneOf(token []byte) chan struct{} {
	if credential.HasPrefix(s.opts.Hasher.Prefix, token) { // its checksum is right, or it would not come here
		return s.lanes[issuedLane]
	}
	return s.lanes[otherLane]
}

// enter waits for a turn in a lane.
func (s *Sessions) enter(lane chan struct{}) error {
	select {
	case lane <- struct{}{}:
		return nil
	default:
	}
	timeout := time.NewTimer(s.opts.Timeout)
	defer timeout.Stop()
	select {
	case lane <- struct{}{}:
		return nil
	case <-timeout.C:
		s.stats.busy.Add(1)
		return errBusy
	}
}

// ask tries every identity of a credential. With keystore.ErrNotFound all of
// them are absent.
func (s *Sessions) ask(ctx context.Context, w *wanted) (*entry, trail, error) {
	var seen trail
	for i := range maxCandidates {
		text, ok := s.candidate(w, i)
		if !ok {
			break
		}
		identity := string(text)
		if credential.IsOrg(identity) { // a key in clear, put behind an organisation of a like name
			continue
		}
		slot := s.slotOf(identity)
		m := s.epochs.mark(slot)
		seen.add(slot, m)
		session, err := s.opts.Store.Get(ctx, identity)
		switch {
		case err == nil && session.SuccessorOf() == "" && !w.kind.finds(session):
			// A name opens nothing by itself, and a key is no name.
		case err == nil:
			return s.owned(ctx, w, found{identity, session, m}, seen)
		case !errors.Is(err, keystore.ErrNotFound):
			return nil, seen, fmt.Errorf("looking up a key: %w", err)
		}
	}
	return nil, seen, keystore.ErrNotFound
}

// candidate returns the i-th identity under which a session may be stored.
func (s *Sessions) candidate(w *wanted, i int) ([]byte, bool) {
	if w.kind == ofUser {
		return s.opts.Hasher.UserCandidate(nil, w.token, w.org, i)
	}
	return s.opts.Hasher.Candidate(nil, w.token, w.org, i)
}

func (s *Sessions) newEntry(w *wanted, identity string, session *definition.Session, m mark) *entry {
	e := &entry{
		scope: w.scope, length: uint16(len(w.token)),
		loaded: w.now, mark: m, slot: s.slotOf(identity),
	}
	e.hold(session)
	name := ""
	if s.opts.Hasher.Algorithm == credential.None {
		e.flags.Or(isClear)
		name = nameOfClear(identity)
	}
	e.text = identity + name + string(w.token)
	return e
}

// nameOfClear returns what logs call a key that is stored in clear.
func nameOfClear(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:nameLength/2])
}

// remember keeps what a look-up found, or that it found nothing.
func (s *Sessions) remember(sh *shard, w *wanted, f *flight, check uint64) {
	switch {
	case f.entry != nil:
		sh.put(w.hash, f.entry)
	case errors.Is(f.err, keystore.ErrNotFound):
		sh.forget(w.hash)
		if s.opts.UnknownTTL > 0 {
			sh.markUnknown(w.hash, unknownKey{check: check, until: w.now + s.opts.UnknownTTL, seen: f.seen})
		}
	}
}
