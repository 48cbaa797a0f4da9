package endpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/gateway/match"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/http1"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// Close codes (RFC 6455 section 7.4).
const (
	closePolicy   = 1008
	closeRestart  = 1012
	closeTryLater = 1013
)

// Bounds of WebSocket clients.
const (
	closeWithin = time.Second // to answer a close frame
	maxIdleRate = 100         // frames in a second of a client that only listens
	maxIdleRead = 64 << 10    // bytes of such a frame
	maxReplies  = 256 << 10   // bytes of pongs and acknowledgements that wait for a client
	maxDrained  = 2 << 20     // bytes that are read on behind a close frame
)

// socketConf says how WebSocket clients are served.
type socketConf struct {
	path         string
	heartbeat    time.Duration
	writeTimeout time.Duration
	ack          bool
	origins      match.Origins
	protocols    []string
}

func socketConfOf(c *streams.WebSocket) socketConf {
	return socketConf{
		path: c.Path, heartbeat: c.Heartbeat, writeTimeout: writeTimeout, ack: c.Ack,
		origins: match.CompileOrigins(c.AllowedOrigins), protocols: c.Subprotocols,
	}
}

// sockets answers the handshakes of a route.
type sockets struct {
	conf  *socketConf
	site  *stream.Site
	in    *Input  // nil: what clients send is dropped
	out   *Output // nil: clients get no messages
	known *known
}

var (
	noHandshake   = pipeline.NewRejection(pipeline.ReasonBadRequest, 400, "The request is not a WebSocket handshake: it needs GET, Connection: Upgrade, Sec-WebSocket-Version: 13 and Sec-WebSocket-Key, and no body")
	foreignOrigin = pipeline.NewRejection(pipeline.ReasonAccessDenied, 403, "Pages of this origin may not open connections to this path")
)

// serve answers a handshake (RFC 6455 section 4.2).
func (c *sockets) serve(ex *pipeline.Exchange, path []stream.Meta) pipeline.Verdict {
	call := ex.Call
	switch {
	case call.HTTP10 || call.HasBody() || !http1.Lists(call.Get(wire.NameConnection), upgrade),
		string(call.Header("Sec-WebSocket-Version")) != "13" || !wsconn.IsKey(call.Header("Sec-WebSocket-Key")):
		return ex.Reject(noHandshake)
	case !c.admits(ex):
		return ex.Reject(foreignOrigin)
	case c.in != nil && (c.in.isStopping() || c.in.flow.Load() == nil):
		return again(ex, draining)
	}
	s := &socket{sockets: c}
	if c.out != nil {
		m, refused := c.out.join(s, 0)
		if refused != nil {
			return again(ex, refused)
		}
		s.member = m
	}
	if c.in != nil {
		s.meta = c.in.known.metaOf(ex, path)
	}
	a := ex.Answer
	a.Status, a.NoBody, a.Length = 101, true, -1
	a.Lines = append(a.Lines, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "...)
	a.Lines = append(wsconn.AppendAccept(a.Lines, call.Header("Sec-WebSocket-Key")), "\r\n"...)
	if p := c.protocol(call.Header("Sec-WebSocket-Protocol")); p != "" {
		a.Append("Sec-WebSocket-Protocol", []byte(p))
	}
	ex.Cut = func(why error) { s.close(closePolicy, why.Error()) }
	a.Takeover = s.serve
	return pipeline.Answered
}

// admits reports whether the page that asks may open a connection. Other programs send no
// origin.
func (c *sockets) admits(ex *pipeline.Exchange) bool {
	origin := ex.Call.Get(wire.NameOrigin)
	if len(origin) == 0 || c.conf.origins.Has(origin) || isSameHost(origin, ex.Call.Host) {
		return true
	}
	pages := c.known.of(ex.API.Definition).origins
	return pages != nil && pages.Has(origin)
}

// protocol returns the first of the offered subprotocols that is known, "" for none.
func (c *sockets) protocol(offered []byte) string {
	for len(offered) > 0 {
		var one []byte
		one, offered = http1.CutElement(offered)
		for _, known := range c.conf.protocols {
			if string(http1.Trim(one)) == known {
				return known
			}
		}
	}
	return ""
}

// A socket is a WebSocket client.
type socket struct {
	*sockets
	member *member       // of the output; nil: it gets no messages
	meta   []stream.Meta // of its messages
	conn   atomic.Pointer[wsconn.Outbox]

	mu      sync.Mutex
	closing bool // a close frame was sent, or is to be
	code    int  // of that
	reason  string
	ended   chan struct{} // closed when the connection has ended, or is to

	taken  uint64 // messages of the client
	frames int    // of a client that only listens, since
	since  time.Time
}

// serve serves the connection until it ends.
func (s *socket) serve(conn net.Conn, received []byte) {
	if s.member != nil {
		defer s.out.leave(s.member)
	}
	if conn == nil {
		return
	}
	out := wsconn.New(conn, s.conf.writeTimeout)
	ws, err := wsconn.Frames(out, received)
	if err != nil {
		s.site.Log.Error("a WebSocket connection cannot be served", "err", err)
		return
	}
	s.begin(out)
	if s.in != nil {
		defer s.in.forget(s)
		s.in.keep(s)
	}
	if s.member != nil {
		s.out.begin(s.member)
	}
	remove := s.pings().add(s)
	s.read(ws, out)
	remove()
	if s.member != nil {
		s.out.leave(s.member)
	}
	s.finish(out)
}

func (s *socket) pings() *wheel {
	if s.out != nil {
		return &s.out.pings
	}
	return &s.in.wheel
}

// begin has the client served, or ended if it was cut before.
func (s *socket) begin(out *wsconn.Outbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = make(chan struct{})
	s.conn.Store(out)
	if s.closing {
		s.sendClose(out)
	}
}

// finish ends the connection once the client has what was written last.
func (s *socket) finish(out *wsconn.Outbox) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	s.over()
	if closing { // a connection that is closed with unread bytes is reset, and a reset overtakes
		out.Flushed()
		_, _ = io.CopyN(io.Discard, out.Conn, maxDrained) // until Outbox.Last, or the client's end
	}
	out.Abandon()
	out.Flushed()
	if out.Slow() {
		s.site.State.Dropped.Add(1)
	}
}

