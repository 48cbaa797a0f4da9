package pipeline

import (
	"net"
	"sync/atomic"

	"github.com/sluicegate/sluice/gateway/wire"
)

// An Opening is a GraphQL connection that an exchange opens by its answer.
type Opening struct {
	Protocol string     // WebSocket subprotocol
	Call     *wire.Call // the handshake, kept
	Late     bool       // the credential is to come in connection_init
	Deflated bool       // messages are compressed

	Cut   func(why error) // ends the connection when it is not allowed any more; it does not wait
	Check func()          // ends the operations of the connection that are not allowed any more
}

// A Live makes an exchange an operation whose results are sent one by one: on a GraphQL
// connection, or as an event stream. It passes the stages as a request over HTTP does. A
// subscription then goes on over a connection of its upstream.
type Live struct {
	Events     bool         // the answer to the client is an event stream
	Subscribes bool         // and the operation a subscription
	Left       *atomic.Bool // nobody reads its results any more, if not nil

	// Upstreams has connections to upstreams that serve already; nil: none.
	Upstreams LiveUpstreams

	Again    bool         // the operation was counted before
	Limits   *EventLimits // of the subscription's events; nil: they are not counted. Set before the upstream is called
	Streamed LiveStream   // set by the stage that makes the request that goes upstream
	Joined   bool         // a connection that serves already takes the subscription: nothing was sent

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

// Many reports whether what goes upstream may be for several clients.
func (s *LiveStream) Many() bool { return s.Upgrade || s.Share }

// LiveUpstreams has connections to upstreams that serve already.
type LiveUpstreams interface {
	// Join reports whether one of them takes the subscription of an exchange. key has all
	// that the connection depends on: the upstream and the head of the request.
	Join(key []byte) bool
}

// LiveEvents returns the Live of the exchange whose answer is an event stream: ex itself, or
// the nearest one that it is an internal call of. Another goroutine than the one of the
// call reads what comes for it. nil: there is none, as for a nil ex.
func (ex *Exchange) LiveEvents() *Live {
	for ; ex != nil; ex = ex.Parent {
		if ex.Live != nil && ex.Live.Events {
			return ex.Live
		}
	}
	return nil
}
