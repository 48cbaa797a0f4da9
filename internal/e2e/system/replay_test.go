package system

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// replayed is the report on a run.
type replayed struct {
	ID, State, Fault string
	Done, Total      int
	Result           struct {
		Samples int
		Summary string
		Refused turned                 `json:"newly_refused"`
		Allowed turned                 `json:"newly_allowed"`
		Skipped []struct{ Why string } `json:"not_compared"`
		Both    int                    `json:"refused_by_both"`
		Changed int                    `json:"refused_since"`
	}
}

type turned struct {
	Samples int
	Rules   []struct {
		Reason, Stage, Rule, Value, From string
		Samples                          int
		Examples                         []struct{ ID, URL, Operation, Seen string }
	}
	Keys []struct {
		Alias   string
		Hash    string `json:"key_hash"`
		Samples int
	}
	APIs []struct {
		API     string `json:"api_id"`
		Samples int
	}
}

// recording is an installation that records every request.
type recording struct {
	*rig.Server
	t    *testing.T
	rest *rig.Rest
}

func newRecording(t *testing.T, dir string, with settings) *recording {
	t.Helper()
	s := rig.NewUp(t, dir, rig.Merge(settings{"gateway.samples_per_second": "1000", "usage.flush": "200ms"}, with)).StartReady()
	return &recording{s, t, s.Rest()}
}

// recorded waits until some samples of an API are there.
func (r *recording) recorded(api string, n int) {
	r.t.Helper()
	r.Await(fmt.Sprintf("%d recorded requests of %s", n, api), func() error {
		var all struct {
			APIs []struct {
				API     string `json:"api_id"`
				Samples int
			}
		}
		r.rest.Do("GET", "/api/samples", nil).Into(r.t, &all)
		for _, a := range all.APIs {
			if a.API == api && a.Samples == n {
				return nil
			}
		}
		return fmt.Errorf("%+v", all.APIs)
	})
}

// replay runs the samples under a change, and returns the report when it is done.
func (r *recording) replay(query string, batch object) (report replayed) {
	r.t.Helper()
	r.rest.Expect(201, "POST", "/api/config/replay"+query, batch).Into(r.t, &report)
	id := report.ID
	r.Await("the run to end", func() error {
		report = replayed{}
		r.rest.Do("GET", "/api/config/replay/"+id, nil).Into(r.t, &report)
		if report.State != "done" {
			return fmt.Errorf("%s, %d of %d: %s", report.State, report.Done, report.Total, report.Fault)
		}
		return nil
	})
	return report
}

