package developers

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// forgottenPassword is the body of a call that asks for a letter to set a password.
type forgottenPassword struct {
	// Id of the organisation whose portal it is. Default: the first organisation.
	Org string `json:"org_id,omitempty"`
	// E-mail address of the developer; the answer is the same whether a developer has it or not.
	Email string `json:"email"`
}

// forgot sends a letter to set a password if the account exists; the answer does not
// tell.
func (s *Service) forgot(ctx context.Context, c *rest.Call) (any, error) {
	if wait := s.letters.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany("Too many letters for this address; try again later", wait)
	}
	var sent forgottenPassword
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	org, err := s.orgOf(ctx, c, sent.Org)
	if err != nil {
		return nil, err
	}
	if err := s.Letters.CanHoldTokens(); err != nil {
		return nil, err
	}
	began := time.Now()
	if emailProblem(sent.Email) == "" && s.mayWrite(org, sent.Email) {
		if err := s.sendResetLetter(ctx, author(c, org, sent.Email)); err != nil {
			return nil, err
		}
	}
	delayAnswer(ctx, began)
	return rest.Done(letterSent, nil), nil
}

// sendResetLetter sends the letter to the address as it is stored: the given one may
// match by case rules of another language.
func (s *Service) sendResetLetter(ctx context.Context, by store.Author) error {
	return s.Store.InTx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockDeveloperByEmail(ctx, by, by.Name)
		if isNotFound(err) || err == nil && d.Inactive {
			return nil
		}
		if err != nil {
			return err
		}
		return s.send(ctx, tx, &d, model.ResetLetter)
	})
}

// passwordReset is the body of a call with the token of a reset letter.
type passwordReset struct {
	// Token of the letter.
	Token string `json:"token"`
	// Password to be in force, 6 to 1024 bytes; none of the last 5.
	Password string `json:"password"`
}

// reset sets the password of a developer who has the token of a letter, which proves
// that the mailbox is theirs. All sessions end.
func (s *Service) reset(ctx context.Context, c *rest.Call) (any, error) {
	var sent passwordReset
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, token, err := s.byToken(ctx, sent.Token, store.ResetToken)
	if err != nil {
		return nil, s.wrongToken(c, err)
	}
	wanted, err := s.accept(ctx, &d, "password", sent.Password)
	if err != nil {
		return nil, err
	}
	by := author(c, d.OrgID, d.Email)
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		if err := tx.UseDeveloperToken(ctx, &d, token); err != nil {
			return err
		}
		if err := tx.SetDeveloperPassword(ctx, by, &d, wanted); err != nil {
			return err
		}
		if d.VerifiedAt != nil {
			return nil
		}
		return s.confirmed(ctx, tx, by, &d)
	})
	if isNotFound(err) {
		return nil, errInvalidToken()
	}
	if err != nil {
		return nil, err
	}
	s.accounts.Forget(accountOf(d.OrgID, d.Email))
	s.Log.Info("a developer chose another password", "developer", d.ID)
	return rest.Done("Password changed; log in", nil), nil
}

// wrongToken counts a guess at a token and returns the answer to it. The right token is
// never refused, as others may share the address.
func (s *Service) wrongToken(c *rest.Call, err error) error {
	if _, expected := errors.AsType[*rest.Fault](err); !expected {
		return err
	}
	if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return tooMany(tooManyGuesses, wait)
	}
	return err
}

// confirmed completes a sign-up without its own letter.
func (s *Service) confirmed(ctx context.Context, tx *store.Tx, by store.Author, d *store.Developer) error {
	if err := tx.ConfirmDeveloper(ctx, by, d, s.Now()); err != nil {
		return err
	}
	return s.welcome(ctx, tx, d)
}
