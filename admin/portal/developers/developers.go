// Package developers is who uses the portal: how they sign up, show that an
// address is theirs, log in, change their passwords, and how operators look after
// them.
package developers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/attempts"
	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/accounts"
	"github.com/sluicegate/sluice/internal/password"
)

// Configurations say how an organisation's portal works.
type Configurations interface {
	Configuration(ctx context.Context, org string) (*record.Configuration, error)
}

// Letters are what developers are sent. A letter is queued in the transaction of
// what it tells of.
type Letters interface {
	Put(ctx context.Context, tx *store.Tx, l record.Letter) error

	// CanHoldTokens refuses what would end in a letter with a token, where none can
	// be kept, before anybody looks whether there is an account.
	CanHoldTokens() error
}

// Keys are what developers have.
type Keys interface {
	// RevokeAll deletes every key of a developer and returns the hashes of what is
	// to be delivered once the transaction is committed.
	RevokeAll(ctx context.Context, tx *store.Tx, by store.Author, developer string) (hashes []string, err error)
}

// Deps are what a Service works with. All are required unless they say otherwise.
type Deps struct {
	Store          *store.Store
	Configurations Configurations
	Letters        Letters
	Keys           []Keys                   // of all kinds
	KeyID          func(hash string) string // names a key in what people see
	Passwords      *password.Hasher         // nil: the service has its own
	Deliver        func(hash string)        // brings a key that was committed to the gateways without delay
	LoginRate      int                      // tries a minute from one address before 429; 0: 5
	Now            func() time.Time
	Log            *slog.Logger
}

// Service knows developers. Make one with New. It is safe for concurrent use.
type Service struct {
	Deps

	addresses *attempts.Guard // log-ins, by where they come from
	letters   *attempts.Guard // what sends letters, by where it comes from
	accounts  *attempts.Brake // guesses at passwords, by account, whether it exists or not
	mailboxes *attempts.Brake // letters, by where they go
}

// How those who guess at an account are slowed down: to some ten tries in a quarter
// of an hour and one each five minutes after that, for all of them together. The
// account's owner waits with them, but never longer than that.
var accountPace = attempts.Pace{Free: 3, First: 2 * time.Second, Longest: 5 * time.Minute, Quiet: 15 * time.Minute}

// How many letters a mailbox gets that its owner may not have asked for.
var mailboxPace = attempts.Pace{Free: 5, First: 5 * time.Minute, Longest: time.Hour, Quiet: 24 * time.Hour}

// How many passwords are hashed at once where nobody says, how many may wait for
// that, and for how long.
const (
	hashesAtOnce  = 2
	hashesWaiting = 32
	hashWait      = 5 * time.Second
)

// New returns a Service. The database may be away.
func New(d Deps) *Service {
	if d.Passwords == nil {
		d.Passwords = password.NewHasher(hashesAtOnce, hashesWaiting, hashWait)
	}
	if d.LoginRate <= 0 {
		d.LoginRate = 5
	}
	return &Service{
		Deps:      d,
		addresses: attempts.New(d.LoginRate, d.Now),
		letters:   attempts.New(d.LoginRate, d.Now),
		accounts:  attempts.NewBrake(accountPace, d.Now),
		mailboxes: attempts.NewBrake(mailboxPace, d.Now),
	}
}

const (
	sweepInterval = 10 * time.Minute
	pendingFor    = 7 * 24 * time.Hour // until who signed up and did not go on is forgotten
)

// Run deletes what has ended until ctx does.
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
		if more, err = accounts.Sweep(ctx, s.Store, now, now.Add(-pendingFor)); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("ended sessions and sign-ups were not swept", "err", err)
			}
			return
		}
	}
}

// missing is the answer about a developer who is not there.
const missing = "Developer not found"

// orgOf returns the organisation that a call without a credential is about: the
// one it names, or the first.
func (s *Service) orgOf(ctx context.Context, c *rest.Call, named string) (string, error) {
	if named == "" {
		named = c.Query("org_id")
	}
	if named == "" {
		first, err := s.Store.FirstOrg(ctx)
		return first, rest.Missing(err, "There is no organisation yet")
	}
	there, err := accounts.OrgIsThere(ctx, s.Store, named)
	if err == nil && !there {
		err = rest.BadRequest("org_id: names no organisation")
	}
	return named, err
}

// author is who makes a change that asks for no credential.
func author(c *rest.Call, org, email string) store.Author {
	by := c.Author("portal")
	by.Org, by.Name, by.Kind = org, email, "developer"
	return by
}

// isTaken tells whether there is another developer of an address.
func isTaken(err error) bool {
	conflict, ok := errors.AsType[*store.ConflictError](err)
	return ok && conflict.Index == accounts.EmailIndex
}

// addressTaken gives a taken address its answer.
func addressTaken(err error) error {
	if isTaken(err) {
		return rest.Refuse(fasthttp.StatusConflict, "Another developer has this email")
	}
	return err
}

// isAbsent tells whether nothing was found, or not any more.
func isAbsent(err error) bool { return errors.Is(err, store.ErrNotFound) }
