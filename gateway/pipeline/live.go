package pipeline

import (
	"net"

	"github.com/sluicegate/sluice/gateway/wire"
)

// An Opening is a GraphQL connection that an exchange opens by its answer.
type Opening struct {
	Protocol string     // WebSocket subprotocol
	Call     *wire.Call // the handshake, kept
	Late     bool       // the credential is to come in connection_init

	Cut   func(why error) // ends the connection when it is not allowed any more; it does not wait
	Check func()          // ends the operations of the connection that are not allowed any more
}

// A Live makes an exchange an operation of a GraphQL connection. It passes the stages as a
// request over HTTP does. A subscription then goes on over a connection of its upstream.
type Live struct {
	// Upstreams has connections to upstreams that serve already; nil: none.
	Upstreams LiveUpstreams

	Again    bool       // the operation was counted before
	Streamed LiveStream // set by the stage that makes the request that goes upstream
	Joined   bool       // a connection that serves already takes the subscription: nothing was sent

	// Upstream is the connection on which the upstream speaks WebSocket; nil: it has
	// answered over HTTP. The owner of the exchange closes it.
	Upstream net.Conn

	asked asked // unless the call is still that of the client
}

// LiveStream says how an upstream is to stream the results of a subscription.
type LiveStream struct {
	Request []byte // for an upstream that speaks WebSocket, a JSON object
	Nonce   []byte // of the request that goes upstream: connections do not differ in it
	Upgrade bool   // the upstream speaks WebSocket
	Share   bool   // one subscription at the upstream serves all with the same request
	Retries int    // how often a lost subscription is begun anew
}

// LiveUpstreams has connections to upstreams that serve already.
type LiveUpstreams interface {
	// Join reports whether one of them takes the subscription of an exchange. key has all
	// that the connection depends on: the upstream and the head of the request.
	Join(key []byte) bool
}
