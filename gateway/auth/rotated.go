package auth

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// found is what the store has under the hash of a credential, and the epoch that
// was current before it was read.
type found struct {
	hash    string
	session *definition.Session
	mark    mark
}

// owned makes the entry of a credential of what was found under its hash: the
// session, or, of a key that followed another, whose it is. The session decides
// on all of its keys, and the entry is of its epoch alone: a change of it is a
// change of each of them. seen is where the look-up has been.
func (s *Sessions) owned(ctx context.Context, w *wanted, f found, seen trail) (*entry, trail, error) {
	hash, ends := f.hash, f.session.Expires
	if identity := f.session.SuccessorOf(); identity != "" {
		slot := s.slotOf(identity)
		m := s.epochs.mark(slot)
		seen.add(slot, m)
		session, err := s.opts.Store.Get(ctx, identity)
		if err != nil {
			return nil, seen, fmt.Errorf("looking up the session of a key: %w", err)
		}
		if kindOf(session) == ofUser || !w.kind.finds(session) { // perhaps a user's by now, who has no keys
			return nil, seen, keystore.ErrNotFound
		}
		f = found{identity, session, m}
	}
	key, ok := w.keyOf(f, hash, ends)
	if !ok {
		return nil, seen, keystore.ErrNotFound
	}
	rely := trail{}
	rely.add(s.slotOf(f.hash), f.mark)
	e := s.newEntry(w, f.hash, ending(f.session, key), f.mark)
	if key.Retires > 0 && w.kind != ofClient {
		e.flags.Or(isRetiring)
	}
	return e, rely, nil
}

// keyOf returns the key of that hash among those of a session. An OAuth client has
// so many tokens that they are not listed: each says itself when it ends, and is
// gone once it is revoked, with a change of the client's session.
func (w *wanted) keyOf(owner found, hash string, ends int64) (definition.Credential, bool) {
	if owner.session.OAuthClient() == "" {
		return owner.session.Credential(owner.hash, hash)
	}
	return definition.Credential{Hash: hash, Retires: ends}, hash != owner.hash || w.named
}

// ending returns the session as it is for one of its keys: it ends with that.
func ending(session *definition.Session, key definition.Credential) *definition.Session {
	if key.Retires == 0 || session.Expires > 0 && session.Expires <= key.Retires {
		return session
	}
	own := session.Clone()
	own.Expires = key.Retires
	return own
}
