package amqp

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// TestABrokerThatTakesNothingMakesNoMessageFail: one with an alarm, of memory or disk, stops
// to read from its publishers.
func TestABrokerThatTakesNothingMakesNoMessageFail(t *testing.T) {
	b, name := ownBroker(t), names(t)
	exchange, topic := name("x"), stream.NewID()
	pool := testPool(t)
	to, in, out := newFlow(), site(t), site(t)
	input(t, pool, &streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, in, to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	o := outputAway(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: streams.Template(topic), MaxInFlight: 16}, out)
	const total = 1000
	settled := make(chan error, total)
	put := func(from, to int) {
		for i := from; i < to; i++ {
			o.Write(message(numbered(i), strings.Repeat("x", 1000)), func(err error) { settled <- err })
		}
	}
	wait.Until(t, "the output has demand", o.Demand().On)
	b.Control(t, "set_vm_memory_high_watermark", "0")
	cleared := false
	t.Cleanup(func() {
		if !cleared {
			b.Control(t, "set_vm_memory_high_watermark", "0.6")
		}
	})
	put(0, 1)
	wait.Until(t, "the output waits", phase(out, stream.Waiting))
	if o.Demand().On() {
		t.Error("there is demand while the broker takes nothing")
	}
	if _, err := out.State.Last(); err == nil || !strings.Contains(err.Error(), "the broker takes no messages: low on memory") {
		t.Errorf("last error: %v", err)
	}
	put(1, total)
	attempts := out.State.Attempts.Load()
	b.Control(t, "set_vm_memory_high_watermark", "0.6")
	cleared = true
	for range total {
		select {
		case err := <-settled:
			if err != nil {
				t.Fatalf("settled with %v", err)
			}
		case <-time.After(within):
			t.Fatal("not all are settled")
		}
	}
	for range total {
		to.next(t).settle(nil)
	}
	wait.Until(t, "the output has demand again", o.Demand().On)
	if now := out.State.Attempts.Load(); now != attempts {
		t.Errorf("%d connections, want %d", now, attempts)
	}
}

// TestAQueueThatIsDeletedIsDeclaredAgain: consuming goes on without help.
func TestAQueueThatIsDeletedIsDeclaredAgain(t *testing.T) {
	b, name := broker(t), names(t)
	exchange, topic := name("x"), name("t")
	pool, to, in := testPool(t), newFlow(), site(t)
	input(t, pool, &streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, in, to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	o := output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: streams.Template(topic)}, site(t))
	for i := range 3 {
		if _, err := side(t, b.Addr).QueueDelete("svc.g."+topic, false, false, false); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the input has noticed", func() bool { return in.State.Errors[stream.Transient].Load() == uint64(i+1) })
		if _, err := in.State.Last(); !strings.Contains(errorText(err), "was deleted") {
			t.Errorf("last error: %v", err)
		}
		wait.Until(t, "the input runs again", phase(in, stream.Running))
		if err := write(t, o, message(numbered(i), "x")); err != nil {
			t.Fatal(err)
		}
		m := to.next(t)
		if m.ID != numbered(i) {
			t.Errorf("got %s", m.ID)
		}
		m.settle(nil)
	}
}

