package control

import "context"

// Answers is the cache of upstream responses.
type Answers interface {
	// Invalidate drops the responses of an API; "" is all APIs.
	Invalidate(api string)
}

// invalidateCache makes every gateway of the group drop its cached responses of an API.
// This gateway has done so when the call is answered.
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

// forget drops this gateway's cached responses of an API; "" is all APIs.
func (a *API) forget(api string) {
	if a.deps.Answers != nil {
		a.deps.Answers.Invalidate(api)
	}
}
