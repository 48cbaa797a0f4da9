package wsconn

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/fasthttp/websocket"
)

// UpstreamFrames returns the framing of an upstream's connection. As with clients, the
// library is shown a handshake like the one that is done.
func UpstreamFrames(conn net.Conn) (*websocket.Conn, error) {
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
