package signin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/sleep"
)

// minPassword is the shortest password, in bytes.
const minPassword = 10

// maxEmail is the longest address, in bytes (RFC 5321, section 4.5.3.1.3).
const maxEmail = 254

// freshFor is how long after a sign-in by access key or link the user may choose another
// password without the one that is in force: who lost it gets a link.
const freshFor = 15 * time.Minute

// minAnswerTime is the least time of a refused sign-in after the password was compared,
// so that its duration does not reveal whether there is an account.
const minAnswerTime = 250 * time.Millisecond

// byPassword returns the user of an address and a password, or store.ErrNotFound. All
// refusals have the same answer and take the same time.
func (s *Service) byPassword(ctx context.Context, c *rest.Call, sent *credentials) (*store.User, error) {
	if wait := s.addresses.Failed(c.HTTP.RemoteIP()); wait > 0 {
		return nil, tooMany(tooManyHere, wait)
	}
	account := strings.ToLower(sent.Email)
	if wait := s.accounts.Try(account); wait > 0 {
		return nil, tooMany("Too many attempts at this account; try again later", wait)
	}
	u, right, err := s.lookUp(ctx, sent)
	switch {
	case err != nil:
		s.addresses.Pardon(c.HTTP.RemoteIP())
		s.accounts.Pardon(account)
		return nil, err
	case right:
		s.addresses.Pardon(c.HTTP.RemoteIP())
		s.accounts.Forget(account)
		return u, nil
	}
	compared := time.Now()
	s.Log.Info("a sign-in was refused", "ip", c.Address())
	if u.ID != "" {
		by := author(c, u)
		by.Name, by.Kind = "nobody", "system"
		if err := s.Store.SignInRefused(ctx, by, u.ID); err != nil {
			s.Log.Warn("a refused sign-in was not written to the audit log", "err", err)
		}
	}
	_ = sleep.For(ctx, time.Until(compared.Add(minAnswerTime)))
	return nil, store.ErrNotFound
}

// lookUp returns the user of a sign-in, one without an id if there is none, and whether
// the password is right.
func (s *Service) lookUp(ctx context.Context, sent *credentials) (*store.User, bool, error) {
	u := new(store.User) // of an unknown address: no password matches
	if len(sent.Email) <= maxEmail {
		found, err := s.Store.UserByEmail(ctx, sent.Email)
		if err == nil {
			u = &found
		} else if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnstorable) {
			return nil, false, err
		}
	}
	right, err := s.verify(ctx, u.PasswordHash, sent.Password)
	return u, right && signsIn(u), err
}

// verify reports whether a password has a hash. Without a hash it takes as long and
// returns false.
func (s *Service) verify(ctx context.Context, hash, plain string) (bool, error) {
	stored := hash
	if len(plain) > password.MaxLength {
		stored, plain = "", "" // never right, and too long to be hashed
	}
	ok, err := s.Passwords.Verify(ctx, stored, []byte(plain))
	return ok && stored != "", hashFault(err)
}

func hashFault(err error) error {
	if errors.Is(err, password.ErrBusy) {
		return rest.Unavailable("Too many passwords are being hashed; try again")
	}
	return err
}

// passwordChange is the body of a change of the caller's own password.
type passwordChange struct {
	// Password in force; not needed without one, or in the first 15 minutes of a session that began
	// with an access key or a link.
	Password string `json:"password,omitempty"`
	// Password to be in force, 10 to 1024 bytes.
	NewPassword string `json:"new_password"`
}

// passwordReset is the body of a change of another user's password.
type passwordReset struct {
	// 10…1024 bytes.
	NewPassword string `json:"new_password"`
}

// changePassword changes the caller's own password. All sessions end, and that of the
// call goes on as a new one.
func (s *Service) changePassword(ctx context.Context, c *rest.Call) (any, error) {
	var sent passwordChange
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	u, err := s.Store.UserByID(ctx, c.Who.Home, c.Who.ID)
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	var running *store.UserSession
	if rest.ByCookie(c.HTTP) {
		found, err := s.current(ctx, c)
		if err != nil {
			return nil, err
		}
		running = &found
	}
	if err := s.checkCurrent(ctx, &u, running, sent.Password); err != nil {
		return nil, err
	}
	hash, err := s.accept(ctx, &u, sent.NewPassword)
	if err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
	by.Org = c.Who.Home
	return s.replace(ctx, c, by, &u, newPassword{hash: hash, goesOn: running != nil})
}

