// Package signin signs users of the admin in: by password, access key or a link that
// works once. It keeps their sessions, and sets their passwords.
package signin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/throttle"
)

// Letters queues letters to users in the transaction of their cause.
type Letters interface {
	Put(ctx context.Context, tx *store.Tx, l model.Letter) error

	// CanHoldTokens returns the error for every letter with a link, or nil.
	CanHoldTokens() error
}

// Deps are the dependencies of a Service. All are required unless they say otherwise.
type Deps struct {
	Store     *store.Store
	Passwords *password.Hasher // nil: the service has its own
	Letters   Letters
	PublicURL string // under which users reach the admin, without a final slash; "": as they call it
	LoginRate int    // failed attempts a minute from one address before 429; 0: 5
	Now       func() time.Time
	Log       *slog.Logger
}

// Service signs users in. Make one with New. It is safe for concurrent use.
type Service struct {
	Deps

	addresses *throttle.Throttle // attempts, by address of the client
	accounts  *throttle.Backoff  // guesses at passwords, by account, whether it exists or not
	letters   *throttle.Throttle // calls that send letters, by address of the client
	mailboxes *throttle.Backoff  // letters, by address of the receiver, whether it is a user's or not
}

// accountBackoff slows guesses at the password of an account: about ten tries in 15
// minutes, and one every five minutes after that, for all clients together.
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
		Deps: d, addresses: throttle.New(d.LoginRate, d.Now), accounts: throttle.NewBackoff(accountBackoff, d.Now),
		letters: throttle.New(d.LoginRate, d.Now), mailboxes: throttle.NewBackoff(mailboxBackoff, d.Now),
	}
}

const sweepInterval = 10 * time.Minute

// Run deletes ended sessions and links until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Sweep(ctx)
		}
	}
}

// Sweep deletes ended sessions and links.
func (s *Service) Sweep(ctx context.Context) {
	for more := true; more; {
		var err error
		if more, err = s.Store.SweepUserTokens(ctx, s.Now()); err != nil {
			if ctx.Err() == nil {
				s.Log.Warn("ended sessions of users were not swept", "err", err)
			}
			return
		}
	}
}

// credentials are the body of a sign-in: one of three.
type credentials struct {
	// E-mail address of the user, together with password.
	Email string `json:"email,omitempty"`
	// Password of the user.
	Password string `json:"password,omitempty"`
	// Access key of the user, in place of email and password.
	AccessKey string `json:"access_key,omitempty"`
	// Token of a link that signs in once, in place of email and password.
	Enter string `json:"enter,omitempty"`
}

// Ways to prove who one is.
const (
	byPassword  = "password"
	byAccessKey = "access_key"
	byLink      = "link"
)

// proof returns how a caller wants to sign in.
func (sent *credentials) proof() (string, error) {
	byEmail := sent.Email != "" || sent.Password != ""
	switch {
	case byEmail && sent.AccessKey == "" && sent.Enter == "":
		return byPassword, nil
	case !byEmail && sent.AccessKey != "" && sent.Enter == "":
		return byAccessKey, nil
	case !byEmail && sent.AccessKey == "" && sent.Enter != "":
		return byLink, nil
	}
	return "", rest.BadRequest("Validation failed", "body: must have email and password, or access_key, or enter")
}

func (s *Service) signIn(ctx context.Context, c *rest.Call) (any, error) {
	var sent credentials
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	proof, err := sent.proof()
	if err != nil {
		return nil, err
	}
	if err := mayBegin(c); err != nil {
		return nil, err
	}
	return s.begin(ctx, c, &sent, proof)
}

// login is the body of the sign-in that other products have, too.
type login struct {
	// E-mail address of the user.
	Email string `json:"email_address"`
	// Password of the user.
	Password string `json:"password"`
}

func (s *Service) login(ctx context.Context, c *rest.Call) (any, error) {
	var sent login
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if err := mayBegin(c); err != nil {
		return nil, err
	}
	return s.begin(ctx, c, &credentials{Email: sent.Email, Password: sent.Password}, byPassword)
}

// mayBegin refuses sign-ins by pages of other origins, which could make a visitor work in
// an account of theirs, and those whose session would travel in the clear.
func mayBegin(c *rest.Call) error {
	if rest.FromOtherPage(c.HTTP) {
		return rest.Refuse(fasthttp.StatusForbidden, "access denied: a page of another origin cannot sign in")
	}
	return rest.CanSetSession(c.HTTP)
}

// begin authenticates a caller and begins a session.
func (s *Service) begin(ctx context.Context, c *rest.Call, sent *credentials, proof string) (any, error) {
	begun := start{proof: proof}
	var u *store.User
	var err error
	switch proof {
	case byPassword:
		u, err = s.byPassword(ctx, c, sent)
	case byAccessKey:
		found, cause := s.Store.UserByKey(ctx, rest.HashOf([]byte(sent.AccessKey)))
		u, err = s.known(c, &found, cause)
	default:
		begun.link = rest.HashOf([]byte(sent.Enter))
		found, cause := s.Store.UserByLink(ctx, begun.link, s.Now())
		u, err = s.known(c, &found, cause)
	}
	var answer any
	if err == nil {
		answer, err = s.createSession(ctx, c, u, begun)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, refusals[proof])
	}
	return answer, err
}

// refusals say why a sign-in was refused, no more than the caller may know.
var refusals = map[string]string{
	byPassword:  "The address or the password is wrong",
	byAccessKey: "The access key is unknown",
	byLink:      "The link is unknown, was used, or has expired; ask for another one",
}

// known returns the user whom a secret of 256 random bits names, or store.ErrNotFound. The
// right secret is never refused: other clients may share the address.
func (s *Service) known(c *rest.Call, u *store.User, err error) (*store.User, error) {
	if err == nil && !signsIn(u) {
		err = store.ErrNotFound
	}
	if !errors.Is(err, store.ErrNotFound) {
		return u, err
	}
	if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany(tooManyHere, wait)
	}
	return nil, err
}

// signsIn reports whether a user can sign in: gateways are no people.
func signsIn(u *store.User) bool { return u.Active && u.Role != string(rest.Gateway) }

// wellFormed reports whether a text can be the credential of a session.
func wellFormed(credential []byte) bool {
	bare, begins := bytes.CutPrefix(credential, []byte(rest.SessionPrefix))
	return begins && len(bare) == rest.KeyDigits && strings.Trim(string(bare), rest.Alphanumeric) == ""
}
