// Package developers manages the developers of the portal: sign-up, verification of
// addresses, log-in and sessions, passwords, and what operators do with accounts.
package developers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/throttle"
)

// Configurations returns the configurations of portals.
type Configurations interface {
	// Configuration returns that of an organisation's portal.
	Configuration(ctx context.Context, org string) (*model.Configuration, error)

	// Home returns the organisation that those belong to who sign up and name none.
	Home(ctx context.Context) (string, error)
}

// Letters queues letters to developers in the transaction of their cause.
type Letters interface {
	Put(ctx context.Context, tx *store.Tx, l model.Letter) error

	// CanHoldTokens returns the error for every letter with a token. It is checked
	// before the account is looked up, so that the answer does not depend on it.
	CanHoldTokens() error
}

// Keys revokes the keys of developers.
type Keys interface {
	// RevokeAll deletes every key of a developer and returns the hashes of what is
	// to be delivered once the transaction is committed.
	RevokeAll(ctx context.Context, tx *store.Tx, by store.Author, developer string) (hashes []string, err error)
}

// Deps are the dependencies of a Service. All are required unless they say otherwise.
type Deps struct {
	Store          *store.Store
	Configurations Configurations
	Letters        Letters
	Keys           Keys
	KeyID          func(hash string) string // names a key in what people see
	Passwords      *password.Hasher         // nil: the service has its own
	Deliver        func(hash string)        // brings a key that was committed to the gateways without delay
	LoginRate      int                      // tries a minute from one address before 429; 0: 5
	Now            func() time.Time
	Log            *slog.Logger
}

// Service manages developers. Make one with New. It is safe for concurrent use.
type Service struct {
	Deps

	addresses *throttle.Throttle // log-ins, by address of the client
	letters   *throttle.Throttle // calls that send letters, by address of the client
	accounts  *throttle.Backoff  // guesses at passwords, by account, whether it exists or not
	mailboxes *throttle.Backoff  // letters, by address of the receiver
	recent    *recentLogins      // which the limit by address spares
}

// accountBackoff slows guesses at the password of an account: about ten tries in 15
// minutes, and one every five minutes after that, for all clients together. The owner of
// the account has to wait with them.
var accountBackoff = throttle.Pace{Free: 3, First: 2 * time.Second, Longest: 5 * time.Minute, Quiet: 15 * time.Minute}

// mailboxBackoff bounds the letters to a mailbox whose owner may not have asked for them.
var mailboxBackoff = throttle.Pace{Free: 5, First: 5 * time.Minute, Longest: time.Hour, Quiet: 24 * time.Hour}

// Defaults for hashing passwords: how many at once, how many may wait, and how long.
const (
	hashesAtOnce  = 2
	hashesWaiting = 32
	hashWait      = 5 * time.Second
)

// New returns a Service. The database may be unavailable.
func New(d Deps) *Service {
	if d.Passwords == nil {
		d.Passwords = password.NewHasher(hashesAtOnce, hashesWaiting, hashWait)
	}
	if d.LoginRate <= 0 {
		d.LoginRate = 5
	}
	return &Service{
		Deps:      d,
		addresses: throttle.New(d.LoginRate, d.Now),
		letters:   throttle.New(d.LoginRate, d.Now),
		accounts:  throttle.NewBackoff(accountBackoff, d.Now),
		mailboxes: throttle.NewBackoff(mailboxBackoff, d.Now),
		recent:    newRecentLogins(d.Now),
	}
}

const (
	sweepInterval = 10 * time.Minute
	pendingFor    = 7 * 24 * time.Hour // until an unverified sign-up is deleted
)

// Run deletes ended sessions, tokens and sign-ups until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep(ctx)
		}
	}
}

func (s *Service) sweep(ctx context.Context) {
	for more := true; more; {
		var err error
		now := s.Now()
		if more, err = s.Store.SweepDevelopers(ctx, now, now.Add(-pendingFor)); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("ended sessions and sign-ups were not swept", "err", err)
			}
			return
		}
	}
}

// missing is the answer about a developer who does not exist.
const missing = "Developer not found"

// orgOf returns the organisation of a call without a credential: the one that it names,
// or that of the portal.
func (s *Service) orgOf(ctx context.Context, c *rest.Call, named string) (string, error) {
	if named == "" {
		named = c.Query("org_id")
	}
	if named == "" {
		home, err := s.Configurations.Home(ctx)
		return home, rest.Missing(err, "There is no organisation yet")
	}
	there, err := s.Store.OrgExists(ctx, named)
	if err == nil && !there {
		err = rest.BadRequest("org_id: names no organisation")
	}
	return named, err
}

// author returns the author of a change without a credential.
func author(c *rest.Call, org, email string) store.Author {
	by := c.Author("portal")
	by.Org, by.Name, by.Kind = org, email, "developer"
	return by
}

// isTaken reports whether another developer has the address.
func isTaken(err error) bool {
	conflict, ok := errors.AsType[*store.ConflictError](err)
	return ok && conflict.Index == store.DeveloperEmailIndex
}

// addressTaken answers 409 for an address that another developer has.
func addressTaken(err error) error {
	if isTaken(err) {
		return rest.Refuse(fasthttp.StatusConflict, "Another developer has this email")
	}
	return err
}

// isNotFound reports store.ErrNotFound.
func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }
