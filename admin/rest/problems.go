package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/definition"
)

// Problem is one thing that is wrong with what was sent, and where.
type Problem struct {
	// Path of the member, such as proxy.listen_path; empty: the whole body.
	Path string `json:"path"`
	// What is wrong with the member, and what would be right.
	Message string `json:"message"`
	// Line of the body, from 1, of the member, or of the closest one around it that is there; left out
	// where it is not known.
	Line int `json:"line,omitempty"`
	// Column of the line, from 1, in UTF-16 code units.
	Column int `json:"column,omitempty"`
}

// problemsOf returns the problems that texts of the form "path: message" stand for.
func problemsOf(texts []string) []Problem {
	problems := make([]Problem, 0, len(texts))
	for _, text := range texts {
		p := Problem{Message: text}
		if end := pathEnd(text); end > 0 && strings.HasPrefix(text[end:], ": ") {
			p.Path, p.Message = text[:end], text[end+2:]
		}
		problems = append(problems, p)
	}
	return problems
}

// placed returns problems of a definition with their paths.
func placed(found definition.Problems) []Problem {
	problems := make([]Problem, 0, len(found))
	for _, p := range found {
		problems = append(problems, Problem{Path: p.Path, Message: p.Message})
	}
	return problems
}

// aboutOne gives problems without a place that of what they are about.
func aboutOne(problems []Problem, path string) []Problem {
	for i := range problems {
		if problems[i].Path == "" {
			problems[i].Path = path
		}
	}
	return problems
}

// Bounds of what is located: each problem costs reading the body once.
const (
	mostLocated  = 100     // problems
	largestPlace = 1 << 20 // bytes of the body
)

// locate adds the line and column of each problem in a body.
func locate(problems []Problem, body []byte) {
	if len(body) > largestPlace || len(problems) == 0 {
		return
	}
	valid := json.Valid(body)
	for i := range problems[:min(len(problems), mostLocated)] {
		p := &problems[i]
		switch {
		case p.Path != "" && valid:
			p.Line, p.Column = position(body, offset(body, segments(p.Path)))
		case p.Path == "":
			var line, column int // text that is no JSON says itself where
			if n, _ := fmt.Sscanf(p.Message, "line %d, column %d ", &line, &column); n == 2 {
				p.Line, p.Column = position(body, offsetOf(body, line, column))
			}
		}
	}
}

// offsetOf returns the place of a line and of a column in bytes, both from 1.
func offsetOf(body []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		next := bytes.IndexByte(body[at:], '\n')
		if next < 0 {
			return len(body)
		}
		at += next + 1
	}
	return min(at+max(column-1, 0), len(body))
}

// position returns the line and the column of a place in a text, both from 1. Columns
// count UTF-16 code units, as browsers do.
func position(body []byte, at int) (line, column int) {
	line = 1 + bytes.Count(body[:at], []byte{'\n'})
	column = 1
	for rest := body[bytes.LastIndexByte(body[:at], '\n')+1 : at]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		column += max(utf16.RuneLen(r), 1)
		rest = rest[n:]
	}
	return line, column
}

// A segment is one step of a path: a member, an entry by name, or an element.
type segment struct {
	name  string
	index int // -1: by name
}

// segments divides a path, such as auth_configs["basic"].use_param or target_list[2].
func segments(path string) (all []segment) {
	for path != "" {
		switch {
		case path[0] == '.':
			path = path[1:]
		case path[0] == '[':
			end := bracketEnd(path)
			if end == 0 {
				return all
			}
			inner := path[1 : end-1]
			if name, err := strconv.Unquote(inner); err == nil {
				all = append(all, segment{name, -1})
			} else if n, err := strconv.Atoi(inner); err == nil {
				all = append(all, segment{"", n})
			}
			path = path[end:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			all = append(all, segment{path[:end], -1})
			path = path[end:]
		}
	}
	return all
}

// bracketEnd returns the index behind the bracket that path begins with, 0 if it is open.
func bracketEnd(path string) int {
	if len(path) > 1 && path[1] == '"' {
		quoted, err := strconv.QuotedPrefix(path[1:])
		if end := 1 + len(quoted); err == nil && end < len(path) && path[end] == ']' {
			return end + 1
		}
		return 0
	}
	return strings.IndexByte(path, ']') + 1
}

// pathEnd returns the index behind the path that a text begins with, 0 without one.
func pathEnd(text string) int {
	end := 0
	for end < len(text) {
		switch c := text[end]; {
		case c == '[':
			n := bracketEnd(text[end:])
			if n == 0 {
				return 0
			}
			end += n
		case c == '.' || c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			end++
		default:
			return end
		}
	}
	return end
}
