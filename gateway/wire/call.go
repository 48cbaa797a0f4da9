package wire

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// maxKept bounds what a pooled call keeps of its buffers, in bytes, and
// maxSpare what it keeps beside them for bodies of answers.
const (
	maxKept  = 32 << 10
	maxSpare = 64 << 10
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
	lines, phrase, spare := a.Lines[:0], a.Phrase[:0], a.Spare[:0]
	if cap(lines)+cap(phrase) > maxKept {
		lines, phrase = nil, nil
	}
	if cap(spare) > maxSpare {
		spare = nil
	}
	*a = Answer{Lines: lines, Phrase: phrase, Spare: spare}
	call.forget()
}

// forget forgets what was read of a request.
func (call *Call) forget() {
	call.Method, call.Host, call.Path, call.Query, call.target, call.Lines = nil, nil, nil, nil, nil, nil
	call.Fields, call.names, call.Length, call.HTTP10 = call.Fields[:0], 0, 0, false
	call.Body, call.Stream, call.ended = nil, nil, time.Time{}
}

// IsHead reports whether the method is HEAD: no body follows the head of the
// answer.
func (call *Call) IsHead() bool { return string(call.Method) == fasthttp.MethodHead }

// HasBody reports whether the request has a body, or may have one that is still
// to come.
func (call *Call) HasBody() bool { return call.Stream != nil || len(call.Body) > 0 }

// SetBody replaces the body of the request by b, which must live as long as the
// call.
func (call *Call) SetBody(b []byte) {
	call.Body, call.Stream, call.Length = b, nil, int64(len(b))
	if call.ctx != nil {
		call.ctx.Request.SetBodyRaw(b)
	}
}

// LimitBody makes reading a body fail with ErrBodyOverLimit when it turns out to
// have more than most bytes, which is above 0. The caller
// compares a Content-Length with the limit. The smallest of several limits applies.
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

// maxReadFirst is the largest limit under which a chunked body is read before
// anything is sent upstream, in bytes.
const maxReadFirst = 64 << 10

// ReadLimited reads a chunked body as a whole if it may have at most 64 KiB, so that
// an upstream gets no part of one that turns out to be too large. Other bodies stay
// as they are. It returns an error of reading the body.
func (call *Call) ReadLimited() error {
	b, ok := call.Stream.(*body)
	if !ok || !b.chunked || b.c == nil || b.limit() > maxReadFirst {
		return nil
	}
	whole, err := io.ReadAll(b)
	if err == nil {
		call.SetBody(whole)
	}
	return err
}

// A Client is the connection that a call came over. It is valid until the call is
// answered, also if it is that of a Relay which has been freed.
type Client struct {
	conn *conn
	left *atomic.Bool
}

// Client returns the connection that the call came over.
func (call *Call) Client() Client { return Client{call.conn, call.left} }

// Interrupt makes a read of Stream that waits, or the next one that would, fail
// at once. It may be called while another goroutine reads.
func (c Client) Interrupt() {
	if c.conn != nil {
		c.conn.sock.halt()
	}
}

// Gone reports whether the client is known to have closed its connection, or its
// sending side, whatever it sent before that. No further request is served then.
// Only the goroutine that handles the call may use it.
func (c Client) Gone() bool {
	if c.conn == nil {
		return c.left != nil && c.left.Load()
	}
	if !c.conn.sock.ended() {
		return false
	}
	c.conn.gone = true
	return true
}

// Gone is Client.Gone of the call's client.
func (call *Call) Gone() bool { return call.Client().Gone() }

// Keep returns a copy of the request's head that outlives the call, for Again. It has
// neither a connection nor a body.
func (call *Call) Keep() *Call {
	return &Call{
		Method: bytes.Clone(call.Method), Host: bytes.Clone(call.Host), Path: bytes.Clone(call.Path), Query: bytes.Clone(call.Query),
		Lines: bytes.Clone(call.Lines), target: bytes.Clone(call.target),
		Peer: call.Peer, TLS: call.TLS, Cert: call.Cert, HTTP10: call.HTTP10, Started: call.Started,
	}
}

// End returns when the call ended: the time of the first use of End. Later uses
// return the same time.
func (call *Call) End() time.Time {
	if call.ended.IsZero() {
		call.ended = time.Now()
	}
	return call.ended
}

// EndAt makes End return at, for an answer that is passed on until then.
func (call *Call) EndAt(at time.Time) { call.ended = at }

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
