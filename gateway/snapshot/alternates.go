package snapshot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// alternates calls the upstream of a version, or an alternate upstream that one of
// its rewrites names.
type alternates struct {
	parts  []pipeline.Stage // the version's upstream, then each place
	places []definition.RewriteTarget
}

// upstreams compiles the upstream of a version and its alternates.
func (c *compilation) upstreams() (*alternates, error) {
	def := targeted(c.def, c.version)
	own, err := c.upstream(def)
	if err != nil {
		return nil, err
	}
	a := &alternates{parts: []pipeline.Stage{own}}
	a.places = definition.RewriteTargets(c.version.Rewrites())
	for _, place := range a.places {
		part, err := c.upstream(moved(c.def, place.URL))
		if err != nil {
			if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "proxy.target_url: ") {
				err = inner // the URL is not in that member
			}
			return nil, fmt.Errorf("extended_paths.%s: %w", place.At, err)
		}
		a.parts = append(a.parts, part)
	}
	return a, nil
}

// moved returns a definition with another target, without the members that describe
// its own.
func moved(def *definition.API, target string) *definition.API {
	other := *def
	other.UptimeTests = nil
	p := &other.Proxy
	p.TargetURL, p.EnableLoadBalancing, p.TargetList, p.Ejection = target, false, nil, nil
	p.HealthCheck, p.CircuitBreaker = nil, nil
	return &other
}

// stage returns the stage that calls: the upstream itself when there are no
// alternates.
func (a *alternates) stage() pipeline.Stage {
	if len(a.parts) == 1 {
		return a.parts[0]
	}
	return a
}

// refs returns the APIs that are called, by Outgoing.Alternate, nil for upstreams; or
// nil when all are upstreams.
func (a *alternates) refs() []*pipeline.APIRef {
	refs, found := make([]*pipeline.APIRef, len(a.parts)), false
	for i, part := range a.parts {
		refs[i] = refOf(part)
		found = found || refs[i] != nil
	}
	if !found {
		return nil
	}
	return refs
}

// refOf returns the API that a stage calls, or nil. At most one part of an upstream
// is an internal call: only alternates choose between several.
func refOf(stage pipeline.Stage) (to *pipeline.APIRef) {
	pipeline.Visit(stage, func(part pipeline.Stage) {
		if s, ok := part.(*internalcall.Stage); ok && to == nil {
			to = s.Ref()
		}
	})
	return to
}

// Parts implements pipeline.Composite.
func (a *alternates) Parts() []pipeline.Stage { return a.parts }

// part returns the upstream that an exchange calls. Calls of the target URL itself
// are never rewritten.
func (a *alternates) part(ex *pipeline.Exchange) pipeline.Stage {
	if ex.Outgoing.Root {
		return a.parts[0]
	}
	return a.parts[ex.Outgoing.Alternate]
}

// Handle implements pipeline.Stage.
func (a *alternates) Handle(ex *pipeline.Exchange) pipeline.Verdict { return a.part(ex).Handle(ex) }

// Explain implements pipeline.Explainer.
func (a *alternates) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if at := ex.Outgoing.Alternate; at > 0 && !ex.Outgoing.Root {
		place := a.places[at-1]
		f.Fact("extended_paths."+place.At, place.URL, "", "definition")
	}
	if part, ok := a.part(ex).(pipeline.Explainer); ok {
		part.Explain(ex, f)
	}
}
