package definition

import (
	"encoding/json"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/pattern"
)

const maxPathEntries = 10_000 // of one list of a version

// ExtendedPaths are the rules of a version for single paths. Each list has at most
// 10,000 entries.
type ExtendedPaths struct {
	// Paths that need no key and have no limits.
	// Example: [{"path": "/health", "method": "GET"}]
	Ignored []PathEntry `json:"ignored,omitempty"`
	// Paths that are refused.
	// Example: [{"path": "/internal/*"}]
	BlackList []PathEntry `json:"black_list,omitempty"`
	// Paths that alone are served, if there is one.
	// Example: [{"path": "/orders/{id}", "method": "GET"}]
	WhiteList []PathEntry `json:"white_list,omitempty"`
	// Responses that are sent in place of the upstream's.
	// Example: [{"path": "/status", "method": "GET", "code": 200, "body": "{\"status\": \"ok\"}"}]
	MockResponses []MockEntry `json:"mock_response,omitempty"`
	// Largest request bodies.
	// Example: [{"path": "/upload", "method": "POST", "size_limit": 1048576}]
	SizeLimits []SizeEntry `json:"size_limits,omitempty"`
	// GraphQL operations that paths stand for.
	// Example: [{"method": "GET", "path": "/countries/{code}", "operation": "query ($code: ID!) { country(code: $code) { name } }", "variables": {"code": "$path.code"}}]
	PersistedOperations []PersistedOperation `json:"persist_graphql,omitempty"`
	// Rates that all clients share.
	// Example: [{"path": "/search", "method": "GET", "rate": 10, "per": 1}]
	RateLimits []PathRate `json:"rate_limit,omitempty"`
	// Circuit breakers.
	// Example: [{"path": "/pay", "method": "POST", "threshold_percent": 0.5, "samples": 20}]
	CircuitBreakers []PathBreaker `json:"circuit_breakers,omitempty"`
	// Times that the upstream may take.
	// Example: [{"path": "/report", "method": "GET", "timeout": 20}]
	HardTimeouts []PathTimeout `json:"hard_timeouts,omitempty"`
	// Patterns of paths whose responses are cached.
	// Example: ["/catalogue"]
	Cache []string `json:"cache,omitempty"`
	// Paths whose responses are cached, with settings of their own.
	// Example: [{"path": "/catalogue/{id}", "timeout": 300}]
	AdvancedCache []CachedPath `json:"advance_cache_config,omitempty"`
	// Changes of request headers.
	// Example: [{"path": "/orders", "add_headers": {"X-Source": "gateway"}, "delete_headers": ["X-Debug"]}]
	RequestHeaders []HeaderRule `json:"transform_headers,omitempty"`
	// Changes of response headers.
	// Example: [{"path": "/orders", "delete_headers": ["Server"]}]
	ResponseHeaders []HeaderRule `json:"transform_response_headers,omitempty"`
	// Changes of the path and query.
	// Example: [{"path": "/users/{id}", "method": "GET", "match_pattern": "^/users/(\\d+)$", "rewrite_to": "/v2/users/$1"}]
	Rewrites []RewriteRule `json:"url_rewrites,omitempty"`
	Unknown  Unknown       `json:"-"`
}

// PathMatch says which calls an entry is for.
type PathMatch struct {
	// Pattern of the path, below the listen path or with it: text, {name}, {name:regex}, * or a regular expression. At most 4096 bytes.
	// Example: "/users/{id}"
	Path string `json:"path,omitempty"`
	// Method, such as GET. Default: every method.
	// Example: "GET"
	Method string `json:"method,omitempty"`
	// Whether letters of the path match in either case.
	IgnoreCase bool `json:"ignore_case,omitempty"`
	// Whether the entry is off.
	Disabled bool `json:"disabled,omitempty"`
}

// PathEntry is an entry of a list that decides whether calls pass.
type PathEntry struct {
	PathMatch
	// Older form: what is done, by method. At most one of method and method_actions is set.
	// Example: {"GET": {"action": "reply", "code": 404, "data": "not here"}}
	Actions map[string]PathAction `json:"method_actions,omitempty"`
	Unknown Unknown               `json:"-"`
}

// PathAction is what an entry of the older form does with calls of one method.
type PathAction struct {
	// no_action, or reply to send a response. Default: no_action.
	// Example: "reply"
	Action string `json:"action,omitempty" oneof:"no_action reply"`
	// Status of the response, 200 to 599. Default: 200.
	// Example: 404
	Code int `json:"code,omitempty"`
	// Body of the response.
	// Example: "{\"error\": \"not here\"}"
	Data string `json:"data,omitempty"`
	// Headers of the response.
	// Example: {"Content-Type": "application/json"}
	Headers map[string]string `json:"headers,omitempty"`
	Unknown Unknown           `json:"-"`
}

