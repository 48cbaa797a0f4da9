package gateway

import (
	"bytes"
	"context"
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
func (g *Gateway) openSocket(ex *pipeline.Exchange) (*socket, pipeline.Verdict) {
	if g.stopping.Load() {
		return nil, refuseOpening(ex, stopping)
	}
	s := &socket{gateway: g, call: ex.Call.Keep(), client: ex.Client, api: strings.Clone(ex.API.Definition.ID), org: strings.Clone(ex.API.Definition.OrgID)}
	s.shown = shownOf(ex)
	o := &live.Options{Limits: g.conf.Sockets, Deflated: ex.Opening.Deflated, Run: s.run, Ended: s.ended}
	o.Protocol, _ = live.Choose([]byte(ex.Opening.Protocol))
	ex.Opening.Call, ex.Opening.Cut, ex.Opening.Check = s.call, s.cut, s.check
	if ex.Opening.Late {
		leave := g.late.enter(s.api, g.conf.LateSockets)
		if leave == nil {
			return nil, refuseOpening(ex, tooManyLate)
		}
		s.late, o.Init = &lateKey{leave: leave}, s.identify
	}
	ex.Answer.Takeover = func(client net.Conn, received []byte) {
		if client != nil {
			s.serve(client, received, o)
		}
		if s.late != nil {
			s.late.leave()
		}
	}
	return s, pipeline.Answered
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

// check ends the subscriptions that are not allowed any more.
func (s *socket) check() {
	c := s.conn.Load()
	if c == nil {
		return // there are none yet
	}
	for _, source := range c.Sources() {
		if o, ok := source.(*operation); ok {
			o.check()
		}
	}
}

func (s *socket) endBarred() {
	if c, why := s.conn.Load(), s.barred.Load(); c != nil && why != nil {
		c.Close(live.CloseForbidden, *why)
	}
}

// survive is deferred: it ends the connection, and no other, if its goroutine panics.
func (s *socket) survive() {
	if fault := recover(); fault != nil {
		s.gateway.server.Fault(fault)
		s.conn.Load().Close(live.CloseInternal, internalError)
	}
}

const internalError = "Internal Server Error"

const goodbye = "The gateway stops, please connect again"

// isOfHandshake reports whether a header line of a handshake is for that connection only,
// or asks for what operations cannot use: compressed answers.
func isOfHandshake(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte{':'})
	for _, one := range [...]string{"Connection", "Upgrade", "Accept", "Accept-Encoding", "Content-Type", "Content-Length"} {
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
	client  netip.Addr
	api     string
	org     string
	shown   *live.Member              // as operators see it
	conn    atomic.Pointer[live.Conn] // nil until it is served
	late    *lateKey                  // nil: the handshake had the credential
	barred  atomic.Pointer[string]    // why the connection is not allowed any more; nil: it is
}

var (
	methodPost = []byte("POST")
	movedAway  = []byte(`[{"message":"The path of this connection leads to another API now. Connect again."}]`)
)

// An operation is one of a GraphQL connection. It is the source of its own results if they
// are those of a subscription.
type operation struct {
	*subscription
	socket *socket
	op     *live.Operation
	gone   atomic.Bool // its client has left it
	under  *serving    // configuration under which it was admitted
}

// run carries out an operation.
func (s *socket) run(ctx context.Context, op *live.Operation) {
	o := &operation{subscription: s.gateway.newSubscription(op), socket: s, op: op}
	o.begin, o.failed, o.sharing = o.carryOut, o.fail, true
	defer context.AfterFunc(ctx, o.leave)()
	o.exchange.Lock()
	o.carryOut()
}

// leave ends what waits for the upstream. Others may wait for a connection that is being
// established.
func (o *operation) leave() {
	if !o.isOpening() && !o.shared.Load() {
		o.gone.Store(true)
	}
}

// request makes an exchange of the operation. The call is freed behind it.
func (o *operation) request() (*pipeline.Exchange, *wire.Relay) {
	s := o.socket
	call := s.call.Again(&o.gone)
	lines := http1.RemoveLinesFunc(append(call.OwnLines(), s.call.Lines...), isOfHandshake)
	call.UseLines(append(lines, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...))
	call.Method, call.Started = methodPost, time.Now()
	call.SetBody(o.op.Request)
	ex := pipeline.For(&call.Call)
	setID(&ex.ID)
	ex.Client, ex.Live = s.client, &o.live
	return ex, call
}

// carryOut runs the stages and sends what they answer. It gives up exchange when that has
// ended.
func (o *operation) carryOut() {
	shares := false
	defer func() {
		if !shares {
			o.exchange.Unlock()
		}
	}()
	defer o.socket.survive()
	g := o.socket.gateway
	ex, call := o.request()
	o.under = g.current.Load()
	g.join(ex)
	meter := g.unmatched
	switch found := g.find(ex); {
	case found && ex.API.Definition.ID != o.socket.api:
		o.op.Fail(movedAway)
	case found:
		if ex.API.Meter != nil {
			meter = ex.API.Meter
		}
		g.run(ex)
		describe(ex, o.op)
		shares = o.answer(ex)
	default:
		ex.Stopped = routing
		g.reject(ex)
		g.remember(ex)
		o.op.Fail(errorsOf(ex))
	}
	end := func() {
		if ex.Answer.Stream != nil {
			_ = ex.Answer.Stream.Close() // what it could say was said by Read
		}
		g.finish(ex, meter)
		call.Free()
	}
	if !shares {
		end()
		return
	}
	o.keep()
	go func() { // others may follow the events when the client has left
		defer o.exchange.Unlock()
		defer o.socket.survive()
		defer end()
		o.hub.Events(&o.Subscription, readUntil{&o.gone, ex.Answer.Stream}, func() { o.gone.Store(true) })
	}()
}

// answer sends the outcome of the operation. It returns true if the events of the answer
// are to be shared.
func (o *operation) answer(ex *pipeline.Exchange) (shares bool) {
	a := ex.Answer
	if a.Stream != nil {
		ex.Settle()
	}
	events := ex.Rejection == nil && http1.HasPrefix(valueOf(a.Lines, "Content-Type"), "text/event-stream")
	if events && a.Stream != nil && o.opensEvents() {
		return true
	}
	streams, err := o.streams(ex)
	switch {
	case err != nil:
	case streams:
		o.keep()
	case o.live.Again && isAway(ex):
		err = errNotBegun
	case ex.Rejection != nil:
		o.op.Fail(errorsOf(ex))
	case events && a.Stream != nil:
		o.keep()
		err = live.Events(readUntil{&o.gone, a.Stream}, o.To)
	case events:
		o.keep()
		err = live.Events(bytes.NewReader(a.Body), o.To) // all have come at once
	default:
		err = o.socket.result(a, o.op)
	}
	if err != nil {
		o.lost(err)
	}
	return false
}

// isAway reports whether an exchange has failed because of its upstream, which may serve
// later.
func isAway(ex *pipeline.Exchange) bool {
	if ex.Rejection == nil {
		return ex.Upstream.Status >= 500
	}
	switch ex.Rejection.Reason {
	case pipeline.ReasonUpstreamLookup, pipeline.ReasonUpstreamConnect, pipeline.ReasonUpstreamTLS, pipeline.ReasonUpstreamReset,
		pipeline.ReasonUpstreamMalformed, pipeline.ReasonUpstreamTimeout, pipeline.ReasonUpstreamBusy, pipeline.ReasonBreakerOpen:
		return true
	}
	return false
}

// keep has the operation go on as a subscription. The configuration may have changed
// since it was admitted.
func (o *operation) keep() {
	o.op.Keep(o)
	if o.under != o.socket.gateway.current.Load() {
		o.check()
	}
}

// Leave implements live.Source.
func (o *operation) Leave() {
	if !o.shared.Load() {
		o.gone.Store(true)
	}
	o.subscription.Leave()
}

// fail ends an operation whose upstream has failed.
func (o *operation) fail(err error) {
	if !o.gone.Load() {
		o.socket.gateway.log.Warn("an operation of a GraphQL connection has failed", "api", o.socket.api, "err", err)
		o.op.Fail(failure("The upstream has failed."))
	}
}

// check ends a subscription that is not allowed any more.
func (o *operation) check() {
	ex, call := o.request()
	defer call.Free()
	defer ex.Release()
	g := o.socket.gateway
	ex.Live = &pipeline.Live{Again: true}
	if !g.find(ex) || ex.API.Definition.ID != o.socket.api {
		return // the connection ends
	}
	verdict := pipeline.RunOnly(ex.API.Entry, ex, pipeline.OfOperations)
	if verdict == pipeline.Next {
		verdict = pipeline.RunOnly(requestStages(ex), ex, pipeline.OfOperations)
	}
	if verdict == pipeline.Rejected && ex.Rejection.Reason != pipeline.ReasonKeyStoreUnavailable {
		g.reject(ex)
		g.remember(ex)
		o.op.Fail(errorsOf(ex))
	}
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
