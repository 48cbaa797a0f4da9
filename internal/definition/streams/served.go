package streams

import "slices"

// A Route is a path at which a connector serves clients of the API.
type Route struct {
	Path   string   // below the listen path; {name} stands for one segment
	Verbs  []string // of requests; GET where the only way is WaySocket
	Takes  bool     // clients send messages
	Gives  bool     // clients get messages; beside Takes over WebSocket alone
	Ways   []Way    // at least one; WaySingle or WaySocket alone where clients send
	Resume bool     // clients that send Last-Event-ID get what came after that event
	Ack    bool     // messages over WebSocket are answered

	field string // of http_server that has the path
}

// A Way is how clients use a route.
type Way string

// The ways of routes.
const (
	WaySingle Way = "single"    // a request for each message
	WayEvents Way = "events"    // an answer of server-sent events
	WayLines  Way = "lines"     // an answer with a message in each line
	WaySocket Way = "websocket" // messages of a WebSocket
)

// Has reports whether clients can use the route in a way.
func (r *Route) Has(w Way) bool { return slices.Contains(r.Ways, w) }

// handshake is the method of handshakes of WebSocket.
var handshake = []string{"GET"}

// Routes returns what the connector serves.
func (c *HTTPServerInput) Routes() []Route {
	return served(
		Route{Path: c.Path, Verbs: c.AllowedVerbs, Takes: true, Ways: []Way{WaySingle}, field: "path"},
		Route{Path: c.WSPath, Verbs: handshake, Takes: true, Ways: []Way{WaySocket}, field: "ws_path"},
	)
}

// Routes returns what the connector serves.
func (c *HTTPServerOutput) Routes() []Route {
	ofPath, ofStream := []Way{WaySingle}, []Way{WayEvents, WayLines}
	switch {
	case c.Resume:
		ofPath, ofStream = []Way{WayEvents}, []Way{WayEvents}
	case c.Negotiates:
		ofPath = []Way{WaySingle, WayEvents, WaySocket}
	}
	return served(
		Route{Path: c.Path, Verbs: c.AllowedVerbs, Gives: true, Ways: ofPath, Resume: c.Resume, field: "path"},
		Route{Path: c.StreamPath, Verbs: c.AllowedVerbs, Gives: true, Ways: ofStream, Resume: c.Resume, field: "stream_path"},
		Route{Path: c.WSPath, Verbs: handshake, Gives: true, Ways: []Way{WaySocket}, field: "ws_path"},
	)
}

// Route returns what the connector serves as an input, or as an output.
func (c *WebSocket) Route(input bool) Route {
	return Route{Path: c.Path, Verbs: handshake, Takes: input, Gives: !input, Ways: []Way{WaySocket}, Ack: c.Ack}
}

// served returns the routes that have a path.
func served(all ...Route) []Route {
	return slices.DeleteFunc(all, func(r Route) bool { return r.Path == "" })
}

// Routes returns what the connectors of the stream serve, those of the input first. Two ends
// of a WebSocket are one route.
func (s *Stream) Routes() (all []Route) {
	for _, c := range leaves(s.Input) {
		if c.HTTPServerInput != nil {
			all = append(all, c.HTTPServerInput.Routes()...)
		}
		if c.WebSocket != nil {
			all = append(all, c.WebSocket.Route(true))
		}
	}
	for _, c := range leaves(s.Output) {
		if c.HTTPServerOutput != nil {
			all = append(all, c.HTTPServerOutput.Routes()...)
		}
		if c.WebSocket == nil {
			continue
		}
		out := c.WebSocket.Route(false)
		shared := slices.IndexFunc(all, func(in Route) bool { return in.Takes && in.Path == out.Path && in.Has(WaySocket) })
		if shared < 0 {
			all = append(all, out)
			continue
		}
		all[shared].Gives = true
	}
	return all
}
