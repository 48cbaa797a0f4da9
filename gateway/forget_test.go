package gateway_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

func TestAnswersAreForgottenWhenTheConfigurationSaysSo(t *testing.T) {
	g, addr := serve(t, func(d *gateway.Deps) { d.Stages.Cache = cache.New(cache.Options{MaxBytes: 1 << 20, MaxBody: 1 << 10}) })
	var asked atomic.Int64
	up := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { fmt.Fprintf(ctx, "%d", asked.Add(1)) })
	kept := func(id string) *definition.API {
		api := within(t, "o", id, up, open)
		api.CacheOptions = &definition.CacheOptions{Enable: true, Timeout: 60, AllSafe: true}
		return api
	}
	a, b := kept("a"), kept("b")
	for i, c := range []struct {
		caches       map[string]int64
		wantA, wantB string
	}{
		{nil, "1", "2"},
		{nil, "1", "2"},
		{map[string]int64{"a": 1}, "3", "2"},
		{map[string]int64{"a": 1}, "3", "2"},
		{map[string]int64{"a": 1, "b": 2}, "3", "4"},
		{map[string]int64{"a": 3, "b": 2, "gone": 4}, "5", "4"},
	} {
		next := bundle("1", a, b)
		next.Caches = c.caches
		g.Apply(next)
		_, gotA := get(t, addr, "/a/x")
		_, gotB := get(t, addr, "/b/x")
		if gotA != c.wantA || gotB != c.wantB {
			t.Errorf("%d: %s and %s, want %s and %s", i, gotA, gotB, c.wantA, c.wantB)
		}
	}
}
