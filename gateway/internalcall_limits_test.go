package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/auth"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// withKey has the gateway know one key of organisation o, for the API keyed and
// others, and returns its text.
func withKey(t *testing.T, d *gateway.Deps, others ...string) string {
	t.Helper()
	rights := make(map[string]*definition.Access)
	for _, id := range append(others, "keyed") {
		rights[id] = &definition.Access{APIID: id}
	}
	store, hasher := keystore.NewMemory(), &credential.Hasher{}
	const key = "the-key-of-one"
	if err := store.Put(context.Background(), hasher.Hash(key), &definition.Session{OrgID: "o", AccessRights: rights}); err != nil {
		t.Fatal(err)
	}
	d.Stages.Auth = auth.New(auth.NewSessions(auth.SessionOptions{
		Store: store, Hasher: hasher, Log: slog.New(slog.DiscardHandler), Size: 100, TTL: time.Minute,
		UnknownSize: 100, UnknownTTL: time.Second, Timeout: 30 * time.Second,
	}), 3)
	return key
}

// headersOf answers with a header of what it was asked.
func headersOf(t *testing.T, name string) string {
	return "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		fmt.Fprintf(ctx, "%s", ctx.Request.Header.PeekAll(name))
	})
}

// Another API lets in whom it will, and by what the cache of the first one does not
// know.
func TestAnswersOfAnotherAPIAreNotKeptForThoseWhomItRefuses(t *testing.T) {
	var key string
	g, addr := serve(t, showReason, func(d *gateway.Deps) {
		d.Stages.Cache = cache.New(cache.Options{MaxBytes: 1 << 20, MaxBody: 1 << 10})
		key = withKey(t, d)
	})
	up := named(t, "up")

	g.Apply(bundle("1",
		within(t, "o", "keyed", up, `, "auth_configs": {"authToken": {"auth_header_name": "X-Partner"}}`),
		within(t, "o", "versions", up, open+`, "definition": {"location": "header", "key": "X-Version"},
			"version_data": {"versions": {"one": {"override_target": "`+up+`/one"}, "two": {"override_target": "`+up+`/two"}}}`),
		within(t, "o", "a", "svc://keyed", caching), within(t, "o", "b", "svc://a", caching), within(t, "o", "c", "svc://versions", caching)))
	for _, path := range []string{"/a/x", "/b/y"} {
		if code, reason, body := ask(t, addr, path, "X-Partner", key); code != 200 {
			t.Fatalf("%s with the key: %d %s %s", path, code, reason, body)
		}
		if code, reason, body := ask(t, addr, path); code != 401 {
			t.Errorf("%s without a key: %d %s %s", path, code, reason, body)
		}
	}
	for _, version := range []string{"one", "two"} {
		if _, _, body := ask(t, addr, "/c/x", "X-Version", version); body != "up GET /"+version+"/x" {
			t.Errorf("version %s: %s", version, body)
		}
	}
}

// A header that a client names in Connection is none of what it sends on: it must
// not take off what the first API says.
func TestClientsTakeNothingOffThatAnAPISetsForAnother(t *testing.T) {
	g, addr := serve(t)
	up := headersOf(t, "X-Consumer")
	const set = open + `, "version_data": {"not_versioned": true, "versions": {"Default": {"global_headers": {"X-Consumer": "known"}}}}`
	g.Apply(bundle("1", within(t, "o", "inner", up, open), within(t, "o", "direct", up, set), within(t, "o", "front", "svc://inner", set)))
	for _, path := range []string{"/direct/x", "/front/x"} {
		for _, headers := range [][]string{{"Connection", "X-Consumer"}, {"Connection", "close, x-consumer", "X-Consumer", "forged"}, {"X-Consumer", "forged"}, {"X_consumer", "forged"}} {
			if _, _, body := ask(t, addr, path, headers...); body != "[known]" {
				t.Errorf("%s with %q: %s", path, headers, body)
			}
		}
	}
}

