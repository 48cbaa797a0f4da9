package gateway

import (
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

var (
	handoverLoop   = pipeline.NewRejection(pipeline.ReasonHandoverLoop, 508, "The request was handed over between APIs too many times")
	handoverTarget = pipeline.NewRejection(pipeline.ReasonHandoverTarget, 502, "The API that the request goes on to is not served")
)

// serving is a gateway with the snapshot that requests are served from.
type serving struct {
	*Gateway
	snapshot *Snapshot
}

// HandOver implements pipeline.Others.
func (s *serving) HandOver(ex *pipeline.Exchange, to *pipeline.Ref, uri []byte) pipeline.Verdict {
	next, refused := s.snapshot.goOn(ex, to, uri)
	if refused != nil {
		return ex.Reject(refused)
	}
	s.run(next)
	if meter := next.API.Meter; meter != nil {
		meter.Done(next)
	}
	return takeOver(ex, next)
}

// takeOver makes what became of a request in the API that it went on to what
// became of it.
func takeOver(ex, next *pipeline.Exchange) pipeline.Verdict {
	ex.Upstream = next.Upstream
	if next.Rejection == nil {
		return pipeline.Answered
	}
	ex.RetryAfter, ex.MediaType = next.RetryAfter, next.MediaType
	return ex.Reject(next.Rejection)
}

// goOn returns the exchange that one goes on as in another API, or why it does
// not.
func (s *Snapshot) goOn(ex *pipeline.Exchange, to *pipeline.Ref, uri []byte) (*pipeline.Exchange, *pipeline.Rejection) {
	if ex.Handovers() == pipeline.MaxHandovers {
		return nil, handoverLoop
	}
	api := s.other(ex.API, to)
	if api == nil {
		return nil, handoverTarget
	}
	next := ex.Onward(uri)
	if !s.enter(next, api) {
		return nil, next.Rejection
	}
	return next, nil
}

// enter has a request begin at an API of which its whole path is below the listen
// path, which rules may name all the same. It returns false for a path that can be
// read in two ways.
func (s *Snapshot) enter(ex *pipeline.Exchange, api *pipeline.API) bool {
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

// place has a request begin at the API of an id. It returns false when there is
// none, and for a path that can be read in two ways.
func (s *Snapshot) place(ex *pipeline.Exchange, id string) bool {
	api, ok := s.apis.Get(id)
	return ok && s.enter(ex, api)
}

// other returns the API that a request goes on to from one of the same
// organisation; nil when it is not served, or when several have the name. What ids
// other organisations have given is nothing to this one.
func (s *Snapshot) other(from *pipeline.API, to *pipeline.Ref) *pipeline.API {
	if to.Self {
		return from
	}
	if api := s.within(from.Definition.OrgID, to.Name); api != nil {
		return api
	}
	all, known := s.names.Get(to.Key)
	if id, ok := all.only(); known && ok {
		return s.within(from.Definition.OrgID, id)
	}
	return nil
}

// within returns the API of an id, if it is one of the organisation, or nil.
func (s *Snapshot) within(org, id string) *pipeline.API {
	if api, ok := s.apis.Get(id); ok && api.Definition.OrgID == org {
		return api
	}
	return nil
}
