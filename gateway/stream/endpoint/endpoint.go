// Package endpoint serves the connectors http_server and websocket_server: messages come in
// by POST and over WebSocket, and go out by long poll, as event streams, line by line, and
// over WebSocket. Its connectors are stream.Servers: their routes answer the requests.
package endpoint

import "github.com/sluicegate/sluice/gateway/stream"

var (
	_ stream.Input  = (*Input)(nil)
	_ stream.Server = (*Input)(nil)
	_ stream.Joiner = (*Input)(nil)
	_ stream.Output = (*Output)(nil)
	_ stream.Server = (*Output)(nil)

	_ stream.LogReader = (*Replay)(nil)
	_ stream.Server    = (*Replay)(nil)
)