// MockEntry is a response that is sent in place of the upstream's.
type MockEntry struct {
	PathMatch
	// Status of the response, 200 to 599. Default: 200.
	// Example: 200
	Code int `json:"code,omitempty"`
	// Body of the response.
	// Example: "{\"status\": \"ok\"}"
	Body string `json:"body,omitempty"`
	// Headers of the response. Default of Content-Type: application/json for JSON, else text/plain.
	// Example: {"Content-Type": "application/json"}
	Headers map[string]string `json:"headers,omitempty"`
	Unknown Unknown           `json:"-"`
}

// SizeEntry bounds request bodies.
type SizeEntry struct {
	PathMatch
	// Largest body in bytes; 0 is no limit.
	// Example: 1048576
	Limit   int64   `json:"size_limit,omitempty"`
	Unknown Unknown `json:"-"`
}

// PathRate is a rate that all clients share.
type PathRate struct {
	PathMatch
	// Calls that are admitted per period; 0 and negative numbers limit nothing.
	// Example: 10
	Rate float64 `json:"rate,omitempty"`
	// Length of the period in seconds, in whole milliseconds.
	// Example: 1
	Per     float64 `json:"per,omitempty"`
	Unknown Unknown `json:"-"`
}

// PathBreaker is a circuit breaker of single paths.
type PathBreaker struct {
	PathMatch
	BreakerSettings
	Unknown Unknown `json:"-"`
}

// PathTimeout is how long the upstream may take.
type PathTimeout struct {
	PathMatch
	// Seconds from 0.001 to 86400.
	// Example: 20
	Timeout float64 `json:"timeout,omitempty"`
	Unknown Unknown `json:"-"`
}

// Extended returns the rules for single paths that are in use: none without
// use_extended_paths. It never returns nil. v may be nil.
func (v *Version) Extended() *ExtendedPaths {
	if v == nil || !v.UseExtendedPaths || v.ExtendedPaths == nil {
		return &ExtendedPaths{}
	}
	return v.ExtendedPaths
}

// A PathRule is an entry of a list that decides whether calls pass, with where it
// is in the definition.
type PathRule struct {
	PathMatch        // the method in upper case
	At        string // such as paths.ignored[0]
	Reply     *Reply // not nil: the response to calls
}

// A Mock is a response that is sent in place of the upstream's.
type Mock struct {
	PathMatch
	At    string
	Reply Reply
}

// A SizeRule bounds request bodies.
type SizeRule struct {
	PathMatch
	At    string
	Bytes int64 // above 0
}

// PathRules is what a version says about single paths. Within a list the order is
// that of the definition; entries that are off are left out.
type PathRules struct {
	Ignored, Black, White []PathRule
	Mocks                 []Mock
	Sizes                 []SizeRule
}

// Decides reports whether there is a list that decides whether calls pass.
func (r *PathRules) Decides() bool { return len(r.Ignored)+len(r.Black)+len(r.White) > 0 }

// PathRules returns what the version says about single paths, in paths or, with
// use_extended_paths, in extended_paths. v may be nil.
func (v *Version) PathRules() *PathRules {
	r := pathReader{}
	r.read(v)
	return &r.rules
}

// A pathReader collects entries, and what is wrong with others. Paths of faults are
// below the version.
type pathReader struct {
	rules  PathRules
	faults object.Faults
}

func (r *pathReader) read(v *Version) {
	switch {
	case v == nil:
	case v.UseExtendedPaths:
		r.extended(v.Extended())
	case v.Paths != nil:
		r.rules.Ignored = r.simple("paths.ignored", v.Paths.Ignored)
		r.rules.Black = r.simple("paths.black_list", v.Paths.Black)
		r.rules.White = r.simple("paths.white_list", v.Paths.White)
	}
}

func (r *pathReader) simple(name string, list []string) (rules []PathRule) {
	r.faults.Count(name, len(list), maxPathEntries)
	for i, path := range list {
		at := object.Item(name, i)
		if r.path(at, path) {
			rules = append(rules, PathRule{PathMatch: PathMatch{Path: path}, At: at})
		}
	}
	return rules
}

