package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/wsconn"
)

// peer is the client of a connection that is served. Its end is reported by served.
type peer struct {
	*websocket.Conn
	raw    net.Conn
	served chan struct{}
	ours   *Conn
	t      *testing.T
}

func serve(t *testing.T, change func(*Options)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	o := &Options{
		Limits: Limits{Operations: 2, MaxMessage: 1000, MaxQueued: 1 << 20, InitTimeout: time.Hour, Heartbeat: time.Hour, WriteWithin: 20 * time.Second},
		Run:    func(ctx context.Context, op *Operation) { <-ctx.Done() },
	}
	change(o)
	p := &peer{t: t, served: make(chan struct{})}
	accepted := make(chan net.Conn, 1)
	go func() { conn, _ := ln.Accept(); accepted <- conn }()
	if p.raw, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	client := <-accepted
	c, err := Take(client, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	p.ours = c
	go func() { c.Serve(); _ = client.Close(); close(p.served) }()
	if p.Conn, err = wsconn.UpstreamFrames(p.raw); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.raw.Close(); <-p.served })
	return p
}

func (p *peer) say(text string) {
	p.t.Helper()
	if err := p.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// ends reads until the connection ends, and returns how.
func (p *peer) ends() string {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		if _, _, err := p.ReadMessage(); err != nil {
			return err.Error()
		}
	}
}

func TestFaultsOfClients(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
		send   func(*peer)
		want   string
	}{
		{"nothing", func(o *Options) { o.InitTimeout = time.Millisecond }, func(*peer) {}, "close 4408: Connection initialisation timeout"},
		{"a binary message", nil, func(p *peer) { _ = p.WriteMessage(websocket.BinaryMessage, []byte(hello)) }, "close 4400: Only text messages are accepted"},
		{"garbage", nil, func(p *peer) { p.say("\x00\x01") }, "close 4400: JSON syntax error"},
		{"a long message", nil, func(p *peer) { p.say(strings.Repeat(" ", 2000)) }, "close 1009"},
		{"a frame without a mask", nil, func(p *peer) { _, _ = p.raw.Write([]byte{0x81, 2, '{', '}'}) }, "close 1002"},
		{"reserved bits", nil, func(p *peer) { _, _ = p.raw.Write([]byte{0xf1, 0x80, 0, 0, 0, 0}) }, "close 1002"},
		{"a ping in fragments", nil, func(p *peer) { _, _ = p.raw.Write([]byte{0x09, 0x80, 0, 0, 0, 0}) }, "close 1002"},
		{"an unknown opcode", nil, func(p *peer) { _, _ = p.raw.Write([]byte{0x83, 0x80, 0, 0, 0, 0}) }, "close 1002"},
		{"a payload that is refused", func(o *Options) {
			o.Init = func(payload []byte) *Refusal { return &Refusal{CloseForbidden, "Not " + string(payload)} }
		}, func(p *peer) { p.say(`{"type":"connection_init","payload":{}}`) }, "close 4403: Not {}"},
		{"no operation for long", func(o *Options) { o.Idle = time.Millisecond }, func(p *peer) { p.say(hello) }, "close 1000 (normal): The connection was idle for too long"},
		{"a close frame", nil, func(p *peer) {
			_ = p.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Minute))
		}, "close 1000"},
		{"an empty close frame", nil, func(p *peer) { _ = p.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Minute)) }, "close 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, func(o *Options) {
				if c.change != nil {
					c.change(o)
				}
			})
			c.send(p)
			if got := p.ends(); !strings.Contains(got, c.want) {
				t.Errorf("ended with %q, want %q", got, c.want)
			}
			<-p.served
		})
	}
}

// A client that answers no ping is gone, and its operations end.
func TestASilentClientIsGone(t *testing.T) {
	t.Parallel()
	var began, ended atomic.Bool
	p := serve(t, func(o *Options) {
		o.Heartbeat = 2 * time.Second
		o.Run = func(ctx context.Context, _ *Operation) { began.Store(true); <-ctx.Done(); ended.Store(true) }
	})
	p.say(hello)
	p.say(sub1) // and then the client reads nothing, so that it answers no ping
	<-p.served
	if !began.Load() || !ended.Load() {
		t.Errorf("the operation began: %t, and ended: %t", began.Load(), ended.Load())
	}
}

