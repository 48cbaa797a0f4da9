package control

import (
	"context"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// running stands for streams that run, and what tries them.
type running struct {
	streamstate.Desk
	asked streamstate.Filter
}

func (r *running) Streams(f streamstate.Filter) []streamstate.Stream {
	r.asked = f
	return []streamstate.Stream{{API: "shop", Name: "orders", Phase: streamstate.Running}, {API: "shop", Name: "feed", Phase: streamstate.Failing}}
}

func (r *running) Try(_ context.Context, api string, trial []byte) (any, error) {
	switch {
	case api != "shop":
		return nil, ErrNotFound
	case string(trial) != `{"stream":"orders","body":1}`:
		return nil, &definition.Problems{{Path: "stream", Message: "is required"}}
	}
	return streamstate.NewShower().Tried, nil
}

func TestStreamsAreListedAndTried(t *testing.T) {
	r := new(running)
	r.Source = r
	b := onFiles(t, func(d *Deps) { d.Streams = r })
	if got := b.call("GET", "/svc/streams?org_id=o&page_size=1", ""); got.status != 200 || !strings.Contains(got.body, `"stream":"feed"`) || !strings.HasSuffix(got.body, `"total":2,"next":"shop/feed"}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if r.asked != (streamstate.Filter{Org: "o"}) {
		t.Errorf("asked for %+v", r.asked)
	}
	if got := b.call("GET", "/svc/streams?after=shop/feed&phase=running", ""); got.status != 200 || strings.Contains(got.body, "feed") || !strings.Contains(got.body, "orders") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := b.call("GET", "/svc/streams/shop", ""); got.status != 200 || r.asked != (streamstate.Filter{API: "shop", Nodes: true}) {
		t.Errorf("%d %s, asked for %+v", got.status, got.body, r.asked)
	}
	b.want("GET", "/svc/streams?page_size=0", "", 400, failed(`Query parameter page_size must be a whole number in 1…500, not \"0\"`))
	b.want("POST", "/svc/streams/shop/try", `{"stream":"orders","body":1}`, 200, `{"steps":[],"outputs":[],"dead_letters":[],"error":"","cut":false}`)
	b.want("POST", "/svc/streams/none/try", `{}`, 404, failed("This gateway serves no API with streams that has this id"))
	if got := b.call("POST", "/svc/streams/shop/try", `{}`); got.status != 400 || !strings.Contains(got.body, "stream: is required") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestStreamsNeedNotRun(t *testing.T) {
	b := onFiles(t, func(d *Deps) { d.Streams = nil })
	for _, call := range []string{"GET /svc/streams", "GET /svc/streams/a", "POST /svc/streams/a/try"} {
		method, path, _ := strings.Cut(call, " ")
		b.want(method, path, "", 404, failed("This gateway runs no event streams: set streaming.enabled to true"))
	}
}
