package usage

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxName is how much of an operation's name is kept, in bytes. Names are ASCII.
const maxName = 64

// Other is the name under which operations count once there are too many names.
const Other = "other"

// operation counts the operations of one kind and name, by result.
type operation struct {
	results [results]atomic.Uint64
}

// operationID is what an operation is counted under.
type operationID struct {
	kind syntax.OperationKind
	name string
}

func identify(kind syntax.OperationKind, name string) operationID {
	return operationID{kind, name[:min(len(name), maxName)]}
}

// names are the operations of an API that count by themselves. Clients choose
// the names, so that there is room for some only.
type names struct {
	max    int
	others [syntax.Subscription + 1]operation // by kind

	mu    sync.Mutex // for who adds
	known atomic.Pointer[map[operationID]*operation]
}

// find returns where an operation is counted, without making room for it.
func (n *names) find(kind syntax.OperationKind, name string) *operation {
	if known := n.known.Load(); known != nil {
		if o := (*known)[identify(kind, name)]; o != nil {
			return o
		}
	}
	return &n.others[kind]
}

// add returns where an operation is counted. It makes room for its name if there
// is any left.
func (n *names) add(kind syntax.OperationKind, name string) *operation {
	id := identify(kind, name)
	if id.name == Other {
		return &n.others[kind]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var known map[operationID]*operation
	if p := n.known.Load(); p != nil {
		known = *p
	}
	if o := known[id]; o != nil {
		return o
	}
	if len(known) >= n.max {
		return &n.others[kind]
	}
	id.name = strings.Clone(id.name) // it may be a part of the whole text
	more := make(map[operationID]*operation, len(known)+1)
	maps.Copy(more, known)
	o := new(operation)
	more[id] = o
	n.known.Store(&more)
	return o
}

// Run is how often the operations of one kind and name had a result.
type Run struct {
	Kind   syntax.OperationKind
	Name   string // at most 64 bytes; "" for those without a name, Other for those that have no room
	Result Result
	Count  uint64 // not 0
}

// Runs returns what was run, in no order.
func (a *API) Runs() (all []Run) {
	if known := a.names.known.Load(); known != nil {
		for id, o := range *known {
			all = o.append(all, id)
		}
	}
	for kind := range a.names.others {
		all = a.names.others[kind].append(all, operationID{syntax.OperationKind(kind), Other})
	}
	return all
}

func (o *operation) append(all []Run, id operationID) []Run {
	for r := range o.results {
		if n := o.results[r].Load(); n > 0 {
			all = append(all, Run{id.kind, id.name, Result(r), n})
		}
	}
	return all
}

// maxDepth is the deepest that operations are told apart by, in levels.
const maxDepth = 20

// depthBounds are the buckets that depths are shown in.
var depthBounds = [...]int{1, 2, 3, 5, 7, 10, 15, maxDepth}

// depths counts operations by their levels.
type depths struct {
	counts [maxDepth + 2]atomic.Uint64 // the last of those that are deeper
	deeper atomic.Uint64               // levels of the deeper ones, summed
}

func (d *depths) count(levels int) {
	if levels > maxDepth {
		d.deeper.Add(uint64(levels))
		levels = maxDepth + 1
	}
	d.counts[levels].Add(1)
}

// Depths returns how deep operations were, refused ones included: their number,
// their levels summed, and how many had at most as many levels as each bound.
func (a *API) Depths() (count uint64, sum float64, cumulative map[float64]uint64) {
	cumulative = make(map[float64]uint64, len(depthBounds))
	levels := a.depths.deeper.Load()
	for depth := range maxDepth + 1 {
		n := a.depths.counts[depth].Load()
		count += n
		levels += n * uint64(depth)
		if slices.Contains(depthBounds[:], depth) {
			cumulative[float64(depth)] = count
		}
	}
	return count + a.depths.counts[maxDepth+1].Load(), float64(levels), cumulative
}
