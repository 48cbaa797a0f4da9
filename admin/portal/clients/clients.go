// Package clients is the life of OAuth clients: issued to developers, given access
// tokens by the client credentials grant (RFC 6749, section 4.4), ended. All
// tokens of a client stand for one session, which has one quota.
package clients

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

	"github.com/sluicegate/sluice/admin/portal/credentials"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/portal/requests"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	kept "github.com/sluicegate/sluice/admin/store/clients"
	people "github.com/sluicegate/sluice/admin/store/requests"
	"github.com/sluicegate/sluice/internal/credential"
)

// Catalogue knows how many clients a developer may have.
type Catalogue interface {
	Configuration(ctx context.Context, org string) (*record.Configuration, error)

	// EntryByPolicy returns the entry that offers a policy, or store.ErrNotFound.
	EntryByPolicy(ctx context.Context, org, policy string) (*record.Entry, error)
}

// Attempts count wrong secrets by where they come from.
type Attempts interface {
	// Failed counts one, and returns how long until the next is taken; 0: it is now.
	Failed(from net.IP) time.Duration
}

// Deps are what a Service works with. All are required.
type Deps struct {
	Store       *store.Store
	Credentials *credentials.Keeper
	Catalogue   Catalogue
	Attempts    Attempts
	Hasher      *credential.Hasher
	TokenTTL    time.Duration // how long a token is in force
	Deliver     func(hash string)
	Now         func() time.Time
	Log         *slog.Logger
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
	if err := s.room(ctx, w, &c); err != nil {
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
func (s *Service) room(ctx context.Context, w *credentials.Work, c *requests.Client) error {
	most, policy, err := s.limit(ctx, w.By.Org, c.Policy)
	if err != nil || most <= 0 {
		return err
	}
	n, err := kept.Count(ctx, w.Tx, kept.Of{Org: w.By.Org, Developer: c.Developer}, policy)
	if err != nil || n < most {
		return err
	}
	what := "OAuth clients"
	if policy != "" {
		what += fmt.Sprintf(" for policy %.80q", policy)
	}
	return rest.Refuse(fasthttp.StatusConflict, fmt.Sprintf("The developer has %d %s, which is the most (oauth_usage_limit); delete one first", n, what))
}

// limit returns how many clients a developer may have: in all, or of one policy
// where the entry that offers it says so. 0 or less is no limit.
func (s *Service) limit(ctx context.Context, org, wanted string) (most int64, policy string, err error) {
	entry, err := s.d.Catalogue.EntryByPolicy(ctx, org, wanted)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, "", err
	}
	if err == nil && entry.Config != nil && entry.Config.Override {
		return entry.Config.OAuthUsageLimit, wanted, nil
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
