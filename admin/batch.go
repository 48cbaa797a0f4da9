package admin

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/admin/apply"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/keys"
)

// apply makes many changes at once, or none.
func (s *Server) apply(ctx context.Context, c *rest.Call) (any, error) {
	var batch apply.Batch
	if err := c.Decode(&batch); err != nil {
		return nil, err
	}
	by := c.Author(c.Source())
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
	s.log.Info("configuration changed", "revision", outcome.Revision, "by", by.Name, "route", c.Route.Name(), "objects", len(outcome.Changes), "keys", outcome.Keys)
	return outcome, nil
}

// applyRoutes are the routes of changes of many objects.
func (s *Server) applyRoutes() []rest.Route {
	return []rest.Route{{
		Method: "POST", Path: "/api/config/apply", Summary: "Change many objects in one transaction, or try to", Tag: "Configuration", Role: rest.Editor,
		Body: apply.Batch{}, Reply: apply.Outcome{}, Wrong: []int{400, 404, 409, 413, 415}, Secret: true, Handle: s.apply,
	}}
}
