package auth

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/gateway/auth/jwt"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
)

// foresee finds what find would, without a trace: nothing is counted, and what
// the store is asked for does not come into memory.
func (s *Sessions) foresee(sc *scope, token []byte, at time.Time) (*entry, error) {
	now := at.Sub(s.base)
	w := &wanted{scope: sc, token: token, hash: s.hashOf(sc, token), now: now}
	old := s.shardOf(w.hash).get(w.hash, token, sc, nil)
	if old != nil && s.isFresh(old, now) {
		return old, nil
	}
	if !credential.Check(s.opts.Hasher.Prefix, token) {
		return nil, keystore.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
	defer cancel()
	e, _, err := s.ask(ctx, w)
	if err != nil && !errors.Is(err, keystore.ErrNotFound) && old != nil && s.isUsable(old, now) {
		return old, nil
	}
	return e, err
}

// named finds the session of an identity, as if the credential had been shown that
// stands for it. What no credential of the scope's kind finds is not there.
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
	e, _, err := s.owned(ctx, &wanted{scope: sc, now: at.Sub(s.base), named: true}, found{identity, session, mark{}}, trail{})
	return e, err
}

// finds tells whether a credential of the scope may find a session. Users are
// called by their organisation, and those of another one have other names.
func (sc *scope) finds(s *definition.Session) bool {
	foreign := sc.kind == ofUser && sc.org != "" && s.OrgID != "" && s.OrgID != sc.org
	return sc.kind.finds(s) && !foreign
}

// isNamed tells whether an exchange names the key that calls, and none has come to
// take its place.
func isNamed(ex *pipeline.Exchange) bool { return ex.Dry && ex.KeyHash != "" && ex.Session == nil }

// fixFor returns what would let a caller pass of whom nothing is known: the first
// for one that shows a credential, the second for one that a key is named of.
func fixFor(ex *pipeline.Exchange, shown, named string) string {
	if isNamed(ex) {
		return named
	}
	return shown
}

// admitNamed lets the caller in whom a dry exchange names, by a key that a mode's
// credentials stand for. absent refuses any other.
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

// Named implements mode. Whom a token of an issuer stands for, and what they may do,
// the token alone says: no stored key is theirs.
func (m *jwtMode) Named(ex *pipeline.Exchange) pipeline.Verdict { return m.Handle(ex) }

// Named implements mode. A key that is bound to no certificate is only that of the
// certificate by which it is called.
func (m *certificateMode) Named(ex *pipeline.Exchange) pipeline.Verdict {
	if r := certified(ex); r != nil {
		return ex.Reject(r)
	}
	e, err := m.sessions.named(&m.scope, ex.KeyHash, ex.Started)
	if err != nil {
		return refuse(ex, err, unknownCertificate)
	}
	if isBound(e.session) {
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
