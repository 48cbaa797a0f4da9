package credentials

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/credential"
)

// Attempts counts wrong secrets by the address of the client.
type Attempts interface {
	// Failed counts one, and returns how long until the next one is accepted; 0: now.
	Failed(from net.IP) time.Duration
}

// ClientDeps are the dependencies of Clients. All are required.
type ClientDeps struct {
	Store     *store.Store
	Keys      *Keys
	Catalogue Catalogue
	Attempts  Attempts
	Hasher    *credential.Hasher
	TokenTTL  time.Duration // how long a token is valid
	Deliver   func(hash string)
	Now       func() time.Time
	Log       *slog.Logger
}

// Clients manages OAuth clients and their tokens, which share one session and its quota.
// It is safe for concurrent use.
type Clients struct {
	d     ClientDeps
	grant *manage.Manager
}

// NewClients returns Clients.
func NewClients(d ClientDeps) *Clients {
	s := &Clients{d: d}
	s.grant = s.newGrant()
	return s
}

// Issue issues a client to a developer within a transaction. The caller shows the
// secret after the commit.
func (s *Clients) Issue(ctx context.Context, w *KeyTx, c ClientGrant) (model.Credential, error) {
	developer, err := w.Tx.LockRequester(ctx, w.By.Org, c.Developer)
	if err != nil {
		return model.Credential{}, rest.Missing(err, noDeveloper)
	}
	if err := s.checkCount(ctx, w, &c); err != nil {
		return model.Credential{}, err
	}
	id, secret := rest.NewID(), newSecret()
	made, err := s.d.Keys.Issue(ctx, w, &Grant{Developer: developer, Request: c.Request, Policies: []string{c.Policy}, Client: id})
	if err != nil {
		return model.Credential{}, err
	}
	row := &store.OAuthClient{
		ClientID: id, OrgID: w.By.Org, DeveloperID: c.Developer, PolicyID: c.Policy, KeyHash: made.Hash, SecretHash: rest.HashOf([]byte(secret)),
		RedirectUri: c.Redirect, AppDescription: c.App, UseCase: c.Use,
	}
	return model.Credential{RawKey: id, Password: secret}, w.Tx.CreateOAuthClient(ctx, row)
}

// checkCount refuses one client more than allowed. The developer is locked.
func (s *Clients) checkCount(ctx context.Context, w *KeyTx, c *ClientGrant) error {
	most, policy, err := s.limit(ctx, w.By.Org, c.Policy)
	if err != nil || most <= 0 {
		return err
	}
	n, err := w.Tx.CountOAuthClients(ctx, store.OAuthClientRef{Org: w.By.Org, Developer: c.Developer}, policy)
	if err != nil || n < most {
		return err
	}
	what := "OAuth clients"
	if policy != "" {
		what += fmt.Sprintf(" for policy %.80q", policy)
	}
	return rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("The developer has %d %s, which is the most (oauth_usage_limit); delete one first", n, what))
}

// limit returns how many clients a developer may have: in all, or for one policy if the
// entry that offers it says so. 0 or less is no limit.
func (s *Clients) limit(ctx context.Context, org, newClient string) (most int64, policy string, err error) {
	entry, err := s.d.Catalogue.EntryByPolicy(ctx, org, newClient)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, "", err
	}
	if err == nil && entry.Config != nil && entry.Config.Override {
		return entry.Config.OAuthUsageLimit, newClient, nil
	}
	config, err := s.d.Catalogue.Configuration(ctx, org)
	if err != nil {
		return 0, "", err
	}
	return config.OAuthUsageLimit, "", nil
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// Ended tokens are deleted in small batches.
const (
	forgetEvery = 10 * time.Minute
	forgetBatch = 1000
)

// Run deletes tokens that ended long ago, until ctx ends.
func (s *Clients) Run(ctx context.Context) {
	ticks := time.NewTicker(forgetEvery)
	defer ticks.Stop()
	for {
		gone, err := s.d.Store.DeleteEndedTokens(ctx, forgetBatch)
		if err != nil && ctx.Err() == nil {
			s.d.Log.Warn("forgetting old access tokens was interrupted", "err", err)
		}
		if err == nil && gone == forgetBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
