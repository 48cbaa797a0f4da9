package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/definition"
)

// within returns the definition of an API of an organisation, with more members.
func within(t *testing.T, org, id, target, more string) *definition.API {
	t.Helper()
	text := fmt.Sprintf(`{"api_id": %q, "org_id": %q, "proxy": {"listen_path": "/%s/", "target_url": %q, "strip_listen_path": true}%s}`, id, org, id, target, more)
	api, err := definition.ParseAPI([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return api
}

const open = `, "use_keyless": true`

// ask returns the status, the reason and the body of an answer.
func ask(t *testing.T, addr, path string, headers ...string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("X-Sluice-Reason"), string(body)
}

func showReason(d *gateway.Deps) { d.Config.ShowReason = true }

func TestTargetsMayBeOtherAPIs(t *testing.T) {
	g, addr := serve(t, showReason)
	up := named(t, "up")
	whole := within(t, "o", "whole", up, open)
	whole.Proxy.StripListenPath = false
	g.Apply(bundle("1",
		within(t, "o", "inner", up+"/base", open+`, "internal": true, "name": "The Inner (v1)"`),
		whole,
		within(t, "o", "a", "svc://inner/from/a?k=v", open),
		within(t, "o", "b", "svc://The-Inner--v1-", open),
		within(t, "o", "c", "svc://a", open),
		within(t, "o", "d", "svc://whole", open),
		within(t, "o", "e", "http://127.0.0.1:1", open+`, "version_data": {"not_versioned": true, "versions": {"Default": {"name": "Default", "override_target": "svc://inner/over"}}}`),
		within(t, "p", "other", "svc://inner", open),
		within(t, "o", "absent", "svc://nobody", open),
		within(t, "o", "round", "svc://about", open),
		within(t, "o", "about", "svc://round", open),
	))
	for _, c := range []struct {
		path string
		code int
		want string // of the body or the reason
	}{
		{"/a/x%2Fy?z=1", 200, "up GET /base/from/a/x%2Fy?k=v&z=1"},
		{"/b/x", 200, "up GET /base/x"},
		{"/b/", 200, "up GET /base"},
		{"/c/x", 200, "up GET /base/from/a/x?k=v"},
		{"/d/x", 200, "up GET /x"}, // its listen path is not in the path that it was handed
		{"/e/x", 200, "up GET /base/over/x"},
		{"/inner/x", 404, ""},
		{"/other/x", 502, "handover_target"},
		{"/absent/x", 502, "handover_target"},
		{"/round/x", 508, "handover_loop"},
	} {
		code, reason, body := ask(t, addr, c.path)
		if code != c.code || reason != c.want && body != c.want && c.want != "" {
			t.Errorf("%s: %d %q %q, want %d %q", c.path, code, reason, body, c.code, c.want)
		}
	}
}

func TestNamesThatSeveralAPIsHaveLeadNowhere(t *testing.T) {
	g, addr := serve(t, showReason)
	up := named(t, "up")
	first := within(t, "o", "first", up, open+`, "name": "Orders"`)
	second := within(t, "o", "second", up, open+`, "name": "orders"`)
	foreign := within(t, "p", "foreign", up, open+`, "name": "orders"`)
	caller := within(t, "o", "a", "svc://ORDERS", open)
	for i, c := range []struct {
		apis []*definition.API
		code int
	}{
		{[]*definition.API{caller, first, foreign}, 200},
		{[]*definition.API{caller, first, second}, 502},
		{[]*definition.API{caller, second}, 200},
		{[]*definition.API{caller, foreign}, 502},
		{[]*definition.API{caller, within(t, "o", "second", up, open+`, "name": "Others"`)}, 502},
		{[]*definition.API{caller, within(t, "o", "third", up, open+`, "name": "orders"`)}, 200},
		{[]*definition.API{within(t, "o", "a", "svc://orders", open), within(t, "o", "orders", up, open), first, second}, 200}, // an id comes first
		{[]*definition.API{within(t, "o", "a", "svc://orders", open), first, within(t, "p", "orders", up, open)}, 200},         // but not that of another organisation
		{[]*definition.API{within(t, "o", "a", "svc://orders", open), within(t, "p", "orders", up, open)}, 502},
	} {
		g.Apply(bundle(fmt.Sprint(i), c.apis...))
		if code, reason, _ := ask(t, addr, "/a/"); code != c.code {
			t.Errorf("%d: %d %s, want %d", i, code, reason, c.code)
		}
	}
}

func TestAnAPIBehindAnotherAsksForItsOwnKey(t *testing.T) {
	a := agree(t)
	for _, c := range []struct {
		path, key string
		code      int
		reason    string
	}{
		{"/before/x", "", 401, "auth_missing"}, // the first API asks for none, the second does
		{"/before/x", "key-of-nobody", 403, "auth_unknown"},
		{"/before/x", "key-of-all", 200, ""},
		{"/keyed/x", "", 401, "auth_missing"}, // the first one does, the second asks for none
		{"/keyed/x", "key-of-all", 200, ""},
		{"/round/x", "", 508, "handover_loop"},
		{"/astray/x", "", 502, "handover_target"}, // the other API is of no organisation
	} {
		headers := []string{}
		if c.key != "" {
			headers = append(headers, "Authorization", c.key)
		}
		if code, reason, body := ask(t, a.Addr, c.path, headers...); code != c.code || reason != c.reason && reason != "" {
			t.Errorf("%s with %q: %d %s %s, want %d %s", c.path, c.key, code, reason, body, c.code, c.reason)
		}
	}
}

func TestWhatAnAPIChangesIsWhatTheNextOneSees(t *testing.T) {
	g, addr := serve(t, showReason)
	up := named(t, "up")
	g.Apply(bundle("1",
		within(t, "o", "versions", up, open+`, "definition": {"location": "header", "key": "X-Version"},
			"version_data": {"versions": {"one": {"override_target": "`+up+`/one"}, "two": {"override_target": "`+up+`/two"}}}`),
		within(t, "o", "a", "svc://versions", open+`, "version_data": {"not_versioned": true, "versions": {"Default": {
			"global_headers": {"X-Version": "two"}, "global_response_headers": {"X-From": "a"}}}}`),
		within(t, "o", "b", "svc://versions", open+`, "version_data": {"not_versioned": true, "versions": {"Default": {"global_headers_remove": ["X-Version"]}}}`),
		within(t, "o", "c", "svc://versions", open),
	))
	for path, want := range map[string]string{"/a/x": "up GET /two/x", "/c/x": "up GET /one/x"} {
		if code, reason, body := ask(t, addr, path, "X-Version", "one"); code != 200 || body != want {
			t.Errorf("%s: %d %s %q, want %q", path, code, reason, body, want)
		}
	}
	if code, reason, _ := ask(t, addr, "/b/x", "X-Version", "one"); code != 403 || reason != "version_missing" {
		t.Errorf("/b/x: %d %s", code, reason)
	}
}

func TestVersionsMayBeOtherAPIs(t *testing.T) {
	g, addr := serve(t, showReason)
	up := named(t, "up")
	family := func(id, more, location string) *definition.API {
		return within(t, "o", id, up+"/base", open+`, "definition": {"enabled": true, "name": "v1", `+location+`, "versions": {"v2": "second", "v3": "gone"}`+more+`}`)
	}
	header := `"location": "header", "key": "X-Version"`
	g.Apply(bundle("1",
		family("a", `, "default": "v1"`, header), family("b", `, "default": "v2", "fallback_to_default": true`, header), family("c", "", header),
		family("d", `, "strip_path": true`, `"location": "url"`), family("e", `, "strip_versioning_data": true`, `"location": "url-param", "key": "v"`),
		within(t, "o", "second", up+"/second", open+`, "internal": true, "enable_ip_blacklisting": true, "blacklisted_ips": ["198.51.100.1"],
			"version_data": {"not_versioned": true, "versions": {"Default": {"paths": {"black_list": ["/secret"]}, "global_response_headers": {"X-Second": "yes"}}}}`),
	))
	for _, c := range []struct {
		path, version string
		code          int
		want          string // of the body or the reason
	}{
		{"/a/x", "", 200, "up GET /base/x"},
		{"/a/x", "v1", 200, "up GET /base/x"},
		{"/a/x", "self", 200, "up GET /base/x"},
		{"/a/x?q=1", "v2", 200, "up GET /second/x?q=1"},
		{"/a/secret", "v1", 200, "up GET /base/secret"},
		{"/a/secret", "v2", 403, "path_denied"},
		{"/a/x", "v3", 502, "handover_target"},
		{"/a/x", "v9", 403, "version_unknown"},
		{"/b/x", "", 200, "up GET /second/x"},
		{"/b/x", "v9", 200, "up GET /second/x"},
		{"/c/x", "", 403, "version_missing"},
		{"/d/v2/x", "", 200, "up GET /second/x"},
		{"/d/v1/x", "", 200, "up GET /base/x"},
		{"/e/x?v=v2&q=1", "", 200, "up GET /second/x?q=1"},
		{"/second/x", "", 404, ""},
	} {
		var headers []string
		if c.version != "" {
			headers = []string{"X-Version", c.version}
		}
		code, reason, body := ask(t, addr, c.path, headers...)
		if code != c.code || reason != c.want && body != c.want && c.want != "" {
			t.Errorf("%s for %q: %d %q %q, want %d %q", c.path, c.version, code, reason, body, c.code, c.want)
		}
	}
}

func TestHandoversAreExplained(t *testing.T) {
	a := agree(t)
	for _, c := range []struct {
		description string
		steps       []string // the last ones, with the API that they are of
		reason, fix string
	}{
		{`{"url":"/before/x"}`, []string{"upstream:fail", "rest auth:fail"}, "auth_missing", "Authorization"},
		{`{"url":"/before/x","key":"key-of-all"}`, []string{"upstream:answered", "rest auth:ok", "rest access:ok", "rest limit:ok", "rest upstream:ok"}, "", ""},
		{`{"url":"/round/x"}`, []string{"round upstream:fail", "round upstream:fail"}, "handover_loop", "at most 5 times"},
		{`{"url":"/astray/x"}`, []string{"route:ok", "upstream:fail"}, "handover_target", "same organisation"},
		{`{"url":"/family/x","headers":["X-Version: v2"],"key":"key-of-all"}`, []string{"version:answered", "before upstream:answered", "rest auth:ok", "rest access:ok", "rest limit:ok", "rest upstream:ok"}, "", ""},
		{`{"url":"/family/x","headers":["X-Version: old"]}`, []string{"route:ok", "version:fail"}, "handover_target", "same organisation"},
	} {
		r := a.Explain(describe(t, c.description))
		var got []string
		for _, s := range r.Steps {
			got = append(got, strings.TrimSpace(s.API+" "+s.Stage+":"+s.Result))
		}
		if n := min(len(got), len(c.steps)); !slices.Equal(got[len(got)-n:], c.steps) {
			t.Errorf("%s: %q, want at the end %q", c.description, got, c.steps)
		}
		if o := r.Outcome; o.Reason != c.reason || o.Allowed != (c.reason == "") || !strings.Contains(o.Fix, c.fix) || o.Allowed != (o.Upstream != nil) {
			t.Errorf("%s: %+v", c.description, o)
		}
		for _, s := range r.Steps {
			if s.Stage == "upstream" && s.Said == "" {
				t.Errorf("%s: %s says nothing", c.description, s.Stage)
			}
		}
	}
	if r := a.Explain(describe(t, `{"url":"/before/x","key":"key-of-small"}`)); r.Key == nil || r.API.ID != "before" {
		t.Errorf("%+v of %+v", r.Key, r.API)
	}
}

func TestRefusalsBehindAnotherAPIAreRememberedWhereTheyWereMade(t *testing.T) {
	a := agree(t)
	resp, err := http.Get("http://" + a.Addr + "/before/x")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	known, ok := a.Refusal(resp.Header.Get("X-Request-Id"))
	if !ok || known.Stage != "auth" || known.API.ID != "rest" || known.Reason != pipeline.ReasonAuthMissing.String() {
		t.Errorf("%+v", known)
	}
}

func TestHandoversAreExplainedByAnotherConfiguration(t *testing.T) {
	g, _ := serve(t)
	aside, err := g.Aside(t.Context(), bundle("7",
		within(t, "o", "inner", "http://127.0.0.1:9/up", open), within(t, "o", "a", "svc://inner/from-a", open),
		within(t, "o", "family", "http://127.0.0.1:9", open+`, "definition": {"enabled": true, "location": "url", "strip_path": true, "versions": {"v2": "a"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	r := aside.Explain(describe(t, `{"url":"/family/v2/x"}`))
	if p := r.Outcome.Upstream; p == nil || p.Target != "/up/from-a/x" || r.API.ID != "family" || r.Revision != "7" {
		t.Errorf("%+v of %+v by %s", r.Outcome, r.API, r.Revision)
	}
}
