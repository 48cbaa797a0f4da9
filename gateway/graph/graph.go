// Package graph answers the operations of data graphs and supergraphs: it asks the data
// sources or subgraphs of an API for the values of the selected fields, and puts them
// together.
//
// Planning and putting together are those of a library, graphql-go-tools, which no other
// package imports. What reaches it are operations that the GraphQL stage has admitted, as
// text that this package prints; requests to the sources, their limits and their faults are
// this package's.
package graph

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/introspection_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Options apply to all data graphs.
type Options struct {
	Plans int // bytes of the cache of plans
	Log   *slog.Logger
}

// Calls is how requests to data sources are made: as those to upstreams.
type Calls struct {
	Pools *upstream.Pools
	upstream.Config
	Topics Topics // nil: topics of message brokers are not served
}

// Topics has those of message brokers.
type Topics interface {
	// Topics compiles a data source of the kind definition.BrokerSource: the stage answers with
	// an event stream whose data are {"message": …}, or {"fault": "…"}.
	Topics(def *definition.API, name string, c *definition.GraphQLSourceConfig) (pipeline.Stage, error)
}

// An Engine compiles data graphs and holds what they share.
type Engine struct {
	opts     Options
	resolver *resolve.Resolver
	plans    *cache.Texts[planned]
	flights  flights
	last     atomic.Uint64 // id of the newest graph
	end      context.CancelFunc
}

// maxResolving is the number of operations that the library takes at once. Requests are
// admitted elsewhere, so it is larger than any number of them.
const maxResolving = 1 << 16

// New returns an engine without graphs. Close ends it.
func New(o Options) *Engine {
	ctx, end := context.WithCancel(context.Background())
	e := &Engine{opts: o, plans: cache.NewTexts[planned](o.Plans), end: end}
	e.flights.slots = make(chan struct{}, planners)
	e.resolver = resolve.New(ctx, resolve.ResolverOptions{
		MaxConcurrency:               maxResolving,
		PropagateSubgraphErrors:      true,
		SubgraphErrorPropagationMode: resolve.SubgraphErrorPropagationModePassThrough,
		AllowedErrorExtensionFields:  []string{"code", "serviceName"}, // extensions of errors are made by this package
		OmitSubgraphErrorLocations:   true,                            // they are those of the operation that was sent to the source
	})
	return e
}

// Close ends what serves data graphs.
func (e *Engine) Close() { e.end() }

// A Graph answers the operations of one API. It is a stage that takes the place of an
// upstream.
type Graph struct {
	engine  *Engine
	id      uint64
	api     string
	data    *datagraph.Graph
	schema  *ast.Document // the library's form of it
	conf    plan.Configuration
	sources map[string]*source
	inputs  map[uint32][]byte

	fields     map[string]bool // their names, in a supergraph
	supergraph bool            // the sources are subgraphs
}

// Compile returns the graph of an API, nil if it is neither a data graph nor a supergraph. A
// supergraph has its schema by datagraph.Composed. The error names what is wrong with the definition.
func (e *Engine) Compile(api *definition.API, c *Calls) (*Graph, error) {
	if !api.IsDataGraph() && !api.IsSupergraph() {
		return nil, nil
	}
	if e == nil {
		return nil, fmt.Errorf("graphql.execution_mode: data graphs and supergraphs are not served here")
	}
	s, _, err := schema.LoadServed(api.GraphQL.Schema)
	if err != nil {
		return nil, fmt.Errorf("graphql.schema: %w", err)
	}
	g := &Graph{engine: e, id: e.last.Add(1), api: api.ID, sources: make(map[string]*source), inputs: inputsOf(s)}
	if g.data, err = datagraph.Compile(api, s); err != nil {
		return nil, err
	}
	part := "graphql.engine"
	if g.supergraph = api.IsSupergraph(); g.supergraph {
		part, g.fields = "graphql.supergraph", fieldNames(s)
	}
	if err := g.configure(api, c); err != nil {
		return nil, fmt.Errorf("%s: %w", part, err)
	}
	return g, nil
}