// What an API takes off is gone in whatever spelling an upstream reads as the same.
func TestWhatAnAPITakesOffDoesNotReachThroughAnother(t *testing.T) {
	g, addr := serve(t)
	up := headersOf(t, "X_Internal")
	const removed = open + `, "version_data": {"not_versioned": true, "versions": {"Default": {"global_headers_remove": ["X-Internal"]}}}`
	g.Apply(bundle("1", within(t, "o", "inner", up, open), within(t, "o", "direct", up, removed), within(t, "o", "front", "svc://inner", removed)))
	for _, path := range []string{"/direct/x", "/front/x"} {
		if _, _, body := ask(t, addr, path, "X_internal", "forged"); body != "[]" {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// Lists may say paths with the listen path, whichever way a request comes.
func TestPathListsWithListenPathsHoldForRequestsOfOtherAPIs(t *testing.T) {
	g, addr := serve(t, showReason)
	up := named(t, "up")
	g.Apply(bundle("1",
		within(t, "o", "inner", up, open+`, "version_data": {"not_versioned": true, "versions": {"Default": {"paths": {"black_list": ["/inner/secret"]}}}}`),
		within(t, "o", "front", "svc://inner", open),
		rewritten(t, "svc://inner", `{"path": "/", "match_pattern": "^/get/(.*)", "rewrite_to": "svc://inner/$1"}`, ""),
	))
	for path, want := range map[string]int{
		"/inner/secret": 403, "/front/secret": 403, "/front/secret/x": 403, "/front/%73ecret": 403, "/front//secret": 403, "/front/x": 200,
		"/r/get/secret": 403, "/r/get/%2573ecret": 200, "/r/get/..%2fsecret": 400, "/r/get//secret": 403,
		"/r/get/x": 200, "/front/secret%2Fx": 403, "/r/get/%2Fsecret": 403,
	} {
		if code, reason, body := ask(t, addr, path); code != want {
			t.Errorf("%s: %d %s %s, want %d", path, code, reason, body, want)
		}
	}
}

// A credential that only the other API knows as one is none that is told.
func TestExplanationsTellNoCredentialOfAnotherAPI(t *testing.T) {
	var key string
	g, _ := serve(t, func(d *gateway.Deps) { key = withKey(t, d) })
	g.Apply(bundle("1",
		within(t, "o", "keyed", named(t, "up"), `, "auth_configs": {"authToken": {"use_param": true, "param_name": "pass"}}`),
		within(t, "o", "front", "svc://keyed", open)))
	for _, path := range []string{"/keyed/x", "/front/x"} {
		r := g.Explain(describe(t, `{"url":"`+path+`?pass=`+key+`"}`))
		if told := fmt.Sprintf("%+v %+v", r, r.Outcome.Upstream); !r.Outcome.Allowed || strings.Contains(told, key) {
			t.Errorf("%s: %s", path, told)
		}
	}
}

// Which API asks for a key, and whether it takes it off, is for a key that is named
// what it is for one that is shown.
func TestKeysThatAreNamedGoWhereThoseGoThatAreShown(t *testing.T) {
	var key string
	g, addr := serve(t, showReason, func(d *gateway.Deps) { key = withKey(t, d, "taking", "through", "family") })
	up := named(t, "up")
	const strip, ignore = `, "strip_auth_data": true`, `, "version_data": {"not_versioned": true, "versions": {"Default": {"paths": {"ignored": ["/free"]}}}}`
	g.Apply(bundle("1",
		within(t, "o", "keyed", up, ""), within(t, "o", "open", "svc://keyed", open), within(t, "o", "opening", "svc://keyed", open+strip),
		within(t, "o", "taking", "svc://keyed", strip+ignore), within(t, "o", "through", "svc://open", strip),
		within(t, "o", "family", up, strip+`, "definition": {"enabled": true, "name": "v1", "default": "v2", "location": "header", "key": "X-Version", "versions": {"v2": "keyed"}}`)))
	hash := (&credential.Hasher{}).Hash(key)
	for path, want := range map[string]string{
		"/keyed/x": "", "/open/x": "", "/opening/x": "", "/taking/x": "auth_missing", "/taking/free": "", "/through/x": "auth_missing", "/family/x": "",
	} {
		_, reason, _ := ask(t, addr, path, "Authorization", key)
		if told := g.Explain(describe(t, `{"url":"`+path+`","key_hash":"`+hash+`"}`)); reason != want || told.Outcome.Reason != want {
			t.Errorf("%s: %q to the client, %q in the explanation, want %q", path, reason, told.Outcome.Reason, want)
		}
	}
}