// TestAQueueOfOtherArgumentsFailsOnce: what does not mend without a change is said, and not
// tried in a loop.
func TestAQueueOfOtherArgumentsFailsOnce(t *testing.T) {
	b, name := broker(t), names(t)
	exchange, topic := name("x"), name("t")
	pool, to, in := testPool(t), newFlow(), site(t)
	pool.timing.lasting = time.Hour
	connector, err := pool.NewInput(&streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g", CheckpointLimit: 10}, in)
	if err != nil {
		t.Fatal(err)
	}
	connector.Start(to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	ch := side(t, b.Addr)
	if _, err := ch.QueueDelete("svc.g."+topic, false, false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("svc.g."+topic, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		t.Skip("the input was quicker") // it declares the queue as soon as it learns of the end
	}
	wait.Until(t, "the input fails", phase(in, stream.Failing))
	if _, err := in.State.Last(); !strings.Contains(errorText(err), "406") || !strings.Contains(errorText(err), "inequivalent arg") {
		t.Errorf("last error: %v", err)
	}
	if n := in.State.Attempts.Load(); n > 3 {
		t.Errorf("%d attempts", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	connector.Stop(ctx)
	connector.Close()
}

// TestWithoutDemandNoMessageIsHeld: the broker closes channels that hold messages for too
// long, and counts each time that it delivers one.
func TestWithoutDemandNoMessageIsHeld(t *testing.T) {
	b, name := ownBroker(t), names(t)
	b.Control(t, "eval", "application:set_env(rabbit, consumer_timeout, 1000), application:set_env(rabbit, channel_tick_interval, 100).")
	t.Cleanup(func() {
		b.Control(t, "eval", "application:set_env(rabbit, consumer_timeout, 1800000), application:set_env(rabbit, channel_tick_interval, 60000).")
	})
	exchange, topic := name("x"), stream.NewID()
	pool, to, in := testPool(t), newFlow(), site(t)
	const total = 100
	input(t, pool, &streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, in, to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	to.demand.Set(false)
	wait.Until(t, "the input waits", phase(in, stream.Waiting))
	// Demand that comes and goes has messages delivered, and handed back.
	to.take = func(taken) bool { return false }
	o := output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: streams.Template(topic)}, site(t))
	for i := range total {
		if err := write(t, o, message(numbered(i), "x")); err != nil {
			t.Fatal(err)
		}
	}
	to.demand.Set(true)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	to.demand.Set(false)
	wait.Until(t, "the input waits", phase(in, stream.Waiting))
	wait.Until(t, "all messages are back", func() bool { return ready(t, b.Addr, "svc.g."+topic) == total })
	// A channel that holds messages is closed by now: this one is what the broker does so to.
	probe := side(t, b.Addr)
	if _, err := probe.QueueDeclare("probe", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := probe.PublishWithContext(t.Context(), "", "probe", false, false, amqp.Publishing{}); err != nil {
		t.Fatal(err)
	}
	closed := probe.NotifyClose(make(chan *amqp.Error, 1))
	if _, err := probe.Consume("probe", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-closed:
		if err == nil || err.Code != amqp.PreconditionFailed {
			t.Fatalf("the channel that holds a message ended with %v", err)
		}
	case <-time.After(within):
		t.Fatal("the broker has not closed the channel that holds a message")
	}
	if n := in.State.Attempts.Load(); n != 1 {
		t.Errorf("the input was connected %d times; last error: %v", n, lastOf(in))
	}
	to.take = nil
	to.demand.Set(true)
	seen := make(map[string]bool)
	for range total { // the broker does not keep the order of what is handed back
		m := to.next(t)
		if seen[m.ID] || m.Attempt > 2 {
			t.Fatalf("message %s, attempt %d, seen before: %t", m.ID, m.Attempt, seen[m.ID])
		}
		seen[m.ID] = true
		m.settle(nil)
	}
}

func lastOf(s *stream.Site) error {
	_, err := s.State.Last()
	return err
}

// TestAKilledBrokerLosesNothingThatItConfirmed: it is killed twice under load, and started
// again.
func TestAKilledBrokerLosesNothingThatItConfirmed(t *testing.T) {
	b, name := ownBroker(t), names(t)
	const total, window, kills = 6000, 128, 2
	exchange, topic := name("x"), stream.NewID()
	pool, to, in := testPool(t), newFlow(), site(t)
	in.MaxInFlight = window
	got := make(chan string, 2*total)
	to.take = func(m taken) bool {
		got <- m.ID
		m.settle(nil)
		return true
	}
	input(t, pool, &streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, in, to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	b.SaveQueues(t)
	o := output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: streams.Template(topic), MaxInFlight: window}, site(t))
	free, settled := make(chan struct{}, window), make(chan error, total)
	go func() {
		for i := range total {
			free <- struct{}{}
			o.Write(message(numbered(i), "x"), func(err error) {
				settled <- err
				<-free
			})
		}
	}()
	failures, confirmed, killed := 0, 0, 0
	seen := make(map[string]int)
	for deadline := time.After(3 * within); confirmed+failures < total || len(seen) < confirmed; {
		select {
		case id := <-got:
			seen[id]++
		case err := <-settled:
			if err != nil {
				failures++
				t.Errorf("settled with %v", err)
			} else {
				confirmed++
			}
			if killed < kills && confirmed >= (killed+1)*total/(kills+1) {
				killed++
				b.Kill()
				if err := b.Start(); err != nil {
					t.Fatal(err)
				}
			}
		case <-deadline:
			t.Fatalf("%d confirmed, %d received", confirmed, len(seen))
		}
	}
	duplicates := 0
	for _, n := range seen {
		duplicates += n - 1
	}
	if bound := kills * 2 * window; duplicates > bound {
		t.Errorf("%d duplicates, more than %d", duplicates, bound)
	}
	t.Logf("published %d, confirmed %d, received %d, lost 0, duplicates %d", total, confirmed, len(seen), duplicates)
}

func TestOutputsShareAConnection(t *testing.T) {
	b, name := broker(t), names(t)
	pool := testPool(t)
	const outputs = 200
	before := runtime.NumGoroutine()
	for range outputs {
		output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "a", DropUnroutable: true}, site(t))
	}
	pool.mu.Lock()
	groups := len(pool.groups)
	pool.mu.Unlock()
	if groups != 1 {
		t.Errorf("%d groups of connections", groups)
	}
	if n := (runtime.NumGoroutine() - before) / outputs; n > 2 {
		t.Errorf("%d goroutines for each output", n)
	}
}
