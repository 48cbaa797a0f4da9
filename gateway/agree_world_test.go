package gateway_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/stage/auth/basic"
	"github.com/sluicegate/sluice/gateway/stage/auth/jwt"
	"github.com/sluicegate/sluice/gateway/stage/cache"
	"github.com/sluicegate/sluice/gateway/stage/graphql"
	"github.com/sluicegate/sluice/gateway/upstream/targets"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/gatewaytest"
	"github.com/valyala/fasthttp"
)

// agreement is a gateway that is asked what it would do, and then made to do it.
type agreement struct {
	*gatewaytest.Gateway
	clock *atomic.Int64 // of the counters, in unix nanoseconds: time passes between requests only
	asked atomic.Int64  // calls that reached the upstream
}

const agreedSchema = `
type Query { country(code: ID!): Country countries(first: Int): [Country!]! animal: Animal secret: String }
type Mutation { rename(code: ID!, name: String!): Country }
type Country { code: ID! name: String! continent: Continent! population: Int }
type Continent { code: ID! countries: [Country!]! }
interface Animal { name: String! }
type Cat implements Animal { name: String! lives: Int! }
`

// agreedAPIs are definitions of every kind; TARGET is the upstream's URL.
var agreedAPIs = []string{
	`{"api_id":"open","use_keyless":true,"proxy":{"listen_path":"/open/","target_url":"TARGET/o","strip_listen_path":true},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-Own":"1"},"global_headers_remove":["X-Gone"]}}}}`,
	`{"api_id":"rest","org_id":"o","strip_auth_data":true,"proxy":{"listen_path":"/rest/","target_url":"TARGET/r?k=v","strip_listen_path":true}}`,
	`{"api_id":"norate","org_id":"o","disable_rate_limit":true,"disable_quota":true,"proxy":{"listen_path":"/norate/","target_url":"TARGET"}}`,
	`{"api_id":"param","org_id":"o","strip_auth_data":true,"auth_configs":{"authToken":{"disable_header":true,"use_param":true,"param_name":"key","use_cookie":true,"cookie_name":"token"}},
		"proxy":{"listen_path":"/param/","target_url":"TARGET"}}`,
	`{"api_id":"gql","org_id":"o","proxy":{"listen_path":"/gql/","target_url":"TARGET/graphql","strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":SCHEMA,"batch_max":3,"limits":{"max_aliases":2}}}`,
	`{"api_id":"gqlopen","use_keyless":true,"proxy":{"listen_path":"/gqlopen/","target_url":"TARGET/graphql","strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":SCHEMA,"limits":{"max_depth":4},"legacy_json_200":true}}`,
	`{"api_id":"trusted","org_id":"o","proxy":{"listen_path":"/trusted/","target_url":"TARGET/graphql","strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":SCHEMA,"trusted_documents":{"required":true,"documents":["{ countries { name } }"]}}}`,
	`{"api_id":"stored","org_id":"o","enable_context_vars":true,"proxy":{"listen_path":"/stored/","target_url":"TARGET/graphql","strip_listen_path":true},
		"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":SCHEMA},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","use_extended_paths":true,"extended_paths":{"persist_graphql":[
			{"method":"GET","path":"/country/{code}","operation":"query($c: ID!) { country(code: $c) { name } }","variables":{"c":"$path.code"}},
			{"method":"GET","path":"/deep","operation":"{ countries { continent { countries { continent { code } } } } }","variables":{}}]}}}}}`,
	`{"api_id":"versions","org_id":"o","definition":{"location":"header","key":"X-Version"},"proxy":{"listen_path":"/versions/","target_url":"TARGET","strip_listen_path":true},
		"version_data":{"default_version":"v1","versions":{
			"v1":{"name":"v1","use_extended_paths":true,"extended_paths":{
				"ignored":[{"path":"/free","method_actions":{"GET":{"action":"no_action"}}}],
				"black_list":[{"path":"/secret","method_actions":{"GET":{"action":"no_action"},"POST":{"action":"no_action"}}}],
				"mock_response":[{"path":"/mock","method":"GET","code":418,"body":"teapot","headers":{"X-Mock":"yes"}}]}},
			"v2":{"name":"v2","paths":{"white_list":["/ok"]},"override_target":"TARGET/second"},
			"old":{"name":"old","expires":"2001-01-01 00:00"}}}}`,
	`{"api_id":"sized","org_id":"o","proxy":{"listen_path":"/sized/","target_url":"TARGET"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_size_limit":64}}}}`,
	`{"api_id":"allowed","use_keyless":true,"enable_ip_whitelisting":true,"allowed_ips":["203.0.113.0/24"],"proxy":{"listen_path":"/allowed/","target_url":"TARGET"}}`,
	`{"api_id":"blocked","use_keyless":true,"enable_ip_blacklisting":true,"blacklisted_ips":["203.0.113.9"],"proxy":{"listen_path":"/blocked/","target_url":"TARGET"}}`,
	`{"api_id":"cors","org_id":"o","CORS":{"enable":true,"allowed_origins":["https://a.example"],"allowed_methods":["GET","POST"],"allowed_headers":["X-One"],"max_age":60},
		"proxy":{"listen_path":"/cors/","target_url":"TARGET"}}`,
	`{"api_id":"shared","use_keyless":true,"global_rate_limit":{"rate":5,"per":1},"proxy":{"listen_path":"/shared/","target_url":"TARGET"}}`,
	`{"api_id":"rewritten","use_keyless":true,"enable_context_vars":true,"proxy":{"listen_path":"/rewritten/","target_url":"TARGET/w","strip_listen_path":true},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","use_extended_paths":true,"extended_paths":{
			"url_rewrites":[{"path":"/from","method":"GET","match_pattern":"/from/(.*)","rewrite_to":"/to/$1","triggers":[
				{"options":{"header_matches":{"X-To":{"match_rx":"far"}}},"rewrite_to":"TARGET/far/$1"},
				{"options":{"header_matches":{"X-To":{"match_rx":"in"}}},"rewrite_to":"svc://self/from/$1"},
				{"options":{"header_matches":{"X-To":{"match_rx":"open"}}},"rewrite_to":"svc://open/$1"}]}]}}}}}`,
	`{"api_id":"kept","org_id":"o","cache_options":{"enable_cache":true,"cache_timeout":600,"cache_all_safe_requests":true},"proxy":{"listen_path":"/kept/","target_url":"TARGET"}}`,
	`{"api_id":"users","org_id":"o","use_basic_auth":true,"proxy":{"listen_path":"/users/","target_url":"TARGET"}}`,
	`{"api_id":"tokens","org_id":"o","enable_jwt":true,"jwt_signing_method":"hmac","jwt_source":"c2VjcmV0LW9mLXRva2Vucy1vZi0zMi1ieXRlcy1vci1tb3Jl","jwt_policy_field_name":"pol","jwt_default_policies":["all"],
		"proxy":{"listen_path":"/tokens/","target_url":"TARGET"}}`,
	`{"api_id":"before","org_id":"o","name":"Before others","use_keyless":true,"proxy":{"listen_path":"/before/","target_url":"svc://rest/from?before=1","strip_listen_path":true}}`,
	`{"api_id":"keyed","org_id":"o","strip_auth_data":true,"auth_configs":{"authToken":{"auth_header_name":"Authorization"}},
		"proxy":{"listen_path":"/keyed/","target_url":"svc://inside","strip_listen_path":true}}`,
	`{"api_id":"inside","org_id":"o","internal":true,"use_keyless":true,"global_rate_limit":{"rate":40,"per":1},"proxy":{"listen_path":"/inside/","target_url":"TARGET/inside"}}`,
	`{"api_id":"round","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/round/","target_url":"svc://self/again","strip_listen_path":true}}`,
	`{"api_id":"astray","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/astray/","target_url":"svc://open","strip_listen_path":true}}`,
	`{"api_id":"family","org_id":"o","definition":{"enabled":true,"name":"v1","default":"v1","location":"header","key":"X-Version","versions":{"v2":"before-others","v3":"versions","old":"gone"}},
		"proxy":{"listen_path":"/family/","target_url":"TARGET/f","strip_listen_path":true}}`,
	`{"api_id":"ahead","org_id":"o","use_keyless":true,"cache_options":{"enable_cache":true,"cache_timeout":600,"cache_all_safe_requests":true},"proxy":{"listen_path":"/ahead/","target_url":"svc://versions","strip_listen_path":true},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-Own":"1"}}}}}`,
	`{"api_id":"aheadinside","org_id":"o","use_keyless":true,"cache_options":{"enable_cache":true,"cache_timeout":600,"cache_all_safe_requests":true},"proxy":{"listen_path":"/aheadinside/","target_url":"svc://inside","strip_listen_path":true}}`,
	`{"api_id":"aheadgql","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/aheadgql/","target_url":"svc://gql","strip_listen_path":true}}`,
	`{"api_id":"aheadstored","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/aheadstored/","target_url":"svc://stored","strip_listen_path":true}}`,
	`{"api_id":"aheadform","org_id":"o","use_keyless":true,"proxy":{"listen_path":"/aheadform/","target_url":"svc://form","strip_listen_path":true}}`,
	`{"api_id":"form","org_id":"o","use_basic_auth":true,"basic_auth":{"extract_from_body":true,"body_user_regexp":"user=([^&]*)","body_password_regexp":"password=([^&]*)"},
		"proxy":{"listen_path":"/form/","target_url":"TARGET"}}`,
	`{"api_id":"signers","org_id":"o","enable_jwt":true,"jwt_signing_method":"hmac","proxy":{"listen_path":"/signers/","target_url":"TARGET"}}`,
	`{"api_id":"faulty","use_keyless":true,"proxy":{"listen_path":"/faulty/","target_url":"nonsense"}}`,
	`{"api_id":"unschemed","use_keyless":true,"proxy":{"listen_path":"/unschemed/","target_url":"TARGET"},"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { broken"}}`,
	`{"api_id":"inactive","active":false,"use_keyless":true,"proxy":{"listen_path":"/inactive/","target_url":"TARGET"}}`,
}

