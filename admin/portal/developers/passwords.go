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
	"github.com/sluicegate/sluice/admin/store/accounts"
	"github.com/sluicegate/sluice/internal/password"
)

// minPassword is the shortest password, in bytes.
const minPassword = 6

// weak says what is wrong with a password for an address; "" is nothing.
func weak(email, plain string) string {
	switch {
	case len(plain) < minPassword || len(plain) > password.MaxLength:
		return fmt.Sprintf("must have %d…%d bytes", minPassword, password.MaxLength)
	case strings.EqualFold(plain, email):
		return "must not be the address"
	}
	return ""
}

// hash returns what to store of a password.
func (s *Service) hash(ctx context.Context, plain string) (string, error) {
	hash, err := s.Passwords.Hash(ctx, plain)
	return hash, hashFault(err)
}

// verify tells whether a password is a developer's. With nobody, or one without a
// password, it takes as long and the answer is no.
func (s *Service) verify(ctx context.Context, d *accounts.Developer, plain string) (bool, error) {
	if len(plain) > password.MaxLength {
		d, plain = new(accounts.Developer), "" // nobody's, and not worth hashing all of it
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

// accept returns what to store of a password that is to be d's, which neither
// breaks the rules nor is one that d had lately.
func (s *Service) accept(ctx context.Context, d *accounts.Developer, member, plain string) (accounts.NewPassword, error) {
	if why := weak(d.Email, plain); why != "" {
		return accounts.NewPassword{}, rest.BadRequest("Validation failed", member+": "+why)
	}
	had := slices.Clone(d.PasswordHistory)
	if d.PasswordHash != "" && !slices.Contains(had, d.PasswordHash) {
		had = append(had, d.PasswordHash)
	}
	for _, stored := range had {
		same, err := s.Passwords.Verify(ctx, stored, []byte(plain))
		if err != nil {
			return accounts.NewPassword{}, hashFault(err)
		}
		if same {
			why := fmt.Sprintf("%s: must not be one of the last %d", member, accounts.History)
			return accounts.NewPassword{}, rest.BadRequest("Validation failed", why)
		}
	}
	hash, err := s.hash(ctx, plain)
	return accounts.NewPassword{Hash: hash, At: s.Now()}, err
}

// setPassword makes a password that was accepted d's.
func (s *Service) setPassword(ctx context.Context, by store.Author, d *accounts.Developer, p accounts.NewPassword) error {
	return s.Store.InTx(ctx, func(tx *store.Tx) error {
		return changedMeanwhile(accounts.SetPassword(ctx, tx, by, d, p))
	})
}

// changedMeanwhile is the answer to a change that held only for another password
// than the developer has by now.
func changedMeanwhile(err error) error {
	if isAbsent(err) {
		return rest.Refuse(fasthttp.StatusConflict, "The account was changed at the same moment; try again")
	}
	return err
}

// day is what passwords age by.
const day = 24 * time.Hour

// aged tells whether a developer has to choose another password.
func aged(d *accounts.Developer, now time.Time) bool {
	return d.PasswordMaxDays > 0 && now.Sub(d.PasswordUpdated) > time.Duration(d.PasswordMaxDays)*day
}

// guess bounds guesses at an account's password, whether the account exists or
// not, from an address that is not known to be harmless.
type guess struct {
	service *Service
	call    *rest.Call
	account string
	remote  bool // the address counts as well
}

// accountOf names what is guessed at, or written to, in whatever case.
func accountOf(org, email string) string { return org + "\x00" + strings.ToLower(email) }

// mayWrite tells whether a mailbox may get one more letter that its owner may not
// have asked for.
func (s *Service) mayWrite(org, email string) bool {
	return s.mailboxes.Try(accountOf(org, email)) == 0
}

// newGuess returns a guess at the account of an address, or the refusal of it.
func (s *Service) newGuess(c *rest.Call, org, email string, remote bool) (*guess, error) {
	g := &guess{service: s, call: c, account: accountOf(org, email), remote: remote}
	if remote {
		if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
			return nil, tooMany("Too many attempts from this address; try again later", wait)
		}
	}
	if wait := s.accounts.Try(g.account); wait > 0 {
		return nil, tooMany("Too many attempts at this account; try again later", wait)
	}
	return g, nil
}

// right notes that the guess was right, or, with an error, that nobody knows.
func (g *guess) right(err error) {
	if err == nil {
		g.service.accounts.Forget(g.account)
	} else {
		g.service.accounts.Pardon(g.account)
	}
	if g.remote {
		g.service.addresses.Pardon(g.call.HTTP.RemoteIP())
	}
}

// check holds a password against d's, which may be nobody, and counts what comes
// out.
func (g *guess) check(ctx context.Context, d *accounts.Developer, plain string) (bool, error) {
	ok, err := g.service.verify(ctx, d, plain)
	if ok || err != nil {
		g.right(err)
	}
	return ok, err
}

// tooMany is the answer to who has to wait.
func tooMany(message string, wait time.Duration) error {
	f := rest.Refuse(fasthttp.StatusTooManyRequests, message)
	f.Header = map[string]string{fasthttp.HeaderRetryAfter: fmt.Sprint(int(wait/time.Second) + 1)}
	return f
}
