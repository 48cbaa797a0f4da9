// Package endpoint serves the connectors http_server and websocket_server: messages come in
// by POST and over WebSocket, and go out by long poll, as event streams, line by line, and
// over WebSocket. Its connectors are stream.Servers: their routes answer the requests.
package endpoint

import (
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

var (
	_ stream.Input  = (*Input)(nil)
	_ stream.Server = (*Input)(nil)
	_ stream.Joiner = (*Input)(nil)
	_ stream.Output = (*Output)(nil)
	_ stream.Server = (*Output)(nil)

	_ stream.LogReader = (*Replay)(nil)
	_ stream.Server    = (*Replay)(nil)
)

// A serve answers the exchanges of a route; see stream.Route.
type serve = func(ex *pipeline.Exchange, path []stream.Meta) pipeline.Verdict

// routesOf returns the routes of a connector. The function that requests returns answers the
// HTTP requests of a route, and socket its WebSocket handshakes; socket may be nil for a
// connector without any.
func routesOf(all []streams.Route, socket *sockets, requests func(*streams.Route) serve) (routes []stream.Route) {
	for i := range all {
		one := &all[i]
		if !one.Has(streams.WaySocket) || len(one.Ways) > 1 {
			routes = append(routes, stream.Route{Path: one.Path, Verbs: one.Verbs, Serve: requests(one)})
		}
		if one.Has(streams.WaySocket) {
			routes = append(routes, stream.Route{Path: one.Path, Verbs: []string{"GET"}, WebSocket: true, Serve: socket.serve})
		}
	}
	return routes
}
