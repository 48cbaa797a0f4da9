package amqp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// within bounds what a test waits for.
const within = time.Minute

// testPool returns a pool with short pauses. It checks that connections end.
func testPool(t testing.TB) *Pool {
	p := NewPool()
	p.timing.longest, p.timing.lasting, p.timing.idle, p.timing.lag = time.Second, time.Second, 100*time.Millisecond, 50*time.Millisecond
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		p.Close(ctx)
		if ctx.Err() != nil {
			t.Error("connections did not end")
		}
	})
	return p
}

// names makes names that no other test uses.
func names(t testing.TB) func(string) string {
	prefix := strings.ToLower(strings.NewReplacer("/", ".", " ", "").Replace(t.Name())) + "." + stream.NewID()[:13]
	return func(s string) string { return prefix + "." + s }
}

func site(t testing.TB) *stream.Site {
	return &stream.Site{
		Org: "org", API: "api", Stream: "orders", Label: "broker", MaxMessageBytes: 1 << 20, MaxInFlight: 256,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), State: new(stream.State), Dial: new(net.Dialer).DialContext,
	}
}

func servers(addr, exchange string) streams.Servers {
	return streams.Servers{Scheme: streams.AMQP, Addresses: []string{addr}, VHost: "/", ClientID: "sluice", Exchange: exchange}
}

// output starts an output and waits until it has demand.
func output(t testing.TB, p *Pool, c *streams.BrokerOutput, s *stream.Site) *Output {
	t.Helper()
	o := outputAway(t, p, c, s)
	wait.Until(t, "the output has demand", o.Demand().On)
	return o
}

func outputAway(t testing.TB, p *Pool, c *streams.BrokerOutput, s *stream.Site) *Output {
	t.Helper()
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 256
	}
	o, err := p.NewOutput(c, s)
	if err != nil {
		t.Fatal(err)
	}
	o.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		o.Close(ctx)
	})
	return o
}

// input starts an input. It is stopped and closed with t.
func input(t testing.TB, p *Pool, c *streams.BrokerInput, s *stream.Site, to stream.Flow) *Input {
	t.Helper()
	if c.CheckpointLimit == 0 {
		c.CheckpointLimit = 1024
	}
	in, err := p.NewInput(c, s)
	if err != nil {
		t.Fatal(err)
	}
	in.Start(to)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		in.Stop(ctx)
		in.Close()
	})
	return in
}

func message(id, body string) *stream.Message {
	return &stream.Message{ID: id, Body: []byte(body), At: time.Now(), Attempt: 1}
}

// write writes a message and returns what it is settled with.
func write(t testing.TB, o *Output, m *stream.Message) error {
	t.Helper()
	settled := make(chan error, 1)
	o.Write(m, func(err error) { settled <- err })
	select {
	case err := <-settled:
		return err
	case <-time.After(within):
		t.Fatalf("message %s is not settled within %s", m.ID, within)
		return nil
	}
}

// taken is a message with its settlement.
type taken struct {
	*stream.Message
	settle stream.Settle
}

// flow takes messages. take decides about each; without it they are put into got, and
// settled by the test.
type flow struct {
	demand *stream.Demand
	take   func(taken) bool
	got    chan taken
}

func newFlow() *flow { return &flow{demand: stream.NewDemand(true), got: make(chan taken, 10_000)} }

func (f *flow) Demand() *stream.Demand { return f.demand }

func (f *flow) Take(m *stream.Message, settle stream.Settle) bool {
	if f.take != nil {
		return f.take(taken{m, settle})
	}
	f.got <- taken{m, settle}
	return true
}

func (f *flow) next(t testing.TB) taken {
	t.Helper()
	select {
	case m := <-f.got:
		return m
	case <-time.After(within):
		t.Fatalf("no message within %s", within)
		return taken{}
	}
}

// side is a plain client of the broker.
func side(t testing.TB, addr string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial("amqp://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// ready returns how many messages wait in a queue, -1 if it does not exist.
func ready(t testing.TB, addr, queue string) int {
	t.Helper()
	ch := side(t, addr)
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return -1
	}
	return q.Messages
}

func phase(s *stream.Site, want stream.Phase) func() bool {
	return func() bool {
		p, _ := s.State.Phase()
		return p == want
	}
}

func numbered(i int) string { return fmt.Sprintf("m%06d", i) }

// broker returns the server that tests share.
func broker(t testing.TB) *testenv.Broker { return testenv.RabbitMQ(t) }

// ownBroker returns a server that the test may kill and change, if it undoes that: tests of
// this package do not run side by side.
func ownBroker(t testing.TB) *testenv.Broker { return broker(t) }
