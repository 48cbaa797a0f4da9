package auth

import (
	"strconv"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// tokenMode authenticates by a key in a cookie, a parameter or a header, with or without
// "Bearer" before it.
type tokenMode struct {
	*Auth
	source
	scope scope
}

func newTokenMode(a *Auth, def *definition.API, from source) (mode, error) {
	m := &tokenMode{Auth: a, source: from, scope: a.sessions.scope(definition.KeyCredential, def.OrgID)}
	if def.Token().UseCertificate {
		return &certificateMode{m, def.OrgID}, nil
	}
	return m, nil
}

// Handle finds the session of the token.
func (m *tokenMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	token := withoutScheme(m.find(ex))
	switch {
	case len(token) == 0:
		return ex.Reject(missing)
	case len(token) < m.minLength || len(token) > maxToken:
		return ex.Reject(noKey)
	}
	e, err := m.lookUp(ex, &m.scope, token)
	if err != nil {
		return refuse(ex, err, unknown)
	}
	return admit(ex, token, e)
}

// Explain says where keys are expected, and what is wrong with this one.
func (m *tokenMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m.source.explain(ex, f)
	switch ex.Rejection {
	case nil:
	case missing:
		f.Fix = "send the key " + m.wanted()
	case unknown, noKey:
		f.Fact("keys.min_length", strconv.Itoa(m.minLength), "", "setting")
		f.Fix = fixFor(ex, "send a key that exists: this one is unknown, mistyped, or too short",
			"key_hash must be that of a key that clients send as it is; this one is unknown, or it is a user's, a client's, or that of a key that signs tokens")
	default:
		explainEnd(ex, f)
	}
}