// close ends the connection with a close frame behind what was sent. It does not wait.
func (s *socket) close(code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return
	}
	s.closing, s.code, s.reason = true, code, reason[:min(len(reason), 123)]
	if out := s.conn.Load(); out != nil {
		s.sendClose(out)
	}
}

// sendClose needs mu.
func (s *socket) sendClose(out *wsconn.Outbox) {
	close(s.ended)
	payload := append(binary.BigEndian.AppendUint16(nil, uint16(s.code)), s.reason...)
	_, _ = out.Write(appendFrame(nil, websocket.CloseMessage, payload)) // a lost connection shows when it is read
	out.Last(closeWithin)
}

// isClosing reports whether the connection is about to end.
func (s *socket) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// appendFrame appends a frame of a server (RFC 6455 section 5.2).
func appendFrame(b []byte, opcode byte, payload []byte) []byte {
	b = append(b, 0x80|opcode)
	switch n := len(payload); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, payload...)
}

// read handles what the client sends until the connection ends.
func (s *socket) read(ws *websocket.Conn, out *wsconn.Outbox) {
	ws.SetReadLimit(maxIdleRead)
	if s.in != nil {
		ws.SetReadLimit(int64(s.site.MaxMessageBytes))
	}
	heard := func(string) error { return s.heard(out) }
	ws.SetPongHandler(heard)
	ws.SetPingHandler(func(data string) error {
		if !s.answer(out, websocket.PongMessage, []byte(data)) || s.floods() {
			return errGone
		}
		return s.heard(out)
	})
	ws.SetCloseHandler(func(int, string) error { return nil }) // answered below
	for s.heard(out) == nil {
		kind, from, err := ws.NextReader()
		if err == nil {
			err = s.message(kind, from)
		}
		if err != nil {
			s.lost(err, out)
			return
		}
	}
}

// heard puts off the end of a connection whose client is silent.
func (s *socket) heard(out *wsconn.Outbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil // the time to answer the close frame runs
	}
	return out.SetReadDeadline(time.Now().Add(5 * s.conf.heartbeat / 2))
}

// lost answers the end of the connection: the close frame of a client, or what is wrong with
// its frames, to which the library has replied.
func (s *socket) lost(err error, out *wsconn.Outbox) {
	closed, ok := errors.AsType[*websocket.CloseError](err)
	switch {
	case ok && closed.Code == websocket.CloseNoStatusReceived:
		s.close(websocket.CloseNormalClosure, "")
	case ok && closed.Code != websocket.CloseAbnormalClosure:
		s.close(closed.Code, "")
	case !ok && strings.HasPrefix(err.Error(), "websocket: "):
		s.over()
		out.Last(closeWithin)
	}
}

// answer sends a control frame or an acknowledgement. It returns false if the client has left
// too much of that unread.
func (s *socket) answer(out *wsconn.Outbox, opcode byte, payload []byte) bool {
	if out.Waiting() > maxReplies && s.member == nil {
		s.close(closePolicy, "acknowledgements are not read")
		return false
	}
	_, _ = out.Write(appendFrame(nil, opcode, payload)) // see sendClose
	return true
}

// floods counts a frame of a client that only listens, and ends the connection when there
// are too many.
func (s *socket) floods() bool {
	now := time.Now()
	if now.Sub(s.since) >= time.Second {
		s.since, s.frames = now, 0
	}
	if s.frames++; s.frames <= maxIdleRate {
		return false
	}
	s.close(closePolicy, "too many frames")
	return true
}

