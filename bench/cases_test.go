package bench

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/bench/answer"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A request is one case: what is sent, and what is wanted. Definitions, policies
// and keys are those of shop.
type request struct {
	name   string
	path   string
	key    string   // name of one of shop's keys; "" sends none
	header []string // further header lines
	body   string   // sent with POST when it is not empty
	status int
	reason string // of a refusal
	answer string // of the gateway itself; "": the upstream's
}

// requests are the cases, each next to those to compare it with.
var requests = []request{
	{name: "no route", path: "/nowhere/at/all", status: 404, reason: "route_not_found"},
	{name: "refused path", path: "/open/%2e%2e/etc", status: 400, reason: "bad_request"},

	{name: "keyless", path: "/open/some/path?a=b", status: 200},
	{name: "keyless, POST", path: "/open/some/path", body: `{"some":true}`, status: 200},
	{name: "keyless, behind a trusted proxy", path: "/open/some/path", header: []string{"X-Forwarded-For: 203.0.113.7, 127.0.0.9", "X-Forwarded-Proto: https"}, status: 200},
	{name: "keyless, hop-by-hop headers", path: "/open/some/path", header: []string{"Connection: keep-alive, X-Drop", "X-Drop: 1", "Keep-Alive: timeout=5", "TE: trailers"}, status: 200},

	{name: "token", path: "/plain/some/path", key: "plain", status: 200},
	{name: "token, Bearer", path: "/plain/some/path", key: "Bearer plain", status: 200},
	{name: "token, strip authorization data", path: "/strip/some/path", key: "plain", status: 200},
	{name: "token, allowed URLs", path: "/urls/orders/17", key: "urls", status: 200},
	{name: "token, rate", path: "/plain/some/path", key: "rate", status: 200},
	{name: "token, policy, rate and quota", path: "/plain/some/path", key: "both", status: 200},

	{name: "token, query parameter", path: "/places/some/path?api_key={plain}", status: 200},
	{name: "token, cookie", path: "/places/some/path", header: []string{"Cookie: a=1; session={plain}"}, status: 200},
	{name: "token, query parameter, stripped", path: "/placesstrip/some/path?api_key={plain}&a=b", status: 200},
	{name: "token, cookie, stripped", path: "/placesstrip/some/path", header: []string{"Cookie: a=1; session={plain}"}, status: 200},
	{name: "signed token, warm", path: "/signed/some/path", header: []string{"Authorization: Bearer {signed}"}, status: 200},
	{name: "signed token of a key, warm", path: "/ownsigned/some/path", header: []string{"Authorization: Bearer {signed}"}, status: 200},
	{name: "user in the body, warm password", path: "/logins/some/path", body: bobsLogin, status: 200},
	{name: "user, warm password", path: "/users/some/path", header: []string{bob}, status: 200},

	{name: "token, context variables in headers", path: "/vars/some/path", key: "plain", status: 200},
	{name: "token, headers of an answer", path: "/answer/some/path", key: "plain", status: 200},
	{name: "token, CORS", path: "/cors/some/path", key: "plain", header: []string{"Origin: https://app.example"}, status: 200},
	{name: "token, allowed address", path: "/addresses/some/path", key: "plain", status: 200},
	{name: "token, several targets", path: "/balanced/some/path", key: "plain", status: 200},
	{name: "token, circuit breaker", path: "/guarded/some/path", key: "plain", status: 200},
	{name: "token, time of a path", path: "/timed/some/path", key: "plain", status: 200},
	{name: "token, kept answer", path: "/cached/some/path?a=b", key: "plain", status: 200},
	{name: "token, rewritten URL", path: "/rewrite/users/17", key: "plain", status: 200},

	{name: "token, URL rewritten to another host", path: "/away/users/17", key: "plain", status: 200},

	{name: "token, on to another API", path: "/onward/some/path?a=b", key: "plain", status: 200},
	{name: "token, on to another API, POST", path: "/onward/some/path", key: "plain", body: `{"some":true}`, status: 200},
	{name: "token, on to another API with other headers", path: "/onwardchanged/some/path", key: "plain", status: 200},
	{name: "token, a version that is another API", path: "/family/some/path", key: "plain", header: []string{"X-Api-Version: v2"}, status: 200},
	{name: "refused, no key, behind another API", path: "/family/some/path", header: []string{"X-Api-Version: v2"}, status: 401, reason: "auth_missing"},
	{name: "refused, a version that is no API", path: "/family/x", header: []string{"X-Api-Version: v3"}, status: 502, reason: "handover_target"},

	{name: "token, version by header", path: "/byheader/some/path", key: "plain", header: []string{"X-Api-Version: v2"}, status: 200},
	{name: "token, version by query parameter, stripped", path: "/byparam/some/path?v=v2&a=b", key: "plain", status: 200},
	{name: "token, version in the path, stripped", path: "/bypath/v2/some/path", key: "plain", status: 200},
	{name: "token, lists of paths", path: "/lists/some/path", key: "plain", status: 200},
	{name: "token, lists of paths, POST, size limit", path: "/lists/some/path", key: "plain", body: `{"some":true}`, status: 200},
	{name: "token, reply in place of the upstream", path: "/lists/mock", key: "plain", status: 200, answer: "hello"},
	{name: "ignored path", path: "/lists/health", status: 200},
	{name: "refused, no version", path: "/byheader/x", key: "plain", status: 403, reason: "version_missing"},
	{name: "refused, unknown version", path: "/bypath/v9/x", key: "plain", status: 403, reason: "version_unknown"},
	{name: "refused, path on the black list", path: "/lists/admin%2Fx", key: "plain", status: 403, reason: "path_denied"},

	{name: "GraphQL, keyless", path: "/opengraph/", body: query, status: 200},
	{name: "GraphQL, token, policy, rate, quota, depth and fields", path: "/graph/", key: "graph", body: query, status: 200},
	{name: "GraphQL, variables, in the URL", path: "/graph/?variables=%7B%22c%22%3A%22DE%22%7D&query=query%28%24c%3AID%21%29%7Bcountry%28code%3A%24c%29%7Bname%7D%7D", key: "graph", status: 200},
	{name: "GraphQL, stored operation of a path", path: "/graph/countries/DE", key: "graph", status: 200},
	{name: "GraphQL, stored document by its hash", path: "/graph/", key: "graph", body: `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + documentHash + `"}},"variables":{"c":"DE"}}`, status: 200},
	{name: "GraphQL, batch of ten", path: "/graph/", key: "graph", body: "[" + strings.Repeat(query+",", 9) + query + "]", status: 200},
	{name: "GraphQL, answered by the gateway", path: "/graph/", key: "graph", body: `{"query":"{ __typename }"}`, status: 200, answer: `{"data":{"__typename":"Query"}}`},
	{name: "refused, GraphQL, invalid", path: "/graph/", key: "graph", body: `{"query":"{ nope }"}`, status: 400, reason: "graphql_invalid"},
	{name: "refused, GraphQL, depth", path: "/graph/", key: "graph", body: `{"query":"{ countries { continent { countries { continent { name } } } } }"}`, status: 403, reason: "depth_limit"},
	{name: "refused, GraphQL, field", path: "/graph/", key: "graph", body: `{"query":"{ secret }"}`, status: 400, reason: "field_restricted"},
	{name: "refused, GraphQL, not JSON", path: "/graph/", key: "graph", body: `[]`, status: 400, reason: "graphql_invalid"},

	{name: "refused, no key", path: "/plain/x", status: 401, reason: "auth_missing"},
	{name: "refused, unknown key", path: "/plain/x", key: "unknown", status: 403, reason: "auth_unknown"},
	{name: "refused, mistyped key", path: "/plain/x", key: "mistyped", status: 403, reason: "auth_unknown"},
	{name: "refused, inactive key", path: "/plain/x", key: "inactive", status: 403, reason: "auth_inactive"},
	{name: "refused, expired key", path: "/plain/x", key: "expired", status: 401, reason: "auth_expired"},
	{name: "refused, API not in the rights", path: "/plain/x", key: "elsewhere", status: 403, reason: "access_denied"},
	{name: "refused, URL not allowed", path: "/urls/users/1", key: "urls", status: 403, reason: "url_denied"},
	{name: "refused, rate", path: "/plain/x", key: "slow", status: 429, reason: "rate_limit"},
	{name: "refused, quota", path: "/plain/x", key: "spent", status: 403, reason: "quota_exceeded"},
}

// countries is the schema of the GraphQL cases, and query an operation of theirs.
const (
	countries = `
type Query { country(code: ID!): Country countries(first: Int): [Country!]! secret: String }
type Country { code: ID! name: String! capital: String continent: Continent! }
type Continent { code: ID! name: String! countries: [Country!]! }`
	query = `{"query":"query Country($code: ID!) {\n  country(code: $code) { ...Names continent { name countries { code } } }\n}\nfragment Names on Country { code name capital }","operationName":"Country","variables":{"code":"DE"}}`
)

// document is stored under its hash, and as the operation of a path.
const (
	document     = `query($c: ID!) { country(code: $c) { name } }`
	documentHash = "deffdf1bdf14ae42c709bf5ce594e6dba043648157fb658bc68f7abd11eee81b"
	storedPaths  = `{"persist_graphql": [{"method": "GET", "path": "/countries/{code}", "operation": "` + document + `", "variables": {"c": "$path.code"}}]}`
)

// graph makes an API a GraphQL API.
func graph(a *definition.API) {
	a.UseKeyless = a.ID == "opengraph"
	a.GraphQL = &definition.GraphQL{
		Enabled: true, ExecutionMode: definition.ModeProxy, Schema: countries, BatchMax: 10,
		TrustedDocuments: &definition.GraphQLTrustedDocuments{Documents: map[string]string{documentHash: document}},
	}
	a.VersionData = &definition.VersionData{NotVersioned: true, Versions: map[string]*definition.Version{
		"Default": {UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](storedPaths)},
	}}
}