func (r *pathReader) extended(e *ExtendedPaths) {
	r.rules.Ignored = r.list("ignored", e.Ignored)
	r.rules.Black = r.list("black_list", e.BlackList)
	r.rules.White = r.list("white_list", e.WhiteList)
	r.faults.Count("extended_paths.mock_response", len(e.MockResponses), maxPathEntries)
	for i := range e.MockResponses {
		one, at := &e.MockResponses[i], object.Item("extended_paths.mock_response", i)
		if one.Disabled {
			continue
		}
		match, ok := r.match(at, one.PathMatch)
		reply, good := r.reply(at, writtenReply{code: one.Code, body: one.Body, bodyName: "body", headers: one.Headers})
		if ok && good {
			r.rules.Mocks = append(r.rules.Mocks, Mock{PathMatch: match, At: at, Reply: *reply})
		}
	}
	r.faults.Count("extended_paths.size_limits", len(e.SizeLimits), maxPathEntries)
	for i := range e.SizeLimits {
		one, at := &e.SizeLimits[i], object.Item("extended_paths.size_limits", i)
		if one.Disabled {
			continue
		}
		match, ok := r.match(at, one.PathMatch)
		if one.Limit < 0 {
			r.faults.Add(at+".size_limit", "must not be negative; 0 is no limit")
		}
		if ok && one.Limit > 0 {
			r.rules.Sizes = append(r.rules.Sizes, SizeRule{PathMatch: match, At: at, Bytes: one.Limit})
		}
	}
}

// list reads a list that decides whether calls pass.
func (r *pathReader) list(name string, entries []PathEntry) (rules []PathRule) {
	path := "extended_paths." + name
	r.faults.Count(path, len(entries), maxPathEntries)
	for i := range entries {
		e, at := &entries[i], object.Item(path, i)
		if e.Disabled {
			continue
		}
		match, ok := r.match(at, e.PathMatch)
		switch {
		case !ok:
		case len(e.Actions) == 0:
			rules = append(rules, PathRule{PathMatch: match, At: at})
		case e.Method != "":
			r.faults.Add(at+".method", "stands beside method_actions, which name methods too; leave one of them out")
		default:
			rules = r.actions(rules, PathRule{PathMatch: match, At: at}, e.Actions)
		}
	}
	return rules
}

// actions adds one rule for each method that an entry of the older form names.
func (r *pathReader) actions(rules []PathRule, rule PathRule, actions map[string]PathAction) []PathRule {
	for _, name := range object.SortedKeys(actions) {
		does, at := actions[name], object.Entry(rule.At+".method_actions", name)
		method, ok := r.method(at, name)
		switch {
		case !ok:
			continue
		case method == "":
			r.faults.Add(at, "must be named by a method, such as GET")
			continue
		}
		one := rule
		one.Method = method
		switch does.Action {
		case "", "no_action":
		case "reply":
			if one.Reply, ok = r.reply(at, writtenReply{code: does.Code, body: does.Data, bodyName: "data", headers: does.Headers}); !ok {
				continue
			}
		default:
			r.faults.Addf(at+".action", `must be "no_action" or "reply", not %q`, does.Action)
			continue
		}
		rules = append(rules, one)
	}
	return rules
}

// match checks which calls an entry is for.
func (r *pathReader) match(at string, m PathMatch) (PathMatch, bool) {
	known := r.path(at+".path", m.Path)
	var ok bool
	m.Method, ok = r.method(at+".method", m.Method)
	return m, known && ok
}

