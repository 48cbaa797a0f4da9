// Package transform removes and sets request and response headers, and rewrites URLs.
//
// The rules of a version for all calls and for single endpoints are merged when
// configuration loads, so that a call applies one list of names and one of lines.
// Values may have variables; no value ends its header line, whatever its variables
// hold (see vars.Template.AppendHeader).
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
)

// headers are the changes to the headers of one message.
type headers struct {
	names []string // canonical, of the headers that are removed or set, sorted
	lines []line   // to set
	from  string   // name of the rule in explanations
}

// A line is a header that is set.
type line struct {
	name   string // canonical
	prefix string // the line up to the value, or all of it when value is nil
	value  *vars.Template
	text   string // of the value, as the definition has it
}

// A change is the effect of one rule.
type change struct {
	set    map[string]string
	remove []string
	opts   vars.Options
	from   string
}

// isEmpty reports whether the rule changes nothing.
func (c change) isEmpty() bool { return len(c.set)+len(c.remove) == 0 }

// after returns the effect of first, which may be nil, followed by that of the rule.
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

// shown returns the value in explanations.
func (l *line) shown() string {
	lower := strings.ToLower(l.name)
	if l.value == nil && slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(lower, part) }) {
		return "***" // only the upstream may see it
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

// vary reports whether values have variables.
func (h *headers) vary() bool {
	return slices.ContainsFunc(h.lines, func(l line) bool { return l.value != nil })
}

// rules are the changes to the headers of a version's messages.
type rules struct {
	all   *headers                   // of messages without a rule of their own; nil: none
	calls *match.Endpoints[*headers] // of single endpoints; nil: none

	varies bool // values have variables
}

// Varies reports whether the effect of a stage of this package on a request or its
// response may depend on more than the request's method and path.
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

// find returns the changes to the headers of a call, or nil.
func (r *rules) find(ex *pipeline.Exchange) *headers {
	if r.calls != nil {
		if h, ok := r.calls.Find(ex.Call.Method, ex.Path, ex.PathBuf); ok {
			return h
		}
	}
	return r.all
}

// explain adds the rule of a call.
func (r *rules) explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	h := r.find(ex)
	if h == nil {
		f.Said = "no rule is for this call"
		return
	}
	f.Said = "headers are changed by " + h.from
	for _, name := range h.names {
		value := "removed"
		if i := slices.IndexFunc(h.lines, func(l line) bool { return l.name == name }); i >= 0 {
			value = h.lines[i].shown()
		}
		f.Fact("header "+name, value, "", "definition")
	}
}

// CompileRequest returns the stage that changes the request headers of a version,
// which may be nil, or nil when it has no rules.
func CompileRequest(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if version == nil {
		return nil, nil
	}
	c := compiler{
		list: "transform_headers", rules: version.HeaderRules(), ignoreCase: version.IgnoreEndpointCase,
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

// CompileResponse is CompileRequest for upstream responses. The rules for all of them
// are applied after those of single endpoints.
func CompileResponse(def *definition.API, version *definition.Version) (pipeline.Stage, error) {
	if version == nil {
		return nil, nil
	}
	c := compiler{
		list: "transform_response_headers", rules: version.ResponseHeaderRules(), ignoreCase: version.IgnoreEndpointCase,
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

// A compiler compiles the rules for one kind of message.
type compiler struct {
	global     change // for all messages
	list       string // name of the list of rules
	rules      []definition.HeaderRule
	ignoreCase bool
}

// compile returns nil when there are no rules. both merges the changes of all messages,
// which may be nil, with those of one endpoint.
func (c *compiler) compile(both func(all *headers, one change) (*headers, error)) (r *rules, err error) {
	if c.global.isEmpty() && len(c.rules) == 0 {
		return nil, nil
	}
	r = new(rules)
	if !c.global.isEmpty() {
		if r.all, err = c.global.after(nil); err != nil {
			return nil, err
		}
		r.varies = r.all.vary()
	}
	if len(c.rules) == 0 {
		return r, nil
	}
	list := make([]match.Endpoint[*headers], len(c.rules))
	for i, rule := range c.rules {
		one := change{set: rule.Add, remove: rule.Delete, opts: c.global.opts, from: c.list + " of " + nameOf(rule.PathMatch)}
		h, err := both(r.all, one)
		if err != nil {
			return nil, err
		}
		list[i] = endpoint(rule.PathMatch, c.ignoreCase, h)
		r.varies = r.varies || h.vary()
	}
	if r.calls, err = match.CompileEndpoints(list); err != nil {
		return nil, fmt.Errorf("extended_paths.%s%w", c.list, err)
	}
	return r, nil
}

func endpoint[T any](calls definition.PathMatch, ignoreCase bool, value T) match.Endpoint[T] {
	return match.Endpoint[T]{
		Path: calls.Path, Method: calls.Method, Value: value,
		Options: match.PatternOptions{IgnoreCase: ignoreCase || calls.IgnoreCase},
	}
}

// nameOf returns the name of a rule: its method and path.
func nameOf(calls definition.PathMatch) string {
	return strings.TrimSpace(calls.Method + " " + calls.Path)
}
