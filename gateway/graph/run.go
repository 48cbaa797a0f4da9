package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wundergraph/astjson"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/httpclient"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
)

// A run is one operation that is answered.
type run struct {
	ctx    context.Context
	graph  *Graph
	ex     *pipeline.Exchange
	event  *outcome     // of a subscription; nil: the operation is none
	faults atomic.Int32 // requests to sources that have failed

	mu       sync.Mutex
	failures []failures
	called   called
	entities []*entityError
}

// called is what the requests to sources came to.
type called struct {
	open    int // requests that wait for their responses
	since   time.Time
	took    time.Duration // while any were open
	address string        // of the first
	status  int           // the greatest
	retries int
	steps   []pipeline.Step // of a request that is traced
}

// maxSteps is how many requests to sources of one operation are in its trace.
const maxSteps = 200

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

// begin notes that a request to a source begins.
func (r *run) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.called.open++; r.called.open == 1 {
		r.called.since = time.Now()
	}
}

// ended notes what came of a request to a source.
func (r *run) ended(got *upstream.Fetched, f *pipeline.Fetch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.called
	if c.open--; c.open == 0 {
		c.took += got.Ended.Sub(c.since)
	}
	if c.address == "" {
		c.address = got.Address
	}
	c.status, c.retries = max(c.status, got.Status), c.retries+got.Retries
	if r.ex.Trace.Steps != nil && len(c.steps) < maxSteps {
		c.steps = append(c.steps, pipeline.Step{Name: "fetch", Start: got.Began, End: got.Ended, Fetch: f})
	}
}

// settle gives the exchange what the requests to sources came to.
func (r *run) settle() {
	u, c := &r.ex.Upstream, &r.called
	if u.Address == "" {
		u.Address = c.address
	}
	u.Status, u.Retries = max(u.Status, c.status), uint8(min(int(u.Retries)+c.retries, math.MaxUint8))
	u.Duration += c.took
	if len(c.steps) > 0 {
		r.ex.Trace.Steps.List = append(r.ex.Trace.Steps.List, c.steps...)
	}
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

// lookEvery is the time between two looks for a client that has left. The first comes after
// three quarters of it, as with calls of upstreams.
const lookEvery = 900 * time.Millisecond

// A watch ends the requests to data sources of an exchange whose client has left. The
// goroutine of the call waits for them meanwhile, so that another one may look.
type watch struct {
	ctx    context.Context
	cancel context.CancelFunc
	ex     *pipeline.Exchange
	timer  *time.Timer

	mu   sync.Mutex
	over bool
}

// watchClient begins a watch.
func watchClient(ex *pipeline.Exchange) *watch {
	w := &watch{ex: ex}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.timer = time.AfterFunc(lookEvery*3/4, w.look)
	return w
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
	case w.ex.Call.Gone():
		w.cancel()
	default:
		w.timer.Reset(lookEvery)
	}
}

// end ends the watch, and reports whether the client has left.
func (w *watch) end() (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	left = w.ctx.Err() != nil
	w.cancel()
	return left
}

// answer answers an operation with a response of GraphQL. Requests to data sources end with
// ctx.
func (g *Graph) answer(ctx context.Context, ex *pipeline.Exchange, text, name, variables []byte) []byte {
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
	r := &run{graph: g, ex: ex}
	r.ctx = context.WithValue(ctx, runKey{}, r)
	defer r.settle()
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
