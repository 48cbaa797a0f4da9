package control

import "context"

// Answers are those of upstreams that the gateway keeps.
type Answers interface {
	// Invalidate forgets those of an API.
	Invalidate(api string)
}

// invalidateCache forgets the answers that this gateway keeps for an API.
func (a *API) invalidateCache(_ context.Context, c *call) (any, error) {
	if a.deps.Live.API(c.id) == nil {
		return nil, noAPI
	}
	if a.deps.Answers != nil {
		a.deps.Answers.Invalidate(c.id)
	}
	return &outcome{Status: "ok", Message: "cache invalidated"}, nil
}
