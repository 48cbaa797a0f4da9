package graph

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/astnormalization"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/astparser"
	gds "github.com/wundergraph/graphql-go-tools/v2/pkg/engine/datasource/graphql_datasource"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/plan"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/postprocess"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/engine/resolve"
	"github.com/wundergraph/graphql-go-tools/v2/pkg/operationreport"

	"github.com/sluicegate/sluice/internal/cache"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// Bounds of planning.
const (
	planners      = 2                // operations that are planned at the same time
	planWithin    = 10 * time.Second // what a client waits for a plan
	maxWaiting    = 1000             // operations that wait for a planner
	maxConditions = 8                // variables in @skip and @include: each combination has a plan
)

// planned is the plan of an operation, or what its plan depends on. It is immutable.
type planned struct {
	conditions []string // variables on whose values the plan depends; nil: this is the plan
	defaults   map[string]literal

	text    text
	plan    *resolve.GraphQLResponse
	trigger *trigger // of a subscription; nil: it is none
	err     error
}

// flights are the operations that are being planned: each is planned once, however many
// requests wait for it.
type flights struct {
	mu     sync.Mutex
	open   map[flightKey]*flight
	graphs map[uint64]bool // that have plans
	slots  chan struct{}
	made   atomic.Uint64 // plans
}

// Planned returns how many plans were made.
func (e *Engine) Planned() uint64 { return e.flights.made.Load() }

type flightKey struct {
	graph      uint64
	name, text string
}

type flight struct {
	done chan struct{}
	plan *planned
}

// planFor returns the plan of an operation for a request's variables.
func (g *Graph) planFor(text, name []byte, given map[string]rawValue) (*planned, error) {
	p, err := g.find(text, name, nil)
	if err != nil || p.conditions == nil {
		return p, err
	}
	return g.find(text, name, p.valuesOf(given))
}

// valuesOf returns the values of the conditions in a request.
func (p *planned) valuesOf(given map[string]rawValue) map[string]bool {
	asked := make(map[string]bool, len(p.conditions))
	for _, c := range p.conditions {
		value, ok := given[c]
		if d, has := p.defaults[c]; !ok && has {
			value, _ = d.append(nil, nil)
		}
		asked[c] = string(value) == "true"
	}
	return asked
}

// find returns what is known of an operation with values of the variables that its
// directives name, nil before these are known.
func (g *Graph) find(text, name []byte, asked map[string]bool) (*planned, error) {
	key := cache.TextKey{Owner: g.id, Name: keyOf(name, asked), Text: text}
	if p := g.engine.plans.Get(key); p != nil {
		return p, p.err
	}
	f := g.fly(key, text, name, asked)
	if f == nil {
		return nil, errors.New("too many new operations at once; try again")
	}
	timer := time.NewTimer(planWithin)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.plan, f.plan.err
	case <-timer.C:
		g.engine.opts.Log.Error("an operation takes too long to plan", "api", g.api)
		return nil, fmt.Errorf("the operation takes too long to plan")
	}
}

// keyOf returns the name of an operation with the conditions that are true.
func keyOf(name []byte, asked map[string]bool) []byte {
	key := append([]byte(nil), name...)
	if asked == nil {
		return key
	}
	names := make([]string, 0, len(asked))
	for one, on := range asked {
		if on {
			names = append(names, one)
		}
	}
	slices.Sort(names)
	return append(append(key, 0), strings.Join(names, " ")...)
}

// fly plans an operation, or returns the flight that does so already. It returns nil if too
// many wait.
func (g *Graph) fly(key cache.TextKey, text, name []byte, asked map[string]bool) *flight {
	fl := &g.engine.flights
	id := flightKey{g.id, string(key.Name), string(text)}
	fl.mu.Lock()
	defer fl.mu.Unlock()
	if f := fl.open[id]; f != nil {
		return f
	}
	if len(fl.open) >= maxWaiting {
		return nil
	}
	f := &flight{done: make(chan struct{})}
	if fl.open == nil {
		fl.open, fl.graphs = make(map[flightKey]*flight), make(map[uint64]bool)
	}
	fl.open[id], fl.graphs[g.id] = f, true
	name = append([]byte(nil), name...)
	go func() { // nothing ends a planner that hangs: the request must not hang with it
		fl.slots <- struct{}{}
		f.plan = g.make([]byte(id.text), name, asked)
		<-fl.slots
		g.engine.plans.Add(cache.TextKey{Owner: g.id, Name: []byte(id.name), Text: []byte(id.text)}, f.plan, f.plan.size())
		fl.mu.Lock()
		delete(fl.open, id)
		fl.mu.Unlock()
		close(f.done)
	}()
	return f
}

var errUnplanned = errors.New("the operation cannot be planned")

// size estimates the memory of a plan, in bytes.
func (p *planned) size() int {
	return 4<<10 + 80*len(p.text.operation) // about what the heap grows by
}

