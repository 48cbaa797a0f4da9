package developers

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/accounts"
)

// signUp is what somebody says who wants to become a developer.
type signUp struct {
	Org      string            `json:"org_id,omitempty" doc:"default: the first organisation"`
	Email    string            `json:"email"`
	Password string            `json:"password" doc:"6…1024 bytes"`
	Fields   map[string]string `json:"fields,omitempty" doc:"those that the configuration's signup_fields name, all of them"`
}

// letterSent is the answer to whatever ends in a letter, or in none: it is the same
// whether there is such an account or not.
const letterSent = "A letter is on its way to the address, and says how to go on"

// settleFor is how long after its beginning a call is answered whose work would
// tell whether there is an account.
const settleFor = 250 * time.Millisecond

// settle waits until a call that began then may be answered.
func settle(ctx context.Context, began time.Time) {
	wait := time.NewTimer(time.Until(began.Add(settleFor)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// signUp takes a sign-up. Where addresses are verified, the caller learns nothing
// of who has an account, and nobody gets one whose mailbox is not theirs: what
// they chose counts only once the token that went there comes back together with
// the password. For an address that has an account, its owner gets a letter to
// choose another password.
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
	d, err := s.applicant(ctx, &sent)
	if err != nil {
		return nil, err
	}
	began := time.Now() // once the password is hashed, which others may delay
	if conf.DisableVerification {
		return s.enrol(ctx, c, d, author(c, org, sent.Email), !conf.DisableAutoLogin && !conf.DisableLogin)
	}
	if err := s.Letters.CanHoldTokens(); err != nil {
		return nil, err
	}
	if s.mayWrite(org, sent.Email) {
		if err := s.apply(ctx, d, author(c, org, sent.Email)); err != nil {
			return nil, err
		}
	}
	settle(ctx, began)
	return rest.Done(letterSent, nil), nil
}

// problems are what is wrong with a sign-up.
func (u *signUp) problems(asked []string) (all []string) {
	if why := badEmail(u.Email); why != "" {
		all = append(all, "email: "+why)
	}
	if why := weak(u.Email, u.Password); why != "" {
		all = append(all, "password: "+why)
	}
	return append(all, badAnswers(asked, nil, u.Fields)...)
}

// applicant is the developer that a sign-up comes to. The password is hashed
// whatever becomes of that.
func (s *Service) applicant(ctx context.Context, sent *signUp) (*accounts.Developer, error) {
	hash, err := s.hash(ctx, sent.Password)
	if err != nil {
		return nil, err
	}
	fields, err := encodeFields(sent.Fields)
	if err != nil {
		return nil, err
	}
	return &accounts.Developer{
		ID: rest.NewID(), Email: sent.Email, PasswordHash: hash, PasswordHistory: []string{hash}, PasswordUpdated: s.Now(),
		Fields: fields, Extra: []byte("{}"),
	}, nil
}

// enrol makes a developer whose address nobody asks about, and logs them in.
func (s *Service) enrol(ctx context.Context, c *rest.Call, d *accounts.Developer, by store.Author, login bool) (any, error) {
	now := s.Now()
	d.VerifiedAt = &now
	answer := rest.Done("Signed up", nil)
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		if err := accounts.Create(ctx, tx, by, d); err != nil {
			return err
		}
		if err := s.welcome(ctx, tx, d); err != nil || !login {
			return err
		}
		var err error
		answer, err = s.admit(ctx, c, tx, d)
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

// apply takes a sign-up whose address has to be verified. Of two for one address
// at once, the second finds what the first one made.
func (s *Service) apply(ctx context.Context, d *accounts.Developer, by store.Author) error {
	attempt := func(tx *store.Tx) error { return s.applyIn(ctx, tx, d, by) }
	err := s.Store.InTx(ctx, attempt)
	if isTaken(err) {
		err = s.Store.InTx(ctx, attempt)
	}
	return err
}

func (s *Service) applyIn(ctx context.Context, tx *store.Tx, d *accounts.Developer, by store.Author) error {
	known, err := accounts.LockByEmail(ctx, tx, by, d.Email)
	switch {
	case isAbsent(err):
		fresh := *d
		if err := accounts.Create(ctx, tx, by, &fresh); err != nil {
			return err
		}
		return s.send(ctx, tx, &fresh, record.VerifyLetter)
	case err != nil:
		return err
	case known.Inactive:
		return nil
	case known.VerifiedAt != nil:
		return s.send(ctx, tx, &known, record.ResetLetter)
	}
	return s.reapply(ctx, tx, by, &known, d)
}

// reapply puts a sign-up in the place of one that nobody went on with: whoever
// made that may not have been the owner of the mailbox. The letters before lose
// their force.
func (s *Service) reapply(ctx context.Context, tx *store.Tx, by store.Author, known, d *accounts.Developer) error {
	known.PasswordHistory = nil
	if err := accounts.SetPassword(ctx, tx, by, known, accounts.NewPassword{Hash: d.PasswordHash, At: d.PasswordUpdated}); err != nil {
		return err
	}
	changed, err := accounts.Update(ctx, tx, by, accounts.Ref{ID: known.ID}, func(now *accounts.Developer) error {
		now.Fields = d.Fields
		return nil
	})
	if err != nil {
		return err
	}
	return s.send(ctx, tx, &changed, record.VerifyLetter)
}

// signUpVerification is what comes back of a letter that asks whose an address is.
type signUpVerification struct {
	Token    string `json:"token" doc:"of the letter"`
	Password string `json:"password" doc:"that was chosen at sign-up: the letter alone proves no more than whose the mailbox is"`
}

// confirm completes a sign-up: who has the letter and the password has the
// account.
func (s *Service) confirm(ctx context.Context, c *rest.Call) (any, error) {
	var sent signUpVerification
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, token, err := s.byToken(ctx, sent.Token, accounts.Verify)
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
		if err := s.confirmIn(ctx, tx, &d, token, author(c, d.OrgID, d.Email)); err != nil {
			return err
		}
		if conf.DisableAutoLogin || conf.DisableLogin {
			return nil
		}
		var err error
		answer, err = s.admit(ctx, c, tx, &d)
		return err
	})
	if isAbsent(err) {
		return nil, errTokenGone()
	}
	if err != nil {
		return nil, err
	}
	s.Log.Info("a developer signed up", "developer", d.ID, "org", d.OrgID)
	return answer, nil
}

func (s *Service) confirmIn(ctx context.Context, tx *store.Tx, d *accounts.Developer, t accounts.Token, by store.Author) error {
	if err := accounts.UseToken(ctx, tx, d, t); err != nil {
		return err
	}
	if err := accounts.Confirm(ctx, tx, by, d, s.Now()); err != nil {
		return err
	}
	return s.welcome(ctx, tx, d)
}
