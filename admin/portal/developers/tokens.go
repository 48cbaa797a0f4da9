package developers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// How long tokens last, and how many of a kind a developer may have; one more ends the
// oldest.
const (
	sessionFor  = 12 * time.Hour
	sessionIdle = time.Hour
	maxSessions = 20

	verifyFor  = 24 * time.Hour
	resetFor   = time.Hour
	maxLetters = 3
)

// usedEvery is the precision of the time when a session was last used.
const usedEvery = time.Minute

// SessionPrefix begins the credential of a session, so that people, scanners and the
// admin recognise it.
const SessionPrefix = "slp_"

// newToken returns a random token and its hash.
func newToken(prefix string) (token string, hash []byte) {
	token = prefix + rest.RandomText(rest.Alphanumeric, rest.KeyDigits)
	return token, rest.HashOf([]byte(token))
}

// wellFormed reports whether a text can be a token.
func wellFormed(token, prefix string) bool {
	bare, begins := strings.CutPrefix(token, prefix)
	return begins && len(bare) == rest.KeyDigits && strings.Trim(bare, rest.Alphanumeric) == ""
}

// Identify returns the developer of a session, or store.ErrNotFound.
func (s *Service) Identify(ctx context.Context, credential []byte) (rest.Principal, error) {
	if !wellFormed(string(credential), SessionPrefix) {
		return rest.Principal{}, store.ErrNotFound
	}
	now := s.Now()
	shown := store.DeveloperToken{Hash: rest.HashOf(credential), Purpose: store.SessionToken, At: now}
	who, err := s.Store.DeveloperBySession(ctx, shown, now.Add(-sessionIdle))
	if err != nil {
		return rest.Principal{}, err
	}
	if now.Sub(who.UsedAt) > usedEvery {
		if err := s.Store.TouchSession(ctx, shown.Hash, now); err != nil {
			return rest.Principal{}, err
		}
	}
	return rest.Principal{Org: who.Org, Home: who.Org, ID: who.ID, Name: who.Email, Kind: "developer", Role: rest.Developer}, nil
}

// sessionHash returns the hash of the credential of a developer's call.
func sessionHash(c *rest.Call) []byte { return rest.HashOf(rest.CredentialOf(c.HTTP)) }

// createSession logs a developer in and returns the answer with the session's
// credential. It locks the developer's row, so that concurrent log-ins leave no more
// sessions than allowed.
func (s *Service) createSession(ctx context.Context, c *rest.Call, tx *store.Tx, d *store.Developer) (*rest.Envelope, error) {
	now := s.Now()
	if err := tx.RecordLogin(ctx, author(c, d.OrgID, d.Email), d, now); err != nil {
		return nil, err
	}
	credential, hash := newToken(SessionPrefix)
	until := now.Add(sessionFor)
	err := tx.PutDeveloperToken(ctx, d, store.DeveloperToken{
		Hash: hash, Purpose: store.SessionToken, IP: c.Address(), UserAgent: userAgent(c), At: now, Until: until,
	}, maxSessions)
	if err != nil {
		return nil, err
	}
	answer := rest.Done("Logged in", session{Expires: until.UTC().Format(time.RFC3339), IdleSeconds: int64(sessionIdle / time.Second)})
	answer.ID, answer.AccessKey = d.ID, credential
	return answer, nil
}

// session is the session in the answer to a log-in.
type session struct {
	// When it ends, whatever happens.
	Expires string `json:"expires"`
	// It ends when it is not used for as long.
	IdleSeconds int64 `json:"idle_seconds"`
}

// userAgent returns the User-Agent of the caller, shortened and printable.
func userAgent(c *rest.Call) string {
	text := strings.ToValidUTF8(string(c.HTTP.UserAgent()), "")
	if !rest.Printable(text) {
		return ""
	}
	return rest.Truncate(text, 200)
}

// send queues a letter with a token.
func (s *Service) send(ctx context.Context, tx *store.Tx, d *store.Developer, kind model.LetterKind) error {
	purpose, lasts := store.VerifyToken, verifyFor
	if kind == model.ResetLetter {
		purpose, lasts = store.ResetToken, resetFor
	}
	token, hash := newToken("")
	now := s.Now()
	err := tx.PutDeveloperToken(ctx, d, store.DeveloperToken{Hash: hash, Purpose: purpose, At: now, Until: now.Add(lasts)}, maxLetters)
	if err != nil {
		return err
	}
	return s.Letters.Put(ctx, tx, model.Letter{Org: d.OrgID, Kind: kind, To: d.Email, Developer: d.ID, Token: token})
}

// welcome queues the welcome letter.
func (s *Service) welcome(ctx context.Context, tx *store.Tx, d *store.Developer) error {
	return s.Letters.Put(ctx, tx, model.Letter{Org: d.OrgID, Kind: model.WelcomeLetter, To: d.Email, Developer: d.ID})
}

// invalidToken is the message about an invalid token of a letter.
const invalidToken = "The token is unknown, was used, or has expired; ask for another letter"

// errInvalidToken answers 404 for a token of a letter.
func errInvalidToken() error { return rest.Refuse(fasthttp.StatusNotFound, invalidToken) }

// byToken returns the developer who has the token of a letter, and the token as it is
// stored.
func (s *Service) byToken(ctx context.Context, token string, purpose store.TokenPurpose) (store.Developer, store.DeveloperToken, error) {
	if !wellFormed(token, "") {
		return store.Developer{}, store.DeveloperToken{}, errInvalidToken()
	}
	t := store.DeveloperToken{Hash: rest.HashOf([]byte(token)), Purpose: purpose, At: s.Now()}
	d, err := s.Store.DeveloperByToken(ctx, t)
	if errors.Is(err, store.ErrNotFound) || err == nil && d.Inactive {
		return store.Developer{}, t, errInvalidToken()
	}
	return d, t, err
}
