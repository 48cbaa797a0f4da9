package match

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Pattern tells paths apart for path lists and allowed URLs. It is matched
// against decoded paths (see [Decode]): an encoded slash shows as "%2F", an
// encoded space as a space.
type Pattern struct {
	source string
	expr   *regexp.Regexp // nil for a path whose placeholders are whole segments:
	texts  []string       // fixed text, with any one segment between each two
	open   bool           // no segment needs to end behind the last text
}

// maxPattern is the longest pattern, in bytes. It bounds what compiling one
// takes: a few bytes of an expression may ask for a thousand repetitions.
const maxPattern = 4096

// PatternOptions are the switches of a path list.
type PatternOptions struct {
	IgnoreCase bool // letters match in either case
	Unanchored bool // fixed text matches anywhere in the path, as expressions do
}

// CompilePattern reads an entry of a path list. In it, {name} stands for one
// segment, {name:regex} for text that the expression matches, and a * after a
// slash for all the rest.
//
// An entry without regular-expression operators is a path: it matches at the
// path's start and up to the end of a segment, so "/admin" takes "/admin" and
// "/admin/x", not "/adminx" nor "/x/admin". Its percent escapes are decoded, and
// a slash at its end means nothing. An entry that holds an operator (one of
// ^ | ( ) [ ] + ? \, a * elsewhere, braces with numbers, or a $ at the end) is an
// expression and found anywhere in the path; ^ and $ anchor it. A dot alone does
// not make an expression.
func CompilePattern(text string, opts PatternOptions) (*Pattern, error) {
	if text == "" {
		return nil, errors.New(`is empty; "/" matches every path`)
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(text), maxPattern)
	}
	parts, err := cutPattern(text)
	if err != nil {
		return nil, err
	}
	if isExpression(parts) {
		return newPattern(text, expression(parts), opts.IgnoreCase)
	}
	if opts.Unanchored {
		return newPattern(text, pathExpression(parts), opts.IgnoreCase)
	}
	parts = anchorEnds(parts)
	if p := newSegments(text, parts); p != nil && !opts.IgnoreCase {
		return p, nil
	}
	expr := `\A` + pathExpression(parts)
	if parts[len(parts)-1].expr != allTheRest {
		expr += `(?:/|\z)`
	}
	return newPattern(text, expr, opts.IgnoreCase)
}

// CompileExpression reads an allowed URL, which is a regular expression found
// anywhere in the path, so "/users" also takes "/admin/users" and "/users2";
// "^/users(/|$)" does not. Braces and stars mean what they mean in expressions.
func CompileExpression(text string) (*Pattern, error) {
	if text == "" {
		return nil, errors.New(`is empty; ".*" matches every path`)
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(text), maxPattern)
	}
	return newPattern(text, text, false)
}

func newPattern(source, expr string, ignoreCase bool) (*Pattern, error) {
	if ignoreCase {
		expr = "(?i)" + expr
	}
	compiled, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &Pattern{source: source, expr: compiled}, nil
}

// Match reports whether the pattern matches a decoded path. It does not
// allocate.
func (p *Pattern) Match(path []byte) bool {
	if p.expr != nil {
		return p.expr.Match(path)
	}
	for i, text := range p.texts {
		if i > 0 {
			length := bytes.IndexByte(path, '/')
			if length < 0 {
				length = len(path)
			}
			if length == 0 {
				return false
			}
			path = path[length:]
		}
		if len(path) < len(text) || string(path[:len(text)]) != text {
			return false
		}
		path = path[len(text):]
	}
	return p.open || len(path) == 0 || path[0] == '/'
}

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.source }

// A part is a piece of a pattern: fixed text, or an expression for what a
// placeholder stands for.
type part struct {
	text string
	expr string
}

const (
	oneSegment = "[^/]+"
	allTheRest = ".*"
)

// cutPattern cuts a pattern at its placeholders.
func cutPattern(text string) ([]part, error) {
	var parts []part
	start := 0
	place := func(from, to int, expr string) {
		if from > start {
			parts = append(parts, part{text: text[start:from]})
		}
		parts = append(parts, part{expr: expr})
		start = to
	}
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++ // what follows stands for itself
		case text[i] == '*' && i > 0 && text[i-1] == '/':
			place(i, i+1, allTheRest)
		case text[i] == '{':
			length := closing(text[i:])
			if length < 0 {
				return nil, fmt.Errorf("has an opening brace at byte %d without a closing one", i)
			}
			expr, err := placeholder(text[i+1 : i+length])
			if err != nil {
				return nil, err
			}
			if expr != "" {
				place(i, i+length+1, expr)
			}
			i += length
		}
	}
	if start < len(text) {
		parts = append(parts, part{text: text[start:]})
	}
	return parts, nil
}

// placeholder reads what stands between braces, and returns "" for what is no
// placeholder: numbers repeat what stands before them in an expression.
func placeholder(inner string) (expr string, err error) {
	name, expr, restricted := strings.Cut(inner, ":")
	if !isName(name) {
		return "", nil
	}
	if !restricted {
		return oneSegment, nil
	}
	if _, err := regexp.Compile(expr); err != nil {
		return "", fmt.Errorf("{%s}: %w", name, err)
	}
	return "(?:" + expr + ")", nil
}

func isExpression(parts []part) bool {
	for _, p := range parts {
		if strings.ContainsAny(p.text, `^|()[]+?\*{}`) {
			return true
		}
	}
	return strings.HasSuffix(parts[len(parts)-1].text, "$")
}

func expression(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text + p.expr)
	}
	return b.String()
}

// anchorEnds gives the path of an entry the slash that every path begins with,
// and takes those at its end away, which mean nothing.
func anchorEnds(parts []part) []part {
	if parts[0].expr != "" {
		parts = slices.Insert(parts, 0, part{text: "/"})
	} else if !strings.HasPrefix(parts[0].text, "/") {
		parts[0].text = "/" + parts[0].text
	}
	last := &parts[len(parts)-1]
	last.text = strings.TrimRight(last.text, "/")
	return parts
}

// newSegments returns a pattern that needs no expression, or nil when some
// placeholder is not a whole segment or a * is not the end. It costs a tenth of
// what an expression does.
func newSegments(source string, parts []part) *Pattern {
	p := &Pattern{source: source, texts: []string{""}}
	for i, part := range parts {
		last := len(p.texts) - 1
		whole := strings.HasSuffix(p.texts[last], "/")
		switch {
		case part.expr == "" && i > 0 && part.text != "" && part.text[0] != '/':
			return nil
		case part.expr == "":
			p.texts[last] += decodeText(part.text)
		case part.expr == oneSegment && whole:
			p.texts = append(p.texts, "")
		case part.expr == allTheRest && i == len(parts)-1:
			p.open = true
		default:
			return nil
		}
	}
	return p
}

// pathExpression writes a path with placeholders as an expression.
func pathExpression(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(regexp.QuoteMeta(decodeText(p.text)) + p.expr)
	}
	return b.String()
}

// decodeText decodes the escapes of a pattern as Decode does those of a path;
// what is no escape stays as it is written.
func decodeText(text string) string {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' {
			if octet, ok := unescape([]byte(text[i:])); ok {
				out = appendOctet(out, octet)
				i += 2
				continue
			}
		}
		out = append(out, text[i])
	}
	return string(out)
}
