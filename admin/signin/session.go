package signin

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// How long a session lasts, and how many a user may have; one more ends the oldest.
const (
	sessionFor  = 12 * time.Hour
	sessionIdle = time.Hour
	maxSessions = 20
)

// usedEvery is the precision of the time when a session was last used.
const usedEvery = time.Minute

// session is the answer about a session.
type session struct {
	// User whose session it is.
	User sessionUser `json:"user"`
	// Token to be sent as X-CSRF-Token with calls that change something.
	CSRFToken string `json:"csrf_token"`
	// Time at which the session ends, whatever happens; it also ends after an hour without a call.
	ExpiresAt time.Time `json:"expires_at"`

	// Whether the password in force must be shown to change it.
	NeedsPassword bool `json:"needs_password"`
}

// sessionUser is the user of a session.
type sessionUser struct {
	// Id of the user.
	ID string `json:"id"`
	// E-mail address of the user.
	Email string `json:"email_address"`
	// First name; empty: not known.
	FirstName string `json:"first_name"`
	// Last name; empty: not known.
	LastName string `json:"last_name"`
	// What the user may do.
	Role string `json:"role" enum:"viewer,approver,editor,admin"`
	// Id of the organisation that the user belongs to.
	OrgID string `json:"org_id"`
	// Whether the user has chosen a password.
	HasPassword bool `json:"has_password"`
}

// start is what a session begins with.
type start struct {
	proof string
	link  []byte // hash of its token, which is used up; nil: none
}

// createSession begins a session of a user, in place of the one that the caller has, and
// answers with its cookie. It returns store.ErrNotFound if the user was changed, or the
// link used, at the same moment.
func (s *Service) createSession(ctx context.Context, c *rest.Call, u *store.User, begun start) (*session, error) {
	by := author(c, u)
	var credential string
	var row store.UserSession
	err := s.Store.InTx(ctx, func(tx *store.Tx) error {
		if begun.link != nil {
			if err := tx.UseLink(ctx, u, begun.link, s.Now()); err != nil {
				return err
			}
		}
		if err := s.endFormer(ctx, c, tx); err != nil {
			return err
		}
		var err error
		credential, row, err = s.putSession(ctx, c, tx, u, begun.proof)
		if err != nil {
			return err
		}
		return tx.Audit(ctx, by, store.AuditEntry{Action: "signed in", Kind: "user", ID: u.ID})
	})
	if err != nil {
		return nil, err
	}
	s.Log.Info("a user signed in", "user", u.Email, "with", begun.proof, "ip", c.Address())
	return s.answer(credential, row), rest.SetSession(c.HTTP, credential, sessionFor)
}

// putSession stores a new session.
func (s *Service) putSession(ctx context.Context, c *rest.Call, tx *store.Tx, u *store.User, proof string) (string, store.UserSession, error) {
	credential := rest.SessionPrefix + rest.RandomText(rest.Alphanumeric, rest.KeyDigits)
	now := s.Now()
	t := store.UserToken{
		Hash: rest.HashOf([]byte(credential)), Purpose: store.SessionToken, Proof: proof, IP: c.Address(), UserAgent: userAgent(c), At: now, Until: now.Add(sessionFor),
	}
	err := tx.BeginUserSession(ctx, u, t, maxSessions)
	return credential, store.UserSession{User: *u, Proof: proof, Began: now, Expires: t.Until}, err
}

// endFormer ends the session that the caller has, so that nobody who knows it, or planted
// it, shares the one that begins.
func (s *Service) endFormer(ctx context.Context, c *rest.Call, tx *store.Tx) error {
	if !rest.ByCookie(c.HTTP) {
		return nil
	}
	return tx.DropUserSession(ctx, sessionHash(c))
}

// sessionHash returns the hash of the session by which a call is made.
func sessionHash(c *rest.Call) []byte { return rest.HashOf(rest.CredentialOf(c.HTTP)) }

func (s *Service) answer(credential string, row store.UserSession) *session {
	u := &row.User
	return &session{
		User: sessionUser{
			ID: u.ID, Email: u.Email, FirstName: u.FirstName, LastName: u.LastName, Role: u.Role, OrgID: u.OrgID, HasPassword: u.PasswordHash != "",
		},
		CSRFToken: rest.CSRFToken([]byte(credential)), ExpiresAt: row.Expires.UTC().Truncate(time.Second), NeedsPassword: s.needsCurrent(&row),
	}
}

// author returns the author of what a user does before the call is theirs.
func author(c *rest.Call, u *store.User) store.Author {
	return store.Author{Org: u.OrgID, Name: u.Email, Kind: "user", IP: c.Address(), Source: "api"}
}

// userAgent returns the User-Agent of the caller, shortened and printable.
func userAgent(c *rest.Call) string {
	text := strings.ToValidUTF8(string(c.HTTP.UserAgent()), "")
	if !rest.Printable(text) {
		return ""
	}
	return rest.Truncate(text, 200)
}

