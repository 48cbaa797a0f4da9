package pipeline

import "net"

// An Opening is a GraphQL connection that an exchange opens by its answer.
type Opening struct {
	Protocol string          // WebSocket subprotocol
	Cut      func(why error) // ends the connection when it is not allowed any more; it does not wait
}

// A Live makes an exchange an operation of a GraphQL connection. It passes the stages as a
// request over HTTP does. A subscription then goes on over a connection of its upstream.
type Live struct {
	// Upstream is the connection on which the upstream speaks WebSocket; nil: it has
	// answered over HTTP. The owner of the exchange closes it.
	Upstream net.Conn

	asked asked // unless the call is still that of the client
}
