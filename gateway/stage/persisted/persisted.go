// Package persisted turns calls of configured paths into stored GraphQL operations,
// with variables from the path, the request and the key.
//
// Bodies are compiled into bytes with placeholders when configuration loads. The
// value of a placeholder is always encoded as JSON.
package persisted

import (
	"bytes"
	"log/slog"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/internal/definition"
)

// A Stage turns calls of one API into stored operations. Calls of other paths, and of
// other methods on their paths, pass unchanged (behaviour I).
type Stage struct {
	log      *slog.Logger
	def      *definition.API
	stored   []definition.PersistedOperation
	governed *graphql.Stage // nil: there is no schema and there are no rules
	root     *node
	counted  bool // some body contains counters of the request
}

// New returns the stage of an API, nil if it has no stored operations. Govern
// completes it.
func New(def *definition.API, version *definition.Version, log *slog.Logger) *Stage {
	stored := version.PersistedOperations()
	if len(stored) == 0 {
		return nil
	}
	return &Stage{log: log, def: def, stored: stored}
}

// Govern compiles the operations and checks them against the schema and the rules of
// governed, which may be nil. Calls of an invalid operation are refused, and the
// log has the reason; other operations are not affected.
func (s *Stage) Govern(governed *graphql.Stage) {
	s.governed, s.root = governed, &node{}
	c := newCompiler(s.def, governed)
	for i := range s.stored {
		o := &s.stored[i]
		r, err := c.compile(o)
		if err != nil {
			s.log.Warn("stored operation cannot be run; its calls are refused",
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

// broken refuses the calls of an invalid operation, with the text of comparable
// gateways.
var broken = pipeline.NewRejection(pipeline.ReasonNotServed, 500, "there was a problem proxying the request")

// Handle turns the call into its operation, if it has one.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	var p parts
	found, _ := s.find(ex, &p)
	switch {
	case found == nil:
		return pipeline.Next
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

// ofBody are the headers that describe the client's body, which is not forwarded.
var ofBody = [...]string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Range", "Content-Md5", "Digest", "Content-Digest"}

// refuse ends the request. It is counted under the rate first, so that the rate
// bounds refusals as well.
func (s *Stage) refuse(ex *pipeline.Exchange, r *pipeline.Rejection) pipeline.Verdict {
	if v := ex.ChargeRate(); v != pipeline.Next {
		return v
	}
	return ex.Reject(r)
}

// find returns the route of a call. If there is none, here is the node of the
// call's path, nil if no route has the path.
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

// build builds the body of the operation.
func (s *Stage) build(ex *pipeline.Exchange, r *route, p *parts) *pipeline.Rejection {
	w := works.Get().(*work)
	refused := w.build(ex, r, p)
	works.Put(w)
	return refused
}

// Forward returns next behind a stage that builds bodies with counters of the
// request again.
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

// Handle builds the body again.
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
