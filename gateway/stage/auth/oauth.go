package auth

import (
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

// unknownToken is the message for a token that is unknown, has expired or was revoked;
// the client cannot distinguish these.
const unknownToken = "Key not authorised"

// oauthMode authenticates by an access token that the admin issued to an OAuth client.
// All tokens of a client share the client's session.
type oauthMode struct {
	*Auth
	source
	scope            scope
	missing, unknown *pipeline.Rejection // with the challenge of the API (RFC 6750, section 3)
}

func newOAuthMode(a *Auth, def *definition.API, from source) (mode, error) {
	m := &oauthMode{
		Auth: a, source: from, scope: a.sessions.scope(definition.ClientCredential, def.OrgID),
		missing: pipeline.NewRejection(pipeline.ReasonAuthMissing, 401, missing.Message).Named(pipeline.TextFieldMissing),
		unknown: pipeline.NewRejection(pipeline.ReasonAuthUnknown, 403, unknownToken).Raising(event.AuthFailure),
	}
	m.missing.Challenge = "Bearer realm=" + quoted(def.Name)
	m.unknown.Challenge = m.missing.Challenge + `, error="invalid_token"`
	return m, nil
}

// quoted returns a name as a quoted string of a header (RFC 9110 section 5.6.4).
func quoted(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// Handle finds the session of the token's client.
func (m *oauthMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	token := withoutScheme(m.find(ex))
	switch {
	case len(token) == 0:
		return ex.Reject(m.missing)
	case len(token) < m.minLength || len(token) > maxToken:
		return ex.Reject(m.unknown)
	}
	e, err := m.lookUp(ex, &m.scope, token)
	if err != nil {
		return refuse(ex, err, m.unknown)
	}
	return admit(ex, token, e)
}

// Explain says where tokens are expected, and what is wrong with this one.
func (m *oauthMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	f.Fact("use_oauth2", "true", "", "definition")
	m.source.explain(ex, f)
	switch ex.Rejection {
	case nil:
		if ex.Session != nil {
			f.Fact("oauth_client_id", ex.Session.OAuthClient(), "", "token")
		}
	case m.missing:
		f.Fix = "send an access token " + m.wanted()
	case m.unknown:
		f.Fix = fixFor(ex, "get a new access token for the client: this one is unknown, has ended, or was revoked",
			"key_hash must be that of an OAuth client, or of an access token of one")
	default:
		explainEnd(ex, f)
	}
}
