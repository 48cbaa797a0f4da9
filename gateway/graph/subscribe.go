package graph

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// A trigger is the request of a subscription's plan that a source answers with events.
type trigger struct {
	source *source
	input  *resolve.InputTemplate // nil: the source is topics, which are sent nothing
}

// subscription returns the plan of a subscription as that of a query: its first request has
// an event as its response.
func (g *Graph) subscription(s *resolve.GraphQLSubscription) (*resolve.GraphQLResponse, *trigger, error) {
	from := g.sources[s.Trigger.SourceName]
	if from == nil || from.streams == nil {
		return nil, nil, errors.New("the root field of the subscription has no source")
	}
	t := &trigger{source: from}
	var events resolve.DataSource = &remoteFetch{source: from, trigger: true}
	if of, ok := s.Trigger.Source.(*topicFetch); ok {
		events = of
	}
	first := &resolve.SingleFetch{
		FetchConfiguration: resolve.FetchConfiguration{DataSource: events, PostProcessing: s.Trigger.PostProcessing},
		InputTemplate:      s.Trigger.InputTemplate,
		Info:               &resolve.FetchInfo{DataSourceID: s.Trigger.SourceID, DataSourceName: s.Trigger.SourceName, OperationType: ast.OperationTypeSubscription},
	}
	if fields := s.Response.Data.Fields; len(fields) > 0 && fields[0].Info != nil {
		first.FetchID = fields[0].Info.FetchID
	}
	if !from.Topics {
		t.input = &first.InputTemplate
	}
	root, then := resolve.Sequence(resolve.Single(first)), s.Response.Fetches
	if then != nil && then.Kind == resolve.FetchTreeNodeKindSequence {
		root.ChildNodes = append(root.ChildNodes, then.ChildNodes...)
	} else if then != nil {
		root.ChildNodes = append(root.ChildNodes, then)
	}
	s.Response.Fetches = root
	return s.Response, t, nil
}

// Trigger returns what a subscription is for the source that has its root field. It is nil
// if the operation has a response at once, which is returned then.
func (g *Graph) Trigger(ex *pipeline.Exchange, asked *request.Request) (*pipeline.Trigger, []byte) {
	given, err := givenOf(asked.Variables)
	if err != nil {
		return nil, failure(err)
	}
	p, err := g.planFor(asked.Query, asked.Operation, given)
	switch {
	case err != nil:
		return nil, failure(err)
	case p.text.nothing:
		return nil, []byte(`{"data":{}}`)
	}
	j := &joiner{graph: g, plan: p, given: given, ex: ex.Kept()}
	if j.sent, err = j.request(); err != nil {
		return nil, failure(err)
	}
	s := p.trigger.source
	if s.Topics {
		return &pipeline.Trigger{Upstream: s.streams, Request: j.sent, Protocol: "sse", Joins: j}, nil
	}
	var lines []byte
	header := s.headersFor(ex, nil)
	for _, name := range slices.Sorted(maps.Keys(header)) { // connections are shared by those with equal ones
		lines = appendLines(lines, http.Header{name: header[name]})
	}
	return &pipeline.Trigger{
		Upstream: s.streams, Request: j.sent, Lines: lines,
		Protocol: s.Config.SubscriptionType, Post: s.Config.SSEUsePost, Internal: definition.IsInternal(s.Config.URL), Joins: j,
	}, nil
}

// A joiner makes the results of one subscription: the events of its source, with what other
// sources have of their objects. It implements pipeline.Joiner.
type joiner struct {
	graph *Graph
	plan  *planned
	given map[string]rawValue
	sent  []byte             // the request of the trigger
	ex    *pipeline.Exchange // stands for that which began the subscription
}

// request returns the request of the trigger.
func (j *joiner) request() (sent []byte, err error) {
	if j.plan.trigger.input == nil {
		return []byte("{}"), nil
	}
	r := j.run(context.Background())
	defer r.recovered(&err)
	rc := resolve.NewContext(r.ctx)
	if rc.Variables, err = astjson.ParseBytes(appendObject(nil, j.plan.text.arguments, j.given)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := j.plan.trigger.input.Render(rc, nil, &b); err != nil {
		return nil, err
	}
	return bytes.Clone(sentOf(b.Bytes())), nil
}

func (j *joiner) run(ctx context.Context) *run {
	r := &run{graph: j.graph, ex: j.ex}
	r.ctx = context.WithValue(ctx, runKey{}, r)
	return r
}

// Result implements pipeline.Joiner.
func (j *joiner) Result(ctx context.Context, calls pipeline.InternalCalls, status int, event []byte) []byte {
	j.ex.Internal = calls
	r := j.run(ctx)
	r.event = &outcome{status, event}
	return r.resolve(j.plan, j.given)
}

// Errors implements pipeline.Joiner.
func (j *joiner) Errors(list []byte) []byte {
	event := append(append([]byte(`{"data":null,"errors":`), list...), '}')
	s := jsonscan.New(j.Result(context.Background(), j.ex.Internal, http.StatusOK, event), maxNesting)
	for s.Object(); s.Member(); {
		if v := s.Name(); string(v) == "errors" {
			return bytes.Clone(s.Value().Raw)
		}
		s.Value()
	}
	return list
}
