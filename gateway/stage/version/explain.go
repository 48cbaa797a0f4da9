package version

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// Explain reports the version of the call and how it was chosen, when it expires, and
// the list entry that decided.
func (s *stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	if s.ambiguous {
		f.Fact("version_data.not_versioned", "true", strconv.Itoa(len(s.def.VersionData.Versions))+" versions, none of them called Default", "definition")
		f.Said = "the API is not versioned, and which of its versions applies is not clear"
		f.Fix = `call one of the versions "Default", or leave only one of them`
		return
	}
	at, v, leads := 0, s.def.Unversioned(), false
	if s.names != nil {
		if !s.explainChoice(ex, f) {
			return
		}
		at, v, leads = s.names[ex.Version.Name], ex.Version.Definition, s.leads(ex)
	}
	s.explainHold(ex, f, at, v, leads)
}

// explainHold reports what decided on a call to the version at a place.
func (s *stage) explainHold(ex *pipeline.Exchange, f *pipeline.Finding, at int, v *definition.Version, leads bool) {
	one := &s.versions[at]
	if one.ends {
		f.Fact("expires", v.Expires, ex.Moment().UTC().Format("2006-01-02 15:04"), "definition")
	}
	switch {
	case ex.Rejection == one.expired:
		f.Said = "the version has expired"
		f.Fix = `set expires of the version to a later time, as in "2030-12-31 23:59" (UTC), or to "-1" for never`
	case one.lists != nil:
		one.lists.explain(ex, f, leads)
	}
}

// explainChoice reports how the version was chosen. It returns false when the call has
// none.
func (s *stage) explainChoice(ex *pipeline.Exchange, f *pipeline.Finding) bool {
	place := "nowhere"
	if s.selector != nil {
		place = s.selector.place()
	}
	names := strings.Join(s.def.VersionNames(), ", ")
	f.Fact("version_data.versions", names, "selected by "+place, "definition")
	if d := s.def.VersionData.DefaultVersion; d != "" {
		f.Fact("version_data.default_version", d, "", "definition")
	}
	switch ex.Rejection {
	case missing:
		f.Said = "the call names no version, and none is the default"
		f.Fix = "name one of " + names + " (" + place + "), or set version_data.default_version"
		return false
	case unclear:
		f.Said = "the call names more than one version, and its upstream may read another than the gateway"
		f.Fix = "name one version (" + place + "), or set definition.strip_versioning_data, so that the first counts"
		return false
	case unknown:
		f.Said = "the call names a version that does not exist"
		f.Fix = "name one of " + names + " (" + place + "), or set definition.fallback_to_default"
		return false
	}
	f.Said = "the call is for version " + strconv.Quote(ex.Version.Name)
	return true
}

// leads reports, after the call has been handled, whether its path begins with the
// name of its version.
func (s *stage) leads(ex *pipeline.Exchange) bool {
	in, ok := s.selector.(*segment)
	if !ok || in.stripped {
		return false
	}
	name, _ := in.read(ex)
	_, known := s.names[string(name)]
	return len(name) > 0 && (known || in.form != nil)
}

// explain reports which entry decided on the call.
func (l *lists) explain(ex *pipeline.Exchange, f *pipeline.Finding, leads bool) {
	seen := fmt.Sprintf("%s %s", ex.Call.Method, ex.Path)
	r, pass := l.decide(ex, leads)
	if r != nil {
		f.Fact(r.at, r.Path, seen, "definition")
	}
	switch {
	case r == nil && pass: // no list is about the path
	case r == nil:
		f.Fact("white_list", "no entry for the call", seen, "definition")
		f.Said = "only calls of the white list may pass, and this one is not on it"
		f.Fix = "add the path and method to white_list of the version"
	case !pass:
		f.Said = "the path is on the black list"
		f.Fix = "take the entry out of black_list of the version, or disable it"
	case r.reply != nil:
		f.Said = "the entry answers by itself, with status " + strconv.Itoa(r.reply.status)
	case r.kind == ignored && l.keys:
		f.Said = "the path is ignored: no key is asked for, and nothing of it is counted for a key"
	}
}

// Explain reports which reply answers the call.
func (s *mocks) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	m, ok := s.find(ex)
	if !ok {
		f.Said = "no reply is written for the call"
		return
	}
	f.Fact(m.at, m.Path, fmt.Sprintf("%s %s", ex.Call.Method, ex.Path), "definition")
	f.Said = "the call is answered in place of the upstream, with status " + strconv.Itoa(m.reply.status)
}
