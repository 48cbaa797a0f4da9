package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// A gateway serves one API with streams.
type gateway struct {
	t      testing.TB
	engine *engine.Engine
	stage  atomic.Pointer[engine.Stage]
	api    *pipeline.API
	addr   string
}

func newGateway(t testing.TB, streaming string) *gateway {
	t.Helper()
	g := &gateway{t: t, engine: engine.New(engine.Options{
		Dial: new(net.Dialer).DialContext, MaxStreams: 10, MaxBytes: 256 << 20, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = ln.Addr().String()
	g.serve(streaming)
	s := wire.New(wire.Config{
		MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
	}, g, nil)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.engine.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		_ = s.Shutdown(ctx) // connections that tests leave open are cut
		<-done
	})
	return g
}

// serve changes the definition.
func (g *gateway) serve(streaming string) {
	g.t.Helper()
	def := &definition.API{ID: "orders", OrgID: "org", Streaming: json.RawMessage(streaming)}
	stage, err := g.engine.Compile(def)
	if err != nil {
		g.t.Fatal(err)
	}
	before := g.api
	g.api = &pipeline.API{Definition: def, Version: &pipeline.Version{Forward: stage}}
	var gone []*pipeline.API
	if before != nil {
		gone = append(gone, before)
	}
	g.engine.Swap([]*pipeline.API{g.api}, gone)
	g.stage.Store(stage)
}

// Handle implements wire.Handler.
func (g *gateway) Handle(call *wire.Call) {
	ex := pipeline.For(call)
	defer ex.Release()
	ex.API, ex.Path = g.api, call.Path
	if g.stage.Load().Handle(ex) == pipeline.Rejected {
		ex.Answer.Status, ex.Answer.Body = ex.Rejection.Status, ex.Rejection.JSON()
	}
}

// Refuse implements wire.Handler.
func (g *gateway) Refuse(call *wire.Call, fault *wire.Fault) { call.Answer.Status = fault.Status }

// A feed is a client's connection.
type feed struct {
	conn net.Conn
	in   *bufio.Reader
	id   string // of the last event
}

// open opens a connection that goes on behind an id.
func (g *gateway) open(id string) (*feed, error) {
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		return nil, err
	}
	header := ""
	if id != "" {
		header = "Last-Event-ID: " + id + "\r\n"
	}
	fmt.Fprintf(conn, "GET /feed HTTP/1.1\r\nHost: a\r\n%s\r\n", header)
	raw := bufio.NewReader(conn)
	head, err := http.ReadResponse(raw, nil)
	if err == nil && head.StatusCode != 200 {
		err = fmt.Errorf("status %d", head.StatusCode)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &feed{conn, bufio.NewReader(head.Body), id}, nil
}

// next returns the name and the data of the next event.
func (f *feed) next() (name, data string, err error) {
	has := false
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return name, data, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch field, value, _ := strings.Cut(line, ": "); {
		case line == "" && has:
			return name, data, nil
		case field == "id":
			f.id = value
		case field == "event":
			name = value
		case field == "data":
			data, has = value, true
		}
	}
}

// stroll gets messages 1 to n, of which the stream keeps the odd ones, over connections that
// end at random. It returns how many did. tenth is called after each tenth message.
func (g *gateway) stroll(n int, began func()) (cuts int) {
	seen := make(map[int]bool)
	id := ""
	for len(seen) < n/2 {
		f, err := g.open(id)
		if err != nil {
			g.t.Error(err)
			return cuts
		}
		for range 1 + rand.IntN(n/3) {
			if id == "" {
				g.settle(f)
				began()
			}
			name, data, err := f.next()
			number, _ := strconv.Atoi(data)
			if err != nil || name != "" || number%2 == 0 {
				g.t.Errorf("event %q with %q, %v", name, data, err)
				f.conn.Close()
				return cuts
			}
			if seen[number] {
				g.t.Errorf("message %d came again", number)
			}
			seen[number] = true
			id = f.id
			if len(seen) == n/2 {
				break
			}
		}
		f.conn.Close()
		cuts++
	}
	for i := 1; i <= n; i += 2 {
		if !seen[i] {
			g.t.Errorf("message %d is missing", i)
		}
	}
	return cuts
}

// settle waits until a client that has just connected has its place.
func (g *gateway) settle(f *feed) {
	for line := ""; line != ": stream\n"; {
		var err error
		if line, err = f.in.ReadString('\n'); err != nil {
			g.t.Error(err)
			return
		}
	}
}

// strolls has clients that are cut off at random get the messages that publish publishes.
func (g *gateway) strolls(clients, n int, publish func(from, to int)) {
	var all sync.WaitGroup
	var cuts atomic.Int64
	began := make(chan struct{}, clients)
	for range clients {
		all.Go(func() {
			var once sync.Once
			cuts.Add(int64(g.stroll(n, func() { once.Do(func() { began <- struct{}{} }) })))
		})
	}
	for range clients {
		<-began
	}
	for i := 1; i <= n; i += 100 {
		publish(i, i+99)
	}
	all.Wait()
	if int(cuts.Load()) < 2*clients {
		g.t.Errorf("only %d connections ended", cuts.Load())
	}
	g.checkState(n)
}

// checkState checks what operators see of the stream.
func (g *gateway) checkState(n int) {
	g.t.Helper()
	wait.Until(g.t, "the clients have left", func() bool {
		all := g.engine.Streams(streamstate.Filter{Nodes: true})
		return len(all) == 1 && all[0].Nodes[1].Clients == 0
	})
	s := g.engine.Streams(streamstate.Filter{Nodes: true})[0]
	in, out := s.Nodes[0], s.Nodes[1]
	if in.Side != streamstate.Input || in.Phase != streamstate.Running || in.Messages < uint64(n) {
		g.t.Errorf("the input: %+v", in)
	}
	if out.Side != streamstate.Output || out.Phase != streamstate.Waiting || out.Messages < uint64(n/2) {
		g.t.Errorf("the output: %+v", out)
	}
}

