package usage

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/metrics"
)

// maxName is how much of an operation's name is kept, in bytes. Names are ASCII.
const maxName = 64

// otherName is the name under which operations count once there are too many names.
const otherName = "other"

// runs counts the operations of one kind and name, by result.
type runs struct {
	results [results]atomic.Uint64
}

// operationID is the kind and the name of an operation.
type operationID struct {
	kind syntax.OperationKind
	name string
}

func identify(kind syntax.OperationKind, name string) operationID {
	return operationID{kind, name[:min(len(name), maxName)]}
}

// operationNames are the operations of an API that are counted by name. Clients
// choose the names, so their number is bounded.
type operationNames struct {
	max    int
	others [syntax.Subscription + 1]runs // by kind

	mu    sync.Mutex // held by add
	known atomic.Pointer[map[operationID]*runs]
}

// find returns where an operation is counted, without adding its name.
func (n *operationNames) find(kind syntax.OperationKind, name string) *runs {
	if known := n.known.Load(); known != nil {
		if r := (*known)[identify(kind, name)]; r != nil {
			return r
		}
	}
	return &n.others[kind]
}

// add returns where an operation is counted. It adds its name unless there are too
// many.
func (n *operationNames) add(kind syntax.OperationKind, name string) *runs {
	id := identify(kind, name)
	if id.name == otherName {
		return &n.others[kind]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var known map[operationID]*runs
	if p := n.known.Load(); p != nil {
		known = *p
	}
	if r := known[id]; r != nil {
		return r
	}
	if len(known) >= n.max {
		return &n.others[kind]
	}
	id.name = strings.Clone(id.name) // it may be a part of the whole document
	more := make(map[operationID]*runs, len(known)+1)
	maps.Copy(more, known)
	r := new(runs)
	more[id] = r
	n.known.Store(&more)
	return r
}

// each calls f for every kind and name with a result that is not 0, in no order.
func (n *operationNames) each(f func(id operationID, r Result, count uint64)) {
	report := func(id operationID, one *runs) {
		for r := range one.results {
			if count := one.results[r].Load(); count > 0 {
				f(id, Result(r), count)
			}
		}
	}
	if known := n.known.Load(); known != nil {
		for id, one := range *known {
			report(id, one)
		}
	}
	for kind := range n.others {
		report(operationID{syntax.OperationKind(kind), otherName}, &n.others[kind])
	}
}

// maxDepth is the largest depth that has a bucket, in levels.
const maxDepth = 20

// depthBounds are the buckets of the histogram of depths.
var depthBounds = [...]int{1, 2, 3, 5, 7, 10, 15, maxDepth}

// depths counts operations by depth.
type depths struct {
	counts [maxDepth + 2]atomic.Uint64 // the last one: deeper than maxDepth
	deeper atomic.Uint64               // sum of the levels of the deeper ones
}

func (d *depths) count(levels int) {
	if levels > maxDepth {
		d.deeper.Add(uint64(levels))
		levels = maxDepth + 1
	}
	d.counts[levels].Add(1)
}

// histogram returns the number of operations, refused ones included, the sum of their
// levels, and how many had at most as many levels as each bound.
func (d *depths) histogram() (count uint64, sum float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, len(depthBounds))
	levels := d.deeper.Load()
	for depth := range maxDepth + 1 {
		n := d.counts[depth].Load()
		count += n
		levels += n * uint64(depth)
		if slices.Contains(depthBounds[:], depth) {
			cumulative[float64(depth)] = count
		}
	}
	return count + d.counts[maxDepth+1].Load(), float64(levels), cumulative
}

var (
	operationsTotal = metrics.Describe("graphql_operations_total", "GraphQL operations, by type, name and what came of them; names beyond 200 of an API count as other.", "api", "type", "operation", "result")
	operationDepth  = metrics.Describe("graphql_depth", "Levels of GraphQL operations, refused ones included.", "api")
	readsDropped    = metrics.Describe("graphql_usage_dropped_total", "Reads of fields that the report on field usage had no room for.", "api")
)

// Metrics returns the metrics of all operations.
func (u *Operations) Metrics() prometheus.Collector {
	return metrics.New(func(ch chan<- prometheus.Metric) {
		u.mu.Lock()
		apis := maps.Clone(u.apis)
		u.mu.Unlock()
		for id, a := range apis {
			a.collect(ch, metrics.Label(id))
		}
	}, operationsTotal, operationDepth, readsDropped)
}

func (a *APIOperations) collect(ch chan<- prometheus.Metric, api string) {
	a.names.each(func(id operationID, r Result, count uint64) {
		ch <- metrics.Counter(operationsTotal, count, api, id.kind.String(), metrics.Label(id.name), r.String())
	})
	if count, sum, buckets := a.depths.histogram(); count > 0 {
		ch <- prometheus.MustNewConstHistogram(operationDepth, count, sum, buckets, api)
	}
	ch <- metrics.Counter(readsDropped, a.droppedReads(), api)
}
