package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// The library's own broker in memory stands for a server: it speaks the protocol, keeps
// offsets of groups and moves partitions between their members.
func cluster(t *testing.T, partitions int32, topics ...string) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topics...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func site(t *testing.T) *stream.Site {
	return &stream.Site{
		Org: "org", API: "api", Stream: "orders", Label: "broker", MaxMessageBytes: 1 << 20, MaxInFlight: 256,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), State: new(stream.State), Dial: new(net.Dialer).DialContext,
	}
}

func servers(c *kfake.Cluster) streams.Servers {
	return streams.Servers{Scheme: streams.Kafka, Addresses: c.ListenAddrs(), ClientID: "sluice"}
}

func output(t *testing.T, c *streams.BrokerOutput, s *stream.Site) *Output {
	t.Helper()
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 256
	}
	o, err := NewOutput(c, s)
	if err != nil {
		t.Fatal(err)
	}
	o.Start()
	t.Cleanup(func() { o.Close(t.Context()) })
	wait.Until(t, "the output has demand", o.Demand().On)
	return o
}

func write(o *Output, m *stream.Message) error {
	settled := make(chan error, 1)
	o.Write(m, func(err error) { settled <- err })
	return <-settled
}

func message(id, body string) *stream.Message {
	return &stream.Message{ID: id, Body: []byte(body), At: time.Now(), Attempt: 1}
}

// sink is a flow that keeps what it takes until the test settles it.
type sink struct {
	demand *stream.Demand

	mu    sync.Mutex
	got   []*stream.Message
	open  map[string]stream.Settle // by body
	takes func(*stream.Message) error
}

func newSink() *sink {
	return &sink{demand: stream.NewDemand(true), open: make(map[string]stream.Settle)}
}

func (s *sink) Demand() *stream.Demand { return s.demand }

// Take settles at once if takes is set.
func (s *sink) Take(m *stream.Message, settle stream.Settle) bool {
	s.mu.Lock()
	s.got = append(s.got, m)
	takes := s.takes
	if takes == nil {
		s.open[string(m.Body)] = settle
	}
	s.mu.Unlock()
	if takes != nil {
		settle(takes(m))
	}
	return true
}

func (s *sink) bodies() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.got {
		all = append(all, string(m.Body))
	}
	return all
}

func (s *sink) settle(body string, err error) {
	s.mu.Lock()
	settle := s.open[body]
	delete(s.open, body)
	s.mu.Unlock()
	settle(err)
}

func (s *sink) all() func(*stream.Message) error { return func(*stream.Message) error { return nil } }

func input(t *testing.T, c *kfake.Cluster, group string, to stream.Flow, s *stream.Site) *Input {
	t.Helper()
	in := NewInput(&streams.BrokerInput{
		Servers: servers(c), Topics: []string{"orders"}, ConsumerGroup: group, StartFromOldest: true, CheckpointLimit: 1024, CommitPeriod: 100 * time.Millisecond,
	}, s)
	in.Start(to)
	return in
}

func end(in *Input) {
	in.Stop(context.Background())
	in.Close()
}

// committed returns the offset that a group has committed for partition 0, -1 for none.
func committed(t *testing.T, c *kfake.Cluster, group string) int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	offsets, err := fetchOffset(t.Context(), client, group)
	if err != nil {
		t.Fatal(err)
	}
	return offsets
}

func count(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("m%03d", i))
	}
	return all
}