// Identify returns the user of a session, or store.ErrNotFound.
func (s *Service) Identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	if !wellFormed(credential) {
		return rest.Principal{}, store.ErrNotFound
	}
	now, hash := s.Now(), rest.HashOf(credential)
	found, err := s.Store.UserBySession(ctx, hash, now, now.Add(-sessionIdle))
	if err == nil && !signsIn(&found.User) {
		err = store.ErrNotFound
	}
	if err != nil {
		return rest.Principal{}, err
	}
	if now.Sub(found.UsedAt) > usedEvery {
		if err := s.Store.TouchUserSession(ctx, hash, now); err != nil {
			return rest.Principal{}, err
		}
	}
	u := &found.User
	return rest.Principal{Org: u.OrgID, Home: u.OrgID, ID: u.ID, Name: u.Email, Kind: "user", Role: rest.Role(u.Role)}, nil
}

// noSession answers calls that are made with an access key.
const noSession = "The call is made with an access key, not in a session"

// current returns the session by which a call is made; 404 without one.
func (s *Service) current(ctx context.Context, c *rest.Call) (store.UserSession, error) {
	if !rest.ByCookie(c.HTTP) {
		return store.UserSession{}, rest.NotFound(noSession)
	}
	now := s.Now()
	found, err := s.Store.UserBySession(ctx, sessionHash(c), now, now.Add(-sessionIdle))
	return found, rest.Missing(err, noSession)
}

func (s *Service) getSession(ctx context.Context, c *rest.Call) (any, error) {
	found, err := s.current(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.answer(string(rest.CredentialOf(c.HTTP)), found), nil
}

func (s *Service) signOut(ctx context.Context, c *rest.Call) (any, error) {
	if !rest.ByCookie(c.HTTP) {
		return nil, rest.NotFound(noSession)
	}
	err := s.end(ctx, c, store.SessionID(sessionHash(c)))
	if err != nil && !errors.Is(err, store.ErrNotFound) { // it may have ended at the same moment
		return nil, err
	}
	rest.EndSession(c.HTTP)
	return rest.Done("Signed out", nil), nil
}

// end ends a session of the caller.
func (s *Service) end(ctx context.Context, c *rest.Call, id string) error {
	by := c.Author(c.Source())
	by.Org = c.Who.Home
	return s.Store.InTx(ctx, func(tx *store.Tx) error { return tx.EndUserSession(ctx, by, c.Who.ID, id) })
}

// sessionList are the sessions of a user, newest first.
type sessionList struct {
	// Open sessions of the user, newest first.
	Sessions []sessionRow `json:"sessions"`
}

// sessionRow is one session in a list.
type sessionRow struct {
	// Id of the session, which ends it in DELETE /api/session/{id}; it is no credential.
	ID string `json:"id"`
	// Time of the sign-in.
	CreatedAt time.Time `json:"created_at"`
	// Time of the last call, to the minute.
	LastUsedAt time.Time `json:"last_used_at"`
	// Time at which the session ends.
	ExpiresAt time.Time `json:"expires_at"`
	// IP address of the sign-in.
	Address string `json:"address"`
	// User-Agent of the browser.
	Agent string `json:"agent"`
	// What the session began with.
	Proof string `json:"proof" enum:"password,access_key,link"`
	// Whether it is the session of this call.
	Current bool `json:"current"`
}

func (s *Service) listSessions(ctx context.Context, c *rest.Call) (any, error) {
	now := s.Now()
	rows, err := s.Store.UserSessions(ctx, c.Who.ID, now, now.Add(-sessionIdle))
	if err != nil {
		return nil, err
	}
	list := sessionList{Sessions: make([]sessionRow, 0, len(rows))}
	own := ""
	if rest.ByCookie(c.HTTP) {
		own = store.SessionID(sessionHash(c))
	}
	for _, r := range rows {
		list.Sessions = append(list.Sessions, sessionRow{
			ID: r.ID, CreatedAt: r.Began.UTC(), LastUsedAt: r.UsedAt.UTC(), ExpiresAt: r.Expires.UTC(), Address: r.IP, Agent: r.UserAgent, Proof: r.Proof, Current: r.ID == own,
		})
	}
	return list, nil
}

func (s *Service) endSession(ctx context.Context, c *rest.Call) (any, error) {
	id := c.Param("id")
	if err := s.end(ctx, c, id); err != nil {
		return nil, rest.Missing(err, "Session not found")
	}
	if rest.ByCookie(c.HTTP) && id == store.SessionID(sessionHash(c)) {
		rest.EndSession(c.HTTP)
	}
	return rest.Done("Session ended", nil), nil
}

// tooManyHere is the message to an address with too many failures.
const tooManyHere = "Too many attempts from this address; try again later"

// tooMany answers 429 with Retry-After.
func tooMany(message string, wait time.Duration) error {
	f := rest.Refuse(fasthttp.StatusTooManyRequests, message)
	f.Header = map[string]string{fasthttp.HeaderRetryAfter: seconds(wait)}
	return f
}
