package amqp

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// TestNotOneUnroutableMessageIsConfirmed: the broker confirms a message that it could not
// route, after it has returned it.
func TestNotOneUnroutableMessageIsConfirmed(t *testing.T) {
	b, name := broker(t), names(t)
	exchange := name("x")
	pool := testPool(t)
	routable := output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: "${! this.topic }"}, site(t))
	ch := side(t, b.Addr)
	if _, err := ch.QueueDeclare(name("q"), true, true, true, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(name("q"), "here", exchange, false, nil); err != nil {
		t.Fatal(err)
	}
	const each = 10_000
	var wrong atomic.Pointer[string]
	done := make(chan struct{}, 2*each)
	window := make(chan struct{}, 256)
	for i := range 2 * each {
		window <- struct{}{}
		lost := i%2 == 0
		topic := "here"
		if lost {
			topic = "nowhere"
		}
		// All have the same id: only the tag tells them apart.
		routable.Write(message("same", `{"topic":"`+topic+`"}`), func(err error) {
			if lost != (err != nil) || lost && stream.ClassOf(err) != stream.Transient {
				text := numbered(i) + " to " + topic + " is settled with " + errorText(err)
				wrong.Store(&text)
			}
			<-window
			done <- struct{}{}
		})
	}
	for range 2 * each {
		select {
		case <-done:
		case <-time.After(within):
			t.Fatal("not all are settled")
		}
	}
	if text := wrong.Load(); text != nil {
		t.Error(*text)
	}
	if n := ready(t, b.Addr, name("q")); n != -1 {
		t.Errorf("another connection sees the exclusive queue: %d", n)
	}
	if q, err := ch.QueueDeclarePassive(name("q"), true, true, true, false, nil); err != nil || q.Messages != each {
		t.Errorf("the queue has %d messages, want %d (%v)", q.Messages, each, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return "nil"
	}
	return err.Error()
}

func TestUnroutableMessagesAreDroppedWhereTheConfigurationSaysSo(t *testing.T) {
	b, name := broker(t), names(t)
	o := output(t, testPool(t), &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "nowhere", DropUnroutable: true}, site(t))
	if err := write(t, o, message("1", "x")); err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBePublishedIsRefusedAtOnce(t *testing.T) {
	b, name := broker(t), names(t)
	o := output(t, testPool(t), &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: `${! this.topic }`, Key: `${! this.key.or("") }`, DropUnroutable: true}, site(t))
	for _, c := range []struct{ body, want string }{
		{`{"topic":"a*"}`, `the topic "a*" has a *`},
		{`{"topic":"a.#"}`, "has a * or #"},
		{`{"topic":""}`, "the topic has 0 bytes"},
		{`{"topic":"` + strings.Repeat("a", 256) + `"}`, "the topic has 256 bytes; it must have 1 to 255"},
		{`no JSON`, "topic: "},
		{`{"topic":"a","key":"` + strings.Repeat("k", 1025) + `"}`, "the key has 1025 bytes; it must not have more than 1024"},
	} {
		err := write(t, o, message("1", c.body))
		if err == nil || !strings.Contains(err.Error(), c.want) || stream.ClassOf(err) != stream.Permanent {
			t.Errorf("%s: %v, want %q", c.body, err, c.want)
		}
	}
	if err := write(t, o, message(strings.Repeat("i", 300), `{"topic":"a"}`)); err != nil {
		t.Errorf("a long id: %v", err)
	}
	long := message("1", `{"topic":"a"}`)
	long.Meta = []stream.Meta{{Name: strings.Repeat("n", 300), Value: "v"}, {Name: "v", Value: strings.Repeat("v", 9<<10)}}
	if err := write(t, o, long); err != nil {
		t.Errorf("long metadata: %v", err)
	}
}

func TestAMessageTheBrokerFindsTooLargeIsSettledAndOthersGoOn(t *testing.T) {
	b := ownBroker(t)
	b.Control(t, "eval", "application:set_env(rabbit, max_message_size, 1000).")
	t.Cleanup(func() { b.Control(t, "eval", "application:set_env(rabbit, max_message_size, 134217728).") })
	name := names(t)
	o := output(t, testPool(t), &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "a", DropUnroutable: true}, site(t))
	err := write(t, o, message("large", strings.Repeat("x", 2000)))
	if stream.ClassOf(err) != stream.Permanent || !strings.Contains(errorText(err), "has 2000 bytes, and the broker takes 1000") {
		t.Errorf("settled with %v", err)
	}
	if err := write(t, o, message("small", "x")); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

func TestWithoutABrokerMessagesWaitAndCloseSettlesThem(t *testing.T) {
	name := names(t)
	s := site(t)
	o := outputAway(t, testPool(t), &streams.BrokerOutput{Servers: servers("127.0.0.1:1", name("x")), Topic: "a"}, s)
	settled := make(chan error, 1)
	o.Write(message("1", "x"), func(err error) { settled <- err })
	wait.Until(t, "the output reconnects", phase(s, stream.Reconnecting))
	if o.Demand().On() {
		t.Error("there is demand without a connection")
	}
	if _, err := s.State.Last(); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("last error: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	o.Close(ctx)
	if err := <-settled; !errors.Is(err, stream.ErrClosed) {
		t.Errorf("settled with %v", err)
	}
	if err := write(t, o, message("2", "x")); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("written after Close: %v", err)
	}
}

func TestWrongCredentialsFailWithoutSayingThem(t *testing.T) {
	b, name := broker(t), names(t)
	s := site(t)
	c := &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "a"}
	c.User, c.Password = "nobody", "hunter2secret"
	o := outputAway(t, testPool(t), c, s)
	wait.Until(t, "the output fails", phase(s, stream.Failing))
	_, err := s.State.Last()
	if err == nil || !strings.Contains(err.Error(), "username or password not allowed") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("last error: %v", err)
	}
	if err := write(t, o, message("1", "x")); stream.ClassOf(err) != stream.Transient || err == nil {
		t.Errorf("settled with %v", err)
	}
}

func TestAnExchangeOfAnotherTypeFails(t *testing.T) {
	b, name := broker(t), names(t)
	ch := side(t, b.Addr)
	if err := ch.ExchangeDeclare(name("x"), amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	s := site(t)
	outputAway(t, testPool(t), &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "a"}, s)
	wait.Until(t, "the output fails", phase(s, stream.Failing))
	if _, err := s.State.Last(); !strings.Contains(errorText(err), "PRECONDITION_FAILED - inequivalent arg 'type'") {
		t.Errorf("last error: %v", err)
	}
}

func TestTheWindowBoundsWhatIsOnItsWay(t *testing.T) {
	b, name := broker(t), names(t)
	p := testPool(t)
	p.timing.confirm = within
	o := output(t, p, &streams.BrokerOutput{Servers: servers(b.Addr, name("x")), Topic: "a", DropUnroutable: true, MaxInFlight: 3}, site(t))
	// A settlement that waits keeps the confirm loop from going on.
	hold := make(chan struct{})
	first := make(chan struct{})
	o.Write(message("first", "x"), func(error) { close(first); <-hold })
	<-first
	for i := range 3 {
		o.Write(message(numbered(i), "x"), func(error) {})
	}
	if o.Demand().On() {
		t.Error("there is demand although the window is full")
	}
	close(hold)
	wait.Until(t, "the window is free", o.Demand().On)
}
