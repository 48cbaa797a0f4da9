package targets

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// reachable is what a target may be, as for all upstreams.
var reachable = dialguard.Policy{Private: true}

// Stage calls the upstream of a version of an API that says more about that than
// where it is.
type Stage struct {
	pipeline.Stage
	shared   *shared
	circuits []*circuit // of all calls and of some
}

// Parts returns the stage that does the work.
func (s *Stage) Parts() []pipeline.Stage { return []pipeline.Stage{s.Stage} }

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) { explain(s.Stage, ex, f) }

// explain has a stage and those that it works with say what they have to.
func explain(stage pipeline.Stage, ex *pipeline.Exchange, f *pipeline.Finding) {
	if e, ok := stage.(pipeline.Explainer); ok {
		e.Explain(ex, f)
	}
	if s, ok := stage.(pipeline.Composite); ok && len(s.Parts()) == 1 {
		explain(s.Parts()[0], ex, f)
	}
}

// timed makes the stage behind which calls are made that are waited for as long as
// limits say.
func (c *Registry) timed(s *shared, def *definition.API, limits []definition.TimeoutRule) (pipeline.Stage, error) {
	usual, err := c.reach(s, def, 0)
	if err != nil || len(limits) == 0 {
		return usual, err
	}
	t := &timed{usual: usual, parts: []pipeline.Stage{usual}}
	made := make(map[time.Duration]*within)
	list := make([]match.Endpoint[*within], len(limits))
	for i, l := range limits {
		w := made[l.Timeout]
		if w == nil {
			stage, err := c.reach(s, def, l.Timeout)
			if err != nil {
				return nil, err
			}
			w = &within{stage, l.Timeout}
			made[l.Timeout] = w
			t.parts = append(t.parts, stage)
		}
		list[i] = match.Endpoint[*within]{Path: l.Path, Method: l.Method, Options: match.PatternOptions{IgnoreCase: l.IgnoreCase}, Value: w}
	}
	if t.byPath, err = match.CompileEndpoints(list); err != nil {
		return nil, fmt.Errorf("extended_paths.hard_timeouts%w", err)
	}
	return t, nil
}

// reach makes the stage by which one target, or one after the other, is called;
// timeout is how long is waited for the head of an answer, 0 for the API's time.
func (c *Registry) reach(s *shared, def *definition.API, timeout time.Duration) (pipeline.Stage, error) {
	stages := make([]pipeline.Stage, len(s.urls))
	for i, t := range s.urls {
		own, conf := *def, c.opts.Upstream
		own.Proxy.TargetURL = t.url
		if timeout > 0 {
			conf.TimeoutSetting = "extended_paths.hard_timeouts"
			var transport definition.Transport
			if def.Proxy.Transport != nil {
				transport = *def.Proxy.Transport
			}
			transport.ResponseTimeout = timeout.Seconds()
			own.Proxy.Transport = &transport
		}
		stage, err := upstream.Compile(&own, c.opts.Pools, conf)
		switch {
		case err != nil && t.at == ownTarget:
			return nil, err // which says so
		case err != nil:
			return nil, fmt.Errorf("%s: %w", t.at, err)
		}
		stages[i] = stage
	}
	if s.group == nil {
		return stages[0], nil
	}
	return newBalancer(s.group, stages), nil
}

// timed calls by way of the stage that waits for as long as a call may take.
type timed struct {
	usual  pipeline.Stage
	byPath *match.Endpoints[*within]
	parts  []pipeline.Stage
}

// within is a stage and how long it waits.
type within struct {
	pipeline.Stage
	timeout time.Duration
}

// Parts returns the stages for all times.
func (t *timed) Parts() []pipeline.Stage { return t.parts }

// Handle calls the upstream.
func (t *timed) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if own, ok := t.byPath.Find(ex.Call.Method, ex.Path, ex.PathBuf); ok {
		return own.Handle(ex)
	}
	return t.usual.Handle(ex)
}

// Explain implements pipeline.Explainer.
func (t *timed) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	stage := t.usual
	if own, ok := t.byPath.Find(ex.Call.Method, ex.Path, ex.PathBuf); ok {
		f.Fact("extended_paths.hard_timeouts", own.timeout.String(), "", "definition")
		stage = own.Stage
	}
	explain(stage, ex, f)
}
