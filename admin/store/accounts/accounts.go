// Package accounts keeps developers of the portal: who they are, what they have,
// and the tokens that they show or were sent.
package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// EmailIndex is the unique index that finds a second developer of one address in
// an organisation, as *store.ConflictError names it.
const EmailIndex = "developers_email"

// Developer is a developer as stored.
type Developer = db.Developer

// History is how many passwords of a developer are remembered, the present one
// included.
const History = 5

// ByID returns an organisation's developer.
func ByID(ctx context.Context, st *store.Store, org, id string) (Developer, error) {
	d, err := st.Read().DeveloperByID(ctx, db.DeveloperByIDParams{OrgID: org, ID: id})
	return d, store.Translate(err)
}

// ByEmail returns an organisation's developer of an address, in any case.
func ByEmail(ctx context.Context, st *store.Store, org, email string) (Developer, error) {
	d, err := st.Read().DeveloperByEmail(ctx, db.DeveloperByEmailParams{OrgID: org, Email: email})
	return d, store.Translate(err)
}

// OrgIsThere tells whether there is an organisation.
func OrgIsThere(ctx context.Context, st *store.Store, id string) (bool, error) {
	there, err := st.Read().OrgIsThere(ctx, id)
	return there, store.Translate(err)
}

// Create adds a developer to the author's organisation, and fills in what the
// store decides.
func Create(ctx context.Context, tx *store.Tx, by store.Author, d *Developer) error {
	row, err := tx.InsertDeveloper(ctx, db.InsertDeveloperParams{
		ID: d.ID, OrgID: by.Org, Email: d.Email, Inactive: d.Inactive,
		PasswordHash: d.PasswordHash, PasswordHistory: remembered(d.PasswordHistory),
		PasswordMaxDays: d.PasswordMaxDays, PasswordUpdated: d.PasswordUpdated,
		VerifiedAt: d.VerifiedAt, LastLoginAt: d.LastLoginAt, Nonce: d.Nonce, SsoKey: d.SsoKey,
		Fields: d.Fields, Extra: d.Extra,
	})
	if err != nil {
		return err
	}
	*d = row
	return note(ctx, tx, by, nil, d)
}

// Update replaces what people may change of a developer, at version have or at
// any when have is 0. Change gets the developer as it is and changes it. One who
// becomes inactive, or gets another address, loses sessions and letters' tokens at
// once.
func Update(ctx context.Context, tx *store.Tx, by store.Author, ref Ref, change func(*Developer) error) (Developer, error) {
	old, err := tx.LockDeveloper(ctx, db.LockDeveloperParams{OrgID: by.Org, ID: ref.ID})
	if err != nil {
		return Developer{}, err
	}
	if ref.Version != 0 && ref.Version != old.Version {
		return Developer{}, &store.ConflictError{Kind: store.Stale, Current: old.Version}
	}
	d := old
	if err := change(&d); err != nil {
		return Developer{}, err
	}
	d, err = tx.UpdateDeveloper(ctx, db.UpdateDeveloperParams{
		OrgID: by.Org, ID: ref.ID, Email: d.Email, Inactive: d.Inactive, PasswordMaxDays: d.PasswordMaxDays,
		VerifiedAt: d.VerifiedAt, Nonce: d.Nonce, SsoKey: d.SsoKey, Fields: d.Fields, Extra: d.Extra,
	})
	if err != nil {
		return Developer{}, err
	}
	if d.Inactive || d.Email != old.Email || d.VerifiedAt == nil && old.VerifiedAt != nil {
		if err := tx.DeleteTokensOfDeveloper(ctx, d.ID); err != nil {
			return Developer{}, err
		}
	}
	return d, note(ctx, tx, by, &old, &d)
}

// A Ref names a developer as somebody saw them.
type Ref struct {
	ID      string
	Version int64 // 0: whatever it is
}

// Delete removes a developer with all that is theirs and stands in the way, but
// for keys: those are revoked before.
func Delete(ctx context.Context, tx *store.Tx, by store.Author, d *Developer) error {
	if err := tx.DeleteRequestsOfDeveloper(ctx, d.ID); err != nil {
		return err
	}
	if err := tx.DeleteDeveloper(ctx, db.DeleteDeveloperParams{OrgID: by.Org, ID: d.ID}); err != nil {
		return err
	}
	return note(ctx, tx, by, d, nil)
}

// Lock returns the author's organisation's developer, whom nobody else changes
// until the transaction ends, or store.ErrNotFound.
func Lock(ctx context.Context, tx *store.Tx, by store.Author, id string) (Developer, error) {
	d, err := tx.LockDeveloper(ctx, db.LockDeveloperParams{OrgID: by.Org, ID: id})
	return d, store.Translate(err)
}