// configure gives the library the schema and the sources.
func (g *Graph) configure(api *definition.API, c *Calls) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the planner cannot use the schema: %v", r)
		}
	}()
	if g.schema, err = documentOf(schemaText(g.data, nil)); err != nil {
		return err
	}
	g.conf = plan.Configuration{Fields: g.fieldConfigurations()}
	for i, s := range g.data.Sources {
		compiled := &source{Source: s, graph: g, kind: "data source", timeout: timeoutOf(api, s, c.ResponseTimeout)}
		if s.Subgraph != nil {
			compiled.kind = "subgraph"
		}
		if compiled.headers, err = compileHeaders(api, s.Headers, g.data.Headers); err != nil {
			return err
		}
		if err := compiled.connect(api, c); err != nil {
			return fmt.Errorf("data source %q: %w", s.Name, err)
		}
		g.sources[s.Name] = compiled
		more, err := compiled.dataSources(i)
		if err != nil {
			return fmt.Errorf("%s %q: %w", compiled.kind, s.Name, err)
		}
		g.conf.DataSources = append(g.conf.DataSources, more...)
	}
	own, err := introspection_datasource.NewIntrospectionConfigFactory(g.schema)
	if err != nil {
		return err
	}
	g.conf.DataSources = append(g.conf.DataSources, own.BuildDataSourceConfigurations()...)
	g.conf.Fields = append(g.conf.Fields, own.BuildFieldConfigurations()...)
	return nil
}

func timeoutOf(api *definition.API, s *datagraph.Source, otherwise time.Duration) time.Duration {
	seconds := s.Config.Timeout
	if t := api.Proxy.Transport; seconds <= 0 && t != nil {
		seconds = t.ResponseTimeout
	}
	if seconds <= 0 {
		return otherwise
	}
	return time.Duration(seconds * float64(time.Second))
}

// fieldConfigurations names the arguments of all fields.
func (g *Graph) fieldConfigurations() (all plan.FieldConfigurations) {
	s := g.data.Schema
	for i := range s.Fields {
		f := &s.Fields[i]
		if f.Arguments.Lo == f.Arguments.Hi || s.IsMeta(schema.FieldID(i)) || s.Types[f.Owner].BuiltIn {
			continue
		}
		one := plan.FieldConfiguration{TypeName: s.Types[f.Owner].Name, FieldName: f.Name}
		for a := f.Arguments.Lo; a < f.Arguments.Hi; a++ {
			one.Arguments = append(one.Arguments, plan.ArgumentConfiguration{Name: s.Inputs[a].Name, SourceType: plan.FieldArgumentSource})
		}
		all = append(all, one)
	}
	return all
}

// Fetchers implements upstream.FetcherHolder.
func (g *Graph) Fetchers() (all []*upstream.Fetcher) {
	for _, s := range g.sources {
		if s.fetcher != nil {
			all = append(all, s.fetcher)
		}
	}
	return all
}

// Topics returns what Calls.Topics has compiled.
func (g *Graph) Topics() (all []pipeline.Stage) {
	for _, s := range g.sources {
		if s.Source.Topics {
			all = append(all, s.streams)
		}
	}
	return all
}

// Keep drops the plans of graphs that no served API uses.
func (e *Engine) Keep(live []*pipeline.API) {
	if e == nil {
		return
	}
	e.flights.mu.Lock()
	defer e.flights.mu.Unlock()
	used := make(map[uint64]bool)
	for _, api := range live {
		for _, v := range api.Versions {
			if g, ok := v.Upstream.(*Graph); ok {
				used[g.id] = true
			}
		}
	}
	gone := make(map[uint64]bool)
	for id := range e.flights.graphs {
		if !used[id] {
			gone[id] = true
			delete(e.flights.graphs, id)
		}
	}
	e.plans.DropAll(gone)
}
