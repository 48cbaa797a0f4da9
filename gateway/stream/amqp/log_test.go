package amqp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// entries is a reader that writes down what it gets: the bodies, with "gap" before those that
// follow one.
type entries struct {
	got   chan string
	began chan *stream.Position
	at    *stream.Position // behind the last one; of the goroutine that reads, and after it
	wait  func() error     // before each
}

func newEntries() *entries {
	return &entries{got: make(chan string, 20_000), began: make(chan *stream.Position, 100)}
}

func (e *entries) Begin(at *stream.Position, gap bool) error {
	e.at = at
	if gap {
		e.got <- "gap"
	}
	e.began <- &stream.Position{Next: slices.Clone(at.Next), Mark: at.Mark}
	return nil
}

func (e *entries) Take(one *stream.Entry) error {
	if e.wait != nil {
		if err := e.wait(); err != nil {
			return err
		}
	}
	e.at.Pass(one)
	e.got <- string(one.Body)
	return nil
}

func (e *entries) want(t testing.TB, want ...string) {
	t.Helper()
	for _, one := range want {
		select {
		case got := <-e.got:
			if got != one {
				t.Fatalf("got %q, want %q", got, one)
			}
		case <-time.After(within):
			t.Fatalf("no %q within %s", one, within)
		}
	}
}

// A logRig has a log with a plain client that publishes to its topic.
type logRig struct {
	*Log
	t     testing.TB
	out   *amqp.Channel
	acks  chan amqp.Confirmation
	first *stream.Position // of the reading that began last
}

func newLogRig(t testing.TB, addr string, change ...func(*queue)) *logRig {
	t.Helper()
	name := names(t)
	r := &logRig{t: t}
	pool := testPool(t)
	pool.timing.locate = time.Second
	c := &streams.BrokerInput{Servers: servers(addr, name("x")), Topics: []string{name("orders")}, CheckpointLimit: 1024, Retain: &streams.Retain{MaxBytes: 1 << 20}}
	var err error
	if r.Log, err = pool.NewLog(c, site(t)); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&r.Log.queue)
	}
	r.open(addr)
	return r
}

// open opens the channel on which the rig publishes.
func (r *logRig) open(addr string) {
	r.t.Helper()
	r.out = side(r.t, addr)
	if err := r.out.Confirm(false); err != nil {
		r.t.Fatal(err)
	}
	r.acks = r.out.NotifyPublish(make(chan amqp.Confirmation, 20_000))
}

// publish publishes numbers and waits for the broker.
func (r *logRig) publish(from, to int, padding ...string) {
	r.t.Helper()
	for i := from; i <= to; i++ {
		body := fmt.Sprint(i) + strings.Join(padding, "")
		if err := r.out.Publish("", r.queue.name, false, false, amqp.Publishing{Body: []byte(body), MessageId: stream.NewID()}); err != nil {
			r.t.Fatal(err)
		}
	}
	for range to - from + 1 {
		if !r.confirmed() {
			r.t.Fatal("the broker has refused a message")
		}
	}
}

// confirmed reports whether the broker has the next message that it has not confirmed yet.
func (r *logRig) confirmed() bool {
	r.t.Helper()
	select {
	case c := <-r.acks:
		return c.Ack
	case <-time.After(within):
		r.t.Fatal("the broker confirms nothing")
		return false
	}
}

// publishAnew publishes a number to a queue that was just declared again. For a moment the
// broker may refuse messages, and close the channels on which they come.
func (r *logRig) publishAnew(addr string, n int) {
	r.t.Helper()
	wait.Until(r.t, "the queue takes a message", func() bool {
		r.open(addr)
		err := r.out.Publish("", r.queue.name, false, false, amqp.Publishing{Body: fmt.Append(nil, n), MessageId: stream.NewID()})
		return err == nil && r.confirmed()
	})
}

// reads reads in the background. What it returns ends it, and returns its error.
func (r *logRig) reads(from *stream.Position, to stream.Reader) (end func() error) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Read(ctx, from, to) }()
	var result error
	over := false
	end = func() error {
		if !over {
			over = true
			cancel()
			result = <-done
		}
		return result
	}
	r.t.Cleanup(func() { _ = end() })
	return end
}

// begun starts to read and waits for it.
func (r *logRig) begun(from *stream.Position) (*entries, func() error) {
	r.t.Helper()
	e := newEntries()
	end := r.reads(from, e)
	select {
	case r.first = <-e.began:
	case <-time.After(within):
		r.t.Fatalf("reading does not begin; last error %v", lastError(r.site))
	}
	return e, end
}

func lastError(s *stream.Site) error { _, err := s.State.Last(); return err }

