package developers

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// signUp is the body of a sign-up.
type signUp struct {
	// Id of the organisation whose portal it is. Default: the first organisation.
	Org string `json:"org_id,omitempty"`
	// E-mail address of the developer.
	// Example: "ada@example.com"
	Email string `json:"email"`
	// Password of the developer, 6 to 1024 bytes.
	Password string `json:"password"`
	// Values of the fields that the configuration's signup_fields name, all of them.
	// Example: {"company": "Example Ltd"}
	Fields map[string]string `json:"fields,omitempty"`
}

// letterSent is the answer to calls that may send a letter. It is the same whether the
// account exists or not.
const letterSent = "A letter is on its way to the address, and says how to go on"

// minAnswerTime is the least time of calls whose duration would reveal whether an account
// exists.
const minAnswerTime = 250 * time.Millisecond

// delayAnswer waits until minAnswerTime after a time.
func delayAnswer(ctx context.Context, began time.Time) {
	wait := time.NewTimer(time.Until(began.Add(minAnswerTime)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// signUp handles a sign-up. If addresses are verified, the answer does not reveal
// whether an account exists, and an account becomes usable only with both the token
// sent to the mailbox and the password. If the address has an account, its owner gets a
// letter to set a password instead.
func (s *Service) signUp(ctx context.Context, c *rest.Call) (any, error) {
	if wait := s.letters.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany("Too many sign-ups from this address; try again later", wait)
	}
	var sent signUp
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
	if conf.DisableSignup {
		return nil, rest.Refuse(fasthttp.StatusForbidden, "Sign-up is switched off")
	}
	if problems := sent.problems(conf.SignupFields); problems != nil {
		return nil, rest.BadRequest("Validation failed", problems...)
	}
	d, err := s.developerOf(ctx, &sent)
	if err != nil {
		return nil, err
	}
	began := time.Now() // once the password is hashed, which others may delay
	if conf.DisableVerification {
		return s.signUpVerified(ctx, c, d, author(c, org, sent.Email), !conf.DisableAutoLogin && !conf.DisableLogin)
	}
	if err := s.Letters.CanHoldTokens(); err != nil {
		return nil, err
	}
	if s.mayWrite(org, sent.Email) {
		if err := s.signUpUnverified(ctx, d, author(c, org, sent.Email)); err != nil {
			return nil, err
		}
	}
	delayAnswer(ctx, began)
	return rest.Done(letterSent, nil), nil
}

// problems returns the problems of a sign-up.
func (u *signUp) problems(asked []string) (all []string) {
	if why := emailProblem(u.Email); why != "" {
		all = append(all, "email: "+why)
	}
	if why := passwordProblem(u.Email, u.Password); why != "" {
		all = append(all, "password: "+why)
	}
	return append(all, signupFieldProblems(asked, nil, u.Fields)...)
}

// developerOf returns the developer of a sign-up. The password is hashed in any case,
// so that the time is the same.
func (s *Service) developerOf(ctx context.Context, sent *signUp) (*store.Developer, error) {
	hash, err := s.hash(ctx, sent.Password)
	if err != nil {
		return nil, err
	}
	fields, err := encodeFields(sent.Fields)
	if err != nil {
		return nil, err
	}
	return &store.Developer{
		ID: rest.NewID(), Email: sent.Email, PasswordHash: hash, PasswordHistory: []string{hash}, PasswordUpdated: s.Now(),
		Fields: fields, Extra: []byte("{}"),
	}, nil
}

// signUpVerified creates a developer whose address is not verified by letter, and logs
// them in if login is set.
func (s *Service) signUpVerified(ctx context.Context, c *rest.Call, d *store.Developer, by store.Author, login bool) (any, error) {
	now := s.Now()
	d.VerifiedAt = &now
	answer := rest.Done("Signed up", nil)
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.CreateDeveloper(ctx, by, d); err != nil {
			return err
		}
		if err := s.welcome(ctx, tx, d); err != nil || !login {
			return err
		}
		var err error
		answer, err = s.createSession(ctx, c, tx, d)
		return err
	})
	if isTaken(err) {
		return nil, rest.Refuse(fasthttp.StatusConflict, "There is an account of this email; log in, or ask for another password")
	}
	if err != nil {
		return nil, err
	}
	answer.ID = d.ID
	s.Log.Info("a developer signed up", "developer", d.ID, "org", d.OrgID)
	return answer, nil
}