// What is published is taken in order, with id, key and metadata, and committed once all
// before it is settled.
func TestMessagesGoThroughInOrder(t *testing.T) {
	c := cluster(t, 1, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	m := message("id-1", "m000")
	m.Key, m.Meta = []byte("k"), []stream.Meta{{Name: "colour", Value: "blue"}}
	if err := write(o, m); err != nil {
		t.Fatal(err)
	}
	for _, body := range count(5)[1:] {
		if err := write(o, message("id", body)); err != nil {
			t.Fatal(err)
		}
	}
	to, s := newSink(), site(t)
	in := input(t, c, "g", to, s)
	wait.Until(t, "all are taken", func() bool { return len(to.bodies()) == 5 })
	if got := to.bodies(); !slices.Equal(got, count(5)) {
		t.Errorf("%v", got)
	}
	if first := to.got[0]; first.ID != "id-1" || string(first.Key) != "k" || first.Value("colour") != "blue" || first.Attempt != 1 {
		t.Errorf("%+v", first)
	}
	for _, body := range []string{"m003", "m001", "m000"} { // m002 is open
		to.settle(body, nil)
	}
	wait.Until(t, "what has no gap is committed", func() bool { return committed(t, c, "g") == 2 })
	to.settle("m002", nil)
	wait.Until(t, "the rest is committed", func() bool { return committed(t, c, "g") == 4 })
	if lag := s.State.Lag.Load(); lag < 0 {
		t.Errorf("lag %d", lag)
	}
	end(in)

	again := newSink()
	again.takes = again.all()
	second := input(t, c, "g", again, site(t))
	wait.Until(t, "what was not settled comes again", func() bool { return len(again.bodies()) > 0 })
	end(second)
	if got := again.bodies(); !slices.Equal(got, []string{"m004"}) {
		t.Errorf("%v came again", got)
	}
}

// A message that fails for a while is passed on again, and nothing behind it is committed
// before it.
func TestFailedMessagesComeAgain(t *testing.T) {
	c := cluster(t, 1, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	for _, body := range count(3) {
		if err := write(o, message("id", body)); err != nil {
			t.Fatal(err)
		}
	}
	to, s := newSink(), site(t)
	to.takes = func(m *stream.Message) error {
		if string(m.Body) == "m001" && m.Attempt < 2 {
			return errors.New("not now")
		}
		return nil
	}
	in := input(t, c, "g", to, s)
	defer end(in)
	wait.Until(t, "all is committed", func() bool { return committed(t, c, "g") == 3 })
	if got := to.bodies(); !slices.Equal(got, []string{"m000", "m001", "m002", "m001"}) {
		t.Errorf("%v", got)
	}
	if s.State.Again.Load() != 1 {
		t.Errorf("%d came again", s.State.Again.Load())
	}
}

// A message that can never be passed on stops its partition; it is not skipped.
func TestAMessageThatIsRefusedStopsItsPartition(t *testing.T) {
	c := cluster(t, 1, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	to, s := newSink(), site(t)
	to.takes = func(m *stream.Message) error {
		if string(m.Body) == "m001" {
			return stream.Failf(stream.Refused, "no")
		}
		return nil
	}
	in := input(t, c, "g", to, s)
	defer end(in)
	for _, body := range count(3) {
		if err := write(o, message("id", body)); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "the input fails", func() bool { p, _ := s.State.Phase(); return p == stream.Failing })
	wait.Until(t, "what is before it is committed", func() bool { return committed(t, c, "g") == 1 })
	if _, err := s.State.Last(); err == nil || !strings.Contains(err.Error(), "stops at offset 1; give the stream a dead_letter") {
		t.Errorf("%v", err)
	}
}

// Without demand nothing is passed on; with it, everything.
func TestNothingIsPassedOnWithoutDemand(t *testing.T) {
	c := cluster(t, 1, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	to, s := newSink(), site(t)
	to.takes = to.all()
	to.demand.Set(false)
	in := input(t, c, "g", to, s)
	defer end(in)
	for _, body := range count(10) {
		if err := write(o, message("id", body)); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "the input waits", func() bool { p, _ := s.State.Phase(); return p == stream.Waiting })
	if got := to.bodies(); len(got) > 0 {
		t.Errorf("%v", got)
	}
	to.demand.Set(true)
	wait.Until(t, "all is committed", func() bool { return committed(t, c, "g") == 10 })
}

// Two members of a group share partitions; each message reaches one, and when a member
// leaves the other gets what that had not settled.
func TestPartitionsMoveBetweenMembers(t *testing.T) {
	const messages = 400
	c := cluster(t, 4, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders", Key: "${! content() }"}, site(t))
	var mu sync.Mutex
	seen := make(map[string]int)
	takes := func(m *stream.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(m.Body)]++
		return nil
	}
	one, two := newSink(), newSink()
	one.takes, two.takes = takes, takes
	first := input(t, c, "g", one, site(t))
	second := input(t, c, "g", two, site(t))
	for i, body := range count(messages) {
		if err := write(o, message("id", body)); err != nil {
			t.Fatal(err)
		}
		if i == messages/2 {
			end(second)
		}
	}
	wait.Until(t, "all are taken", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == messages })
	end(first)
	for body, n := range seen {
		if n > 1 {
			t.Logf("%s came %d times", body, n) // at least once
		}
	}
}

// Without a group messages from now on come, to every input.
func TestWithoutAGroupEveryInputHasEveryMessage(t *testing.T) {
	c := cluster(t, 1, "orders")
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	if err := write(o, message("id", "before")); err != nil {
		t.Fatal(err)
	}
	sinks := []*sink{newSink(), newSink()}
	for _, to := range sinks {
		to.takes = to.all()
		in := input(t, c, "", to, site(t))
		defer end(in)
	}
	wait.Until(t, "both have a message", func() bool {
		if err := write(o, message("id", "m")); err != nil {
			t.Fatal(err)
		}
		return len(sinks[0].bodies()) > 0 && len(sinks[1].bodies()) > 0
	})
	for _, to := range sinks {
		if slices.Contains(to.bodies(), "before") {
			t.Error("a message from before the start came")
		}
	}
}

// The outcome of publishing has a class.
func TestWhatCannotBePublishedIsRefused(t *testing.T) {
	c := cluster(t, 1, "orders")
	named := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "${! content() }"}, site(t))
	for topic, want := range map[string]string{"": "the topic has 0 bytes; it must have 1 to 249", strings.Repeat("t", 250): "the topic has 250 bytes", "none": "the topic does not exist"} {
		err := write(named, message("id", topic))
		if stream.ClassOf(err) != stream.Permanent || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v", topic, err)
		}
	}
	o := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "orders"}, site(t))
	if err := write(o, message("id", strings.Repeat("x", 2<<20))); stream.ClassOf(err) != stream.Permanent {
		t.Errorf("a large message: %v", err)
	}
	dropped := output(t, &streams.BrokerOutput{Servers: servers(c), Topic: "none", DropUnroutable: true}, site(t))
	if err := write(dropped, message("id", "x")); err != nil {
		t.Errorf("with unroutable: drop: %v", err)
	}
}

// An output without its broker has no demand, and gets it back.
func TestAnOutputWithoutItsBrokerHasNoDemand(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	s := site(t)
	s.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("refused by the guard")
	}
	o, err := NewOutput(&streams.BrokerOutput{Servers: streams.Servers{Addresses: []string{ln.Addr().String()}}, Topic: "orders", MaxInFlight: 1}, s)
	if err != nil {
		t.Fatal(err)
	}
	o.Start()
	wait.Until(t, "the output reconnects", func() bool { p, _ := s.State.Phase(); return p == stream.Reconnecting })
	if o.Demand().On() {
		t.Error("it has demand")
	}
	if _, last := s.State.Last(); last == nil || !strings.Contains(last.Error(), "refused by the guard") {
		t.Errorf("%v", last)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	o.Close(ctx)
	if err := write(o, message("id", "x")); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("%v", err)
	}
}
