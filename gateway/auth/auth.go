// Package auth finds out who calls: it takes the credential out of a request,
// finds the session that it stands for, and refuses what is unknown, inactive
// or expired.
package auth

import (
	"errors"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keystore"
)

var (
	missing     = pipeline.NewRejection(pipeline.ReasonAuthMissing, 401, "Authorization field missing")
	unknown     = pipeline.NewRejection(pipeline.ReasonAuthUnknown, 403, "Access to this API has been disallowed").Raising(event.AuthFailure)
	inactive    = pipeline.NewRejection(pipeline.ReasonAuthInactive, 403, "Key is inactive, please renew").Raising(event.KeyExpired)
	expired     = pipeline.NewRejection(pipeline.ReasonAuthExpired, 401, "Key has expired, please renew").Raising(event.KeyExpired)
	unavailable = pipeline.NewRejection(pipeline.ReasonKeyStoreUnavailable, 503, "Keys cannot be checked at the moment, please try again")
)

// maxToken is the longest credential that is looked up, in bytes: it bounds what
// a cached one can hold on to.
const maxToken = 4096

// Auth authenticates the calls of all APIs.
type Auth struct {
	sessions *Sessions
	least    int
}

// New returns what authenticates with sessions. Credentials shorter than least
// bytes are refused without being looked up.
func New(sessions *Sessions, least int) *Auth {
	return &Auth{sessions: sessions, least: least}
}

// Compile returns the stage for an API, or nil when anybody may call it.
func (a *Auth) Compile(def *definition.API) pipeline.Stage {
	if def.UseKeyless {
		return nil
	}
	return &stage{Auth: a, modes: modesOf(def), scope: a.sessions.scopeOf(def.OrgID), strip: stripped(def)}
}

type stage struct {
	*Auth
	modes []mode
	scope scope
	strip []string // names of the headers that are not forwarded; nil: all are
}

// Handle finds the session of whoever calls.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	token := s.credential(ex)
	if ex.Dry && ex.KeyHash != "" {
		return s.handleNamed(ex)
	}
	switch {
	case len(token) == 0:
		return ex.Reject(missing)
	case len(token) < s.least || len(token) > maxToken:
		return ex.Reject(unknown)
	}
	e, err := s.find(ex, token)
	if err != nil {
		return refuse(ex, err)
	}
	return s.admit(ex, token, e)
}

func (s *stage) find(ex *pipeline.Exchange, token []byte) (*entry, error) {
	if ex.Dry {
		return s.sessions.foresee(&s.scope, token, ex.Started)
	}
	return s.sessions.find(&s.scope, token, ex.Started)
}

// admit hands the exchange on with the session that was found.
func (s *stage) admit(ex *pipeline.Exchange, token []byte, e *entry) pipeline.Verdict {
	ex.Token, ex.KeyHash, ex.KeyName, ex.Session, ex.Grants = token, e.identity(), e.name(), e.session, &e.grants
	switch {
	case e.off:
		return ex.Reject(inactive)
	case e.expires > 0 && ex.Started.Unix() >= e.expires:
		return ex.Reject(expired)
	}
	if s.strip != nil {
		ex.Outgoing.Drop = s.strip
	}
	return pipeline.Next
}

// credential returns what the first mode finds that finds anything.
func (s *stage) credential(ex *pipeline.Exchange) []byte {
	for _, m := range s.modes {
		if token := m.credential(ex); len(token) > 0 {
			return token
		}
	}
	return nil
}

// refuse answers for a credential without a session: that the store could not be
// asked is never told as if the key were wrong.
func refuse(ex *pipeline.Exchange, err error) pipeline.Verdict {
	if errors.Is(err, keystore.ErrNotFound) {
		return ex.Reject(unknown)
	}
	ex.RetryAfter = 1
	return ex.Reject(unavailable)
}
