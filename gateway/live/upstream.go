package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/eventstream"
	"github.com/sluicegate/sluice/internal/jsonscan"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// Bounds of what an upstream may do.
const (
	maxEvent    = 1 << 20          // bytes of a message or event
	maxUnread   = 4 << 20          // bytes that it has not taken yet
	ackWithin   = 30 * time.Second // from connection_init to connection_ack
	pingEvery   = 30 * time.Second // an upstream that is silent for two and a half is gone
	writeWithin = 10 * time.Second
)

// Upstreams that break the protocol.
var (
	errNotUnderstood = errors.New("the upstream has sent a message that is not understood")
	errLongEvent     = errors.New("the upstream has sent an event that is too large")
)

// Refused reports whether an upstream has ended a connection because it does not accept its
// credentials: with 4401 or 4403. It would do so again.
func Refused(err error) bool {
	closed, ok := errors.AsType[*websocket.CloseError](err)
	return ok && (closed.Code == CloseUnauthorized || closed.Code == CloseForbidden)
}

// upstream is the protocol on a connection to an upstream.
type upstream struct {
	ws       *websocket.Conn
	out      *wsconn.Outbox
	protocol Protocol
	text     []byte     // the message that was read last
	writing  sync.Mutex // of messages
}

// serve runs the connection until it ends, and returns why.
func (t *trunk) serve(conn net.Conn, p Protocol) error {
	out := wsconn.New(conn, writeWithin)
	ws, err := wsconn.UpstreamFrames(out)
	if err != nil {
		_ = conn.Close()
		return err
	}
	defer func() { _ = ws.Close() }() // it is over
	ws.SetReadLimit(maxEvent)
	u := &upstream{ws: ws, out: out, protocol: p}
	if err := u.open(); err != nil {
		return err
	}
	ws.SetPongHandler(func(string) error { return u.heard() })
	defer u.keepAlive()()
	if !t.acknowledged(u) {
		return errUnused
	}
	for {
		if err := u.heard(); err != nil {
			return err
		}
		got, err := u.read()
		if err != nil {
			return err
		}
		if err := t.deliver(u, &got); err != nil {
			return err
		}
	}
}

// acknowledged begins the subscriptions that wait for the connection. It returns false if it
// was given up.
func (t *trunk) acknowledged(u *upstream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.up = u
	for _, f := range t.feeds {
		u.start(f)
	}
	if len(t.feeds) == 0 {
		t.idle = time.AfterFunc(idleTrunk, t.endIdle)
	}
	return true
}

// deliver passes on what the upstream has sent.
func (t *trunk) deliver(u *upstream, got *message) error {
	kind := string(got.kind)
	next := kind == "next" && u.protocol == TransportWS || kind == "data" && u.protocol == Legacy
	if !next && kind != typeError && kind != typeComplete {
		return u.alive(got)
	}
	if next && (len(got.payload) == 0 || got.payload[0] != '{') {
		return errNotUnderstood
	}
	members, ok := t.of(got.id, !next)
	if !ok {
		return errNotUnderstood
	}
	var list []byte
	if kind == typeError {
		list = listOf(got.payload)
	}
	for _, s := range members {
		switch {
		case next:
			s.To.Next(got.payload)
		case list != nil:
			s.To.Fail(list)
		default:
			s.To.Complete()
		}
	}
	return nil
}

// open has the connection acknowledged.
func (u *upstream) open() error {
	if err := u.send(appendMessage(nil, typeInit, nil, []byte("{}"))); err != nil {
		return err
	}
	if err := u.ws.SetReadDeadline(time.Now().Add(ackWithin)); err != nil {
		return err
	}
	for {
		got, err := u.read()
		if err != nil {
			return fmt.Errorf("waiting for the upstream's connection_ack: %w", err)
		}
		switch string(got.kind) {
		case typeAck:
			return nil
		case "connection_error":
			return errors.New("the upstream refuses the connection")
		}
		if err := u.alive(&got); err != nil {
			return err
		}
	}
}

// heard puts off the end of a connection whose upstream is silent.
func (u *upstream) heard() error {
	return u.ws.SetReadDeadline(time.Now().Add(5 * pingEvery / 2))
}

