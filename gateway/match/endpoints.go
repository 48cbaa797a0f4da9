package match

import (
	"bytes"
	"fmt"
	"strings"
)

// An Endpoint is one entry of a list: a method, a path, and a value.
type Endpoint[T any] struct {
	Path    string // a pattern, as CompilePattern reads it
	Method  string // in upper case; "" is every method
	Options PatternOptions
	Value   T
}

// Endpoints is an ordered list of calls by path and method: the first entry that
// matches a call decides. It is immutable and safe for concurrent use.
type Endpoints[T any] struct {
	entries []endpoint[T]
	// Entries with a fixed first segment are compared with paths of that segment only,
	// so that the cost of a call does not grow with the list.
	// All hold indices into entries, in ascending order.
	byFirst map[string][]int32
	byFold  map[string][]int32 // of those that ignore case, by the segment in lower case
	others  []int32
}

// maxFold is the longest first segment, in bytes, by which entries that ignore
// case are found.
const maxFold = 64

type endpoint[T any] struct {
	pattern *Pattern
	method  string
	value   T
}

// An EndpointError is an entry of a list that cannot be compiled.
type EndpointError struct {
	Index int // in the list
	Err   error
}

// Error reports which entry's path is wrong, and why.
func (e *EndpointError) Error() string { return fmt.Sprintf("[%d].path: %v", e.Index, e.Err) }

// Unwrap returns why.
func (e *EndpointError) Unwrap() error { return e.Err }

// CompileEndpoints compiles a list. Its error is an *EndpointError.
func CompileEndpoints[T any](list []Endpoint[T]) (*Endpoints[T], error) {
	e := &Endpoints[T]{
		entries: make([]endpoint[T], len(list)), byFirst: make(map[string][]int32), byFold: make(map[string][]int32),
	}
	for i, one := range list {
		pattern, err := CompilePattern(one.Path, one.Options)
		if err != nil {
			return nil, &EndpointError{Index: i, Err: err}
		}
		e.entries[i] = endpoint[T]{pattern: pattern, method: one.Method, value: one.Value}
		switch first, ok := pattern.firstSegment(); {
		case ok && !pattern.fold:
			e.byFirst[first] = append(e.byFirst[first], int32(i))
		case ok && len(first) <= maxFold:
			e.byFold[first] = append(e.byFold[first], int32(i))
		default:
			e.others = append(e.others, int32(i))
		}
	}
	return e, nil
}

// firstSegment returns the segment that all matching paths begin with, if there is a
// fixed one.
func (p *Pattern) firstSegment() (segment string, ok bool) {
	if p.expr != nil || len(p.texts[0]) < 2 {
		return "", false
	}
	first, _, whole := strings.Cut(p.texts[0][1:], "/")
	// A text that ends with the pattern ends with a segment too.
	return first, first != "" && (whole || len(p.texts) == 1)
}

// Find returns the value of the first entry that matches a method, in upper case, and
// a decoded path (see [Decode]). path is the part below the listen path; full is the
// whole path, which is compared as well unless it is nil. ok is false when no entry
// matches. Find does not allocate.
func (e *Endpoints[T]) Find(method, path, full []byte) (value T, ok bool) {
	found := e.find(method, path, len(e.entries))
	if full != nil {
		found = e.find(method, full, found)
	}
	if found == len(e.entries) {
		return value, false
	}
	return e.entries[found].value, true
}

// find returns the index of the first entry that takes a path, or before when
// none of those in front of it does.
func (e *Endpoints[T]) find(method, path []byte, before int) int {
	first := firstOf(path)
	before = e.findAmong(e.byFirst[string(first)], method, path, before)
	if len(e.byFold) > 0 && len(first) <= maxFold {
		var buf [maxFold]byte
		lowered := buf[:len(first)]
		for i, c := range first {
			lowered[i] = lower(c)
		}
		before = e.findAmong(e.byFold[string(lowered)], method, path, before)
	}
	return e.findAmong(e.others, method, path, before)
}

// findAmong is find for some of the entries.
func (e *Endpoints[T]) findAmong(some []int32, method, path []byte, before int) int {
	for _, i := range some {
		if int(i) >= before {
			return before
		}
		if one := &e.entries[i]; (one.method == "" || one.method == string(method)) && one.pattern.Match(path) {
			return int(i)
		}
	}
	return before
}

// firstOf returns the first segment of a path.
func firstOf(path []byte) []byte {
	if len(path) == 0 {
		return nil
	}
	path = path[1:]
	if before, _, ok := bytes.Cut(path, []byte{'/'}); ok {
		return before
	}
	return path
}
