package accounts

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
)

// A Purpose is what a token is for.
type Purpose string

// The purposes.
const (
	Session Purpose = "session" // shown with every call
	Verify  Purpose = "verify"  // sent to an address, to learn whose it is
	Reset   Purpose = "reset"   // sent to an address, to choose another password
)

// A Token is what a developer shows or was sent. Only its hash is stored.
type Token struct {
	Hash      []byte // SHA-256
	Purpose   Purpose
	IP        string
	UserAgent string
	At, Until time.Time
}

// PutToken stores a token, and lets go of the oldest beyond keep of its purpose.
// The developer is locked, so that two at once do not leave more.
func PutToken(ctx context.Context, tx *store.Tx, d *Developer, t Token, keep int) error {
	err := tx.InsertDeveloperToken(ctx, db.InsertDeveloperTokenParams{
		TokenHash: t.Hash, DeveloperID: d.ID, Purpose: string(t.Purpose), IP: t.IP, UserAgent: t.UserAgent,
		At: t.At, ExpiresAt: t.Until,
	})
	if err != nil {
		return err
	}
	return tx.TrimDeveloperTokens(ctx, db.TrimDeveloperTokensParams{DeveloperID: d.ID, Purpose: string(t.Purpose), Keep: int32(keep)})
}

// ByToken returns whose a token is that can still be used.
func ByToken(ctx context.Context, st *store.Store, t Token) (Developer, error) {
	row, err := st.Read().DeveloperByToken(ctx, db.DeveloperByTokenParams{TokenHash: t.Hash, Purpose: string(t.Purpose), At: t.At})
	return row.Developer, store.Translate(err)
}

// UseToken uses up d's token. Of two who use one at once, the second gets
// store.ErrNotFound.
func UseToken(ctx context.Context, tx *store.Tx, d *Developer, t Token) error {
	whose, err := tx.UseDeveloperToken(ctx, db.UseDeveloperTokenParams{TokenHash: t.Hash, Purpose: string(t.Purpose), At: t.At})
	if err == nil && whose != d.ID {
		err = store.ErrNotFound
	}
	return store.Translate(err)
}

// A SignedIn is a developer who shows a session's token.
type SignedIn struct {
	ID, Org, Email string
	UsedAt         time.Time // when the token was last noted to be shown
}

// BySession returns who has a session that has neither ended by t.At nor been
// idle since before idle.
func BySession(ctx context.Context, st *store.Store, t Token, idle time.Time) (SignedIn, error) {
	row, err := st.Read().DeveloperBySession(ctx, db.DeveloperBySessionParams{TokenHash: t.Hash, At: t.At, Idle: idle})
	return SignedIn{ID: row.ID, Org: row.OrgID, Email: row.Email, UsedAt: row.UsedAt}, store.Translate(err)
}

// Touch notes that a session is used.
func Touch(ctx context.Context, st *store.Store, hash []byte, at time.Time) error {
	return store.Translate(st.Read().TouchSession(ctx, db.TouchSessionParams{TokenHash: hash, At: at}))
}

// A Seat is one session of a developer, as they see it.
type Seat struct {
	ID                     string // of the session: as much of its token's hash as tells it from others
	IP, UserAgent          string
	Began, UsedAt, Expires time.Time
}

// seatID is how many bytes of a hash name a session.
const seatID = 16

// SeatOf returns the id of the session that has a token.
func SeatOf(hash []byte) string { return hex.EncodeToString(hash[:seatID]) }

// Seats returns a developer's sessions, newest first.
func Seats(ctx context.Context, st *store.Store, developer string, at, idle time.Time) ([]Seat, error) {
	rows, err := st.Read().SessionsOfDeveloper(ctx, db.SessionsOfDeveloperParams{DeveloperID: developer, At: at, Idle: idle})
	if err != nil {
		return nil, store.Translate(err)
	}
	seats := make([]Seat, 0, len(rows))
	for _, r := range rows {
		seats = append(seats, Seat{
			ID: SeatOf(r.TokenHash), IP: r.IP, UserAgent: r.UserAgent, Began: r.CreatedAt, UsedAt: r.UsedAt, Expires: r.ExpiresAt,
		})
	}
	return seats, nil
}

// EndSeat ends one session of a developer, or returns store.ErrNotFound.
func EndSeat(ctx context.Context, tx *store.Tx, by store.Author, developer, seat string) error {
	beginning, err := hex.DecodeString(seat)
	if err != nil || len(beginning) != seatID {
		return store.ErrNotFound
	}
	ended, err := tx.DeleteSession(ctx, db.DeleteSessionParams{DeveloperID: developer, Beginning: beginning})
	if err == nil && ended == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "session ended", Kind: kind, ID: developer})
}

// EndSeats ends the sessions of a developer but the one whose token has a hash;
// nil spares none.
func EndSeats(ctx context.Context, tx *store.Tx, by store.Author, developer string, spared []byte) error {
	if _, err := tx.DeleteSessions(ctx, db.DeleteSessionsParams{DeveloperID: developer, Spared: notNil(spared)}); err != nil {
		return err
	}
	return tx.Audit(ctx, by, store.Deed{Action: "sessions ended", Kind: kind, ID: developer})
}

// sweepSize bounds what one sweep deletes, so that its locks are short.
const sweepSize = 1000

// Sweep deletes tokens that have ended, and developers who signed up before
// pending and never showed that the address is theirs. More tells that there may
// be others left.
func Sweep(ctx context.Context, st *store.Store, at, pending time.Time) (more bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		tokens, err := tx.SweepDeveloperTokens(ctx, db.SweepDeveloperTokensParams{Before: at, Max: sweepSize})
		if err != nil {
			return err
		}
		gone, err := tx.SweepPendingDevelopers(ctx, db.SweepPendingDevelopersParams{Before: pending, Max: sweepSize})
		if err != nil {
			return err
		}
		for _, d := range gone {
			by := store.Author{Org: d.OrgID, Name: "never verified", Kind: "system"}
			if err := tx.Audit(ctx, by, store.Deed{Action: "deleted", Kind: kind, ID: d.ID}); err != nil {
				return err
			}
		}
		more = tokens == sweepSize || len(gone) == sweepSize
		return nil
	})
	return more, err
}
