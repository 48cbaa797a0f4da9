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
	exchange, topic := name("x"), "orders"
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
