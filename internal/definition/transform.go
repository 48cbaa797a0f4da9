package definition

import (
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
)

const (
	maxHeaderRules    = 1_000   // headers of one rule
	maxHeaderTemplate = 8 << 10 // bytes of one value
	maxPlaces         = 256     // hosts and APIs that rewrites name
)

// HeaderRule removes headers and then sets others.
type HeaderRule struct {
	PathMatch
	// Headers that are set, at most 1000; values of at most 8192 bytes may hold $svc_context and $svc_meta variables.
	// Example: {"X-Source": "gateway"}
	Add map[string]string `json:"add_headers,omitempty"`
	// Headers that are removed, at most 1000.
	// Example: ["X-Debug"]
	Delete  []string `json:"delete_headers,omitempty"`
	Unknown Unknown  `json:"-"`
}

// onRules returns the rules of a list that are on.
func onRules(rules []HeaderRule) (on []HeaderRule) {
	for _, r := range rules {
		if !r.Disabled {
			on = append(on, r)
		}
	}
	return on
}

// HeaderRules returns the changes of request headers for single paths that are on. v
// may be nil.
func (v *Version) HeaderRules() []HeaderRule { return onRules(v.Extended().RequestHeaders) }

// ResponseHeaderRules returns the changes of response headers for single paths that
// are on. v may be nil.
func (v *Version) ResponseHeaderRules() []HeaderRule { return onRules(v.Extended().ResponseHeaders) }

// Rewrites returns the rewrites that are on. v may be nil.
func (v *Version) Rewrites() (on []RewriteRule) {
	for _, r := range v.Extended().Rewrites {
		if !r.Disabled {
			on = append(on, r)
		}
	}
	return on
}

// checkTransforms checks changes of headers and rewrites.
func (e *ExtendedPaths) checkTransforms(f *object.Faults) {
	checkHeaderRules(f, "transform_headers", e.RequestHeaders)
	checkHeaderRules(f, "transform_response_headers", e.ResponseHeaders)
	f.Count("url_rewrites", len(e.Rewrites), maxPathEntries)
	var on []RewriteRule
	for i := range e.Rewrites {
		if r := &e.Rewrites[i]; !r.Disabled {
			r.check(f, object.Item("url_rewrites", i))
			on = append(on, *r)
		}
	}
	if n := len(RewriteTargets(on)); n > maxPlaces {
		f.Addf("url_rewrites", "name %d hosts and APIs; at most %d are allowed", n, maxPlaces)
	}
}

func checkHeaderRules(f *object.Faults, path string, rules []HeaderRule) {
	f.Count(path, len(rules), maxPathEntries)
	for i := range rules {
		r, at := &rules[i], object.Item(path, i)
		if r.Disabled {
			continue
		}
		r.checkStandard(f, at)
		f.Below(at, checkSetHeaders("add_headers", r.Add))
		f.Below(at, checkNames("delete_headers", r.Delete))
	}
}

// checkStandard checks the pattern, and a standard method in upper case.
func (m *PathMatch) checkStandard(f *object.Faults, at string) {
	checkPattern(f, at+".path", m.Path)
	switch m.Method {
	case "", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE":
	default:
		f.Add(at+".method", "must be a method such as GET, in upper case, or be left out for all of them")
	}
}

// checkGlobalHeaders checks the headers that a version sets and removes for all calls.
func (p *Problems) checkGlobalHeaders(at string, v *Version) {
	if !v.GlobalHeadersDisabled {
		p.join(at, asProblems(append(checkSetHeaders("global_headers", v.GlobalHeaders), checkNames("global_headers_remove", v.GlobalHeadersRemove)...)...))
	}
	if !v.GlobalResponseHeadersDisabled {
		p.join(at, asProblems(append(checkSetHeaders("global_response_headers", v.GlobalResponseHeaders), checkNames("global_response_headers_remove", v.GlobalResponseHeadersRemove)...)...))
	}
}

// checkSetHeaders checks headers that are set, by name.
func checkSetHeaders(path string, headers map[string]string) []object.Fault {
	var f object.Faults
	f.Count(path, len(headers), maxHeaderRules)
	seen := make(map[string]bool, len(headers))
	for _, name := range object.SortedKeys(headers) {
		at, value, lower := object.Entry(path, name), headers[name], strings.ToLower(name)
		f.Add(at, nameFault(name))
		if seen[lower] {
			f.Add(at, "stands twice: upper and lower case are the same in header names")
		}
		seen[lower] = true
		if len(value) > maxHeaderTemplate {
			f.Addf(at, "has %d bytes; at most %d are allowed", len(value), maxHeaderTemplate)
		}
		if hasControl(value) {
			f.Add(at, "must not hold line breaks or other control characters: they would end the header")
		}
	}
	return f
}

// checkNames checks the names of headers that are removed.
func checkNames(path string, names []string) []object.Fault {
	var f object.Faults
	f.Count(path, len(names), maxHeaderRules)
	for i, name := range names {
		f.Add(object.Item(path, i), nameFault(name))
	}
	return f
}

// headerFraming are the headers that say where a message ends, which host it is for or
// what holds for one connection only. The gateway writes them itself.
var headerFraming = map[string]bool{
	"connection": true, "content-length": true, "expect": true, "host": true, "http2-settings": true,
	"keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
}

func nameFault(name string) string {
	switch {
	case !isToken(name):
		return "must be a header name, such as X-Api-Version"
	case strings.EqualFold(name, "host"):
		return "must not be Host, which follows from the target; proxy.preserve_host_header sends the client's"
	case headerFraming[strings.ToLower(name)]:
		return "must not be " + name + ", which the gateway itself writes for each connection"
	}
	return ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
