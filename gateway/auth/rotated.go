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
	hash := f.hash
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
	key, ok := f.session.Credential(f.hash, hash)
	if !ok {
		return nil, seen, keystore.ErrNotFound
	}
	rely := trail{}
	rely.add(s.slotOf(f.hash), f.mark)
	e := s.newEntry(w, f.hash, ending(f.session, key), f.mark)
	if key.Retires > 0 {
		e.flags.Or(isRetiring)
	}
	return e, rely, nil
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
