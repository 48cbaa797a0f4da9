package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// reloads merges requests for a reload.
type reloads struct {
	do    func(context.Context) error
	every time.Duration

	mu      sync.Mutex
	waiting []chan error  // callers that wait for the next reload
	poke    chan struct{} // has one element while a reload is requested
	ended   chan struct{} // closed when run has returned
}

func newReloads(do func(context.Context) error, every time.Duration) *reloads {
	return &reloads{do: do, every: every, poke: make(chan struct{}, 1), ended: make(chan struct{})}
}

// schedule requests a reload and does not wait for it.
func (r *reloads) schedule() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

var errStopping = unavailable("The gateway is stopping", nil)

// wait requests a reload that begins after this call, and returns its error.
func (r *reloads) wait(ctx context.Context) error {
	done := make(chan error, 1)
	r.mu.Lock()
	r.waiting = append(r.waiting, done)
	r.mu.Unlock()
	r.schedule()
	select {
	case err := <-done:
		return err
	case <-r.ended:
		return errStopping
	case <-ctx.Done():
		return unavailable("The reload is not done yet and goes on", nil)
	}
}

// run performs reloads until ctx ends, at most one per r.every.
func (r *reloads) run(ctx context.Context, log *slog.Logger) {
	defer close(r.ended)
	for {
		select {
		case <-r.poke:
		case <-ctx.Done():
			return
		}
		r.reload(ctx, log)
		select {
		case <-time.After(r.every):
		case <-ctx.Done():
			return
		}
	}
}

// reload reports the outcome to the callers that wait, or else to the log.
func (r *reloads) reload(ctx context.Context, log *slog.Logger) {
	r.mu.Lock()
	waiting := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	err := r.do(ctx)
	for _, done := range waiting {
		done <- err
	}
	if len(waiting) == 0 && err != nil && ctx.Err() == nil {
		log.Warn("a reload that was asked for is not complete", "err", err)
	}
}

// revision is the response to a reload.
type revision struct {
	Revision string            `json:"revision"`
	Errors   map[string]string `json:"errors,omitempty"` // by API id, or file: why it is not served as written
}

func (a *API) reload(ctx context.Context, c *call) (any, error) {
	block, err := c.flag("block")
	if err != nil {
		return nil, err
	}
	if !block {
		a.reloads.schedule()
		return &outcome{Status: "ok"}, nil
	}
	return a.reloadNow(ctx)
}

// reloadGroup reloads this gateway as well, since the group's message may be late.
func (a *API) reloadGroup(ctx context.Context, c *call) (any, error) {
	if _, err := c.flag("block"); err != nil {
		return nil, err
	}
	if a.deps.Group != nil {
		if err := a.deps.Group.ReloadGroup(ctx); err != nil {
			return nil, groupAway(err)
		}
	}
	return a.reload(ctx, c)
}

func groupAway(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return unavailable("The gateways of the group could not be told to reload", err)
}

// reloadNow answers once the stored configuration is in force.
func (a *API) reloadNow(ctx context.Context) (any, error) {
	err := a.reloads.wait(ctx)
	if _, partly := err.(interface{ Unwrap() []error }); err != nil && !partly {
		if _, ok := errors.AsType[*Error](err); ok {
			return nil, err
		}
		return nil, broken("Reload failed, what was in force stays: "+err.Error(), err)
	}
	reached := &revision{Revision: a.deps.Live.Revision(), Errors: make(map[string]string)}
	for id, why := range a.deps.Live.Failed() {
		reached.Errors[id] = why.Error()
	}
	answer := &outcome{Status: "ok", Meta: reached}
	if err != nil {
		answer.Message = "Not everything is served as written: " + err.Error()
	}
	return answer, nil
}