// While the payload of connection_init is looked at, nothing is served, and the time for
// it passes.
func TestConnectionsThatAreNotAcknowledgedYet(t *testing.T) {
	for want, c := range map[string]struct {
		timeout time.Duration
		more    []string
	}{
		"close 4401: Unauthorized":                      {time.Hour, []string{sub1}},
		"close 4429: Too many initialisation requests":  {time.Hour, []string{hello}},
		"close 4408: Connection initialisation timeout": {10 * time.Millisecond, nil},
	} {
		decided := make(chan struct{})
		p := serve(t, func(o *Options) {
			o.Init, o.InitTimeout = func([]byte) *Refusal { <-decided; return nil }, c.timeout
		})
		p.say(hello)
		for _, text := range c.more {
			p.say(text)
		}
		if got := p.ends(); !strings.Contains(got, want) {
			t.Errorf("ended with %q, want %q", got, want)
		}
		close(decided)
		<-p.served
	}
}

// Only the time without operations counts as idle.
func TestAConnectionWithOperationsIsNotIdle(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	p := serve(t, func(o *Options) {
		o.Idle = time.Hour
		o.Run = func(context.Context, *Operation) { close(began); <-finish }
	})
	p.say(hello)
	p.say(sub1)
	<-began
	p.ours.idleSince(time.Now().Add(-2 * time.Hour))
	close(finish)
	for _, want := range []string{`{"type":"connection_ack"}`, `{"id":"1","type":"complete"}`} {
		if _, got, err := p.ReadMessage(); err != nil || string(got) != want {
			t.Fatalf("%s %v, want %s", got, err, want)
		}
	}
	p.ours.idleSince(time.Now().Add(-30 * time.Minute))
	p.say(`{"type":"ping"}`)
	if _, got, err := p.ReadMessage(); err != nil || string(got) != `{"type":"pong"}` {
		t.Fatalf("%s %v", got, err)
	}
	p.ours.idleSince(time.Now().Add(-2 * time.Hour))
	if got := p.ends(); !strings.Contains(got, "close 1000") {
		t.Errorf("ended with %q", got)
	}
}

// idleSince acts as if the last operation had ended at a time.
func (c *Conn) idleSince(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idleFrom = at
	c.watchIdle()
}

// A client that reads more slowly than events arrive is cut off and delays no other client.
func TestASlowClientIsCut(t *testing.T) {
	stopped := make(chan struct{})
	p := serve(t, func(o *Options) {
		o.Run = func(ctx context.Context, op *Operation) {
			defer close(stopped)
			event := []byte(`{"data":"` + strings.Repeat("x", 64<<10) + `"}`)
			for ctx.Err() == nil {
				op.Next(event)
			}
		}
	})
	p.say(hello)
	p.say(sub1)
	<-stopped
	if got := p.ends(); !strings.Contains(got, "close 4500: Messages are not read fast enough") {
		t.Errorf("ended with %q", got)
	}
}

func TestMessagesOfAnEndedOperationAreDropped(t *testing.T) {
	kept := make(chan *Operation, 1)
	p := serve(t, func(o *Options) { o.Run = func(ctx context.Context, op *Operation) { <-ctx.Done(); kept <- op } })
	p.say(hello)
	p.say(sub1)
	p.say(`{"id":"1","type":"complete"}`)
	op := <-kept
	op.Next([]byte("{}"))
	op.Fail([]byte("[]"))
	op.Complete()
	p.say(`{"type":"ping"}`)
	for _, want := range []string{`{"type":"connection_ack"}`, `{"type":"pong"}`} {
		if _, got, err := p.ReadMessage(); err != nil || string(got) != want {
			t.Fatalf("%s %v, want %s", got, err, want)
		}
	}
}

// heard is a Sink that writes down what it takes.
type heard struct {
	said []string
	over chan struct{} // closed at the end; nil: nobody waits for it
}

func (h *heard) Next(result []byte) { h.said = append(h.said, string(result)) }
func (h *heard) Fail(errs []byte)   { h.end("failed " + string(errs)) }
func (h *heard) Complete()          { h.end("complete") }

func (h *heard) end(how string) {
	h.said = append(h.said, how)
	if h.over != nil {
		close(h.over)
	}
}

