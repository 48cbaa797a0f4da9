package testenv

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// Origin serves handler on a loopback port until t ends and returns its address,
// such as "127.0.0.1:40123". Bodies of up to 64 MiB are read whole before handler runs.
func Origin(t testing.TB, handler fasthttp.RequestHandler) string {
	t.Helper()
	return ServeOrigin(t, &fasthttp.Server{Handler: handler, MaxRequestBodySize: 64 << 20, ReadBufferSize: 64 << 10})
}

// ServeOrigin is Origin with the settings of a server, which it takes over. At the
// end of t it closes open connections and waits for their handlers.
func ServeOrigin(t testing.TB, server *fasthttp.Server) string {
	t.Helper()
	if server.Logger == nil {
		server.Logger = quiet{}
	}
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		l.cut()
		await(t, "serving", func() {
			if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
				t.Errorf("origin: %v", err)
			}
		})
		await(t, "connections", l.open.Wait)
	})
	return l.Addr().String()
}

// RawOrigin calls serve for every connection, a *net.TCPConn, in a new goroutine, and
// closes it when serve returns. Connections are numbered from 0. At the end of t
// it closes open connections and waits for every serve.
func RawOrigin(t testing.TB, serve func(conn net.Conn, n int)) string {
	t.Helper()
	l := listen(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.accept()
			if err != nil {
				return // cut
			}
			serving.Go(func() {
				defer conn.Close()
				serve(conn.Conn, n)
			})
		}
	})
	t.Cleanup(func() {
		l.cut()
		await(t, "connections", serving.Wait)
	})
	return l.Addr().String()
}

// await waits at most a minute, so that a handler that hangs fails its test and not
// the whole run.
func await(t testing.TB, what string, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("origin: %s have not ended a minute after their connections were cut", what)
	}
}

// quiet discards the log of a server, whose clients misbehave on purpose.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// listener keeps its open connections to close them.
type listener struct {
	net.Listener
	open sync.WaitGroup

	mu    sync.Mutex
	conns map[*tracked]struct{} // nil once cut
}

func listen(t testing.TB) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &listener{Listener: inner, conns: make(map[*tracked]struct{})}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.accept()
	if err != nil {
		return nil, err // not the nil *tracked, which would be a non-nil net.Conn
	}
	return conn, nil
}

// accept refuses connections once the listener is closing.
func (l *listener) accept() (*tracked, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &tracked{Conn: inner, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		return nil, errors.Join(net.ErrClosed, inner.Close())
	}
	l.conns[conn] = struct{}{}
	l.open.Add(1)
	return conn, nil
}

// cut closes the listener and every connection. Serving goroutines close their
// connection once more, which is what open counts.
func (l *listener) cut() {
	_ = l.Listener.Close()
	l.mu.Lock()
	conns := l.conns
	l.conns = nil
	l.mu.Unlock()
	for conn := range conns {
		_ = conn.Conn.Close()
	}
}

// tracked is one accepted connection.
type tracked struct {
	net.Conn
	listener *listener
	once     sync.Once
}

// Close closes the connection and forgets it.
func (c *tracked) Close() error {
	c.once.Do(func() {
		c.listener.mu.Lock()
		delete(c.listener.conns, c)
		c.listener.mu.Unlock()
		c.listener.open.Done()
	})
	return c.Conn.Close()
}
