package graph

import (
	"fmt"
	"strings"
	"sync"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
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
	if n := len(ex.Operations); n > 0 && ex.Operations[n-1].Kind == syntax.Subscription {
		return ex.Reject(noSubscription)
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

// Explain implements pipeline.Explainer: it says which sources would be asked for what, by a
// fact for each request:
//
//   - Rule names the source: "data source users", "subgraph users".
//   - Value has the paths of the fields: "me.name, me.id".
//   - Seen is the operation that a GraphQL source or a subgraph is sent.
//   - From is the place in the order: requests of "step 1" are sent at the same time, those
//     of "step 2" when all of them are answered.
//
// It plans anew, as explanations leave caches alone.
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
		if f.Said = "answered from data sources"; g.supergraph {
			f.Said = "answered from subgraphs"
		}
		if p.err != nil {
			f.Said = p.err.Error()
		} else if p.plan != nil {
			g.explainPlan(p.plan.Fetches, f)
		}
	}
}

func (g *Graph) explainPlan(root *resolve.FetchTreeNode, f *pipeline.Finding) {
	steps := []*resolve.FetchTreeNode{root}
	if root != nil && root.Kind == resolve.FetchTreeNodeKindSequence {
		steps = root.ChildNodes
	}
	for i, step := range steps {
		eachFetch(step, func(item *resolve.FetchItem) {
			source, fields := "the schema", [][]string{g.pathOf(item)}
			to, template := partsOf(item.Fetch)
			operation := operationOf(template)
			if info := item.Fetch.FetchInfo(); info != nil && g.sources[info.DataSourceName] != nil {
				s := g.sources[info.DataSourceName]
				source = s.kind + " " + s.Name
			}
			of, _ := (*to).(guarded)
			switch of := of.DataSource.(type) {
			case *restFetch:
				fields = [][]string{of.path}
			case *remoteFetch:
				if fields = keysOf(operation); of.entities != nil {
					fields = of.entities.fields[:of.entities.own]
				}
			}
			var paths []string
			for _, one := range fields {
				paths = append(paths, strings.Join(one, "."))
			}
			f.Fact(source, strings.Join(paths, ", "), operation, fmt.Sprint("step ", i+1))
		})
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

// noSubscription refuses a subscription over HTTP whose answer would have no body.
var noSubscription = request.Refusal(pipeline.ReasonMethodNotAllowed, 405, "Subscriptions are not answered to HEAD; use GET or POST.")

var noOptions = func() *pipeline.Rejection {
	r := request.Refusal(pipeline.ReasonMethodNotAllowed, 405, "The API has no upstream that answers OPTIONS; use POST, or GET for queries.")
	r.Allow = "GET, HEAD, POST"
	return r
}()