// A lowered depth limit would refuse exactly the deep operations, and the keys that sent
// them are named. Nothing is counted by that, and nothing changes.
func TestRecordedRequestsShowWhatAChangeWouldRefuse(t *testing.T) {
	t.Parallel()
	r := newRecording(t, rig.DataDir(t), nil)
	origin := "http://" + testenv.Origin(t, rig.Echo)
	r.rest.Do("POST", "/api/apis", rig.GraphDef("graph", origin, false, nil))
	r.rest.Do("POST", "/api/apis", rig.APIDef("plain", origin, false))
	policy := func(depth int) object {
		rights := rig.AccessTo("graph", "plain")
		return object{"id": "gold", "name": "Gold", "active": true, "rate": 1000, "per": 60, "quota_max": -1, "max_query_depth": depth, "access_rights": rights}
	}
	r.rest.Do("POST", "/api/policies", policy(6))
	keys := make(map[string]string)
	for _, alias := range []string{"deep one", "deep two", "flat"} {
		keys[alias] = r.rest.NewKey(object{"alias": alias, "apply_policies": []string{"gold"}})
	}
	const flat, deep = `query Flat { country(code: "x") { name } }`, `query Deep { country(code: "x") { continent { countries { continent { code } } } } }`
	ask := func(alias, query string, want int) {
		t.Helper()
		got := rig.Call(t, "POST", r.Traffic+"/graph/", rig.QueryBody(query), "Authorization", keys[alias], "Content-Type", rig.JSONMedia)
		if got.Status != want {
			t.Fatalf("%s: %s", alias, got)
		}
	}
	probes := 0
	r.Await("the policy", func() error {
		probes++
		got, err := rig.Send("POST", r.Traffic+"/graph/", rig.QueryBody(flat), "Authorization", keys["flat"], "Content-Type", rig.JSONMedia)
		if err == nil && got.Status != 200 {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
	r.recorded("graph", probes)
	r.rest.Do("DELETE", "/api/samples", nil)
	for range 3 {
		ask("deep one", deep, 200)
		ask("flat", flat, 200)
	}
	ask("deep two", deep, 200)
	ask("deep two", flat, 200)
	rig.Call(t, "GET", r.Traffic+"/plain/x", nil, "Authorization", keys["flat"])
	rig.Call(t, "GET", r.Traffic+"/plain/x", nil)
	r.recorded("graph", 8)
	r.recorded("plain", 2)

	same := r.replay("", object{"policies": []object{policy(6)}}).Result
	if same.Samples != 10 || same.Refused.Samples+same.Allowed.Samples+same.Changed+len(same.Skipped) != 0 || same.Both != 1 {
		t.Errorf("without a change: %+v", same)
	}
	got := r.replay("", object{"policies": []object{policy(3)}}).Result
	if got.Samples != 10 || got.Refused.Samples != 4 || got.Allowed.Samples != 0 || !strings.Contains(got.Summary, "refuse 4 of 10 recorded requests, from 2 keys") {
		t.Fatalf("with a depth of 3: %+v", got)
	}
	rule := got.Refused.Rules[0]
	if len(got.Refused.Rules) != 1 || rule.Reason != "depth_limit" || rule.Rule != "max_query_depth" || rule.Value != "3" || !strings.Contains(rule.From, "gold") ||
		len(rule.Examples) != 4 || rule.Examples[0].Operation != "Deep" || !strings.HasPrefix(rule.Examples[0].Seen, "6") {
		t.Errorf("rules %+v", got.Refused.Rules)
	}
	if k := got.Refused.Keys; len(k) != 2 || k[0].Alias != "deep one" || k[0].Samples != 3 || k[1].Alias != "deep two" || k[1].Samples != 1 {
		t.Errorf("keys %+v", k)
	}
	if a := got.Refused.APIs; len(a) != 1 || a[0].API != "graph" || a[0].Samples != 4 {
		t.Errorf("APIs %+v", a)
	}
	if only := r.replay("?api=plain", object{"policies": []object{policy(3)}}).Result; only.Samples != 2 || only.Refused.Samples != 0 {
		t.Errorf("of the other API: %+v", only)
	}
	if newest := r.replay("?limit=3", object{}).Result; newest.Samples != 3 {
		t.Errorf("of the newest three: %+v", newest)
	}
	open := r.replay("", object{"apis": []object{rig.APIDef("plain", origin, true)}}).Result
	if open.Allowed.Samples != 1 || len(open.Allowed.Rules) != 1 || open.Allowed.Rules[0].Reason != "auth_missing" {
		t.Errorf("without keys: %+v", open.Allowed)
	}
	moved := rig.APIDef("plain", origin, false)
	moved["proxy"].(object)["listen_path"] = "/elsewhere/"
	if gone := r.replay("", object{"apis": []object{moved}}).Result; gone.Refused.Samples != 1 || gone.Refused.Rules[0].Reason != "route_not_found" {
		t.Errorf("with the API elsewhere: %+v", gone.Refused)
	}
	r.asAnotherPolicy()
	r.rest.Expect(409, "POST", "/api/config/replay?api=none", object{}, "gateway.samples_per_second")
	r.rest.Expect(400, "POST", "/api/config/replay?limit=0", object{}, "limit")
	r.rest.Expect(400, "POST", "/api/config/replay?since=yesterday", object{}, "since")
	r.rest.Expect(400, "POST", "/api/config/replay", object{"policies": []object{{"id": "gold", "rate": "x"}}}, "gold")
	r.rest.Expect(404, "GET", "/api/config/replay/none", nil)

	r.saysTheSame(policy(3))

	// The samples of a key go with it.
	r.rest.Do("DELETE", "/api/keys/"+url.PathEscape(keys["deep one"]), nil)
	r.recorded("graph", 5)
	ask("flat", flat, 200)
}

// asAnotherPolicy runs the samples as if their callers had another policy, which need not be
// stored.
func (r *recording) asAnotherPolicy() {
	r.t.Helper()
	free := object{"id": "free", "name": "Free", "active": true, "max_query_depth": 3, "access_rights": rig.AccessTo("graph")}
	got := r.replay("?as_policy=free", object{"policies": []object{free}}).Result
	if got.Samples != 8 || got.Refused.Samples != 4 || len(got.Refused.Keys) != 2 || len(got.Skipped) != 1 ||
		got.Summary != "With policy free alone, callers would be refused 4 of 8 recorded requests, from 2 keys." {
		r.t.Errorf("as a new policy: %+v", got)
	}
	if rule := got.Refused.Rules[0]; rule.Reason != "depth_limit" || !strings.Contains(rule.From, "free") {
		r.t.Errorf("as a new policy: %+v", rule)
	}
	delete(free, "max_query_depth")
	if got := r.replay("?as_policy=free", object{"policies": []object{free}}).Result; got.Refused.Samples != 0 || got.Samples != 8 {
		r.t.Errorf("without a depth: %+v", got)
	}
	own := r.replay("", object{"policies": []object{free}}).Result
	if own.Samples != 10 || own.Refused.Samples+own.Allowed.Samples != 0 {
		r.t.Errorf("callers have their own policies: %+v", own)
	}
	stored := r.replay("?as_policy=gold&api=plain", object{}).Result
	if stored.Samples != 2 || stored.Both != 1 || stored.Refused.Samples != 0 {
		r.t.Errorf("a request without a key stays one: %+v", stored)
	}
	r.rest.Expect(400, "POST", "/api/config/replay?as_policy=none", object{}, "as_policy must be the id of a policy")
}

// saysTheSame runs the samples with the command line.
func (r *recording) saysTheSame(policy object) {
	r.t.Helper()
	id := policy["id"].(string)
	delete(policy, "id")
	text, err := json.Marshal(object{"kind": "Policy", "metadata": object{"name": id}, "spec": policy})
	file := filepath.Join(r.t.TempDir(), "policy.json")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.CLI("replay", file).Wants(r.t, 5, "would refuse 4 of 10 recorded requests, from 2 keys", "4  depth_limit, max_query_depth 3 of policy gold", "3  ", "deep one", "4 requests would be refused in addition")
	r.CLI("replay", "--max-refused", "4", file).Wants(r.t, 0, "would refuse 4 of 10")
	r.CLI("replay", "--max-refused", "39.9%", "-o", "json", file).Wants(r.t, 5, `"newly_refused"`)
	r.CLI("replay", "--max-refused", "40%", file).Wants(r.t, 0)
	r.CLI("replay", "--max-refused", "few", file).Wants(r.t, 2, "--max-refused must be a number")
	r.CLI("replay", "--api", "plain", file).Wants(r.t, 0, "would refuse none of 2")
	r.CLI("replay", "--api", "none", file).Wants(r.t, 6, "gateway.samples_per_second")
	r.CLI("replay", "--as-policy", "gold", file).Wants(r.t, 5, "With policy gold alone, callers would be refused 4 of 10")
	r.CLI("diff", "-f", file, "--replay").Wants(r.t, 5, "max_query_depth", "would refuse 4 of 10")
}

// Callers whom a token gave their policies, keys that are gone, and bodies that were too
// large: each sample is compared as far as it can be. Ten thousand of them are one run.
func TestSamplesThatHaveNoStoredKey(t *testing.T) {
	t.Parallel()
	r := newRecording(t, rig.DataDir(t), settings{"gateway.token": splitToken})
	origin := "http://" + testenv.Origin(t, rig.Echo)
	signed := rig.GraphDef("signed", origin, false, nil)
	signed["enable_jwt"], signed["jwt_signing_method"], signed["jwt_source"], signed["jwt_identity_base_field"] = true, "hmac", "c2VjcmV0LW9mLXRoZS1pc3N1ZXItMDEyMzQ1Njc4OS0wMTIzNDU2Nzg5", "sub"
	signed["jwt_policy_field_name"] = "pol"
	signed["auth"] = object{"auth_header_name": "Authorization"}
	r.rest.Do("POST", "/api/apis", signed)
	policy := func(depth int) object {
		return object{"id": "gold", "name": "Gold", "active": true, "rate": 1, "per": 3600, "quota_max": 1, "quota_renewal_rate": 3600, "max_query_depth": depth, "access_rights": rig.AccessTo("signed")}
	}
	r.rest.Do("POST", "/api/policies", policy(6))
	var me struct {
		Org string `json:"org_id"`
	}
	r.rest.Do("GET", "/api/apis/signed", nil).Into(t, &me)
	const deep = `{ country(code: "x") { continent { countries { code } } } }`
	sample := func(n int, more object) object {
		one := object{
			"id": fmt.Sprint("s", n), "at": time.Now().Add(-time.Hour).UTC(), "org_id": me.Org, "api_id": "signed", "method": "POST", "host": "h", "url": "/signed/",
			"headers": []string{"Content-Type: application/json"}, "body": rig.QueryBody(deep), "status": 200, "client": "203.0.113.9",
		}
		maps.Copy(one, more)
		return one
	}
	const batches, each = 50, 200
	for b := range batches {
		var all []object
		for n := range each {
			all = append(all, sample(b*each+n, object{"key_hash": "token-of-anna", "key": "token", "policies": []string{"gold"}}))
		}
		if b == 0 {
			all[0] = sample(0, object{"key_hash": strings.Repeat("ab", 32)})
			all[1] = sample(1, object{"policies": []string{"gold"}, "key_hash": "token-of-bob", "body": "", "length": 70000, "body_left_out": true})
			all[2] = sample(2, object{"status": 401, "reason": "auth_missing"})
		}
		got, err := rig.Send("POST", r.Admin+"/api/gateway/usage", object{"gateway": "gw", "boot": "b", "sequence": b + 1, "rows": []object{}, "samples": all},
			"Authorization", "Bearer "+splitToken, "Content-Type", "application/json")
		if err != nil || got.Status != 200 || strings.Contains(string(got.Body), "refused") {
			t.Fatalf("%v: %s", err, got)
		}
	}
	began := time.Now()
	got := r.replay("", object{"policies": []object{policy(3)}}).Result
	t.Logf("%d requests took %s", got.Samples, time.Since(began))
	const turned = batches*each - 3
	if got.Samples != batches*each || got.Refused.Samples != turned || got.Both != 1 || len(got.Skipped) != 2 || got.Changed != 0 ||
		len(got.Refused.Rules) != 1 || got.Refused.Rules[0].Reason != "depth_limit" || len(got.Refused.Keys) != 1 || got.Refused.Keys[0].Hash != "token-of-anna" {
		t.Errorf("%+v", got)
	}
	if same := r.replay("?limit=100", object{}).Result; same.Samples != 100 || same.Refused.Samples+same.Both != 0 {
		t.Errorf("without a change, rate and quota of 1 do not count: %+v", same)
	}
}
