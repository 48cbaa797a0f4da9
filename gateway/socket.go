package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/jsonscan"
)

// openSocket has the client's connection served as a GraphQL connection once the answer to
// its handshake has been sent.
func (g *Gateway) openSocket(ex *pipeline.Exchange) {
	s := &socket{gateway: g, call: ex.Call.Keep(), client: ex.Client, api: strings.Clone(ex.API.Definition.ID), org: strings.Clone(ex.API.Definition.OrgID)}
	s.shown = shownOf(ex)
	s.lines = http1.RemoveLinesFunc(bytes.Clone(s.call.Lines), isOfHandshake)
	s.lines = append(s.lines, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	o := &live.Options{Limits: g.conf.Sockets, Run: s.run, Ended: s.ended}
	o.Protocol, _ = live.Choose([]byte(ex.Opening.Protocol))
	ex.Opening.Cut = s.cut
	ex.Answer.Takeover = func(client net.Conn, received []byte) {
		if client != nil {
			s.serve(client, received, o)
		}
	}
}

// serve serves a client's connection until it ends.
func (s *socket) serve(client net.Conn, received []byte, o *live.Options) {
	c, err := live.Take(client, received, o)
	if err != nil {
		s.gateway.log.Error("a GraphQL connection cannot be served", "api", s.api, "err", err)
		return
	}
	s.conn.Store(c)
	s.endBarred()
	s.watch(c)
}

// cut ends a connection that is not allowed any more, if need be as soon as it is served.
func (s *socket) cut(why error) {
	text := why.Error()
	s.barred.Store(&text)
	s.endBarred()
}

func (s *socket) endBarred() {
	if c, why := s.conn.Load(), s.barred.Load(); c != nil && why != nil {
		c.Close(live.CloseForbidden, *why)
	}
}

const goodbye = "The gateway stops, please connect again"

// isOfHandshake reports whether a header line of a handshake is for that connection only.
func isOfHandshake(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte{':'})
	for _, one := range [...]string{"Connection", "Upgrade", "Accept", "Content-Type", "Content-Length"} {
		if http1.EqualFold(name, one) {
			return true
		}
	}
	return http1.HasPrefix(name, "Sec-WebSocket-")
}

// A socket is a GraphQL connection. Each of its operations is a request with the header
// of the handshake, which passes the stages in force when it comes.
type socket struct {
	gateway *Gateway
	call    *wire.Call
	lines   []byte // header of the operations
	client  netip.Addr
	api     string
	org     string
	shown   *live.Member              // as operators see it
	conn    atomic.Pointer[live.Conn] // nil until it is served
	barred  atomic.Pointer[string]    // why the connection is not allowed any more; nil: it is
}

var (
	methodPost = []byte("POST")
	movedAway  = []byte(`[{"message":"The path of this connection leads to another API now. Connect again."}]`)
)

// run carries out an operation.
func (s *socket) run(ctx context.Context, op *live.Operation) {
	g := s.gateway
	call := s.call.Relay(s.target())
	defer call.Free()
	call.UseLines(append(call.OwnLines(), s.lines...))
	call.Method, call.Started = methodPost, time.Now()
	var left atomic.Bool
	call.UntilLeft(&left)
	defer context.AfterFunc(ctx, func() { left.Store(true) })()
	call.SetBody(op.Request)

	ex := pipeline.For(&call.Call)
	setID(&ex.ID)
	ex.Client, ex.Live = s.client, &pipeline.Live{}
	g.join(ex)
	meter := g.unmatched
	switch found := g.find(ex); {
	case found && ex.API.Definition.ID != s.api:
		op.Fail(movedAway)
	case found:
		if ex.API.Meter != nil {
			meter = ex.API.Meter
		}
		g.run(ex)
		describe(ex, op)
		s.answer(ctx, ex, op)
	default:
		ex.Stopped = routing
		g.reject(ex)
		g.remember(ex)
		op.Fail(errorsOf(ex))
	}
	g.finish(ex, meter)
}