func numbers(from, to int) (all []string) {
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestALogIsReadFromAnyPosition(t *testing.T) {
	r := newLogRig(t, broker(t).Addr)
	live, end := r.begun(nil) // declares the queue, which is empty
	r.publish(1, 300)
	live.want(t, numbers(1, 300)...)
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	id := r.ID(live.at)
	r.publish(301, 400)

	now, _ := r.begun(nil)
	at, ok := r.Position(id)
	if !ok {
		t.Fatalf("the id %q is none", id)
	}
	later, _ := r.begun(at)
	later.want(t, numbers(301, 400)...)
	start, _ := r.begun(&stream.Position{Next: []int64{0}})
	start.want(t, numbers(1, 400)...)
	r.publish(401, 401)
	now.want(t, "401")
	later.want(t, "401")
	start.want(t, "401")
	if p, _ := r.site.State.Phase(); p != stream.Running {
		t.Errorf("phase %s", p)
	}
}

// A position before the first message is one, too: an interrupted reading misses nothing.
func TestAReadingThatIsInterruptedMissesNothing(t *testing.T) {
	b := broker(t)
	r := newLogRig(t, b.Addr)
	_, endEmpty := r.begun(nil)
	if err := endEmpty(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.publish(1, 1)
	again, end := r.begun(r.first)
	again.want(t, "1")
	if err := end(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}

	quiet, _ := r.begun(nil)
	r.group.mu.Lock()
	links := slices.Clone(r.group.links)
	r.group.mu.Unlock()
	if len(links) != 1 {
		t.Fatalf("%d connections", len(links))
	}
	links[0].kill()
	wait.Until(t, "the connection is lost", func() bool { return lastError(r.site) != nil })
	r.publish(2, 3)
	quiet.want(t, "2", "3")
}

func TestAnEvictedPositionIsAGap(t *testing.T) {
	r := newLogRig(t, broker(t).Addr, func(q *queue) {
		q.args = amqp.Table{"x-queue-type": "stream", "x-max-length-bytes": int64(200_000), "x-stream-max-segment-size-bytes": int64(50_000)}
	})
	live, _ := r.begun(nil)
	padding := strings.Repeat(" ", 100)
	r.publish(1, 1, padding)
	live.want(t, "1"+padding)
	old, _ := r.begun(&stream.Position{Next: []int64{0}})
	old.want(t, "1"+padding)
	at := &stream.Position{Next: slices.Clone(old.at.Next), Mark: old.at.Mark}
	for i := 2; i < 5000; i += 300 {
		r.publish(i, i+299, padding)
		for j := range 300 { // over the offsets that the broker uses itself
			live.want(t, fmt.Sprint(i+j)+padding)
		}
	}

	late, _ := r.begun(at)
	oldest := r.ID(r.first)
	late.want(t, "gap")
	first := <-late.got
	if first == "2"+padding {
		t.Error("nothing was evicted")
	}
	// The position of the gap is one to go on at.
	p, ok := r.Position(oldest)
	if !ok {
		t.Fatalf("%q is no position", oldest)
	}
	again, _ := r.begun(p)
	again.want(t, first)
}

func TestAQueueThatWasMadeAgainIsAGap(t *testing.T) {
	b := broker(t)
	r := newLogRig(t, b.Addr)
	live, _ := r.begun(nil)
	r.publish(1, 5)
	live.want(t, numbers(1, 5)...)
	if _, err := side(t, b.Addr).QueueDelete(r.queue.name, false, false, false); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the queue is declared again", func() bool { return ready(t, b.Addr, r.queue.name) == 0 })
	r.publishAnew(b.Addr, 6)
	r.publish(7, 7)
	live.want(t, "gap", "6", "7") // by its offset, its position is behind the end
	r.publish(8, 20)
	live.want(t, numbers(8, 20)...)

	// Another message has the offset of the fifth.
	other, _ := r.begun(&stream.Position{Next: []int64{5}, Mark: 1})
	other.want(t, append([]string{"gap"}, numbers(6, 20)...)...)
}

func TestAReaderThatIsSlowReadsAll(t *testing.T) {
	r := newLogRig(t, broker(t).Addr)
	_, end := r.begun(nil)
	_ = end()
	r.publish(1, 500)
	e, n := newEntries(), 0
	e.wait = func() error {
		if n++; n%100 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	}
	r.reads(&stream.Position{Next: []int64{0}}, e)
	e.want(t, numbers(1, 500)...)

	full := errors.New("full")
	e = newEntries()
	e.wait = func() error { return full }
	if err := r.Read(t.Context(), &stream.Position{Next: []int64{0}}, e); err != full {
		t.Errorf("the error of the reader became %v", err)
	}
}

func FuzzLogPosition(f *testing.F) {
	for _, id := range []string{"", "-", "start-0", "start-12", "1b4f0a97-312", "00000001-0", "00000000-1", "1B4F0A97-312", "start-012", "start--1", "start-9223372036854775807", "ffffffff-9223372036854775806"} {
		f.Add(id)
	}
	l := new(Log)
	f.Fuzz(func(t *testing.T, id string) {
		p, ok := l.Position(id)
		if !ok {
			return
		}
		if len(p.Next) != 1 || p.Next[0] < 0 || len(id) > stream.MaxPositionID {
			t.Errorf("%q is %+v", id, p)
		}
		if back := l.ID(p); back != id {
			t.Errorf("%q became %q", id, back)
		}
	})
}
