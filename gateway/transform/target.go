package transform

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/vars"
	"github.com/sluicegate/sluice/internal/definition/transform"
)

// A target is what a URL is rewritten to.
type target struct {
	path, query []piece
	hasQuery    bool
	elsewhere   uint16 // which of Elsewhere is called; 0: the upstream
	written     string
}

// A piece is a text with variables, or a group of the expression.
type piece struct {
	text  *vars.Template // nil: a group
	group int
}

func newTarget(text string, opts vars.Options) (*target, error) {
	_, rest := transform.SplitTarget(text)
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

// cutPieces cuts a text at its groups, which are a dollar sign and digits.
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

// nextGroup returns where the first reference to a group begins and ends; the
// length of text twice when there is none.
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

// A subject is the URL that an expression matched: a path and, behind a question
// mark, a query, as the client wrote them.
type subject struct {
	text   []byte
	mark   int // where the question mark is, or would be
	groups match.Groups
}

// took tells whether the expression matched something of the query.
func (s *subject) took() bool {
	_, to, _ := s.groups.Span(0)
	return to > s.mark
}

// A written is a URL as it is being written.
type written struct{ path, query []byte }

// appendTo writes the target. What a group holds stays what it was: of a path in
// the path, where slashes count, and of a query in the query. Where it becomes the
// other, it becomes one value and no more than that.
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

// appendToPath writes a group into the path. One that goes from the path into the
// query, as (.*) at the end of an expression does, takes the query along.
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

// appendToQuery writes a group into the query.
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

// appendEscaped appends a text of a URL with some more characters escaped.
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
