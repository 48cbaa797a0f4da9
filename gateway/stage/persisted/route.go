package persisted

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// maxSegments bounds the segments in the path of a stored operation.
const maxSegments = 64

// A route is a compiled stored operation of one method.
type route struct {
	method  string
	refusal *pipeline.Rejection // not nil: all calls are refused
	why     string              // the reason for refusal

	pieces    []piece
	params    []int           // the segment of each parameter
	variables int             // offset of the variables in a body
	facts     *validate.Facts // of the operation; nil: no schema is known
	counted   bool            // the body contains counters of the request
}

// A node is a prefix of paths.
type node struct {
	fixed   map[string]*node
	any     *node    // for segments without a node
	routes  []*route // of paths that end here
	methods string   // of routes, for people
}

// segmentsOf cuts the path of a stored operation. A parameter is "".
func segmentsOf(path string) []string {
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return nil
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = ""
			continue
		}
		// A segment that cannot be decoded matches no path, because paths are decoded.
		if decoded, err := match.Decode(nil, []byte("/"+s)); err == nil {
			segments[i] = string(decoded[1:])
		}
	}
	return segments
}

// add inserts a route.
func (n *node) add(segments []string, r *route) {
	for _, s := range segments {
		next := n.any
		if s != "" {
			next = n.fixed[s]
		}
		if next == nil {
			next = &node{}
			if s == "" {
				n.any = next
			} else {
				if n.fixed == nil {
					n.fixed = make(map[string]*node)
				}
				n.fixed[s] = next
			}
		}
		n = next
	}
	n.routes = append(n.routes, r)
}

// finish lists the methods of the routes.
func (n *node) finish() {
	for _, next := range n.fixed {
		next.finish()
	}
	if n.any != nil {
		n.any.finish()
	}
	if len(n.routes) == 0 {
		return
	}
	var methods []string
	for _, r := range n.routes {
		methods = append(methods, r.method)
		if r.method == "GET" {
			methods = append(methods, "HEAD")
		}
	}
	slices.Sort(methods)
	n.methods = strings.Join(methods, ", ")
}

// find follows the segments from an index on. Fixed text takes precedence over
// parameters, and a route of the method over routes of others. here is the first
// node that the path leads to.
func (n *node) find(p *parts, from int, method []byte) (found *route, here *node) {
	if from == p.n {
		if len(n.routes) == 0 {
			return nil, nil
		}
		for _, r := range n.routes {
			if r.method == string(method) {
				return r, n
			}
		}
		return nil, n
	}
	segment := p.at[from]
	if next := n.fixed[string(segment)]; next != nil {
		if found, here = next.find(p, from+1, method); found != nil {
			return found, here
		}
	}
	if n.any == nil || len(segment) == 0 {
		return nil, here
	}
	found, other := n.any.find(p, from+1, method)
	if found != nil || here == nil {
		return found, other
	}
	return nil, here
}

// parts are the segments of a call's path, decoded for comparison.
type parts struct {
	at [maxSegments][]byte
	n  int
}

// cut splits a path that begins with a slash and ignores one slash at its end. It
// returns false for paths with more segments than any route.
func (p *parts) cut(path []byte) bool {
	if len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if n := len(path); n > 0 && path[n-1] == '/' {
		path = path[:n-1]
	}
	for len(path) > 0 {
		if p.n == maxSegments {
			return false
		}
		segment, rest, more := bytes.Cut(path, slash)
		p.at[p.n] = segment
		p.n++
		if path = rest; more && len(rest) == 0 {
			return false // it ends with two slashes
		}
	}
	return true
}

var slash = []byte{'/'}
