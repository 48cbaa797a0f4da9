package vars

import (
	"bytes"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// Headers are what an API's graphql.proxy says about the headers of proxied
// operations, compiled. They never change and are safe for concurrent use.
type Headers struct {
	lines []line
	keep  []condition // headers of clients that stay only with a certain value
}

// A line is a header that is added.
type line struct {
	name   string   // canonical
	names  []string // name alone
	prefix string   // the line up to the value
	value  *Template

	gives bool // way to the client's own, and to what the version's rules set
	takes bool // the place of both
	alone bool // the gateway's own line of that name must not be beside it
}

// A condition takes a header of the client away unless all of its values are
// value.
type condition struct {
	name  string // canonical
	value *Template
}

// CompileHeaders compiles the header rules of a GraphQL API, nil when there are
// none. The error names the field that is wrong.
func CompileHeaders(api *definition.API) (*Headers, error) {
	if api.GraphQL == nil || api.GraphQL.Proxy == nil {
		return nil, nil
	}
	proxy := api.GraphQL.Proxy
	c := headerCompiler{opts: Options{Context: api.EnableContextVars}}
	c.immutable = proxy.Features != nil && proxy.Features.UseImmutableHeaders
	if c.immutable {
		if err := c.rewrites(proxy.RequestHeadersRewrite); err != nil {
			return nil, err
		}
	}
	if err := c.requests(proxy.RequestHeaders); err != nil {
		return nil, err
	}
	if len(c.out.lines)+len(c.out.keep) == 0 {
		return nil, nil
	}
	return &c.out, nil
}

type headerCompiler struct {
	opts      Options
	immutable bool
	out       Headers
}

// rewrites compiles graphql.proxy.request_headers_rewrite.
func (c *headerCompiler) rewrites(rules map[string]*definition.GraphQLHeaderRewrite) error {
	for _, name := range sortedNames(rules) {
		rule := rules[name]
		if rule == nil {
			continue
		}
		value, err := Compile(rule.Value, c.opts)
		if err != nil {
			return fmt.Errorf("graphql.proxy.request_headers_rewrite[%q]: %w", name, err)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if rule.Remove {
			c.out.keep = append(c.out.keep, condition{name, value})
			continue
		}
		c.out.lines = append(c.out.lines, line{name: name, names: []string{name}, prefix: name + ": ", value: value, takes: true})
	}
	return nil
}

// requests compiles graphql.proxy.request_headers. A header that a rewrite rule
// sets is left to that.
func (c *headerCompiler) requests(headers map[string]string) error {
	set := len(c.out.lines)
	for _, name := range sortedNames(headers) {
		value, err := Compile(headers[name], c.opts)
		if err != nil {
			return fmt.Errorf("graphql.proxy.request_headers[%q]: %w", name, err)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if slices.ContainsFunc(c.out.lines[:set], func(l line) bool { return l.name == name }) {
			continue
		}
		c.out.lines = append(c.out.lines, line{
			name: name, names: []string{name}, prefix: name + ": ", value: value, gives: c.immutable, alone: isOwn(name),
		})
	}
	return nil
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// isOwn tells whether the gateway writes a line of that name by itself where a
// client has none that counts.
func isOwn(name string) bool {
	switch name {
	case "User-Agent", "X-Real-Ip", "X-Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// Apply changes the headers of the request that goes upstream. It does not
// allocate once the exchange's buffers have grown.
func (h *Headers) Apply(ex *pipeline.Exchange) {
	for i := range h.lines {
		h.lines[i].apply(ex)
	}
	for i := range h.keep {
		h.keep[i].apply(ex)
	}
}

func (l *line) apply(ex *pipeline.Exchange) {
	out := &ex.Outgoing
	switch {
	case l.takes:
		out.AlsoDrop(l.name)
		out.Extra = pipeline.RemoveLines(out.Extra, l.names)
	case l.gives || l.alone:
		sent := isSent(ex, l.name)
		if l.gives && (sent || pipeline.HasLine(out.Extra, l.names)) {
			return
		}
		if l.alone && !(sent && l.name == "User-Agent") {
			out.AlsoDrop(l.name)
		}
	}
	out.Extra = append(out.Extra, l.prefix...)
	out.Extra = l.value.AppendHeader(out.Extra, ex)
	out.Extra = append(out.Extra, "\r\n"...)
}

// isSent tells whether the client sent a header that is forwarded.
func isSent(ex *pipeline.Exchange, name string) bool {
	if slices.Contains(ex.Outgoing.Drop, name) {
		return false
	}
	return ex.Call.Header(name) != nil
}

func (c *condition) apply(ex *pipeline.Exchange) {
	start := len(ex.Buf)
	want := c.value.AppendHeader(ex.Buf, ex)
	ex.Buf = want[:start]
	want = want[start:]
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		if call.Is(f, c.name) && !bytes.Equal(call.ValueOf(f), want) {
			ex.Outgoing.AlsoDrop(c.name)
			return
		}
	}
}
