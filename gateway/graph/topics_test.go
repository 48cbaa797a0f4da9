package graph_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// A topicWorld is a gateway with a graph that has topics, and a stream that publishes what is
// posted to them.
type topicWorld struct {
	*world
	engine *engine.Engine
}

func newTopicWorld(t *testing.T, config string) *topicWorld {
	t.Helper()
	e := engine.New(engine.Options{MaxStreams: 10, MaxBytes: 16 << 20, Dial: new(net.Dialer).DialContext, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	w := &topicWorld{&world{sources: newSources(t), t: t}, e}
	w.Gateway = gatewaytest.Start(t, gatewaytest.Options{
		GraphQL: func(o *graphql.Options) { o.WebSockets = true },
		Deps:    func(d *gateway.Deps) { d.Stages.Streams = e },
	})
	t.Cleanup(func() {
		if err := e.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	for _, id := range []string{"1", "2"} {
		w.says("/score", `{"score":`+id+`0}`)
	}
	w.serve(config)
	return w
}

// serve has the gateway serve the graph with a configuration of its topics.
func (w *topicWorld) serve(config string) {
	w.t.Helper()
	const schema = `type Query { none: Int } type Order { id: ID! total: Float score: Int }
		type Subscription { order: Order  placed: Order  count: Int }`
	graph := fmt.Sprintf(`{"api_id": "graph", "name": "graph", "use_keyless": true, "proxy": {"listen_path": "/graph/", "target_url": ""},
	  "graphql": {"enabled": true, "execution_mode": "executionEngine", "schema": %s, "proxy": {"subscriptions": {"reconnect": 3}}, "engine": {
	    "field_configs": [{"type_name": "Subscription", "field_name": "order", "disable_default_mapping": true},
	      {"type_name": "Subscription", "field_name": "placed", "path": ["event", "order"]}],
	    "data_sources": [
	      {"kind": "REST", "name": "none", "root_fields": [{"type": "Query", "fields": ["none"]}], "config": {"url": "%s/none"}},
	      {"kind": "REST", "name": "scores", "root_fields": [{"type": "Order", "fields": ["score"]}], "config": {"url": "%[2]s/score?of={{.object.id}}"}},
	      {"kind": "msgbroker", "name": "orders", "root_fields": [{"type": "Subscription", "fields": ["order", "placed", "count"]}], "config": %s}]}}}`,
		quoted(schema), w.URL, config)
	source := strings.NewReplacer(`"group_id": "g", `, ``, `"broker_addresses"`, `"addresses"`, `"topics": ["`, `"topic": "`, `"]}`, `"}`).Replace(config)
	posts := `{"api_id": "posts", "name": "posts", "use_keyless": true, "proxy": {"listen_path": "/posts/", "target_url": "", "strip_listen_path": true},
	  "x-svc-streaming": {"streams": {"in": {"input": {"http_server": {"path": "/in"}}, "output": {"msgbroker": ` + source + `}}}}}`
	var apis []*definition.API
	for _, text := range []string{graph, posts} {
		api, err := definition.ParseAPI([]byte(text))
		if err != nil {
			w.t.Fatal(err)
		}
		apis = append(apis, api)
	}
	w.MustLoad(apis...)
}

// publish has a message published. While the queue of a consumer group is not there yet, it is
// repeated.
func (w *topicWorld) publish(message string) {
	w.t.Helper()
	wait.Until(w.t, "a message is published", func() bool {
		resp, err := http.Post("http://"+w.Addr+"/posts/in", "application/json", strings.NewReader(message))
		if err != nil {
			w.t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 && resp.StatusCode != 503 {
			w.t.Fatalf("a message was answered with %d %s", resp.StatusCode, text)
		}
		return resp.StatusCode == 200
	})
}

// readers waits until so many event streams take messages.
func (w *topicWorld) readers(n int64) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("%d readers take messages", n), func() bool {
		all := w.engine.Streams(streamstate.Filter{API: "graph", Nodes: true})
		if len(all) != 1 || all[0].Name != "graphql/orders" {
			return false
		}
		clients, running := int64(0), true
		for _, node := range all[0].Nodes {
			clients += node.Clients
			running = running && node.Phase == streamstate.Running
		}
		return clients == n && (running || n == 0)
	})
}

// Messages of a topic are the events of all subscriptions, whatever the client speaks, joined
// with what other sources have.
func TestTopics(t *testing.T) {
	addresses := map[string]string{"in the gateway": "inproc://"}
	addresses["RabbitMQ"] = "amqp://" + testenv.RabbitMQ(t).Addr
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			w := newTopicWorld(t, `{"broker_addresses": ["`+address+`"], "topics": ["orders"]}`)
			whole := w.listens(t, "http", `subscription { o: order { id score total } }`, nil)
			part := w.listens(t, "graphql-transport-ws", `subscription { placed { total } }`, nil)
			w.readers(2)
			same := w.listens(t, "graphql-ws", `subscription { count }`, nil)
			w.publish("{\n\"id\": 1, \"total\": 2.5,\n \"count\": 3, \"event\": {\"order\": {\"total\": 4}}}")
			whole.wants(`{"data":{"o":{"id":"1","score":20,"total":2.5}}}`)
			part.wants(`{"data":{"placed":{"total":4}}}`)
			w.publish(`not JSON`)
			fault := func(field string) string {
				return `{"errors":[{"message":"data source \"orders\": the message is not JSON","path":["` + field + `"]}],"data":{"` + field + `":null}}`
			}
			whole.wants(fault("o"))
			part.wants(fault("placed"))
			w.publish(`null`)
			whole.wants(`{"data":{"o":null}}`)
			part.wants(`{"data":{"placed":null}}`)
			w.publish(`{"count": 7}`)
			for got := ""; got != `{"data":{"count":7}}`; {
				if got = same.next(); !strings.HasPrefix(got, "{") {
					t.Fatal(got)
				}
			}
			w.readers(2) // connections share one
			same.end()
			part.end()
			w.readers(1)
			whole.end()
			w.readers(0)
		})
	}
}

