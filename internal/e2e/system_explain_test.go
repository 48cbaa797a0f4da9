package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// explanation is what a server answers.
type explanation struct {
	Revision string
	Steps    []struct {
		Stage, Result, Said string
		Facts               []struct{ Rule, Value, Seen, From string }
	}
	Outcome struct {
		Allowed             bool
		Status              int
		Reason, Stage, Body string
		Upstream            *struct{ Method, Target string }
	}
	Refusal *struct {
		Stage, Reason, Path, Key string
		Status                   int
	}
}

// said returns what a stage said.
func (e *explanation) said(stage string) string {
	for _, s := range e.Steps {
		if s.Stage == stage {
			return s.Said
		}
	}
	return ""
}

// explained asks a gateway's own API.
func (g *traffic) explained(description object) *explanation {
	g.t.Helper()
	got := call(g.t, http.MethodPost, g.control+"/svc/explain", description, "X-Svc-Authorization", testSecret)
	if got.status != http.StatusOK {
		g.t.Fatalf("explaining %v: %s", description, got)
	}
	e := &explanation{}
	got.into(g.t, e)
	return e
}

// explainedAPIs are APIs with every stage that can refuse.
func explainedAPIs(target string) []object {
	rest := apiDef("rest", target, false)
	rest["enable_ip_blacklisting"], rest["blacklisted_ips"] = true, []string{"203.0.113.9"}
	rest["definition"] = object{"location": "header", "key": "X-Version"}
	rest["version_data"] = object{"default_version": "v1", "versions": object{
		"v1": object{"name": "v1", "global_size_limit": 32, "paths": object{"black_list": []string{"/closed"}}},
		"v2": object{"name": "v2", "global_headers": object{"X-Own": "1"}},
	}}
	shared := apiDef("shared", target, true)
	shared["global_rate_limit"] = object{"rate": 2, "per": 60}
	return []object{rest, shared, graphDef("graph", target, false, nil)}
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
	none := g.newKey(object{"access_rights": accessTo("graph")})
	for _, k := range []string{spent, slow} {
		call(t, "GET", g.traffic+"/rest/open", nil, "Authorization", k)
	}
	for range 2 {
		call(t, "GET", g.traffic+"/shared/", nil)
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
		live := call(t, method, g.traffic+c.path, payload, headers...)
		up.reached()
		if c.reason == "" {
			if live.status != 200 {
				t.Errorf("%s: %s", c.name, live)
			}
			continue
		}
		if live.status != before.Outcome.Status || live.reason() != c.reason || live.body != before.Outcome.Body {
			t.Errorf("%s: %s, explained as %+v", c.name, live, before.Outcome)
		}
		after := g.explained(object{"id": live.header.Get("X-Request-Id")}).Refusal
		path, _, _ := strings.Cut(c.path, "?")
		if after == nil || after.Stage != c.stage || after.Reason != c.reason || after.Status != live.status || after.Path != path {
			t.Errorf("%s: remembered as %+v", c.name, after)
		}
	}
	if got := call(t, http.MethodPost, g.control+"/svc/explain", object{"url": "/x"}); got.status != 403 {
		t.Errorf("without the secret: %s", got)
	}
	if logged := g.logged(); strings.Count(logged, "path_denied") != 1 || strings.Contains(logged, "/svc/explain") {
		t.Errorf("explanations are in the access log: %s", logged)
	}
}

