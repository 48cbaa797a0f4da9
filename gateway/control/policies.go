package control

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

var policyKind = kind[*definition.Policy]{
	parse: definition.ParseNewPolicy, name: "Policy",
	malformed: refuse(fasthttp.StatusBadRequest, "Request malformed"),
}

var noPolicy = refuse(fasthttp.StatusNotFound, "Policy not found")

func (a *API) listPolicies(context.Context, *call) (any, error) {
	policies := a.deps.Live.Policies().All()
	if policies == nil {
		policies = []*definition.Policy{}
	}
	return policies, nil
}

func (a *API) getPolicy(_ context.Context, c *call) (any, error) {
	p := a.deps.Live.Policies().Get(c.id)
	if p == nil {
		return nil, noPolicy
	}
	return p, nil
}

func (a *API) createPolicy(ctx context.Context, c *call) (any, error) {
	p, err := read(c, policyKind)
	if err != nil {
		return nil, err
	}
	if p.Key() == "" {
		return nil, refuse(fasthttp.StatusBadRequest, "Unable to create policy without id.")
	}
	if err := a.deps.Definitions.SavePolicy(ctx, p, false); err != nil {
		return nil, err
	}
	a.log.Info("policy saved through the gateway API", "policy", p.Key(), "action", added)
	return changed(p.Key(), added).warn(c.warnings), nil
}

func (a *API) updatePolicy(ctx context.Context, c *call) (any, error) {
	p, err := read(c, policyKind)
	if err != nil {
		return nil, err
	}
	if p.Key() != c.id {
		return nil, refuse(fasthttp.StatusBadRequest, "Request ID does not match that in policy! For Update operations these must match.")
	}
	if err := a.deps.Definitions.SavePolicy(ctx, p, true); err != nil {
		return nil, missing(err, noPolicy)
	}
	a.log.Info("policy saved through the gateway API", "policy", c.id, "action", modified)
	return changed(c.id, modified).warn(c.warnings), nil
}

func (a *API) deletePolicy(ctx context.Context, c *call) (any, error) {
	err := a.deps.Definitions.DeletePolicy(ctx, c.id)
	if errors.Is(err, ErrNotFound) {
		return nil, refuse(fasthttp.StatusInternalServerError, "Delete failed")
	}
	if err != nil {
		return nil, err
	}
	a.log.Info("policy deleted through the gateway API", "policy", c.id)
	return changed(c.id, deleted), nil
}