// message handles a message of the client.
func (s *socket) message(kind int, from io.Reader) error {
	switch {
	case s.isClosing():
		_, err := io.Copy(io.Discard, from)
		return err
	case s.in == nil:
		s.floods()
		_, err := io.Copy(io.Discard, from)
		return err
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	if kind == websocket.TextMessage && !utf8.Valid(body) {
		s.close(websocket.CloseInvalidFramePayloadData, "a text message is not UTF-8")
		return nil
	}
	s.taken++
	s.in.emit(s, body, s.taken)
	return nil
}

// beat sends a ping.
func (s *socket) beat() {
	out := s.conn.Load()
	if out.Waiting() > 0 {
		return
	}
	if _, err := out.Write(appendFrame(nil, websocket.PingMessage, nil)); err != nil {
		s.over()
		out.Abandon()
	}
}

// over has a message that waits to be taken given up: while it does, nothing is read.
func (s *socket) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.closing = true
		close(s.ended)
	}
}

// send implements client.
func (s *socket) send(it item) {
	out := s.conn.Load()
	opcode := byte(websocket.BinaryMessage)
	if utf8.Valid(it.m.Body) {
		opcode = websocket.TextMessage
	}
	s.out.framed(func(buf []byte) []byte {
		frame := appendFrame(buf, opcode, it.m.Body)
		if s.isClosing() { // nothing may follow the close frame
			s.out.leave(s.member)
			s.out.done(s.member, it, errGone)
			return frame
		}
		out.Send(frame, func(err error) {
			if err != nil {
				s.out.leave(s.member)
				out.Abandon()
			}
			s.out.done(s.member, it, err)
		})
		return frame
	})
}

// end implements client.
func (s *socket) end() { s.close(closeRestart, "the stream has changed, connect again") }

// abandon implements client.
func (s *socket) abandon() {
	if out := s.conn.Load(); out != nil {
		out.Abandon()
	}
}

// keep adds a client that sends messages.
func (in *Input) keep(s *socket) {
	in.mu.Lock()
	in.sockets[s] = struct{}{}
	in.mu.Unlock()
	if in.joined == nil {
		in.site.State.Clients.Add(1)
	}
	if in.isStopping() {
		s.close(closeRestart, "the stream has changed, connect again")
	}
}

func (in *Input) forget(s *socket) {
	in.mu.Lock()
	delete(in.sockets, s)
	in.mu.Unlock()
	if in.joined == nil {
		in.site.State.Clients.Add(-1)
	}
}

// emit passes a client's message on. It waits for as long as the stream does not take it:
// meanwhile nothing is read.
func (in *Input) emit(s *socket, body []byte, n uint64) {
	m := &stream.Message{ID: stream.NewID(), Body: body, Meta: s.meta, At: time.Now(), Attempt: 1}
	if !in.pace(s) {
		return
	}
	settle := func(err error) { in.settled(s, n, err) }
	for {
		select {
		case <-in.opening():
		case <-s.ended:
			return
		case <-in.stopped:
			in.settled(s, n, stream.ErrClosed)
			return
		}
		if in.take(m, settle) {
			return
		}
		select {
		case <-in.opening(): // it has demand, but no room
			if !s.pause(offerPause) {
				return
			}
		default:
		}
	}
}

// pace waits as the rate limit has it. It returns false if the connection ends meanwhile.
func (in *Input) pace(s *socket) bool {
	for in.rate != nil {
		wait := in.rate.wait(time.Now())
		if wait <= 0 {
			break
		}
		if !s.pause(wait) {
			return false
		}
	}
	return true
}

// pause waits. It returns false if the connection ends meanwhile.
func (s *socket) pause(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ended:
		return false
	}
}

// settled tells a client what became of its message. Without acknowledgements, only the end
// of the connection can.
func (in *Input) settled(s *socket, n uint64, err error) {
	number := strconv.FormatUint(n, 10)
	switch {
	case err == nil && s.conf.ack:
		s.acknowledge(`{"ack":` + number + `}`)
	case err == nil:
	case s.conf.ack:
		s.acknowledge(`{"nack":` + number + `,"error":` + strconv.Quote(failureText(err)) + `}`)
	case stream.ClassOf(err) == stream.Refused:
		s.close(closePolicy, failureText(err))
	default:
		s.close(closeTryLater, failureText(err))
	}
}

// failureText says what became of a message, without what only operators may know.
func failureText(err error) string {
	switch stream.ClassOf(err) {
	case stream.Refused:
		return refusalText(byOf(err))
	case stream.Permanent:
		return failed.Message
	case stream.Unknown:
		return unsettled.Message
	}
	return notPassed.Message
}

func (s *socket) acknowledge(text string) {
	if out := s.conn.Load(); !s.isClosing() {
		s.answer(out, websocket.TextMessage, []byte(text))
	}
}

// isSameHost reports whether an origin is of a host that a request was sent to.
func isSameHost(origin, host []byte) bool {
	_, own, ok := bytes.Cut(origin, []byte("://"))
	return ok && bytes.EqualFold(own, host)
}
