package vars

import (
	"bytes"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
)

// Headers are the compiled header rules of an API's graphql.proxy. They never change
// and are safe for concurrent use.
type Headers struct {
	lines []line
	keep  []condition // headers of clients that are forwarded only with a certain value
}

// A line is a header that is added.
type line struct {
	name   string   // canonical
	names  []string // holds name only
	prefix string   // the line up to the value
	value  *Template

	yields    bool // the client's own line, and one set by the version's rules, take precedence
	replaces  bool // it replaces both
	exclusive bool // it also replaces the gateway's own line of that name
}

// A condition removes a header of the client unless all of its values are value.
type condition struct {
	name  string // canonical
	value *Template
}

// CompileHeaders compiles the header rules of a GraphQL API; it returns nil if there
// are none. The error names the invalid field.
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
		c.out.lines = append(c.out.lines, line{name: name, names: []string{name}, prefix: name + ": ", value: value, replaces: true})
	}
	return nil
}

// requests compiles graphql.proxy.request_headers. A rewrite rule for the same header
// takes precedence.
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
			name: name, names: []string{name}, prefix: name + ": ", value: value, yields: c.immutable, exclusive: isOwn(name),
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

// isOwn reports whether the gateway adds a line of that name itself if the client's is
// missing or not trusted.
func isOwn(name string) bool {
	switch name {
	case "User-Agent", "X-Real-Ip", "X-Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-")
}

// Apply changes the headers of the request that is sent upstream. It does not allocate
// once the exchange's buffers have grown.
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
	case l.replaces:
		out.AlsoDrop(l.name)
		out.Extra = http1.RemoveLines(out.Extra, l.names...)
	case l.yields || l.exclusive:
		sent := isSent(ex, l.name)
		if l.yields && (sent || http1.HasLine(out.Extra, l.names...)) {
			return
		}
		if l.exclusive && !(sent && l.name == "User-Agent") {
			out.AlsoDrop(l.name)
		}
	}
	out.Extra = append(out.Extra, l.prefix...)
	out.Extra = l.value.AppendHeader(out.Extra, ex)
	out.Extra = append(out.Extra, "\r\n"...)
}

// isSent reports whether the client sent a header that is forwarded.
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
