package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// A StreamTrier runs the processors of event streams.
type StreamTrier interface {
	// TryStream runs the processors of a stream of an API on a message, until ctx ends. The
	// error is *definition.Problems for a stream that the API does not have.
	TryStream(ctx context.Context, api *definition.API, t *streamstate.Trial) (*streamstate.Tried, error)
}

// Bounds of trials.
const (
	maxTrials    = 8 // at the same time
	maxTrialsBy  = 2 // of one caller
	maxTrialBody = 4 << 20
)

// streamTrial is a trial of the streams of an API, or of a draft of these.
type streamTrial struct {
	streamstate.Trial
	// Streams to be tried in place of the API's own; masked secrets stand for those that are stored.
	// Default: the API's own.
	Draft json.RawMessage `json:"x-svc-streaming,omitempty"`
}

func (s *Server) tryStream(ctx context.Context, c *rest.Call) (any, error) {
	var sent streamTrial
	if err := c.Decode(&sent); err != nil {
		return nil, err
	}
	if problems := sent.Problems(); len(problems) > 0 {
		return nil, &problems
	}
	if s.deps.TryStream == nil {
		return nil, rest.NotFound("This admin cannot try streams")
	}
	row, err := s.storedStreams(ctx, c, noAPI)
	if err != nil {
		return nil, err
	}
	api, err := triedAPI(c, &row, sent.Draft)
	if err != nil {
		return nil, err
	}
	leave, ok := s.trials.enter(c.Who.Kind + ":" + c.Who.ID)
	if !ok {
		return nil, rest.Unavailable("Too many streams are being tried; try again")
	}
	if err := s.auditTrial(ctx, c, row.ID, &sent); err != nil {
		leave()
		return nil, err
	}
	return s.tryWith(ctx, leave, api, &sent.Trial)
}

// triedAPI returns the API with its own streams, or with those of a draft.
func triedAPI(c *rest.Call, row *store.API, draft json.RawMessage) (*definition.API, error) {
	if len(draft) == 0 {
		return definition.ParseAPI(row.Definition)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(row.Definition, &members); err != nil {
		return nil, fmt.Errorf("reading API %s: %w", row.ID, err)
	}
	members["x-svc-streaming"] = draft
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	api, _, err := parseInner(c, text, row.Definition, false)
	return api, err
}

// tryWith runs a trial within its time. A script cannot be stopped: it holds the caller's
// place until it has ended.
func (s *Server) tryWith(ctx context.Context, leave func(), api *definition.API, t *streamstate.Trial) (*streamstate.Tried, error) {
	within, cancel := context.WithTimeout(ctx, playedWithin)
	defer cancel()
	type outcome struct {
		tried *streamstate.Tried
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer leave()
		var o outcome
		defer func() {
			if cause := recover(); cause != nil {
				o.err = fmt.Errorf("trying a stream: %v\n%s", cause, debug.Stack())
			}
			done <- o
		}()
		o.tried, o.err = s.deps.TryStream.TryStream(within, api, t)
	}()
	select {
	case o := <-done:
		if errors.Is(o.err, context.DeadlineExceeded) {
			return nil, trialTooLong()
		}
		return o.tried, o.err
	case <-within.Done():
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, trialTooLong()
	}
}

func trialTooLong() error {
	return rest.Refuse(fasthttp.StatusGatewayTimeout, fmt.Sprintf("The processors did not end within %s", playedWithin))
}

// auditTrial records a trial that calls servers.
func (s *Server) auditTrial(ctx context.Context, c *rest.Call, api string, sent *streamTrial) error {
	if !sent.Calls {
		return nil
	}
	entry := store.AuditEntry{Action: "tried", Kind: "api", ID: api}
	var err error
	if entry.After, err = json.Marshal(map[string]any{"stream": sent.Stream, "draft": len(sent.Draft) > 0}); err != nil {
		return err
	}
	return s.deps.Store.InTx(ctx, func(tx *store.Tx) error { return tx.Audit(ctx, c.Author(c.Source()), entry) })
}
