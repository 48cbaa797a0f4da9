package match

import "bytes"

// Find returns the value that answers for host and path, and how many leading
// segments of the path its listen path covers (see [Rest]). The host is that of
// the request, port and all; path is what [Decode] made. The parameters of the
// listen path go into params, unless that is nil. Find does not allocate.
//
// The longest listen path wins among the entries of the host's own domain and
// those without one, parameters counting as their slash alone. Between equally
// long ones the one with the domain wins, and else the first segment in which they
// differ in kind decides: fixed text goes before a parameter with an expression, and
// that before one without; two expressions are ordered by their text.
//
// The cost follows the length of the path, not the number of entries, and is
// bounded by the listen paths: a look-up enters each node at most once, and only
// below parameters more than one node per segment.
func (t *Tree[T]) Find(host, path []byte, params *Params) (value T, segments int, ok bool) {
	if params != nil {
		params.Reset()
	}
	if len(path) == 0 || path[0] != '/' {
		return value, 0, false
	}
	r := t.search(host, path).route
	if r == nil {
		return value, 0, false
	}
	if params != nil && r.parameters != nil {
		params.fill(r.parameters.names, r.parameters.at, path)
	}
	return r.value, r.segments, true
}

// A hit is the heaviest route found so far.
type hit[T any] struct {
	route  *route[T]
	weight int
}

func (t *Tree[T]) search(host, path []byte) hit[T] {
	best := hit[T]{weight: -1}
	if t.domains.Len() > 0 {
		var lowered [maxHost]byte
		if root, ok := t.domains.Find(normalHost(&lowered, host)); ok {
			best = root.search(path, best)
		}
	}
	return t.anywhere.search(path, best)
}

// search returns the heaviest route at or below n for what is left of the path,
// or best when none is heavier. It tries the kinds of segments in their order of
// precedence and replaces a hit only by a heavier one, which settles ties.
func (n *node[T]) search(path []byte, best hit[T]) hit[T] {
	for {
		if n.weight > best.weight {
			best = hit[T]{route: &n.route, weight: n.weight}
		}
		if n.heaviest <= best.weight || len(path) < 2 {
			return best
		}
		text, rest := path[1:], []byte(nil)
		if end := bytes.IndexByte(text, '/'); end >= 0 {
			text, rest = text[:end], text[end:]
		}
		if len(text) == 0 {
			return best // no listen path holds an empty segment
		}
		next, _ := n.fixed.Find(text)
		if n.patterned == nil && n.free == nil {
			if next == nil {
				return best
			}
			n, path = next, rest
			continue
		}
		if next != nil {
			best = next.search(rest, best)
		}
		return n.searchParameters(text, rest, best)
	}
}

func (n *node[T]) searchParameters(text, rest []byte, best hit[T]) hit[T] {
	for i := range n.patterned {
		p := &n.patterned[i]
		if p.to.heaviest > best.weight && p.match.Match(text) {
			best = p.to.search(rest, best)
		}
	}
	if n.free != nil {
		best = n.free.search(rest, best)
	}
	return best
}
