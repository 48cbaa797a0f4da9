package keys

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/internal/definition"
)

// Adopt makes a key of which only the hash is known, such as one that another
// gateway made, from s, which it leaves as it is. A key that there is already is
// updated, and goes on with the quota that it has.
func (k *Service) Adopt(ctx context.Context, hash string, s *definition.Session) (Issued, error) {
	if err := checkHash(hash); err != nil {
		return Issued{}, err
	}
	_, err := k.Store.Get(ctx, hash)
	if err == nil {
		return k.Update(ctx, Ref{ID: hash, Hashed: true, Org: s.OrgID}, s, true)
	}
	if !isAbsent(err) {
		return Issued{}, err
	}
	session, _, err := k.accept(s)
	if err == nil {
		err = checkClient(session, new(definition.Session))
	}
	if err != nil {
		return Issued{}, err
	}
	session.SetCredentials(nil) // whose keys these are is not for the caller to say
	if err := k.hashPassword(ctx, session); err != nil {
		return Issued{}, err
	}
	now := k.Now()
	if session.DateCreated == "" {
		session.DateCreated = now.UTC().Format(time.RFC3339)
	}
	session.LastUpdated = stampAfter("", now)
	open(session, now)
	if err := k.Store.Commit(ctx, Change{Hash: hash, Session: session, New: true}); err != nil {
		return Issued{}, err
	}
	return k.named(Ref{ID: hash, Hashed: true}, hash), nil
}

// checkHash refuses what no key can have for its hash.
func checkHash(hash string) error {
	digits := len(hash) == 8 || len(hash) == 16 || len(hash) == 32 || len(hash) == 64
	for i := range len(hash) {
		c := hash[i]
		digits = digits && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f')
	}
	if !digits {
		return &CustomError{Reason: "that is a hash must have 8, 16, 32 or 64 hexadecimal digits in lower case"}
	}
	return nil
}