const agreedEntries = `{"rest":{},"norate":{},"param":{},"keyed":{},"family":{},"gql":{},"trusted":{},"stored":{},"versions":{},"sized":{},"cors":{},"kept":{},"users":{},"tokens":{},"form":{},"signers":{}}`

// agreedPolicies are what keys carry.
var agreedPolicies = []string{
	`{"id":"all","org_id":"o","access_rights":ENTRIES}`,
	`{"id":"slow","org_id":"o","rate":3,"per":1,"access_rights":ENTRIES}`,
	`{"id":"small","org_id":"o","rate":50,"per":1,"quota_max":7,"quota_renewal_rate":5,"access_rights":ENTRIES}`,
	`{"id":"off","org_id":"o","is_inactive":true,"access_rights":ENTRIES}`,
	`{"id":"narrow","org_id":"o","max_query_depth":3,"access_rights":{
		"rest":{"allowed_urls":[{"url":"/items.*","methods":["GET"]}]},"stored":{},"versions":{"versions":["v2"]},
		"gql":{"restricted_types":[{"name":"Country","fields":["population"]},{"name":"Query","fields":["secret"]}],"disable_introspection":true}}}`,
}

// agreedKeys are sessions by the key that clients show.
var agreedKeys = map[string]string{
	"key-of-all":      `{"org_id":"o","apply_policies":["all"]}`,
	"key-of-slow":     `{"org_id":"o","apply_policies":["slow"]}`,
	"key-of-small":    `{"org_id":"o","apply_policies":["small"]}`,
	"key-of-off":      `{"org_id":"o","apply_policies":["off"]}`,
	"key-of-narrow":   `{"org_id":"o","apply_policies":["narrow"]}`,
	"key-of-missing":  `{"org_id":"o","apply_policies":["gone"]}`,
	"key-of-master":   `{"org_id":"o"}`,
	"key-of-itself":   `{"org_id":"o","rate":100,"per":1,"access_rights":{"rest":{"limit":{"quota_max":9,"quota_renewal_rate":3}}}}`,
	"key-of-expired":  `{"org_id":"o","expires":1000,"apply_policies":["all"]}`,
	"key-of-inactive": `{"org_id":"o","is_inactive":true,"access_rights":ENTRIES}`,
	"key-of-signer":   `{"org_id":"o","apply_policies":["all"],"jwt_data":{"secret":"secret-of-tokens-of-32-bytes-or-more"}}`,
	"key-of-late":     `{"org_id":"o","expires":1000,"apply_policies":["all"],"jwt_data":{"secret":"secret-of-tokens-of-32-bytes-or-more"}}`,
	"oann":            `{"org_id":"o","apply_policies":["all"],"basic_auth_data":{"password":"PASSWORD","hash_type":"argon2id"}}`,
}

