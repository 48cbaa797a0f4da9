package traffic

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// explained asks a gateway's own API.
func (g *traffic) explained(description object) *rig.Explanation {
	g.T.Helper()
	got := rig.Call(g.T, http.MethodPost, g.Control+"/svc/explain", description, "X-Svc-Authorization", testSecret)
	if got.Status != http.StatusOK {
		g.T.Fatalf("explaining %v: %s", description, got)
	}
	e := &rig.Explanation{}
	got.Into(g.T, e)
	return e
}

// explainedAPIs are APIs with every stage that can refuse.
func explainedAPIs(target string) []object {
	rest := rig.APIDef("rest", target, false)
	rest["enable_ip_blacklisting"], rest["blacklisted_ips"] = true, []string{"203.0.113.9"}
	rest["definition"] = object{"location": "header", "key": "X-Version"}
	rest["version_data"] = object{"default_version": "v1", "versions": object{
		"v1": object{"name": "v1", "global_size_limit": 32, "paths": object{"black_list": []string{"/closed"}}},
		"v2": object{"name": "v2", "global_headers": object{"X-Own": "1"}},
	}}
	shared := rig.APIDef("shared", target, true)
	shared["global_rate_limit"] = object{"rate": 2, "per": 60}
	return []object{rest, shared, rig.GraphDef("graph", target, false, nil)}
}

// Each stage refuses what it is to refuse, and its explanation says so before,
// and the id of the refusal after.
func TestExplanationsOfEachStage(t *testing.T) {
	t.Parallel()
	up, target := newRecorder(t)
	g := newTraffic(t, settings{"gateway.trusted_proxies": "127.0.0.1/32"}, nil, explainedAPIs(target)...)
	key := g.newKey(object{"quota_max": 100, "quota_renewal_rate": 60, "rate": 1000, "per": 1, "access_rights": object{
		"rest":  object{"versions": []string{"v1"}, "allowed_urls": []object{{"url": "/open.*", "methods": []string{"GET", "POST"}}}},
		"graph": object{"restricted_types": []object{{"name": "Query", "fields": []string{"secret"}}}},
	}})
	spent := g.newKey(object{"quota_max": 1, "quota_renewal_rate": 600, "access_rights": object{"rest": object{"versions": []string{"v1"}}}})
	slow := g.newKey(object{"rate": 1, "per": 600, "access_rights": object{"rest": object{"versions": []string{"v1"}}}})
	none := g.newKey(object{"access_rights": rig.AccessTo("graph")})
	for _, k := range []string{spent, slow} {
		rig.Call(t, "GET", g.Traffic+"/rest/open", nil, "Authorization", k)
	}
	for range 2 {
		rig.Call(t, "GET", g.Traffic+"/shared/", nil)
	}
	up.reached()
	for _, c := range []struct {
		name, path, key, stage, reason string
		headers                        []string
		body                           any
	}{
		{name: "let through", path: "/rest/open", key: key, stage: "upstream"},
		{name: "no API", path: "/nowhere", stage: "route", reason: "route_not_found"},
		{name: "unknown version", path: "/rest/open", key: key, stage: "version", reason: "version_unknown", headers: []string{"X-Version", "v9"}},
		{name: "blocked path", path: "/rest/closed", key: key, stage: "version", reason: "path_denied"},
		{name: "blocked address", path: "/rest/open", key: key, stage: "ip", reason: "address_denied", headers: []string{"X-Forwarded-For", "203.0.113.9"}},
		{name: "large body", path: "/rest/open", key: key, stage: "size", reason: "body_too_large", body: strings.Repeat("x", 33)},
		{name: "no key", path: "/rest/open", stage: "auth", reason: "auth_missing"},
		{name: "unknown key", path: "/rest/open", key: "nobodys-key", stage: "auth", reason: "auth_unknown"},
		{name: "another API's key", path: "/rest/open", key: none, stage: "access", reason: "access_denied"},
		{name: "another version's key", path: "/rest/open", key: key, stage: "access", reason: "version_denied", headers: []string{"X-Version", "v2"}},
		{name: "path not allowed", path: "/rest/other", key: key, stage: "access", reason: "url_denied"},
		{name: "used quota", path: "/rest/open", key: spent, stage: "limit", reason: "quota_exceeded"},
		{name: "used rate", path: "/rest/open", key: slow, stage: "limit", reason: "rate_limit"},
		{name: "used rate of all", path: "/shared/", stage: "apilimit", reason: "api_rate_limit"},
		{name: "restricted field", path: "/graph/", key: key, stage: "graphql", reason: "field_restricted", headers: []string{"Content-Type", "application/json"}, body: object{"query": "{ secret }"}},
	} {
		method, lines := "GET", []string{}
		headers := c.headers
		if c.key != "" {
			headers = append(headers, "Authorization", c.key)
		}
		for i := 0; i < len(headers); i += 2 {
			lines = append(lines, headers[i]+": "+headers[i+1])
		}
		payload, err := readPayload(c.body)
		if err != nil {
			t.Fatal(err)
		}
		if payload != "" {
			method = "POST"
		}
		before := g.explained(object{"method": method, "url": c.path, "headers": lines, "body": payload})
		if n := len(up.reached()); n > 0 {
			t.Errorf("%s: the explanation made %d calls", c.name, n)
		}
		last := before.Steps[len(before.Steps)-1]
		if last.Stage != c.stage || before.Outcome.Reason != c.reason || before.Outcome.Allowed != (c.reason == "") {
			t.Errorf("%s: %+v at %+v", c.name, before.Outcome, last)
		}
		live := rig.Call(t, method, g.Traffic+c.path, payload, headers...)
		up.reached()
		if c.reason == "" {
			if live.Status != 200 {
				t.Errorf("%s: %s", c.name, live)
			}
			continue
		}
		if live.Status != before.Outcome.Status || live.Reason() != c.reason || live.Body != before.Outcome.Body {
			t.Errorf("%s: %s, explained as %+v", c.name, live, before.Outcome)
		}
		after := g.explained(object{"id": live.Header.Get("X-Request-Id")}).Refusal
		path, _, _ := strings.Cut(c.path, "?")
		if after == nil || after.Stage != c.stage || after.Reason != c.reason || after.Status != live.Status || after.Path != path {
			t.Errorf("%s: remembered as %+v", c.name, after)
		}
	}
	if got := rig.Call(t, http.MethodPost, g.Control+"/svc/explain", object{"url": "/x"}); got.Status != 403 {
		t.Errorf("without the secret: %s", got)
	}
	if logged := g.logged(); strings.Count(logged, "path_denied") != 1 || strings.Contains(logged, "/svc/explain") {
		t.Errorf("explanations are in the access log: %s", logged)
	}
}

