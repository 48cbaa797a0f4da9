package breaker

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Stage passes calls on unless a circuit of theirs is open.
type Stage struct {
	next   pipeline.Stage
	all    *Circuit                   // of every call; nil: there is none
	byPath *match.Endpoints[*Circuit] // nil: there is none
}

// NewStage returns a stage before next. all and byPath may be nil, not both.
func NewStage(next pipeline.Stage, all *Circuit, byPath *match.Endpoints[*Circuit]) *Stage {
	return &Stage{next: next, all: all, byPath: byPath}
}

// Parts returns the stage that calls go on to.
func (s *Stage) Parts() []pipeline.Stage { return []pipeline.Stage{s.next} }

// open is what clients read, as comparable gateways say it.
var open = pipeline.NewRejection(pipeline.ReasonBreakerOpen, 503, "Service temporarily unavailable.")

// Handle passes the exchange on, and notes how the call went.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	own := s.find(ex)
	first, ok := s.ask(own, ex)
	if !ok {
		return ex.Reject(open)
	}
	second, ok := s.ask(s.all, ex)
	if !ok {
		if own != nil {
			own.undecided(first, own.now(ex.Started))
		}
		return ex.Reject(open)
	}
	verdict := s.next.Handle(ex)
	if ex.Dry {
		return verdict
	}
	at := ex.Call.End()
	tell(own, first, verdict, ex, at)
	tell(s.all, second, verdict, ex, at)
	return verdict
}

// find returns the circuit of the exchange's path, or nil.
func (s *Stage) find(ex *pipeline.Exchange) *Circuit {
	if s.byPath == nil {
		return nil
	}
	found, _ := s.byPath.Find(ex.Call.Method, ex.Path, ex.PathBuf)
	return found
}

// ask asks a circuit, if there is one, and tells whether the call may be made.
func (s *Stage) ask(c *Circuit, ex *pipeline.Exchange) (pass, bool) {
	if c == nil || ex.Due != nil { // of another moment it is not known
		return passes, true
	}
	now := c.now(ex.Started)
	said := passes
	if ex.Dry {
		said = c.look(now)
	} else {
		said = c.ask(now)
	}
	if said == refused {
		ex.RetryAfter = c.wait(now)
	}
	return said, said != refused
}

// tell tells a circuit, if there is one, how a call went.
func tell(c *Circuit, how pass, verdict pipeline.Verdict, ex *pipeline.Exchange, at time.Time) {
	if c == nil {
		return
	}
	failed, counts := outcome(ex, verdict)
	if !counts {
		c.undecided(how, c.now(at))
		return
	}
	c.tell(how, failed, ex.Upstream.Status, c.now(at))
}

// outcome tells whether a call failed, and whether it counts: one that the client
// broke off, or that was wrong in itself, says nothing about the upstream.
func outcome(ex *pipeline.Exchange, verdict pipeline.Verdict) (failed, counts bool) {
	if verdict != pipeline.Rejected {
		return ex.Upstream.Status >= 500, true
	}
	switch ex.Rejection.Reason {
	case pipeline.ReasonUpstreamLookup, pipeline.ReasonUpstreamConnect, pipeline.ReasonUpstreamTLS, pipeline.ReasonUpstreamReset,
		pipeline.ReasonUpstreamMalformed, pipeline.ReasonUpstreamTimeout, pipeline.ReasonUpstreamBusy:
		return true, true
	}
	return false, false
}

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	for _, c := range [...]*Circuit{s.find(ex), s.all} {
		if c == nil {
			continue
		}
		rule := "proxy.circuit_breaker"
		if c.path != "" {
			rule = "extended_paths.circuit_breakers " + c.path
		}
		seen := "closed"
		if c.State().Open {
			seen, f.Untold = "open", ex.Due != nil
			f.Fix = "wait until the upstream answers again, or raise threshold_percent or samples"
		}
		f.Fact(rule, fmt.Sprintf("%g of at least %d calls in %d s", c.rule.Share, c.rule.Samples, span), seen, "definition")
	}
}
