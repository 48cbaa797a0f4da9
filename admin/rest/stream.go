package rest

import (
	"io"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// streamKey is where the context of a request keeps the events of its answer.
type streamKey struct{}

// A stream keeps events from fasthttp, which closes what it finds in a context.
type stream struct{ events io.ReadCloser }

// Stream answers with a text/event-stream (WHATWG HTML, section 9.2). The events are read
// after the handler has returned, for as long as they come.
// They are closed at the end, and when the client has left. The answer is not stored for
// repetitions of the call.
func (c *Call) Stream(events io.ReadCloser) {
	route := *c.Route
	route.Secret = true
	c.Route = &route
	SetStream(c.HTTP, events)
}

// SetStream is Call.Stream for what is no call of a route.
func SetStream(ctx *fasthttp.RequestCtx, events io.ReadCloser) {
	h := &ctx.Response.Header
	h.SetContentType("text/event-stream")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies that know it pass events on at once
	ctx.SetUserValue(streamKey{}, &stream{events})
}

// TakeStream returns the events with which a request was answered in this process, nil
// without any. The caller closes them.
func TakeStream(ctx *fasthttp.RequestCtx) io.ReadCloser {
	s, ok := ctx.UserValue(streamKey{}).(*stream)
	if !ok {
		return nil
	}
	ctx.RemoveUserValue(streamKey{})
	return s.events
}

// SendStream has the server send the events of an answer, if it has any.
func SendStream(ctx *fasthttp.RequestCtx) {
	if events := TakeStream(ctx); events != nil {
		ctx.Response.SetBodyStream(&unhurried{events, ctx.Conn()}, -1)
	}
}

// eventWithin is how long a client may take to receive one event.
const eventWithin = 30 * time.Second

// unhurried are events that are written one by one: the time for an answer is that for
// each of them.
type unhurried struct {
	io.ReadCloser
	conn net.Conn
}

// Read implements io.Reader.
func (u *unhurried) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if n > 0 {
		if err := u.conn.SetWriteDeadline(time.Now().Add(eventWithin)); err != nil {
			return 0, err
		}
	}
	return n, err
}