// make plans an operation.
func (g *Graph) make(source, name []byte, asked map[string]bool) (p *planned) {
	p = new(planned)
	defer func() {
		if r := recover(); r != nil {
			g.engine.opts.Log.Error("the planner of data graphs panicked", "api", g.api, "panic", r, "stack", string(debug.Stack()))
			p = &planned{err: errUnplanned}
		}
	}()
	var doc syntax.Document
	if err := syntax.Parse(&doc, source, syntax.Limits{}); err != nil {
		p.err = err
		return p
	}
	at, unclear := validate.Select(&doc, string(name))
	if unclear != nil {
		p.err = unclear
		return p
	}
	op := &doc.Operations[at]
	if asked == nil {
		if names := conditions(&doc); len(names) > maxConditions {
			p.err = fmt.Errorf("the operation has more than %d variables in @skip and @include", maxConditions)
			return p
		} else if len(names) > 0 {
			p.conditions, p.defaults = names, defaultsOf(&doc, op)
			return p
		}
	}
	p.text = g.printText(&doc, op, asked)
	if !p.text.nothing {
		g.engine.flights.made.Add(1)
		var err error
		if p.plan, p.trigger, err = g.plan(string(p.text.operation)); err != nil {
			g.engine.opts.Log.Error("an operation cannot be planned", "api", g.api, "err", err)
			return &planned{err: errUnplanned}
		}
		g.prepare(p)
		if g.supergraph {
			g.show(p.plan.Data)
		}
	}
	return p
}

// plan has the library plan an operation. Its planners are made for one operation each.
func (g *Graph) plan(operation string) (*resolve.GraphQLResponse, *trigger, error) {
	op, report := astparser.ParseGraphqlDocumentString(operation)
	if report.HasErrors() {
		return nil, nil, report
	}
	op.Input.Variables = []byte("{}")
	report = operationreport.Report{}
	astnormalization.NewWithOpts().NormalizeNamedOperation(&op, g.schema, []byte("O"), &report)
	if report.HasErrors() {
		return nil, nil, report
	}
	planner, err := plan.NewPlanner(g.conf)
	if err != nil {
		return nil, nil, err
	}
	made := planner.Plan(&op, g.schema, "O", &report)
	if report.HasErrors() {
		return nil, nil, report
	}
	postprocess.NewProcessor().Process(made)
	switch found := made.(type) {
	case *plan.SynchronousResponsePlan:
		return found.Response, nil, nil
	case *plan.SubscriptionResponsePlan:
		return g.subscription(found.Response)
	}
	return nil, nil, fmt.Errorf("a plan of the kind %T", made)
}

// prepare tells the requests of a plan where their values are.
func (g *Graph) prepare(p *planned) {
	fetches, needs := make(map[int]*entityFetch), make(map[int][]int)
	each := func(item *resolve.FetchItem) {
		id := item.Fetch.Dependencies()
		needs[id.FetchID] = id.DependsOnFetchIDs
		if f := g.step(item); f != nil {
			fetches[id.FetchID] = f
		}
	}
	eachFetch(p.plan.Fetches, each)
	link(fetches, needs)
}

// eachFetch calls do with each request of a plan, in order.
func eachFetch(n *resolve.FetchTreeNode, do func(*resolve.FetchItem)) {
	if n == nil {
		return
	}
	if n.Item != nil {
		do(n.Item)
	}
	for _, child := range n.ChildNodes {
		eachFetch(child, do)
	}
}

// step prepares one request of a plan, and guards it: a panic in it would end the process.
// It returns what there is to know of a request for entities, nil for others.
func (g *Graph) step(item *resolve.FetchItem) (entities *entityFetch) {
	to, template := partsOf(item.Fetch)
	path := g.pathOf(item)
	switch f := (*to).(type) {
	case *restFetch:
		f.path = append(path, f.key)
	case *gds.Source:
		if item.Fetch.FetchKind() != resolve.FetchKindSingle {
			entities = &entityFetch{number: item.Fetch.Dependencies().FetchID, path: path}
			for _, key := range entityKeys(operationOf(template)) {
				entities.fields = append(entities.fields, append(slices.Clip(path), g.shown(key)))
			}
			entities.own = len(entities.fields)
		}
		*to = &remoteFetch{source: g.sources[item.Fetch.FetchInfo().DataSourceName], entities: entities}
	}
	*to = guarded{*to}
	return entities
}

// partsOf returns where a request of a plan has its source, and the template that has what
// is sent.
func partsOf(f resolve.Fetch) (*resolve.DataSource, []resolve.TemplateSegment) {
	switch f := f.(type) {
	case *resolve.SingleFetch:
		return &f.DataSource, f.InputTemplate.Segments
	case *resolve.EntityFetch:
		return &f.DataSource, f.Input.Header.Segments
	case *resolve.BatchEntityFetch:
		return &f.DataSource, f.Input.Header.Segments
	}
	panic(fmt.Sprintf("a request of the kind %T", f))
}

// pathOf returns the path of the objects that a request is about, without indices.
func (g *Graph) pathOf(item *resolve.FetchItem) (path []string) {
	for _, one := range item.ResponsePathElements {
		if one != "@" {
			path = append(path, g.shown(one))
		}
	}
	return path
}
