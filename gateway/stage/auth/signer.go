package auth

import (
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/definition"
)

// signerMode authenticates by a JSON Web Token that names a key and is signed with the
// secret of that key's session.
type signerMode struct {
	*Auth
	source
	scope  scope
	reader *jwt.Reader
}

func newSignerMode(a *Auth, def *definition.API, from source) (mode, error) {
	r, err := a.tokens.Reader(def)
	if err != nil {
		return nil, err
	}
	return &signerMode{Auth: a, source: from, scope: a.sessions.scope(definition.SignerCredential, def.OrgID), reader: r}, nil
}

// Handle finds the session of the key that the token names.
func (m *signerMode) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	token := withoutScheme(m.find(ex))
	if len(token) == 0 {
		return ex.Reject(missing)
	}
	signed, refused := m.reader.Read(token)
	switch {
	case refused != nil:
		return ex.Reject(refused)
	case len(signed.Name) < m.minLength || len(signed.Name) > maxToken:
		return ex.Reject(jwt.UnknownSigner)
	}
	e, err := m.lookUp(ex, &m.scope, signed.Name)
	if err != nil {
		return refuse(ex, err, jwt.UnknownSigner)
	}
	// Only a client with the key's secret learns whether the key is active.
	if refused := m.reader.Verify(token, signed, e.session.TokenSecret(), ex.Started, ex.IsDry()); refused != nil {
		return ex.Reject(refused)
	}
	ex.Claims = signed.Claims
	return admit(ex, token, e)
}

// Explain says which key the token names, and what is wrong with the token or the key.
func (m *signerMode) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m.source.explain(ex, f)
	if isNamed(ex) && ex.Rejection == jwt.UnknownSigner {
		f.Fix = "key_hash must be that of a key with a jwt_data.secret, which signs tokens"
		return
	}
	m.reader.Explain(ex, f)
	if token := withoutScheme(m.find(ex)); len(token) > 0 {
		if signed, _ := m.reader.Read(token); signed != nil {
			f.Fact(signed.From, string(signed.Name), "", "the token")
		}
	}
	switch {
	case ex.Rejection == nil || f.Fix != "":
		return
	case ex.Rejection == missing:
		f.Fix = "send a token " + m.wanted()
		return
	}
	if explainEnd(ex, f); f.Fix == "" {
		f.Fix = "send a token that a key of this API signed and that is in force at " + ex.Started.UTC().Format(time.RFC3339)
	}
}
