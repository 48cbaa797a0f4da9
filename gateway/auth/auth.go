// Package auth finds out who calls: it takes the credentials out of a request,
// finds the session that they stand for, and refuses what is unknown, inactive
// or expired.
package auth

import (
	"errors"

	"github.com/sluicegate/sluice/gateway/auth/basic"
	"github.com/sluicegate/sluice/gateway/auth/jwt"
	"github.com/sluicegate/sluice/gateway/pipeline"
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

// maxToken is the longest credential that is looked up, in bytes: it bounds what
// a cached one can hold on to.
const maxToken = 4096

// bodiesUsual is how much of a body is looked through when nothing else is said,
// in bytes.
const bodiesUsual = 64 << 10

// Auth authenticates the calls of all APIs.
type Auth struct {
	sessions  *Sessions
	least     int
	passwords *basic.Verifier // nil: no API can ask for passwords
	bodies    int             // bytes of a body that are looked through for a password
	tokens    *jwt.Tokens     // nil: no API can ask for JSON Web Tokens
}

// New returns what authenticates with sessions. Credentials shorter than least
// bytes are refused without being looked up.
func New(sessions *Sessions, least int) *Auth {
	return &Auth{sessions: sessions, least: least, bodies: bodiesUsual}
}

// Compile returns the stage for an API, or nil when anybody may call it.
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

// stage has a caller pass all modes that an API asks for.
type stage struct {
	*Auth
	modes []mode
	strip *strip // nil: everything is forwarded
}

// Handle finds the session of whoever calls: of several modes the last one's
// counts.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if v := s.pass(ex); v != pipeline.Next {
		return v
	}
	if s.strip != nil {
		s.strip.apply(ex)
	}
	return pipeline.Next
}

// pass has the caller pass the modes. An explanation may name the key that calls
// instead: then it is taken for granted that its holder has what all modes want,
// and the key has to be one that the mode whose session counts would find.
func (s *stage) pass(ex *pipeline.Exchange) pipeline.Verdict {
	if isNamed(ex) {
		return s.modes[len(s.modes)-1].Named(ex)
	}
	for _, m := range s.modes {
		if v := m.Handle(ex); v != pipeline.Next {
			return v
		}
	}
	return pipeline.Next
}

// lookUp finds the session of a credential, without a trace when the exchange is
// only thought of.
func (a *Auth) lookUp(ex *pipeline.Exchange, sc *scope, token []byte) (*entry, error) {
	if ex.Dry {
		return a.sessions.foresee(sc, token, ex.Started)
	}
	return a.sessions.find(sc, token, ex.Started, ex)
}

// admit lets a caller in whose session was found, unless that is inactive or
// past its end, or bound to a certificate that the caller does not have.
func admit(ex *pipeline.Exchange, token []byte, e *entry) pipeline.Verdict {
	ex.Token, ex.KeyHash, ex.KeyName, ex.Session, ex.Grants = token, e.identity(), e.name(), e.session, &e.grants
	ex.Retiring = e.is(isRetiring)
	if r := unbound(ex, e.session); r != nil {
		return ex.Reject(r)
	}
	switch {
	case e.is(isOff):
		return ex.Reject(inactive)
	case e.expires > 0 && ex.Moment().Unix() >= e.expires:
		return ex.Reject(expired)
	}
	return pipeline.Next
}

// refuse answers for a credential without a session: that the store could not be
// asked is never told as if the key were wrong.
func refuse(ex *pipeline.Exchange, err error, absent *pipeline.Rejection) pipeline.Verdict {
	if errors.Is(err, keystore.ErrNotFound) {
		return ex.Reject(absent)
	}
	ex.RetryAfter = 1
	return ex.Reject(unavailable)
}