func agree(t *testing.T) *agreement {
	t.Helper()
	a := &agreement{clock: new(atomic.Int64)}
	a.clock.Store(time.Now().UnixNano())
	a.Gateway = gatewaytest.Start(t, gatewaytest.Options{
		Counter: counter.NewMemory(func() time.Time { return time.Unix(0, a.clock.Load()) }),
		GraphQL: func(o *graphql.Options) {
			o.MaxBody, o.BatchMax, o.Cache = 16<<10, 5, 1<<20
			o.Ceilings = graphql.Ceilings{Tokens: 200, Depth: 30, Aliases: 20, RootFields: 20}
		},
		Deps: func(d *gateway.Deps) {
			d.Config.Wire.MaxHeader, d.Config.Wire.MaxURL, d.Config.Wire.MaxHeaders, d.Config.Wire.MaxBody = 4<<10, 1<<10, 20, 32<<10
			d.Config.Trusted, d.Config.ShowReason, d.Config.Refusals = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, true, 64
			d.Stages.Auth.
				WithPasswords(basic.New(basic.Options{Size: 100, TTL: time.Hour, PerUser: 3, PerAddress: 1000, AtOnce: 1})).
				WithTokens(jwt.New(nil, 100))
			d.Stages.Cache = cache.New(cache.Options{MaxBytes: 1 << 20, MaxBody: 1 << 10, Patience: time.Second})
			d.Stages.Calls = targets.New(targets.Options{Pools: d.Stages.Pools, Upstream: d.Stages.Upstream})
			gatewaytest.WithLimitHeaders(d)
		},
	})
	a.fill(t)
	return a
}

