package gateway_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/wsconn"
)

// faulty is an upstream that speaks graphql-transport-ws until it is subscribed to, and then
// sends what a test says.
type faulty struct {
	net.Listener
	fault fault
	t     *testing.T
	ends  sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

// A fault is what an upstream does wrong.
type fault struct {
	status string                 // of the answer to the handshake; "": as it should be
	accept string                 // Sec-WebSocket-Accept; "": as it should be
	early  []byte                 // frames before the acknowledgement, which never comes then
	frames func(id string) []byte // in answer to the subscription
	leaves bool                   // it closes the connection after that, without a close frame
}

func newFaulty(t *testing.T, f fault) *faulty {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &faulty{Listener: ln, fault: f, t: t}
	u.ends.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			u.mu.Lock()
			u.open = append(u.open, conn)
			u.mu.Unlock()
			u.ends.Go(func() { defer conn.Close(); u.serve(conn) })
		}
	})
	return u
}

// stop ends the upstream and all of its connections.
func (u *faulty) stop() {
	_ = u.Close()
	u.mu.Lock()
	for _, conn := range u.open {
		_ = conn.Close()
	}
	u.mu.Unlock()
	u.ends.Wait()
}

func (u *faulty) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	accept := string(wsconn.AppendAccept(nil, []byte(req.Header.Get("Sec-WebSocket-Key"))))
	if u.fault.accept != "" {
		accept = u.fault.accept
	}
	if u.fault.status != "" {
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", u.fault.status)
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept)
	for {
		opcode, payload, err := u.readFrame(in)
		if err != nil || opcode == 8 {
			return
		}
		var m struct{ ID, Type string }
		_ = json.Unmarshal(payload, &m) // a control frame is none
		switch {
		case m.Type == "connection_init" && u.fault.early != nil:
			_, _ = conn.Write(u.fault.early)
		case m.Type == "connection_init":
			_, _ = conn.Write(served(0x81, `{"type":"connection_ack"}`))
			continue
		case m.Type == "subscribe":
			_, _ = conn.Write(u.fault.frames(m.ID))
		default:
			continue
		}
		if u.fault.leaves {
			return
		}
	}
}

// readFrame reads a frame of the gateway, which must mask it (RFC 6455 section 5.3).
func (u *faulty) readFrame(in *bufio.Reader) (opcode byte, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	if head[0]&0xf0 != 0x80 || head[1]&0x80 == 0 {
		u.t.Errorf("a frame begins with %x: it is not whole, or not masked", head)
		return 0, nil, errors.New("not a frame")
	}
	n := int(head[1] & 0x7f)
	if n == 126 {
		var long [2]byte
		if _, err = io.ReadFull(in, long[:]); err != nil {
			return 0, nil, err
		}
		n = int(binary.BigEndian.Uint16(long[:]))
	}
	masked := make([]byte, 4+n)
	if _, err = io.ReadFull(in, masked); err != nil {
		return 0, nil, err
	}
	for i := range n {
		masked[4+i] ^= masked[i%4]
	}
	return head[0] & 0xf, masked[4:], nil
}

// served returns a frame as servers send it.
func served(first byte, payload string) []byte {
	if len(payload) > 125 {
		panic("too long")
	}
	return append([]byte{first, byte(len(payload))}, payload...)
}

// say returns a fault by which an upstream answers a subscription with a frame.
func say(first byte, message string) fault {
	return fault{frames: func(id string) []byte { return served(first, strings.ReplaceAll(message, "$ID", id)) }}
}

const good = `{"id":"$ID","type":"next","payload":{"data":{"count":1}}}`

