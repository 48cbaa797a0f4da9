package control

import "context"

// Answers are those of upstreams that the gateway keeps.
type Answers interface {
	// Invalidate forgets those of an API; "" is every one.
	Invalidate(api string)
}

// invalidateCache has every gateway of the group forget the answers that it keeps
// for an API. This one has done so when the call is answered.
func (a *API) invalidateCache(ctx context.Context, c *call) (any, error) {
	if a.deps.Live.API(c.id) == nil {
		return nil, noAPI
	}
	a.forget(c.id)
	if a.deps.Group != nil {
		if err := a.deps.Group.ForgetAnswers(ctx, c.id); err != nil {
			return nil, broken("Cache invalidation failed: this gateway has forgotten what it kept, and the others of the group may not have been told; try again", err)
		}
	}
	return &outcome{Status: "ok", Message: "cache invalidated"}, nil
}

// forget forgets the answers that this gateway keeps for an API; "" is every one.
func (a *API) forget(api string) {
	if a.deps.Answers != nil {
		a.deps.Answers.Invalidate(api)
	}
}
