// Package transform is what a version of an API says about changing calls and
// answers on their way: headers that are set and taken off, and URLs that are
// rewritten.
package transform

import (
	"encoding/json"
	"strings"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

// Bounds of what one version says.
const (
	maxRules   = 10_000 // of one list
	maxHeaders = 1_000  // of one rule
	maxValue   = 8 << 10
	maxPlaces  = 256 // hosts and APIs that rewrites name
)

// Rules are the rules for single calls.
type Rules struct {
	Headers         []HeaderRule  `json:"transform_headers,omitempty"`          // of requests
	ResponseHeaders []HeaderRule  `json:"transform_response_headers,omitempty"` // of answers
	Rewrites        []RewriteRule `json:"url_rewrites,omitempty"`
}

// Calls are the calls that a rule is for.
type Calls struct {
	Path       string `json:"path"`                  // a pattern, below the listen path or with it
	Method     string `json:"method,omitempty"`      // empty: all
	IgnoreCase bool   `json:"ignore_case,omitempty"` // of the path
	Disabled   bool   `json:"disabled,omitempty"`
}

// A HeaderRule takes headers off and then sets others.
type HeaderRule struct {
	Calls
	Add    map[string]string `json:"add_headers,omitempty"` // values may hold context variables
	Delete []string          `json:"delete_headers,omitempty"`
}

// Parse reads the lists of extended_paths that this package knows. Disabled rules
// are left out, though they are checked for their types. Faults have paths below
// extended_paths; beside them comes what could be read.
func Parse(extendedPaths json.RawMessage) (*Rules, []object.Fault) {
	rules := new(Rules)
	if len(extendedPaths) == 0 || extendedPaths[0] != '{' {
		return rules, nil
	}
	if found := object.Decode(extendedPaths, rules); len(found) > 0 {
		return rules, found
	}
	var f object.Faults
	rules.Headers = checkHeaderRules(&f, "transform_headers", rules.Headers)
	rules.ResponseHeaders = checkHeaderRules(&f, "transform_response_headers", rules.ResponseHeaders)
	f.Count("url_rewrites", len(rules.Rewrites), maxRules)
	var used []RewriteRule
	for i := range rules.Rewrites {
		if r := &rules.Rewrites[i]; !r.Disabled {
			r.check(&f, object.Item("url_rewrites", i))
			used = append(used, *r)
		}
	}
	rules.Rewrites = used
	if n := len(rules.Places()); n > maxPlaces {
		f.Addf("url_rewrites", "name %d hosts and APIs; at most %d are allowed", n, maxPlaces)
	}
	return rules, f
}

func checkHeaderRules(f *object.Faults, path string, rules []HeaderRule) (used []HeaderRule) {
	f.Count(path, len(rules), maxRules)
	for i := range rules {
		r, at := &rules[i], object.Item(path, i)
		if r.Disabled {
			continue
		}
		r.Calls.check(f, at)
		f.Below(at, checkHeaders("add_headers", r.Add))
		f.Below(at, checkNames("delete_headers", r.Delete))
		used = append(used, *r)
	}
	return used
}

func (c *Calls) check(f *object.Faults, at string) {
	if err := pattern.Check(c.Path); err != nil {
		f.Add(at+".path", err.Error())
	}
	switch c.Method {
	case "", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE":
	default:
		f.Add(at+".method", "must be a method such as GET, in upper case, or be left out for all of them")
	}
}

// CheckGlobal checks what is done to the headers of all calls: those set, which
// stand at path, and those taken off, which stand at path_remove. There is nothing
// wrong with what is disabled.
func CheckGlobal(path string, set map[string]string, remove []string, disabled bool) []object.Fault {
	if disabled {
		return nil
	}
	return append(checkHeaders(path, set), checkNames(path+"_remove", remove)...)
}

// checkHeaders checks headers that are set, by name.
func checkHeaders(path string, headers map[string]string) []object.Fault {
	var f object.Faults
	f.Count(path, len(headers), maxHeaders)
	seen := make(map[string]bool, len(headers))
	for _, name := range object.SortedKeys(headers) {
		at, value, lower := object.Entry(path, name), headers[name], strings.ToLower(name)
		f.Add(at, nameFault(name))
		if seen[lower] {
			f.Add(at, "stands twice: upper and lower case are the same in header names")
		}
		seen[lower] = true
		if len(value) > maxValue {
			f.Addf(at, "has %d bytes; at most %d are allowed", len(value), maxValue)
		}
		if hasControl(value) {
			f.Add(at, "must not hold line breaks or other control characters: they would end the header")
		}
	}
	return f
}

// checkNames checks the names of headers that are taken off.
func checkNames(path string, names []string) []object.Fault {
	var f object.Faults
	f.Count(path, len(names), maxHeaders)
	for i, name := range names {
		f.Add(object.Item(path, i), nameFault(name))
	}
	return f
}

// framing are the headers that say where a message ends, which host it is for or
// what holds for one connection only. The gateway writes them itself.
var framing = map[string]bool{
	"connection": true, "content-length": true, "expect": true, "host": true, "http2-settings": true,
	"keep-alive": true, "proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
}

func nameFault(name string) string {
	switch {
	case !isToken(name):
		return "must be a header name, such as X-Api-Version"
	case strings.EqualFold(name, "host"):
		return "must not be Host, which follows from the target; proxy.preserve_host_header sends the client's"
	case framing[strings.ToLower(name)]:
		return "must not be " + name + ", which the gateway itself writes for each connection"
	}
	return ""
}

// isToken accepts what RFC 9110 calls a token.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c|0x20-'a' >= 26 && c-'0' >= 10 && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
