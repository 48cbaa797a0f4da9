package version

import (
	"bytes"
	"fmt"
	"net/textproto"
	"regexp"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// A selector is where calls name the version that they want.
type selector interface {
	// read returns the name, empty when there is none. It may alias ex.Buf. clear is
	// false for a call that names two versions: its upstream may read the other one.
	read(ex *pipeline.Exchange) (name []byte, clear bool)

	// strip removes the name from the request, if the definition says so. known says
	// that there is a version of that name. leads reports whether the path still begins
	// with the name.
	strip(ex *pipeline.Exchange, known bool) (leads bool)

	// place says where that is, to people.
	place() string
}

// newSelector returns the selector of an API, or nil when calls cannot choose.
func newSelector(def *definition.API) (selector, error) {
	s := def.Selector
	if s == nil {
		return nil, nil
	}
	switch s.Location {
	case definition.VersionInHeader:
		return &header{name: textproto.CanonicalMIMEHeaderKey(s.Key), stripped: s.StripVersioningData}, nil
	case definition.VersionInParam:
		return &param{name: s.Key, stripped: s.StripVersioningData}, nil
	case definition.VersionInPath:
		p := &segment{stripped: s.StripPath || s.StripVersioningData, listens: !def.Proxy.StripListenPath}
		if s.URLPattern == "" {
			return p, nil
		}
		var err error
		if p.form, err = regexp.Compile(s.URLPattern); err != nil {
			return nil, fmt.Errorf("definition.url_versioning_pattern: %w", err)
		}
		return p, nil
	}
	return nil, nil
}

// A header names the version in its line. Where the upstream does not see it, the
// first line counts.
type header struct {
	name     string // canonical
	stripped bool
}

func (h *header) read(ex *pipeline.Exchange) (name []byte, clear bool) {
	call := ex.Call
	if h.stripped {
		return call.Header(h.name), true
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		switch {
		case !call.Is(f, h.name):
		case name == nil:
			name = call.ValueOf(f)
		case !bytes.Equal(call.ValueOf(f), name):
			return nil, false
		}
	}
	return name, true
}

func (h *header) strip(ex *pipeline.Exchange, _ bool) (leads bool) {
	if h.stripped {
		ex.Outgoing.AlsoDrop(h.name)
	}
	return false
}

func (h *header) place() string { return "header " + h.name }

// A segment names the version in the first segment of the path below the listen
// path.
type segment struct {
	form     *regexp.Regexp // of names; nil: every segment is one
	stripped bool
	listens  bool // the upstream is sent the listen path too
}

func (s *segment) read(ex *pipeline.Exchange) (name []byte, clear bool) {
	name = first(ex.Path)
	if s.form != nil && !s.form.Match(name) {
		return nil, true
	}
	return name, true
}

// first returns the first segment of a path that begins with one slash.
func first(path []byte) []byte {
	path = path[1:]
	if before, _, ok := bytes.Cut(path, []byte{'/'}); ok {
		return before
	}
	return path
}

// strip takes the segment off the path. One that names no version stays, unless
// it has the form of a name.
func (s *segment) strip(ex *pipeline.Exchange, known bool) (leads bool) {
	if !known && s.form == nil {
		return false
	}
	if !s.stripped {
		return true
	}
	before := ex.Call.Path[:len(ex.Call.Path)-len(ex.Rest)]
	ex.Path, ex.Rest = match.Rest(ex.Path, 1), match.Rest(ex.Rest, 1)
	if s.listens {
		out := &ex.Outgoing
		out.Path = append(append(out.Path[:0], before...), ex.Rest...)
		out.HasPath = true
	}
	return false
}

func (s *segment) place() string { return "first segment of the path" }
