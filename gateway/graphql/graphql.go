// Package graphql holds the operations that clients ask of GraphQL APIs against
// the API's schema and the rights of their key, before anything is forwarded.
// What passes goes up as the client sent it.
//
// An operation that was seen before costs a look-up and a few comparisons. All
// others, and all refusals, count against the rate of the key before work is
// done for them, and never against its quota.
package graphql

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/graphql/cache"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/rules"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Options is what holds for all GraphQL APIs.
type Options struct {
	MaxBody      int // bytes of a request body
	BatchMax     int // operations in a batch, whatever an API allows
	Ceilings     Ceilings
	Cache        int // bytes for what is known of valid operations
	RefusedCache int // bytes for what is known of invalid operations

	// Rate counts a request under the rate of its key alone, and refuses it when
	// that is used up. What it counted is not counted again.
	Rate func(ex *pipeline.Exchange) pipeline.Verdict
	Log  *slog.Logger
}

// Ceilings bound the documents of all clients. 0 is no bound of its own.
type Ceilings struct {
	Tokens     int
	Depth      int // nested selection sets
	ValueDepth int // nested lists and objects in literals
	Aliases    int
	Directives int
	Literals   int
	Fragments  int
	Operations int
	RootFields int // of the operation that is asked for
	Fields     int // of any operation, fragments counted where they are spread
}

func (c *Ceilings) limits() syntax.Limits {
	return syntax.Limits{
		Tokens: c.Tokens, Depth: c.Depth, ValueDepth: c.ValueDepth, Aliases: c.Aliases, Directives: c.Directives,
		Literals: c.Literals, Fragments: c.Fragments, Operations: c.Operations,
	}
}

// GraphQL makes the stages of all GraphQL APIs, and keeps what they share.
type GraphQL struct {
	opts    Options
	valid   *cache.Cache[known]
	refused *cache.Cache[known]
	misses  atomic.Uint64

	mu     sync.Mutex
	models map[digest]*model // those of the last Keep, and newer ones
	last   uint64            // id of the newest
}

// New returns what makes stages.
func New(o Options) *GraphQL {
	return &GraphQL{
		opts: o, models: make(map[digest]*model),
		valid: cache.New[known](o.Cache), refused: cache.New[known](o.RefusedCache),
	}
}

// Compile returns the stage for an API, or nil when it is no GraphQL API. The
// error is a *SchemaError when the schema is at fault.
func (g *GraphQL) Compile(def *definition.API) (pipeline.Stage, error) {
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
		rules: rules.OptionsOf(def.GraphQL), batchMax: min(def.GraphQL.BatchMax, g.opts.BatchMax),
	}
	s.open = s.rulesOf(nil)
	s.documents = newDocuments(def.GraphQL.TrustedDocuments)
	s.prepare()
	return s, nil
}

// Keep lets go of what no API in service uses: schemas, and with them all that
// is known of operations of theirs.
func (g *GraphQL) Keep(live []*pipeline.API) {
	used := make(map[*model]bool)
	for _, api := range live {
		for _, v := range api.Versions {
			for _, stages := range [...][]pipeline.Stage{v.Request, v.Open} {
				if s := StageOf(stages); s != nil {
					used[s.model] = true
				}
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

// StageOf returns the stage of a GraphQL API, or nil for any other API.
func StageOf(stages []pipeline.Stage) *Stage {
	for _, stage := range stages {
		if s, ok := stage.(*Stage); ok {
			return s
		}
	}
	return nil
}

// Cached is how much is known of operations, and how often that was enough.
type Cached struct {
	Entries, Bytes, Refused, RefusedBytes int

	Hits        uint64 // operations that were known to be valid
	RefusedHits uint64 // operations that were known to be refused
	Misses      uint64 // operations that had to be examined
}

// Cached returns how full the caches are.
func (g *GraphQL) Cached() Cached {
	var c Cached
	c.Entries, c.Bytes = g.valid.Size()
	c.Refused, c.RefusedBytes = g.refused.Size()
	c.Hits, c.RefusedHits, c.Misses = g.valid.Hits(), g.refused.Hits(), g.misses.Load()
	return c
}

// Aside returns what makes stages that share nothing with those of g.
func (g *GraphQL) Aside() *GraphQL {
	o := g.opts
	o.Cache, o.RefusedCache, o.Log = asideCache, asideCache, slog.New(slog.DiscardHandler)
	return New(o)
}

// asideCache is enough for the operations of one request, in bytes.
const asideCache = 64 << 10
