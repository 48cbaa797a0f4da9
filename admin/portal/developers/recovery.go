package developers

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/accounts"
)

// forgottenPassword is who does not know their password any more.
type forgottenPassword struct {
	Org   string `json:"org_id,omitempty" doc:"default: the first organisation"`
	Email string `json:"email"`
}

// forgot sends a letter to choose another password, if there is such an account;
// the answer does not tell.
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
	if badEmail(sent.Email) == "" && s.mayWrite(org, sent.Email) {
		if err := s.remind(ctx, author(c, org, sent.Email)); err != nil {
			return nil, err
		}
	}
	settle(ctx, began)
	return rest.Done(letterSent, nil), nil
}

// remind sends the letter to the address as it is stored: the one that was sent
// may be another by the rules of case of another language.
func (s *Service) remind(ctx context.Context, by store.Author) error {
	return s.Store.InTx(ctx, func(tx *store.Tx) error {
		d, err := accounts.LockByEmail(ctx, tx, by, by.Name)
		if isAbsent(err) || err == nil && d.Inactive {
			return nil
		}
		if err != nil {
			return err
		}
		return s.send(ctx, tx, &d, record.ResetLetter)
	})
}

// passwordReset is what comes back of a letter to choose another password.
type passwordReset struct {
	Token    string `json:"token" doc:"of the letter"`
	Password string `json:"password" doc:"6…1024 bytes; none of the last 5"`
}

// reset changes the password of who has the letter, which proves that the mailbox
// is theirs, too. All sessions end.
func (s *Service) reset(ctx context.Context, c *rest.Call) (any, error) {
	if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany("Too many attempts from this address; try again later", wait)
	}
	var sent passwordReset
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, token, err := s.byToken(ctx, sent.Token, accounts.Reset)
	if err != nil {
		return nil, err
	}
	s.addresses.Pardon(c.HTTP.RemoteIP())
	wanted, err := s.accept(ctx, &d, "password", sent.Password)
	if err != nil {
		return nil, err
	}
	by := author(c, d.OrgID, d.Email)
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		if err := accounts.UseToken(ctx, tx, &d, token); err != nil {
			return err
		}
		if err := accounts.SetPassword(ctx, tx, by, &d, wanted); err != nil {
			return err
		}
		if d.VerifiedAt != nil {
			return nil
		}
		return s.confirmed(ctx, tx, by, &d)
	})
	if isAbsent(err) {
		return nil, errTokenGone()
	}
	if err != nil {
		return nil, err
	}
	s.accounts.Forget(accountOf(d.OrgID, d.Email))
	s.Log.Info("a developer chose another password", "developer", d.ID)
	return rest.Done("Password changed; log in", nil), nil
}

// confirmed completes a sign-up without its own letter.
func (s *Service) confirmed(ctx context.Context, tx *store.Tx, by store.Author, d *accounts.Developer) error {
	if err := accounts.Confirm(ctx, tx, by, d, s.Now()); err != nil {
		return err
	}
	return s.welcome(ctx, tx, d)
}
