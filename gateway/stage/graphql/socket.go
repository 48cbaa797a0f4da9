package graphql

import (
	"bytes"
	"slices"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stage/graphql/request"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/wsconn"
)

var (
	socketsOff    = request.Refusal(pipeline.ReasonGraphQLMedia, 422, "websockets are not allowed")
	noSubprotocol = request.Refusal(pipeline.ReasonGraphQLMedia, 400, "invalid websocket protocol for upgrading to a graphql websocket connection")
	noHandshake   = request.Refusal(pipeline.ReasonGraphQLMedia, 400, "The request is not a WebSocket handshake: it needs GET, Connection: Upgrade, Sec-WebSocket-Version: 13 and Sec-WebSocket-Key, and no body.")
	foreignOrigin = request.Refusal(pipeline.ReasonGraphQLMedia, 403, "Pages of this origin may not open connections to the API; list the origin in CORS.allowed_origins.")
)

// socket answers the handshakes of GraphQL connections of one API (RFC 6455 section 4.2).
type socket struct {
	on      bool
	deflate bool           // messages are compressed if the client asks for it
	ambient bool           // browsers send the credential by themselves, whatever page asks them to
	pages   *match.Origins // of pages that may call the API; nil: it says nothing about them
}

func newSocket(def *definition.API, o *Options) socket {
	s := socket{on: o.WebSockets, deflate: o.Deflates, ambient: def.UseBasicAuth || def.UseMutualTLS || def.Token().UseCookie || def.Token().UseCertificate}
	if def.CORS.On() {
		pages := match.CompileOrigins(def.CORS.Origins())
		s.pages = &pages
	}
	return s
}

// handshake answers the handshake of a GraphQL connection. It is not charged: the
// operations are.
func (s *Stage) handshake(ex *pipeline.Exchange) pipeline.Verdict {
	protocol, fault := s.socket.read(ex.Call)
	if fault != nil {
		return s.refuse(ex, fault)
	}
	return s.socket.accept(ex, protocol)
}

// OpenLate answers the handshake of a GraphQL connection that the auth stage has refused
// because it has no credential: the credential is to come in connection_init. It leaves
// other requests refused.
func (s *Stage) OpenLate(ex *pipeline.Exchange) pipeline.Verdict {
	w := begin(ex)
	if w.head.Read(ex.Call); !w.head.Upgrade {
		return pipeline.Rejected
	}
	ex.MediaType = string(w.head.Media)
	protocol, fault := s.socket.read(ex.Call)
	if fault != nil {
		return ex.Reject(fault)
	}
	ex.Rejection = nil
	v := s.socket.accept(ex, protocol)
	ex.Opening.Late = true
	return v
}

// read returns the subprotocol of a handshake, or why it is refused.
func (s *socket) read(call *wire.Call) (live.Protocol, *pipeline.Rejection) {
	protocol, known := live.Choose(call.Header("Sec-WebSocket-Protocol"))
	switch {
	case !s.on:
		return 0, socketsOff
	case string(call.Method) != "GET" || call.HTTP10 || call.HasBody(),
		!http1.Lists(call.Get(wire.NameConnection), upgrade) || string(call.Header("Sec-WebSocket-Version")) != "13" || !wsconn.IsKey(call.Header("Sec-WebSocket-Key")):
		return 0, noHandshake
	case !known:
		return 0, noSubprotocol
	case !s.admits(call):
		return 0, foreignOrigin
	}
	return protocol, nil
}