// needsCurrent reports whether a user must show the password in force to change it. A
// call with an access key, which is as good as the password, need not: running is nil.
func (s *Service) needsCurrent(running *store.UserSession) bool {
	return running != nil && (running.Proof == byPassword || s.Now().Sub(running.Began) >= freshFor)
}

// checkCurrent refuses a change of the password by somebody who found a browser open.
func (s *Service) checkCurrent(ctx context.Context, u *store.User, running *store.UserSession, plain string) error {
	if !s.needsCurrent(running) {
		return nil
	}
	if u.PasswordHash == "" {
		return rest.BadRequest("Validation failed", "password: there is none yet; sign in again with a link or an access key, and choose one within 15 minutes")
	}
	account := strings.ToLower(u.Email)
	if wait := s.accounts.Try(account); wait > 0 {
		return tooMany("Too many attempts at this account; try again later", wait)
	}
	right, err := s.verify(ctx, u.PasswordHash, plain)
	switch {
	case err != nil:
		s.accounts.Pardon(account)
		return err
	case right:
		s.accounts.Forget(account)
		return nil
	}
	return rest.BadRequest("Validation failed", "password: is not the password in force")
}

// resetPassword gives a user another password. All their sessions and links end.
func (s *Service) resetPassword(ctx context.Context, c *rest.Call) (any, error) {
	if c.Param("id") == c.Who.ID {
		return s.changePassword(ctx, c)
	}
	var sent passwordReset
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	u, err := s.Store.UserByID(ctx, c.Who.Org, c.Param("id"))
	if err != nil {
		return nil, rest.Missing(err, "User not found")
	}
	if u.Role == string(rest.Gateway) {
		return nil, rest.BadRequest("Validation failed", "id: names a gateway; gateways have an access key and no password")
	}
	hash, err := s.accept(ctx, &u, sent.NewPassword)
	if err != nil {
		return nil, err
	}
	return s.replace(ctx, c, c.Author(c.Source()), &u, newPassword{hash: hash})
}

// accept returns the hash of a password that may be chosen.
func (s *Service) accept(ctx context.Context, u *store.User, plain string) (string, error) {
	switch {
	case len(plain) < minPassword || len(plain) > password.MaxLength:
		return "", rest.BadRequest("Validation failed", fmt.Sprintf("new_password: must have %d…%d bytes", minPassword, password.MaxLength))
	case strings.EqualFold(plain, u.Email):
		return "", rest.BadRequest("Validation failed", "new_password: must not be the address")
	}
	hash, err := s.Passwords.Hash(ctx, plain)
	return hash, hashFault(err)
}

// newPassword is a password that replaces another one.
type newPassword struct {
	hash   string
	goesOn bool // the session of the call goes on
}

// replace stores a password.
func (s *Service) replace(ctx context.Context, c *rest.Call, by store.Author, u *store.User, p newPassword) (any, error) {
	var credential string
	var row store.UserSession
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		err := tx.SetUserPassword(ctx, by, u, p.hash)
		if err == nil && p.goesOn {
			credential, row, err = s.putSession(ctx, c, tx, u, byPassword)
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, rest.Refuse(fasthttp.StatusConflict, "The user was changed at the same moment; try again")
	}
	if err != nil {
		return nil, err
	}
	s.accounts.Forget(strings.ToLower(u.Email))
	done := rest.Done("Password changed; all sessions have ended", nil)
	if p.goesOn {
		done.Message, done.Meta = "Password changed; all other sessions have ended", s.answer(credential, row)
		err = rest.SetSession(c.HTTP, credential, sessionFor)
	}
	return done, err
}

// seconds returns a wait as Retry-After has it.
func seconds(wait time.Duration) string { return strconv.Itoa(int(wait/time.Second) + 1) }
