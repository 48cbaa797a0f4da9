package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
)

// A policy's meta data replaces the key's of the same name, and a later policy's
// that of an earlier one, wherever variables are replaced.
func TestMetaDataOfPoliciesReplacesThatOfTheKey(t *testing.T) {
	up := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		fmt.Fprintf(ctx, "%s team=%s %s", ctx.RequestURI(), ctx.Request.Header.Peek("X-Team"), ctx.PostBody())
	})
	api := within(t, "o", "m", up, `, "enable_context_vars": true, "version_data": {"not_versioned": true, "versions": {"Default": {
		"global_headers": {"X-Team": "$svc_meta.team/$svc_meta.own/$svc_meta.added/$svc_meta.last"},
		"use_extended_paths": true, "extended_paths": {
			"url_rewrites": [{"path": "/rewritten", "match_pattern": ".*", "rewrite_to": "/to/$svc_meta.team", "triggers": [
				{"options": {"session_meta_matches": {"last": {"match_rx": "^silver$"}}}, "rewrite_to": "/trigger/$svc_meta.team"}]}],
			"persist_graphql": [{"method": "GET", "path": "/stored", "operation": "query($t: String) { a(t: $t) }", "variables": {"t": "$svc_meta.team"}}]}}}}`)
	policy := func(id, meta string) *definition.Policy {
		p, err := definition.ParsePolicy(fmt.Appendf(nil, `{"id": %q, "org_id": "o", "access_rights": {"m": {}}, "meta_data": %s}`, id, meta))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	policies := []*definition.Policy{policy("gold", `{"team": "gold", "last": "gold", "added": 5}`), policy("silver", `{"last": "silver"}`), policy("plain", `null`)}
	g := gatewaytest.Start(t, gatewaytest.Options{})
	g.Apply(&definition.Bundle{Revision: "1", APIs: []*definition.API{api}, Policies: policies})
	for _, c := range []struct {
		policies []string
		team     string
		header   string
		rewrite  string
	}{
		{[]string{"plain"}, "key", "key/mine//key", "/to/key"},
		{[]string{"gold"}, "gold", "gold/mine/5/gold", "/to/gold"},
		{[]string{"gold", "plain", "silver"}, "gold", "gold/mine/5/silver", "/trigger/gold"},
		{[]string{"silver", "gold"}, "gold", "gold/mine/5/gold", "/to/gold"},
	} {
		key := strings.Join(c.policies, "-")
		g.Put(key, &definition.Session{OrgID: "o", ApplyPolicies: c.policies, MetaData: map[string]json.RawMessage{
			"team": json.RawMessage(`"key"`), "own": json.RawMessage(`"mine"`), "last": json.RawMessage(`"key"`),
		}})
		for path, want := range map[string]string{
			"/m/x":         "/x team=" + c.header,
			"/m/rewritten": c.rewrite + " team=" + c.header,
			"/m/stored":    `"t":"` + c.team + `"`,
		} {
			if status, _, body := ask(t, g.Addr, path, "Authorization", key); status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s with %s: %d %q, want %q", path, key, status, body, want)
			}
		}
	}
	facts := fmt.Sprintf("%+v", g.Explain(describe(t, `{"url": "/m/x", "key": "gold-plain-silver"}`)).Steps)
	for _, want := range []string{"meta_data.team", "policy gold", "meta_data.last", "policy silver"} {
		if !strings.Contains(facts, want) {
			t.Errorf("the explanation does not name %s: %s", want, facts)
		}
	}
}