var upstreamFaults = map[string]fault{
	"refuses the handshake":         {status: "500 Internal Server Error"},
	"answers another handshake":     {accept: "AAAA"},
	"leaves before it acknowledges": {early: []byte{}, leaves: true},
	"leaves within acknowledging":   {early: served(0x81, `{"type":"connection_ack"}`)[:9], leaves: true},
	"refuses the connection":        {early: []byte{0x88, 2, 0x11, 0x33}},
	"sends events unasked":          {early: served(0x81, `{"id":"1","type":"next","payload":{}}`)},
	"leaves after an event":         {frames: func(id string) []byte { return served(0x81, strings.ReplaceAll(good, "$ID", id)) }, leaves: true},
	"leaves within an event":        {frames: func(id string) []byte { return served(0x81, strings.ReplaceAll(good, "$ID", id))[:20] }, leaves: true},
	"sends no JSON":                 say(0x81, "hello"),
	"sends half of a message":       {frames: func(string) []byte { return served(0x01, `{"id":"`) }, leaves: true},
	"sends a result that is none":   say(0x81, `{"id":"$ID","type":"next","payload":[1]}`),
	"sends a binary message":        say(0x82, good),
	"sends text that is not UTF-8":  say(0x81, `{"id":"$ID","type":"next","payload":{"data":"`+"\xff"+`"}}`),
	"masks its frames":              {frames: func(string) []byte { return []byte{0x81, 0x82, 0, 0, 0, 0, '{', '}'} }},
	"sets reserved bits":            say(0xc1, good),
	"sends a ping in fragments":     say(0x09, "x"),
	"sends a long ping":             {frames: func(string) []byte { return append([]byte{0x89, 126, 0, 200}, make([]byte, 200)...) }},
	"sends an unknown frame":        say(0x83, good),
	"sends a fragment of nothing":   say(0x80, good),
	"sends too large a message":     {frames: func(string) []byte { return []byte{0x81, 127, 0, 0, 0, 0, 1, 0, 0, 0} }},
	"sends an impossible length":    {frames: func(string) []byte { return []byte{0x81, 127, 0xff, 0, 0, 0, 1, 0, 0, 0} }},
	"closes as it should":           {frames: func(string) []byte { return []byte{0x88, 2, 0x03, 0xe8} }},
	"closes with an error":          {frames: func(string) []byte { return []byte{0x88, 2, 0x03, 0xf3} }},
	"closes with a code of nobody":  {frames: func(string) []byte { return []byte{0x88, 2, 0x03, 0xe7} }},
}

// What goes wrong at an upstream ends the subscription with an error, and nothing else: the
// client's connection serves on, and nothing of the upstream's stays behind.
func TestUpstreamFaultsEndTheirSubscriptionOnly(t *testing.T) {
	s := withSockets(t)
	names, apis := make([]string, 0, len(upstreamFaults)), []*definition.API(nil)
	rights := make([]string, 0, len(upstreamFaults))
	upstreams := make([]*faulty, 0, len(upstreamFaults))
	for name, f := range upstreamFaults {
		u := newFaulty(t, f)
		defer u.stop()
		id := fmt.Sprint("api", len(apis))
		api := s.api(id, "graphql-transport-ws", "")
		api.Proxy.TargetURL = "http://" + u.Addr().String()
		names, apis, rights, upstreams = append(names, name), append(apis, api), append(rights, fmt.Sprintf("%q:{}", id)), append(upstreams, u)
	}
	s.MustLoad(apis...)
	s.key("key", `{"org_id":"o","rate":-1,"quota_max":-1,"access_rights":{`+strings.Join(rights, ",")+`}}`)
	before := runtime.NumGoroutine() - len(upstreams) // which end
	t.Run("all", func(t *testing.T) {
		for i, api := range apis {
			t.Run(names[i], func(t *testing.T) {
				t.Parallel()
				c := (&sockets{Gateway: s.Gateway, upstream: s.upstream, t: t}).dial("/"+api.ID+"/", "graphql-transport-ws", "key").greets()
				defer c.Close()
				c.say(asks("subscribe", "1", "subscription{count(to:1)}"))
				heard := c.hears()
				if strings.Contains(heard, `"count":1`) && strings.HasPrefix(names[i], "leaves after") {
					heard = c.hears()
				}
				if !strings.HasPrefix(heard, `{"id":"1","type":"error","payload":[{"message":"`) {
					t.Errorf("heard %s, want an error of the subscription", heard)
				}
				c.say(`{"type":"ping"}`).wants(`{"type":"pong"}`)
			})
		}
	})
	for _, u := range upstreams {
		u.stop()
	}
	noMoreGoroutines(t, before)
}

