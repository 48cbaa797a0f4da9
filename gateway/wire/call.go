package wire

import (
	"bytes"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
)

// maxKept bounds what a pooled call keeps of its buffers, in bytes, and
// maxRoom what it keeps beside them for bodies of answers.
const (
	maxKept = 32 << 10
	maxRoom = 64 << 10
)

// reset forgets everything about the last request but the buffers.
func (call *Call) reset() {
	if !call.used {
		return
	}
	call.used = false
	if call.ctx != nil {
		call.putCtx()
	}
	a := &call.Answer
	lines, phrase, room := a.Lines[:0], a.Phrase[:0], a.Room[:0]
	if cap(lines)+cap(phrase) > maxKept {
		lines, phrase = nil, nil
	}
	if cap(room) > maxRoom {
		room = nil
	}
	*a = Answer{Lines: lines, Phrase: phrase, Room: room}
	call.forget()
}

// forget forgets what was read of a request.
func (call *Call) forget() {
	call.Method, call.Host, call.Path, call.Query, call.target, call.Lines = nil, nil, nil, nil, nil, nil
	call.Fields, call.names, call.Length, call.HTTP10 = call.Fields[:0], 0, 0, false
	call.Body, call.Stream, call.ended = nil, nil, time.Time{}
}

// IsHead tells whether the method is HEAD: no body follows the head of the
// answer.
func (call *Call) IsHead() bool { return string(call.Method) == fasthttp.MethodHead }

// HasBody tells whether the request has a body, or may have one that is still
// to come.
func (call *Call) HasBody() bool { return call.Stream != nil || len(call.Body) > 0 }

// SetBody makes b, which must live as long as the call, stand for the body of
// the request, for whoever looks at that from now on.
func (call *Call) SetBody(b []byte) {
	call.Body, call.Stream, call.Length = b, nil, int64(len(b))
	if call.ctx != nil {
		call.ctx.Request.SetBodyRaw(b)
	}
}

// LimitBody makes reading a body fail with ErrBodyOverLimit when it turns out to
// have more than most bytes, which is above 0. A body whose length is announced is
// held against that by whoever calls this. Of several limits the least holds.
func (call *Call) LimitBody(most int64) {
	switch stream := call.Stream.(type) {
	case *body:
		if stream.most == 0 || most < stream.most {
			stream.most = most
		}
	case *imagined:
		if most <= stream.left {
			stream.left, stream.limited = most, true
		}
	}
}

// A Sender is the client that sends the body of a call. It is good until that is
// answered, also when it was asked for of a Relay, which may be gone by then.
type Sender struct{ conn *conn }

// Sender returns the client that sends the call's body.
func (call *Call) Sender() Sender { return Sender{call.conn} }

// Interrupt makes a read of Stream that waits, or the next one that would, fail
// at once. It may be called while another goroutine reads.
func (s Sender) Interrupt() {
	if s.conn != nil {
		s.conn.sock.interrupt()
	}
}

// Gone tells whether the client is known to have ended the connection. Of one
// that has sent more behind its request that is not known, nor everywhere with
// TLS. It is for the goroutine that handles the call.
func (call *Call) Gone() bool { return call.conn != nil && call.conn.sock.ended() }

// Keep returns a copy of the request's head, which whoever wants to look at it
// again may keep: it is of no connection, and without a body.
func (call *Call) Keep() *Call {
	return &Call{
		Method: bytes.Clone(call.Method), Host: bytes.Clone(call.Host), Path: bytes.Clone(call.Path), Query: bytes.Clone(call.Query),
		Lines: bytes.Clone(call.Lines), Fields: slices.Clone(call.Fields), names: call.names, target: bytes.Clone(call.target),
		Peer: call.Peer, TLS: call.TLS, Cert: call.Cert, HTTP10: call.HTTP10, Started: call.Started,
	}
}

// End returns when the call ended, which is when it is first asked: whoever
// needs that time gets the same one.
func (call *Call) End() time.Time {
	if call.ended.IsZero() {
		call.ended = time.Now()
	}
	return call.ended
}

// Ctx returns the request in fasthttp's form, with a response that is sent when
// Answer is left unused. It is made at the first call, which costs as much as
// the rest of reading a request.
func (call *Call) Ctx() *fasthttp.RequestCtx {
	if call.ctx != nil {
		return call.ctx
	}
	if call.conn != nil {
		call.ctx = call.conn.fasthttpCtx()
	} else {
		call.ctx = new(fasthttp.RequestCtx)
		call.ctx.Init(new(fasthttp.Request), nil, nil)
	}
	call.ctx.Response.Header.SetNoDefaultContentType(true)
	call.fill(&call.ctx.Request)
	return call.ctx
}

// fill copies the request. It goes line by line rather than through fasthttp's
// parser, which refuses some of what was accepted here.
func (call *Call) fill(req *fasthttp.Request) {
	h := &req.Header
	h.SetMethodBytes(call.Method)
	h.SetRequestURIBytes(call.target)
	h.SetProtocol("HTTP/1.1")
	if call.HTTP10 {
		h.SetProtocol("HTTP/1.0")
	}
	for i := range call.Fields {
		f := &call.Fields[i]
		switch f.Name {
		case NameContentLength, NameTransferEncoding, NameTrailer: // said by the body
		default:
			h.AddBytesKV(call.NameOf(f), call.ValueOf(f))
		}
	}
	switch {
	case call.Stream != nil:
		req.SetBodyStream(call.Stream, int(call.Length))
	case len(call.Body) > 0:
		req.SetBodyRaw(call.Body)
		h.SetContentLength(len(call.Body))
	}
}

// putCtx returns the fasthttp form to its pool.
func (call *Call) putCtx() {
	ctx := call.ctx
	call.ctx = nil
	if call.conn == nil {
		return
	}
	ctx.Request.Reset()
	ctx.Response.Reset()
	ctx.ResetUserValues()
	call.conn.srv.contexts.Put(ctx)
}

// NewCall returns the call that a whole request makes which came over no
// connection, or what is wrong with it. The call aliases request.
func NewCall(request []byte, conf Config) (*Call, *Fault) {
	call := &Call{Started: time.Now()}
	size := headEnd(request)
	if size == 0 || size > conf.MaxHeader {
		return nil, faultHead
	}
	var h head
	if fault := h.parse(request[:size], call, &conf); fault != nil {
		return nil, fault
	}
	switch body := request[size:]; {
	case h.length < 0:
		return nil, faultCoding // a body in chunks is not at hand as a whole
	case int64(len(body)) != h.length:
		return nil, faultLength
	default:
		call.Body = body
	}
	return call, nil
}
