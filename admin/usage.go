package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/replay"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	counts "github.com/sluicegate/sluice/internal/usage"
)

// How long usage is kept by default.
const (
	keptMinutes = 8 * 24 * time.Hour
	keptHours   = 400 * 24 * time.Hour

	keptRefusals = 7 * 24 * time.Hour
	keptSamples  = 7 * 24 * time.Hour
	mostSamples  = 10_000
)

func (s *Server) openUsage() (err error) {
	kept := usage.Retention{
		Minutes: cmp.Or(s.deps.Retention.Minutes, keptMinutes), Hours: cmp.Or(s.deps.Retention.Hours, keptHours),
		Refusals: cmp.Or(s.deps.Retention.Refusals, keptRefusals),
		Samples:  cmp.Or(s.deps.Retention.Samples, keptSamples), MostSamples: cmp.Or(s.deps.Retention.MostSamples, mostSamples),
	}
	s.usage, err = usage.New(usage.Deps{
		Store: s.deps.Store, Retention: kept, Clear: s.deps.KeyOptions.Hasher.Algorithm == credential.None,
		Key: s.identity, OwnKey: s.portal.OwnKey, Remembered: s.remembered, Metrics: s.deps.Metrics, Now: time.Now, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.replay, err = replay.New(replay.Deps{
		Store: s.deps.Store, Effect: s.changed, Compare: s.deps.Compare, Kept: kept.MostSamples, For: kept.Samples, Metrics: s.deps.Metrics, Log: s.log,
	})
	return err
}

// changed returns an organisation's whole configuration with the changes of a batch, and
// the revision that they are made to.
func (s *Server) changed(ctx context.Context, by store.Author, b *apply.Batch) (base int64, after []store.Object, err error) {
	e, after, err := s.applier().Effect(ctx, by, b)
	if err != nil {
		return 0, nil, err
	}
	return e.Base, after, nil
}

// identity returns what the key that a call's path names is counted as.
func (s *Server) identity(ctx context.Context, c *rest.Call) (string, error) {
	found, err := s.key(ctx, c)
	if err != nil {
		return "", err
	}
	return found.hash, nil
}

// remembered returns the explanation of a refused request that a gateway remembers.
func (s *Server) remembered(ctx context.Context, org, id string) ([]byte, error) {
	if s.deps.Explain == nil {
		return nil, store.ErrNotFound
	}
	named, err := json.Marshal(map[string]string{"id": id})
	if err != nil {
		return nil, fmt.Errorf("naming a request: %w", err)
	}
	answer, err := s.explained(ctx, org, named)
	if _, noID := errors.AsType[*definition.Problems](err); noID {
		return nil, store.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// ReceiveUsage adds what a gateway in this process counted, once however often it
// comes, until the store is closed. It returns what of the batch cannot be counted, and a
// *rest.Fault when nothing of it ever will.
func (s *Server) ReceiveUsage(ctx context.Context, b *counts.Batch) (counts.Receipt, error) {
	return s.usage.Receive(ctx, b)
}
