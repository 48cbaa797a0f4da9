// Package persisted answers calls of paths that stand for stored GraphQL
// operations: such a call becomes the operation, with variables that are taken
// from the path, the request and the key.
//
// Bodies are compiled when configuration loads, into bytes with holes. What goes
// into a hole is encoded as JSON, whatever it holds.
package persisted

import (
	"bytes"
	"log/slog"

	"github.com/sluicegate/sluice/gateway/graphql"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// Options is what holds for all APIs.
type Options struct {
	// Rate counts a request under the rate of its key alone, and refuses it when
	// that is used up. What it counted is not counted again.
	Rate func(ex *pipeline.Exchange) pipeline.Verdict
	Log  *slog.Logger
}

// A Stage turns the calls of one API that stand for stored operations into
// these, and lets all others pass.
type Stage struct {
	opts     Options
	def      *definition.API
	stored   []definition.PersistedOperation
	governed *graphql.Stage // nil: no schema is known, and no rules hold
	root     *node
	counted  bool // some body needs what is known only once the request has been counted
}

// New returns the stage for an API, or nil when it has no stored operations.
// Govern makes it ready.
func New(def *definition.API, version *definition.Version, o Options) (*Stage, error) {
	if version == nil {
		return nil, nil
	}
	stored, err := version.PersistedOperations()
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		return nil, nil
	}
	return &Stage{opts: o, def: def, stored: stored}, nil
}

// Govern compiles the operations. They are held against the schema and the rules
// of governed, unless that is nil. One that cannot be run does not keep the
// others from it: its calls are refused, and the log tells why.
func (s *Stage) Govern(governed *graphql.Stage) {
	s.governed, s.root = governed, &node{}
	c := newCompiler(s.def, governed)
	for i := range s.stored {
		o := &s.stored[i]
		r, err := c.compile(o)
		if err != nil {
			s.opts.Log.Warn("stored operation cannot be run; its calls are refused",
				"api", s.def.ID, "method", o.Method, "path", o.Path, "err", err)
			r = &route{refusal: broken, why: err.Error()}
		}
		r.method = o.Method
		s.root.add(segmentsOf(o.Path), r)
		s.counted = s.counted || r.counted
	}
	s.root.finish()
	s.stored = nil
}

// StageOf returns the one among stages that turns calls into stored operations,
// or nil.
func StageOf(stages []pipeline.Stage) *Stage {
	for _, stage := range stages {
		if s, ok := stage.(*Stage); ok {
			return s
		}
	}
	return nil
}

// broken refuses the calls of an operation that cannot be run. The text is the
// one that users of comparable gateways know.
var broken = pipeline.NewRejection(pipeline.ReasonNotServed, 500, "there was a problem proxying the request")

// Handle makes the call an operation if it stands for one.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	var p parts
	found, here := s.find(ex, &p)
	switch {
	case here == nil:
		return pipeline.Next
	case found == nil:
		return s.refuse(ex, here.wrongMethod)
	case found.refusal != nil:
		return s.refuse(ex, found.refusal)
	}
	if refused := s.build(ex, found, &p); refused != nil {
		return s.refuse(ex, refused)
	}
	out := &ex.Outgoing
	out.HasBody, out.Post, out.Root = true, true, true
	for _, name := range ofBody {
		out.AlsoDrop(name)
	}
	out.Extra = append(out.Extra, "Content-Type: application/json\r\n"...)
	if found.facts == nil {
		return pipeline.Next
	}
	body := out.Body
	return s.governed.Judge(ex, found.facts, body[found.variables:len(body)-1])
}

// ofBody are the headers that describe the client's body, which is not sent on.
var ofBody = [...]string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Range", "Content-Md5", "Digest", "Content-Digest"}

// refuse ends the request, after it has been counted under the rate: refusals
// are answered as fast as the rate allows and no faster.
func (s *Stage) refuse(ex *pipeline.Exchange, r *pipeline.Rejection) pipeline.Verdict {
	if v := s.opts.Rate(ex); v != pipeline.Next {
		return v
	}
	return ex.Reject(r)
}

// find finds the route that a call takes. Without one, here is where the call's
// path leads, nil when it leads nowhere.
func (s *Stage) find(ex *pipeline.Exchange, p *parts) (found *route, here *node) {
	if !p.cut(ex.Path) {
		return nil, nil
	}
	method := ex.Call.Method
	if bytes.Equal(method, head) {
		method = get
	}
	return s.root.find(p, 0, method)
}

var head, get = []byte("HEAD"), []byte("GET")

// build makes the body of the operation.
func (s *Stage) build(ex *pipeline.Exchange, r *route, p *parts) *pipeline.Rejection {
	w := works.Get().(*work)
	refused := w.build(ex, r, p)
	works.Put(w)
	return refused
}

// Forward returns next, after a stage that makes bodies anew where they tell how
// the request was counted.
func (s *Stage) Forward(next pipeline.Stage) pipeline.Stage {
	if !s.counted {
		return next
	}
	return forward{s, next}
}

type forward struct {
	*Stage
	next pipeline.Stage
}

// Handle makes the body anew.
func (f forward) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	var p parts
	if !ex.Outgoing.Root {
		return f.next.Handle(ex)
	}
	if r, _ := f.find(ex, &p); r != nil && r.counted {
		if refused := f.build(ex, r, &p); refused != nil {
			return ex.Reject(refused)
		}
	}
	return f.next.Handle(ex)
}
