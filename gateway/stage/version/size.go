package version

import (
	"strconv"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

var (
	noLength = pipeline.NewRejection(pipeline.ReasonLengthRequired, 411, "Content length is required for this request")
	tooLarge = pipeline.NewRejection(pipeline.ReasonBodyTooLarge, 400, "Request is too large")
)

// sizes is the stage that bounds the bodies of a version.
type sizes struct {
	all  int64                                  // bytes of any body; 0: no bound
	some *match.Endpoints[*definition.SizeRule] // nil: none of their own
}

// Sizes returns the stage that bounds the bodies of a version, or nil when
// nothing does.
func Sizes(v *definition.Version, o Options) (pipeline.Stage, error) {
	said := v.PathRules()
	if v == nil || v.GlobalSizeLimit <= 0 && len(said.Sizes) == 0 {
		return nil, nil
	}
	s := &sizes{all: v.GlobalSizeLimit}
	if len(said.Sizes) == 0 {
		return s, nil
	}
	opts := match.PatternOptions{IgnoreCase: v.IgnoreEndpointCase, Unanchored: o.Unanchored}
	var list []match.Endpoint[*definition.SizeRule]
	for i := range said.Sizes {
		list = append(list, endpoint(said.Sizes[i].PathMatch, opts, &said.Sizes[i]))
	}
	var err error
	s.some, err = compile(list)
	return s, err
}

// Handle holds the announced length of a body against the bound. One that comes
// in chunks is counted while it is read.
func (s *sizes) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if isFree(ex.Call.Method) {
		return pipeline.Next
	}
	most, _ := s.bound(ex)
	switch call := ex.Call; {
	case most == 0:
	case call.Length < 0:
		call.LimitBody(most)
	case call.Length > most:
		return ex.Reject(tooLarge)
	case call.Length == 0 && call.Find(wire.NameContentLength) == nil:
		return ex.Reject(noLength)
	}
	return pipeline.Next
}

// bound returns how many bytes the body of a call may have, 0 for any number, and
// the entry for its path that says so, nil when it is the bound of all.
func (s *sizes) bound(ex *pipeline.Exchange) (int64, *definition.SizeRule) {
	if s.some == nil {
		return s.all, nil
	}
	one, found, room := s.some.FindStrict(ex.Call.Method, ex.Path, ex.PathBuf, ex.Buf)
	ex.Buf = room
	if !found || s.all > 0 && s.all <= one.Bytes {
		return s.all, nil
	}
	return one.Bytes, one
}

// isFree lists the methods whose bodies are not bounded: they have none as a rule.
func isFree(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "DELETE", "TRACE":
		return true
	}
	return false
}

// Explain reports the bound.
func (s *sizes) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	most, one := s.bound(ex)
	seen := strconv.FormatInt(ex.Call.Length, 10) + " bytes"
	if ex.Call.Length < 0 {
		seen = "in chunks, counted while read"
	}
	switch {
	case isFree(ex.Call.Method):
		f.Said = "bodies of " + string(ex.Call.Method) + " are not bounded"
		return
	case most == 0:
		f.Said = "bodies of this path are not bounded"
		return
	case one != nil:
		f.Fact(one.At+".size_limit", strconv.FormatInt(most, 10), seen, "definition")
	default:
		f.Fact("global_size_limit", strconv.FormatInt(most, 10), seen, "definition")
	}
	switch ex.Rejection {
	case tooLarge:
		f.Said, f.Fix = "the body is larger than may be", "send a smaller body, or raise the limit in the definition"
	case noLength:
		f.Said, f.Fix = "the call says nothing of its body's length", "send Content-Length, or the body in chunks"
	default:
		f.Said = "the body is not too large, as far as can be said before it is read"
	}
}
