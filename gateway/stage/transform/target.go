package transform

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition"
)

// A target is what a URL is rewritten to.
type target struct {
	path, query []piece
	hasQuery    bool
	alternate   uint16 // which alternate upstream is called; 0: the version's own
	written     string
}

// A piece is a template, or a group of the expression.
type piece struct {
	text  *vars.Template // nil: a group
	group int
}

func newTarget(text string, opts vars.Options) (*target, error) {
	_, rest := definition.SplitRewrite(text)
	path, query, hasQuery := strings.Cut(rest, "?")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	t := &target{hasQuery: hasQuery, written: text}
	var err error
	if t.path, err = cutPieces(path, opts); err == nil {
		t.query, err = cutPieces(query, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("rewrite_to: %w", err)
	}
	return t, nil
}

// cutPieces splits a text at references to groups: a dollar sign and digits.
func cutPieces(text string, opts vars.Options) (pieces []piece, err error) {
	for text != "" {
		at, end := nextGroup(text)
		if at > 0 {
			tmpl, err := vars.Compile(text[:at], opts)
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, piece{text: tmpl})
		}
		if end > at {
			group, err := strconv.Atoi(text[at+1 : end])
			if err != nil || group > match.MaxGroups {
				return nil, fmt.Errorf("there is no group %s", text[at:end])
			}
			pieces = append(pieces, piece{group: group})
		}
		text = text[end:]
	}
	return pieces, nil
}

// nextGroup returns the start and end of the first reference to a group, or twice the
// length of text when there is none.
func nextGroup(text string) (at, end int) {
	for at = 0; at < len(text); at++ {
		if text[at] != '$' {
			continue
		}
		for end = at + 1; end < len(text) && text[end]-'0' < 10; end++ {
		}
		if end > at+1 {
			return at, end
		}
	}
	return at, at
}

// A subject is the URL that an expression matched: a path and, after a question mark,
// a query, as the client sent them.
type subject struct {
	text   []byte
	mark   int // index of the question mark, or the length of text
	groups match.Groups
}

// matchedQuery reports whether the match extends into the query.
func (s *subject) matchedQuery() bool {
	_, to, _ := s.groups.Span(0)
	return to > s.mark
}

// A written is the URL that is being built.
type written struct{ path, query []byte }

// appendTo appends the target. A group of the path keeps its slashes in the path, and a
// group of the query its separators in the query. A group that moves from one to the
// other is escaped to be a single value.
func (t *target) appendTo(w *written, s *subject, ex *pipeline.Exchange) {
	for _, p := range t.path {
		if p.text != nil {
			w.path = p.text.AppendURL(w.path, ex, vars.Path)
		} else if from, to, ok := s.groups.Span(p.group); ok {
			s.appendToPath(w, from, to)
		}
	}
	if len(t.query) > 0 && len(w.query) > 0 {
		w.query = append(w.query, '&')
	}
	for _, p := range t.query {
		if p.text != nil {
			w.query = p.text.AppendURL(w.query, ex, vars.Query)
		} else if from, to, ok := s.groups.Span(p.group); ok {
			s.appendToQuery(w, from, to)
		}
	}
}

// appendToPath appends a group to the path. One that extends from the path into the
// query, as (.*) at the end of an expression does, adds its part of the query to the
// query.
func (s *subject) appendToPath(w *written, from, to int) {
	if from > s.mark {
		w.path = appendEscaped(w.path, s.text[from:to], "/?#")
		return
	}
	w.path = append(w.path, s.text[from:min(to, s.mark)]...)
	if to > s.mark+1 {
		if len(w.query) > 0 {
			w.query = append(w.query, '&')
		}
		w.query = append(w.query, s.text[s.mark+1:to]...)
	}
}

// appendToQuery appends a group to the query.
func (s *subject) appendToQuery(w *written, from, to int) {
	if from < s.mark {
		w.query = appendEscaped(w.query, s.text[from:min(to, s.mark)], "&=+;?#")
		from = s.mark + 1
		if to > from {
			w.query = append(w.query, '&')
		}
	}
	if from = max(from, s.mark+1); from < to {
		w.query = append(w.query, s.text[from:to]...)
	}
}

// appendEscaped appends a part of a URL with the characters of more escaped.
func appendEscaped(dst, text []byte, more string) []byte {
	const hex = "0123456789ABCDEF"
	for _, c := range text {
		if strings.IndexByte(more, c) >= 0 {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// numberAlternates sets in each target which alternate upstream it names: see
// pipeline.Outgoing.Alternate.
func numberAlternates(rewrites []definition.RewriteRule, list []match.Endpoint[*rule]) {
	places := definition.RewriteTargets(rewrites)
	if len(places) == 0 {
		return
	}
	at := make(map[string]uint16, len(places))
	for i, place := range places {
		at[place.URL] = uint16(i + 1)
	}
	of := func(to *target) uint16 {
		origin, _ := definition.SplitRewrite(to.written)
		return at[origin]
	}
	for _, one := range list {
		one.Value.to.alternate = of(one.Value.to)
		for _, t := range one.Value.triggers {
			t.to.alternate = of(t.to)
		}
	}
}
