package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// lookupsAtOnce is how many credentials of a lane are looked up in the store at a
// time. It bounds the load that a flood of made-up credentials puts on the store:
// the others wait their turn, and fail after a while. Credentials whose checksum
// shows that they were issued here have a lane of their own, so that such a flood
// does not delay the first request of a new key.
const lookupsAtOnce = 64

// The lanes.
const (
	issuedLane = iota
	otherLane
)

// attempts is how often a session is read if it changes while it is read.
const attempts = 3

var errBusy = fmt.Errorf("%w: too many look-ups at once", keystore.ErrUnavailable)

// call is a single-flight look-up: several requests wait for it.
type call struct {
	done  chan struct{}
	entry *entry
	err   error
	seen  trail // what the outcome depends on
}

// isCurrent reports whether nothing has changed that the outcome depends on. That
// the store is away depends on nothing.
func (c *call) isCurrent(changes *invalidations) bool {
	failed := c.err != nil && !errors.Is(c.err, keystore.ErrNotFound)
	return failed || changes.hold(&c.seen)
}

// join looks a credential up, once for all requests that need it now. A request that
// came late may follow a change that the look-up missed: it looks again.
func (s *Sessions) join(w *wanted, check uint64) (*entry, error) {
	key := w.name()
	for attempt := 1; ; attempt++ {
		s.mu.Lock()
		c := s.calls[key]
		if c == nil {
			break
		}
		s.mu.Unlock()
		<-c.done
		if attempt == attempts || c.isCurrent(&s.changes) {
			return c.entry, c.err
		}
	}
	c := &call{done: make(chan struct{}), err: keystore.ErrUnavailable}
	s.calls[key] = c
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.calls, key)
		s.mu.Unlock()
		close(c.done)
	}()
	c.entry, c.seen, c.err = s.load(w)
	if c.isCurrent(&s.changes) {
		s.keep(w, c, check)
	}
	return c.entry, c.err
}

// name identifies a credential that is looked up.
func (w *wanted) name() string {
	return w.org + string([]byte{0, byte(w.kind)}) + string(w.token)
}

// load looks a credential up, again if it changes meanwhile.
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
		e, seen, err := s.query(ctx, w)
		if attempt == attempts || err != nil && !errors.Is(err, keystore.ErrNotFound) || s.changes.hold(&seen) {
			s.note(w, err)
			return e, seen, err
		}
	}
}

// laneOf returns the lane of a credential.
func (s *Sessions) laneOf(token []byte) chan struct{} {
	if credential.HasPrefix(s.opts.Hasher.Prefix, token) { // its checksum was verified before
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

// query tries every identity of a credential. The error is keystore.ErrNotFound if
// the store has none of them.
func (s *Sessions) query(ctx context.Context, w *wanted) (*entry, trail, error) {
	var seen trail
	for i := range maxCandidates {
		text, ok := s.candidate(w, i)
		if !ok {
			break
		}
		identity := string(text)
		if credential.IsOrg(identity) { // a key in clear after an organisation of that name
			continue
		}
		slot := s.slotOf(identity)
		at := s.changes.stamp(slot)
		seen.add(slot, at)
		session, err := s.opts.Store.Get(ctx, identity)
		switch {
		case err == nil && session.SuccessorOf() == "" && w.kind != session.CredentialKind():
			// A name alone is no credential, and a key is no name.
		case err == nil:
			e, seen, err := s.owned(ctx, w, found{identity, session, at}, seen)
			if err == nil && i > 0 {
				s.noteLegacy(w, identity, i)
			}
			return e, seen, err
		case !errors.Is(err, keystore.ErrNotFound):
			return nil, seen, fmt.Errorf("looking up a key: %w", err)
		}
	}
	return nil, seen, keystore.ErrNotFound
}

// noteLegacy reports a key that was found under a legacy hash.
func (s *Sessions) noteLegacy(w *wanted, identity string, i int) {
	if s.opts.Legacy != nil && w.kind == definition.KeyCredential && s.opts.Hasher.Algorithm != credential.None && credential.IsLegacy(identity) {
		s.opts.Legacy(identity, s.opts.Hasher.Strong(w.token, w.org, i))
	}
}

// candidate returns the i-th identity under which a session may be stored.
func (s *Sessions) candidate(w *wanted, i int) ([]byte, bool) {
	if w.kind == definition.UserCredential {
		return s.opts.Hasher.UserCandidate(nil, w.token, w.org, i)
	}
	return s.opts.Hasher.Candidate(nil, w.token, w.org, i)
}

func (s *Sessions) newEntry(w *wanted, identity string, session *definition.Session, at stamp) *entry {
	e := &entry{
		scope: w.scope, length: uint16(len(w.token)),
		loaded: w.now, stamp: at, slot: s.slotOf(identity),
	}
	e.setSession(session)
	name := ""
	if shown := s.opts.Hasher.Shown(identity); shown != identity {
		e.flags |= isSecret
		name = shown[:nameLength]
	}
	e.text = identity + name + string(w.token)
	return e
}

// found is what the store has under the hash of a credential, and the stamp from
// before it was read.
type found struct {
	hash    string
	session *definition.Session
	stamp   stamp
}

// owned returns the entry of a credential from what was found under its hash: the
// session, or for a key that replaced another, a reference to the session. The entry
// has the stamp of the session alone, as a change of that changes all of its keys.
// seen is the trail of the look-up.
func (s *Sessions) owned(ctx context.Context, w *wanted, f found, seen trail) (*entry, trail, error) {
	hash, ends := f.hash, f.session.Expires
	if identity := f.session.SuccessorOf(); identity != "" {
		slot := s.slotOf(identity)
		at := s.changes.stamp(slot)
		seen.add(slot, at)
		session, err := s.opts.Store.Get(ctx, identity)
		if err != nil {
			return nil, seen, fmt.Errorf("looking up the session of a key: %w", err)
		}
		if session.CredentialKind() == definition.UserCredential || w.kind != session.CredentialKind() { // it may have become a user's, which has no keys
			return nil, seen, keystore.ErrNotFound
		}
		f = found{identity, session, at}
	}
	key, ok := w.keyOf(f, hash, ends)
	if !ok {
		return nil, seen, keystore.ErrNotFound
	}
	depends := trail{}
	depends.add(s.slotOf(f.hash), f.stamp)
	e := s.newEntry(w, f.hash, ending(f.session, key), f.stamp)
	if key.Retires > 0 && w.kind != definition.ClientCredential {
		e.flags |= isInGrace
	}
	return e, depends, nil
}

// keyOf returns the key with that hash among those of a session. The tokens of an
// OAuth client are too many to be listed: each has its own expiry, and is deleted
// when it is revoked, together with a change of the client's session.
func (w *wanted) keyOf(owner found, hash string, ends int64) (definition.Credential, bool) {
	if owner.session.OAuthClient() == "" {
		return owner.session.Credential(owner.hash, hash)
	}
	return definition.Credential{Hash: hash, Retires: ends}, hash != owner.hash || w.named
}

// ending returns the session for one of its keys: it expires with the key.
func ending(session *definition.Session, key definition.Credential) *definition.Session {
	if key.Retires == 0 || session.Expires > 0 && session.Expires <= key.Retires {
		return session
	}
	own := session.Clone()
	own.Expires = key.Retires
	return own
}