func TestEvents(t *testing.T) {
	for text, want := range map[string]string{
		"data: {}\n\n": "{} complete",
		"event: next\ndata:{\"a\":\ndata: 1}\n\nevent: complete\ndata:\n\nnothing": "{\"a\":\n1} complete",
		"event: complete\n\n": "complete",
		"\r\ndata: {}\r\n\r\n: a comment\r\nid: 1\r\nretry: 5\r\n": "{} complete",
		"data: {}\r\rdata: {\"b\":1}\r\r":                          "{} {\"b\":1} complete",
		"event: other\ndata: 1\n\n":                                "complete",
		"data: {}":                                                 "complete",
		"":                                                         "complete",
		"data: [1]\n\n":                                            "the upstream has sent a message that is not understood",
		"data: " + strings.Repeat("x", maxEvent+1):                    "the upstream has sent an event that is too large",
		strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100): "the upstream has sent an event that is too large",
	} {
		h := &heard{}
		got := ""
		if err := Events(strings.NewReader(text), h); err != nil {
			got = err.Error()
		}
		if got = strings.TrimSpace(strings.Join(h.said, " ") + " " + got); got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
	broken := io.MultiReader(strings.NewReader("data: {}\n\n"), &failing{})
	if h := (&heard{}); Events(broken, h) == nil || fmt.Sprint(h.said) != "[{}]" {
		t.Errorf("a stream that was cut off: %v", h.said)
	}
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Faults of upstreams end a subscription with an error.
func TestFaultsOfUpstreams(t *testing.T) {
	ack := `{"type":"connection_ack"}`
	for _, c := range []struct {
		name  string
		says  []string
		want  string
		fault string
	}{
		{"events", []string{ack, `{"type":"next","id":"1","payload":{"a":1}}`, `{"type":"complete","id":"1"}`}, `{"a":1} complete`, ""},
		{"pings", []string{`{"type":"ping"}`, ack, `{"type":"ping"}`, `{"type":"complete","id":"1"}`}, "complete", ""},
		{"errors", []string{ack, `{"type":"error","id":"1","payload":[{"message":"no"}]}`}, `failed [{"message":"no"}]`, ""},
		{"one error", []string{ack, `{"type":"error","id":"1","payload":{"message":"no"}}`}, `failed [{"message":"no"}]`, ""},
		{"error without payload", []string{ack, `{"type":"error","id":"1"}`}, `failed [{"message":"The upstream has refused the subscription."}]`, ""},
		{"another id", []string{ack, `{"type":"next","id":"2","payload":{}}`}, "", "not understood"},
		{"a result that is none", []string{ack, `{"type":"next","id":"1","payload":[]}`}, "", "not understood"},
		{"garbage", []string{ack, `{`}, "", "not understood"},
		{"no acknowledgement", []string{`{"type":"next","id":"1","payload":{}}`}, "", "not understood"},
		{"a refusal", []string{`{"type":"connection_error"}`}, "", "refuses"},
		{"a large message", []string{ack, `{"type":"next","id":"1","payload":{"a":"` + strings.Repeat("x", maxEvent) + `"}}`}, "", "read limit"},
		{"the end", []string{ack}, "", "1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			go func() {
				ws, err := wsconn.Frames(theirs, nil)
				if err != nil {
					return
				}
				go func() { // it reads what comes
					for {
						if _, _, err := ws.ReadMessage(); err != nil {
							return
						}
					}
				}()
				for _, text := range c.says {
					_ = ws.WriteMessage(websocket.TextMessage, []byte(text))
				}
				_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Minute))
			}()
			h, lost := &heard{over: make(chan struct{})}, make(chan error, 1)
			sub := &Subscription{To: h, Request: []byte(query), Lost: func(err error) { lost <- err }}
			hub := new(Hub)
			if hub.Join([]byte("a"), sub) {
				t.Fatal("a connection is there already")
			}
			hub.Open(sub, ours, TransportWS)
			var err error
			select {
			case err = <-lost:
			case <-h.over:
			}
			if got := strings.Join(h.said, " "); got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.fault)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: next\r\ndata: {}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &heard{}
		if err := Events(bytes.NewReader(text), h); err != nil && !errors.Is(err, errNotUnderstood) && !errors.Is(err, errLongEvent) {
			t.Fatal(err)
		}
		for _, said := range h.said {
			if said != "complete" && !json.Valid([]byte(said)) {
				t.Fatalf("passes on %q", said)
			}
		}
	})
}
