package transform

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/definition/object"
)

// A trigger is the target of calls that meet its conditions.
type trigger struct {
	conditions []condition
	any        bool // one condition is enough
	to         *target
}

// A condition compares values of a call with an expression.
type condition struct {
	of      values
	expr    *match.Expression
	reverse bool
	capture string // name of its captures
}

// values are the values that a condition compares. append appends the nth of them. It
// returns false when there are fewer.
type values interface {
	append(dst []byte, ex *pipeline.Exchange, nth int) ([]byte, bool)
}

func newTrigger(at int, said *definition.RewriteTrigger, opts vars.Options) (t trigger, err error) {
	t.any = said.On == "any"
	if t.to, err = newTarget(said.To, opts); err != nil {
		return t, err
	}
	o := &said.Options
	for _, kind := range []struct {
		name string
		said map[string]definition.RewriteCondition
		of   func(name string) (values, error)
	}{
		{"header_matches", o.Headers, func(name string) (values, error) { return headerValues(name), nil }},
		{"query_val_matches", o.Query, func(name string) (values, error) { return queryValues(name), nil }},
		{"path_part_matches", o.Path, func(string) (values, error) { return pathParts{}, nil }},
		{"session_meta_matches", o.Meta, func(name string) (values, error) { return newText("$svc_meta."+name, opts) }},
		{"request_context_matches", o.Context, func(name string) (values, error) { return newText("$svc_context."+name, opts) }},
	} {
		for _, name := range object.SortedKeys(kind.said) {
			c := condition{reverse: kind.said[name].Reverse, capture: strconv.Itoa(at) + "-" + name}
			if c.of, err = kind.of(name); err == nil {
				c.expr, err = match.CompileGroups(kind.said[name].Match)
			}
			if err != nil {
				return t, fmt.Errorf("options.%s: %w", object.Entry(kind.name, name), err)
			}
			t.conditions = append(t.conditions, c)
		}
	}
	return t, nil
}

// meets reports whether a call meets the conditions. Its matches are captured then.
func (t *trigger) meets(ex *pipeline.Exchange) bool {
	before := ex.Captures.Len()
	met := 0
	for i := range t.conditions {
		if t.conditions[i].meets(ex) {
			met++
		} else if !t.any {
			break
		}
	}
	if met == len(t.conditions) || t.any && met > 0 {
		return true
	}
	ex.Captures.Cut(before)
	return false
}

// maxValues is how many values of one name are compared.
const maxValues = 64

// meets reports whether one of the values matches, or none for a reverse condition.
func (c *condition) meets(ex *pipeline.Exchange) bool {
	start := len(ex.Buf)
	found := false
	for n := range maxValues {
		text, ok := c.of.append(ex.Buf, ex, n)
		if !ok {
			break
		}
		ex.Buf = text[:start]
		var g match.Groups
		if !c.expr.Find(&g, text[start:]) {
			continue
		}
		found = true
		if !c.reverse {
			c.record(ex, &g, text[start:], n)
		}
	}
	return found != c.reverse
}

// record captures the match and its groups.
func (c *condition) record(ex *pipeline.Exchange, g *match.Groups, text []byte, n int) {
	for i := range g.Len() {
		if from, to, ok := g.Span(i); ok {
			ex.Captures.Add(c.capture, n, i-1, text[from:to])
		}
	}
}

// headerValues are the lines of a header.
type headerValues string

func (name headerValues) append(dst []byte, ex *pipeline.Exchange, nth int) ([]byte, bool) {
	call := ex.Call
	for i := range call.Fields {
		f := &call.Fields[i]
		if !call.Is(f, string(name)) {
			continue
		}
		if nth == 0 {
			return append(dst, call.ValueOf(f)...), true
		}
		nth--
	}
	return dst, false
}

// queryValues are those of a parameter of the query.
type queryValues string

func (name queryValues) append(dst []byte, ex *pipeline.Exchange, nth int) ([]byte, bool) {
	return vars.AppendParameter(dst, ex, string(name), nth)
}

// pathParts are the segments of the path below the listen path.
type pathParts struct{}

func (pathParts) append(dst []byte, ex *pipeline.Exchange, nth int) ([]byte, bool) {
	rest := ex.Path
	for len(rest) > 1 {
		rest = rest[1:]
		end := bytes.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		if nth == 0 {
			return append(dst, rest[:end]...), true
		}
		nth--
		rest = rest[end:]
	}
	return dst, false
}

// text is the one value of a variable.
type text struct{ *vars.Template }

func newText(variable string, opts vars.Options) (values, error) {
	tmpl, err := vars.Compile(variable, opts)
	return text{tmpl}, err
}

func (t text) append(dst []byte, ex *pipeline.Exchange, nth int) ([]byte, bool) {
	if nth > 0 {
		return dst, false
	}
	return t.Append(dst, ex), true
}
