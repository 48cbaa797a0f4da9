package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// findDry finds what find would, but counts nothing and caches nothing.
func (s *Sessions) findDry(sc *scope, token []byte, at time.Time) (*entry, error) {
	now := at.Sub(s.base)
	w := &wanted{scope: sc, token: token, hash: s.hashOf(sc, token), now: now}
	old := s.get(w.hash, token, sc)
	if old != nil && s.isFresh(old, now) {
		return old, nil
	}
	if !credential.Check(s.opts.Hasher.Prefix, token) {
		return nil, keystore.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	e, _, err := s.query(ctx, w)
	if err != nil && !errors.Is(err, keystore.ErrNotFound) && old != nil && s.isUsable(old, now) {
		return old, nil
	}
	return e, err
}

// named finds the session of an identity as if its credential had been sent. A
// session that no credential of the scope's kind finds is not found.
func (s *Sessions) named(sc *scope, identity string, at time.Time) (*entry, error) {
	if credential.IsOrg(identity) {
		return nil, keystore.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	session, err := s.opts.Store.Get(ctx, identity)
	if err != nil {
		return nil, err
	}
	if session.SuccessorOf() == "" && !sc.finds(session) {
		return nil, keystore.ErrNotFound
	}
	e, _, err := s.owned(ctx, &wanted{scope: sc, now: at.Sub(s.base), named: true}, found{identity, session, stamp{}}, trail{})
	return e, err
}

// finds reports whether a credential of the scope may find a session. The identity of
// a user has the organisation, and a user of another one has another identity.
func (sc *scope) finds(s *definition.Session) bool {
	foreign := sc.kind == definition.UserCredential && sc.org != "" && s.OrgID != "" && s.OrgID != sc.org
	return sc.kind == s.CredentialKind() && !foreign
}

// isNamed reports whether an exchange names its calling key, and no mode has found a
// session yet. Requests of clients never do.
func isNamed(ex *pipeline.Exchange) bool {
	return ex.NamesCaller() && ex.KeyHash != "" && ex.Session == nil
}

// admitPolicies admits a caller with nothing but some policies. Its identity belongs to no
// key, and is not that of an organisation.
func (a *Auth) admitPolicies(ex *pipeline.Exchange, ids ...string) pipeline.Verdict {
	id := sha256.Sum256([]byte("policy " + strings.Join(ids, " ")))
	session := &definition.Session{OrgID: ex.API.Definition.OrgID, ApplyPolicies: ids}
	w := &wanted{scope: &scope{org: ex.API.Definition.OrgID}, now: ex.Started.Sub(a.sessions.base), named: true}
	return admit(ex, nil, a.sessions.newEntry(w, hex.EncodeToString(id[:]), session, stamp{}))
}

// fixFor returns the hint for an unknown caller: sent if a credential was sent, and
// named if the dry run names a key.
func fixFor(ex *pipeline.Exchange, sent, named string) string {
	if isNamed(ex) {
		return named
	}
	return sent
}

// admitNamed admits the key that a dry run names if credentials of the scope could
// find it. Any other is refused by absent.
func (a *Auth) admitNamed(ex *pipeline.Exchange, sc *scope, absent *pipeline.Rejection) pipeline.Verdict {
	e, err := a.sessions.named(sc, ex.KeyHash, ex.Started)
	if err != nil {
		return refuse(ex, err, absent)
	}
	return admit(ex, nil, e)
}

// Named implements mode.
func (m *tokenMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	return m.admitNamed(ex, &m.scope, unknown)
}

// Named implements mode.
func (m *passwordMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	return m.admitNamed(ex, &m.scope, m.wrong)
}

// Named implements mode.
func (m *signerMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	return m.admitNamed(ex, &m.scope, jwt.UnknownSigner)
}

// Named implements mode.
func (m *oauthMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	return m.admitNamed(ex, &m.scope, m.unknown)
}

// Named implements mode. The token of an issuer carries identity and rights; there is
// no stored key to look up.
func (m *jwtMode) Named(ex *pipeline.Exchange) pipeline.Verdict { return m.Handle(ex) }

// Named implements mode. A key that is not bound to a certificate is found by its own
// certificate only.
func (m *certificateMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.IsRecorded() {
		return m.admitNamed(ex, &m.scope, unknownCertificate)
	}
	if r := certified(ex); r != nil {
		return ex.Reject(r)
	}
	e, err := m.sessions.named(&m.scope, ex.KeyHash, ex.Started)
	if err != nil {
		return refuse(ex, err, unknownCertificate)
	}
	if isBound(&e.session) {
		return admit(ex, nil, e)
	}
	own, err := m.lookUp(ex, &m.scope, ex.Call.Cert.Sum)
	switch {
	case err == nil && own.identity() == e.identity():
		return admit(ex, nil, e)
	case err == nil || errors.Is(err, keystore.ErrNotFound):
		return ex.Reject(otherCertificate)
	}
	return refuse(ex, err, unknownCertificate)
}
