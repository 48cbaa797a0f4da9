package targets

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Stage passes calls on unless a circuit of theirs is open.
type breaker struct {
	next   pipeline.Stage
	all    *circuit                   // of every call; nil: there is none
	byPath *match.Endpoints[*circuit] // nil: there is none
}

// newBreaker returns a stage before next. all and byPath may be nil, not both.
func newBreaker(next pipeline.Stage, all *circuit, byPath *match.Endpoints[*circuit]) *breaker {
	return &breaker{next: next, all: all, byPath: byPath}
}

// Parts returns the stage that calls go on to.
func (s *breaker) Parts() []pipeline.Stage { return []pipeline.Stage{s.next} }

// open is what clients read, as comparable gateways say it.
var open = pipeline.NewRejection(pipeline.ReasonBreakerOpen, 503, "Service temporarily unavailable.")

// Handle passes the exchange on, and notes how the call went.
func (s *breaker) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	own := s.find(ex)
	first, ok := s.admit(own, ex)
	if !ok {
		return ex.Reject(open)
	}
	second, ok := s.admit(s.all, ex)
	if !ok {
		if own != nil {
			own.undecided(first, own.now(ex.Started))
		}
		return ex.Reject(open)
	}
	verdict := s.next.Handle(ex)
	if ex.IsDry() {
		return verdict
	}
	at := ex.Call.End()
	record(own, first, verdict, ex, at)
	record(s.all, second, verdict, ex, at)
	return verdict
}

// find returns the circuit of the exchange's path, or nil.
func (s *breaker) find(ex *pipeline.Exchange) *circuit {
	if s.byPath == nil {
		return nil
	}
	found, _ := s.byPath.Find(ex.Call.Method, ex.Path, ex.PathBuf)
	return found
}

// admit reports whether a circuit, which may be nil, admits the call.
func (s *breaker) admit(c *circuit, ex *pipeline.Exchange) (pass, bool) {
	if c == nil || ex.DryRunAt() != nil { // the state at another time is not known
		return passes, true
	}
	now := c.now(ex.Started)
	said := passes
	if ex.IsDry() {
		said = c.peek(now)
	} else {
		said = c.admit(now)
	}
	if said == refused {
		ex.RetryAfter = c.wait(now)
	}
	return said, said != refused
}

// record records the result of a call in a circuit, which may be nil.
func record(c *circuit, how pass, verdict pipeline.Verdict, ex *pipeline.Exchange, at time.Time) {
	if c == nil {
		return
	}
	failed, counts := outcome(ex, verdict)
	if !counts {
		c.undecided(how, c.now(at))
		return
	}
	c.record(how, failed, ex.Upstream.Status, c.now(at))
}

// outcome reports whether a call failed, and whether it counts: a call that the client
// broke off, or that was malformed, says nothing about the upstream.
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
func (s *breaker) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	for _, c := range [...]*circuit{s.find(ex), s.all} {
		if c == nil {
			continue
		}
		rule := "proxy.circuit_breaker"
		if c.path != "" {
			rule = "extended_paths.circuit_breakers " + c.path
		}
		seen := "closed"
		if c.state().Open {
			seen, f.Untold = "open", ex.DryRunAt() != nil
			f.Fix = "wait until the upstream answers again, or raise threshold_percent or samples"
		}
		f.Fact(rule, fmt.Sprintf("%g of at least %d calls in %d s", c.rule.Share, c.rule.Samples, span), seen, "definition")
	}
}
