package clients

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
	kept "github.com/sluicegate/sluice/admin/store/clients"
	"github.com/sluicegate/sluice/internal/credential"
)

// maxTokens is how many tokens of one client are in force at once. A client may
// run in many places, each with a token of its own.
const maxTokens = 10_000

// errFull says that a client has as many tokens as it may.
var errFull = errors.New("the client has too many access tokens in force; use one until it ends")

// newGrant sets up the library that knows the grant, over our clients and tokens.
func (s *Service) newGrant() *manage.Manager {
	m := manage.NewManager()
	m.SetClientTokenCfg(&manage.Config{AccessTokenExp: s.d.TokenTTL})
	m.MapClientStorage(roster{s})
	m.MapAccessGenerate(mint{s.d.Hasher})
	m.MapTokenStorage(&till{service: s})
	return m
}

// roster finds clients.
type roster struct{ service *Service }

// GetByID implements oauth2.ClientStore. An unknown client is one that no secret
// is right for, so that finding out takes as long.
func (r roster) GetByID(ctx context.Context, id string) (oauth2.ClientInfo, error) {
	row, err := kept.Find(ctx, r.service.d.Store, id)
	if errors.Is(err, store.ErrNotFound) {
		return client{row: kept.Row{ClientID: id, SecretHash: rest.HashOf([]byte(newSecret()))}}, nil
	}
	return client{row}, err
}

// client is one that shows its secret.
type client struct{ row kept.Row }

// GetID implements oauth2.ClientInfo.
func (c client) GetID() string { return c.row.ClientID }

// GetSecret implements oauth2.ClientInfo; secrets are not kept.
func (c client) GetSecret() string { return "" }

// GetDomain implements oauth2.ClientInfo; nobody is redirected.
func (c client) GetDomain() string { return "" }

// IsPublic implements oauth2.ClientInfo: every client has a secret.
func (c client) IsPublic() bool { return false }

// GetUserID implements oauth2.ClientInfo: clients act for themselves.
func (c client) GetUserID() string { return "" }

// VerifyPassword implements oauth2.ClientPasswordVerifier.
func (c client) VerifyPassword(secret string) bool {
	return subtle.ConstantTimeCompare(rest.HashOf([]byte(secret)), c.row.SecretHash) == 1
}

// mint makes tokens, which look like keys.
type mint struct{ hasher *credential.Hasher }

// Token implements oauth2.AccessGenerate; there are no refresh tokens (RFC 6749,
// section 4.4.3).
func (m mint) Token(context.Context, *oauth2.GenerateBasic, bool) (access, refresh string, err error) {
	return credential.Generate(m.hasher.Prefix), "", nil
}

// till stores tokens. What the grant does not need of a store is missing.
type till struct {
	oauth2.TokenStore
	service *Service
}

// Create implements oauth2.TokenStore.
func (t *till) Create(ctx context.Context, info oauth2.TokenInfo) error {
	d := &t.service.d
	row, err := kept.Find(ctx, d.Store, info.GetClientID())
	if err != nil {
		return gone(err)
	}
	token := kept.Token{Hash: d.Hasher.Hash(info.GetAccess()), Ends: d.Now().Add(info.GetAccessExpiresIn()).Truncate(time.Second), Shown: d.Hasher.Shown}
	full, err := kept.Issue(ctx, d.Store, &row, token, maxTokens)
	switch {
	case err != nil:
		return gone(err)
	case full:
		return errFull
	}
	d.Deliver(token.Hash)
	return nil
}

// gone is the error of a client that was deleted at the same moment.
func gone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return oauth.ErrInvalidClient
	}
	return err
}