// readPayload returns what call would send as a body.
func readPayload(body any) (string, error) {
	payload, err := rig.Payload(body)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := payload.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String(), nil // the end: it is in memory
		}
	}
}

func TestAGatewayAloneTellsOfThePastOnlyWhatItServed(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, nil, nil, rig.APIDef("orders", "http://127.0.0.1:1", true))
	ask := func(at time.Time) rig.Answer {
		return rig.Call(t, http.MethodPost, g.Control+"/svc/explain", object{"url": "/orders/", "at": at.UTC().Format(time.RFC3339)}, "X-Svc-Authorization", testSecret)
	}
	if got := ask(time.Now().Add(-time.Hour)); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "keeps nothing from before; the admin explains") {
		t.Errorf("an hour ago: %s", got)
	}
	if got := ask(time.Now().Add(time.Hour)); got.Status != http.StatusOK || !strings.Contains(got.Body, `"allowed":true`) {
		t.Errorf("in an hour: %s", got)
	}
}

// TestAnAPIOfAnotherSegmentIsNotServedAndExplained: a gateway serves the APIs without
// tags, and those with one of its own.
func TestAnAPIOfAnotherSegmentIsNotServedAndExplained(t *testing.T) {
	t.Parallel()
	_, target := newRecorder(t)
	var apis []object
	for id, tags := range map[string][]string{"all": nil, "eu": {"eu", "west"}, "us": {"us"}} {
		api := rig.APIDef(id, target, true)
		api["tags"] = tags
		apis = append(apis, api)
	}
	g := newTraffic(t, settings{"gateway.tags": "eu,north"}, nil, apis...)
	for id, want := range map[string]int{"all": 200, "eu": 200, "us": 404} {
		if got := rig.Call(t, "GET", g.Traffic+"/"+id+"/x", nil); got.Status != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	if e := g.explained(object{"method": "GET", "url": "/us/x"}); e.Said("route") != `API "us" listens on the path, but its tags are those of other gateways` ||
		len(e.Steps) != 1 || len(e.Steps[0].Facts) != 1 || e.Steps[0].Facts[0].Value != "us" || e.Steps[0].Facts[0].Seen != "eu, north" {
		t.Errorf("%+v", e)
	}
	if e := g.explained(object{"method": "GET", "url": "/eu/x"}); !strings.HasSuffix(e.Said("route"), "; served by gateways with one of its tags alone: eu, west") {
		t.Errorf("%+v", e)
	}
}
