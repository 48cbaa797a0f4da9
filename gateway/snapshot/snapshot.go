// Package snapshot compiles bundles of definitions into snapshots, which requests
// are served from.
//
// A snapshot is immutable. The next one is built beside the traffic at the cost of
// what changed: an API whose definition is the same object keeps its compiled form,
// and one that no longer compiles keeps its last good form.
package snapshot

import (
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
)

// A Snapshot is one configuration, compiled from a bundle. A request keeps the
// snapshot that it began with.
type Snapshot struct {
	Revision string
	Since    time.Time
	Failed   map[string]error // by API id: why it is not served as its definition says

	Elsewhere []*definition.API // that other gateways serve

	routes   *match.Tree[*pipeline.API]
	apis     *frozen.Map[*pipeline.API] // by id, those that are served
	graphs   *frozen.Map[*pipeline.API] // the GraphQL APIs among them
	names    *frozen.Map[ids]           // of those that are served, by organisation and name
	policies *definition.PolicySet

	// What the next snapshot is compared with.
	given     []*definition.API // the bundle's, in its order
	unsettled []int             // indices in given that are not served as written: they are tried again
	kept      []string          // ids of APIs that are served although given lacks them: they could not be read
	refused   []refusedAPI      // whose calls are refused because it never compiled
	doubled   bool              // given holds two definitions of one id
	caches    map[string]int64  // the bundle's
}

// A place is where an API listens.
type place struct{ domain, listenPath string }

// A refusedAPI is one whose calls a stand-in refuses.
type refusedAPI struct {
	id string
	place
}

var (
	noRoute    = plainText(pipeline.NewRejection(pipeline.ReasonRouteNotFound, 404, "Not Found"))
	badPath    = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The request path is ambiguous or malformed")
	notStarted = pipeline.NewRejection(pipeline.ReasonNotServed, 503, "Configuration is not loaded yet")
	// The text is the one that users of comparable gateways know.
	schemaBroken = pipeline.NewRejection(pipeline.ReasonSchemaBroken, 500, "there was a problem proxying the request")
	notServed    = pipeline.NewRejection(pipeline.ReasonNotServed, 503, "This API's definition could not be loaded")
)

func plainText(r *pipeline.Rejection) *pipeline.Rejection {
	r.PlainText = true
	return r
}

// APIs returns the definitions that are served, ordered by id.
func (s *Snapshot) APIs() []*definition.API {
	all := make([]*definition.API, 0, s.apis.Len())
	for _, id := range s.apis.Sorted() {
		all = append(all, s.API(id))
	}
	return all
}

// Len returns the number of APIs that are served.
func (s *Snapshot) Len() int { return s.apis.Len() }

// API returns the definition that is served under an id, or nil.
func (s *Snapshot) API(id string) *definition.API {
	if api, ok := s.apis.Get(id); ok {
		return api.Definition
	}
	return nil
}

// GraphQLAPIs returns the GraphQL APIs that are served.
func (s *Snapshot) GraphQLAPIs() []*pipeline.API {
	graphs := make([]*pipeline.API, 0, s.graphs.Len())
	for _, api := range s.graphs.All() {
		graphs = append(graphs, api)
	}
	return graphs
}

// Policies returns the policies in force.
func (s *Snapshot) Policies() *definition.PolicySet { return s.policies }

// Invalidated returns the ids of the APIs whose cached responses the bundle asks to
// drop, and prev's bundle did not.
func (s *Snapshot) Invalidated(prev *Snapshot) (ids []string) {
	for id, clear := range s.caches {
		if prev.caches[id] != clear {
			ids = append(ids, id)
		}
	}
	return ids
}

// Find sets the API of an exchange by host and path, or the rejection when there is
// none. The nil snapshot has no APIs.
func (s *Snapshot) Find(ex *pipeline.Exchange) bool {
	if s == nil {
		ex.Rejection = notStarted
		return false
	}
	path, err := match.Decode(ex.PathBuf[:0], ex.Call.Path)
	if err != nil {
		ex.Rejection = badPath
		return false
	}
	ex.PathBuf = path
	api, segments, ok := s.routes.Find(ex.Call.Host, path, nil)
	if !ok {
		ex.Rejection = noRoute
		return false
	}
	ex.API, ex.Version, ex.Policies, ex.Revision = api, api.Version, s.policies, s.Revision
	ex.Path, ex.Rest = match.Rest(path, segments), match.Rest(ex.Call.Path, segments)
	return true
}
