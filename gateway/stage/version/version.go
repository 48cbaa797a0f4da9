// Package version chooses the version of an API that a call wants, and holds
// calls against what a version says about single paths: those that skip
// governance, are the only ones or are refused, those that are answered without
// an upstream, and how large a body they take.
//
// A call names its version in a header, a query parameter or the first segment of
// its path. That is decided before credentials are looked at, so that an unknown
// version on an API with keys is 403 and not 401.
package version

import (
	"fmt"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
)

const noVersion = "This API version does not seem to exist"

var (
	ambiguous = refusal(pipeline.ReasonVersionMissing, "Ambiguous default API version for this non-versioned API")
	missing   = refusal(pipeline.ReasonVersionMissing, "Version information not found")
	unknown   = refusal(pipeline.ReasonVersionUnknown, noVersion)
	unclear   = refusal(pipeline.ReasonVersionUnknown, noVersion) // several are named
	forbidden = refusal(pipeline.ReasonPathDenied, "Requested endpoint is forbidden")

	expiredVersion = refusal(pipeline.ReasonVersionExpired, "Api Version has expired, please check documentation or contact administrator")
	expiredAPI     = refusal(pipeline.ReasonVersionExpired, "API has expired, please check documentation or contact administrator")
)

func refusal(reason pipeline.Reason, text string) *pipeline.Rejection {
	return pipeline.NewRejection(reason, 403, text).Raising(event.VersionFailure)
}

// Options is what holds for all APIs.
type Options struct {
	// Unanchored makes entries of path lists without operators of regular
	// expressions match anywhere in a path.
	Unanchored bool
}

// none stands for no version where a place among versions is meant.
const none = -1

// stage chooses among the versions of one API and holds calls against the lists
// of the one chosen.
type stage struct {
	def       *definition.API
	ambiguous bool // no version is meant, all calls are refused

	selector selector       // nil: calls cannot name a version
	names    map[string]int // of versions, to their places; nil: the API is not versioned
	byName   int            // place of the version of calls that name none
	fallback int            // place of that of calls that name one there is not
	versions []one          // by place in API.Versions
}

// one is what is known of a version.
type one struct {
	ends    bool
	end     time.Time // zero: it has ended already
	expired *pipeline.Rejection
	lists   *lists // nil: all paths are alike
}

// Compile returns the stage for an API, or nil when it has one version only,
// which does not end and treats all paths alike.
func Compile(def *definition.API, o Options) (pipeline.Stage, error) {
	own, err := newStage(def, o)
	switch {
	case err != nil:
		return nil, err
	case def.OtherVersions() != nil:
		return newFamily(def, own)
	case own == nil:
		return nil, nil
	}
	return own, nil
}

// newStage makes the stage for the versions that are the API's own, nil when there
// is nothing for it to do.
func newStage(def *definition.API, o Options) (*stage, error) {
	if def.Ambiguous() {
		return &stage{def: def, ambiguous: true}, nil
	}
	if !def.Versioned() {
		only, err := compileOne(def, def.Unversioned(), o)
		if err != nil || !only.ends && only.lists == nil {
			return nil, err
		}
		only.expired = expiredAPI
		return &stage{def: def, versions: []one{only}}, nil
	}
	s := &stage{def: def, names: make(map[string]int), byName: none, fallback: none}
	for i, name := range def.VersionNames() {
		v, err := compileOne(def, def.VersionData.Versions[name], o)
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", name, err)
		}
		s.versions = append(s.versions, v)
		s.names[name] = i
	}
	if at, ok := s.names[def.VersionData.DefaultVersion]; ok {
		s.byName = at
		if def.Selector != nil && def.Selector.FallbackToDefault {
			s.fallback = at
		}
	}
	var err error
	s.selector, err = newSelector(def)
	return s, err
}

func compileOne(def *definition.API, v *definition.Version, o Options) (one, error) {
	lists, err := newLists(def, v, o)
	end, ends := v.Expiry()
	return one{ends: ends, end: end, expired: expiredVersion, lists: lists}, err
}

// Handle chooses the version, and refuses the call when there is none for it or a
// list says so.
func (s *stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if s.ambiguous {
		return ex.Reject(ambiguous)
	}
	at, leads := 0, false
	if s.names != nil {
		var refused *pipeline.Rejection
		if at, leads, refused = s.choose(ex); refused != nil {
			return ex.Reject(refused)
		}
		ex.Version = ex.API.Versions[at]
	}
	return s.hold(ex, at, leads)
}

// hold holds a call against what is known of the version at a place.
func (s *stage) hold(ex *pipeline.Exchange, at int, leads bool) pipeline.Verdict {
	v := &s.versions[at]
	switch {
	case v.ends && !ex.Moment().Before(v.end):
		return ex.Reject(v.expired)
	case v.lists != nil:
		return v.lists.handle(ex, leads)
	}
	return pipeline.Next
}

// choose returns the place of the version that a call is for, and removes its name
// from the call if the definition says so. leads reports whether the path still begins
// with the name.
func (s *stage) choose(ex *pipeline.Exchange) (at int, leads bool, refused *pipeline.Rejection) {
	name, clear := []byte(nil), true
	if s.selector != nil {
		name, clear = s.selector.read(ex)
	}
	if !clear {
		return none, false, unclear
	}
	if len(name) == 0 {
		if s.byName == none {
			return none, false, missing
		}
		return s.byName, false, nil
	}
	at, known := s.names[string(name)]
	if !known {
		at = s.fallback
	}
	if at == none {
		return none, false, unknown
	}
	return at, s.selector.strip(ex, known), nil
}

// End returns the stage that adds the expiry of a version to its answers and refusals.
// It is nil for a version that does not expire, or whose expiry cannot be parsed.
func End(v *definition.Version) pipeline.Stage {
	end, ends := v.Expiry()
	if !ends || end.IsZero() {
		return nil
	}
	return &ending{end: end, line: "X-Svc-Api-Expires: " + end.Format(httpTime) + "\r\n"}
}

// httpTime is the form of RFC 1123 in which times stand in headers.
const httpTime = "Mon, 02 Jan 2006 15:04:05 GMT"

type ending struct {
	end  time.Time
	line string
}

// Handle adds the header, unless the version has ended or the call got none.
func (s *ending) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	if r := ex.Rejection; r != nil && (r == missing || r == unknown || r == unclear) || !ex.Moment().Before(s.end) {
		return pipeline.Next
	}
	ex.Answer.Lines = append(ex.Answer.Lines, s.line...)
	return pipeline.Next
}
