package rest

import (
	"context"

	"github.com/valyala/fasthttp"
)

// Reported returns a handler that answers a check of what was sent with 200 and the
// problems, in place of 400, if the call asks for that with report=true: a page that checks
// a draft on each keystroke expects problems.
func Reported(check Handler) Handler {
	return func(ctx context.Context, c *Call) (any, error) {
		answer, err := check(ctx, c)
		if err == nil || !c.Flag("report") {
			return answer, err
		}
		f, expected := FaultOf(err)
		if !expected || f.Status != fasthttp.StatusBadRequest {
			return nil, err
		}
		f.Locate(c.HTTP.Request.Body())
		if len(f.Problems) == 0 {
			f.Problems = []Problem{{Message: f.Message}}
		}
		return &Envelope{Status: "Error", Message: f.Message, Errors: f.Errors, Problems: f.Problems}, nil
	}
}
