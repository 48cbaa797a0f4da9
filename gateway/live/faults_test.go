package live

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/fasthttp/websocket"

	"github.com/sluicegate/sluice/internal/wsconn"
)

// Bits of a frame's first byte (RFC 6455 section 5.2).
const (
	final    = 0x80
	reserved = 0x70
	more     = 0x00 // opcodes
	text     = 0x01
	binaries = 0x02
	closes   = 0x08
	pings    = 0x09
)

// framed returns a client's frame, masked with zeros.
func framed(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

func closeFrame(code uint16, reason string) []byte {
	return framed(final|closes, string(binary.BigEndian.AppendUint16(nil, code))+reason)
}

// nothingLeft waits until there are no more goroutines than before, and none of the memory
// of a connection.
func nothingLeft(t *testing.T, before int, conn weak.Pointer[Conn]) {
	t.Helper()
	// A timer that was stopped, and what it refers to, stay in memory until its processor
	// removes stopped timers, which it does once they are more than a quarter.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	within := time.Now().Add(30 * time.Second)
	for runtime.NumGoroutine() > before || conn.Value() != nil {
		if time.Now().After(within) {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Fatalf("%d goroutines, %d before; the connection is in memory: %t\n%s", runtime.NumGoroutine(), before, conn.Value() != nil, &stacks)
		}
		var stopped [1000]*time.Timer
		for i := range stopped {
			stopped[i] = time.AfterFunc(time.Hour, func() {})
		}
		for _, timer := range stopped {
			timer.Stop()
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

// What breaks RFC 6455 or the subprotocol ends the connection with the code that says so, or
// is allowed, and nothing of it stays behind.
func TestFramesOfClients(t *testing.T) {
	ping, pong := `{"type":"ping","payload":{"a":"é"}}`, "heard "+`{"type":"pong","payload":{"a":"é"}}`
	cut := strings.Index(ping, "é") + 1 // within the character
	for _, c := range []struct {
		name   string
		frames [][]byte
		want   string // how the connection ends, or what is heard first
	}{
		{"a text that is not UTF-8", [][]byte{framed(final|text, `{"type":"ping","payload":{"a":"`+"\xff"+`"}}`)}, "close 1007"},
		{"a text that ends within a character", [][]byte{framed(final|text, "\xc3")}, "close 1007"},
		{"a surrogate in UTF-8", [][]byte{framed(final|text, "\xed\xa0\x80")}, "close 1007"},
		{"fragments that are not UTF-8", [][]byte{framed(text, `{"type":"`), framed(final|more, "\xff"+`"}`)}, "close 1007"},
		{"fragments that cut a character", [][]byte{framed(text, ping[:cut]), framed(final|more, ping[cut:])}, pong},
		{"a ping between fragments", [][]byte{framed(text, ping[:9]), framed(final|pings, "x"), framed(final|more, ping[9:])}, pong},
		{"an empty fragment", [][]byte{framed(text, ""), framed(more, ping), framed(final|more, "")}, pong},
		{"a message within fragments", [][]byte{framed(text, ping[:9]), framed(final|text, ping)}, "close 1002"},
		{"a fragment of nothing", [][]byte{framed(final|more, ping)}, "close 1002"},
		{"fragments that are too large", [][]byte{framed(text, strings.Repeat(" ", 600)), framed(more, strings.Repeat(" ", 600))}, "close 1009"},
		{"a length beyond 63 bits", [][]byte{{final | text, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}}, "EOF"},
		{"a long ping", [][]byte{framed(final|pings, strings.Repeat("x", 126))}, "close 1002"},
		{"a ping in fragments", [][]byte{framed(pings, "x")}, "close 1002"},
		{"a reserved bit", [][]byte{framed(final|0x40|text, ping)}, "close 1002"},
		{"all reserved bits", [][]byte{framed(final|reserved|text, ping)}, "close 1002"},
		{"a frame without a mask", [][]byte{append([]byte{final | text, byte(len(ping))}, ping...)}, "close 1002"},
		{"an unknown control frame", [][]byte{framed(final|0x0b, "")}, "close 1002"},
		{"a binary message", [][]byte{framed(final|binaries, ping)}, "close 4400: Only text messages are accepted"},
		{"a message without JSON", [][]byte{framed(final|text, "hello")}, "close 4400: JSON syntax error"},
		{"the client's close code", [][]byte{closeFrame(4999, "bye")}, "close 4999"},
		{"a close code that is never sent", [][]byte{closeFrame(1006, "")}, "close 1002"},
		{"a close code of nobody", [][]byte{closeFrame(999, "")}, "close 1002"},
		{"a close reason that is not UTF-8", [][]byte{closeFrame(1000, "\xff")}, "close 1002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			p := serve(t, func(*Options) {})
			conn := weak.Make(p.ours)
			p.ours = nil
			for _, frame := range c.frames {
				_, _ = p.raw.Write(frame) // it may have ended at the first
			}
			got := ""
			if strings.HasPrefix(c.want, "heard ") {
				_ = p.SetReadDeadline(time.Now().Add(30 * time.Second))
				_, message, err := p.ReadMessage()
				got = fmt.Sprintf("heard %s", message)
				if err != nil {
					got = err.Error()
				}
			} else {
				got = p.ends()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			_ = p.raw.Close()
			<-p.served
			nothingLeft(t, before, conn)
		})
	}
}

// deflated returns the content of a message as permessage-deflate compresses it.
func deflated(content string) string {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, 9) // a valid level
	_, _ = io.WriteString(w, content)
	_ = w.Flush()
	return strings.TrimSuffix(b.String(), "\x00\x00\xff\xff") // RFC 7692 section 7.2.1
}

// What is bounded and understood is the message, and not what it was compressed to.
func TestCompressedMessagesOfClients(t *testing.T) {
	const compressed = final | 0x40 | text
	for _, c := range []struct {
		name  string
		frame []byte
		want  string
	}{
		{"a message", framed(compressed, deflated("hello")), "close 4400: JSON syntax error"},
		{"one that is not compressed", framed(final|text, "hello"), "close 4400: JSON syntax error"},
		{"text that is not UTF-8", framed(compressed, deflated("\xff")), "close 1007"},
		{"a message that becomes too large", framed(compressed, deflated(strings.Repeat(" ", 1<<20))[:900]), "close 1009"},
		{"a message that is not compressed as it should be", framed(compressed, "\xff\xff\xff"), "close 1007"},
		{"half of a message", framed(compressed, deflated(strings.Repeat("hello", 20))[:6]), "close 1007"},
		{"another reserved bit", framed(final|0x20|text, "hello"), "close 1002"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			p := serve(t, func(o *Options) { o.Deflated = true })
			conn := weak.Make(p.ours)
			p.ours = nil
			_, _ = p.raw.Write(c.frame)
			if got := p.ends(); !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			_ = p.raw.Close()
			<-p.served
			nothingLeft(t, before, conn)
		})
	}
}

// A client that is lost within a message, or within a subscription, leaves nothing behind.
func TestClientsThatAreLost(t *testing.T) {
	for name, send := range map[string]func(*peer){
		"at once":         func(*peer) {},
		"within a frame":  func(p *peer) { _, _ = p.raw.Write(framed(final|text, hello)[:10]) },
		"within a length": func(p *peer) { _, _ = p.raw.Write([]byte{final | text, 0x80 | 126, 1}) },
		"within fragments": func(p *peer) {
			_, _ = p.raw.Write(framed(text, hello[:10]))
		},
		"with operations": func(p *peer) { p.say(hello); p.say(sub1) },
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			p := serve(t, func(*Options) {})
			conn := weak.Make(p.ours)
			p.ours = nil
			send(p)
			_ = p.raw.Close()
			<-p.served
			nothingLeft(t, before, conn)
		})
	}
}