// transformed are the APIs that change calls and answers, or look at where calls
// come from.
var transformed = map[string]func(*definition.API){
	"vars": version(definition.Version{
		GlobalHeaders:       map[string]string{"X-Client": "$svc_context.remote_addr", "X-Key": "$svc_meta.team", "X-Path": "$svc_context.path"},
		GlobalHeadersRemove: []string{"X-Internal"},
	}),
	"answer": version(definition.Version{GlobalResponseHeaders: map[string]string{"X-Frame-Options": "DENY"}, GlobalResponseHeadersRemove: []string{"Server"}}),
	"rewrite": version(definition.Version{UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](
		`{"url_rewrites": [{"path": "/users/{id}", "match_pattern": "^/users/(\\d+)$", "rewrite_to": "/v2/$1"}]}`,
	)}),
	"cors": func(a *definition.API) {
		a.CORS = testenv.Part[definition.CORS](`{"enable": true, "allowed_origins": ["https://app.example"], "allowed_methods": ["PUT"], "allow_credentials": true}`)
	},
	"balanced": func(a *definition.API) {
		a.Proxy.EnableLoadBalancing = true
		a.Proxy.TargetList = []definition.Target{{URL: a.Proxy.TargetURL, Weight: 3}, {URL: a.Proxy.TargetURL + "/b"}}
	},
	"guarded": func(a *definition.API) {
		a.Proxy.CircuitBreaker = &definition.APIBreaker{BreakerSettings: definition.BreakerSettings{Threshold: 0.5, Samples: 100}}
	},
	"timed": version(definition.Version{UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](
		`{"hard_timeouts": [{"path": "/some", "method": "GET", "timeout": 20}]}`,
	)}),
	"cached": func(a *definition.API) {
		a.CacheOptions = testenv.Part[definition.CacheOptions](`{"enable_cache": true, "cache_timeout": 3600, "cache_all_safe_requests": true}`)
	},
	"addresses": func(a *definition.API) { a.EnableIPAllowList, a.AllowedIPs = true, []string{"0.0.0.0/0", "::/0"} },
}

