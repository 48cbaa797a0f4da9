package gateway_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stream/engine"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
)

// What is posted to a stream by one call of the playground comes out of another.
func TestStreamsInThePlayground(t *testing.T) {
	g := gatewaytest.Start(t, gatewaytest.Options{Deps: func(d *gateway.Deps) {
		d.Stages.Streams = engine.New(engine.Options{MaxStreams: 10, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	}})
	def, err := definition.ParseAPI([]byte(`{"api_id":"s","name":"s","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/s/","target_url":"","strip_listen_path":true},
		"x-svc-streaming":{"streams":{"orders":{"input":{"http_server":{"path":"/in"}},"pipeline":{"processors":[{"mapping":"root.got = this.n"}]},"output":{"http_server":{"path":"/out","event":"order"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	g.MustLoad(def)
	playing := func(text string) *gateway.Playing {
		return &gateway.Playing{Request: describe(t, text), API: "s", Within: time.Minute}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	to := newPlayedResults()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.PlayLive(ctx, playing(`{"method":"GET","url":"/s/out","headers":{"Accept":"application/json, text/event-stream"}}`), to)
	}()
	if got := g.Play(playing(`{"method":"POST","url":"/s/in","body":"{\"n\":7}"}`)); got.Status != 200 || !got.Report.Outcome.Allowed {
		t.Fatalf("the message was answered with %d %s", got.Status, got.Body)
	}
	<-to.next
	if got := g.Play(playing(`{"method":"POST","url":"/s/in","body":"no"}`)); got.Status != 422 {
		t.Errorf("a message that is refused: %d %s", got.Status, got.Body)
	}
	cancel()
	<-ended
	if got := strings.Join(to.all, ", "); got != `{"event":"order","data":"{\"got\":7}"}` || to.began.Status != 200 {
		t.Errorf("%s, begun with %+v", got, to.began)
	}
	if got := g.PlayLive(t.Context(), playing(`{"method":"GET","url":"/s/none"}`), newPlayedResults()); got.Status != 404 {
		t.Errorf("a path of no stream: %d %s", got.Status, got.Body)
	}
}
