package admin

import (
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/rest"
)

// A missed path is one that the router does not take for a route that ends in a parameter,
// although it is: its last segment is what the names of two other routes begin with, such as
// "s" beside search and streams, and the router has a node for that.
type missedPath struct {
	route      *rest.Route
	path       string
	name, text string // of the parameter
}

// missedPaths returns those of some routes.
func missedPaths(routes []rest.Route) (all []missedPath) {
	type place struct{ method, before string }
	words := make(map[place][]string) // next segments, apart from parameters
	for i := range routes {
		segments := strings.Split(routes[i].Path, "/")
		for n, one := range segments {
			if !strings.HasPrefix(one, "{") {
				at := place{routes[i].Method, strings.Join(segments[:n], "/")}
				words[at] = append(words[at], one)
			}
		}
	}
	for i := range routes {
		before, last := routes[i].Path[:strings.LastIndexByte(routes[i].Path, '/')], routes[i].Path[strings.LastIndexByte(routes[i].Path, '/')+1:]
		name, ok := strings.CutPrefix(last, "{")
		if !ok {
			continue
		}
		for text := range sharedBeginnings(words[place{routes[i].Method, before}]) {
			all = append(all, missedPath{&routes[i], before + "/" + text, strings.TrimSuffix(name, "}"), text})
		}
	}
	return all
}

// sharedBeginnings returns what two of some words begin with, as far as it is not a word.
func sharedBeginnings(words []string) map[string]bool {
	shared := make(map[string]bool)
	for i, a := range words {
		for _, b := range words[:i] {
			n := 0
			for n < min(len(a), len(b)) && a[n] == b[n] {
				n++
			}
			if n > 0 {
				shared[a[:n]] = true
			}
		}
	}
	for _, word := range words {
		delete(shared, word)
	}
	return shared
}

// serveMissed serves a call to a missed path.
func (s *Server) serveMissed(m *missedPath) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		ctx.SetUserValue(m.name, m.text)
		s.serve(ctx, m.route)
	}
}
