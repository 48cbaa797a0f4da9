package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// kindUser names users in the audit log.
const kindUser = "user"

// A UserToken is a credential of a user besides the access key: a session, or a link that
// signs in once. Only its hash is stored.
type UserToken struct {
	Hash      []byte       // SHA-256
	Purpose   TokenPurpose // SessionToken, EnterToken or InviteToken
	Proof     string       // what began a session: password, access_key or link
	IP        string
	UserAgent string
	At, Until time.Time
}

// UserByEmail returns the user of an address, in any case, whatever the organisation.
func (s *Store) UserByEmail(ctx context.Context, email string) (User, error) {
	row, err := s.queries.UserByEmail(ctx, email)
	return row, translate(err)
}

// FirstAdmin returns the oldest active admin of the first organisation.
func (s *Store) FirstAdmin(ctx context.Context) (User, error) {
	row, err := s.queries.FirstAdmin(ctx)
	return row, translate(err)
}

// UserByLink returns the active user whose link can still be used.
func (s *Store) UserByLink(ctx context.Context, hash []byte, at time.Time) (User, error) {
	row, err := s.queries.UserByLink(ctx, db.UserByLinkParams{TokenHash: hash, At: at})
	return row, translate(err)
}

// A UserSession is one session of a user.
type UserSession struct {
	ID                     string // the beginning of its token's hash
	User                   User   // only from UserBySession
	Proof                  string // what it began with: password, access_key or link
	IP, UserAgent          string
	Began, UsedAt, Expires time.Time
}

// UserBySession returns the session that has a token, and its active user, if it has
// neither ended by at nor been unused since idle.
func (s *Store) UserBySession(ctx context.Context, hash []byte, at, idle time.Time) (UserSession, error) {
	row, err := s.queries.UserBySession(ctx, db.UserBySessionParams{TokenHash: hash, At: at, Idle: idle})
	return UserSession{
		ID: SessionID(hash), User: row.User, Proof: row.Proof, Began: row.CreatedAt, UsedAt: row.UsedAt, Expires: row.ExpiresAt,
	}, translate(err)
}

// TouchUserSession records that a session is used.
func (s *Store) TouchUserSession(ctx context.Context, hash []byte, at time.Time) error {
	return translate(s.queries.TouchUserSession(ctx, db.TouchUserSessionParams{TokenHash: hash, At: at}))
}

// UserSessions returns a user's sessions, newest first.
func (s *Store) UserSessions(ctx context.Context, user string, at, idle time.Time) ([]UserSession, error) {
	rows, err := s.queries.SessionsOfUser(ctx, db.SessionsOfUserParams{UserID: user, At: at, Idle: idle})
	if err != nil {
		return nil, translate(err)
	}
	sessions := make([]UserSession, 0, len(rows))
	for _, r := range rows {
		sessions = append(sessions, UserSession{
			ID: SessionID(r.TokenHash), Proof: r.Proof, IP: r.IP, UserAgent: r.UserAgent, Began: r.CreatedAt, UsedAt: r.UsedAt, Expires: r.ExpiresAt,
		})
	}
	return sessions, nil
}

// BeginUserSession stores a session of u and ends the oldest ones beyond keep. It returns
// ErrNotFound if u may not sign in any more, or was changed in what signing in depends on.
func (tx *Tx) BeginUserSession(ctx context.Context, u *User, t UserToken, keep int) error {
	now, err := tx.Queries.LockUser(ctx, db.LockUserParams{OrgID: u.OrgID, ID: u.ID})
	if err == nil && (!now.Active || now.Role != u.Role || now.PasswordHash != u.PasswordHash || !bytes.Equal(now.AccessKeyHash, u.AccessKeyHash)) {
		err = ErrNotFound
	}
	if err != nil {
		return translate(err)
	}
	return tx.putUserToken(ctx, u.ID, t, keep)
}

// DropUserSession ends the session that has a token, if there is one.
func (tx *Tx) DropUserSession(ctx context.Context, hash []byte) error {
	return tx.Queries.DropUserSession(ctx, hash)
}

// PutLink stores a link that signs a user in once, and ends the oldest ones of its
// purpose beyond keep.
func (tx *Tx) PutLink(ctx context.Context, by Author, u *User, t UserToken, keep int) error {
	if _, err := tx.Queries.LockUser(ctx, db.LockUserParams{OrgID: u.OrgID, ID: u.ID}); err != nil {
		return translate(err)
	}
	if err := tx.putUserToken(ctx, u.ID, t, keep); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "link created", Kind: kindUser, ID: u.ID})
}

func (tx *Tx) putUserToken(ctx context.Context, user string, t UserToken, keep int) error {
	err := tx.Queries.InsertUserToken(ctx, db.InsertUserTokenParams{
		TokenHash: t.Hash, UserID: user, Purpose: string(t.Purpose), Proof: t.Proof, IP: t.IP, UserAgent: t.UserAgent, At: t.At, ExpiresAt: t.Until,
	})
	if err != nil {
		return err
	}
	return tx.Queries.TrimUserTokens(ctx, db.TrimUserTokensParams{UserID: user, Purpose: string(t.Purpose), Keep: int32(keep)})
}

// UseLink deletes the link of u. One that was used concurrently is ErrNotFound.
func (tx *Tx) UseLink(ctx context.Context, u *User, hash []byte, at time.Time) error {
	whose, err := tx.Queries.UseLink(ctx, db.UseLinkParams{TokenHash: hash, At: at})
	if err == nil && whose != u.ID {
		err = ErrNotFound
	}
	return translate(err)
}

// EndUserSession ends a session of a user, or returns ErrNotFound.
func (tx *Tx) EndUserSession(ctx context.Context, by Author, user, session string) error {
	beginning, err := hex.DecodeString(session)
	if err != nil || len(beginning) != sessionIDBytes {
		return ErrNotFound
	}
	ended, err := tx.Queries.DeleteUserSession(ctx, db.DeleteUserSessionParams{UserID: user, Beginning: beginning})
	if err == nil && ended == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "session ended", Kind: kindUser, ID: user})
}

// SetUserPassword gives u another password, if the password is still that of u; otherwise
// it returns ErrNotFound. All sessions and links of u end. It updates u.
func (tx *Tx) SetUserPassword(ctx context.Context, by Author, u *User, hash string) error {
	row, err := tx.Queries.SetUserPassword(ctx, db.SetUserPasswordParams{ID: u.ID, Former: u.PasswordHash, PasswordHash: hash})
	if err != nil {
		return translate(err)
	}
	*u = row
	if err := tx.Queries.DeleteUserTokens(ctx, u.ID); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "password changed", Kind: kindUser, ID: u.ID})
}

// SignInRefused adds a refused sign-in of a user to the audit log.
func (s *Store) SignInRefused(ctx context.Context, by Author, user string) error {
	return s.InTx(ctx, func(tx *Tx) error {
		return tx.Audit(ctx, by, AuditEntry{Action: "sign-in refused", Kind: kindUser, ID: user})
	})
}

// SweepUserTokens deletes ended sessions and links. More reports that there may be others.
func (s *Store) SweepUserTokens(ctx context.Context, at time.Time) (more bool, err error) {
	deleted, err := s.queries.SweepUserTokens(ctx, db.SweepUserTokensParams{Before: at, Max: sweepBatch})
	return deleted == sweepBatch, translate(err)
}