// path reports whether text is a pattern.
func (r *pathReader) path(at, text string) bool {
	err := pattern.Check(text)
	if err != nil {
		r.faults.Add(at, "is neither a path such as /users/{id} nor an expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return err == nil
}

// method returns a method in upper case.
func (r *pathReader) method(at, name string) (string, bool) {
	if name != "" && !isToken(name) {
		r.faults.Add(at, "must be a method such as GET, or be left out for every method")
		return "", false
	}
	return strings.ToUpper(name), true
}

// A Reply is a response that a definition holds.
type Reply struct {
	Status  int           // 200 to 599
	Headers []ReplyHeader // by name; Content-Type is among them if there is a body
	Body    string
}

// A ReplyHeader is one header line of a reply. Its value has no control characters.
type ReplyHeader struct{ Name, Value string }

// A writtenReply is a reply as it is written.
type writtenReply struct {
	code           int
	body, bodyName string
	headers        map[string]string
}

// replyFraming are the headers that frame a message or concern a connection. The
// gateway writes them itself.
var replyFraming = map[string]bool{
	"Connection": true, "Content-Length": true, "Date": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func (r *pathReader) reply(at string, w writtenReply) (*Reply, bool) {
	before := len(r.faults)
	reply := &Reply{Status: w.code, Body: w.body}
	if w.code == 0 {
		reply.Status = 200
	}
	switch {
	case reply.Status < 200 || reply.Status > 599:
		r.faults.Addf(at+".code", "must be an HTTP status from 200 to 599, not %d", w.code)
	case w.body != "" && (w.code == 204 || w.code == 304):
		r.faults.Addf(at+"."+w.bodyName, "must be empty: an answer with status %d has no body", w.code)
	}
	typed := w.body == ""
	for _, name := range object.SortedKeys(w.headers) {
		value, where := w.headers[name], object.Entry(at+".headers", name)
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !isToken(name):
			r.faults.Add(where, "must be a header name, such as Content-Type")
		case replyFraming[canonical]:
			r.faults.Add(where, "is written by the gateway itself; leave it out")
		case hasControl(value):
			r.faults.Add(where, "must not hold control characters")
		}
		typed = typed || canonical == "Content-Type"
		reply.Headers = append(reply.Headers, ReplyHeader{Name: canonical, Value: value})
	}
	if !typed {
		contentType := "text/plain; charset=utf-8"
		if json.Valid([]byte(w.body)) {
			contentType = "application/json"
		}
		reply.Headers = append(reply.Headers, ReplyHeader{Name: "Content-Type", Value: contentType})
	}
	return reply, len(r.faults) == before
}

// RateLimits returns the rates of single paths that limit calls, with the method in
// upper case.
func (v *Version) RateLimits() (all []PathRate) {
	for _, one := range v.Extended().RateLimits {
		if !one.Disabled && limits(one.Rate, one.Per) {
			one.Method = strings.ToUpper(one.Method)
			all = append(all, one)
		}
	}
	return all
}

func (e *ExtendedPaths) checkRates(f *object.Faults) {
	f.Count("rate_limit", len(e.RateLimits), maxPathEntries)
	for i := range e.RateLimits {
		one, at := &e.RateLimits[i], object.Item("rate_limit", i)
		if one.Disabled {
			continue
		}
		checkPattern(f, at+".path", one.Path)
		if strings.ContainsFunc(one.Method, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			f.Add(at+".method", "must be an HTTP method such as GET, or be left out for all methods")
		}
		f.Below(at, rateFaults(one.Rate, one.Per))
	}
}

// A BreakerRule is the circuit breaker of single paths.
type BreakerRule struct {
	PathMatch
	Breaker
}

// Breakers returns the circuit breakers of single paths that are on. v may be nil.
func (v *Version) Breakers() (all []BreakerRule) {
	var r upstreamReader
	for _, one := range v.Extended().CircuitBreakers {
		if !one.Disabled {
			all = append(all, BreakerRule{one.PathMatch, r.breaker("", &one.BreakerSettings)})
		}
	}
	return all
}

// A TimeoutRule is how long the upstream may take for single paths.
type TimeoutRule struct {
	PathMatch
	Timeout time.Duration
}

// Timeouts returns how long the upstream may take for single paths. v may be nil.
func (v *Version) Timeouts() (all []TimeoutRule) {
	for _, one := range v.Extended().HardTimeouts {
		if !one.Disabled {
			all = append(all, TimeoutRule{one.PathMatch, time.Duration(one.Timeout * float64(time.Second))})
		}
	}
	return all
}

// checkCalls checks breakers and timeouts.
func (e *ExtendedPaths) checkCalls(f *object.Faults) {
	f.Count("circuit_breakers", len(e.CircuitBreakers), maxPathEntries)
	for i := range e.CircuitBreakers {
		one, at := &e.CircuitBreakers[i], object.Item("circuit_breakers", i)
		if one.Disabled {
			continue
		}
		one.checkUpper(f, at)
		r := upstreamReader{}
		r.breaker(at, &one.BreakerSettings)
		f.Below("", r.Faults)
	}
	f.Count("hard_timeouts", len(e.HardTimeouts), maxPathEntries)
	for i := range e.HardTimeouts {
		one, at := &e.HardTimeouts[i], object.Item("hard_timeouts", i)
		if one.Disabled {
			continue
		}
		one.checkUpper(f, at)
		if !(one.Timeout >= 0.001 && one.Timeout <= 86400) {
			f.Add(at+".timeout", "must be from 0.001 to 86400 seconds")
		}
	}
}

// checkUpper checks the pattern, and a method in upper case.
func (m *PathMatch) checkUpper(f *object.Faults, at string) {
	checkPattern(f, at+".path", m.Path)
	if !isUpperMethod(m.Method) {
		f.Add(at+".method", "must be a method in upper case such as GET, or be left out for all of them")
	}
}

func isUpperMethod(method string) bool {
	return len(method) <= 32 && !strings.ContainsFunc(method, func(c rune) bool { return c < 'A' || c > 'Z' })
}

// unsupported lists the lists of extended_paths that this release does not have and
// that hold an entry that is on. Those that only say which calls are recorded are
// harmless.
func (e *ExtendedPaths) unsupported() []string {
	return slices.DeleteFunc(e.Unknown.Names(), func(name string) bool {
		return harmlessAPI[extendedForm+name] || !asksFor(e.Unknown.Get(name))
	})
}
