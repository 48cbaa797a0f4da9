package control

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/valyala/fasthttp"
)

var (
	notExplained = refuse(fasthttp.StatusNotFound, "This gateway does not explain requests")
	notKnown     = refuse(fasthttp.StatusNotFound, "This gateway remembers no refused request with this id: "+
		"it was not refused, or by another gateway, or too many others have been since (gateway.refusals_kept)")
	tooManyAsk = unavailable("Too many requests are being explained; try again", nil)
)

// maxExplained bounds the requests that are explained at the same time, because traffic
// comes first.
const maxExplained = 4

// explain answers what the gateway would do with a request, or why it refused one.
func (a *API) explain(ctx context.Context, c *call) (any, error) {
	if a.deps.Explain == nil {
		return nil, notExplained
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	select {
	case a.explaining <- struct{}{}:
		defer func() { <-a.explaining }()
	default:
		return nil, tooManyAsk
	}
	answer, err := a.deps.Explain.Explain(ctx, body)
	if problems, ok := errors.AsType[*definition.Problems](err); ok {
		return nil, invalid("the request's description", *problems)
	}
	return answer, missing(err, notKnown)
}
