package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// DeveloperEmailIndex is the unique index that finds a second developer of one address in
// an organisation, as *ConflictError names it.
const DeveloperEmailIndex = "developers_email"

// Developer is a developer as stored.
type Developer = db.Developer

// PasswordHistory is how many password hashes of a developer are stored, the present
// one included.
const PasswordHistory = 5

// DeveloperByID returns an organisation's developer.
func (s *Store) DeveloperByID(ctx context.Context, org, id string) (Developer, error) {
	d, err := s.queries.DeveloperByID(ctx, db.DeveloperByIDParams{OrgID: org, ID: id})
	return d, translate(err)
}

// DeveloperByEmail returns an organisation's developer of an address, in any case.
func (s *Store) DeveloperByEmail(ctx context.Context, org, email string) (Developer, error) {
	d, err := s.queries.DeveloperByEmail(ctx, db.DeveloperByEmailParams{OrgID: org, Email: email})
	return d, translate(err)
}

// CreateDeveloper adds a developer to the author's organisation, and fills in what the
// store decides.
func (tx *Tx) CreateDeveloper(ctx context.Context, by Author, d *Developer) error {
	row, err := tx.Queries.InsertDeveloper(ctx, db.InsertDeveloperParams{
		ID: d.ID, OrgID: by.Org, Email: d.Email, Inactive: d.Inactive,
		PasswordHash: d.PasswordHash, PasswordHistory: lastPasswords(d.PasswordHistory),
		PasswordMaxDays: d.PasswordMaxDays, PasswordUpdated: d.PasswordUpdated,
		VerifiedAt: d.VerifiedAt, LastLoginAt: d.LastLoginAt, Nonce: d.Nonce, SsoKey: d.SsoKey,
		Fields: d.Fields, Extra: d.Extra,
	})
	if err != nil {
		return err
	}
	*d = row
	return auditDeveloper(ctx, tx, by, nil, d)
}

// UpdateDeveloper changes a developer with change, which gets the stored developer.
// Sessions and tokens of letters end if the developer becomes inactive or gets another
// address.
func (tx *Tx) UpdateDeveloper(ctx context.Context, by Author, ref DeveloperRef, change func(*Developer) error) (Developer, error) {
	old, err := tx.Queries.LockDeveloper(ctx, db.LockDeveloperParams{OrgID: by.Org, ID: ref.ID})
	if err != nil {
		return Developer{}, err
	}
	if err := CheckVersion(ref.Version, old.Version); err != nil {
		return Developer{}, err
	}
	d := old
	if err := change(&d); err != nil {
		return Developer{}, err
	}
	d, err = tx.Queries.UpdateDeveloper(ctx, db.UpdateDeveloperParams{
		OrgID: by.Org, ID: ref.ID, Email: d.Email, Inactive: d.Inactive, PasswordMaxDays: d.PasswordMaxDays,
		VerifiedAt: d.VerifiedAt, Nonce: d.Nonce, SsoKey: d.SsoKey, Fields: d.Fields, Extra: d.Extra,
	})
	if err != nil {
		return Developer{}, err
	}
	if d.Inactive || d.Email != old.Email || d.VerifiedAt == nil && old.VerifiedAt != nil {
		if err := tx.Queries.DeleteTokensOfDeveloper(ctx, d.ID); err != nil {
			return Developer{}, err
		}
	}
	return d, auditDeveloper(ctx, tx, by, &old, &d)
}

// A DeveloperRef names a developer at a version.
type DeveloperRef struct {
	ID      string
	Version int64 // 0: any
}

// DeleteDeveloper deletes a developer with requests and tokens. The caller revokes the
// keys before.
func (tx *Tx) DeleteDeveloper(ctx context.Context, by Author, d *Developer) error {
	if err := tx.Queries.DeleteRequestsOfDeveloper(ctx, d.ID); err != nil {
		return err
	}
	if err := tx.Queries.DeleteDeveloper(ctx, db.DeleteDeveloperParams{OrgID: by.Org, ID: d.ID}); err != nil {
		return err
	}
	return auditDeveloper(ctx, tx, by, d, nil)
}

// LockDeveloper returns a developer, locked until the transaction ends, or ErrNotFound.
func (tx *Tx) LockDeveloper(ctx context.Context, by Author, id string) (Developer, error) {
	d, err := tx.Queries.LockDeveloper(ctx, db.LockDeveloperParams{OrgID: by.Org, ID: id})
	return d, translate(err)
}

// LockDeveloperWithRequests is LockDeveloper that also locks the key requests, before
// the developer.
func (tx *Tx) LockDeveloperWithRequests(ctx context.Context, by Author, id string) (Developer, error) {
	if _, err := tx.Queries.LockRequestsOfDeveloper(ctx, db.LockRequestsOfDeveloperParams{OrgID: by.Org, DeveloperID: id}); err != nil {
		return Developer{}, translate(err)
	}
	return tx.LockDeveloper(ctx, by, id)
}

