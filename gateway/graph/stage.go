package graph

import (
	"strings"
	"sync"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/upstream"
)

// decoders read the requests that the GraphQL stage has admitted.
var decoders = sync.Pool{New: func() any { return new(request.Decoder) }}

// maxBatch is more than any API admits: the stage before has counted them.
const maxBatch = 1000

// Handle implements pipeline.Stage: it answers the operations of a request.
func (g *Graph) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if ex.IsDry() {
		ex.Answer.Status = 200
		return pipeline.Answered
	}
	d := decoders.Get().(*request.Decoder)
	defer func() {
		d.Reset()
		decoders.Put(d)
	}()
	list, batch, refused := asked(ex, d)
	if refused != nil {
		return ex.Reject(refused)
	}
	a, w := ex.Answer, watchClient(ex)
	defer w.end() // the exchange is used again, also after a panic
	if !batch {
		a.Body = g.answer(w.ctx, ex, list[0].Query, list[0].Operation, list[0].Variables)
	} else {
		a.Body = []byte{'['}
		for i := range list {
			if i > 0 {
				a.Body = append(a.Body, ',')
			}
			a.Body = append(a.Body, g.answer(w.ctx, ex, list[i].Query, list[i].Operation, list[i].Variables)...)
		}
		a.Body = append(a.Body, ']')
	}
	if w.end() {
		a.Body = nil
		return ex.Reject(upstream.ClientGone)
	}
	a.Status = 200
	media := ex.MediaType
	if media == "" {
		media = "application/json"
	}
	a.Lines = append(append(append(a.Lines, "Content-Type: "...), media...), "\r\n"...)
	if ex.Call.IsHead() {
		a.NoBody, a.Length = true, int64(len(a.Body))
	}
	return pipeline.Answered
}

// Explain implements pipeline.Explainer: it says which sources would be asked for what. It
// plans anew, as explanations leave caches alone.
func (g *Graph) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	var d request.Decoder
	list, _, refused := asked(ex, &d)
	if refused != nil {
		return
	}
	for i := range list {
		r := &list[i]
		given, err := givenOf(r.Variables)
		p := g.make(r.Query, r.Operation, nil)
		if p.conditions != nil && err == nil {
			p = g.make(r.Query, r.Operation, p.valuesOf(given))
		}
		for _, step := range p.steps {
			source, path, _ := strings.Cut(step, ": ")
			f.Fact("data source "+source, path, "", "the definition")
		}
		if f.Said = "answered from data sources"; p.err != nil {
			f.Said = p.err.Error()
		}
	}
}

// asked returns the operations that would go upstream.
func asked(ex *pipeline.Exchange, d *request.Decoder) (list []request.Request, batch bool, refused *pipeline.Rejection) {
	switch method := string(ex.Call.Method); {
	case ex.Outgoing.HasBody:
		return d.Body(ex.Outgoing.Body, maxBatch)
	case method == "OPTIONS":
		return nil, false, noOptions
	case method == "GET" || method == "HEAD":
		r, refused := d.URL(ex.Query())
		if refused != nil {
			return nil, false, refused
		}
		return []request.Request{*r}, false, nil
	}
	return d.Body(ex.Call.Body, maxBatch)
}

var noOptions = func() *pipeline.Rejection {
	r := request.Refusal(pipeline.ReasonMethodNotAllowed, 405, "A data graph has no upstream that answers OPTIONS; use POST, or GET for queries.")
	r.Allow = "GET, HEAD, POST"
	return r
}()
