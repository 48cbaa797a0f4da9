package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/httpclient"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
)

// A run is one operation that is answered.
type run struct {
	ctx    context.Context
	graph  *Graph
	ex     *pipeline.Exchange
	faults atomic.Int32 // requests to sources that have failed

	mu       sync.Mutex
	failures []failures
	entities []*entityError
}

type runKey struct{}

func runOf(ctx context.Context) *run { return ctx.Value(runKey{}).(*run) }

// failures say why the values of a field of objects are null.
type failures struct {
	path  []string // of the field, without indices
	nulls []string // the cause of each null, in the order of the objects; "": the source says so
}

// note notes why values of a field are null.
func (r *run) note(path, nulls []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, failures{path, nulls})
}

// recovered makes an error of a panic. It is deferred.
func (r *run) recovered(err *error) {
	if p := recover(); p != nil {
		r.graph.engine.opts.Log.Error("a request of a data graph panicked", "api", r.graph.api, "panic", p, "stack", string(debug.Stack()))
		*err = &fault{"an internal error"}
	}
}

// guarded makes errors of panics in a request: the library makes some on goroutines of its
// own, where a panic would end the process.
type guarded struct{ resolve.DataSource }

// Load implements resolve.DataSource.
func (g guarded) Load(ctx context.Context, header http.Header, input []byte) (out []byte, err error) {
	defer runOf(ctx).recovered(&err)
	return g.DataSource.Load(ctx, header, input)
}

// noFiles is the part of a resolve.DataSource that is never called.
type noFiles struct{}

// LoadWithFiles implements resolve.DataSource.
func (noFiles) LoadWithFiles(context.Context, http.Header, []byte, []*httpclient.FileUpload) ([]byte, error) {
	return nil, fmt.Errorf("files are not supported")
}

// answer answers an operation with a response of GraphQL.
func (g *Graph) answer(ex *pipeline.Exchange, text, name, variables []byte) []byte {
	given, err := givenOf(variables)
	if err != nil {
		return failure(err)
	}
	p, err := g.planFor(text, name, given)
	switch {
	case err != nil:
		return failure(err)
	case p.text.nothing:
		return []byte(`{"data":{}}`)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &run{graph: g, ex: ex}
	r.ctx = context.WithValue(ctx, runKey{}, r)
	return r.resolve(p, given)
}

// givenOf returns the values of a request's variables.
func givenOf(variables []byte) (map[string]rawValue, error) {
	if len(variables) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(variables, &members); err != nil {
		return nil, err
	}
	given := make(map[string]rawValue, len(members))
	for key, value := range members {
		given[key] = value
	}
	return given, nil
}

// resolve has the library put the response together.
func (r *run) resolve(p *planned, given map[string]rawValue) (out []byte) {
	var err error
	defer func() {
		if err != nil {
			out = failure(err)
		}
	}()
	defer r.recovered(&err)
	rc := resolve.NewContext(r.ctx)
	if rc.Variables, err = astjson.ParseBytes(appendObject(nil, p.text.arguments, given)); err != nil {
		return nil
	}
	// What the library shares between equal requests it tells apart by hashes that are not
	// compared in full.
	rc.ExecutionOptions.DisableInboundRequestDeduplication = true
	rc.ExecutionOptions.DisableSubgraphRequestDeduplication = true
	var b bytes.Buffer
	if _, err = r.graph.engine.resolver.ArenaResolveGraphQLResponse(rc, p.plan, &b); err != nil {
		return nil
	}
	return r.finish(p, b.Bytes())
}

// failure returns the response to an operation that cannot be answered.
func failure(err error) []byte {
	text, _ := json.Marshal(struct {
		Message string `json:"message"`
	}{err.Error()})
	return append(append([]byte(`{"errors":[`), text...), `],"data":null}`...)
}
