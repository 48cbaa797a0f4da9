package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/internal/definition"
)

func describe(t *testing.T, text string) *explain.Request {
	t.Helper()
	q, err := explain.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// stagesOf lists the steps of a report as stage:result.
func stagesOf(r *explain.Report) (all []string) {
	for _, s := range r.Steps {
		all = append(all, s.Stage+":"+s.Result)
	}
	return all
}

func TestExplanationsNameTheirStages(t *testing.T) {
	a := agree(t)
	for _, c := range []struct {
		description string
		stages      []string // the last ones
		reason, fix string
	}{
		{`{"url":"/nowhere"}`, []string{"route:fail"}, "route_not_found", "listen_path"},
		{`{"url":"/a/../b"}`, []string{"route:fail"}, "bad_request", "dot segments"},
		{`{"url":"/rest/items","headers":["Bad Name: 1"]}`, []string{"framing:fail"}, "bad_request", ""},
		{`{"url":"/faulty/"}`, []string{"route:ok", "definition:fail"}, "not_served", "correct the definition"},
		{`{"url":"/unschemed/"}`, []string{"route:ok", "definition:fail"}, "schema_broken", "correct the definition"},
		{`{"url":"/rest/items"}`, []string{"route:ok", "auth:fail"}, "auth_missing", "Authorization"},
		{`{"url":"/rest/items","key":"key-of-nobody"}`, []string{"route:ok", "auth:fail"}, "auth_unknown", "exists"},
		{`{"url":"/rest/items","key":"key-of-missing"}`, []string{"auth:ok", "access:fail"}, "access_denied", "apply_policies"},
		{`{"url":"/rest/items","key":"key-of-master"}`, []string{"auth:ok", "access:fail"}, "access_denied", "access_rights"},
		{`{"url":"/rest/other","key":"key-of-narrow"}`, []string{"auth:ok", "access:fail"}, "url_denied", "allowed_urls"},
		{`{"url":"/norate/x","key":"key-of-itself"}`, []string{"auth:ok", "access:fail"}, "access_denied", `access_rights["norate"] to the key`},
		{`{"url":"/rest/items","key":"key-of-narrow"}`, []string{"access:ok", "limit:ok", "upstream:ok"}, "", ""},
		{`{"url":"/versions/x","key":"key-of-all","headers":["X-Version: v9"]}`, []string{"route:ok", "version:fail"}, "version_unknown", ""},
		{`{"url":"/allowed/","client":"198.51.100.1"}`, []string{"route:ok", "ip:fail"}, "address_denied", ""},
		{`{"url":"/param/","key":"key-of-all"}`, []string{"limit:ok", "upstream:ok"}, "", ""},
	} {
		r := a.Explain(describe(t, c.description))
		got := stagesOf(r)
		if n := min(len(got), len(c.stages)); !slices.Equal(got[len(got)-n:], c.stages) {
			t.Errorf("%s: stages %q, want at the end %q", c.description, got, c.stages)
		}
		o := r.Outcome
		if o.Reason != c.reason || o.Allowed != (c.reason == "") || !strings.Contains(o.Fix, c.fix) {
			t.Errorf("%s: %+v, want reason %q and fix %q", c.description, o, c.reason, c.fix)
		}
		if last := r.Steps[len(r.Steps)-1]; last.Said == "" {
			t.Errorf("%s: %s says nothing", c.description, last.Stage)
		}
	}
}

func TestExplanationsOfOperationsTellPlaces(t *testing.T) {
	a := agree(t)
	for _, c := range []struct {
		key, query, reason, said string
		rule, value, seen, from  string // of the first fact
	}{
		{"key-of-all", "{\n  nope }", "graphql_invalid", "(at 2:3)", "error", "field: nope not defined on type: Query", "2:3", "the schema"},
		{"key-of-narrow", "{ countries {\n continent { code } } }", "depth_limit", "depth limit exceeded: 4 at 2:14 > 3", "max_query_depth", "3", "4 at 2:14", "policy narrow"},
		{"key-of-narrow", "{ ...f } fragment f on Query { a: countries {\npopulation } }", "field_restricted", "(at 2:1)", "restricted_types", "Country.population", "2:1", "the entry for the API in policy narrow"},
		{"key-of-narrow", "{ __schema { types { name } } }", "introspection_disabled", "introspection is disabled", "max_query_depth", "3", "4", "policy narrow"},
		{"key-of-all", "{ a: secret b: secret c: secret }", "operation_limit", "alias limit exceeded: 3 > 2", "graphql.limits.max_aliases", "2", "3", "the definition"},
	} {
		body, _ := json.Marshal(map[string]string{"query": c.query})
		text, _ := json.Marshal(map[string]any{"method": "POST", "url": "/gql/", "key": c.key, "body": string(body), "headers": []string{"Content-Type: application/json"}})
		r := a.Explain(describe(t, string(text)))
		last := r.Steps[len(r.Steps)-1]
		if r.Outcome.Reason != c.reason || last.Stage != "graphql" || !strings.Contains(last.Said, c.said) {
			t.Errorf("%s: %+v %+v", c.query, r.Outcome, last)
			continue
		}
		if len(last.Facts) == 0 {
			t.Errorf("%s: no facts", c.query)
			continue
		}
		if f := last.Facts[0]; f.Rule != c.rule || f.Value != c.value || f.Seen != c.seen || f.From != c.from {
			t.Errorf("%s: %+v", c.query, last.Facts)
		}
	}
}

func TestExplanationsTellWhichEventWouldBeRaised(t *testing.T) {
	a := agree(t)
	for description, want := range map[string]string{
		`{"url":"/rest/items","key":"key-of-nobody"}`: "AuthFailure", `{"url":"/rest/items"}`: "", `{"url":"/rest/items","key":"key-of-all"}`: "",
	} {
		if got := a.Explain(describe(t, description)).Outcome.Event; got != want {
			t.Errorf("%s: %q, want %q", description, got, want)
		}
	}
}

func TestExplanationsTellOfWaiting(t *testing.T) {
	a := agree(t)
	s, err := definition.ParseSession([]byte(`{"org_id":"o","rate":1,"per":60,"throttle_interval":3600,"throttle_retry_limit":2,"access_rights":{"rest":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Store.Put(context.Background(), a.Hasher.Hash("key-that-waits"), s); err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest("GET", "http://"+a.Addr+"/rest/items", nil)
	req.Header.Set("Authorization", "key-that-waits")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r := a.Explain(describe(t, `{"url":"/rest/items","key":"key-that-waits"}`)) // an explanation waits for nothing, least of all for hours
	if last := r.Steps[len(r.Steps)-1]; r.Outcome.Reason != "rate_limit" || !strings.Contains(last.Said, "up to 2 times, every ") {
		t.Errorf("%+v %+v", r.Outcome, last)
	}
}

func TestExplanationsCountNothing(t *testing.T) {
	a := agree(t)
	q := describe(t, `{"url":"/rest/items","key":"key-of-slow"}`)
	for range 10 {
		if r := a.Explain(q); !r.Outcome.Allowed || r.Steps[len(r.Steps)-2].Said != "rate 0 of 3 per 1 s, would count 1" {
			t.Fatalf("%+v %+v", r.Outcome, r.Steps)
		}
	}
	if n := a.asked.Load(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
}

func TestRequestsAreExplainedByAnotherConfiguration(t *testing.T) {
	a := agree(t)
	off := false
	past := bundle("7", keyless("open", "/open/", "http://127.0.0.1:9/past"), keyless("gone", "/rest/", "http://127.0.0.1:9"), keyless("bad", "/bad", "nonsense"))
	past.APIs[1].Active = &off
	past.Policies = []*definition.Policy{{ID: "all", OrgID: "o"}}
	aside, err := a.Aside(context.Background(), past)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, reason, target string }{
		{"/open/x", "", "/past/x"}, {"/rest/x", "route_not_found", ""}, {"/bad", "not_served", ""}, {"/gql/", "route_not_found", ""},
	} {
		r := aside.Explain(describe(t, `{"url":"`+c.url+`"}`))
		target := ""
		if r.Outcome.Upstream != nil {
			target = r.Outcome.Upstream.Target
		}
		if r.Outcome.Reason != c.reason || target != c.target || r.Revision != "7" {
			t.Errorf("%s: %+v at revision %s", c.url, r.Outcome, r.Revision)
		}
	}
	if got := a.Current().Revision; got != "1" {
		t.Errorf("revision %s is in force", got)
	}
}

func TestRefusedRequestsAreExplainedByTheirIDs(t *testing.T) {
	a := agree(t)
	for _, c := range []struct{ path, key, stage, reason, api string }{
		{"/nowhere", "", "route", "route_not_found", ""},
		{"/rest/x", "", "auth", "auth_missing", "rest"},
		{"/rest/x?key=unseen", "key-of-narrow", "access", "url_denied", "rest"},
		{"/allowed/", "", "ip", "address_denied", "allowed"},
		{"/faulty/", "", "definition", "not_served", "faulty"},
	} {
		req, _ := http.NewRequest("GET", "http://"+a.Addr+c.path, nil)
		if c.key != "" {
			req.Header.Set("Authorization", c.key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got, ok := a.Refusal(resp.Header.Get("X-Request-Id"))
		if !ok {
			t.Errorf("%s: not remembered", c.path)
			continue
		}
		api := ""
		if got.API != nil {
			api = got.API.ID
		}
		path, _, _ := strings.Cut(c.path, "?")
		if got.Stage != c.stage || got.Reason != c.reason || api != c.api || got.Path != path || got.Status != resp.StatusCode {
			t.Errorf("%s: %+v", c.path, got)
		}
		if text, _ := json.Marshal(got); c.key != "" && strings.Contains(string(text), c.key) {
			t.Errorf("it tells the key: %s", text)
		}
	}
}

func TestNothingIsServedBeforeTheFirstConfiguration(t *testing.T) {
	g, _ := serve(t)
	r := g.Explain(describe(t, `{"url":"/x","key":"k"}`))
	if r.Outcome.Reason != "not_served" || r.Outcome.Status != 503 {
		t.Errorf("%+v", r.Outcome)
	}
}

func TestExplanationsOfAnotherMomentTellWhatEndsByThen(t *testing.T) {
	a := agree(t)
	soon, before := time.Now().Add(time.Hour).UTC().Format(time.RFC3339), time.Now().Add(-24*time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		at, result string
		untold     []string
	}{
		{"", "ok", nil}, {soon, "ok", nil}, {before, "untold", []string{"limit"}},
	} {
		r := a.Explain(describe(t, `{"url":"/rest/items","key":"key-of-itself","at":"`+c.at+`"}`))
		if r.At != c.at || !r.Outcome.Allowed || !slices.Equal(r.Outcome.Untold, c.untold) {
			t.Errorf("at %q: %q, %+v, want untold %q", c.at, r.At, r.Outcome, c.untold)
		}
		if got := stagesOf(r); !slices.Contains(got, "limit:"+c.result) {
			t.Errorf("at %q: %q", c.at, got)
		}
	}
	for text, want := range map[string]string{
		`{"url":"/","at":"tomorrow"}`:                                           "at: must be a time as in",
		`{"url":"/","at":"1999-12-31T00:00:00Z"}`:                               "at: must lie between",
		`{"id":"0123456789abcdef0123456789abcdef","at":"2030-01-01T00:00:00Z"}`: "id: stands alone",
	} {
		if _, err := explain.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
