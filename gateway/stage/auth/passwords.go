package auth

import (
	"errors"
	"strconv"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
)

const malformed = "Attempted access with malformed header, "

var (
	notWords  = pipeline.NewRejection(pipeline.ReasonAuthMalformed, 400, malformed+"header not in basic auth format")
	notBase64 = pipeline.NewRejection(pipeline.ReasonAuthMalformed, 400, malformed+"auth data not encoded correctly")
	notPair   = pipeline.NewRejection(pipeline.ReasonAuthMalformed, 400, malformed+"values not in basic auth format")
	throttled = pipeline.NewRejection(pipeline.ReasonAuthThrottled, 429, "Too many attempts with a wrong password, please try again later").Raising(event.AuthFailure)
	tooMany   = pipeline.NewRejection(pipeline.ReasonOverloaded, 503, "Passwords cannot be checked at the moment, please try again")
)

// passwordMode authenticates by a user name and a password (RFC 7617).
type passwordMode struct {
	*Auth
	source
	scope          scope
	missing, wrong *pipeline.Rejection // with the challenge of the API
	body           *inBody             // searched if the header has none; nil: bodies are not searched
}

var errNoPasswords = errors.New("use_basic_auth: this gateway checks no passwords")

func newPasswordMode(a *Auth, def *definition.API, from source) (mode, error) {
	if a.passwords == nil {
		return nil, errNoPasswords
	}
	m := &passwordMode{
		Auth: a, source: from, scope: a.sessions.scope(definition.UserCredential, def.OrgID),
		missing: pipeline.NewRejection(pipeline.ReasonAuthMissing, 401, missing.Message).Named(pipeline.TextFieldMissing),
		wrong:   pipeline.NewRejection(pipeline.ReasonAuthUnknown, 401, "User not authorised").Raising(event.AuthFailure),
	}
	var err error
	if m.body, err = newInBody(def.BasicAuth, a.maxBody); err != nil {
		return nil, err
	}
	if m.body == nil { // with a challenge a browser would ask its user, although a page sends the body
		m.missing.Challenge = challenge(def.Name)
		m.wrong.Challenge = m.missing.Challenge
	}
	return m, nil
}

// WithPasswords sets what checks passwords, and returns a. Call it before a is used.
func (a *Auth) WithPasswords(v *basic.Verifier) *Auth {
	a.passwords = v
	return a
}

// WithBodies sets the largest body that is searched for a password, in bytes, and
// returns a. Call it before a is used.
func (a *Auth) WithBodies(most int) *Auth {
	a.maxBody = most
	return a
}

// challenge returns the WWW-Authenticate header of an API.
func challenge(name string) string {
	return "Basic realm=" + quoted(name)
}

// Handle finds the user's session and checks the password.
func (m *passwordMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	colon, refused := m.inHeader(ex)
	if refused != nil && m.body != nil {
		ex.TokenBuf, colon, refused = m.body.find(append(ex.TokenBuf[:0], m.scope.org...), ex.Call)
	}
	if refused != nil {
		return ex.Reject(refused)
	}
	user, password := ex.TokenBuf[:colon], ex.TokenBuf[colon+1:]
	name := user[len(m.scope.org):]
	if len(name) == 0 {
		return ex.Reject(m.wrong)
	}
	e, err := m.lookUp(ex, &m.scope, name)
	if err != nil && !errors.Is(err, keystore.ErrNotFound) {
		return refuse(ex, err, m.wrong)
	}
	if err == nil && m.passwords.Knows(user, password, e.session.BasicAuth.Password, ex.Started) {
		return admit(ex, user, e)
	}
	return m.check(ex, user, password, e)
}

// inHeader sets ex.TokenBuf to the organisation and the user name, a colon and the
// password of the header, and returns the index of the colon.
func (m *passwordMode) inHeader(ex *pipeline.Exchange) (colon int, refused *pipeline.Rejection) {
	value := trim(m.find(ex))
	switch {
	case len(value) == 0:
		return 0, m.missing
	case len(value) > maxToken:
		return 0, notWords
	}
	both, colon, fault := basic.Decode(append(ex.TokenBuf[:0], m.scope.org...), value)
	ex.TokenBuf = both
	switch fault {
	case basic.NotWords:
		return 0, notWords
	case basic.NotBase64:
		return 0, notBase64
	case basic.NotPair:
		return 0, notPair
	}
	return colon, nil
}

// check checks a password that is not cached. e is nil if there is no such user, which
// the client cannot distinguish from a wrong password.
func (m *passwordMode) check(ex *pipeline.Exchange, user, password []byte, e *entry) pipeline.Verdict {
	a := basic.Attempt{User: user, Password: password, From: ex.Client}
	if e != nil {
		a.Stored = e.session.BasicAuth.Password
	}
	find := m.passwords.Check
	if ex.IsDry() {
		find = m.passwords.Look
	}
	outcome, wait := find(a)
	switch outcome {
	case basic.Right:
		return admit(ex, user, e)
	case basic.Throttled:
		ex.RetryAfter = int((wait + time.Second - 1) / time.Second)
		return ex.Reject(throttled)
	case basic.Busy:
		ex.RetryAfter = int((wait + time.Second - 1) / time.Second)
		return ex.Reject(tooMany)
	}
	return ex.Reject(m.wrong)
}

// Explain says what is wrong with the credentials, but never whether the user exists.
func (m *passwordMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	f.Fact("use_basic_auth", "true", "", "definition")
	m.source.explain(ex, f)
	if m.body != nil {
		f.Fact("basic_auth.extract_from_body", "true", "", "definition")
		f.Fact("passwords.max_body", strconv.Itoa(m.body.most), "", "setting")
	}
	switch ex.Rejection {
	case nil:
	case noName, noPassword:
		f.Fix = "send a user name and a password " + m.wanted() + ", or a body in which basic_auth.body_user_regexp and body_password_regexp find them"
	case bodyTooLarge:
		f.Fix = "send a smaller body, send the password " + m.wanted() + ", or raise passwords.max_body"
	case m.missing:
		f.Fix = "send a user name and a password " + m.wanted()
	case notWords, notBase64, notPair:
		f.Fix = `send "Basic" and the base64 form of name:password, neither of which has a colon in it`
	case m.wrong:
		f.Fix = fixFor(ex, "send the name and the password of a user", "key_hash must be that of a user of the API's organisation")
	case throttled:
		f.Fix = "wait for " + strconv.Itoa(ex.RetryAfter) + " s: too many passwords were wrong lately"
	case tooMany:
		f.Fix = "try again: too many passwords are being checked"
	default:
		explainEnd(ex, f)
	}
}