// A change of the topics ends event streams; another change of the configuration leaves them
// alone.
func TestTopicsChange(t *testing.T) {
	w := newTopicWorld(t, `{"broker_addresses": ["inproc://"], "topics": ["orders"]}`)
	over := w.listens(t, "http", `subscription { count }`, nil)
	w.readers(1)
	w.publish(`{"count": 1}`)
	over.wants(`{"data":{"count":1}}`)
	w.serve(`{"broker_addresses": ["inproc://"], "topics": ["orders"]}`)
	w.publish(`{"count": 2}`) // the same stream goes on
	over.wants(`{"data":{"count":2}}`)
	w.serve(`{"broker_addresses": ["inproc://"], "group_id": "g", "topics": ["orders"]}`)
	over.wants(`{"errors":[{"message":"The upstream has failed."}]}`)
	next := w.listens(t, "http", `subscription { count }`, nil)
	w.publish(`{"count": 3}`)
	next.wants(`{"data":{"count":3}}`)
}

// Messages of a consumer group wait at the broker while there is no subscriber, and are events of
// the next subscription. RabbitMQ holds those without a group for it as well, for a minute.
func TestTopicsWaitForSubscribers(t *testing.T) {
	address := "amqp://" + testenv.RabbitMQ(t).Addr
	for _, c := range []struct {
		group string
		by    []string
	}{{`"group_id": "g", `, []string{"graphql-transport-ws", "http"}}, {"", []string{"graphql-transport-ws"}}} {
		w := newTopicWorld(t, `{"broker_addresses": ["`+address+`"], `+c.group+`"topics": ["waiting`+strconv.Itoa(len(c.group))+`"]}`)
		for round, by := range c.by {
			w.publish(fmt.Sprintf(`{"count": %d}`, 10*round))
			w.publish(fmt.Sprintf(`{"count": %d}`, 10*round+1))
			next := w.listens(t, by, `subscription { count }`, nil)
			next.wants(fmt.Sprintf(`{"data":{"count":%d}}`, 10*round))
			next.wants(fmt.Sprintf(`{"data":{"count":%d}}`, 10*round+1))
			if next.end(); round+1 < len(c.by) {
				w.readers(0)
			}
		}
	}
}

// A subscription on a connection begins again at the topics of a changed source.
func TestTopicsChangeUnderConnections(t *testing.T) {
	config := `{"broker_addresses": ["amqp://` + testenv.RabbitMQ(t).Addr + `"], "group_id": "g", "topics": ["%s"]}`
	w := newTopicWorld(t, fmt.Sprintf(config, "former"))
	over := w.listens(t, "graphql-transport-ws", `subscription { count }`, nil)
	w.publish(`{"count": 1}`)
	over.wants(`{"data":{"count":1}}`)
	w.serve(fmt.Sprintf(config, "next"))
	w.publish(`{"count": 2}`) // waits for the subscription
	over.wants(`{"data":{"count":2}}`)
}
