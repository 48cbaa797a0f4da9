package pipeline

import (
	"bytes"
	"context"
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
	Joins    Joiner       // makes the results of what the upstream streams; nil: they are that. Set before the upstream is called

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

// A Trigger is what a subscription of a data graph or supergraph is for the source that has
// its root field.
type Trigger struct {
	Upstream Stage  // calls the source
	Request  []byte // the operation for the source, a JSON object
	Lines    []byte // header lines of the request, each ended by CRLF
	Protocol string // graphql-ws, which is that of "", graphql-transport-ws or sse
	Post     bool   // sse is asked for with POST
	Internal bool   // the source is another API
	Joins    Joiner
}

// A Joiner makes the results of a subscription of what its source streams. It is used by one
// goroutine at a time, also after the exchange has ended.
type Joiner interface {
	// Result returns the response that an event becomes, which has come with a status of
	// HTTP. Requests to other sources end with ctx; those to other APIs are made by calls.
	Result(ctx context.Context, calls InternalCalls, status int, event []byte) []byte

	// Errors returns the errors, a JSON array, that those of the source become.
	Errors(list []byte) []byte
}

// Kept returns an exchange for requests that are made in the place of ex after its end: with
// its client, and what is known of it. It is not released.
func (ex *Exchange) Kept() *Exchange {
	call := ex.Call.Keep()
	call.SetLines(call.Lines)
	call.SetBody(bytes.Clone(ex.Call.Body))
	kept := &Exchange{
		Call: call, Answer: &call.Answer, API: ex.API, Version: ex.Version, Policies: ex.Policies, Revision: ex.Revision, Internal: ex.Internal,
		Client: ex.Client, ID: ex.ID, GivenID: bytes.Clone(ex.GivenID), Started: ex.Started, Trace: ex.Trace,
		Caller: ex.Caller, Charge: ex.Charge, Play: ex.Play, PathBuf: bytes.Clone(ex.PathBuf),
	}
	kept.Token, kept.TokenBuf, kept.Claims = bytes.Clone(ex.Token), nil, bytes.Clone(ex.Claims)
	kept.Trace.Steps = nil
	return kept
}

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
