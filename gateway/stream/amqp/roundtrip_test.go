package amqp

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestAMessageKeepsItsPartsOnItsWay(t *testing.T) {
	b, name := broker(t), names(t)
	exchange, topic := name("x"), name("orders")
	pool, to := testPool(t), newFlow()
	in := site(t)
	input(t, pool, &streams.BrokerInput{Servers: servers(b.Addr, exchange), Topics: []string{topic}, ConsumerGroup: "g"}, in, to)
	wait.Until(t, "the input runs", phase(in, stream.Running))
	out := site(t)
	o := output(t, pool, &streams.BrokerOutput{Servers: servers(b.Addr, exchange), Topic: streams.Template(topic)}, out)

	sent := message("id-1", `{"a":1}`)
	sent.Key = []byte("key\x00")
	sent.Meta = []stream.Meta{{Name: "user", Value: "ann"}, {Name: "empty", Value: ""}}
	if err := write(t, o, sent); err != nil {
		t.Fatal(err)
	}
	got := to.next(t)
	slices.SortFunc(got.Meta, func(a, b stream.Meta) int { return strings.Compare(a.Name, b.Name) })
	want := []stream.Meta{{Name: "empty", Value: ""}, {Name: "user", Value: "ann"}}
	if got.ID != "id-1" || string(got.Body) != `{"a":1}` || string(got.Key) != "key\x00" || got.Attempt != 1 || !slices.Equal(got.Meta, want) {
		t.Errorf("got %+v with %q", got.Message, got.Body)
	}
	got.settle(nil)
	if n := out.State.Messages.Load(); n != 1 {
		t.Errorf("the output counted %d messages", n)
	}
	if n := in.State.Messages.Load(); n != 1 {
		t.Errorf("the input counted %d messages", n)
	}
}
