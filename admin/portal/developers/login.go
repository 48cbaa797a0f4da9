package developers

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/accounts"
)

// developerLogin is what a developer shows to log in.
type developerLogin struct {
	Org         string `json:"org_id,omitempty" doc:"default: the first organisation"`
	Email       string `json:"email"`
	Password    string `json:"password"`
	NewPassword string `json:"new_password,omitempty" doc:"takes the place of password; needed when that is too old"`
}

// wrongLogin is the answer to whoever may not log in and may not learn why. Whoever
// signed up with an address that is not theirs knows the password: if they were told
// that it was not verified yet, they would know that nobody had an account of it.
const wrongLogin = "The address or the password is wrong, or the address is not verified yet; the letter that was sent to it says how"

func (s *Service) login(ctx context.Context, c *rest.Call) (any, error) {
	var sent developerLogin
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	org, err := s.orgOf(ctx, c, sent.Org)
	if err != nil {
		return nil, err
	}
	conf, err := s.Configurations.Configuration(ctx, org)
	if err != nil {
		return nil, err
	}
	if conf.DisableLogin {
		return nil, rest.Refuse(fasthttp.StatusForbidden, "Log-in is switched off")
	}
	d, err := s.known(ctx, c, org, &sent, !conf.DisableVerification)
	if err != nil {
		return nil, err
	}
	if d.VerifiedAt == nil { // addresses need not be verified any more
		err := s.Store.InTx(ctx, func(tx *store.Tx) error {
			return changedMeanwhile(accounts.Confirm(ctx, tx, author(c, d.OrgID, d.Email), d, s.Now()))
		})
		if err != nil {
			return nil, err
		}
	}
	if err := s.renew(ctx, c, d, &sent); err != nil {
		return nil, err
	}
	return s.enter(ctx, c, d)
}

// known returns the developer whose password is right, and, where that is asked
// for, whose address is verified. To everybody else there is one answer, which
// takes the same time.
func (s *Service) known(ctx context.Context, c *rest.Call, org string, sent *developerLogin, verified bool) (*accounts.Developer, error) {
	g, err := s.newGuess(c, org, sent.Email, true)
	if err != nil {
		return nil, err
	}
	d, ok, err := s.lookUp(ctx, g, org, sent)
	if err != nil {
		return nil, err
	}
	if ok && (d.VerifiedAt != nil || !verified) {
		g.right(nil)
		return d, nil
	}
	began := time.Now()
	s.Log.Info("a developer's log-in was refused", "org", org, "ip", c.Address())
	if ok {
		s.verifyAgain(ctx, c, d)
	}
	settle(ctx, began)
	return nil, rest.Refuse(fasthttp.StatusUnauthorized, wrongLogin)
}

// lookUp tells whose a log-in is, and whether the password is right. Inactive
// developers are nobody. What comes of the guess is for the caller to note.
func (s *Service) lookUp(ctx context.Context, g *guess, org string, sent *developerLogin) (*accounts.Developer, bool, error) {
	d := new(accounts.Developer) // nobody
	if len(sent.Email) <= maxEmail {
		found, err := accounts.ByEmail(ctx, s.Store, org, sent.Email)
		if err != nil && !isAbsent(err) && !errors.Is(err, store.ErrUnstorable) {
			g.right(err)
			return nil, false, err
		}
		if err == nil {
			d = &found
		}
	}
	ok, err := s.verify(ctx, d, sent.Password)
	if err != nil {
		g.right(err)
	}
	return d, ok && !d.Inactive, err
}

// verifyAgain sends another letter to who has yet to show that the address is
// theirs. Whether that works must not change the answer.
func (s *Service) verifyAgain(ctx context.Context, c *rest.Call, d *accounts.Developer) {
	if !s.mayWrite(d.OrgID, d.Email) {
		return
	}
	by := author(c, d.OrgID, d.Email)
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		now, err := accounts.Lock(ctx, tx, by, d.ID)
		if err != nil {
			return err
		}
		return s.send(ctx, tx, &now, record.VerifyLetter)
	})
	if err != nil {
		s.Log.Warn("another letter to verify an address could not be queued", "developer", d.ID, "err", err)
	}
}

// renew changes a password at log-in, which one that is too old has to be.
func (s *Service) renew(ctx context.Context, c *rest.Call, d *accounts.Developer, sent *developerLogin) error {
	if sent.NewPassword == "" {
		if aged(d, s.Now()) {
			return rest.Refuse(fasthttp.StatusForbidden, "The password is too old; add new_password")
		}
		return nil
	}
	wanted, err := s.accept(ctx, d, "new_password", sent.NewPassword)
	if err != nil {
		return err
	}
	return s.setPassword(ctx, author(c, d.OrgID, d.Email), d, wanted)
}

func (s *Service) enter(ctx context.Context, c *rest.Call, d *accounts.Developer) (answer *rest.Envelope, err error) {
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		answer, err = s.admit(ctx, c, tx, d)
		return err
	})
	if isAbsent(err) { // became inactive, or got another password
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, wrongLogin)
	}
	return answer, err
}

func (s *Service) logout(ctx context.Context, c *rest.Call) (any, error) {
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		return accounts.EndSeat(ctx, tx, c.Author("portal"), c.Who.ID, accounts.SeatOf(seatOf(c)))
	})
	if err != nil && !isAbsent(err) { // it may have ended at the same moment
		return nil, err
	}
	return rest.Done("Logged out", nil), nil
}

// developerCredentials are a developer's, as an operator's own pages pass them on.
type developerCredentials struct {
	Username string `json:"username" doc:"the address"`
	Password string `json:"password"`
}

// verifyCredentials tells an operator whether a developer could log in. The
// operator's pages have one address for all: only the account's guesses count.
func (s *Service) verifyCredentials(ctx context.Context, c *rest.Call) (any, error) {
	var sent developerCredentials
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	g, err := s.newGuess(c, c.Who.Org, sent.Username, false)
	if err != nil {
		return nil, err
	}
	d, ok, err := s.lookUp(ctx, g, c.Who.Org, &developerLogin{Email: sent.Username, Password: sent.Password})
	switch {
	case err != nil:
		return nil, err
	case !ok || d.VerifiedAt == nil:
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, wrongLogin)
	}
	g.right(nil)
	if aged(d, s.Now()) {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, "The password is too old")
	}
	return rest.Done("The credentials are right", d.ID), nil
}
