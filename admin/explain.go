package admin

import (
	"context"
	"errors"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
)

// An Explainer explains what a gateway does with requests.
type Explainer interface {
	// Explain explains, to a user of an organisation, the request that is described
	// or the refused request that is named. The error is *definition.Problems for a
	// faulty description, and wraps store.ErrNotFound for a name that does not exist.
	Explain(ctx context.Context, org string, description []byte) (answer any, err error)
}

// maxExplained bounds the requests that are explained at the same time: one may need
// the whole configuration of an earlier revision to be read.
const maxExplained = 4

func (s *Server) explain(ctx context.Context, c *rest.Call) (any, error) {
	if s.deps.Explain == nil {
		return nil, rest.NotFound("This admin does not explain requests")
	}
	body, err := c.Body()
	if err != nil {
		return nil, err
	}
	answer, err := s.explained(ctx, c.Who.Org, body)
	if errors.Is(err, store.ErrNotFound) {
		return nil, rest.NotFound(err.Error())
	}
	return answer, err
}

// explained explains one request, unless too many are being explained.
func (s *Server) explained(ctx context.Context, org string, description []byte) (any, error) {
	select {
	case s.explaining <- struct{}{}:
		defer func() { <-s.explaining }()
	default:
		return nil, rest.Unavailable("Too many requests are being explained; try again")
	}
	return s.deps.Explain.Explain(ctx, org, description)
}

// explainRoutes are the routes of explanations.
func (s *Server) explainRoutes() []rest.Route {
	return []rest.Route{{
		Method: "POST", Path: "/api/explain", Summary: "Tell what would become of a request, or why one was refused; nothing is sent or counted", Tag: "Configuration",
		Role: rest.Viewer, Body: ExplainQuestion{}, Reply: ExplainReport{}, Or: ExplainRefused{}, Wrong: []int{400, 404, 413, 415}, Handle: s.explain,
	}}
}