// streamsOf returns the definition of a stream of odd numbers.
func streamsOf(input string) string {
	return `{"streams": {"feed": {"input": {"msgbroker": ` + input + `},
		"pipeline": {"processors": [{"mapping": "root = this.n"}, {"filter": "this % 2 == 1"}]},
		"output": {"http_server": {"path": "/feed", "resume": true}}}}}`
}

// A rabbit publishes to the log of a topic.
type rabbit struct {
	t        testing.TB
	conn     *amqp.Connection
	ch       *amqp.Channel
	confirms chan amqp.Confirmation
	topic    string
}

func newRabbit(t testing.TB, addr string) *rabbit {
	t.Helper()
	conn, err := amqp.Dial("amqp://" + addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	r := &rabbit{t: t, conn: conn, topic: strings.ToLower(t.Name()) + stream.NewID()[:13]}
	r.open()
	return r
}

func (r *rabbit) open() {
	r.t.Helper()
	var err error
	if r.ch, err = r.conn.Channel(); err == nil {
		err = r.ch.Confirm(false)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.confirms = r.ch.NotifyPublish(make(chan amqp.Confirmation, 10_000))
}

func (r *rabbit) publish(from, to int) {
	for i := from; i <= to; i++ {
		err := r.ch.Publish("svc.streams", r.topic, true, false, amqp.Publishing{Body: fmt.Appendf(nil, `{"n": %d}`, i), MessageId: stream.NewID()})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	for range to - from + 1 {
		if c := <-r.confirms; !c.Ack {
			r.t.Fatal("the broker has refused a message")
		}
	}
}

func (r *rabbit) input(addr string) string {
	return fmt.Sprintf(`{"addresses": ["amqp://%s"], "topics": [%q], "retain": {"max_bytes": "64MiB"}}`, addr, r.topic)
}

func TestClientsOfALogOfRabbitMQGoOn(t *testing.T) {
	b := testenv.RabbitMQ(t)
	r := newRabbit(t, b.Addr)
	g := newGateway(t, streamsOf(r.input(b.Addr)))
	g.strolls(100, 3000, r.publish)
}

func TestClientsOfALogOfKafkaGoOn(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	g := newGateway(t, streamsOf(fmt.Sprintf(`{"addresses": ["kafka://%s"], "topics": ["orders"]}`, c.ListenAddrs()[0])))
	g.strolls(100, 3000, func(from, to int) {
		var all []*kgo.Record
		for i := from; i <= to; i++ {
			all = append(all, &kgo.Record{Value: fmt.Appendf(nil, `{"n": %d}`, i)})
		}
		if err := client.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	})
}

// A change of the stream, and a broker that is killed, lose nothing for clients that connect
// again.
func TestClientsGoOnAfterAChange(t *testing.T) {
	b := testenv.OwnRabbitMQ(t)
	r := newRabbit(t, b.Addr)
	g := newGateway(t, streamsOf(r.input(b.Addr)))
	want := func(f *feed, want int) {
		t.Helper()
		name, data, err := f.next()
		if err != nil || name != "" || data != strconv.Itoa(want) {
			t.Fatalf("event %q with %q, %v; want %d", name, data, err, want)
		}
	}
	f, err := g.open("")
	if err != nil {
		t.Fatal(err)
	}
	r.publish(1, 2)
	want(f, 1)

	g.serve(strings.Replace(streamsOf(r.input(b.Addr)), "this.n", "this.n + 0", 1))
	if _, _, err := f.next(); err == nil {
		t.Error("the connection goes on")
	}
	r.publish(3, 4)
	if f, err = g.open(f.id); err != nil {
		t.Fatal(err)
	}
	want(f, 3)

	b.Control(t, "stop_app")
	b.Control(t, "start_app")
	again := newRabbit(t, b.Addr)
	again.topic = r.topic
	wait.Until(t, "the log is there again", func() bool {
		_, err := again.ch.QueueDeclarePassive("svc."+r.topic+".log", true, false, false, false, nil)
		if err != nil {
			again.open() // the error has closed the channel
		}
		return err == nil
	})
	again.publish(5, 8)
	want(f, 5)
	want(f, 7)
	f.conn.Close()
	again.publish(9, 10)
	if f, err = g.open(f.id); err != nil {
		t.Fatal(err)
	}
	want(f, 9)
	f.conn.Close()
}

// A message that the processors refuse is left out, and does not hold up the others.
func TestARefusedMessageIsLeftOut(t *testing.T) {
	b := testenv.RabbitMQ(t)
	r := newRabbit(t, b.Addr)
	g := newGateway(t, `{"streams": {"feed": {"input": {"msgbroker": `+r.input(b.Addr)+`},
		"retry": {"max_attempts": 2, "initial": "1ms"},
		"pipeline": {"processors": [{"mapping": "root = if this.n == 2 { throw(\"no\") } else { this.n }"}]},
		"output": {"http_server": {"stream_path": "/feed", "resume": true}}}}}`)
	f, err := g.open("")
	if err != nil {
		t.Fatal(err)
	}
	r.publish(1, 3)
	for _, want := range []string{"1", "3"} {
		if _, data, err := f.next(); data != want || err != nil {
			t.Errorf("%q, %v; want %s", data, err, want)
		}
	}
}
