package gateway

import (
	"time"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/frozen"
)

// A Snapshot is all that requests are served from, compiled from one bundle. A
// request keeps the snapshot that it began with.
type Snapshot struct {
	Revision string
	Since    time.Time
	Failed   map[string]error // by API id: why it is not served as its definition says

	routes   *match.Tree[*pipeline.API]
	apis     *frozen.Map[*pipeline.API] // by id, those that are served
	graphs   *frozen.Map[*pipeline.API] // of them those that know GraphQL
	names    *frozen.Map[ids]           // of those that are served, by organisation and name
	policies *definition.PolicySet
	others   pipeline.Others // that requests may go on to

	// What the next snapshot is made of at the cost of what changes.
	given     []*definition.API // the bundle's, in its order
	unsettled []int             // which of given are not served as written: they are tried again
	kept      []string          // ids of APIs that are served although given lacks them: they could not be read
	refused   []place           // where requests are refused for want of an API
	doubled   bool              // given holds two definitions of one id
	caches    map[string]int64  // the bundle's
}

// A place is where an API listens.
type place struct{ domain, listenPath string }

// APIs returns the definitions that are served, ordered by id.
func (s *Snapshot) APIs() []*definition.API {
	all := make([]*definition.API, 0, s.apis.Len())
	for _, id := range s.apis.Sorted() {
		all = append(all, s.API(id))
	}
	return all
}

// API returns the definition that is served under an id, or nil.
func (s *Snapshot) API(id string) *definition.API {
	if api, ok := s.apis.Get(id); ok {
		return api.Definition
	}
	return nil
}

// Policies returns the policies in force.
func (s *Snapshot) Policies() *definition.PolicySet { return s.policies }

// find chooses the API, or the rejection when there is none. The snapshot may be
// nil: then there is none.
func (s *Snapshot) find(ex *pipeline.Exchange) bool {
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
	ex.Others = s.others
	ex.Path, ex.Rest = match.Rest(path, segments), match.Rest(ex.Call.Path, segments)
	return true
}