// version gives an API a version for all of its calls.
func version(v definition.Version) func(*definition.API) {
	return func(a *definition.API) {
		a.EnableContextVars = true
		a.VersionData = &definition.VersionData{NotVersioned: true, Versions: map[string]*definition.Version{"Default": &v}}
	}
}

// rights lets a key call an API, some URLs of it only if they are named.
func rights(api string, urls ...definition.AllowedURL) map[string]*definition.Access {
	return map[string]*definition.Access{api: {APIID: api, Versions: []string{"Default", "v1", "v2"}, AllowedURLs: urls}}
}

// Numbers that are counted but never reached, and such that one call reaches.
var (
	plenty   = definition.Limits{Rate: 1e9, Per: 60, QuotaMax: 1e12, QuotaRenewalRate: 3600}
	rateOnly = definition.Limits{Rate: 1e6, Per: 60, QuotaMax: -1}
	slow     = definition.Limits{Rate: 1, Per: 3600, QuotaMax: -1}
	spent    = definition.Limits{QuotaMax: 1, QuotaRenewalRate: 36000}
	none     = definition.Limits{QuotaMax: -1}
)

// shop creates the APIs, policies and keys of requests, and returns the keys by name.
func shop(w *world) map[string]string {
	target := origin(w.tb)
	api := func(id string, change func(*definition.API)) {
		a := &definition.API{
			ID: id, Name: id, OrgID: "bench", UseKeyless: id == "open",
			Proxy: definition.Proxy{ListenPath: "/" + id + "/", TargetURL: target, StripListenPath: true},
		}
		change(a)
		w.add(a)
	}
	api("open", func(*definition.API) {})
	api("plain", func(*definition.API) {})
	api("strip", func(a *definition.API) { a.StripAuthData = true })
	api("urls", func(*definition.API) {})
	for id, change := range transformed {
		api(id, change)
	}
	for id, change := range handing {
		api(id, change)
	}
	for id, change := range authenticated {
		api(id, change)
	}
	for id, change := range versioned {
		api(id, change)
	}
	api("graph", graph)
	api("opengraph", graph)
	fields := rights("graph")
	fields["graph"].RestrictedTypes = []definition.TypeFields{{Name: "Query", Fields: []string{"secret"}}}
	deep := plenty
	deep.MaxQueryDepth = 5
	w.bundle.Policies = append(w.bundle.Policies,
		&definition.Policy{ID: "graph", OrgID: "bench", Limits: deep, AccessRights: fields},
		&definition.Policy{ID: "both", OrgID: "bench", Limits: plenty, AccessRights: rights("plain")},
		&definition.Policy{ID: "signed", OrgID: "bench", Limits: none, AccessRights: rights("signed")},
		&definition.Policy{ID: "plain", OrgID: "bench", Limits: none, AccessRights: rights("plain")},
	)
	w.apply()

	both := rights("plain")
	both["strip"] = rights("strip")["strip"]
	for id := range transformed {
		both[id] = rights(id)[id]
	}
	for id := range handing {
		both[id] = rights(id)[id]
	}
	for id := range authenticated {
		both[id] = rights(id)[id]
	}
	for id := range versioned {
		both[id] = rights(id)[id]
	}
	enrol(w)
	keys := map[string]string{
		"plain":     w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: both, MetaData: map[string]json.RawMessage{"team": json.RawMessage(`"blue"`)}}),
		"urls":      w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: rights("urls", definition.AllowedURL{URL: "/orders/[0-9]+", Methods: []string{"GET"}})}),
		"rate":      w.key(&definition.Session{OrgID: "bench", Limits: rateOnly, AccessRights: rights("plain")}),
		"graph":     w.key(&definition.Session{OrgID: "bench", ApplyPolicies: []string{"graph"}}),
		"both":      w.key(&definition.Session{OrgID: "bench", ApplyPolicies: []string{"both"}}),
		"inactive":  w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: rights("plain"), IsInactive: true}),
		"expired":   w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: rights("plain"), Expires: 1000}),
		"elsewhere": w.key(&definition.Session{OrgID: "bench", Limits: none, AccessRights: rights("urls")}),
		"slow":      w.key(&definition.Session{OrgID: "bench", Limits: slow, AccessRights: rights("plain")}),
		"spent":     w.key(&definition.Session{OrgID: "bench", Limits: spent, AccessRights: rights("plain")}),
		"unknown":   "no-such-key-0123456789",
		"signed":    signedToken("app"),
	}
	good := keys["plain"]
	keys["mistyped"] = good[:len(good)-1] + string('a'+(good[len(good)-1]-'a'+1)%26)
	return keys
}

