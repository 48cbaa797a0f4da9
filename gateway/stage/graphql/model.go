package graphql

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"weak"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

type digest [sha256.Size]byte

// A model is a schema with the settings that affect how its operations are judged.
// APIs with equal settings share a model, also across configuration changes.
type model struct {
	id       uint64 // never reused
	schema   *schema.Schema
	checking validate.Options
	lenient  bool // invalid operations are answered with 200 to clients of plain JSON

	mu     sync.Mutex
	tables map[digest]weak.Pointer[pipeline.OperationRules]
	told   map[digest]bool // tables whose problems have been logged

	restrictions restrictions
}

// hiddenID owns the refusals that reveal nothing of the schema.
func (m *model) hiddenID() uint64 { return m.id | 1<<63 }

// A SchemaError is an invalid schema of an API.
type SchemaError struct{ Err error }

// Error returns the cause after the member of the definition.
func (e *SchemaError) Error() string { return "graphql.schema: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SchemaError) Unwrap() error { return e.Err }

// modelOf returns the model of an API, which may exist already.
func (g *GraphQL) modelOf(def *definition.API) (*model, error) {
	d := def.GraphQL
	id := modelDigest(d)
	g.mu.Lock()
	m := g.models[id]
	g.mu.Unlock()
	if m != nil {
		return m, nil
	}
	loaded, problems, err := schema.LoadServed(d.Schema)
	if err != nil {
		return nil, &SchemaError{err}
	}
	g.report(def.ID, problems)
	m = &model{
		schema: loaded, lenient: d.LegacyJSON200,
		checking: validate.Options{Suggestions: d.Suggestions, MaxExpanded: g.opts.Ceilings.Fields},
		tables:   make(map[digest]weak.Pointer[pipeline.OperationRules]), told: make(map[digest]bool),
	}
	if c := d.Cost; c != nil {
		m.checking.ListSize, m.checking.SizeArguments = c.ListSize, c.SizeArguments
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if other := g.models[id]; other != nil {
		return other, nil
	}
	g.last++
	m.id = g.last
	g.models[id] = m
	return m, nil
}

// maxTold bounds how many problems of one schema are logged.
const maxTold = 10

func (g *GraphQL) report(api string, problems []*sdl.Problem) {
	if len(problems) == 0 {
		return
	}
	told := make([]string, 0, maxTold)
	for _, p := range problems[:min(len(problems), maxTold)] {
		told = append(told, fmt.Sprint(p))
	}
	g.opts.Log.Warn("schema is served with its faults", "api", api, "faults", len(problems), "first", told)
}

// modelDigest returns the digest of everything that defines a model.
func modelDigest(d *definition.GraphQL) digest {
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	// Strings, numbers and booleans always encode, and a hash takes all bytes.
	_ = enc.Encode(d.Schema)
	_ = enc.Encode([2]bool{d.LegacyJSON200, d.Suggestions})
	if d.Cost != nil {
		_ = enc.Encode(d.Cost.ListSize)
		_ = enc.Encode(d.Cost.SizeArguments)
	}
	return digest(sum.Sum(nil))
}
