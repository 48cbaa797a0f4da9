package developers

import (
	"context"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// developerLogin is the body of a log-in.
type developerLogin struct {
	// Id of the organisation whose portal it is. Default: the first organisation.
	Org string `json:"org_id,omitempty"`
	// E-mail address of the developer.
	Email string `json:"email"`
	// Password of the developer.
	Password string `json:"password"`
	// Password to take the place of password; needed when that is too old. Default: password stays.
	NewPassword string `json:"new_password,omitempty"`
}

// wrongLogin is the answer to a refused log-in, which does not say why. If it said that
// the address is not verified yet, a client that signed up with the address of another
// person would learn that the person has no account.
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
	d, err := s.authenticate(ctx, c, org, &sent, !conf.DisableVerification)
	if err != nil {
		return nil, err
	}
	if d.VerifiedAt == nil { // addresses need not be verified any more
		err := s.Store.InTx(ctx, func(tx *store.Tx) error {
			return changedConcurrently(tx.ConfirmDeveloper(ctx, author(c, d.OrgID, d.Email), d, s.Now()))
		})
		if err != nil {
			return nil, err
		}
	}
	if err := s.changePasswordAtLogin(ctx, c, d, &sent); err != nil {
		return nil, err
	}
	return s.startSession(ctx, c, d)
}

// authenticate returns the developer whose password is right and, if verified is set,
// whose address is verified. All refusals have the same answer and take the same time.
func (s *Service) authenticate(ctx context.Context, c *rest.Call, org string, sent *developerLogin, verified bool) (*store.Developer, error) {
	began := time.Now()
	g, err := s.newGuess(c, org, sent.Email, true)
	if err != nil {
		delayAnswer(ctx, began)
		return nil, err
	}
	d, ok, err := s.lookUp(ctx, g, org, sent)
	if ok && err == nil && (d.VerifiedAt != nil || !verified) {
		g.succeeded(nil)
		return d, nil
	}
	if g.limited != nil {
		delayAnswer(ctx, began)
		return nil, g.limited
	}
	if err != nil {
		return nil, err
	}
	began = time.Now()
	s.Log.Info("a developer's log-in was refused", "org", org, "ip", c.Address())
	if ok {
		s.resendVerification(ctx, c, d)
	}
	delayAnswer(ctx, began)
	return nil, rest.Refuse(fasthttp.StatusUnauthorized, wrongLogin)
}

// lookUp returns the developer of a log-in, and whether the password is right. Inactive
// developers are treated as unknown. The caller records the result of the guess.
func (s *Service) lookUp(ctx context.Context, g *guess, org string, sent *developerLogin) (*store.Developer, bool, error) {
	d := new(store.Developer) // of an unknown email: no password matches
	if len(sent.Email) <= maxEmail {
		found, err := s.Store.DeveloperByEmail(ctx, org, sent.Email)
		if err != nil && !isNotFound(err) && !errors.Is(err, store.ErrUnstorable) {
			g.succeeded(err)
			return nil, false, err
		}
		if err == nil {
			d = &found
		}
	}
	ok, err := s.verify(ctx, d, sent.Password)
	if err != nil {
		g.succeeded(err)
	}
	return d, ok && !d.Inactive, err
}

// resendVerification sends another letter to a developer whose address is not verified.
// Its success must not change the answer.
func (s *Service) resendVerification(ctx context.Context, c *rest.Call, d *store.Developer) {
	if !s.mayWrite(d.OrgID, d.Email) {
		return
	}
	by := author(c, d.OrgID, d.Email)
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		now, err := tx.LockDeveloper(ctx, by, d.ID)
		if err != nil {
			return err
		}
		return s.send(ctx, tx, &now, model.VerifyLetter)
	})
	if err != nil {
		s.Log.Warn("another letter to verify an address could not be queued", "developer", d.ID, "err", err)
	}
}

// changePasswordAtLogin changes the password at log-in, which is required if it is too
// old.
func (s *Service) changePasswordAtLogin(ctx context.Context, c *rest.Call, d *store.Developer, sent *developerLogin) error {
	if sent.NewPassword == "" {
		if passwordExpired(d, s.Now()) {
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

func (s *Service) startSession(ctx context.Context, c *rest.Call, d *store.Developer) (answer *rest.Envelope, err error) {
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		answer, err = s.createSession(ctx, c, tx, d)
		return err
	})
	if isNotFound(err) { // became inactive, or got another password
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, wrongLogin)
	}
	return answer, err
}

func (s *Service) logout(ctx context.Context, c *rest.Call) (any, error) {
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		return tx.EndSession(ctx, c.Author("portal"), c.Who.ID, store.SessionID(sessionHash(c)))
	})
	if err != nil && !isNotFound(err) { // it may have ended at the same moment
		return nil, err
	}
	return rest.Done("Logged out", nil), nil
}

// developerCredentials are the credentials of a developer, sent by pages of the
// operator.
type developerCredentials struct {
	// E-mail address of the developer.
	Username string `json:"username"`
	// Password of the developer.
	Password string `json:"password"`
}

// verifyCredentials reports whether a developer could log in. The operator's pages have
// one address for all developers: only guesses by account count.
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
	g.succeeded(nil)
	if passwordExpired(d, s.Now()) {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, "The password is too old")
	}
	return rest.Done("The credentials are right", d.ID), nil
}
