package match

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicegate/sluice/internal/definition/pattern"
	"github.com/sluicegate/sluice/internal/http1"
)

// A Pattern is an entry of a path list or an allowed URL. It is matched against
// decoded paths (see [Decode]): an encoded slash shows as "%2F", an
// encoded space as a space.
type Pattern struct {
	source string
	expr   *regexp.Regexp // nil for a path whose placeholders are whole segments:
	texts  []string       // fixed text, with any one segment between each two
	open   bool           // no segment needs to end behind the last text
	fold   bool           // texts are in lower case, and letters match in either case
}

// PatternOptions are the options of a path list.
type PatternOptions struct {
	IgnoreCase bool // letters match in either case
	Unanchored bool // fixed text matches anywhere in the path, as expressions do
}

// CompilePattern compiles an entry of a path list. In it, {name} stands for one
// segment, {name:regex} for text that the expression matches, and a * after a
// slash for all the rest.
//
// An entry without regular-expression operators is a path: it matches at the
// path's start and up to the end of a segment, so "/admin" takes "/admin" and
// "/admin/x", not "/adminx" nor "/x/admin". Its percent escapes are decoded, and
// a slash at its end has no meaning. An entry that holds an operator (one of
// ^ | ( ) [ ] + ? \, a * elsewhere, braces with numbers, or a $ at the end) is an
// expression and found anywhere in the path; ^ and $ anchor it. A dot alone does
// not make an expression.
func CompilePattern(text string, opts PatternOptions) (*Pattern, error) {
	parts, expression, err := pattern.Parse(text)
	switch {
	case err != nil:
		return nil, err
	case expression:
		return newPattern(text, pattern.Join(parts), opts.IgnoreCase)
	case opts.Unanchored:
		return newPattern(text, pathExpression(parts), opts.IgnoreCase)
	}
	parts = anchorEnds(parts)
	if p := newSegments(text, parts); p != nil && p.ignore(opts.IgnoreCase) {
		return p, nil
	}
	expr := `\A` + pathExpression(parts)
	if parts[len(parts)-1].Expr != pattern.AllTheRest {
		expr += `(?:/|\z)`
	}
	return newPattern(text, expr, opts.IgnoreCase)
}

// CompileExpression compiles an allowed URL, which is a regular expression found
// anywhere in the path, so "/users" also takes "/admin/users" and "/users2";
// "^/users(/|$)" does not. Braces and stars mean what they mean in expressions.
func CompileExpression(text string) (*Pattern, error) {
	if text == "" {
		return nil, errors.New(`is empty; ".*" matches every path`)
	}
	if len(text) > pattern.MaxLength {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(text), pattern.MaxLength)
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
		if len(path) < len(text) || string(path[:len(text)]) != text && !(p.fold && http1.HasPrefix(path, text)) {
			return false
		}
		path = path[len(text):]
	}
	return p.open || len(path) == 0 || path[0] == '/'
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// ignore makes ASCII letters match in either case, if that is requested. It returns
// false for texts with other letters, which need an expression.
func (p *Pattern) ignore(requested bool) bool {
	if !requested {
		return true
	}
	for i, text := range p.texts {
		if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
			return false
		}
		p.texts[i] = strings.ToLower(text)
	}
	p.fold = true
	return true
}

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.source }

// anchorEnds adds the slash that every path begins with to the path of an entry, and
// removes those at its end.
func anchorEnds(parts []pattern.Part) []pattern.Part {
	if parts[0].Expr != "" {
		parts = slices.Insert(parts, 0, pattern.Part{Text: "/"})
	} else if !strings.HasPrefix(parts[0].Text, "/") {
		parts[0].Text = "/" + parts[0].Text
	}
	last := &parts[len(parts)-1]
	last.Text = strings.TrimRight(last.Text, "/")
	return parts
}

// newSegments returns a pattern that needs no expression, or nil when some
// placeholder is not a whole segment or a * is not the end. It costs a tenth of
// an expression.
func newSegments(source string, parts []pattern.Part) *Pattern {
	p := &Pattern{source: source, texts: []string{""}}
	for i, part := range parts {
		last := len(p.texts) - 1
		whole := strings.HasSuffix(p.texts[last], "/")
		switch {
		case part.Expr == "" && i > 0 && part.Text != "" && part.Text[0] != '/':
			return nil
		case part.Expr == "":
			p.texts[last] += decodeText(part.Text)
		case part.Expr == pattern.OneSegment && whole:
			p.texts = append(p.texts, "")
		case part.Expr == pattern.AllTheRest && i == len(parts)-1:
			p.open = true
		default:
			return nil
		}
	}
	return p
}

// pathExpression returns a path with placeholders as an expression.
func pathExpression(parts []pattern.Part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(regexp.QuoteMeta(decodeText(p.Text)) + p.Expr)
	}
	return b.String()
}

// decodeText decodes the escapes of a pattern as Decode does those of a path;
// text that is not an escape is kept.
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
