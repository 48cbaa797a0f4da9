package gateway

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/transform"
	"github.com/sluicegate/sluice/internal/definition"
	said "github.com/sluicegate/sluice/internal/definition/transform"
)

// elsewhere calls the upstream of a version, or what a rewrite names in its place.
type elsewhere struct {
	parts  []pipeline.Stage // the upstream, then each place
	places []said.Place
}

// elsewhere makes the stage that calls what the rewrites of a version name, or
// returns usual, which calls the upstream, when they name nothing.
func (s *Stages) elsewhere(usual pipeline.Stage, def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	places, err := transform.Elsewhere(version)
	if err != nil || len(places) == 0 {
		return usual, err
	}
	e := &elsewhere{parts: []pipeline.Stage{usual}, places: places}
	for _, place := range places {
		part, err := s.upstream(moved(def, place.URL), version)
		if err != nil {
			if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "proxy.target_url: ") {
				err = inner // which field of a definition it would be is not where it stands
			}
			return nil, fmt.Errorf("extended_paths.%s: %w", place.At, err)
		}
		e.parts = append(e.parts, part)
	}
	return e, nil
}

// moved returns a definition with another target, of which nothing is known that
// is known of its own.
func moved(def *definition.API, target string) *definition.API {
	other := *def
	other.UptimeTests = nil
	p := &other.Proxy
	p.TargetURL, p.EnableLoadBalancing, p.Extra = target, false, nil
	return &other
}

// Parts returns the stages that call.
func (e *elsewhere) Parts() []pipeline.Stage { return e.parts }

// part returns the stage that calls for an exchange. One that goes to the target
// URL itself, whatever its path, is not rewritten.
func (e *elsewhere) part(ex *pipeline.Exchange) pipeline.Stage {
	if ex.Outgoing.Root {
		return e.parts[0]
	}
	return e.parts[ex.Outgoing.Elsewhere]
}

// Handle calls.
func (e *elsewhere) Handle(ex *pipeline.Exchange) pipeline.Verdict { return e.part(ex).Handle(ex) }

// Explain implements pipeline.Explainer.
func (e *elsewhere) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if at := ex.Outgoing.Elsewhere; at > 0 && !ex.Outgoing.Root {
		place := e.places[at-1]
		f.Fact("extended_paths."+place.At, place.URL, "", "definition")
	}
	if part, ok := e.part(ex).(pipeline.Explainer); ok {
		part.Explain(ex, f)
	}
}
