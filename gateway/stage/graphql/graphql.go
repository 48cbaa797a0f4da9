// Package graphql checks the operations of GraphQL APIs against the API's schema and
// the access rights of the key before it forwards them. What passes is forwarded as
// the client sent it.
//
// A known operation costs a lookup and a few comparisons. Unknown operations and
// refusals count against the rate of the key before they are examined, and never
// against its quota.
package graphql

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Options apply to all GraphQL APIs.
type Options struct {
	MaxBody      int  // bytes of a request body
	BatchMax     int  // operations in a batch, whatever an API allows
	DepthBase0   bool // depth counts from 0 in APIs that do not set graphql.depth_base; else from 1
	Ceilings     Ceilings
	Cache        int  // bytes of the cache of valid operations
	RefusedCache int  // bytes of the cache of invalid operations
	WebSockets   bool // GraphQL connections are served
	Deflates     bool // their messages are compressed if the client asks for it
	Log          *slog.Logger
}

// Ceilings bound the documents of all clients. 0 is no bound.
type Ceilings struct {
	Tokens     int
	Depth      int // nested selection sets
	ValueDepth int // nested lists and objects in literals
	Aliases    int
	Directives int
	Literals   int
	Fragments  int
	Operations int
	RootFields int // of the requested operation
	Fields     int // of any operation, fragments counted where they are spread
}

func (c *Ceilings) limits() syntax.Limits {
	return syntax.Limits{
		Tokens: c.Tokens, Depth: c.Depth, ValueDepth: c.ValueDepth, Aliases: c.Aliases, Directives: c.Directives,
		Literals: c.Literals, Fragments: c.Fragments, Operations: c.Operations,
	}
}

// GraphQL compiles the stages of all GraphQL APIs and holds what they share.
type GraphQL struct {
	opts    Options
	valid   *cache.Texts[known]
	refused *cache.Texts[known]
	misses  atomic.Uint64

	mu     sync.Mutex
	models map[digest]*model // those of the last Keep, and newer ones
	last   uint64            // id of the newest
}

// New returns a GraphQL without stages.
func New(o Options) *GraphQL {
	return &GraphQL{
		opts: o, models: make(map[digest]*model),
		valid: cache.NewTexts[known](o.Cache), refused: cache.NewTexts[known](o.RefusedCache),
	}
}

// Compile returns the stage of an API, nil if it is no GraphQL API. The error is a
// *SchemaError if the schema is invalid.
func (g *GraphQL) Compile(def *definition.API) (*Stage, error) {
	if !def.IsGraphQL() {
		return nil, nil
	}
	m, err := g.modelOf(def)
	if err != nil {
		return nil, err
	}
	headers, err := vars.CompileHeaders(def)
	if err != nil {
		return nil, err
	}
	s := &Stage{
		GraphQL: g, model: m, api: def.ID, headers: headers,
		rules: g.rulesFor(def.GraphQL), batchMax: min(def.GraphQL.BatchMax, g.opts.BatchMax),
	}
	s.open = s.rulesOf(nil)
	s.socket = newSocket(def, &g.opts)
	s.streams = streamsOf(def)
	s.documents = newDocuments(def.GraphQL.TrustedDocuments)
	s.prepare()
	return s, nil
}

// rulesFor returns what an API rules for all who call it.
func (g *GraphQL) rulesFor(def *definition.GraphQL) rules.Options {
	o := rules.OptionsOf(def)
	if def.DepthBase == nil && g.opts.DepthBase0 {
		o.DepthBase = 0
	}
	return o
}

// Keep drops schemas that no served API uses, with the cached operations of them.
func (g *GraphQL) Keep(live []*pipeline.API) {
	used := make(map[*model]bool)
	for _, api := range live {
		for _, v := range api.Versions {
			if s, ok := v.GraphQL.(*Stage); ok { // that of Open has the same model
				used[s.model] = true
			}
		}
	}
	var gone []*model
	g.mu.Lock()
	for id, m := range g.models {
		if !used[m] {
			delete(g.models, id)
			gone = append(gone, m)
		}
	}
	g.mu.Unlock()
	for _, m := range gone {
		g.valid.Drop(m.id)
		g.refused.Drop(m.id)
		g.refused.Drop(m.hiddenID())
	}
}

// Cached counts cached operations and lookups.
type Cached struct {
	Entries, Bytes, Refused, RefusedBytes int

	Hits        uint64 // lookups that found a valid operation
	RefusedHits uint64 // lookups that found an invalid operation
	Misses      uint64 // lookups that found nothing
}

// Cached returns the state of the caches.
func (g *GraphQL) Cached() Cached {
	var c Cached
	c.Entries, c.Bytes = g.valid.Size()
	c.Refused, c.RefusedBytes = g.refused.Size()
	c.Hits, c.RefusedHits, c.Misses = g.valid.Hits(), g.refused.Hits(), g.misses.Load()
	return c
}

// Aside returns a GraphQL whose stages share nothing with those of g.
func (g *GraphQL) Aside() *GraphQL {
	o := g.opts
	o.Cache, o.RefusedCache, o.Log = asideCache, asideCache, slog.New(slog.DiscardHandler)
	return New(o)
}

// asideCache fits the operations of one request, in bytes.
const asideCache = 64 << 10
