package developers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/store/accounts"
)

// How long tokens last, and how many of a kind a developer has at most: the oldest
// ends when there is one more.
const (
	sessionFor  = 12 * time.Hour
	sessionIdle = time.Hour
	maxSessions = 20

	verifyFor  = 24 * time.Hour
	resetFor   = time.Hour
	maxLetters = 3
)

// usedEvery is how exactly it is known when a session was used last.
const usedEvery = time.Minute

// SessionPrefix begins the credential of a session, so that people, scanners and the
// admin tell it from others.
const SessionPrefix = "slp_"

// newToken returns a random token and what is stored of it.
func newToken(prefix string) (token string, hash []byte) {
	token = prefix + rest.RandomText(rest.Alphanumeric, rest.KeyDigits)
	return token, rest.HashOf([]byte(token))
}

// wellFormed tells whether a text can be a token.
func wellFormed(token, prefix string) bool {
	bare, begins := strings.CutPrefix(token, prefix)
	return begins && len(bare) == rest.KeyDigits && strings.Trim(bare, rest.Alphanumeric) == ""
}

// Identify returns which developer has a session's credential; store.ErrNotFound
// is nobody.
func (s *Service) Identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	if !wellFormed(string(credential), SessionPrefix) {
		return rest.Principal{}, store.ErrNotFound
	}
	now := s.Now()
	shown := accounts.Token{Hash: rest.HashOf(credential), Purpose: accounts.Session, At: now}
	who, err := accounts.BySession(ctx, s.Store, shown, now.Add(-sessionIdle))
	if err != nil {
		return rest.Principal{}, err
	}
	if now.Sub(who.UsedAt) > usedEvery {
		if err := accounts.Touch(ctx, s.Store, shown.Hash, now); err != nil {
			return rest.Principal{}, err
		}
	}
	return rest.Principal{Org: who.Org, ID: who.ID, Name: who.Email, Kind: "developer", Role: rest.Developer}, nil
}

// seatOf is the hash of the credential that a developer's call shows.
func seatOf(c *rest.Call) []byte { return rest.HashOf(rest.CredentialOf(c.HTTP)) }

// admit logs a developer in, whose password was right, and returns the answer that
// shows the session's credential. The developer's row is locked by it, so that log-ins at once
// leave no more sessions than there may be.
func (s *Service) admit(ctx context.Context, c *rest.Call, tx *store.Tx, d *accounts.Developer) (*rest.Envelope, error) {
	now := s.Now()
	if err := accounts.Enter(ctx, tx, author(c, d.OrgID, d.Email), d, now); err != nil {
		return nil, err
	}
	credential, hash := newToken(SessionPrefix)
	until := now.Add(sessionFor)
	err := accounts.PutToken(ctx, tx, d, accounts.Token{
		Hash: hash, Purpose: accounts.Session, IP: c.Address(), UserAgent: userAgent(c), At: now, Until: until,
	}, maxSessions)
	if err != nil {
		return nil, err
	}
	answer := rest.Done("Logged in", session{Expires: until.UTC().Format(time.RFC3339), IdleSeconds: int64(sessionIdle / time.Second)})
	answer.ID, answer.AccessKey = d.ID, credential
	return answer, nil
}

// session is what the answer to a log-in says of the session.
type session struct {
	Expires     string `json:"expires" doc:"when it ends, whatever happens"`
	IdleSeconds int64  `json:"idle_seconds" doc:"it ends when it is not used for as long"`
}

// userAgent is what the caller says it is, as far as it can stand in a list.
func userAgent(c *rest.Call) string {
	text := strings.ToValidUTF8(string(c.HTTP.UserAgent()), "")
	if !rest.Printable(text) {
		return ""
	}
	return rest.Truncate(text, 200)
}

// send queues a letter with a link that holds a token.
func (s *Service) send(ctx context.Context, tx *store.Tx, d *accounts.Developer, kind record.LetterKind) error {
	purpose, lasts := accounts.Verify, verifyFor
	if kind == record.ResetLetter {
		purpose, lasts = accounts.Reset, resetFor
	}
	token, hash := newToken("")
	now := s.Now()
	err := accounts.PutToken(ctx, tx, d, accounts.Token{Hash: hash, Purpose: purpose, At: now, Until: now.Add(lasts)}, maxLetters)
	if err != nil {
		return err
	}
	return s.Letters.Put(ctx, tx, record.Letter{Org: d.OrgID, Kind: kind, To: d.Email, Developer: d.ID, Token: token})
}

// welcome queues the letter that greets a developer.
func (s *Service) welcome(ctx context.Context, tx *store.Tx, d *accounts.Developer) error {
	return s.Letters.Put(ctx, tx, record.Letter{Org: d.OrgID, Kind: record.WelcomeLetter, To: d.Email, Developer: d.ID})
}

// tokenGone is the answer to a letter's token that is none.
const tokenGone = "The token is unknown, was used, or has expired; ask for another letter"

// errTokenGone refuses a letter's token.
func errTokenGone() error { return rest.Refuse(fasthttp.StatusNotFound, tokenGone) }

// byToken returns whose a letter's token is, and what it is stored as.
func (s *Service) byToken(ctx context.Context, token string, purpose accounts.Purpose) (accounts.Developer, accounts.Token, error) {
	if !wellFormed(token, "") {
		return accounts.Developer{}, accounts.Token{}, errTokenGone()
	}
	t := accounts.Token{Hash: rest.HashOf([]byte(token)), Purpose: purpose, At: s.Now()}
	d, err := accounts.ByToken(ctx, s.Store, t)
	if errors.Is(err, store.ErrNotFound) || err == nil && d.Inactive {
		return accounts.Developer{}, t, errTokenGone()
	}
	return d, t, err
}
