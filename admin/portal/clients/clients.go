// Package clients is the life of OAuth clients: issued to developers, given access
// tokens by the client credentials grant (RFC 6749, section 4.4), ended. All
// tokens of a client stand for one session, which has one quota.
package clients

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/portal/requests"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/clients"
	people "github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/credential"
)

// Configurations know how many clients a developer may have.
type Configurations interface {
	Configuration(ctx context.Context, org string) (*record.Configuration, error)
}

// Attempts count wrong secrets by where they come from.
type Attempts interface {
	// Failed counts one, and returns how long until the next is taken; 0: it is now.
	Failed(from net.IP) time.Duration
}

// Deps are what a Service works with. All are required.
type Deps struct {
	Store          *store.Store
	Credentials    *credentials.Keeper
	Configurations Configurations
	Attempts       Attempts
	Hasher         *credential.Hasher
	TokenTTL       time.Duration // how long a token is in force
	Deliver        func(hash string)
	Now            func() time.Time
	Log            *slog.Logger
}

// Service makes clients and gives them tokens. It is safe for concurrent use.
type Service struct {
	d     Deps
	grant *manage.Manager
}

// New returns a Service.
func New(d Deps) *Service {
	s := &Service{d: d}
	s.grant = s.newGrant()
	return s
}

// Issue makes a client for a developer, within a transaction that shows its secret
// once it is committed. It implements requests.Clients.
func (s *Service) Issue(ctx context.Context, w *credentials.Work, c requests.Client) (record.Credential, error) {
	developer, err := people.LockRequester(ctx, w.Tx, w.By.Org, c.Developer)
	if err != nil {
		return record.Credential{}, rest.Missing(err, noDeveloper)
	}
	if err := s.room(ctx, w, c.Developer); err != nil {
		return record.Credential{}, err
	}
	id, secret := rest.NewID(), newSecret()
	made, err := s.d.Credentials.Issue(ctx, w, &credentials.Grant{Developer: developer, Request: c.Request, Policies: []string{c.Policy}, Client: id})
	if err != nil {
		return record.Credential{}, err
	}
	row := &kept.Row{
		ClientID: id, OrgID: w.By.Org, DeveloperID: c.Developer, PolicyID: c.Policy, KeyHash: made.Hash, SecretHash: rest.HashOf([]byte(secret)),
		RedirectUri: c.Redirect, AppDescription: c.App, UseCase: c.Use,
	}
	return record.Credential{RawKey: id, Password: secret}, kept.Insert(ctx, w.Tx, row)
}

// room refuses one client too many. The developer is locked.
func (s *Service) room(ctx context.Context, w *credentials.Work, developer string) error {
	config, err := s.d.Configurations.Configuration(ctx, w.By.Org)
	if err != nil || config.OAuthUsageLimit <= 0 {
		return err
	}
	n, err := kept.Count(ctx, w.Tx, w.By.Org, developer)
	if err == nil && n >= config.OAuthUsageLimit {
		err = rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("The developer has %d OAuth clients, which is the most (oauth_usage_limit); delete one first", n))
	}
	return err
}

// newSecret returns 256 random bits as text.
func newSecret() string {
	var random [32]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// Tokens that ended are forgotten in small parts.
const (
	forgetEvery = 10 * time.Minute
	forgetBatch = 1000
)

// Run forgets tokens that ended long ago, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	ticks := time.NewTicker(forgetEvery)
	defer ticks.Stop()
	for {
		gone, err := kept.ForgetTokens(ctx, s.d.Store, forgetBatch)
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
