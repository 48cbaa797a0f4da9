package gateway_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

const caching = open + `, "cache_options": {"enable_cache": true, "cache_timeout": 60, "cache_all_safe_requests": true}`

// withCache has the gateway keep answers, and calls wait for each other for longer
// than a test takes.
func withCache(d *gateway.Deps) {
	d.Config.ShowReason = true
	d.Stages.Cache = cache.New(cache.Options{MaxBytes: 1 << 20, MaxBody: 1 << 10, Patience: 10 * time.Minute})
	d.Stages.Calls = targets.New(targets.Options{Pools: d.Stages.Pools, Upstream: d.Stages.Upstream})
}

// counting answers with its name and how often it was asked.
func counting(t *testing.T, name string, asked *atomic.Int64) string {
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { fmt.Fprintf(ctx, "%s %d", name, asked.Add(1)) })
}

// together makes as many equal calls at once, and returns what each came to.
func together(t *testing.T, addr, path string, n int, headers ...string) []string {
	t.Helper()
	came := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			code, reason, body := ask(t, addr, path, headers...)
			came[i] = fmt.Sprintf("%d %s %s", code, reason, body)
		})
	}
	all.Wait()
	return came
}

// The API in front knows when it is loaded that nothing will be kept that it could
// give to those who wait.
func TestCallsDoNotWaitForEachOtherWhereAnotherAPIAsksForAKey(t *testing.T) {
	const n = 8
	var key string
	g, addr := serve(t, withCache, func(d *gateway.Deps) { key = withKey(t, d) })
	var came atomic.Int64
	all := make(chan struct{})
	up := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		if came.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(20 * time.Second):
			ctx.SetStatusCode(504)
		}
	})
	g.Apply(bundle("1", within(t, "o", "keyed", up, ""), within(t, "o", "front", "svc://keyed", caching), within(t, "o", "before", "svc://front", caching)))
	for _, path := range []string{"/front/x", "/before/x"} {
		came.Store(0)
		all = make(chan struct{})
		for _, got := range together(t, addr, path, n, "Authorization", key) {
			if !strings.HasPrefix(got, "200 ") {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	if r := g.Explain(describe(t, `{"url":"/front/x","key":"`+key+`"}`)); !strings.Contains(fmt.Sprint(r.Steps), "the answer is not kept") {
		t.Errorf("%+v", r.Steps)
	}
}

func TestAnswersOfAnotherAPIAreKeptWhereItGivesAllTheSame(t *testing.T) {
	var asked atomic.Int64
	g, addr := serve(t, withCache)
	up := counting(t, "up", &asked)
	version := func(more string) string {
		return open + `, "version_data": {"not_versioned": true, "versions": {"Default": {` + more + `}}}`
	}
	for name, c := range map[string]struct {
		inner *definition.API
		asked int64 // of nine times
	}{
		"nothing special":         {within(t, "o", "inner", up, open), 1},
		"internal":                {within(t, "o", "inner", up, open+`, "internal": true`), 1},
		"limits for all":          {within(t, "o", "inner", up, open+`, "global_rate_limit": {"rate": 100, "per": 1}`), 1},
		"a size limit":            {within(t, "o", "inner", up, version(`"global_size_limit": 100`)), 1},
		"headers":                 {within(t, "o", "inner", up, version(`"global_headers": {"X-Own": "1"}, "global_response_headers": {"X-Own": "1"}`)), 1},
		"through another":         {within(t, "o", "inner", "svc://far", open), 1},
		"keyed":                   {within(t, "o", "inner", up, `, "version_data": {"not_versioned": true, "versions": {"Default": {"paths": {"ignored": ["/"]}}}}`), 9},
		"versions":                {within(t, "o", "inner", up, open+`, "definition": {"location": "header", "key": "X-V"}, "version_data": {"default_version": "a", "versions": {"a": {}, "b": {}}}`), 9},
		"a version that ends":     {within(t, "o", "inner", up, version(`"expires": "2999-01-01 00:00"`)), 9},
		"other APIs for versions": {within(t, "o", "inner", up, open+`, "definition": {"enabled": true, "name": "a", "default": "a", "location": "header", "key": "X-V", "versions": {"b": "far"}}`), 9},
		"addresses":               {within(t, "o", "inner", up, open+`, "enable_ip_blacklisting": true, "blacklisted_ips": ["198.51.100.1"]`), 9},
		"pages":                   {within(t, "o", "inner", up, open+`, "CORS": {"enable": true, "allowed_origins": ["*"]}`), 9},
		"path lists":              {within(t, "o", "inner", up, version(`"paths": {"black_list": ["/secret"]}`)), 9},
		"headers of the caller":   {within(t, "o", "inner", up, open+`, "enable_context_vars": true, "version_data": {"not_versioned": true, "versions": {"Default": {"global_headers": {"X-Own": "$svc_context.remote_addr"}}}}`), 9},
		"answers to the caller":   {within(t, "o", "inner", up, open+`, "enable_context_vars": true, "version_data": {"not_versioned": true, "versions": {"Default": {"global_response_headers": {"X-Own": "$svc_context.remote_addr"}}}}`), 9},
		"headers of some calls":   {within(t, "o", "inner", up, open+`, "enable_context_vars": true, "version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {"transform_headers": [{"path": "/", "method": "GET", "add_headers": {"X-Own": "$svc_context.remote_addr"}}]}}}}`), 9},
		"rewrites":                {within(t, "o", "inner", up, version(`"use_extended_paths": true, "extended_paths": {"url_rewrites": [{"path": "/nowhere", "method": "GET", "match_pattern": "x", "rewrite_to": "/y"}]}`)), 9},
		"a header of its own":     {within(t, "o", "inner", up, open+`, "auth_configs": {"authToken": {"auth_header_name": "X-Partner"}}`), 9},
		"through a keyed one":     {within(t, "o", "inner", "svc://keyed", open), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g.Apply(bundle(name, c.inner, within(t, "o", "front", "svc://inner", caching), within(t, "o", "keyed", up, ""),
				within(t, "o", "far", up, open), within(t, "o", "near", up, open)))
			asked.Store(0)
			first, second := together(t, addr, "/front/x", 8), together(t, addr, "/front/x", 1)
			if n := asked.Load(); n != c.asked || n == 1 && (second[0] != first[0] || first[0] != "200  up 1") {
				t.Errorf("asked %d times: %q, then %q", n, first, second)
			}
		})
	}
}

// What another API has become since is known to the API in front, which has not
// changed itself.
func TestKeptAnswersAreOfWhatTheOtherAPIIsNow(t *testing.T) {
	var key string
	var asked atomic.Int64
	g, addr := serve(t, withCache, func(d *gateway.Deps) { key = withKey(t, d) })
	one, two := counting(t, "one", &asked), counting(t, "two", &asked)
	front, through := within(t, "o", "front", "svc://through", caching), within(t, "o", "through", "svc://keyed", open)
	free, keyed := within(t, "o", "keyed", one, open), within(t, "o", "keyed", one, "")
	spare := within(t, "o", "spare", two, open+`, "name": "KEYED"`)
	for i, c := range []struct {
		apis []*definition.API
		key  string
		want string
	}{
		{[]*definition.API{front, through, free, spare}, "", "200  one 1"},
		{[]*definition.API{front, through, free, spare}, "", "200  one 1"},
		{[]*definition.API{front, through, keyed, spare}, "", "401 auth_missing "},
		{[]*definition.API{front, through, keyed, spare}, key, "200  one 2"},
		{[]*definition.API{front, through, keyed, spare}, "", "401 auth_missing "},
		{[]*definition.API{front, through, free, spare}, "", "200  one 3"},
		{[]*definition.API{front, through, free, spare}, "", "200  one 3"},
		{[]*definition.API{front, through, spare}, "", "200  two 4"}, // by its name, and older than the others
		{[]*definition.API{front, through, within(t, "o", "keyed", two, open), spare}, "", "200  two 5"},
		{[]*definition.API{front, through}, "", "502 handover_target "},
		{[]*definition.API{front, through, within(t, "p", "keyed", one, open)}, "", "502 handover_target "},
		{[]*definition.API{front, within(t, "o", "through", one, open)}, "", "200  one 6"},
	} {
		if failed := g.Apply(bundle(fmt.Sprint(i), c.apis...)); len(failed) > 0 {
			t.Fatal(failed)
		}
		var headers []string
		if c.key != "" {
			headers = []string{"Authorization", c.key}
		}
		if got := together(t, addr, "/front/x", 1, headers...)[0]; !strings.HasPrefix(got, c.want) {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// Where a rewrite leads is decided for each call, and so is whether calls wait.
func TestAnswersAreKeptByWhereARewriteLeads(t *testing.T) {
	var key string
	var asked atomic.Int64
	g, addr := serve(t, withCache, func(d *gateway.Deps) { key = withKey(t, d) })
	up := counting(t, "up", &asked)
	front := within(t, "o", "front", up, caching+`, "version_data": {"not_versioned": true, "versions": {"Default": {"use_extended_paths": true, "extended_paths": {"url_rewrites": [
		{"path": "/keyed", "method": "GET", "match_pattern": "/keyed/(.*)", "rewrite_to": "svc://keyed/$1"},
		{"path": "/free", "method": "GET", "match_pattern": "/free/(.*)", "rewrite_to": "svc://free/$1"}]}}}}`)
	g.Apply(bundle("1", front, within(t, "o", "keyed", up, ""), within(t, "o", "free", up, open)))
	for _, c := range []struct{ path, key, want string }{
		{"/front/own", "", "200  up 1"},
		{"/front/own", "", "200  up 1"},
		{"/front/free/x", "", "200  up 2"},
		{"/front/free/x", "", "200  up 2"},
		{"/front/keyed/x", key, "200  up 3"},
		{"/front/keyed/x", key, "200  up 4"},
		{"/front/keyed/x", "none", "403 auth_unknown"},
	} {
		if got := together(t, addr, c.path, 1, "Authorization", c.key)[0]; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
	}
}