// keepAlive sends pings until the returned function is called.
func (u *upstream) keepAlive() (stop func()) {
	var timer *time.Timer
	var mu sync.Mutex
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(pingEvery, func() {
		mu.Lock()
		defer mu.Unlock()
		if u.ws.WriteControl(websocket.PingMessage, nil, time.Time{}) == nil {
			timer.Reset(pingEvery)
		}
	})
	return func() { timer.Stop() }
}

// start begins a subscription.
func (u *upstream) start(f *feed) {
	kind := "subscribe"
	if u.protocol == Legacy {
		kind = "start"
	}
	_ = u.send(appendMessage(nil, kind, []byte(f.id), f.body)) // a lost connection shows when it is read
	f.body = nil
}

// stop ends a subscription.
func (u *upstream) stop(f *feed) {
	kind := typeComplete
	if u.protocol == Legacy {
		kind = "stop"
	}
	_ = u.send(appendMessage(nil, kind, []byte(f.id), nil)) // see start
}

// alive answers messages that keep a connection alive. Others are not understood.
func (u *upstream) alive(got *message) error {
	switch string(got.kind) {
	case "ping":
		return u.send(appendMessage(nil, "pong", nil, got.payload))
	case "pong", "ka":
		return nil
	}
	return errNotUnderstood
}

// read returns the next message, which is valid until it is called again.
func (u *upstream) read() (message, error) {
	kind, from, err := u.ws.NextReader()
	if err != nil {
		return message{}, err
	}
	if u.text, err = appendAll(u.text[:0], from); err != nil {
		return message{}, err
	}
	got, ok := read(u.text)
	if kind != websocket.TextMessage || !ok {
		return message{}, errNotUnderstood
	}
	if cap(u.text) > maxPooled {
		u.text = nil
	}
	return got, nil
}

// appendAll appends what a reader has.
func appendAll(b []byte, from io.Reader) ([]byte, error) {
	for {
		b = slices.Grow(b, 512)
		n, err := from.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// send sends a message. It may be called by any goroutine.
func (u *upstream) send(message []byte) error {
	u.writing.Lock()
	defer u.writing.Unlock()
	if u.out.Waiting()+len(message) > maxUnread {
		_ = u.out.Close() // ends read
		return errors.New("the upstream does not read")
	}
	return u.ws.WriteMessage(websocket.TextMessage, message)
}

// leave ends the connection, which makes a read fail.
func (u *upstream) leave() {
	_ = u.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Time{}) // it may be lost
	u.out.Last(closeWithin)
}

// listOf returns the errors of an upstream as a list: the older protocol sends one.
func listOf(payload []byte) []byte {
	s := jsonscan.New(payload, jsonscan.MaxDepth)
	switch s.Kind() {
	case jsonscan.Array:
		return payload
	case jsonscan.Object:
		return append(append([]byte{'['}, payload...), ']')
	}
	return []byte(`[{"message":"The upstream has refused the subscription."}]`)
}

// Accepts reports whether the value of Sec-WebSocket-Accept answers a key.
func Accepts(key, value []byte) bool { return bytes.Equal(wsconn.AppendAccept(nil, key), value) }

// IsResult reports whether a text can be the result of an operation: a JSON object.
func IsResult(text []byte) bool {
	s := jsonscan.New(text, jsonscan.MaxDepth)
	return s.Value().Kind == jsonscan.Object && s.End()
}

// Events passes the events of a text/event-stream on until it ends (WHATWG HTML, section
// 9.2). If it returns an error, the end has not been passed on.
func Events(from io.Reader, to Sink) error {
	s := eventstream.NewReader(from, maxEvent)
	for {
		e, err := s.Next()
		switch {
		case errors.Is(err, io.EOF):
			to.Complete() // the stream was not cut off
			return nil
		case errors.Is(err, eventstream.ErrTooLarge):
			return errLongEvent
		case err != nil:
			return err
		case !e.HasData && e.Name != typeComplete:
			continue
		}
		switch e.Name {
		case "", "next", "message":
			if !IsResult(e.Data) {
				return errNotUnderstood
			}
			to.Next(e.Data)
		case typeComplete:
			to.Complete()
			return nil
		}
	}
}
