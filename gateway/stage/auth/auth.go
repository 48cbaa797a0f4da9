// Package auth authenticates requests: it finds the session of the credentials in a
// request, and refuses those that are unknown, inactive or expired.
//
// Sessions are cached as objects that are ready for requests, in one tier. With a
// compiled grant a session takes 1.0 KiB: 200 MB with the default of 200,000 cached
// sessions, 1.0 GB with a million. A garbage collection marks them in 0.16 s and
// 1.4 s of CPU on a busy machine. A packed form takes a quarter of the memory, but then
// each request unpacks its session and compiles its rights.
package auth

import (
	"errors"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
)

const noAccess = "Access to this API has been disallowed"

var (
	missing     = pipeline.NewRejection(pipeline.ReasonAuthMissing, 401, "Authorization field missing").Named(pipeline.TextFieldMissing)
	unknown     = pipeline.NewRejection(pipeline.ReasonAuthUnknown, 403, noAccess).Raising(event.AuthFailure).Named(pipeline.TextKeyNotFound)
	noKey       = pipeline.NewRejection(pipeline.ReasonAuthUnknown, 403, noAccess).Raising(event.AuthFailure).Named(pipeline.TextKeyInvalid)
	inactive    = pipeline.NewRejection(pipeline.ReasonAuthInactive, 403, "Key is inactive, please renew").Raising(event.KeyExpired)
	expired     = pipeline.NewRejection(pipeline.ReasonAuthExpired, 401, "Key has expired, please renew").Raising(event.KeyExpired)
	unavailable = pipeline.NewRejection(pipeline.ReasonKeyStoreUnavailable, 503, "Keys cannot be checked at the moment, please try again")
)

// maxToken is the longest credential that is looked up, in bytes. It bounds the size
// of a cached one.
const maxToken = 4096

// defaultMaxBody is how much of a body is searched for a password by default, in
// bytes.
const defaultMaxBody = 64 << 10

// Auth authenticates requests of all APIs.
type Auth struct {
	sessions  *Sessions
	minLength int
	passwords *basic.Verifier // nil: APIs with basic authentication are not supported
	maxBody   int             // bytes of a body that are searched for a password
	tokens    *jwt.Tokens     // nil: APIs with JSON Web Tokens are not supported
}

// New returns an Auth with sessions. Credentials shorter than minLength bytes are
// refused without being looked up.
func New(sessions *Sessions, minLength int) *Auth {
	return &Auth{sessions: sessions, minLength: minLength, maxBody: defaultMaxBody}
}

// Compile returns the stage for an API, or nil if the API is keyless.
func (a *Auth) Compile(def *definition.API) (pipeline.Stage, error) {
	if def.UseKeyless {
		return nil, nil
	}
	modes, places, err := a.modesOf(def)
	if err != nil {
		return nil, err
	}
	return &stage{Auth: a, modes: modes, strip: newStrip(def, places)}, nil
}

// stage authenticates by all modes of an API.
type stage struct {
	*Auth
	modes []mode
	strip *strip // nil: credentials are forwarded
}

// Handle finds the session of the caller, that of the last mode.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if v := s.authenticate(ex); v != pipeline.Next {
		return v
	}
	if s.strip != nil {
		s.strip.apply(ex)
	}
	return pipeline.Next
}

// authenticate runs the modes. A dry run and a call of the playground may name the
// calling key instead: then all credentials are taken to be valid, and the key has to be
// one that the last mode would find.
func (s *stage) authenticate(ex *pipeline.Exchange) pipeline.Verdict {
	switch {
	case ex.Play != nil && ex.Play.Policy != "":
		return s.admitPolicies(ex, ex.Play.Policy)
	case ex.IsRecorded() && ex.Session == nil && len(ex.DryRun.Policies) > 0:
		return s.admitPolicies(ex, ex.DryRun.Policies...)
	case isNamed(ex):
		return s.modes[len(s.modes)-1].Named(ex)
	}
	for _, m := range s.modes {
		if v := m.Handle(ex); v != pipeline.Next {
			return v
		}
	}
	return pipeline.Next
}

// lookUp finds the session of a credential. A dry run leaves caches and counts as they
// are.
func (a *Auth) lookUp(ex *pipeline.Exchange, sc *scope, token []byte) (*entry, error) {
	if ex.IsDry() {
		return a.sessions.findDry(sc, token, ex.Started)
	}
	return a.sessions.find(sc, token, ex.Started)
}

// admit sets the caller of an exchange, unless its session is inactive, has expired
// or is bound to a certificate that the client does not have.
func admit(ex *pipeline.Exchange, token []byte, e *entry) pipeline.Verdict {
	ex.Token, ex.KeyHash, ex.KeyName, ex.Session, ex.Grants = token, e.identity(), e.name(), &e.session, &e.grants
	ex.InGrace = e.is(isInGrace)
	if r := unbound(ex, &e.session); r != nil {
		return ex.Reject(r)
	}
	switch {
	case e.is(isOff):
		return ex.Reject(inactive)
	case e.session.Expires > 0 && ex.Moment().Unix() >= e.session.Expires:
		return ex.Reject(expired)
	}
	return pipeline.Next
}

// refuse rejects a request without a session: by absent if there is none, but not if
// the store could not be asked.
func refuse(ex *pipeline.Exchange, err error, absent *pipeline.Rejection) pipeline.Verdict {
	if errors.Is(err, keystore.ErrNotFound) {
		return ex.Reject(absent)
	}
	ex.RetryAfter = 1
	return ex.Reject(unavailable)
}
