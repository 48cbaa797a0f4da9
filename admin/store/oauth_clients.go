package store

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/store/db"
	"github.com/sluicegate/sluice/internal/definition"
)

// OAuthClient is a client as it is kept. Its secret is not.
type OAuthClient = db.OauthClient

// CreateOAuthClient adds a client whose session is stored.
func (tx *Tx) CreateOAuthClient(ctx context.Context, r *OAuthClient) error {
	return translate(tx.Queries.InsertClient(ctx, db.InsertClientParams{
		ClientID: r.ClientID, OrgID: r.OrgID, DeveloperID: r.DeveloperID, PolicyID: r.PolicyID, KeyHash: r.KeyHash,
		SecretHash: r.SecretHash, RedirectUri: r.RedirectUri, AppDescription: r.AppDescription, UseCase: r.UseCase,
	}))
}

// OAuthClientByID returns a client of any organisation, or ErrNotFound.
func (s *Store) OAuthClientByID(ctx context.Context, id string) (OAuthClient, error) {
	row, err := s.queries.ClientAnywhere(ctx, id)
	return row, translate(err)
}

// OAuthClientRef names a client of a developer.
type OAuthClientRef struct{ Org, Developer, Client string }

// LockOAuthClient returns a client, locked until the transaction ends, or ErrNotFound.
func (tx *Tx) LockOAuthClient(ctx context.Context, of OAuthClientRef) (OAuthClient, error) {
	row, err := tx.Queries.LockClient(ctx, db.LockClientParams{OrgID: of.Org, DeveloperID: of.Developer, ClientID: of.Client})
	return row, translate(err)
}

// CountOAuthClients returns the number of clients of a developer for a policy, "" for
// any.
func (tx *Tx) CountOAuthClients(ctx context.Context, of OAuthClientRef, policy string) (int64, error) {
	n, err := tx.Queries.CountClients(ctx, db.CountClientsParams{DeveloperID: of.Developer, OrgID: of.Org, Policy: policy})
	return n, translate(err)
}

// ListOAuthClients returns one page of a developer's clients, oldest first, and their
// total number.
func (s *Store) ListOAuthClients(ctx context.Context, of OAuthClientRef, page Page) ([]OAuthClient, int64, error) {
	total, err := s.queries.CountClients(ctx, db.CountClientsParams{DeveloperID: of.Developer, OrgID: of.Org})
	if err != nil {
		return nil, 0, translate(err)
	}
	rows, err := s.queries.ListClients(ctx, db.ListClientsParams{DeveloperID: of.Developer, OrgID: of.Org, Max: page.Limit(), Skip: page.Offset()})
	return rows, total, translate(err)
}

// SetOAuthClientSecret replaces the secret of a client.
func (tx *Tx) SetOAuthClientSecret(ctx context.Context, client string, hash []byte) error {
	return translate(tx.Queries.SetClientSecret(ctx, db.SetClientSecretParams{ClientID: client, SecretHash: hash}))
}

// An OAuthToken is an access token to be stored or revoked.
type OAuthToken struct {
	Hash  string                   // that it is stored under
	Ends  time.Time                // of one that is issued
	Shown func(hash string) string // what people read in place of a hash; nil: the hash
}

// IssueOAuthToken stores a token of a client. Full reports that the client has most
// tokens already. The client must exist.
func (s *Store) IssueOAuthToken(ctx context.Context, r *OAuthClient, t OAuthToken, most int) (full bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.Queries.HoldClient(ctx, r.ClientID); err != nil {
			return err
		}
		live, err := tx.Queries.CountTokens(ctx, db.CountTokensParams{Identity: r.KeyHash, Bound: int32(most)})
		if err != nil || live >= int64(most) {
			full = err == nil
			return err
		}
		session := definition.NewSuccessor(r.KeyHash, r.OrgID)
		session.Expires = t.Ends.Unix()
		return tx.CommitKey(ctx, clientAuthor(r), &KeyChange{Hash: t.Hash, Session: session, New: true, Action: "token issued", Shown: t.Shown})
	})
	return full, err
}

// RevokeOAuthToken deletes a token of a client. Revoked reports whether it existed.
func (s *Store) RevokeOAuthToken(ctx context.Context, r *OAuthClient, t OAuthToken) (revoked bool, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.Queries.HoldClient(ctx, r.ClientID); err != nil {
			return err
		}
		ours, err := tx.Queries.TokenOf(ctx, db.TokenOfParams{KeyHash: t.Hash, Identity: r.KeyHash})
		if err != nil || !ours {
			return err
		}
		revoked = true
		if err := tx.CommitKey(ctx, clientAuthor(r), &KeyChange{Hash: t.Hash, Action: "token revoked", Shown: t.Shown}); err != nil {
			return err
		}
		// Gateways have the token cached with the client's session. That is delivered
		// again, but only after the token is deleted, which they would find otherwise.
		return tx.Queries.PutOutboxAfter(ctx, db.PutOutboxAfterParams{ID: t.Hash, Following: r.KeyHash})
	})
	return revoked, err
}

// clientAuthor returns the author of changes that a client makes.
func clientAuthor(r *OAuthClient) Author {
	return Author{Org: r.OrgID, Name: r.ClientID, Kind: "oauth client", Source: "portal"}
}

// DeleteEndedTokens deletes up to most tokens that ended long ago, and returns how
// many.
func (s *Store) DeleteEndedTokens(ctx context.Context, most int) (gone int64, err error) {
	err = s.InTx(ctx, func(tx *Tx) error {
		gone, err = tx.Queries.ForgetTokens(ctx, Page{Max: most}.Limit())
		return err
	})
	return gone, err
}