// bytes writes a request as a client sends it.
func (r request) bytes(keys map[string]string) []byte {
	method, rest := "GET", "\r\n"
	if r.body != "" {
		method, rest = "POST", "Content-Type: application/json\r\nContent-Length: "+itoa(len(r.body))+"\r\n\r\n"+r.body
	}
	head := []string{method + " " + r.path + " HTTP/1.1", "Host: gate.test", "User-Agent: bench", "Accept: */*", "Accept-Encoding: gzip"}
	if r.key != "" {
		scheme, name, found := strings.Cut(r.key, " ")
		if !found {
			scheme, name = "", r.key
		}
		head = append(head, "Authorization: "+strings.TrimSpace(scheme+" "+keys[name]))
	}
	head = append(head, r.header...)
	named := strings.NewReplacer("{plain}", keys["plain"], "{signed}", keys["signed"])
	return []byte(named.Replace(strings.Join(head, "\r\n")) + "\r\n" + rest)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// want is what the answer must be.
func (r request) want() *answer.Want {
	w := &answer.Want{Status: r.status}
	if r.reason != "" {
		w.Line = []byte("\r\nX-Sluice-Reason: " + r.reason + "\r\n")
	}
	switch {
	case r.answer != "":
		w.Body = []byte(r.answer)
	case r.status == 200:
		w.Body, _ = answer.Body([]byte("1k"))
	}
	return w
}

// warmed returns a round of the case, after the first rounds, in which caches,
// pools and buffers are filled and limits used up.
func (r request) warmed(tb testing.TB, w *world, keys map[string]string) func() {
	c, sent, want := w.client(), r.bytes(keys), r.want()
	if strings.HasPrefix(r.name, "refused, rate") || strings.HasPrefix(r.name, "refused, quota") {
		c.round(sent, &answer.Want{}) // the one call that is admitted, unless an earlier run was it
	}
	for range 500 {
		c.round(sent, want)
	}
	return func() { c.round(sent, want) }
}
