package streams

import (
	"fmt"
	"slices"
	"strings"
)

// A route is a Route for one verb, as it is compared with the others of the API.
type route struct {
	verb     string
	path     string
	segments []string // "{" for one that is a parameter
	at       string   // full path of the field
	stream   string
	owner    string // such as stream "orders" (output)
	socket   socket
}

// socket says which end of a socket a route of websocket_server is.
type socket uint8

const (
	noSocket socket = iota
	fromClients
	toClients
)

// route reads a path below the listen path; "" if there is none.
func (f *fields) route(name string) string {
	n := f.typed(name, '"', "a string")
	if n == nil {
		return ""
	}
	if wrong := pathFault(n.text); wrong != "" {
		f.faultf(name, "%s", wrong)
		return ""
	}
	if len(n.text) > 1 {
		return strings.TrimSuffix(n.text, "/")
	}
	return n.text
}

const maxPath = 256

// pathFault returns what is wrong with the path of a route, or "".
func pathFault(path string) string {
	switch {
	case !strings.HasPrefix(path, "/"):
		return `must begin with "/": it is below the listen path`
	case len(path) > maxPath:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(path), maxPath)
	case strings.Contains(path, "//"):
		return `must not hold "//"`
	case strings.ContainsAny(path, "?#"):
		return "must not hold a query (?) or a fragment (#)"
	case strings.ContainsAny(path, "%\\ *") || hasControl(path):
		return `must not hold spaces, control characters, "%", "*" or "\"; it is compared with the decoded path`
	}
	var names []string
	for segment := range strings.SplitSeq(path[1:], "/") {
		inner, opens := strings.CutPrefix(segment, "{")
		inner, closes := strings.CutSuffix(inner, "}")
		switch {
		case segment == "." || segment == "..":
			return `must not hold "." or ".." as a segment`
		case !opens && !closes && !strings.ContainsAny(segment, "{}"):
		case !opens || !closes || !isParameter(inner):
			return `has a parameter that is not a whole segment such as "{id}", of letters, digits and "_"`
		case slices.Contains(names, inner):
			return fmt.Sprintf("has the parameter %q twice", inner)
		default:
			names = append(names, inner)
		}
	}
	return ""
}

func isParameter(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// addRoutes notes what the connector with some fields serves.
func (r *reader) addRoutes(f *fields, all ...Route) {
	for i := range all {
		r.addRoute(&all[i], f.path(all[i].field), noSocket)
	}
}

// addSocket is addRoutes for websocket_server, with the path of its field.
func (r *reader) addSocket(at string, one Route) {
	end := toClients
	if one.Takes {
		end = fromClients
	}
	r.addRoute(&one, at, end)
}

func (r *reader) addRoute(one *Route, at string, end socket) {
	if one.Path == "" {
		return
	}
	segments := strings.Split(one.Path[1:], "/")
	for i, segment := range segments {
		if strings.HasPrefix(segment, "{") {
			segments[i] = "{"
		}
	}
	side, _, _ := strings.Cut(at, ".")
	owner := fmt.Sprintf("stream %q (%s)", r.name, side)
	for _, verb := range one.Verbs {
		r.routes = append(r.routes, route{verb: verb, path: one.Path, segments: segments, at: r.full(at), stream: r.name, owner: owner, socket: end})
	}
}

// checkRoutes reports routes of all streams that take the same requests.
func (r *reader) checkRoutes() {
	bySize := make(map[string][]int) // by verb and number of segments
	for i := range r.routes {
		one := &r.routes[i]
		size := fmt.Sprint(one.verb, len(one.segments))
		for _, before := range bySize[size] {
			if other := &r.routes[before]; one.overlaps(other) {
				r.faults.Addf(one.at, "%s %s is already served by %s%s", one.verb, one.path, other.owner, other.as(one))
				break
			}
		}
		bySize[size] = append(bySize[size], i)
	}
}

// as names the path of a route if it is another than that of the route beside it.
func (one *route) as(other *route) string {
	if one.path == other.path {
		return ""
	}
	return " as " + one.path
}

// overlaps reports whether two routes of a verb, with as many segments, take the same
// requests. The two ends of a socket of one stream share it.
func (one *route) overlaps(other *route) bool {
	if one.stream == other.stream && one.path == other.path && one.socket != noSocket && other.socket != noSocket && one.socket != other.socket {
		return false
	}
	for i, segment := range one.segments {
		if against := other.segments[i]; segment != against && segment != "{" && against != "{" {
			return false
		}
	}
	return true
}