// readPayload returns what call would send as a body.
func readPayload(body any) (string, error) {
	payload, err := payloadOf(body)
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

// On one machine the command finds the server by itself.
func TestExplainOnTheMachineOfUp(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	s := newUp(t, dir, nil).startReady()
	rest := s.rest()
	target := "http://" + testenv.Origin(t, echo)
	def := apiDef("orders", target+"/first", false)
	rest.do("POST", "/api/apis", def)
	key := rest.newKey(object{"quota_max": 2, "quota_renewal_rate": 600, "access_rights": object{"orders": object{}}})
	var was struct{ Revision int64 }
	rest.do("GET", "/api/config", nil).into(t, &was)
	def["proxy"].(object)["target_url"] = target + "/second"
	rest.do("PUT", "/api/apis/orders", def)
	s.await("the gateway to serve the change", func() error {
		got, err := rest.try("POST", "/api/explain", object{"url": "/orders/x", "key": key})
		if err == nil {
			err = lacks(got.body, "/second/x")
		}
		return err
	})
	call(t, "GET", s.traffic+"/orders/x", nil, "Authorization", key)
	here := settings{"data_dir": dir, "admin.listen": strings.TrimPrefix(s.admin, "http://")}
	explain := func(code int, has string, args ...string) string {
		t.Helper()
		got := command(t, here, append([]string{"explain"}, args...)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, has) {
			t.Errorf("explain %q: exit %d, want %d and %q\n%s%s", args, got.code, code, has, got.stdout, got.stderr)
		}
		return got.stdout
	}
	explain(0, "/second/x", "GET", "/orders/x", "--key", key)
	explain(0, "quota 1 of 2 per 600 s", "GET", "/orders/x", "--key", key)
	explain(0, "/first/x", "GET", "/orders/x", "--key", key, "--revision", fmt.Sprint(was.Revision))
	explain(6, "revision 9999", "GET", "/orders/x", "--revision", "9999")
	explain(5, "reason=auth_missing", "GET", "/orders/x", "--server", s.admin, "--data-dir", dir)
	explain(5, `"reason": "route_not_found"`, "GET", "/nowhere", "-o", "json")
	call(t, "GET", s.traffic+"/orders/x", nil, "Authorization", key)
	refused := call(t, "GET", s.traffic+"/orders/x", nil, "Authorization", key)
	if refused.reason() != "quota_exceeded" {
		t.Fatalf("the third call: %s", refused)
	}
	explain(5, "quota 0 of 2 left", "--id", refused.header.Get("X-Request-Id"))
	explain(6, "no refused request with this id", "--id", strings.Repeat("0", 32))
	explain(5, "reason=quota_exceeded", "GET", "/orders/x", "--key", key)
}

// An admin without a gateway explains with the stores that the gateways share.
func TestExplanationsOfAnAdminAlone(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	s.rest.do("POST", "/api/apis", apiDef("orders", s.origin+"/first", false))
	var was struct{ Revision int64 }
	s.rest.do("GET", "/api/config", nil).into(t, &was)
	s.rest.do("PUT", "/api/apis/orders", apiDef("orders", s.origin+"/second", false))
	key := s.rest.newKey(object{"quota_max": 5, "quota_renewal_rate": 600, "access_rights": object{"orders": object{}}})
	s.everywhere("the API", "/orders/x", key, status(200))
	for range 2 {
		call(t, "GET", s.gateways[0].traffic+"/orders/x", nil, "Authorization", key)
	}
	explained := func(description object) *explanation {
		e := &explanation{}
		s.rest.do("POST", "/api/explain", description).into(t, e)
		return e
	}
	now := explained(object{"url": "/orders/x", "key": key})
	if !now.Outcome.Allowed || now.Outcome.Upstream.Target != "/second/x" || !strings.HasPrefix(now.said("limit"), "quota 3 of 5 per 600 s") {
		t.Errorf("%+v", now)
	}
	if then := explained(object{"url": "/orders/x", "key": key, "revision": was.Revision}); then.Outcome.Upstream == nil || then.Outcome.Upstream.Target != "/first/x" {
		t.Errorf("at revision %d: %+v", was.Revision, then)
	}
	refused := call(t, "GET", s.gateways[0].traffic+"/orders/x", nil)
	id := refused.header.Get("X-Request-Id")
	if got, err := s.rest.try("POST", "/api/explain", object{"id": id}); err != nil || got.status != 400 || !strings.Contains(got.body, "POST /svc/explain") {
		t.Errorf("%v %s", err, got)
	}
	own := call(t, "POST", s.gateways[0].control+"/svc/explain", object{"id": id}, "X-Svc-Authorization", splitSecret)
	if own.status != 200 || !strings.Contains(own.body, `"reason":"auth_missing"`) {
		t.Errorf("asked itself: %s", own)
	}
}

func TestExplanationsOfAnotherTimeUseTheRevisionOfThen(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	first := apiDef("orders", "http://127.0.0.1:1", false)
	first["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "expires": "2040-01-01 00:00"}}}
	r.do(http.MethodPost, "/api/apis", first)
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": accessTo("orders")})
	key := strings.TrimSpace(s.own("-q", "key", "create", "--policy", "gold", "--expires", "48h").wants(t, 0).stdout)
	s.awaitUse("/orders/", key)

	ask := func(at string, more ...string) result {
		return s.own(append([]string{"explain", "GET", "/orders/", "--key", key, "--at", at}, more...)...)
	}
	ask("+1h").wants(t, 0, "quota 1 of 5 per 3600 s, renews in")
	ask("+2h").wants(t, 0, "quota 0 of 5 per 3600 s")
	ask("+72h").wants(t, 5, "auth", "reason=auth_expired")
	ask("2040-01-02T00:00:00Z", "--facts").wants(t, 5, "FAIL", "at 2040-01-02T00:00:00Z")
	ask("-8760h").wants(t, 6, "at: is before the oldest revision that is kept")
	ask("yesterday").wants(t, 2, "--at: \"yesterday\" is no time")

	was := revisionTimes(t, s)
	r.do(http.MethodDelete, "/api/portal/policies/gold", nil)
	past := was[0].Format(time.RFC3339Nano)
	told := s.own("explain", "GET", "/orders/", "--key", key, "--at", past, "-o", "json").wants(t, 0).stdout
	if !strings.Contains(told, `"untold": [`) || !strings.Contains(told, `"revision": "2"`) {
		t.Errorf("in the past: %s", told)
	}
}

// revisionTimes returns when the revisions of a server were made, newest first.
func revisionTimes(t *testing.T, s *server) (all []time.Time) {
	t.Helper()
	var told struct {
		Revisions []struct{ At time.Time }
	}
	text := s.own("config", "history", "-o", "json").wants(t, 0).stdout
	if err := json.Unmarshal([]byte(text), &told); err != nil || len(told.Revisions) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	for _, one := range told.Revisions {
		all = append(all, one.At)
	}
	return all
}

func TestAGatewayAloneTellsOfThePastOnlyWhatItServed(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, nil, nil, apiDef("orders", "http://127.0.0.1:1", true))
	ask := func(at time.Time) answer {
		return call(t, http.MethodPost, g.control+"/svc/explain", object{"url": "/orders/", "at": at.UTC().Format(time.RFC3339)}, "X-Svc-Authorization", testSecret)
	}
	if got := ask(time.Now().Add(-time.Hour)); got.status != http.StatusBadRequest || !strings.Contains(got.body, "keeps nothing from before; the admin explains") {
		t.Errorf("an hour ago: %s", got)
	}
	if got := ask(time.Now().Add(time.Hour)); got.status != http.StatusOK || !strings.Contains(got.body, `"allowed":true`) {
		t.Errorf("in an hour: %s", got)
	}
}
