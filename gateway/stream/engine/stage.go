package engine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
)

// A Stage answers the requests of an API with event streams, in place of a call upstream.
type Stage struct {
	engine  *Engine // nil: streams are not enabled
	streams []*running
	exact   map[string]*place
	others  []*place // with parameters
}

// A place is a path that connectors serve.
type place struct {
	path     string
	segments []string // "" for a parameter
	names    []string // of the parameters
	routes   []served
	wrong    *pipeline.Rejection // of another method, or of none for WebSocket
}

// served is a route with the connector that serves it.
type served struct {
	stream.Route
	run       *running
	connector *connector
}

var (
	noRoute     = pipeline.NewRejection(pipeline.ReasonRouteNotFound, 404, "No stream of the API has this path")
	notEnabled  = pipeline.NewRejection(pipeline.ReasonRouteNotFound, 404, "Event streams are not enabled")
	noWebSocket = pipeline.NewRejection(pipeline.ReasonBadRequest, 426, "WebSockets are not enabled")
)

// newStage returns the stage of an API with these streams.
func newStage(e *Engine, all []*running) *Stage {
	s := &Stage{engine: e, streams: all, exact: make(map[string]*place)}
	for _, r := range all {
		for _, route := range r.routes() {
			s.add(route)
		}
	}
	for _, p := range s.exact {
		p.finish()
	}
	for _, p := range s.others {
		p.finish()
	}
	return s
}

func (s *Stage) add(route served) {
	if !strings.Contains(route.Path, "{") {
		p := s.exact[route.Path]
		if p == nil {
			p = &place{path: route.Path}
			s.exact[route.Path] = p
		}
		p.routes = append(p.routes, route)
		return
	}
	p := &place{path: route.Path}
	for segment := range strings.SplitSeq(route.Path[1:], "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			p.names = append(p.names, strings.TrimSuffix(name, "}"))
			segment = ""
		}
		p.segments = append(p.segments, segment)
	}
	at := slices.IndexFunc(s.others, func(other *place) bool { return other.path == p.path })
	if at < 0 {
		at = len(s.others)
		s.others = append(s.others, p)
	}
	s.others[at].routes = append(s.others[at].routes, route)
}

// finish makes the refusal of requests for the path that no route takes.
func (p *place) finish() {
	var verbs []string
	for _, route := range p.routes {
		if route.WebSocket {
			continue
		}
		for _, verb := range route.Verbs {
			if !slices.Contains(verbs, verb) {
				verbs = append(verbs, verb)
			}
		}
	}
	if len(verbs) == 0 {
		p.wrong = pipeline.NewRejection(pipeline.ReasonMethodNotAllowed, 426, "The path is for WebSocket: send a handshake")
		return
	}
	slices.Sort(verbs)
	p.wrong = pipeline.NewRejection(pipeline.ReasonMethodNotAllowed, 405, "The method is not allowed for this path")
	p.wrong.Allow = strings.Join(verbs, ", ")
}

// Handle implements pipeline.Stage.
func (s *Stage) Handle(ex *pipeline.Exchange) pipeline.Verdict {
	route, path, refused := s.find(ex)
	switch {
	case refused != nil:
		return ex.Reject(refused)
	case ex.IsDry():
		ex.Answer.Status = 200
		return pipeline.Answered
	}
	return route.Serve(ex, path)
}

// find returns the route of a request and the values of its parameters, or why there is
// none.
func (s *Stage) find(ex *pipeline.Exchange) (*served, []stream.Meta, *pipeline.Rejection) {
	if s.engine == nil {
		return nil, nil, notEnabled
	}
	p, values := s.place(ex.Path)
	if p == nil {
		return nil, nil, noRoute
	}
	upgrades := asksWebSocket(ex.Call)
	for i := range p.routes {
		switch route := &p.routes[i]; {
		case route.WebSocket && upgrades && !s.engine.webSockets:
			return nil, nil, noWebSocket
		case route.WebSocket != upgrades:
		case slices.ContainsFunc(route.Verbs, func(verb string) bool { return takes(verb, ex.Call) }):
			return route, values, nil
		}
	}
	if !upgrades {
		return nil, nil, p.wrong
	}
	for i := range p.routes { // a header that asks for an upgrade may be ignored
		route := &p.routes[i]
		if slices.ContainsFunc(route.Verbs, func(verb string) bool { return takes(verb, ex.Call) }) && !route.WebSocket {
			return route, values, nil
		}
	}
	return nil, nil, p.wrong
}

// takes reports whether a route for a verb takes a request.
func takes(verb string, call *wire.Call) bool {
	return verb == string(call.Method) || verb == "GET" && call.IsHead()
}

func (s *Stage) place(path []byte) (*place, []stream.Meta) {
	if p := s.exact[string(path)]; p != nil {
		return p, nil
	}
	for _, p := range s.others {
		if values, ok := p.matches(path); ok {
			return p, values
		}
	}
	return nil, nil
}

// matches reports whether a path is that of the place, and returns its parameters.
func (p *place) matches(path []byte) (values []stream.Meta, ok bool) {
	if len(path) == 0 || bytes.Count(path, []byte{'/'}) != len(p.segments) {
		return nil, false
	}
	at := 0
	rest := path[1:]
	for _, want := range p.segments {
		var have []byte
		have, rest, _ = bytes.Cut(rest, []byte{'/'})
		switch {
		case want != "" && want != string(have), want == "" && len(have) == 0:
			return nil, false
		case want == "":
			values = append(values, stream.Meta{Name: p.names[at], Value: string(have)})
			at++
		}
	}
	return values, true
}

var (
	upgrade   = []byte("upgrade")
	webSocket = []byte("websocket")
)

// asksWebSocket reports whether a request asks for WebSocket (RFC 6455 section 4.1).
func asksWebSocket(call *wire.Call) bool {
	return string(call.Method) == "GET" && http1.Lists(call.Get(wire.NameConnection), upgrade) && http1.Lists(call.Get(wire.NameUpgrade), webSocket)
}

// Explain implements pipeline.Explainer.
func (s *Stage) Explain(ex *pipeline.Exchange, f *pipeline.Finding) {
	route, _, refused := s.find(ex)
	switch refused {
	case nil:
		f.Said = fmt.Sprintf("stream %q, %s %q", route.run.conf.Name, route.connector.side, route.connector.site.Label)
		phase, _ := route.connector.site.State.Phase()
		f.Fact("x-svc-streaming.streams."+route.run.conf.Name, route.Path, string(phase), "definition")
	case notEnabled:
		f.Said, f.Fix = "event streams are not enabled in this gateway", "set streaming.enabled to true"
	case noRoute:
		f.Said, f.Fix = "no stream of the API has the path", "call one of "+strings.Join(s.paths(), ", ")
	case noWebSocket:
		f.Said, f.Fix = "WebSockets are not enabled in this gateway", "set gateway.websockets to true"
	default:
		f.Said, f.Fix = "the path has no route for the method", "send "+refused.Allow
		if refused.Allow == "" {
			f.Fix = "send a handshake of WebSocket"
		}
	}
}

// mostPaths bounds the paths that an explanation names.
const mostPaths = 20

func (s *Stage) paths() []string {
	var all []string
	for path := range s.exact {
		all = append(all, path)
	}
	for _, p := range s.others {
		all = append(all, p.path)
	}
	slices.Sort(all)
	return all[:min(len(all), mostPaths)]
}
