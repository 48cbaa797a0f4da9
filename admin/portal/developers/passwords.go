package developers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/password"
)

// minPassword is the shortest password, in bytes.
const minPassword = 6

// passwordProblem returns the problem of a password for an address, or "".
func passwordProblem(email, plain string) string {
	switch {
	case len(plain) < minPassword || len(plain) > password.MaxLength:
		return fmt.Sprintf("must have %d…%d bytes", minPassword, password.MaxLength)
	case strings.EqualFold(plain, email):
		return "must not be the address"
	}
	return ""
}

// hash returns the hash of a password.
func (s *Service) hash(ctx context.Context, plain string) (string, error) {
	hash, err := s.Passwords.Hash(ctx, plain)
	return hash, hashFault(err)
}

// verify reports whether a password is right. For an unknown developer, or one without
// a password, it takes as long and returns false.
func (s *Service) verify(ctx context.Context, d *store.Developer, plain string) (bool, error) {
	if len(plain) > password.MaxLength {
		d, plain = new(store.Developer), "" // never right, and too long to be hashed
	}
	ok, err := s.Passwords.Verify(ctx, d.PasswordHash, []byte(plain))
	return ok && d.PasswordHash != "", hashFault(err)
}

func hashFault(err error) error {
	if errors.Is(err, password.ErrBusy) {
		return rest.Unavailable("Too many passwords are being hashed; try again")
	}
	return err
}

// accept returns the new password to be stored, after checking the rules and the last
// passwords of the developer.
func (s *Service) accept(ctx context.Context, d *store.Developer, member, plain string) (store.NewPassword, error) {
	if why := passwordProblem(d.Email, plain); why != "" {
		return store.NewPassword{}, rest.BadRequest("Validation failed", member+": "+why)
	}
	had := slices.Clone(d.PasswordHistory)
	if d.PasswordHash != "" && !slices.Contains(had, d.PasswordHash) {
		had = append(had, d.PasswordHash)
	}
	for _, stored := range had {
		same, err := s.Passwords.Verify(ctx, stored, []byte(plain))
		if err != nil {
			return store.NewPassword{}, hashFault(err)
		}
		if same {
			why := fmt.Sprintf("%s: must not be one of the last %d", member, store.PasswordHistory)
			return store.NewPassword{}, rest.BadRequest("Validation failed", why)
		}
	}
	hash, err := s.hash(ctx, plain)
	return store.NewPassword{Hash: hash, At: s.Now()}, err
}

// setPassword stores an accepted password.
func (s *Service) setPassword(ctx context.Context, by store.Author, d *store.Developer, p store.NewPassword) error {
	return s.Store.InTx(ctx, func(tx *store.Tx) error {
		return changedConcurrently(tx.SetDeveloperPassword(ctx, by, d, p))
	})
}

// changedConcurrently answers 409 for a change whose account was changed in the
// meantime.
func changedConcurrently(err error) error {
	if isNotFound(err) {
		return rest.Refuse(fasthttp.StatusConflict, "The account was changed at the same moment; try again")
	}
	return err
}

// day is the unit of password_max_days.
const day = 24 * time.Hour

// passwordExpired reports whether the password is too old.
func passwordExpired(d *store.Developer, now time.Time) bool {
	return d.PasswordMaxDays > 0 && now.Sub(d.PasswordUpdated) > time.Duration(d.PasswordMaxDays)*day
}

// guess is one guess at the password of an account, which may not exist.
type guess struct {
	service *Service
	call    *rest.Call
	account string
	remote  bool // the address counts as well

	// limited is the refusal of the address, which had too many failures. The guess is
	// made nevertheless, because the account logged in from there lately; unless it is
	// right, it gets the same answer as guesses at other accounts. nil: the address may
	// go on.
	limited error
}

// accountOf returns the key under which guesses and letters are counted, in any case of
// the address.
func accountOf(org, email string) string { return org + "\x00" + strings.ToLower(email) }

// mayWrite reports whether a mailbox may get another letter that its owner may not have
// asked for.
func (s *Service) mayWrite(org, email string) bool {
	return s.mailboxes.Try(accountOf(org, email)) == 0
}

// newGuess counts a guess, or returns the refusal of it. An address with too many
// failures may go on with the accounts that logged in from there lately.
func (s *Service) newGuess(c *rest.Call, org, email string, remote bool) (*guess, error) {
	g := &guess{service: s, call: c, account: accountOf(org, email), remote: remote}
	if remote {
		if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
			g.limited = tooMany(tooManyGuesses, wait)
		}
		if g.limited != nil && !s.recent.has(g.account, c.HTTP.RemoteIP()) {
			return nil, g.limited
		}
	}
	if wait := s.accounts.Try(g.account); wait > 0 {
		if g.limited != nil {
			return nil, g.limited
		}
		return nil, tooMany("Too many attempts at this account; try again later", wait)
	}
	return g, nil
}

// succeeded records that the guess was right or, with an error, that its result is
// unknown.
func (g *guess) succeeded(err error) {
	if err == nil {
		g.service.accounts.Forget(g.account)
	} else {
		g.service.accounts.Pardon(g.account)
	}
	if g.remote && g.limited == nil {
		g.service.addresses.Pardon(g.call.HTTP.RemoteIP())
	}
	if g.remote && err == nil {
		g.service.recent.add(g.account, g.call.HTTP.RemoteIP())
	}
}

// check compares a password with d's, and counts the result. The developer may be
// unknown.
func (g *guess) check(ctx context.Context, d *store.Developer, plain string) (bool, error) {
	ok, err := g.service.verify(ctx, d, plain)
	if ok || err != nil {
		g.succeeded(err)
	}
	return ok, err
}

// tooManyGuesses is the message to an address with too many failures.
const tooManyGuesses = "Too many attempts from this address; try again later"

// tooMany answers 429 with Retry-After.
func tooMany(message string, wait time.Duration) error {
	f := rest.Refuse(fasthttp.StatusTooManyRequests, message)
	f.Header = map[string]string{fasthttp.HeaderRetryAfter: fmt.Sprint(int(wait/time.Second) + 1)}
	return f
}
