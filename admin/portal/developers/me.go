package developers

import (
	"context"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

func (s *Service) getMe(ctx context.Context, c *rest.Call) (any, error) {
	return s.answer(ctx, c, c.Who.ID)
}

// updateMe updates the developer's own sign-up fields. Only an operator can change the
// address, as a new one must be verified.
func (s *Service) updateMe(ctx context.Context, c *rest.Call) (any, error) {
	have, err := c.IfMatch()
	if err != nil {
		return nil, err
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	sent, err := model.Parse[model.Developer](body)
	if err != nil {
		return nil, err
	}
	conf, err := s.Configurations.Configuration(ctx, c.Who.Org)
	if err != nil {
		return nil, err
	}
	var d store.Developer
	err = s.Store.InTx(ctx, func(tx *store.Tx) error {
		ref := store.DeveloperRef{ID: c.Who.ID, Version: have}
		d, err = tx.UpdateDeveloper(ctx, c.Author("portal"), ref, func(d *store.Developer) error {
			return profile(d, sent, conf.SignupFields)
		})
		return err
	})
	if err != nil {
		return nil, rest.Missing(err, missing)
	}
	c.SetVersion(d.Version)
	return rest.Done("Data updated", nil), nil
}

// profile updates the fields that developers may change themselves.
func profile(d *store.Developer, sent *model.Developer, asked []string) error {
	if sent.Email != "" && sent.Email != d.Email {
		return rest.BadRequest("Validation failed", "email: can only be changed by an administrator of the portal")
	}
	before, err := fieldsOf(d)
	if err != nil {
		return err
	}
	if problems := signupFieldProblems(asked, before, sent.Fields); problems != nil {
		return rest.BadRequest("Validation failed", problems...)
	}
	for _, name := range asked {
		before[name] = sent.Fields[name]
	}
	d.Fields, err = encodeFields(before)
	return err
}

// ownPassword confirms a call with the developer's password.
type ownPassword struct {
	// Password of the developer, which confirms the call.
	Password string `json:"password"`
}

// removeMe deletes the developer's account. It requires the password: a stolen session
// must not be enough.
func (s *Service) removeMe(ctx context.Context, c *rest.Call) (any, error) {
	var sent ownPassword
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if _, err := s.authenticateSelf(ctx, c, "password", sent.Password); err != nil {
		return nil, err
	}
	if err := s.delete(ctx, c.Author("portal"), c.Who.ID); err != nil {
		return nil, rest.Missing(err, missing)
	}
	return rest.Done("Data deleted", nil), nil
}

// authenticateSelf returns the developer who calls, if the password is right.
func (s *Service) authenticateSelf(ctx context.Context, c *rest.Call, member, plain string) (*store.Developer, error) {
	g, err := s.newGuess(c, c.Who.Org, c.Who.Name, false)
	if err != nil {
		return nil, err
	}
	d, err := s.Store.DeveloperByID(ctx, c.Who.Org, c.Who.ID)
	if err != nil {
		g.succeeded(err)
		return nil, rest.Missing(err, missing)
	}
	ok, err := g.check(ctx, &d, plain)
	if err == nil && !ok {
		err = rest.Refuse(fasthttp.StatusForbidden, "The password is wrong", member+": is not the present one")
	}
	return &d, err
}

// passwordChange is the body of a change of the own password.
type passwordChange struct {
	// Password in force.
	Current string `json:"current_password"`
	// Password to be in force, 6 to 1024 bytes; none of the last 5.
	Password string `json:"password"`
}

// changePassword changes the developer's password and ends all other sessions.
func (s *Service) changePassword(ctx context.Context, c *rest.Call) (any, error) {
	var sent passwordChange
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	d, err := s.authenticateSelf(ctx, c, "current_password", sent.Current)
	if err != nil {
		return nil, err
	}
	wanted, err := s.accept(ctx, d, "password", sent.Password)
	if err != nil {
		return nil, err
	}
	wanted.Spare = sessionHash(c)
	if err := s.setPassword(ctx, c.Author("portal"), d, wanted); err != nil {
		return nil, err
	}
	return rest.Done("Password changed", nil), nil
}

// developerSession is one session as the developer sees it.
type developerSession struct {
	// Id of the session, which names it in calls; it is no credential.
	ID string `json:"id"`
	// IP address of the log-in.
	IP string `json:"ip"`
	// User-Agent of the browser.
	UserAgent string `json:"user_agent"`
	// Time of the log-in (RFC 3339).
	Began string `json:"began" format:"date-time"`
	// Time of the last call (RFC 3339), to the minute.
	UsedAt string `json:"used_at" format:"date-time"`
	// Time at which the session ends (RFC 3339).
	Expires string `json:"expires" format:"date-time"`
	// Whether it is the session of this call.
	Current bool `json:"current"`
}

// developerSessions is all sessions of a developer.
type developerSessions struct {
	// Open sessions of the developer.
	Data []developerSession `json:"Data"`
	// Always 1; clients of lists expect it.
	Pages int64 `json:"Pages"`
}

func (s *Service) listSessions(ctx context.Context, c *rest.Call) (any, error) {
	now := s.Now()
	sessions, err := s.Store.DeveloperSessions(ctx, c.Who.ID, now, now.Add(-sessionIdle))
	if err != nil {
		return nil, err
	}
	current := store.SessionID(sessionHash(c))
	all := developerSessions{Data: make([]developerSession, 0, len(sessions)), Pages: 1}
	for _, one := range sessions {
		all.Data = append(all.Data, developerSession{
			ID: one.ID, IP: one.IP, UserAgent: one.UserAgent, Current: one.ID == current,
			Began: one.Began.UTC().Format(time.RFC3339), UsedAt: one.UsedAt.UTC().Format(time.RFC3339),
			Expires: one.Expires.UTC().Format(time.RFC3339),
		})
	}
	return all, nil
}

// endOtherSessions ends all sessions of the developer but the calling one.
func (s *Service) endOtherSessions(ctx context.Context, c *rest.Call) (any, error) {
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		return tx.EndSessions(ctx, c.Author("portal"), c.Who.ID, sessionHash(c))
	})
	if err != nil {
		return nil, err
	}
	return rest.Done("All other sessions have ended", nil), nil
}

func (s *Service) endSession(ctx context.Context, c *rest.Call) (any, error) {
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		return tx.EndSession(ctx, c.Author("portal"), c.Who.ID, c.Param("id"))
	})
	if err != nil {
		return nil, rest.Missing(err, "Session not found")
	}
	return rest.Done("The session has ended", nil), nil
}
