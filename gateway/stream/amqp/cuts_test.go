package amqp

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// Methods of the class basic (AMQP 0-9-1 section 1.8), as they stand in frames.
const (
	basicPublish = 60<<16 | 40
	basicDeliver = 60<<16 | 60
	basicAck     = 60<<16 | 80
)

// A cutter passes connections to a broker on, and cuts them at some of the frames of a
// method.
type cutter struct {
	addr   string
	broker string
	at     cut
	most   int64 // cuts

	seen, cuts atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// A cut says at which frames a connection is cut.
type cut struct {
	name     string
	method   uint32
	toBroker bool // the frames that the gateway sends
	passed   bool // the frame is passed on first
	every    int64
}

func newCutter(t testing.TB, broker string, at cut, most int64) *cutter {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{addr: ln.Addr().String(), broker: broker, at: at, most: most, conns: make(map[net.Conn]struct{})}
	t.Cleanup(func() {
		ln.Close()
		c.mu.Lock()
		defer c.mu.Unlock()
		for conn := range c.conns {
			conn.Close()
		}
	})
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go c.pass(client)
		}
	}()
	return c
}

// pass passes a connection on until it ends or is cut.
func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.broker)
	if err != nil {
		return
	}
	defer server.Close()
	for _, conn := range []net.Conn{client, server} {
		c.mu.Lock()
		c.conns[conn] = struct{}{}
		c.mu.Unlock()
	}
	ended := make(chan struct{}, 2)
	one := func(from, to net.Conn, toBroker bool) {
		c.frames(from, to, toBroker)
		ended <- struct{}{}
	}
	go one(client, server, true)
	go one(server, client, false)
	<-ended
	client.Close() // with what is on its way in both directions
	server.Close()
	<-ended
	c.mu.Lock()
	delete(c.conns, client)
	delete(c.conns, server)
	c.mu.Unlock()
}

// frames passes frames on, up to the one at which the connection is cut.
func (c *cutter) frames(from, to net.Conn, toBroker bool) {
	in := bufio.NewReaderSize(from, 64<<10)
	if toBroker { // the protocol header
		if _, err := io.CopyN(to, in, 8); err != nil {
			return
		}
	}
	for {
		head, err := in.Peek(7)
		if err != nil {
			return
		}
		size := int64(7 + binary.BigEndian.Uint32(head[3:]) + 1)
		var method uint32
		if head[0] == 1 { // a method
			if head, err = in.Peek(11); err != nil {
				return
			}
			method = binary.BigEndian.Uint32(head[7:])
		}
		cut := method == c.at.method && toBroker == c.at.toBroker && c.seen.Add(1)%c.at.every == 0 && c.cuts.Add(1) <= c.most
		if cut && !c.at.passed {
			return
		}
		if _, err := io.CopyN(to, in, size); err != nil || cut {
			return
		}
	}
}

// TestConnectionsThatAreCutLoseNothing: at each step between a publisher and a consumer,
// in both directions.
func TestConnectionsThatAreCutLoseNothing(t *testing.T) {
	b := broker(t)
	for _, at := range []cut{
		{"before a message is published", basicPublish, true, false, 211},
		{"within a message that is published", basicPublish, true, true, 211},
		{"before a confirmation comes", basicAck, false, false, 5},
		{"after a confirmation has come", basicAck, false, true, 5},
		{"before a message is delivered", basicDeliver, false, false, 211},
		{"within a message that is delivered", basicDeliver, false, true, 211},
		{"before an acknowledgement goes", basicAck, true, false, 5},
		{"after an acknowledgement has gone", basicAck, true, true, 5},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			countThroughCuts(t, b.Addr, at)
		})
	}
}

const (
	cutMessages = 2000
	mostCuts    = 5
	cutWindow   = 64 // of publishing, and of consuming
)

// countThroughCuts publishes and consumes messages, and counts them.
func countThroughCuts(t *testing.T, brokerAddr string, at cut) {
	c := newCutter(t, brokerAddr, at, mostCuts)
	name := names(t)
	exchange, topic := name("x"), stream.NewID()
	pool := testPool(t)
	pool.timing.first, pool.timing.longest = 10*time.Millisecond, 100*time.Millisecond
	side := site(t)
	side.MaxInFlight = cutWindow
	to := newFlow()
	settled := make([]atomic.Int64, cutMessages) // by the flow
	seen := make([]atomic.Int64, cutMessages)
	to.take = func(m taken) bool {
		seen[number(t, m.ID)].Add(1)
		m.settle(nil)
		return true
	}
	input(t, pool, &streams.BrokerInput{Servers: servers(c.addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, side, to)
	wait.Until(t, "the input runs", phase(side, stream.Running))
	o := output(t, pool, &streams.BrokerOutput{Servers: servers(c.addr, exchange), Topic: streams.Template(topic), MaxInFlight: cutWindow}, site(t))

	window := make(chan struct{}, cutWindow)
	failed := make(chan error, cutMessages)
	for i := range cutMessages {
		select {
		case window <- struct{}{}:
		case <-time.After(within):
			t.Fatalf("%d messages: they are not settled", i)
		}
		o.Write(message(numbered(i), "x"), func(err error) {
			if settled[i].Add(1); err != nil {
				failed <- err
			}
			<-window
		})
	}
	count := func(of []atomic.Int64) (some, more int) {
		for i := range of {
			n := of[i].Load()
			some, more = some+int(min(n, 1)), more+int(max(n-1, 0))
		}
		return some, more
	}
	wait.Until(t, "every message is settled and received", func() bool {
		some, _ := count(settled)
		got, _ := count(seen)
		return some == cutMessages && got == cutMessages
	})
	select {
	case err := <-failed:
		t.Errorf("%d messages are settled with an error; one of them: %v", len(failed)+1, err)
	default:
	}
	if _, more := count(settled); more > 0 {
		t.Errorf("messages are settled %d times more than once", more)
	}
	cuts := int(min(c.cuts.Load(), mostCuts))
	if cuts < mostCuts {
		t.Errorf("%d cuts of %d frames, want %d", cuts, c.seen.Load(), mostCuts)
	}
	if _, more := count(seen); more > cuts*2*cutWindow {
		t.Errorf("%d duplicates, more than %d for each cut", more, 2*cutWindow)
	} else {
		t.Logf("%d cuts, %d duplicates", cuts, more)
	}
}

func number(t testing.TB, id string) (n int) {
	for _, c := range []byte(id[1:]) {
		n = n*10 + int(c-'0')
	}
	if numbered(n) != id {
		t.Errorf("message %q was never written", id)
	}
	return n
}
