package keys

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
)

// A key that is rotated has a successor: both have one session, which stays under the
// hash of the first key. That hash is the identity of all of them, in the names of
// their counters and in logs. The session lists its keys and when each expires; the
// record under the hash of a further key only names the identity. One write of the
// session therefore changes all of its keys, and a crash before that write leaves them
// unchanged.

const (
	// MaxGrace is the longest time for which a key stays valid after it was rotated.
	MaxGrace = 366 * 24 * time.Hour

	// maxKeys is how many keys of a session may be valid at once.
	maxKeys = 10
)

// Rotate creates the successor of a key, and returns it and the identity that both
// have. The keys before it stay valid for the grace period, or until they expire if
// that is earlier.
func (k *Service) Rotate(ctx context.Context, ref Ref, grace time.Duration) (Issued, error) {
	old, identity, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	switch {
	case old.HasPassword():
		return Issued{}, &RotationError{Reason: "a user has no key that could be replaced; change the password instead"}
	case old.OAuthClient() != "":
		return Issued{}, &RotationError{Reason: "an OAuth client has no key that could be replaced; give it another secret instead"}
	case credential.IsOrg(identity):
		return Issued{}, &RotationError{Reason: "an organisation has no key that could be replaced"}
	case grace < 0 || grace > MaxGrace:
		return Issued{}, &RotationError{Reason: fmt.Sprintf("grace must be from 0s to %s", MaxGrace)}
	}
	now := k.Now()
	left, gone := retire(keysOf(identity, old), identity, now, now.Add(grace))
	if len(left) >= maxKeys {
		return Issued{}, &RotationError{Reason: fmt.Sprintf("%d keys of it are valid still; end their grace first", len(left))}
	}
	key := credential.Generate(k.Options.Hasher.Prefix)
	hash := k.Options.Hasher.Hash(key)
	session := old.Clone()
	session.SetCredentials(append(left, definition.Credential{Hash: hash}))
	if err := k.Store.Commit(ctx, Change{Hash: identity, Session: session, Successor: hash, Gone: gone, Found: old}); err != nil {
		return Issued{}, err
	}
	return k.issued(key, identity), nil
}

// Retire ends the grace period of every key but the newest.
func (k *Service) Retire(ctx context.Context, ref Ref) (Issued, error) {
	old, identity, err := k.find(ctx, ref)
	if err != nil {
		return Issued{}, err
	}
	all := old.Credentials()
	if len(all) == 0 {
		return Issued{}, &RotationError{Reason: "the key has no successor; delete it if it is to end"}
	}
	newest := len(all) - 1
	left, gone := retire(all[:newest], identity, k.Now(), k.Now())
	session := old.Clone()
	session.SetCredentials(append(left, all[newest]))
	if err := k.Store.Commit(ctx, Change{Hash: identity, Session: session, Gone: gone, Found: old}); err != nil {
		return Issued{}, err
	}
	return k.named(ref, identity), nil
}

// retire makes keys expire at a time, unless they expire earlier. Expired keys are
// removed, except for the first: the session is stored under its hash, and has to
// record that it is not valid.
func retire(all []definition.Credential, identity string, now, end time.Time) (left []definition.Credential, gone []string) {
	for _, c := range all {
		if c.Retires == 0 || c.Retires > end.Unix() {
			c.Retires = end.Unix()
		}
		if c.Retires <= now.Unix() && c.Hash != identity {
			gone = append(gone, c.Hash)
			continue
		}
		left = append(left, c)
	}
	return left, gone
}

// keysOf returns the keys of a session, the newest last.
func keysOf(identity string, s *definition.Session) []definition.Credential {
	if all := s.Credentials(); all != nil {
		return all
	}
	return []definition.Credential{{Hash: identity}}
}

// further returns the hashes of a session's keys other than the one under which it is
// stored.
func further(identity string, s *definition.Session) (hashes []string) {
	for _, c := range s.Credentials() {
		if c.Hash != identity {
			hashes = append(hashes, c.Hash)
		}
	}
	return hashes
}

// owner returns the session that was found under a hash, and its identity: the record
// under the hash of a further key refers to another hash. err is the error of the
// look-up.
func (k *Service) owner(ctx context.Context, found *definition.Session, hash string, err error) (*definition.Session, string, error) {
	if err != nil || found.SuccessorOf() == "" {
		return found, hash, err
	}
	identity := found.SuccessorOf()
	owner, err := k.Store.Get(ctx, identity)
	if err != nil {
		return nil, "", err
	}
	if _, ok := owner.Credential(identity, hash); !ok {
		return nil, "", ErrNotFound
	}
	return owner, identity, nil
}