// An upstream that does not accept the credentials of a connection is not asked again.
func TestARefusedSubscriptionIsNotBegunAgain(t *testing.T) {
	for name, f := range map[string]fault{
		"unauthorised at once": {early: served(0x88, "\x11\x31Unauthorized")},
		"forbidden after an event": {frames: func(id string) []byte {
			return append(served(0x81, strings.ReplaceAll(good, "$ID", id)), served(0x88, "\x11\x33")...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := withSockets(t)
			u := newFaulty(t, f)
			defer u.stop()
			api := s.api("ws", "graphql-transport-ws", "")
			api.GraphQL.Proxy.Subscriptions = &definition.GraphQLSubscriptions{Reconnect: 1}
			api.Proxy.TargetURL = "http://" + u.Addr().String()
			s.MustLoad(api)
			s.key("key", keyOfAll)
			c := s.dial("/ws/", "graphql-transport-ws", "key").greets()
			heard := c.say(asks("subscribe", "1", "subscription{count(to:1)}")).hears()
			if strings.Contains(heard, `"count":1`) {
				heard = c.hears()
			}
			if !strings.HasPrefix(heard, `{"id":"1","type":"error"`) {
				t.Errorf("heard %s, want an error of the subscription", heard)
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			if len(u.open) != 1 {
				t.Errorf("the upstream was asked %d times", len(u.open))
			}
		})
	}
}

// faultyMeter is a stage's fault: it panics at the end of certain exchanges.
type faultyMeter struct {
	pipeline.Meter
	fails func(*pipeline.Exchange) bool
}

func (m faultyMeter) Done(ex *pipeline.Exchange) {
	if m.fails(ex) {
		panic("a fault of the gateway")
	}
	m.Meter.Done(ex)
}

// A fault of the gateway's in an operation, or while a credential is looked at, ends the
// connection, and no other.
func TestFaultsOfTheGatewayEndTheirConnectionOnly(t *testing.T) {
	s := lateSockets(t, func(d *gateway.Deps) {
		made := d.Stages.Meter
		d.Stages.Meter = func(api string) pipeline.Meter {
			return faultyMeter{made(api), func(ex *pipeline.Exchange) bool {
				return ex.Rejection != nil || len(ex.Operations) > 0 && ex.Operations[0].Name == "Faulty"
			}}
		}
	})
	const internal = "websocket: close 1011 (internal server error): Internal Server Error"
	open := func(protocol string, head http.Header) *client {
		c, resp, err := s.dialWith("/keys/", protocol, head)
		if err != nil {
			t.Fatal(resp, err)
		}
		return c
	}
	key := http.Header{"Authorization": {"key"}}
	other := open("graphql-transport-ws", key).greets()
	faulty := open("graphql-transport-ws", key).greets().say(asks("subscribe", "1", "query Faulty {a}"))
	got := faulty.hears()
	for strings.HasPrefix(got, `{"id":"1"`) { // its answer, unless the end is faster
		got = faulty.hears()
	}
	if got != internal {
		t.Errorf("the connection of the fault: %s", got)
	}
	open("graphql-transport-ws", nil).say(initOf("Authorization", "wrong")).wants(internal)
	open("graphql-ws", nil).say(initOf("Authorization", "wrong")).wants(`{"type":"connection_error","payload":{"message":"Internal Server Error"}}`, internal)
	other.say(asks("subscribe", "1", "{a}")).wants(`{"id":"1","type":"next","payload":{"data":{"a":15}}}`, `{"id":"1","type":"complete"}`)
	if got := s.Gateway.Connections().Panics; got != 3 {
		t.Errorf("%d faults are counted", got)
	}
}

// An upstream that never acknowledges, and one that sends events of others: the client leaves,
// and what it did not ask for has not reached it.
func TestUpstreamsThatDoNotAnswer(t *testing.T) {
	for name, f := range map[string]fault{
		"no acknowledgement": {early: []byte{}},
		"events of others":   say(0x81, `{"id":"other$ID","type":"next","payload":{"data":{"count":7}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := withSockets(t)
			u := newFaulty(t, f)
			defer u.stop()
			api := s.api("ws", "graphql-transport-ws", "")
			api.Proxy.TargetURL = "http://" + u.Addr().String()
			s.MustLoad(api)
			s.key("key", keyOfAll)
			before := runtime.NumGoroutine() - 1 // the upstream ends
			c := s.dial("/ws/", "graphql-transport-ws", "key").greets()
			c.say(asks("subscribe", "1", "subscription{count(to:1)}")).say(`{"type":"ping"}`)
			for heard := c.hears(); heard != `{"type":"pong"}`; heard = c.hears() {
				if !strings.Contains(heard, `"error"`) {
					t.Errorf("heard %s", heard)
				}
			}
			c.Close()
			u.stop()
			noMoreGoroutines(t, before)
		})
	}
}

// noMoreGoroutines waits until there are no more goroutines than before.
func noMoreGoroutines(t *testing.T, before int) {
	t.Helper()
	within := time.Now().Add(60 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(within) {
			var stacks strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, &stacks)
		}
		time.Sleep(time.Millisecond)
	}
}
