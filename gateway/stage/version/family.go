package version

import (
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/gateway/internalcall"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// family chooses between an API and others that are versions of it. A call for one
// of those is theirs from here on: their credentials and limits count, and none of
// this API's.
type family struct {
	versions definition.VersionAPIs
	fallback bool     // calls that name a version that there is not get the default
	selector selector // nil: calls cannot name a version
	others   map[string]*internalcall.Stage
	own      *stage // nil: there is nothing to hold calls against that are the API's own
}

func newFamily(def *definition.API, own *stage) (*family, error) {
	f := &family{
		versions: *def.OtherVersions(), fallback: def.Selector.FallbackToDefault, own: own,
		others: make(map[string]*internalcall.Stage, len(def.Selector.Versions)),
	}
	for name, api := range f.versions.Others {
		to, err := internalcall.ToVersion(def, api)
		if err != nil {
			return nil, fmt.Errorf("definition.versions[%q]: %w", name, err)
		}
		f.others[name] = to
	}
	var err error
	f.selector, err = newSelector(def)
	return f, err
}

// Handle hands a call over to the API that it is for, or goes on with one that is
// for this one.
func (s *family) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	other, leads, refused := s.choose(ex)
	switch {
	case refused != nil:
		return ex.Reject(refused)
	case other != nil:
		ex.Version = ex.API.InternalVersion
		return other.Handle(ex)
	case s.own == nil:
		return pipeline.Next
	case s.own.ambiguous:
		return ex.Reject(ambiguous)
	}
	return s.own.hold(ex, 0, leads)
}

// choose returns the API that a call is for, nil for this one, and removes the name
// of the version from the call if the definition says so. leads reports whether the
// path still begins with the name.
func (s *family) choose(ex *pipeline.Exchange) (other *internalcall.Stage, leads bool, refused *pipeline.Rejection) {
	name, clear := []byte(nil), true
	if s.selector != nil {
		name, clear = s.selector.read(ex)
	}
	if !clear {
		return nil, false, unclear
	}
	if len(name) == 0 {
		if s.versions.Default == "" {
			return nil, false, missing
		}
		return s.others[s.versions.Default], false, nil
	}
	other, known := s.others[string(name)]
	known = known || string(name) == definition.Self || string(name) == s.versions.Name
	if !known {
		if !s.fallback || s.versions.Default == "" {
			return nil, false, unknown
		}
		other = s.others[s.versions.Default]
	}
	return other, s.selector.strip(ex, known), nil
}

// Explain reports which API the call was for, and how it was chosen.
func (s *family) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	place := "nowhere"
	if s.selector != nil {
		place = s.selector.place()
	}
	names := strings.Join(s.versions.Names(), ", ")
	f.Fact("definition.versions", names, "selected by "+place, "definition")
	if s.versions.Default != "" {
		f.Fact("definition.default", s.versions.Default, "", "definition")
	}
	switch ex.Rejection {
	case missing:
		f.Said = "the call names no version, and none is the default"
		f.Fix = "name one of " + names + " (" + place + "), or set definition.default"
		return
	case unclear:
		f.Said = "the call names more than one version, and its upstream may read another than the gateway"
		f.Fix = "name one version (" + place + "), or set definition.strip_versioning_data, so that the first counts"
		return
	case unknown:
		f.Said = "the call names a version that does not exist"
		f.Fix = "name one of " + names + " (" + place + "), or set definition.fallback_to_default"
		return
	}
	if ex.Version != nil && ex.Version == ex.API.InternalVersion {
		explainOther(ex, f)
		return
	}
	f.Said = "the call is for this API itself"
	if s.own != nil && !s.own.ambiguous {
		s.own.explainHold(ex, f, 0, s.own.def.Unversioned(), s.leads(ex))
	}
}

// explainOther explains a call that is for another API.
func explainOther(ex *pipeline.Exchange, f *pipeline.Finding) {
	if r := ex.Rejection; r != nil && !ex.RefusedByChild() {
		f.Said, f.Fix = "the call is for a version that is another API, and does not get there", internalcall.Fix(r)
		return
	}
	f.Said = "the call is for a version that is API " + ex.Child.API.Definition.ID + ", whose rules hold for it in place of this one's"
}

// leads reports, after the call has been handled, whether its path begins with the
// name of its version.
func (s *family) leads(ex *pipeline.Exchange) bool {
	in, ok := s.selector.(*segment)
	if !ok || in.stripped {
		return false
	}
	name, _ := in.read(ex)
	return len(name) > 0 && (s.versions.Has(string(name)) || in.form != nil)
}
