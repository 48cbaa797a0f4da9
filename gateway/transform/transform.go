// Package transform changes calls on their way to the upstream, and answers on
// their way back: it takes headers off, sets others, and rewrites URLs.
//
// What a version does to all calls and what it does to single ones is put together
// when configuration loads, so that a call meets one list of names and one of
// lines. Values may hold variables of the request; whatever these stand for, no
// value ends its header line (see vars.Template.AppendHeader).
package transform

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
	"github.com/sluicegate/sluice/internal/definition/transform"
)

// headers are what is done to the headers of one message.
type headers struct {
	names []string // canonical, of those that are taken off or set, sorted
	lines []line   // that are set
	from  string   // the rule, as an explanation names it
}

// A line is a header that is set.
type line struct {
	name   string // canonical
	prefix string // the line up to the value, or all of it when value is nil
	value  *vars.Template
	text   string // of the value, as the definition has it
}

// A change is what one rule asks for.
type change struct {
	set    map[string]string
	remove []string
	opts   vars.Options
	from   string
}

// isEmpty tells whether the rule asks for nothing.
func (c change) isEmpty() bool { return len(c.set)+len(c.remove) == 0 }

// after returns what first did and then a rule does. first may be nil.
func (c change) after(first *headers) (*headers, error) {
	h := &headers{from: c.from}
	touched := make(map[string]bool)
	for _, name := range c.remove {
		touched[textproto.CanonicalMIMEHeaderKey(name)] = true
	}
	var own []line
	for _, name := range object.SortedKeys(c.set) {
		l, err := newLine(name, c.set[name], c.opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.from, err)
		}
		touched[l.name] = true
		own = append(own, l)
	}
	if first != nil {
		h.from = first.from + ", then " + c.from
		for _, l := range first.lines {
			if !touched[l.name] {
				h.lines = append(h.lines, l)
			}
		}
		for _, name := range first.names {
			touched[name] = true
		}
	}
	h.lines = append(h.lines, own...)
	h.names = object.SortedKeys(touched)
	return h, nil
}

func newLine(name, text string, opts vars.Options) (line, error) {
	value, err := vars.Compile(text, opts)
	if err != nil {
		return line{}, err
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	l := line{name: name, prefix: name + ": ", value: value, text: text}
	if fixed, ok := value.Constant(); ok {
		l.prefix, l.value = l.prefix+fixed+"\r\n", nil
	}
	return l, nil
}

// secretNames are parts of the names of headers that carry credentials, in lower
// case.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "key"}

// told is what an explanation tells of the value.
func (l *line) told() string {
	lower := strings.ToLower(l.name)
	if l.value == nil && slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) }) {
		return "***" // what it is goes to the upstream, and to nobody else
	}
	return l.text
}

// append appends the lines that are set.
func (h *headers) append(dst []byte, ex *pipeline.Exchange) []byte {
	for i := range h.lines {
		l := &h.lines[i]
		dst = append(dst, l.prefix...)
		if l.value != nil {
			dst = append(l.value.AppendHeader(dst, ex), "\r\n"...)
		}
	}
	return dst
}

// vary tells whether values have variables.
func (h *headers) vary() bool {
	return slices.ContainsFunc(h.lines, func(l line) bool { return l.value != nil })
}

// rules are what is done to the headers of a version's messages.
type rules struct {
	all   *headers                   // to those that no rule names; nil: nothing
	calls *match.Endpoints[*headers] // nil: there are no rules for single calls

	varies bool // values have variables
}

// Varies tells whether what a stage of this package does to a call, or to the answer
// to it, may depend on more than the call's method and path.
func Varies(stage pipeline.Stage) bool {
	switch s := stage.(type) {
	case request:
		return s.varies
	case response:
		return s.varies
	case rewrite:
		return true
	}
	return false
}

// of returns what is done to the headers of a call, or nil.
func (r *rules) of(ex *pipeline.Exchange) *headers {
	if r.calls != nil {
		if h, ok := r.calls.Find(ex.Call.Method, ex.Path, ex.PathBuf); ok {
			return h
		}
	}
	return r.all
}