// Of 10,000 operations as many run as may; each of the others is refused by itself.
func TestTooManyOperations(t *testing.T) {
	const asked, may = 10_000, 100
	before := runtime.NumGoroutine()
	began := make(chan struct{}, asked)
	p := serve(t, func(o *Options) {
		o.Operations, o.MaxQueued = may, 4<<20
		o.Run = func(ctx context.Context, _ *Operation) { began <- struct{}{}; <-ctx.Done() }
	})
	conn := weak.Make(p.ours)
	p.ours = nil
	sent := make(chan error, 1)
	go func() {
		var err error
		if err = p.WriteMessage(websocket.TextMessage, []byte(hello)); err == nil {
			for i := 0; i < asked && err == nil; i++ {
				err = p.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"id":"%d","type":"subscribe","payload":{"query":"subscription{a}"}}`, i))
			}
		}
		sent <- err
	}()
	_ = p.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, got, err := p.ReadMessage(); err != nil || string(got) != `{"type":"connection_ack"}` {
		t.Fatalf("%s %v", got, err)
	}
	for i := may; i < asked; i++ {
		want := fmt.Sprintf(`{"id":"%d","type":"error","payload":[{"message":"Too many operations are active on this connection."}]}`, i)
		if _, got, err := p.ReadMessage(); err != nil || string(got) != want {
			t.Fatalf("%s %v, want %s", got, err, want)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	for range may {
		<-began
	}
	if len(began) > 0 {
		t.Errorf("%d operations more than may run have begun", len(began))
	}
	p.say(`{"id":"0","type":"complete"}`)
	p.say(`{"id":"again","type":"subscribe","payload":{"query":"subscription{a}"}}`)
	<-began // the place is free again
	_ = p.raw.Close()
	<-p.served
	nothingLeft(t, before, conn)
}

// An upstream that never acknowledges is given up after a while, which is not waited for here.
func TestUpstreamsThatNeverAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		left := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, theirs) // it takes what comes until the gateway leaves
			close(left)
		}()
		lost := make(chan error, 1)
		sub := &Subscription{To: &heard{}, Request: []byte(query), Lost: func(err error) { lost <- err }}
		hub, began := new(Hub), time.Now()
		if hub.Join([]byte("a"), sub) {
			t.Fatal("a connection is there already")
		}
		hub.Open(sub, ours, TransportWS)
		if err := <-lost; err == nil || !strings.Contains(err.Error(), "waiting for the upstream's connection_ack") {
			t.Errorf("lost with %v", err)
		}
		if took := time.Since(began); took != ackWithin {
			t.Errorf("given up after %v, want %v", took, ackWithin)
		}
		<-left
		if hub.Size() != 0 {
			t.Error("the connection is kept")
		}
	})
}

// A client that reads nothing while events come is cut off, and leaves nothing behind.
func TestSlowClientsLeaveNothing(t *testing.T) {
	before := runtime.NumGoroutine()
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
	conn := weak.Make(p.ours)
	p.ours = nil
	p.say(hello)
	p.say(sub1)
	<-stopped
	_ = p.raw.Close()
	<-p.served
	nothingLeft(t, before, conn)
}

// A connection that ends because it has been without subscriptions for long takes none that
// comes at that moment: it would be lost.
func TestIdleConnectionsTakeNothingAtTheirEnd(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	out := wsconn.New(near, time.Second)
	defer out.Abandon()
	ws, err := wsconn.UpstreamFrames(out)
	if err != nil {
		t.Fatal(err)
	}
	hub := new(Hub)
	idle := &trunk{hub: hub, key: "a", feeds: make(map[string]*feed), up: &upstream{ws: ws, out: out}, idle: time.NewTimer(time.Hour)}
	hub.trunks = map[string]*trunk{"a": idle}
	hub.mu.Lock() // the end of the connection is held up here
	ended := make(chan struct{})
	go func() { idle.endIdle(); close(ended) }()
	for within := time.Now().Add(30 * time.Second); !idle.takesNoMore(); time.Sleep(time.Millisecond) {
		if time.Now().After(within) {
			t.Error("the connection takes subscriptions while it ends")
			break
		}
	}
	lost := make(chan error, 1)
	s := &Subscription{To: &heard{}, Request: []byte(query), Lost: func(err error) { lost <- err }}
	taken := idle.take(s)
	hub.mu.Unlock()
	<-ended
	if taken || len(lost) > 0 {
		t.Error("a subscription was taken, and lost")
	}
	if hub.Join([]byte("a"), s) {
		t.Error("a connection that has ended serves a subscription")
	}
}

func (t *trunk) takesNoMore() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}
