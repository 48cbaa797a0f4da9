package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// within bounds what a test waits for.
const within = time.Minute

// A reader notes what it gets: the bodies, with "gap" before those that follow one.
type reader struct {
	got   chan string
	began chan *stream.Position
	at    *stream.Position // behind the last one; of the goroutine that reads, and after it
}

func (r *reader) Begin(at *stream.Position, gap bool) error {
	r.at = at
	if gap {
		r.got <- "gap"
	}
	r.began <- &stream.Position{Next: slices.Clone(at.Next), Mark: at.Mark}
	return nil
}

func (r *reader) Take(e *stream.Entry) error {
	r.at.Pass(e)
	r.got <- string(e.Body)
	return nil
}

// want waits for bodies, in any order.
func (r *reader) want(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case one := <-r.got:
			got = append(got, one)
		case <-time.After(within):
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

type logRig struct {
	*Log
	t      testing.TB
	client *kgo.Client
}

func newLogRig(t *testing.T, c *kfake.Cluster) *logRig {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &logRig{NewLog(&streams.BrokerInput{Servers: servers(c), Topics: []string{"orders"}}, site(t)), t, client}
}

// publish publishes numbers, to the partitions in turn.
func (r *logRig) publish(partitions, from, to int) {
	r.t.Helper()
	for i := from; i <= to; i++ {
		record := &kgo.Record{Topic: "orders", Partition: int32(i % partitions), Value: fmt.Append(nil, i)}
		if err := r.client.ProduceSync(r.t.Context(), record).FirstErr(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// begun starts to read and waits for it. What it returns last ends it.
func (r *logRig) begun(from *stream.Position) (to *reader, at *stream.Position, end func()) {
	r.t.Helper()
	to = &reader{got: make(chan string, 10_000), began: make(chan *stream.Position, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Read(ctx, from, to); !errors.Is(err, context.Canceled) {
			r.t.Error(err)
		}
	}()
	end = func() { cancel(); <-done }
	r.t.Cleanup(end)
	select {
	case at = <-to.began:
	case <-time.After(within):
		_, err := r.site.State.Last()
		r.t.Fatalf("reading does not begin; last error %v", err)
	}
	return to, at, end
}

func numbers(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// evict has the broker forget the messages of a partition before an offset.
func (r *logRig) evict(partition int32, before int64) {
	r.t.Helper()
	ask := kmsg.NewPtrDeleteRecordsRequest()
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic = "orders"
	one := kmsg.NewDeleteRecordsRequestTopicPartition()
	one.Partition, one.Offset = partition, before
	topic.Partitions = append(topic.Partitions, one)
	ask.Topics = append(ask.Topics, topic)
	got, err := ask.RequestWith(r.t.Context(), r.client)
	if err == nil {
		err = kerr.ErrorForCode(got.Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestALogIsReadFromAnyPosition(t *testing.T) {
	r := newLogRig(t, cluster(t, 3, "orders"))
	r.publish(3, 1, 5)
	live, _, end := r.begun(nil)
	r.publish(3, 6, 100)
	live.want(t, numbers(6, 100)...)
	end()
	id := r.ID(live.at)
	r.publish(3, 101, 150)
	at, ok := r.Position(id)
	if !ok {
		t.Fatalf("the id %q is none", id)
	}
	later, _, _ := r.begun(at)
	later.want(t, numbers(101, 150)...)
	at.Next = at.Next[:2] // of a time when there were two partitions
	more, _, _ := r.begun(at)
	var all []string
	for i := 3; i <= 150; i++ {
		if i%3 == 2 || i > 100 { // partition 2 is read as a whole
			all = append(all, fmt.Sprint(i))
		}
	}
	more.want(t, append(all, "2")...)
	if p, _ := r.site.State.Phase(); p != stream.Running {
		t.Errorf("phase %s", p)
	}
}

func TestAnEvictedPositionIsAGap(t *testing.T) {
	r := newLogRig(t, cluster(t, 2, "orders"))
	r.publish(2, 1, 100) // 50 in each partition
	live, _, _ := r.begun(nil)
	mark := live.at.Mark
	r.evict(1, 10)

	late, at, _ := r.begun(&stream.Position{Next: []int64{0, 9}, Mark: mark})
	if got := <-late.got; got != "gap" {
		t.Errorf("first %q", got)
	}
	if !slices.Equal(at.Next, []int64{0, 10}) {
		t.Errorf("at %v", at.Next)
	}
	kept, _, _ := r.begun(&stream.Position{Next: []int64{49, 50}, Mark: mark})
	r.publish(2, 101, 101)
	kept.want(t, "100", "101")
	beyond, at, _ := r.begun(&stream.Position{Next: []int64{1000, 20}, Mark: mark})
	beyond.want(t, "gap")
	if !slices.Equal(at.Next, []int64{0, 10}) {
		t.Errorf("at %v", at.Next)
	}
}

func TestATopicThatWasMadeAgainIsAGap(t *testing.T) {
	r := newLogRig(t, cluster(t, 1, "orders"))
	r.publish(1, 1, 10)
	live, at, _ := r.begun(nil)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.TopicNames = []string{"orders"}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = new("orders")
	remove.Topics = append(remove.Topics, topic)
	if _, err := remove.RequestWith(t.Context(), r.client); err != nil {
		t.Fatal(err)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	again := kmsg.NewCreateTopicsRequestTopic()
	again.Topic, again.NumPartitions, again.ReplicationFactor = "orders", 1, 1
	create.Topics = append(create.Topics, again)
	if got, err := create.RequestWith(t.Context(), r.client); err != nil || got.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, got)
	}
	r.client.PurgeTopicsFromClient("orders")
	r.publish(1, 11, 30)
	live.want(t, append([]string{"gap"}, numbers(11, 30)...)...)
	old, _, _ := r.begun(at)
	old.want(t, append([]string{"gap"}, numbers(11, 30)...)...)
}

func TestPartitionsThatATopicGetsAreRead(t *testing.T) {
	r := newLogRig(t, cluster(t, 1, "orders"))
	r.growth = 20 * time.Millisecond
	live, _, _ := r.begun(nil)
	r.publish(1, 1, 3)
	live.want(t, numbers(1, 3)...)
	ask := kmsg.NewPtrCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = "orders", 3
	ask.Topics = append(ask.Topics, topic)
	if got, err := ask.RequestWith(t.Context(), r.client); err != nil || got.Topics[0].ErrorCode != 0 {
		t.Fatalf("%v, %+v", err, got)
	}
	r.client.ForceMetadataRefresh()
	r.client.PurgeTopicsFromClient("orders")
	r.publish(3, 4, 20)
	live.want(t, numbers(4, 20)...)
}

func TestTooManyPartitionsAreRefused(t *testing.T) {
	r := newLogRig(t, cluster(t, 200, "orders"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Read(ctx, nil, new(reader)) }()
	wait.Until(t, "reading fails", func() bool { _, err := r.site.State.Last(); return err != nil })
	if _, err := r.site.State.Last(); !strings.Contains(err.Error(), "topic orders has 200 partitions") {
		t.Error(err)
	}
	cancel()
	<-done
	if p, _ := r.site.State.Phase(); p != stream.Failing {
		t.Errorf("phase %s", p)
	}
}

func TestIDsOfPositions(t *testing.T) {
	l := new(Log)
	for _, next := range [][]int64{{0}, {7}, {0, 0, 0}, {5, 1 << 40, 3}, {1<<63 - 1}, make([]int64, 32), make([]int64, 180)} {
		p := &stream.Position{Next: next, Mark: 0xdeadbeef}
		id := l.ID(p)
		back, ok := l.Position(id)
		if !ok || !slices.Equal(back.Next, next) || back.Mark != p.Mark {
			t.Errorf("%v became %q and %+v", next, id, back)
		}
	}
	if id := l.ID(&stream.Position{Next: make([]int64, 300)}); id != "" {
		t.Errorf("300 partitions: %q", id)
	}
}

func FuzzLogPosition(f *testing.F) {
	l := new(Log)
	for _, id := range []string{"", "A", "AAAAAA", "AAAAAAAA", "start-0", l.ID(&stream.Position{Next: []int64{3, 1, 2}, Mark: 9}), strings.Repeat("A", 256)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, ok := l.Position(id)
		if !ok {
			return
		}
		if len(p.Next) == 0 || slices.Min(p.Next) < 0 {
			t.Errorf("%q is %+v", id, p)
		}
		if back := l.ID(p); back != id {
			t.Errorf("%q became %q", id, back)
		}
	})
}
