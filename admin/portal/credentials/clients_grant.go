package credentials

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	oauth "github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
)

// maxTokens bounds the valid tokens of one client. A client may run in many places, each
// with a token of its own.
const maxTokens = 10_000

// errFull reports that a client has as many tokens as it may.
var errFull = errors.New("the client has too many access tokens in force; use one until it ends")

// newGrant sets up the OAuth library with the stored clients and tokens.
func (s *Clients) newGrant() *manage.Manager {
	m := manage.NewManager()
	m.SetClientTokenCfg(&manage.Config{AccessTokenExp: s.d.TokenTTL})
	m.MapClientStorage(clientStore{s})
	m.MapAccessGenerate(tokenGenerator{s.d.Hasher})
	m.MapTokenStorage(&tokenStore{service: s})
	return m
}

// clientStore finds clients.
type clientStore struct{ service *Clients }

// GetByID implements oauth2.ClientStore. For an unknown client it returns one whose
// secret is never right, so that the check takes as long.
func (r clientStore) GetByID(ctx context.Context, id string) (oauth2.ClientInfo, error) {
	row, err := r.service.d.Store.OAuthClientByID(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return registeredClient{row: store.OAuthClient{ClientID: id, SecretHash: rest.HashOf([]byte(newSecret()))}}, nil
	}
	return registeredClient{row}, err
}

// registeredClient is a stored client.
type registeredClient struct{ row store.OAuthClient }

// GetID implements oauth2.ClientInfo.
func (c registeredClient) GetID() string { return c.row.ClientID }

// GetSecret implements oauth2.ClientInfo; secrets are not stored.
func (c registeredClient) GetSecret() string { return "" }

// GetDomain implements oauth2.ClientInfo; the grant has no redirects.
func (c registeredClient) GetDomain() string { return "" }

// IsPublic implements oauth2.ClientInfo: every client has a secret.
func (c registeredClient) IsPublic() bool { return false }

// GetUserID implements oauth2.ClientInfo: clients act for themselves.
func (c registeredClient) GetUserID() string { return "" }

// VerifyPassword implements oauth2.ClientPasswordVerifier.
func (c registeredClient) VerifyPassword(secret string) bool {
	return subtle.ConstantTimeCompare(rest.HashOf([]byte(secret)), c.row.SecretHash) == 1
}

// tokenGenerator generates tokens in the format of keys.
type tokenGenerator struct{ hasher *credential.Hasher }

// Token implements oauth2.AccessGenerate; there are no refresh tokens (RFC 6749,
// section 4.4.3).
func (m tokenGenerator) Token(context.Context, *oauth2.GenerateBasic, bool) (access, refresh string, err error) {
	return credential.Generate(m.hasher.Prefix), "", nil
}

// tokenStore stores tokens. It has only the methods that the grant uses.
type tokenStore struct {
	oauth2.TokenStore
	service *Clients
}

// Create implements oauth2.TokenStore.
func (t *tokenStore) Create(ctx context.Context, info oauth2.TokenInfo) error {
	d := &t.service.d
	row, err := d.Store.OAuthClientByID(ctx, info.GetClientID())
	if err != nil {
		return clientGone(err)
	}
	token := store.OAuthToken{Hash: d.Hasher.Hash(info.GetAccess()), Ends: d.Now().Add(info.GetAccessExpiresIn()).Truncate(time.Second), Shown: d.Hasher.Shown}
	full, err := d.Store.IssueOAuthToken(ctx, &row, token, maxTokens)
	switch {
	case err != nil:
		return clientGone(err)
	case full:
		return errFull
	}
	d.Deliver(token.Hash)
	return nil
}

// clientGone returns the error for a client that was deleted in the meantime.
func clientGone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return oauth.ErrInvalidClient
	}
	return err
}
