package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// playground is a gateway whose upstream answers with the headers that it got.
type playground struct {
	*gatewaytest.Gateway
	asked atomic.Int64
	t     *testing.T
}

const playedAPIs = `[
	{"api_id":"keyed","org_id":"o","proxy":{"listen_path":"/keyed/","target_url":"TARGET"}},
	{"api_id":"outer","org_id":"o","proxy":{"listen_path":"/outer/","target_url":"svc://keyed"}},
	{"api_id":"stripping","org_id":"o","strip_auth_data":true,"proxy":{"listen_path":"/stripping/","target_url":"svc://keyed"}},
	{"api_id":"long","use_keyless":true,"org_id":"o","proxy":{"listen_path":"/long/","target_url":"TARGET/long"}},
	{"api_id":"gql","org_id":"o","proxy":{"listen_path":"/gql/","target_url":"TARGET"},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { me: User } type User { name: String me: User }"}}]`

func playing(t *testing.T, change ...func(*gateway.Deps)) *playground {
	p := &playground{t: t, Gateway: gatewaytest.Start(t, gatewaytest.Options{Deps: func(d *gateway.Deps) {
		d.Config.Refusals = 10
		for _, c := range change {
			c(d)
		}
	}})}
	origin := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		p.asked.Add(1)
		if strings.HasPrefix(string(ctx.Path()), "/long") {
			ctx.SetBodyString(strings.Repeat("x", explain.MaxPlayed+1))
			return
		}
		fmt.Fprintf(ctx, "%s %s authorization=%q", ctx.Method(), ctx.Path(), ctx.Request.Header.Peek("Authorization"))
	})
	var apis []json.RawMessage
	if err := json.Unmarshal([]byte(strings.ReplaceAll(playedAPIs, "TARGET", origin)), &apis); err != nil {
		t.Fatal(err)
	}
	b := &definition.Bundle{Revision: "7"}
	for _, text := range apis {
		api, err := definition.ParseAPI(text)
		if err != nil {
			t.Fatal(err)
		}
		b.APIs = append(b.APIs, api)
	}
	policy, err := definition.ParsePolicy([]byte(`{"id":"shallow","org_id":"o","active":true,"max_query_depth":3,"access_rights":{"gql":{"api_id":"gql"},"keyed":{"api_id":"keyed"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	b.Policies = append(b.Policies, policy)
	if failed := p.Apply(b); len(failed) > 0 {
		t.Fatal(failed)
	}
	p.key("metered", `{"org_id":"o","quota_max":2,"quota_renewal_rate":3600,"access_rights":{"keyed":{},"outer":{},"stripping":{}}}`)
	p.key("limited", `{"org_id":"o","max_query_depth":3,"access_rights":{"gql":{}}}`)
	return p
}

func (p *playground) key(key, session string) {
	p.t.Helper()
	s, err := definition.ParseSession([]byte(session))
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.Store.Put(context.Background(), p.Hasher.Hash(key), s); err != nil {
		p.t.Fatal(err)
	}
}

// play calls an API: caller is a member of the description that names one, or "".
func (p *playground) play(api, caller, body string, counted bool) *explain.Played {
	p.t.Helper()
	method := "GET"
	if body != "" {
		method = "POST"
	}
	q := describe(p.t, fmt.Sprintf(`{"method":%q,"url":"/%s/","body":%q,"headers":{"Content-Type":"application/json"}%s}`, method, api, body, caller))
	got := p.Play(&gateway.Playing{Request: q, API: api, Counted: counted, Within: time.Minute})
	if got.Report == nil || got.Report.Revision != "7" {
		p.t.Fatalf("%s: explained as %+v", api, got.Report)
	}
	return got
}

func (p *playground) hashOf(key string) string {
	return fmt.Sprintf(`,"key_hash":%q`, p.Hasher.Hash(key))
}

func TestAPlayedCallNeedsNoCredential(t *testing.T) {
	p := playing(t)
	if got := p.play("keyed", "", "", false); got.Status != 401 || !got.Sent || got.RequestID == "" {
		t.Errorf("as nobody: %+v", got)
	}
	got := p.play("keyed", p.hashOf("metered"), "", false)
	if got.Status != 200 || string(got.Body) != `GET /keyed/ authorization=""` || got.Cut || len(got.Headers) == 0 {
		t.Errorf("as a key: %d %s", got.Status, got.Body)
	}
	if got.Took <= 0 || got.Upstream <= 0 || got.Report.Key == nil || !got.Report.Outcome.Allowed {
		t.Errorf("%+v %+v", got, got.Report)
	}
	if got := p.play("keyed", p.hashOf("nobody"), "", false); got.Status != 403 {
		t.Errorf("as a key that does not exist: %d", got.Status)
	}
	if got := p.play("outer", p.hashOf("metered"), "", false); got.Status != 200 {
		t.Errorf("an internal call: %d %s", got.Status, got.Body)
	}
	if got := p.play("stripping", p.hashOf("metered"), "", false); got.Status != 401 || got.Report.Outcome.Status != 401 {
		t.Errorf("an internal call by an API that strips credentials: %d, explained as %d", got.Status, got.Report.Outcome.Status)
	}
}

func TestPlayedCallsCountWhenThatIsAskedFor(t *testing.T) {
	p := playing(t)
	for range 5 {
		if got := p.play("keyed", p.hashOf("metered"), "", false); got.Status != 200 {
			t.Fatalf("an uncounted call: %d %s", got.Status, got.Body)
		}
	}
	for i, want := range []int{200, 200, 403} {
		if got := p.play("keyed", p.hashOf("metered"), "", true); got.Status != want {
			t.Fatalf("counted call %d: %d %s", i, got.Status, got.Body)
		}
	}
	if got := p.play("keyed", p.hashOf("metered"), "", false); got.Status != 403 || got.Report.Outcome.Reason != "quota_exceeded" {
		t.Errorf("with a used quota: %d %s", got.Status, got.Body)
	}
}

func TestARefusedPlayedCallIsExplained(t *testing.T) {
	p := playing(t)
	const deep = `{"query":"{ me { me { name } } }"}`
	for _, caller := range []string{p.hashOf("limited"), `,"policy":"shallow"`} {
		before := p.asked.Load()
		got := p.play("gql", caller, deep, false)
		last := got.Report.Steps[len(got.Report.Steps)-1]
		if got.Status != 403 || got.Report.Outcome.Reason != "depth_limit" || last.Stage != "graphql" || !strings.Contains(last.Said, "4") {
			t.Errorf("%s: %d %s, explained as %+v", caller, got.Status, got.Body, last)
		}
		if found, ok := p.Refusal(got.RequestID); !ok || found.Reason != "depth_limit" || p.asked.Load() != before {
			t.Errorf("%s: recorded as %+v", caller, found)
		}
		if got := p.play("gql", caller, `{"query":"{ me { name } }"}`, false); got.Status != 200 {
			t.Errorf("%s: %d %s", caller, got.Status, got.Body)
		}
	}
	if got := p.play("gql", `,"policy":"none"`, deep, false); got.Status != 403 || got.Report.Outcome.Reason == "depth_limit" {
		t.Errorf("a policy that does not exist: %d %s", got.Status, got.Body)
	}
}

func TestPlayedCallsReachTheAPIThatIsMeantAlone(t *testing.T) {
	p := playing(t)
	q := describe(t, `{"url":"/long/"}`)
	got := p.Play(&gateway.Playing{Request: q, API: "keyed", Within: time.Minute})
	if got.Sent || p.asked.Load() != 0 || got.Report.API.ID != "long" {
		t.Errorf("%+v", got)
	}
	if got := p.play("long", "", "", false); got.Status != 200 || len(got.Body) != explain.MaxPlayed || !got.Cut {
		t.Errorf("%d with %d bytes, cut %v", got.Status, len(got.Body), got.Cut)
	}
}

func TestCallsArePlayedUnderAConfigurationThatIsNotInForce(t *testing.T) {
	p := playing(t)
	bundle := &definition.Bundle{Revision: "8", APIs: p.Current().APIs(), Policies: p.Current().Policies().All()}
	aside, err := p.Aside(t.Context(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range []string{"keyed", "outer"} {
		q := describe(t, fmt.Sprintf(`{"url":"/%s/"%s}`, api, p.hashOf("metered")))
		got := aside.Play(&gateway.Playing{Request: q, API: api, Within: time.Minute})
		if got.Status != 200 || !strings.Contains(string(got.Body), "authorization") || got.Report.Revision != "8" {
			t.Errorf("%s: %+v", api, got)
		}
	}
}

// A gateway that serves no traffic calls upstreams from the admin's process: what that may
// not call, it does not either.
func TestPlayedCallsKeepToTheAddressesThatAreAllowed(t *testing.T) {
	p := playing(t, func(d *gateway.Deps) { d.Stages.Pools.Guard(dialguard.Policy{}) })
	aside, err := p.Aside(t.Context(), &definition.Bundle{Revision: "8", APIs: p.Current().APIs()})
	if err != nil {
		t.Fatal(err)
	}
	q := describe(t, fmt.Sprintf(`{"url":"/keyed/"%s}`, p.hashOf("metered")))
	got := aside.Play(&gateway.Playing{Request: q, API: "keyed", Within: time.Minute})
	if got.Status != 502 || p.asked.Load() != 0 {
		t.Errorf("%d %s, and the upstream was asked %d times", got.Status, got.Body, p.asked.Load())
	}
	found, ok := p.Refusal(got.RequestID)
	if !ok || !strings.Contains(found.Cause, "private") {
		t.Errorf("recorded as %+v", found)
	}
}
