package persisted

import (
	"fmt"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// Explain reports the stored operation of a call and how it was judged.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	var p parts
	found, here := s.find(ex, &p)
	switch {
	case here == nil:
		f.Said = "the path stands for no stored operation"
		return
	case found == nil:
		f.Said = fmt.Sprintf("a stored operation has the path with %s; with %s the call is proxied as usual", here.methods, ex.Call.Method)
		return
	case found.refusal != nil:
		f.Said, f.Fix = "the stored operation cannot be run: "+found.why, "correct extended_paths.persist_graphql"
		return
	}
	if s.governed != nil && len(ex.Operations) > 0 {
		s.governed.Explain(ex, f)
	}
	if f.Verdict != pipeline.Rejected {
		f.Said = "the call stands for a stored operation: " + f.Said
	}
}
