package targets

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Stage sends each exchange to one of a group's targets.
type balancer struct {
	group *group
	calls []pipeline.Stage // by target
}

// newBalancer returns a stage that calls the i-th target of a group by way of
// calls[i].
func newBalancer(g *group, calls []pipeline.Stage) *balancer {
	return &balancer{group: g, calls: calls}
}

// Parts returns the stages by which targets are called.
func (s *balancer) Parts() []pipeline.Stage { return s.calls }

// furtherTries is how many other targets a request is taken to that did not reach
// the first one.
const furtherTries = 2

// Handle calls the target whose turn it is. A request that no connection could be
// made for, so that nothing was sent, goes to another one. A dry exchange is shown
// whose turn it would be.
func (s *balancer) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	g := s.group
	o := g.current(g.now(ex.Started))
	if ex.IsDry() {
		return s.calls[g.peek(o)].Handle(ex)
	}
	at := g.pick(o)
	verdict := s.try(at, ex)
	if verdict == pipeline.Rejected && wasNotSent(ex.Rejection.Reason) {
		return s.again(ex, o, at)
	}
	return verdict
}

// again takes a request that was not sent to other targets.
func (s *balancer) again(ex *pipeline.Exchange, o *order, at int) pipeline.Verdict {
	var room [furtherTries + 1]int
	tried := append(room[:0], at)
	for len(tried) <= furtherTries {
		if at = s.group.after(o, at, tried); at < 0 {
			break
		}
		tried = append(tried, at)
		ex.Rejection = nil
		ex.Upstream.Retries++
		verdict := s.try(at, ex)
		if verdict != pipeline.Rejected || !wasNotSent(ex.Rejection.Reason) {
			return verdict
		}
	}
	return pipeline.Rejected
}

// try calls one target, and notes how that went.
func (s *balancer) try(at int, ex *pipeline.Exchange) pipeline.Verdict {
	verdict := s.calls[at].Handle(ex)
	switch {
	case verdict != pipeline.Rejected && ex.Upstream.Status < 500:
		s.group.succeeded(at, s.group.now(ex.Started))
	case verdict != pipeline.Rejected:
		s.group.failed(at, s.group.now(time.Now()), failure{Status: ex.Upstream.Status})
	case isTargets(ex.Rejection.Reason):
		s.group.failed(at, s.group.now(time.Now()), failure{Error: ex.Rejection.Reason.String()})
	}
	return verdict
}

// wasNotSent reports whether a call ended before anything was sent.
func wasNotSent(r pipeline.Reason) bool {
	return r == pipeline.ReasonUpstreamLookup || r == pipeline.ReasonUpstreamConnect || r == pipeline.ReasonUpstreamTLS
}

// isTargets reports whether a call failed because of its target, rather than because
// of the client or for want of a free connection.
func isTargets(r pipeline.Reason) bool {
	switch r {
	case pipeline.ReasonUpstreamReset, pipeline.ReasonUpstreamMalformed, pipeline.ReasonUpstreamTimeout:
		return true
	}
	return wasNotSent(r)
}

// Explain implements pipeline.Explainer.
func (s *balancer) Explain(_ *pipeline.Exchange, f *pipeline.Finding) {
	for _, t := range s.group.States() {
		state := "in service"
		switch {
		case t.Down:
			state = "left out: checks find it unwell"
		case t.Ejected:
			state = "left out: calls to it failed"
		}
		f.Fact("proxy.target_list", strings.TrimSpace(t.URL+" weight "+strconv.Itoa(t.Weight)), state, "definition")
	}
}