// signUpUnverified handles a sign-up whose address has to be verified. Of two
// concurrent ones with the same address, the second finds the account of the first.
func (s *Service) signUpUnverified(ctx context.Context, d *store.Developer, by store.Author) error {
	attempt := func(tx *store.Tx) error { return s.signUpInTx(ctx, tx, d, by) }
	err := s.Store.InTx(ctx, attempt)
	if isTaken(err) {
		err = s.Store.InTx(ctx, attempt)
	}
	return err
}

func (s *Service) signUpInTx(ctx context.Context, tx *store.Tx, d *store.Developer, by store.Author) error {
	known, err := tx.LockDeveloperByEmail(ctx, by, d.Email)
	switch {
	case isNotFound(err):
		fresh := *d
		if err := tx.CreateDeveloper(ctx, by, &fresh); err != nil {
			return err
		}
		return s.send(ctx, tx, &fresh, model.VerifyLetter)
	case err != nil:
		return err
	case known.Inactive:
		return nil
	case known.VerifiedAt != nil:
		return s.send(ctx, tx, &known, model.ResetLetter)
	}
	return s.replaceSignUp(ctx, tx, by, &known, d)
}

// replaceSignUp replaces a sign-up that was not completed: it may not have been made by
// the owner of the mailbox. The tokens of its letters end.
func (s *Service) replaceSignUp(ctx context.Context, tx *store.Tx, by store.Author, known, d *store.Developer) error {
	known.PasswordHistory = nil
	if err := tx.SetDeveloperPassword(ctx, by, known, store.NewPassword{Hash: d.PasswordHash, At: d.PasswordUpdated}); err != nil {
		return err
	}
	changed, err := tx.UpdateDeveloper(ctx, by, store.DeveloperRef{ID: known.ID}, func(now *store.Developer) error {
		now.Fields = d.Fields
		return nil
	})
	if err != nil {
		return err
	}
	return s.send(ctx, tx, &changed, model.VerifyLetter)
}

// signUpVerification is the body of a call with the token of a verification letter.
type signUpVerification struct {
	// Token of the letter.
	Token string `json:"token"`
	// Password that was chosen at sign-up: the letter alone proves no more than whose the mailbox is.
	Password string `json:"password"`
}

// confirm completes a sign-up with the token of the letter and the password.
func (s *Service) confirm(ctx context.Context, c *rest.Call) (any, error) {
	var sent signUpVerification
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, token, err := s.byToken(ctx, sent.Token, store.VerifyToken)
	if err != nil {
		return nil, err
	}
	conf, err := s.Configurations.Configuration(ctx, d.OrgID)
	if err != nil {
		return nil, err
	}
	g, err := s.newGuess(c, d.OrgID, d.Email, true)
	if err != nil {
		return nil, err
	}
	ok, err := g.check(ctx, &d, sent.Password)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, rest.Refuse(fasthttp.StatusUnauthorized, "The password is not the one that was chosen at sign-up")
	}
	answer := rest.Done("The address is verified; log in", nil)
	answer.ID = d.ID
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		if err := s.confirmInTx(ctx, tx, &d, token, author(c, d.OrgID, d.Email)); err != nil {
			return err
		}
		if conf.DisableAutoLogin || conf.DisableLogin {
			return nil
		}
		var err error
		answer, err = s.createSession(ctx, c, tx, &d)
		return err
	})
	if isNotFound(err) {
		return nil, errInvalidToken()
	}
	if err != nil {
		return nil, err
	}
	s.Log.Info("a developer signed up", "developer", d.ID, "org", d.OrgID)
	return answer, nil
}

func (s *Service) confirmInTx(ctx context.Context, tx *store.Tx, d *store.Developer, t store.DeveloperToken, by store.Author) error {
	if err := tx.UseDeveloperToken(ctx, d, t); err != nil {
		return err
	}
	if err := tx.ConfirmDeveloper(ctx, by, d, s.Now()); err != nil {
		return err
	}
	return s.welcome(ctx, tx, d)
}
