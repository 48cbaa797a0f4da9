package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fasthttp/websocket"
)

// Sockets are GraphQL connections over WebSocket, by graphql-transport-ws, that stay open.
type Sockets struct {
	all   []*websocket.Conn
	heard atomic.Int64 // results
	ended atomic.Int64 // operations and connections that ended
	why   atomic.Pointer[error]
	gone  sync.WaitGroup
}

// perSource is how many connections have the same source address: ports run out.
const perSource = 5000

// atATime is how many connections are opened at a time.
const atATime = 32

// OpenSockets opens n connections to ws://addr+path, the i-th with head(i), and returns once each
// is acknowledged. The caller must Close them.
func OpenSockets(ctx context.Context, addr, path string, n int, head func(i int) http.Header) (*Sockets, error) {
	s := &Sockets{all: make([]*websocket.Conn, n)}
	first := rand.Uint32N(1 << 15) // ports of addresses used before may be in TIME_WAIT
	errs := make([]error, atATime)
	var running sync.WaitGroup
	for d := range atATime {
		running.Go(func() {
			for i := d; i < n && errs[d] == nil; i += atATime {
				source := first + uint32(i/perSource)
				if s.all[i], errs[d] = dial(ctx, "ws://"+addr+path, source, head(i)); errs[d] == nil {
					s.gone.Go(func() { s.read(s.all[i]) }) // pings want an answer from the start
				}
			}
		})
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

var frames sync.Pool

// dial opens a connection and has it acknowledged.
func dial(ctx context.Context, url string, source uint32, head http.Header) (*websocket.Conn, error) {
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(source>>8), byte(source))}, Control: withoutPort}
	d := websocket.Dialer{
		NetDialContext: from.DialContext, HandshakeTimeout: time.Minute, Subprotocols: []string{"graphql-transport-ws"},
		ReadBufferSize: 512, WriteBufferSize: 512, WriteBufferPool: &frames,
	}
	ws, resp, err := d.DialContext(ctx, url, head)
	if err != nil {
		if resp != nil {
			err = fmt.Errorf("%w: status %d", err, resp.StatusCode)
		}
		return nil, err
	}
	if err = ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_init"}`)); err == nil {
		var m struct{ Type string }
		if err = ws.ReadJSON(&m); err == nil && m.Type != "connection_ack" {
			err = fmt.Errorf("a message of type %q, want connection_ack", m.Type)
		}
	}
	if err != nil {
		_ = ws.Close()
		return nil, err
	}
	return ws, nil
}

// withoutPort has the kernel choose the port when it connects: by then it knows the other
// end, and a port is free unless it is in use to that one.
func withoutPort(_, _ string, raw syscall.RawConn) (err error) {
	const ipBindAddressNoPort = 24
	if failed := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort, 1) }); failed != nil {
		return failed
	}
	return err
}

// Each sends the text to every connection.
func (s *Sockets) Each(text string) error {
	for _, ws := range s.all {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// read counts what comes until the connection ends.
func (s *Sockets) read(ws *websocket.Conn) {
	for {
		_, text, err := ws.ReadMessage()
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			s.end(err)
			return
		}
		switch m.Type {
		case "next":
			s.heard.Add(1)
		case "error", "complete":
			s.end(fmt.Errorf("an operation ended: %s", text))
		}
	}
}

func (s *Sockets) end(err error) {
	s.why.CompareAndSwap(nil, &err)
	s.ended.Add(1)
}

// Heard returns how many results have come, and why the first operation or connection
// ended, if one has.
func (s *Sockets) Heard() (int, error) {
	if why := s.why.Load(); why != nil {
		return int(s.heard.Load()), fmt.Errorf("%d operations or connections ended; the first: %w", s.ended.Load(), *why)
	}
	return int(s.heard.Load()), nil
}

// Close ends all connections.
func (s *Sockets) Close() {
	for _, ws := range s.all {
		if ws != nil {
			_ = ws.Close()
		}
	}
	s.gone.Wait()
}
