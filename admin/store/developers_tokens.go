package store

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
)

// A TokenPurpose is what a token is for.
type TokenPurpose string

// The purposes.
const (
	SessionToken TokenPurpose = "session" // sent with every call
	VerifyToken  TokenPurpose = "verify"  // sent to an address, to verify it
	ResetToken   TokenPurpose = "reset"   // sent to an address, to set a password
	EnterToken   TokenPurpose = "enter"   // in a link that signs a user in once
	InviteToken  TokenPurpose = "invite"  // the same, for a user who was invited
)

// A DeveloperToken is a credential of a developer. Only its hash is stored.
type DeveloperToken struct {
	Hash      []byte // SHA-256
	Purpose   TokenPurpose
	IP        string
	UserAgent string
	At, Until time.Time
}

// PutDeveloperToken stores a token, and deletes the oldest ones beyond keep of its
// purpose. The developer must be locked, so that concurrent calls do not leave more.
func (tx *Tx) PutDeveloperToken(ctx context.Context, d *Developer, t DeveloperToken, keep int) error {
	err := tx.Queries.InsertDeveloperToken(ctx, db.InsertDeveloperTokenParams{
		TokenHash: t.Hash, DeveloperID: d.ID, Purpose: string(t.Purpose), IP: t.IP, UserAgent: t.UserAgent,
		At: t.At, ExpiresAt: t.Until,
	})
	if err != nil {
		return err
	}
	return tx.Queries.TrimDeveloperTokens(ctx, db.TrimDeveloperTokensParams{DeveloperID: d.ID, Purpose: string(t.Purpose), Keep: int32(keep)})
}

// DeveloperByToken returns the developer who has a valid token.
func (s *Store) DeveloperByToken(ctx context.Context, t DeveloperToken) (Developer, error) {
	row, err := s.queries.DeveloperByToken(ctx, db.DeveloperByTokenParams{TokenHash: t.Hash, Purpose: string(t.Purpose), At: t.At})
	return row.Developer, translate(err)
}

// UseDeveloperToken deletes d's token. A token that was used concurrently is
// ErrNotFound.
func (tx *Tx) UseDeveloperToken(ctx context.Context, d *Developer, t DeveloperToken) error {
	whose, err := tx.Queries.UseDeveloperToken(ctx, db.UseDeveloperTokenParams{TokenHash: t.Hash, Purpose: string(t.Purpose), At: t.At})
	if err == nil && whose != d.ID {
		err = ErrNotFound
	}
	return translate(err)
}

// A SignedIn is the developer of a session.
type SignedIn struct {
	ID, Org, Email string
	UsedAt         time.Time // last recorded use
}

// DeveloperBySession returns the developer of a session that has neither ended by t.At
// nor been unused since idle.
func (s *Store) DeveloperBySession(ctx context.Context, t DeveloperToken, idle time.Time) (SignedIn, error) {
	row, err := s.queries.DeveloperBySession(ctx, db.DeveloperBySessionParams{TokenHash: t.Hash, At: t.At, Idle: idle})
	return SignedIn{ID: row.ID, Org: row.OrgID, Email: row.Email, UsedAt: row.UsedAt}, translate(err)
}

// TouchSession records that a session is used.
func (s *Store) TouchSession(ctx context.Context, hash []byte, at time.Time) error {
	return translate(s.queries.TouchSession(ctx, db.TouchSessionParams{TokenHash: hash, At: at}))
}

// A DeveloperSession is one session of a developer.
type DeveloperSession struct {
	ID                     string // of the session: the beginning of its token's hash
	IP, UserAgent          string
	Began, UsedAt, Expires time.Time
}

// sessionIDBytes is how many bytes of a hash name a session.
const sessionIDBytes = 16

// SessionID returns the id of the session that has a token.
func SessionID(hash []byte) string { return hex.EncodeToString(hash[:sessionIDBytes]) }

// DeveloperSessions returns a developer's sessions, newest first.
func (s *Store) DeveloperSessions(ctx context.Context, developer string, at, idle time.Time) ([]DeveloperSession, error) {
	rows, err := s.queries.SessionsOfDeveloper(ctx, db.SessionsOfDeveloperParams{DeveloperID: developer, At: at, Idle: idle})
	if err != nil {
		return nil, translate(err)
	}
	sessions := make([]DeveloperSession, 0, len(rows))
	for _, r := range rows {
		sessions = append(sessions, DeveloperSession{
			ID: SessionID(r.TokenHash), IP: r.IP, UserAgent: r.UserAgent, Began: r.CreatedAt, UsedAt: r.UsedAt, Expires: r.ExpiresAt,
		})
	}
	return sessions, nil
}

// EndSession ends a session of a developer, or returns ErrNotFound.
func (tx *Tx) EndSession(ctx context.Context, by Author, developer, session string) error {
	beginning, err := hex.DecodeString(session)
	if err != nil || len(beginning) != sessionIDBytes {
		return ErrNotFound
	}
	ended, err := tx.Queries.DeleteSession(ctx, db.DeleteSessionParams{DeveloperID: developer, Beginning: beginning})
	if err == nil && ended == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "session ended", Kind: kindDeveloper, ID: developer})
}

// EndSessions ends the sessions of a developer, except the one whose token has a hash;
// nil ends all.
func (tx *Tx) EndSessions(ctx context.Context, by Author, developer string, spared []byte) error {
	if _, err := tx.Queries.DeleteSessions(ctx, db.DeleteSessionsParams{DeveloperID: developer, Spared: orEmpty(spared)}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, AuditEntry{Action: "sessions ended", Kind: kindDeveloper, ID: developer})
}

// sweepBatch bounds what one sweep deletes, so that its locks are short.
const sweepBatch = 1000

// SweepDevelopers deletes ended tokens, and developers who signed up before pending and
// did not verify their address. More reports that there may be others.
func (s *Store) SweepDevelopers(ctx context.Context, at, pending time.Time) (more bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		tokens, err := tx.Queries.SweepDeveloperTokens(ctx, db.SweepDeveloperTokensParams{Before: at, Max: sweepBatch})
		if err != nil {
			return err
		}
		gone, err := tx.Queries.SweepPendingDevelopers(ctx, db.SweepPendingDevelopersParams{Before: pending, Max: sweepBatch})
		if err != nil {
			return err
		}
		for _, d := range gone {
			by := Author{Org: d.OrgID, Name: "never verified", Kind: "system"}
			if err := tx.Audit(ctx, by, AuditEntry{Action: "deleted", Kind: kindDeveloper, ID: d.ID}); err != nil {
				return err
			}
		}
		more = tokens == sweepBatch || len(gone) == sweepBatch
		return nil
	})
	return more, err
}
