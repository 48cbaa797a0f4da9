// Package clients keeps OAuth clients, and the tokens that they have.
package clients

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// Row is a client as it is kept. Its secret is not.
type Row = db.OauthClient

// Insert makes a client, whose session is stored.
func Insert(ctx context.Context, tx *store.Tx, r *Row) error {
	return store.Translate(tx.InsertClient(ctx, db.InsertClientParams{
		ClientID: r.ClientID, OrgID: r.OrgID, DeveloperID: r.DeveloperID, PolicyID: r.PolicyID, KeyHash: r.KeyHash,
		SecretHash: r.SecretHash, RedirectUri: r.RedirectUri, AppDescription: r.AppDescription, UseCase: r.UseCase,
	}))
}

// Find returns a client of any organisation, or store.ErrNotFound.
func Find(ctx context.Context, st *store.Store, id string) (Row, error) {
	row, err := st.Read().ClientAnywhere(ctx, id)
	return row, store.Translate(err)
}

// Of names a client of a developer.
type Of struct{ Org, Developer, Client string }

// Lock returns a client that nobody else changes until the transaction ends, or
// store.ErrNotFound.
func Lock(ctx context.Context, tx *store.Tx, of Of) (Row, error) {
	row, err := tx.LockClient(ctx, db.LockClientParams{OrgID: of.Org, DeveloperID: of.Developer, ClientID: of.Client})
	return row, store.Translate(err)
}

// Count returns how many clients a developer has for a policy; "" is any.
func Count(ctx context.Context, tx *store.Tx, of Of, policy string) (int64, error) {
	n, err := tx.CountClients(ctx, db.CountClientsParams{DeveloperID: of.Developer, OrgID: of.Org, Policy: policy})
	return n, store.Translate(err)
}

// List returns one page of a developer's clients, oldest first, and how many there
// are in all.
func List(ctx context.Context, st *store.Store, of Of, page store.Page) ([]Row, int64, error) {
	total, err := st.Read().CountClients(ctx, db.CountClientsParams{DeveloperID: of.Developer, OrgID: of.Org})
	if err != nil {
		return nil, 0, store.Translate(err)
	}
	rows, err := st.Read().ListClients(ctx, db.ListClientsParams{DeveloperID: of.Developer, OrgID: of.Org, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, store.Translate(err)
}

// SetSecret gives a client another secret.
func SetSecret(ctx context.Context, tx *store.Tx, client string, hash []byte) error {
	return store.Translate(tx.SetClientSecret(ctx, db.SetClientSecretParams{ClientID: client, SecretHash: hash}))
}

// A Token is one that a client is given, or gives back.
type Token struct {
	Hash  string                   // that it is stored under
	Ends  time.Time                // of one that is issued
	Shown func(hash string) string // what people read in place of a hash; nil: the hash
}

// Issue stores a token of a client, unless that has as many as it may: then full is
// true. The client must still be there.
func Issue(ctx context.Context, st *store.Store, r *Row, t Token, most int) (full bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.HoldClient(ctx, r.ClientID); err != nil {
			return err
		}
		live, err := tx.CountTokens(ctx, db.CountTokensParams{Identity: r.KeyHash, Bound: int32(most)})
		if err != nil || live >= int64(most) {
			full = err == nil
			return err
		}
		session := definition.NewSuccessor(r.KeyHash, r.OrgID)
		session.Expires = t.Ends.Unix()
		return tx.CommitKey(ctx, by(r), &store.KeyChange{Hash: t.Hash, Session: session, New: true, Action: "token issued", Shown: t.Shown})
	})
	return full, err
}

// Revoke ends a token of a client; there is none when revoked is false.
func Revoke(ctx context.Context, st *store.Store, r *Row, t Token) (revoked bool, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.HoldClient(ctx, r.ClientID); err != nil {
			return err
		}
		ours, err := tx.TokenOf(ctx, db.TokenOfParams{KeyHash: t.Hash, Identity: r.KeyHash})
		if err != nil || !ours {
			return err
		}
		revoked = true
		if err := tx.CommitKey(ctx, by(r), &store.KeyChange{Hash: t.Hash, Action: "token revoked", Shown: t.Shown}); err != nil {
			return err
		}
		// Gateways know the token by the client's session: that has to be looked up
		// again, but not before the token is gone, which they would find anew.
		return tx.PutOutboxAfter(ctx, db.PutOutboxAfterParams{ID: t.Hash, Following: r.KeyHash})
	})
	return revoked, err
}

// by is who a token is issued to, and ended by.
func by(r *Row) store.Author {
	return store.Author{Org: r.OrgID, Name: r.ClientID, Kind: "oauth client", Source: "portal"}
}

// ForgetTokens deletes up to most tokens that ended long ago, and returns how many
// it did.
func ForgetTokens(ctx context.Context, st *store.Store, most int) (gone int64, err error) {
	err = st.InTx(ctx, func(tx *store.Tx) error {
		gone, err = tx.ForgetTokens(ctx, store.Page{Max: most}.Limit())
		return err
	})
	return gone, err
}