// fill puts definitions, policies and keys in place. The upstream answers with
// what it was asked.
func (a *agreement) fill(t *testing.T) {
	target := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		a.asked.Add(1)
		ctx.Response.Header.Set("X-Reached", fmt.Sprintf("%s %s", ctx.Method(), ctx.Request.Header.RequestURI()))
		ctx.WriteString(`{"data":"reached"}`)
	})
	stored, err := password.NewHasher(1, 1, time.Second).Hash(context.Background(), "right")
	if err != nil {
		t.Fatal(err)
	}
	replace := strings.NewReplacer("PASSWORD", stored, "TARGET", target, "SCHEMA", fmt.Sprintf("%q", strings.ReplaceAll(agreedSchema, "\n", " ")), "ENTRIES", agreedEntries)
	b := &definition.Bundle{Revision: "1"}
	for _, text := range agreedAPIs {
		api, err := definition.ParseAPI([]byte(replace.Replace(text)))
		if api == nil {
			t.Fatalf("%v in %s", err, text)
		}
		b.APIs = append(b.APIs, api)
	}
	for _, text := range agreedPolicies {
		p, err := definition.ParsePolicy([]byte(replace.Replace(text)))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		b.Policies = append(b.Policies, p)
	}
	for id, err := range a.Apply(b) {
		if id != "faulty" && id != "unschemed" {
			t.Errorf("%s is not served: %v", id, err)
		}
	}
	for key, text := range agreedKeys {
		s, err := definition.ParseSession([]byte(replace.Replace(text)))
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		a.Put(key, s)
	}
}
