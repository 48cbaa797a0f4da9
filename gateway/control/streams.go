package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/definition"
)

// Streams answers calls about the event streams that run.
type Streams interface {
	// List returns one page of streams. It takes the query parameters of a call; the error
	// says what is wrong with these.
	List(query map[string]string) (page any, err error)

	// Try runs the processors of a stream of an API on a message, which the body of a call
	// describes, until ctx ends. The error is *definition.Problems for a faulty one, and
	// ErrNotFound for an API without streams.
	Try(ctx context.Context, api string, trial []byte) (tried any, err error)
}

var (
	noStreams     = refuse(fasthttp.StatusNotFound, "This gateway runs no event streams: set streaming.enabled to true")
	noStreamAPI   = refuse(fasthttp.StatusNotFound, "This gateway serves no API with streams that has this id")
	tooManyTrials = unavailable("Too many streams are being tried; try again", nil)
	trialTooLong  = refuse(fasthttp.StatusGatewayTimeout, fmt.Sprintf("The processors did not end within %s", tryWithin))
)

// Bounds of trials.
const (
	tryWithin = 10 * time.Second
	maxTrials = 2 // at the same time, because traffic comes first
)

// listStreams shows the streams that run, by API and name.
func (a *API) listStreams(_ context.Context, c *call) (any, error) {
	if a.deps.Streams == nil {
		return nil, noStreams
	}
	page, err := a.deps.Streams.List(c.query)
	if err != nil {
		return nil, wrongParameter(err)
	}
	return page, nil
}

// showStreams shows the streams of an API, with their connectors and processors.
func (a *API) showStreams(ctx context.Context, c *call) (any, error) {
	c.query["api_id"], c.query["nodes"] = c.id, "true"
	return a.listStreams(ctx, c)
}

// tryStream runs the processors of a stream on a message.
func (a *API) tryStream(ctx context.Context, c *call) (any, error) {
	if a.deps.Streams == nil {
		return nil, noStreams
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	select {
	case a.trying <- struct{}{}:
		defer func() { <-a.trying }()
	default:
		return nil, tooManyTrials
	}
	within, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	tried, err := a.deps.Streams.Try(within, c.id, body)
	switch problems, ok := errors.AsType[*definition.Problems](err); {
	case ok:
		return nil, invalid("the trial", *problems)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, trialTooLong
	}
	return tried, missing(err, noStreamAPI)
}
