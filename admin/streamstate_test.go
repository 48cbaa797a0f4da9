package admin

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// aStreamAPI is the document of an API of streams.
func aStreamAPI(id string) string {
	return `{"openapi":"3.0.3","info":{"title":"Orders","version":"1"},"paths":{},
"x-svc-api-gateway":{"info":{"name":"API ` + id + `","id":"` + id + `"},"server":{"listenPath":{"value":"/` + id + `/"}}},
"x-svc-streaming":{"streams":{"orders":{"input":{"http_server":{"path":"/in"}},"output":{"http_server":{"path":"/out"}}}}}}`
}

// runs is a gateway's streams.
type runs []streamstate.Stream

func (r runs) Streams(f streamstate.Filter) (list []streamstate.Stream) {
	for _, s := range r {
		if s.Org == f.Org && (f.API == "" || s.API == f.API) {
			if !f.Nodes {
				s.Nodes = nil
			}
			list = append(list, s)
		}
	}
	return list
}

// What two gateways of two admins run is put together.
func TestStreamsOfAllGatewaysAreListed(t *testing.T) {
	b := start(t)
	_, url := b.serve(b.Open(store.Options{MaxConns: 10}), func(d *Deps) { d.Metrics = nil })
	org, err := b.store.FirstOrg(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.ofStreams("POST", "/api/apis/streams", b.editor, aStreamAPI("shop")).Want(200)
	b.createAPI(b.editor, "plain", "/plain")
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	later := noon.Add(time.Hour)
	node := []streamstate.Node{{Path: "input", Kind: "http_server", Side: streamstate.Input, Phase: streamstate.Running, Messages: 3, Lag: -1}}
	for name, of := range map[string]runs{
		"near": {
			{Org: org, API: "shop", Name: "orders", Phase: streamstate.Running, Since: noon, MessagesIn: 3, MessagesOut: 2, InFlight: 1, LastError: "old", LastErrorAt: &noon, Nodes: node},
			{Org: "second", API: "theirs", Name: "secret", Phase: streamstate.Running, Since: noon},
		},
		"far": {
			{Org: org, API: "shop", Name: "orders", Phase: streamstate.Failing, Since: later, MessagesIn: 4, MessagesOut: 4, LastError: "new", LastErrorAt: &later, Nodes: node},
			{Org: org, API: "gone", Name: "a", Phase: streamstate.Draining, Since: noon},
		},
	} {
		g := &fakeGateway{b: b, name: name}
		desk := streamstate.Desk{Source: of}
		g.more = func(question string) any {
			if a := desk.Answer(question, name); a != nil {
				return a
			}
			return nil
		}
		at := b.Client
		if name == "far" {
			at = b.Client.At(url)
		}
		g.run(at)
	}
	wait.Until(t, "both gateways have reported", func() bool {
		return len(b.Call("GET", "/api/gateways", b.viewer, "").Object()["gateways"].([]any)) == 2
	})
	ask := func(path, who string) (r *admintest.Answer) {
		wait.Until(t, "the gateways have answered", func() bool {
			r = b.Call("GET", path, who, "")
			return r.Status != 503 && !strings.Contains(string(r.Body), `"silent":["`)
		})
		return r
	}
	var list streamList
	ask("/api/streams", b.viewer).Want(200).Into(&list)
	if len(list.Streams) != 2 || list.Next != "" || strings.Join(list.Gateways, " ") != "far near" {
		t.Fatalf("%+v", list)
	}
	if one := list.Streams[0]; one.API != "gone" || one.APIName != "" || one.Phase != streamstate.Draining {
		t.Errorf("%+v", one)
	}
	one := list.Streams[1]
	if one.APIName != "API shop" || one.Phase != streamstate.Failing || one.MessagesIn != 7 || one.MessagesOut != 6 || one.InFlight != 1 || one.LastError != "new" || !one.LastErrorAt.Equal(later) {
		t.Errorf("%+v", one)
	}
	if on := one.Gateways; len(on) != 2 || on[0] != (streamGateway{"far", streamstate.Failing, later}) || on[1] != (streamGateway{"near", streamstate.Running, noon}) {
		t.Errorf("%+v", on)
	}
	ask("/api/streams?page_size=1", b.viewer).Want(200).Says(`"stream":"a"`, `"next":"gone/a"`)
	ask("/api/streams?after=gone/a", b.viewer).Want(200).Says(`"stream":"orders"`)
	ask("/api/streams?phase=draining", b.viewer).Want(200).Says(`"api_id":"gone"`)
	ask("/api/streams?phase=well", b.viewer).Want(400).Says("phase must be starting, running")
	if text := string(ask("/api/streams", b.other).Want(200).Body); !strings.Contains(text, "secret") || strings.Contains(text, "orders") {
		t.Errorf("another organisation: %s", text)
	}
	var status runningStreams
	ask("/api/apis/streams/shop/status", b.viewer).Want(200).Into(&status)
	if len(status.Streams) != 2 || status.Streams[0].Gateway != "far" || len(status.Streams[1].Nodes) != 1 || status.Streams[1].Nodes[0].Lag != -1 {
		t.Errorf("%+v", status)
	}
	ask("/api/apis/streams/shop/status", b.other).Want(404)
	ask("/api/apis/streams/plain/status", b.viewer).Want(404).Says("The API has no streams")
}

// tried stands for what runs the processors of streams.
type tried struct {
	api *definition.API
	of  *streamstate.Trial
}

func (r *tried) TryStream(ctx context.Context, api *definition.API, t *streamstate.Trial) (*streamstate.Tried, error) {
	if t.Stream == "hangs" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if t.Stream == "panics" {
		panic("at once")
	}
	r.api, r.of = api, t
	s := streamstate.NewShower()
	s.Step(&streamstate.TriedStep{Path: "pipeline.processors[0]", Kind: "mapping", TriedMessage: *s.Message([]byte("text"), map[string]string{"a": "b"})})
	return &s.Tried, nil
}

func TestStreamsAreTried(t *testing.T) {
	by := new(tried)
	b := start(t, func(d *Deps) { d.TryStream = by })
	b.ofStreams("POST", "/api/apis/streams", b.editor, aStreamAPI("shop")).Want(200)
	b.createAPI(b.editor, "plain", "/plain")
	const path = "/api/apis/streams/shop/try"
	b.Call("POST", path, b.viewer, `{}`).Want(403)
	b.Call("POST", path, b.other, `{"stream":"orders","body":1}`).Want(404)
	b.Call("POST", "/api/apis/streams/plain/try", b.editor, `{"stream":"orders","body":1}`).Want(404).Says("The API has no streams")
	b.Call("POST", path, b.editor, `{}`).Want(400).Says("stream: is required", "body: is required")
	b.Call("POST", path, b.editor, `{"stream":"orders","body":1,"more":1}`).Want(400)
	b.Call("POST", path, b.editor, `{"stream":"orders","body":{"a":1.50},"metadata":{"k":"v"}}`).Want(200).Says(`"steps":[{"path":"pipeline.processors[0]"`, `"body":"text"`, `"outputs":[]`)
	if got := string(by.of.Message()); got != `{"a":1.50}` || by.of.Metadata["k"] != "v" || by.api.ID != "shop" || !strings.Contains(string(by.api.Streaming), `"/in"`) {
		t.Errorf("it was asked to try %s on %s", got, by.api.Streaming)
	}
	if text := b.Call("GET", "/api/audit?object_kind=api&object_id=shop", b.admin, "").Want(200).Body; strings.Contains(string(text), "tried") {
		t.Errorf("a trial that calls nothing was recorded: %s", text)
	}
	draft := `{"streams":{"orders":{"input":{"http_server":{"path":"/new"}},"output":{"http_server":{"path":"/out"}}}}}`
	b.Call("POST", path, b.editor, `{"stream":"orders","body":"x","calls":true,"x-svc-streaming":`+draft+`}`).Want(200)
	if !strings.Contains(string(by.api.Streaming), `"/new"`) || !by.of.Calls {
		t.Errorf("the draft was not tried, but %s", by.api.Streaming)
	}
	b.Call("GET", "/api/audit?object_kind=api&object_id=shop", b.admin, "").Want(200).Says(`"action":"tried"`, `"draft":true`)
	b.Call("POST", path, b.editor, `{"stream":"orders","body":"x","x-svc-streaming":{"streams":{"orders":{"input":{"nope":{}}}}}}`).Want(400).Says("x-svc-streaming.streams.orders.input")
	b.Call("POST", path, b.editor, `{"stream":"panics","body":1}`).Want(500)
}

func TestTrialsNeedWhatRunsThem(t *testing.T) {
	b := start(t)
	b.ofStreams("POST", "/api/apis/streams", b.editor, aStreamAPI("shop")).Want(200)
	b.Call("POST", "/api/apis/streams/shop/try", b.editor, `{"stream":"orders","body":1}`).Want(404).Says("This admin cannot try streams")
}

// A trial that goes on holds the place of its caller until it has ended.
func TestTrialsAreBounded(t *testing.T) {
	s := &Server{deps: Deps{TryStream: new(tried)}, trials: newUnderWay(maxTrials, maxTrialsBy)}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		_, err := s.tryWith(ctx, func() { close(left) }, new(definition.API), &streamstate.Trial{Stream: "hangs"})
		done <- err
	}()
	cancel()
	if err := <-done; err == nil {
		t.Error("it has ended without an error")
	}
	<-left
}
