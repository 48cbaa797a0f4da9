package admin

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/internal/keys"
)

// apply makes many changes at once, or none.
func (s *Server) apply(ctx context.Context, c *call) (any, error) {
	var batch apply.Batch
	if err := c.decode(&batch); err != nil {
		return nil, err
	}
	by := c.author(c.source())
	applier := apply.Applier{Store: s.deps.Store, Schemas: s.schemas, Keys: keys.Service{
		Counter: s.deps.Counters, Naming: s.deps.Naming, Options: s.deps.KeyOptions, Now: time.Now,
	}}
	outcome, err := applier.Apply(ctx, by, &batch)
	if err != nil || outcome.DryRun {
		return outcome, err
	}
	for _, hash := range outcome.Hashes() {
		s.supply.Deliver(hash)
	}
	s.log.Info("configuration changed", "revision", outcome.Revision, "by", by.Name, "route", c.route.name(), "objects", len(outcome.Changes), "keys", outcome.Keys)
	return outcome, nil
}

// applyRoutes are the routes of changes of many objects.
func (s *Server) applyRoutes() []route {
	return []route{{
		method: "POST", path: "/api/config/apply", summary: "Change many objects in one transaction, or try to", tag: "Configuration", role: roleEditor,
		body: apply.Batch{}, reply: apply.Outcome{}, wrong: []int{400, 404, 409, 413, 415}, handle: s.apply,
	}}
}
