package overload

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if ex.DryRunAt() != nil {
		f.Said, f.Untold = "whether calls are shed is known of this moment only", true
		return
	}
	now := s.guard.Stats()
	f.Fact("overload.target_delay", pipeline.Span(s.guard.TargetDelay), pipeline.Span(now.Delay), "the gateway's settings")
	switch {
	case f.Verdict == pipeline.Rejected:
		f.Said = fmt.Sprintf("more comes in than can be served: %.0f calls a second may pass, and this one is beyond its share", now.Limit)
		f.Fix = "add a gateway, or limit the rate of the key that calls most"
	case now.Shedding:
		f.Said = "calls are shed, but none of a caller with as few as this one"
	default:
		f.Said = "nothing is shed"
	}
}