// explain tells the rule that a call fell under.
func (r *rules) explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	h := r.of(ex)
	if h == nil {
		f.Said = "no rule is for this call"
		return
	}
	f.Said = "headers are changed by " + h.from
	for _, name := range h.names {
		value := "removed"
		if i := slices.IndexFunc(h.lines, func(l line) bool { return l.name == name }); i >= 0 {
			value = h.lines[i].told()
		}
		f.Fact("header "+name, value, "", "definition")
	}
}

// CompileRequest returns the stage that changes the headers of calls to a version,
// which may be nil, or nil when the version leaves them alone.
func CompileRequest(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	said, err := read(version)
	if said == nil {
		return nil, err
	}
	c := compiler{
		list: "transform_headers", said: said.Headers, ignoreCase: version.IgnoreEndpointCase,
		global: change{from: "global_headers", opts: vars.Options{Context: def.EnableContextVars}},
	}
	if !version.GlobalHeadersDisabled {
		c.global.set, c.global.remove = version.GlobalHeaders, version.GlobalHeadersRemove
	}
	r, err := c.compile(func(all *headers, one change) (*headers, error) { return one.after(all) })
	if r == nil || err != nil {
		return nil, err
	}
	return request{r}, nil
}

// CompileResponse is CompileRequest for the answers of upstreams. What a version
// does to all of them comes behind what it does to single ones, and so it has the
// last word.
func CompileResponse(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	said, err := read(version)
	if said == nil {
		return nil, err
	}
	c := compiler{
		list: "transform_response_headers", said: said.ResponseHeaders, ignoreCase: version.IgnoreEndpointCase,
		global: change{from: "global_response_headers", opts: vars.Options{Context: def.EnableContextVars}},
	}
	if !version.GlobalResponseHeadersDisabled {
		c.global.set, c.global.remove = version.GlobalResponseHeaders, version.GlobalResponseHeadersRemove
	}
	r, err := c.compile(func(all *headers, one change) (*headers, error) {
		h, err := one.after(nil)
		if all == nil || err != nil {
			return h, err
		}
		return c.global.after(h)
	})
	if r == nil || err != nil {
		return nil, err
	}
	return response{r}, nil
}

// read returns what a version says about single calls, nil when there is none.
func read(version *definition.Version) (*transform.Rules, error) {
	if version == nil {
		return nil, nil
	}
	return version.Transforms()
}

// A compiler makes the rules for one kind of message.
type compiler struct {
	global     change // what is done to all
	list       string // of rules for single calls
	said       []transform.HeaderRule
	ignoreCase bool
}

// compile returns nil when nothing is done. both makes one of what is done to all,
// which may be nil, and what is done to a single call.
func (c *compiler) compile(both func(all *headers, one change) (*headers, error)) (r *rules, err error) {
	if c.global.isEmpty() && len(c.said) == 0 {
		return nil, nil
	}
	r = new(rules)
	if !c.global.isEmpty() {
		if r.all, err = c.global.after(nil); err != nil {
			return nil, err
		}
		r.varies = r.all.vary()
	}
	if len(c.said) == 0 {
		return r, nil
	}
	list := make([]match.Endpoint[*headers], len(c.said))
	for i, rule := range c.said {
		one := change{set: rule.Add, remove: rule.Delete, opts: c.global.opts, from: c.list + " of " + nameOf(rule.Calls)}
		h, err := both(r.all, one)
		if err != nil {
			return nil, err
		}
		list[i] = endpoint(rule.Calls, c.ignoreCase, h)
		r.varies = r.varies || h.vary()
	}
	if r.calls, err = match.CompileEndpoints(list); err != nil {
		return nil, fmt.Errorf("extended_paths.%s%w", c.list, err)
	}
	return r, nil
}

func endpoint[T any](calls transform.Calls, ignoreCase bool, value T) match.Endpoint[T] {
	return match.Endpoint[T]{
		Path: calls.Path, Method: calls.Method, Value: value,
		Options: match.PatternOptions{IgnoreCase: ignoreCase || calls.IgnoreCase},
	}
}

// nameOf names a rule by its calls.
func nameOf(calls transform.Calls) string { return strings.TrimSpace(calls.Method + " " + calls.Path) }
