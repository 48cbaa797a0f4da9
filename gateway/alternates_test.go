package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// rewritten returns the definition of an API with rewrites.
func rewritten(t *testing.T, target, rewrites, more string) *definition.API {
	return within(t, "o", "r", target, open+`, "version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {
		"url_rewrites": [`+rewrites+`]`+more+`}}}}`)
}

func withCalls(d *gateway.Deps) {
	d.Config.ShowReason = true
	d.Stages.Calls = targets.New(targets.Options{Pools: d.Stages.Pools, Upstream: d.Stages.Upstream})
}

func TestRewritesLeadToOtherHostsAndAPIs(t *testing.T) {
	for name, change := range map[string]func(*gateway.Deps){"plain": showReason, "with calls": withCalls} {
		t.Run(name, func(t *testing.T) {
			g, addr := serve(t, change)
			up := named(t, "up")
			hosts := testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { fmt.Fprintf(ctx, "other %s %s", ctx.Host(), ctx.RequestURI()) })
			g.Apply(bundle("1", within(t, "o", "inner", up+"/inner", open+`, "internal": true`), rewritten(t, up+"/own", `
				{"path": "/far", "match_pattern": "^/far/(.*)", "rewrite_to": "http://`+hosts+`/there/$1"},
				{"path": "/in", "match_pattern": "^/in/(.*)", "rewrite_to": "svc://inner/$1", "triggers": [
					{"options": {"query_val_matches": {"to": {"match_rx": "far"}}}, "rewrite_to": "http://`+hosts+`/$1"},
					{"options": {"query_val_matches": {"to": {"match_rx": "own"}}}, "rewrite_to": "/own/$1"}]}`,
				`, "hard_timeouts": [{"path": "/far", "timeout": 3}], "circuit_breakers": [{"path": "/far", "threshold_percent": 0.5, "samples": 5}]`)))
			for path, want := range map[string]string{
				"/r/x":                      "up GET /own/x",
				"/r/far/a%2Fb?q=1":          "other " + hosts + " /there/a%2Fb?q=1",
				"/r/far/@127.0.0.1:1/x":     "other " + hosts + " /there/@127.0.0.1:1/x",
				"/r/far//127.0.0.1:1/x":     "other " + hosts + " /there//127.0.0.1:1/x",
				"/r/in/a":                   "up GET /inner/a",
				"/r/in/a?to=far":            "other " + hosts + " /a?to=far",
				"/r/in/a?to=own":            "up GET /own/own/a?to=own",
				"/r/far/http:%2F%2Fevil/?x": "other " + hosts + " /there/http:%2F%2Fevil/?x",
			} {
				if code, reason, body := ask(t, addr, path); code != 200 || body != want {
					t.Errorf("%s: %d %s %q, want %q", path, code, reason, body, want)
				}
			}
			r := g.Explain(describe(t, `{"url":"/r/far/x"}`))
			if p := r.Outcome.Upstream; p == nil || p.Address != hosts || p.Target != "/there/x" {
				t.Errorf("%+v", p)
			}
			said := fmt.Sprint(r.Steps)
			if !strings.Contains(said, "the URL becomes http://"+hosts+"/there/x") || !strings.Contains(said, "extended_paths.url_rewrites[0].rewrite_to") {
				t.Error(said)
			}
		})
	}
}

func TestRewritesToHostsThatNothingMayCallAreNotServed(t *testing.T) {
	for _, c := range []struct{ to, want string }{
		{"http://169.254.169.254/latest", "extended_paths.url_rewrites[0].rewrite_to: host 169.254.169.254"},
		{"http://[fe80::1]/", "extended_paths.url_rewrites[0].rewrite_to: host fe80::1"},
	} {
		g, _ := serve(t, withCalls)
		failed := g.Apply(bundle("1", rewritten(t, "http://127.0.0.1:1", fmt.Sprintf(`{"path": "/", "match_pattern": "a", "rewrite_to": %q}`, c.to), "")))
		if err := failed["r"]; err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "target_url") {
			t.Errorf("%s: %v", c.to, err)
		}
	}
}

// A name is looked up when it is called, and what it comes to then counts.
func TestConnectionsOfPlacesAreKeptAndGoWithTheAPI(t *testing.T) {
	var pools *upstream.Pools
	g, addr := serve(t, withCalls, func(d *gateway.Deps) { pools = d.Stages.Pools })
	up, far := named(t, "up"), named(t, "far")
	g.Apply(bundle("1", rewritten(t, up, `{"path": "/far", "match_pattern": "^/far", "rewrite_to": "`+far+`/x"}`, ""), within(t, "o", "b", up, open)))
	for _, path := range []string{"/r/a", "/r/far"} {
		if code, _, body := ask(t, addr, path); code != 200 {
			t.Fatalf("%s: %d %s", path, code, body)
		}
	}
	if s := pools.Stats(); s.Open != 2 {
		t.Errorf("%+v", s)
	}
	g.Apply(bundle("2", within(t, "o", "b", up, open)))
	if s := pools.Stats(); s.Idle != 1 {
		t.Errorf("%+v after the API has left", s)
	}
}

func TestAnswersOfOtherPlacesAreKeptApart(t *testing.T) {
	g, addr := serve(t, showReason, func(d *gateway.Deps) {
		d.Stages.Cache = cache.New(cache.Options{MaxBytes: 1 << 20, MaxBody: 1 << 10})
	})
	one, two := named(t, "one"), named(t, "two")
	api := rewritten(t, "http://127.0.0.1:1", `{"path": "/", "match_pattern": ".*", "rewrite_to": "`+one+`/x", "triggers": [
		{"options": {"header_matches": {"X-To": {"match_rx": "two"}}}, "rewrite_to": "`+two+`/x"}]}`, "")
	api.CacheOptions = &definition.CacheOptions{Enable: true, Timeout: 60, AllSafe: true}
	g.Apply(bundle("1", api))
	for range 2 {
		for header, want := range map[string]string{"one": "one GET /x", "two": "two GET /x"} {
			if code, _, body := ask(t, addr, "/r/", "X-To", header); code != 200 || body != want {
				t.Errorf("%s: %d %q, want %q", header, code, body, want)
			}
		}
	}
}
