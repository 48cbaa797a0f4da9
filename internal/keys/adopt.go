package keys

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
)

// Adopt stores s as the session of a key of which only the hash is known, such as one
// that another gateway created. It does not change s. An existing key is updated and
// keeps its used quota.
func (k *Service) Adopt(ctx context.Context, hash string, s *definition.Session) (Issued, error) {
	if err := checkHash(hash); err != nil {
		return Issued{}, err
	}
	hash, err := k.Identity(ctx, hash)
	if err != nil {
		return Issued{}, err
	}
	_, err = k.Store.Get(ctx, hash)
	if err == nil {
		return k.Update(ctx, Ref{ID: hash, Hashed: true, Org: s.OrgID}, s, true)
	}
	if !isAbsent(err) {
		return Issued{}, err
	}
	if a, legacy := credential.LegacyOf(hash); legacy && !slices.Contains(k.Options.Hasher.Legacy, a) {
		return Issued{}, &CustomError{Reason: fmt.Sprintf("is a %s hash, which opens nothing here: list %s in keys.legacy_hashes for as long as such keys are in use, or make the key anew", a, a)}
	}
	session, _, err := k.accept(s, nil)
	if err == nil {
		err = checkClient(session, new(definition.Session))
	}
	if err != nil {
		return Issued{}, err
	}
	session.SetCredentials(nil) // a caller cannot choose the credentials of a session
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

// checkHash refuses a hash that no key can have.
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
