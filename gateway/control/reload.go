package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// reloads makes many wishes for a reload into few reloads.
type reloads struct {
	do    func(context.Context) error
	every time.Duration

	mu      sync.Mutex
	waiting []chan error  // those who want to know the outcome of the next reload
	poke    chan struct{} // holds one while a reload is wished for
	ended   chan struct{} // closed when run has returned
}

func newReloads(do func(context.Context) error, every time.Duration) *reloads {
	return &reloads{do: do, every: every, poke: make(chan struct{}, 1), ended: make(chan struct{})}
}

// schedule has a reload happen soon.
func (r *reloads) schedule() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

var errStopping = unavailable("The gateway is stopping", nil)

// wait has a reload happen that begins after this call, and returns its error.
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

// run carries out reloads until ctx ends, one per r.every at most.
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

// reload tells those who wait what came of it, and the log when nobody does.
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

// revision is what a reload led to.
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

// reloadGroup reloads this gateway as well by itself, since the group's message
// may be late.
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

// reloadNow answers once what is stored is in force.
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