// LockDeveloperByEmail is LockDeveloper by address, in any case.
func (tx *Tx) LockDeveloperByEmail(ctx context.Context, by Author, email string) (Developer, error) {
	d, err := tx.Queries.LockDeveloperByEmail(ctx, db.LockDeveloperByEmailParams{OrgID: by.Org, Email: email})
	return d, translate(err)
}

// SetDeveloperPassword replaces the password, if it is still the one that d has;
// otherwise it returns ErrNotFound. All sessions but one end, and so do the tokens of
// letters. It updates d.
func (tx *Tx) SetDeveloperPassword(ctx context.Context, by Author, d *Developer, p NewPassword) error {
	row, err := tx.Queries.ReplacePassword(ctx, db.ReplacePasswordParams{
		ID: d.ID, Former: d.PasswordHash, PasswordHash: p.Hash, At: p.At,
		PasswordHistory: lastPasswords(append([]string{p.Hash}, d.PasswordHistory...)),
	})
	if err != nil {
		return translate(err)
	}
	*d = row
	if _, err := tx.Queries.DeleteSessions(ctx, db.DeleteSessionsParams{DeveloperID: d.ID, Spared: orEmpty(p.Spare)}); err != nil {
		return err
	}
	for _, purpose := range []TokenPurpose{VerifyToken, ResetToken} {
		if err := tx.Queries.DeleteTokensOfPurpose(ctx, db.DeleteTokensOfPurposeParams{DeveloperID: d.ID, Purpose: string(purpose)}); err != nil {
			return err
		}
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "password changed", Kind: kindDeveloper, ID: d.ID})
}

// NewPassword is a password that replaces another one.
type NewPassword struct {
	Hash  string
	At    time.Time
	Spare []byte // hash of the token of the session that does not end; nil for none
}

// ConfirmDeveloper marks the address as verified, if the password is still that of d
// and d may log in; otherwise it returns ErrNotFound. It updates d.
func (tx *Tx) ConfirmDeveloper(ctx context.Context, by Author, d *Developer, at time.Time) error {
	row, err := tx.Queries.ConfirmDeveloper(ctx, db.ConfirmDeveloperParams{ID: d.ID, PasswordHash: d.PasswordHash, At: &at})
	if err != nil {
		return translate(err)
	}
	*d = row
	err = tx.Queries.DeleteTokensOfPurpose(ctx, db.DeleteTokensOfPurposeParams{DeveloperID: d.ID, Purpose: string(VerifyToken)})
	if err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "verified", Kind: kindDeveloper, ID: d.ID})
}

// RecordLogin records a log-in, if the password is still that of d and d may log in;
// otherwise it returns ErrNotFound. It updates d.
func (tx *Tx) RecordLogin(ctx context.Context, by Author, d *Developer, at time.Time) error {
	row, err := tx.Queries.EnterDeveloper(ctx, db.EnterDeveloperParams{ID: d.ID, PasswordHash: d.PasswordHash, At: &at})
	if err != nil {
		return translate(err)
	}
	*d = row
	return tx.Audit(ctx, by, AuditEntry{Action: "logged in", Kind: kindDeveloper, ID: d.ID})
}

// kindDeveloper names developers in the audit log.
const kindDeveloper = "developer"

// lastPasswords returns the hashes that are stored, newest first; never nil.
func lastPasswords(hashes []string) []string {
	return append([]string{}, hashes[:min(len(hashes), PasswordHistory)]...)
}

// orEmpty returns list, and an empty one in place of nil: the columns are not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// auditDeveloper writes a change of a developer to the audit log. A nil developer does
// not exist.
func auditDeveloper(ctx context.Context, tx *Tx, by Author, before, after *Developer) error {
	entry := AuditEntry{Action: "updated", Kind: kindDeveloper}
	switch {
	case before == nil:
		entry.Action = "created"
	case after == nil:
		entry.Action = "deleted"
	}
	var err error
	if entry.Before, err = developerFacts(&entry, before); err != nil {
		return err
	}
	if entry.After, err = developerFacts(&entry, after); err != nil {
		return err
	}
	return tx.Audit(ctx, by, entry)
}

func developerFacts(entry *AuditEntry, d *Developer) ([]byte, error) {
	if d == nil {
		return nil, nil
	}
	entry.ID = d.ID
	body, err := json.Marshal(map[string]any{
		"email": d.Email, "inactive": d.Inactive, "verified": d.VerifiedAt != nil, "password_max_days": d.PasswordMaxDays,
		"nonce": d.Nonce, "sso_key": d.SsoKey, "fields": json.RawMessage(d.Fields), "unknown": json.RawMessage(d.Extra),
	})
	if err != nil {
		return nil, fmt.Errorf("writing developer %s for the audit log: %w", d.ID, err)
	}
	return body, nil
}
