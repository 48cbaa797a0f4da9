package snapshot

import (
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

var (
	internalLoop   = pipeline.NewRejection(pipeline.ReasonInternalLoop, 508, "The request was handed over between APIs too many times")
	internalTarget = pipeline.NewRejection(pipeline.ReasonInternalTarget, 502, "The API that the request goes on to is not served")
)

// Child returns the exchange of an internal call of ex to another API, to the path
// and query uri, or why it cannot be made.
func (s *Snapshot) Child(ex *pipeline.Exchange, to *pipeline.APIRef, uri []byte) (*pipeline.Exchange, *pipeline.Rejection) {
	if ex.Depth() == pipeline.MaxInternalCalls {
		return nil, internalLoop
	}
	api := s.resolve(ex.API, to)
	if api == nil {
		return nil, internalTarget
	}
	child := ex.NewChild(uri)
	if !s.begin(child, api) {
		return nil, child.Rejection
	}
	return child, nil
}

// FindID sets the API of an exchange by its id. The path of the call is the one
// below the listen path. It returns false when the API is not served or the path is
// ambiguous.
func (s *Snapshot) FindID(ex *pipeline.Exchange, id string) bool {
	api, ok := s.apis.Get(id)
	return ok && s.begin(ex, api)
}

// begin sets the API of an internal call, whose path is the one below the listen
// path. Rules may name the listen path all the same. It returns false, with a
// rejection, for an ambiguous path.
func (s *Snapshot) begin(ex *pipeline.Exchange, api *pipeline.API) bool {
	listens := strings.TrimSuffix(api.Definition.Proxy.ListenPath, "/")
	path, err := match.Decode(append(ex.PathBuf[:0], listens...), ex.Call.Path)
	ex.PathBuf = path
	if err != nil {
		ex.Rejection = badPath
		return false
	}
	ex.API, ex.Version, ex.Policies, ex.Revision = api, api.Version, s.policies, s.Revision
	ex.Path, ex.Rest = path[len(listens):], ex.Call.Path
	return true
}

// resolve returns the API of a reference, of the same organisation as the calling
// API: ids and names of other organisations do not matter. It returns nil when the
// API is not served, or when several have the name.
func (s *Snapshot) resolve(from *pipeline.API, to *pipeline.APIRef) *pipeline.API {
	if to.Self {
		return from
	}
	if api := s.ofOrg(from.Definition.OrgID, to.Name); api != nil {
		return api
	}
	all, known := s.names.Get(to.Key)
	if id, ok := all.only(); known && ok {
		return s.ofOrg(from.Definition.OrgID, id)
	}
	return nil
}

// ofOrg returns the API of an id if it belongs to the organisation, or nil.
func (s *Snapshot) ofOrg(org, id string) *pipeline.API {
	if api, ok := s.apis.Get(id); ok && api.Definition.OrgID == org {
		return api
	}
	return nil
}
