package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// staged is a connection in memory on which a test decides what happens when.
// What it is told goes to told; a read past its deadline fails.
type staged struct {
	script
	onDeadline func(past bool)             // runs before a read deadline takes effect
	onRead     func(n int) (string, error) // the n-th read, from 0
	mu         sync.Mutex
	reads      int
	past       bool // the read deadline has passed
	told       bytes.Buffer
}

func (s *staged) SetReadDeadline(t time.Time) error {
	past := !t.IsZero() && t.Before(time.Now())
	if s.onDeadline != nil {
		s.onDeadline(past)
	}
	s.mu.Lock()
	s.past = past
	s.mu.Unlock()
	return nil
}

func (s *staged) Read(p []byte) (int, error) {
	s.mu.Lock()
	past, n := s.past, s.reads
	s.reads++
	s.mu.Unlock()
	if past {
		return 0, os.ErrDeadlineExceeded
	}
	text, err := s.onRead(n)
	return copy(p, text), err
}

func (s *staged) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.Write(p)
}

func (s *staged) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.String()
}

func newTestServer(conf Config, h Handler) *Server { return New(conf, h, log.New(io.Discard, "", 0)) }

// ended fails t when a channel is not closed soon.
func ended(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatalf("%s has not ended", what)
	}
}

func TestShutdownEndsAConnectionThatIsAboutToWait(t *testing.T) {
	s := newTestServer(testConfig(), &echo{})
	interrupted := make(chan struct{})
	c := &staged{}
	c.onDeadline = func(past bool) {
		if past {
			close(interrupted)
			return
		}
		// The stop comes while the deadline of the wait is being set.
		go func() { _ = s.Shutdown(context.Background()) }()
		<-interrupted
	}
	hung := make(chan struct{})
	c.onRead = func(int) (string, error) {
		close(hung)
		return "", io.EOF
	}
	s.admit(c, nil)
	done := make(chan struct{})
	go func() { s.gone.Wait(); close(done) }()
	ended(t, "the connection", done)
	select {
	case <-hung:
		t.Error("the connection waited for a request after the stop")
	default:
	}
}

func TestShutdownDoesNotDisturbARequestThatHasJustBegun(t *testing.T) {
	conf := testConfig()
	conf.IdleTimeout = conf.ReadTimeout // so that the deadline of the wait would do for the head
	s := newTestServer(conf, &echo{readBody: true})
	interrupted, stopped := make(chan struct{}), make(chan struct{})
	c := &staged{}
	c.onDeadline = func(past bool) {
		if past {
			close(interrupted)
		}
	}
	c.onRead = func(n int) (string, error) {
		switch n {
		case 0:
			go func() { _ = s.Shutdown(context.Background()); close(stopped) }()
			<-interrupted
			return "POST /x HTTP/1.1\r\nHost: a\r\nContent-Le", nil
		case 1:
			return "ngth: 3\r\n\r\nabc", nil
		}
		return "", io.EOF
	}
	s.admit(c, nil)
	ended(t, "the server", stopped)
	if got := c.said(); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, "Connection: close\r\n") {
		t.Errorf("got %q, want an answer that ends the connection", got)
	}
}

func TestServeAfterShutdownReturnsAtOnce(t *testing.T) {
	s := newTestServer(testConfig(), &echo{})
	if err := s.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		if err := s.Serve(ln); !errors.Is(err, ErrStopped) {
			t.Errorf("Serve returned %v", err)
		}
		close(done)
	}()
	ended(t, "Serve", done)
	if c, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, %v: the listener is open still", c, err)
	}
}

// stuck never finishes its calls.
type stuck struct{ entered, leave chan struct{} }

func (h *stuck) Handle(call *Call) {
	h.entered <- struct{}{}
	<-h.leave
	call.Answer.Status = 200
}
func (h *stuck) Refuse(*Call, *Fault) {}

func TestShutdownCutsWhatDoesNotEnd(t *testing.T) {
	h := &stuck{entered: make(chan struct{}), leave: make(chan struct{})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newTestServer(testConfig(), h)
	go func() { _ = s.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	<-h.entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown returned %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("read %d, %v from a connection that was cut", n, err)
	}
	close(h.leave)
}

// faulty panics.
type faulty struct{ echo }

func (h *faulty) Handle(call *Call) {
	if string(call.Path) == "/fault" {
		panic("a fault of ours")
	}
	h.echo.Handle(call)
}

func TestAFaultEndsItsOwnConnectionOnly(t *testing.T) {
	s, addr := start(t, testConfig(), &faulty{})
	if got := exchange(t, addr, "GET /fault HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n"); got != "" {
		t.Errorf("got %q", got)
	}
	if got := exchange(t, addr, "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("the next connection got %q", got)
	}
	if n := s.Stats().Panics; n != 1 {
		t.Errorf("%d panics counted", n)
	}
}