// accept answers a handshake (RFC 6455 section 4.2.2).
func (s *socket) accept(ex *pipeline.Exchange, protocol live.Protocol) pipeline.Verdict {
	ex.Opening = &pipeline.Opening{Protocol: protocol.String()}
	ex.Opening.Deflated = s.deflate && wsconn.AsksForDeflate(ex.Call.Header("Sec-WebSocket-Extensions"))
	a := ex.Answer
	a.Status, a.NoBody, a.Length = 101, true, -1
	a.Lines = append(a.Lines, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "...)
	a.Lines = wsconn.AppendAccept(a.Lines, ex.Call.Header("Sec-WebSocket-Key"))
	a.Lines = append(a.Lines, "\r\nSec-WebSocket-Protocol: "...)
	a.Lines = append(a.Lines, ex.Opening.Protocol...)
	a.Lines = append(a.Lines, "\r\n"...)
	if ex.Opening.Deflated {
		a.Lines = append(a.Lines, "Sec-WebSocket-Extensions: "+wsconn.Deflate+"\r\n"...)
	}
	return pipeline.Answered
}

var upgrade = []byte("upgrade")

// admits reports whether the page that asks may open a connection. Browsers ask nobody
// before they open one, and send cookies along.
func (s *socket) admits(call *wire.Call) bool {
	origin := call.Get(wire.NameOrigin)
	if len(origin) == 0 {
		return true
	}
	if _, host, ok := bytes.Cut(origin, []byte("://")); ok && bytes.EqualFold(host, call.Host) {
		return true
	}
	if s.pages != nil {
		return s.pages.Has(origin)
	}
	return !s.ambient
}

// streams says how an upstream streams the results of subscriptions.
type streams struct {
	protocol live.Protocol // over WebSocket
	events   bool          // as text/event-stream instead
	post     bool          // which is asked for with POST
	share    bool
	counts   bool   // events count under the limits of the key
	atLimit  string // what happens to an event then
	retries  int
	headers  []string // of the client that the handshake has; nil: all
	unsaid   bool     // the definition names no protocol: what comes over HTTP goes on over HTTP
	internal bool     // the upstream is another API, which takes what any client may send
}

func streamsOf(def *definition.API) streams {
	s := streams{protocol: live.Legacy, internal: definition.IsInternal(def.Proxy.TargetURL)}
	proxy := def.GraphQL.Proxy
	if s.unsaid = proxy == nil || proxy.SubscriptionType == ""; proxy == nil {
		return s
	}
	switch proxy.SubscriptionType {
	case live.TransportWS.String():
		s.protocol = live.TransportWS
	case "sse":
		s.events, s.post = true, proxy.SSEUsePost
	}
	if more := proxy.Subscriptions; more != nil {
		s.share, s.retries, s.headers = more.Share, more.Reconnect, more.ForwardHeaders
		s.counts, s.atLimit = more.CountEvents, more.AtLimit
	}
	return s
}

// withholds reports whether a header line of the client is left out of handshakes.
func (s *streams) withholds(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte{':'})
	return !slices.ContainsFunc(s.headers, func(one string) bool { return http1.EqualFold(name, one) })
}

// limits returns the limits of the events of a subscription, nil if they are not counted.
func (s *streams) limits(ex *pipeline.Exchange) *pipeline.EventLimits {
	if meter, ok := ex.Version.Limits.(pipeline.EventMeter); ok && s.counts {
		return meter.Events(ex, s.atLimit)
	}
	return nil
}

// subscribe makes the forwarded request of a GraphQL connection one for a subscription.
func (s *streams) subscribe(ex *pipeline.Exchange, r *request.Request) {
	if s.internal {
		return
	}
	call := ex.Call
	ex.Live.Rewrites(call)
	if s.events {
		ex.Live.Streamed = pipeline.LiveStream{Share: s.share, Retries: s.retries}
		// Servers of GraphQL over SSE look for this media type alone.
		call.SetLines(append(http1.RemoveLines(call.Lines, "Accept"), "Accept: text/event-stream\r\n"...))
		if !s.post {
			call.Method = methodGet
			call.SetBody(nil)
			ex.Outgoing.Query, ex.Outgoing.HasQuery = r.AppendParameters(append(ex.Outgoing.Query[:0], ex.Query()...)), true
		}
		return
	}
	nonce := []byte(wsconn.NewKey())
	ex.Live.Streamed = pipeline.LiveStream{Request: bytes.Clone(call.Body), Nonce: nonce, Upgrade: true, Share: s.share, Retries: s.retries}
	call.Method = methodGet
	call.SetBody(nil)
	call.SetLines(s.appendHandshake(http1.RemoveLines(call.Lines, "Content-Type", "Accept"), nonce))
}

// appendHandshake makes header lines those of a WebSocket handshake (RFC 6455 section 4.1).
func (s *streams) appendHandshake(lines, nonce []byte) []byte {
	if s.headers != nil {
		lines = http1.RemoveLinesFunc(lines, s.withholds)
	}
	lines = append(lines, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "...)
	lines = append(lines, nonce...)
	lines = append(lines, "\r\nSec-WebSocket-Protocol: "...)
	lines = append(lines, s.protocol.String()...)
	return append(lines, "\r\n"...)
}

var methodGet = []byte("GET")
