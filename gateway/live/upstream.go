package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/jsonscan"
)

// Bounds of a subscription at an upstream.
const (
	maxEvent    = 1 << 20          // bytes of a message or event of an upstream
	ackWithin   = 30 * time.Second // from connection_init to connection_ack
	writeWithin = 10 * time.Second
)

// A Sink takes the results of a subscription. Operation is one.
type Sink interface {
	Next(result []byte)
	Fail(errors []byte)
	Complete()
}

// errNotUnderstood is an upstream that breaks the protocol.
var errNotUnderstood = errors.New("the upstream has sent a message that is not understood")

// Follow runs a subscription on a connection of its own, whose handshake is done, until
// it or ctx ends, and closes the connection. If it returns an error, the end has not been
// passed on.
func Follow(ctx context.Context, conn net.Conn, p Protocol, request []byte, to Sink) error {
	ws, err := upstreamFrames(conn)
	if err != nil {
		_ = conn.Close()
		return err
	}
	defer func() { _ = ws.Close() }() // it is over
	ws.SetReadLimit(maxEvent)
	u := &upstream{ws: ws, protocol: p, to: to}
	stop := context.AfterFunc(ctx, u.leave)
	defer stop()
	if err = u.begin(request); err == nil {
		err = u.follow()
	}
	if ctx.Err() != nil {
		return nil // the client has ended it
	}
	return err
}

// upstream is one subscription at an upstream.
type upstream struct {
	ws       *websocket.Conn
	protocol Protocol
	to       Sink
}

// The only operation of the connection has this id.
var onlyID = []byte("1")

// begin starts the subscription once the upstream has acknowledged the connection.
func (u *upstream) begin(request []byte) error {
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
			if err := u.ws.SetReadDeadline(time.Time{}); err != nil {
				return err
			}
			kind := "subscribe"
			if u.protocol == Legacy {
				kind = "start"
			}
			return u.send(appendMessage(nil, kind, onlyID, request))
		case "connection_error":
			return errors.New("the upstream refuses the connection")
		}
		if err := u.alive(&got); err != nil {
			return err
		}
	}
}

// follow passes results on until the upstream ends the subscription.
func (u *upstream) follow() error {
	for {
		got, err := u.read()
		if err != nil {
			return err
		}
		switch kind := string(got.kind); {
		case kind == "next" && u.protocol == TransportWS, kind == "data" && u.protocol == Legacy:
			if !bytes.Equal(got.id, onlyID) || len(got.payload) == 0 || got.payload[0] != '{' {
				return errNotUnderstood
			}
			u.to.Next(got.payload)
		case kind == typeError:
			u.to.Fail(listOf(got.payload))
			return nil
		case kind == typeComplete:
			u.to.Complete()
			return nil
		default:
			if err := u.alive(&got); err != nil {
				return err
			}
		}
	}
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

func (u *upstream) read() (message, error) {
	kind, text, err := u.ws.ReadMessage()
	if err != nil {
		return message{}, err
	}
	got, ok := read(text)
	if kind != websocket.TextMessage || !ok {
		return message{}, errNotUnderstood
	}
	return got, nil
}

func (u *upstream) send(message []byte) error {
	if err := u.ws.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	return u.ws.WriteMessage(websocket.TextMessage, message)
}

// leave ends the connection, which makes a read fail. Closing it ends the subscription.
func (u *upstream) leave() {
	_ = u.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(closeWithin)) // it may be lost
	_ = u.ws.Close()
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

// upstreamFrames returns the framing of an upstream's connection. As with clients, the
// library is shown a handshake like the one that is done.
func upstreamFrames(conn net.Conn) (*websocket.Conn, error) {
	shown := &agreed{Conn: conn}
	dialer := websocket.Dialer{
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: upgrader.WriteBufferPool,
		NetDialContext: func(context.Context, string, string) (net.Conn, error) { return shown, nil },
	}
	ws, _, err := dialer.Dial("ws://upstream.invalid/", nil) //nolint:bodyclose // it has none
	if err != nil {
		return nil, fmt.Errorf("taking over an upstream's connection: %w", err)
	}
	return ws, nil
}

// agreed is a connection whose handshake is done. It answers the one that the library
// begins.
type agreed struct {
	net.Conn
	asked  []byte // what the library has written of its handshake
	answer []byte // what it has not read of the answer
	done   bool
}

// Write takes the library's handshake.
func (a *agreed) Write(p []byte) (int, error) {
	if a.done {
		return a.Conn.Write(p)
	}
	a.asked = append(a.asked, p...)
	if !bytes.HasSuffix(a.asked, []byte("\r\n\r\n")) {
		return len(p), nil
	}
	var key string
	for line := range bytes.Lines(a.asked) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && http.CanonicalHeaderKey(string(name)) == "Sec-Websocket-Key" {
			key = string(bytes.TrimSpace(value))
		}
	}
	a.answer = append(a.answer, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "...)
	a.answer = append(AppendAccept(a.answer, []byte(key)), "\r\n\r\n"...)
	a.asked, a.done = nil, true
	return len(p), nil
}

// Read returns first the answer to the library's handshake, by itself: the library looks
// for nothing behind it.
func (a *agreed) Read(p []byte) (int, error) {
	if len(a.answer) == 0 {
		return a.Conn.Read(p)
	}
	n := copy(p, a.answer)
	a.answer = a.answer[n:]
	return n, nil
}

// IsResult reports whether a text can be the result of an operation: a JSON object.
func IsResult(text []byte) bool {
	s := jsonscan.New(text, jsonscan.MaxDepth)
	return s.Value().Kind == jsonscan.Object && s.End()
}

// Events passes the events of a text/event-stream on until it ends (WHATWG HTML, section
// 9.2). If it returns an error, the end has not been passed on.
func Events(from io.Reader, to Sink) error {
	s := newEvents(from)
	for {
		name, data, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			to.Complete() // the stream was not cut off
			return nil
		case err != nil:
			return err
		}
		switch name {
		case "", "next", "message":
			if !IsResult(data) {
				return errNotUnderstood
			}
			to.Next(data)
		case typeComplete:
			to.Complete()
			return nil
		}
	}
}
