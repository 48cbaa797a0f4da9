package auth

import (
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/definition"
)

// jwtMode authenticates by a JSON Web Token of an issuer that the API trusts.
type jwtMode struct {
	source
	verifier *jwt.Verifier
}

var errNoTokens = errors.New("enable_jwt: this gateway verifies no tokens")

func newJWTMode(a *Auth, def *definition.API, from source) (mode, error) {
	if a.tokens == nil {
		return nil, errNoTokens
	}
	if def.JWT.OwnSecrets() {
		return newSignerMode(a, def, from)
	}
	v, err := a.tokens.Compile(def)
	if err != nil {
		return nil, err
	}
	return &jwtMode{source: from, verifier: v}, nil
}

// WithTokens sets what verifies JSON Web Tokens, and returns a. Call it before a is
// used.
func (a *Auth) WithTokens(t *jwt.Tokens) *Auth {
	a.tokens = t
	return a
}

// Handle sets the identity of the token.
func (m *jwtMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	token := withoutScheme(m.find(ex))
	if len(token) == 0 {
		return ex.Reject(missing)
	}
	id, refused := m.verifier.Find(token, ex.Moment(), ex.IsDry())
	if refused != nil {
		if refused.Status == 503 {
			ex.RetryAfter = 1
		}
		return ex.Reject(refused)
	}
	ex.Token, ex.KeyHash, ex.KeyName, ex.Session, ex.Grants = token, id.Hash, id.Name, id.Session, &id.Grants
	ex.Claims, ex.InGrace = id.Claims, false
	return pipeline.Next
}

// Explain says what the token has to be, and what is wrong with it.
func (m *jwtMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m.source.explain(ex, f)
	m.verifier.Explain(f)
	switch {
	case ex.Rejection == nil && ex.Session != nil:
		f.Fact("policies", strings.Join(ex.Session.ApplyPolicies, ", "), "", "the token")
	case ex.Rejection == missing:
		f.Fix = "send a token " + m.wanted()
	case ex.Rejection != nil && ex.Rejection.Status == 503:
		f.Fix = "wait until the issuer's keys can be fetched"
	case ex.Rejection != nil:
		f.Fix = "send a token that the issuer signed for this API and that is in force at " + ex.Moment().UTC().Format(time.RFC3339)
	}
}
