// Package wsconn has what connections need that have left HTTP: writes that do not wait for
// the peer, and the frames of WebSocket.
package wsconn

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6455 section 1.3 says so
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/fasthttp/websocket"
)

// Buffers of a connection, in bytes. Those for writing are shared.
const (
	readBuffer  = 1 << 10
	writeBuffer = 4 << 10
)

// IsKey reports whether the value of Sec-WebSocket-Key is that of a handshake: 16 bytes in
// base64 (RFC 6455 section 4.1).
func IsKey(key []byte) bool {
	var plain [18]byte
	if base64.StdEncoding.DecodedLen(len(key)) != len(plain) {
		return false
	}
	n, err := base64.StdEncoding.Decode(plain[:], key)
	return err == nil && n == 16
}

// AppendAccept appends the value of Sec-WebSocket-Accept for a key.
func AppendAccept(b, key []byte) []byte {
	sum := sha1.Sum(append(bytes.Clone(key), "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"...)) //nolint:gosec // see above
	return base64.StdEncoding.AppendEncode(b, sum[:])
}

// The library makes a server's connection by a handshake only. The gateway has answered
// that of the client, so the library is shown one like it, and its answer is dropped.
var (
	upgrader = websocket.Upgrader{
		ReadBufferSize: readBuffer, WriteBufferSize: writeBuffer, WriteBufferPool: new(sync.Pool),
		CheckOrigin: func(*http.Request) bool { return true }, // the gateway has checked it
	}
	handshake = &http.Request{Method: http.MethodGet, Header: http.Header{
		"Connection": {"upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="},
	}}
)

// Frames returns the framing of a client's connection whose handshake has been answered, and
// from which received has been read already.
func Frames(client net.Conn, received []byte) (*websocket.Conn, error) {
	return take(&upgrader, handshake, client, received)
}

func take(by *websocket.Upgrader, shown *http.Request, client net.Conn, received []byte) (*websocket.Conn, error) {
	conn, err := by.Upgrade(&handed{Conn: client, received: received}, shown, nil)
	if err != nil {
		return nil, fmt.Errorf("taking over a connection: %w", err)
	}
	return conn, nil
}

// handed is a connection whose handshake has been answered. It is also the
// http.ResponseWriter that the library takes it from.
type handed struct {
	net.Conn
	received []byte
	answered bool // the library has written its answer
}

// Read returns first what was received before.
func (h *handed) Read(p []byte) (int, error) {
	if len(h.received) == 0 {
		return h.Conn.Read(p)
	}
	n := copy(p, h.received)
	if h.received = h.received[n:]; len(h.received) == 0 {
		h.received = nil
	}
	return n, nil
}

// Write drops the library's answer to the handshake.
func (h *handed) Write(p []byte) (int, error) {
	if !h.answered {
		h.answered = true
		return len(p), nil
	}
	return h.Conn.Write(p)
}

// Hijack implements http.Hijacker.
func (h *handed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h, bufio.NewReadWriter(bufio.NewReaderSize(h, 16), bufio.NewWriterSize(io.Discard, 16)), nil
}

// Header implements http.ResponseWriter.
func (h *handed) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter.
func (h *handed) WriteHeader(int) {}

// NewKey returns a value of Sec-WebSocket-Key.
func NewKey() string {
	var key [16]byte
	_, _ = rand.Read(key[:]) // documented never to fail
	return base64.StdEncoding.EncodeToString(key[:])
}
