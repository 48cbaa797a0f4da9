package match

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxSegments = 64   // of a listen path; bounds how deep a look-up goes
	maxListen   = 4096 // bytes of a listen path
)

// A segment is one part of a listen path: fixed text, or a parameter.
type segment struct {
	text string // decoded, for comparing; "" for a parameter
	name string // of a parameter
	expr string // what a parameter is restricted to; "" for any text
}

// parseListenPath parses a listen path. A slash at the end has no meaning:
// "/a/" and "/a" are the same path, and "/" has no segments.
func parseListenPath(path string) ([]segment, error) {
	if path == "" {
		return nil, errors.New(`is empty; "/" takes every path`)
	}
	if path[0] != '/' {
		return nil, errors.New("must begin with a slash")
	}
	if len(path) > maxListen {
		return nil, fmt.Errorf("is %d bytes long; at most %d are allowed", len(path), maxListen)
	}
	parts, err := splitSegments(path[1:])
	if err != nil {
		return nil, err
	}
	if len(parts) > maxSegments {
		return nil, fmt.Errorf("has %d segments; at most %d are allowed", len(parts), maxSegments)
	}
	segments := make([]segment, 0, len(parts))
	for _, part := range parts {
		s, err := parseSegment(part)
		if err != nil {
			return nil, fmt.Errorf("segment %q: %w", part, err)
		}
		segments = append(segments, s)
	}
	return segments, checkNames(segments)
}

// splitSegments splits at the slashes outside braces, since the expression of a
// parameter may hold some ("[^/]+").
func splitSegments(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	path = strings.TrimSuffix(path, "/")
	var parts []string
	depth, start := 0, 0
	for i := 0; i <= len(path); i++ {
		switch {
		case i < len(path) && path[i] == '{':
			depth++
		case i < len(path) && path[i] == '}':
			depth--
		}
		if depth < 0 {
			return nil, errors.New("has a closing brace without an opening one")
		}
		if i == len(path) || path[i] == '/' && depth == 0 {
			parts = append(parts, path[start:i])
			start = i + 1
		}
	}
	if depth > 0 {
		return nil, errors.New("has an opening brace without a closing one")
	}
	return parts, nil
}

func parseSegment(part string) (segment, error) {
	switch {
	case part == "":
		return segment{}, errors.New("is empty; write one slash between segments")
	case part == "*":
		return segment{}, errors.New("a listen path takes everything below it by itself; leave the * out, or write {name} for one segment")
	case part[0] == '{' && closing(part) == len(part)-1:
		return parseParameter(part[1 : len(part)-1])
	case strings.ContainsAny(part, "{}"):
		return segment{}, errors.New("a parameter must be the whole segment, as in /{name}/")
	}
	decoded, err := Decode(nil, []byte("/"+part))
	if err != nil {
		return segment{}, err
	}
	if string(decoded[1:]) == part {
		return segment{text: part}, nil // which is there already
	}
	return segment{text: string(decoded[1:])}, nil
}

// closing returns where the brace closes that part begins with.
func closing(part string) int {
	depth := 0
	for i, c := range part {
		switch c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// parseParameter parses the text between the braces: "name" or "name:regex".
func parseParameter(inner string) (segment, error) {
	name, expr, restricted := strings.Cut(inner, ":")
	if !isName(name) {
		return segment{}, fmt.Errorf("parameter name %q: use letters, digits, _ and -, beginning with a letter or _", name)
	}
	if restricted && expr == "" {
		return segment{}, errors.New("the expression after the colon is empty; leave the colon out to take any text")
	}
	return segment{name: name, expr: expr}, nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		later := c == '-' || '0' <= c && c <= '9'
		if !letter && (i == 0 || !later) {
			return false
		}
	}
	return s != ""
}

// checkNames refuses duplicate names, and more parameters than [Params] holds.
func checkNames(segments []segment) error {
	seen := make(map[string]bool)
	for _, s := range segments {
		if s.name == "" {
			continue
		}
		if seen[s.name] {
			return fmt.Errorf("parameter {%s} appears twice", s.name)
		}
		seen[s.name] = true
	}
	if len(seen) > MaxParams {
		return fmt.Errorf("has %d parameters; at most %d are allowed", len(seen), MaxParams)
	}
	return nil
}