// LockWhole is Lock for who deletes the developer with what is theirs.
func LockWhole(ctx context.Context, tx *store.Tx, by store.Author, id string) (Developer, error) {
	if _, err := tx.LockRequestsOfDeveloper(ctx, db.LockRequestsOfDeveloperParams{OrgID: by.Org, DeveloperID: id}); err != nil {
		return Developer{}, store.Translate(err)
	}
	return Lock(ctx, tx, by, id)
}

// LockByEmail is Lock by an address, in any case.
func LockByEmail(ctx context.Context, tx *store.Tx, by store.Author, email string) (Developer, error) {
	d, err := tx.LockDeveloperByEmail(ctx, db.LockDeveloperByEmailParams{OrgID: by.Org, Email: email})
	return d, store.Translate(err)
}

// SetPassword replaces a developer's password by one of which hash is kept, if it
// is still the one that d has; otherwise it returns store.ErrNotFound. All
// sessions but one end, and all letters' tokens. It fills in d.
func SetPassword(ctx context.Context, tx *store.Tx, by store.Author, d *Developer, p NewPassword) error {
	row, err := tx.ReplacePassword(ctx, db.ReplacePasswordParams{
		ID: d.ID, Former: d.PasswordHash, PasswordHash: p.Hash, At: p.At,
		PasswordHistory: remembered(append([]string{p.Hash}, d.PasswordHistory...)),
	})
	if err != nil {
		return store.Translate(err)
	}
	*d = row
	if _, err := tx.DeleteSessions(ctx, db.DeleteSessionsParams{DeveloperID: d.ID, Spared: notNil(p.Spare)}); err != nil {
		return err
	}
	for _, purpose := range []Purpose{Verify, Reset} {
		if err := tx.DeleteTokensOfPurpose(ctx, db.DeleteTokensOfPurposeParams{DeveloperID: d.ID, Purpose: string(purpose)}); err != nil {
			return err
		}
	}
	return tx.Audit(ctx, by, store.Deed{Action: "password changed", Kind: kind, ID: d.ID})
}

// NewPassword is a password that takes the place of another.
type NewPassword struct {
	Hash  string
	At    time.Time
	Spare []byte // hash of the token of a session that goes on; nil for none
}

// Confirm notes that d's address is theirs, if the password is still d's and d may
// log in; otherwise it returns store.ErrNotFound. It fills in d.
func Confirm(ctx context.Context, tx *store.Tx, by store.Author, d *Developer, at time.Time) error {
	row, err := tx.ConfirmDeveloper(ctx, db.ConfirmDeveloperParams{ID: d.ID, PasswordHash: d.PasswordHash, At: &at})
	if err != nil {
		return store.Translate(err)
	}
	*d = row
	err = tx.DeleteTokensOfPurpose(ctx, db.DeleteTokensOfPurposeParams{DeveloperID: d.ID, Purpose: string(Verify)})
	if err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "verified", Kind: kind, ID: d.ID})
}

// Enter notes that d has logged in, if the password is still d's and d may log
// in; otherwise it returns store.ErrNotFound. It fills in d.
func Enter(ctx context.Context, tx *store.Tx, by store.Author, d *Developer, at time.Time) error {
	row, err := tx.EnterDeveloper(ctx, db.EnterDeveloperParams{ID: d.ID, PasswordHash: d.PasswordHash, At: &at})
	if err != nil {
		return store.Translate(err)
	}
	*d = row
	return tx.Audit(ctx, by, store.Deed{Action: "logged in", Kind: kind, ID: d.ID})
}

// kind is what the audit log calls developers.
const kind = "developer"

// remembered is as many hashes as are kept, newest first; never nil.
func remembered(hashes []string) []string {
	return append([]string{}, hashes[:min(len(hashes), History)]...)
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// note writes what people may see of a developer into the audit log. Nil is one
// who is not there.
func note(ctx context.Context, tx *store.Tx, by store.Author, before, after *Developer) error {
	deed := store.Deed{Action: "updated", Kind: kind}
	switch {
	case before == nil:
		deed.Action = "created"
	case after == nil:
		deed.Action = "deleted"
	}
	var err error
	if deed.Before, err = facts(&deed, before); err != nil {
		return err
	}
	if deed.After, err = facts(&deed, after); err != nil {
		return err
	}
	return tx.Audit(ctx, by, deed)
}

func facts(deed *store.Deed, d *Developer) ([]byte, error) {
	if d == nil {
		return nil, nil
	}
	deed.ID = d.ID
	body, err := json.Marshal(map[string]any{
		"email": d.Email, "inactive": d.Inactive, "verified": d.VerifiedAt != nil, "password_max_days": d.PasswordMaxDays,
		"nonce": d.Nonce, "sso_key": d.SsoKey, "fields": json.RawMessage(d.Fields), "unknown": json.RawMessage(d.Extra),
	})
	if err != nil {
		return nil, fmt.Errorf("writing developer %s for the audit log: %w", d.ID, err)
	}
	return body, nil
}
