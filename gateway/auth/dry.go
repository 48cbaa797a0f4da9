package auth

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keystore"
)

// foresee finds what find would, without a trace: nothing is counted, and what
// the store is asked for does not come into memory.
func (s *Sessions) foresee(sc *scope, token []byte, at time.Time) (*entry, error) {
	now := at.Sub(s.base)
	w := &wanted{scope: sc, token: token, hash: s.hashOf(sc, token), now: now}
	old := s.shardOf(w.hash).get(w.hash, token, sc)
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

// named finds the session of an identity, as if its credential had been shown.
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
	e, _, err := s.owned(ctx, &wanted{scope: sc, now: at.Sub(s.base)}, found{identity, session, mark{}}, trail{})
	return e, err
}

// handleNamed is Handle for a dry exchange that names its key by the identity.
func (s *stage) handleNamed(ex *pipeline.Exchange) pipeline.Verdict {
	e, err := s.sessions.named(&s.scope, ex.KeyHash, ex.Started)
	if err != nil {
		return refuse(ex, err, unknown)
	}
	return admit(ex, nil, e)
}