// target returns the target of the handshake.
func (s *socket) target() []byte {
	uri := bytes.Clone(s.call.Path)
	if len(s.call.Query) > 0 {
		uri = append(append(uri, '?'), s.call.Query...)
	}
	return uri
}

// answer sends the outcome of an operation.
func (s *socket) answer(ctx context.Context, ex *pipeline.Exchange, op *live.Operation) {
	a := ex.Answer
	if a.Stream != nil {
		defer func() { _ = a.Stream.Close() }() // what it could say was said by Read
		ex.Settle()
	}
	var err error
	switch conn := ex.Live.Upstream; {
	case conn != nil:
		err = s.follow(ctx, ex, conn, op)
	case ex.Rejection != nil:
		op.Fail(errorsOf(ex))
	case http1.HasPrefix(valueOf(a.Lines, "Content-Type"), "text/event-stream") && a.Stream != nil:
		err = live.Events(a.Stream, op)
	case http1.HasPrefix(valueOf(a.Lines, "Content-Type"), "text/event-stream"):
		err = live.Events(bytes.NewReader(a.Body), op) // all have come at once
	default:
		err = s.result(a, op)
	}
	if err != nil && ctx.Err() == nil {
		g := s.gateway
		g.log.Warn("an operation of a GraphQL connection has failed", "api", s.api, "request_id", string(ex.RequestID()), "err", err)
		op.Fail(failure("The upstream has failed."))
	}
}

// follow passes on what an upstream sends over WebSocket.
func (s *socket) follow(ctx context.Context, ex *pipeline.Exchange, conn net.Conn, op *live.Operation) error {
	protocol, ok := live.Choose(valueOf(ex.Answer.Lines, "Sec-WebSocket-Protocol"))
	accept := live.AppendAccept(nil, ex.Call.Header("Sec-WebSocket-Key"))
	if asked, _ := live.Choose(ex.Call.Header("Sec-WebSocket-Protocol")); !ok || protocol != asked || !bytes.Equal(accept, valueOf(ex.Answer.Lines, "Sec-WebSocket-Accept")) {
		_ = conn.Close()
		return errors.New("the upstream's answer to the WebSocket handshake is wrong")
	}
	return live.Follow(ctx, conn, protocol, op.Request, op)
}

// result sends the answer to a query or mutation.
func (s *socket) result(a *wire.Answer, op *live.Operation) error {
	body, most := a.Body, s.gateway.conf.Sockets.MaxResponse
	if a.Stream != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(a.Stream, int64(most)+1)); err != nil {
			return err
		}
	}
	if len(body) > most {
		op.Fail(failure("The response is larger than " + strconv.Itoa(most) + " bytes; send the operation over HTTP."))
		return nil
	}
	if !live.IsResult(body) {
		op.Fail(failure("The upstream has sent no GraphQL answer: status " + strconv.Itoa(a.Status) + "."))
		return nil
	}
	op.Next(body)
	op.Complete()
	return nil
}

// valueOf returns the value of the first header line of a name.
func valueOf(lines []byte, name string) []byte {
	for line := range bytes.Lines(lines) {
		if field, value, ok := bytes.Cut(line, []byte{':'}); ok && http1.EqualFold(field, name) {
			return http1.Trim(bytes.TrimRight(value, "\r\n"))
		}
	}
	return nil
}

// failure returns the errors of an operation that failed for one reason.
func failure(message string) []byte {
	return append(append([]byte(`[{"message":`), jsonscan.AppendString(nil, []byte(message))...), "}]"...)
}

// errorsOf returns the errors of a rejected exchange: those of its GraphQL answer, and
// otherwise its message.
func errorsOf(ex *pipeline.Exchange) []byte {
	s := jsonscan.New(ex.Answer.Body, jsonscan.MaxDepth)
	if ex.Rejection.GraphQL() && s.Object() {
		for s.Member() {
			name, value := s.Name(), s.Value()
			if string(name) == "errors" && value.Kind == jsonscan.Array {
				return withID(value.Raw, ex.RequestID())
			}
		}
	}
	return withID(failure(ex.Rejection.Message), ex.RequestID())
}
