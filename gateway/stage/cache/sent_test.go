package cache

import (
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
)

// told is a rig whose upstream answers every call differently, and returns what
// calls with these headers are given, each in a call of its own.
func told(t *testing.T, r *rig, key string, headers ...string) (given []string) {
	t.Helper()
	for i, h := range headers {
		r.answer("", fmt.Sprint("answer ", i))
		given = append(given, r.send(key, "GET", "/a", h).body)
	}
	return given
}

// An upstream may know its callers by credentials that the gateway does not look
// at: on paths that ask for no key, and on APIs that have none.
func TestCredentialsThatTheUpstreamAloneKnowsAreAPartOfTheKey(t *testing.T) {
	headers := []string{
		"X: y", "X-Api-Key: one", "x-api-key: two", "Api-Key: one", "X-Auth-Token: one", "X-Access-Token: one",
		"X-Partner: one", "X-Partner: two", "X-User: one", "X-User: two",
		"Authorization: one", "Authorization: \r\nAuthorization: two", "Authorization: one\r\nAuthorization: two",
	}
	r := newRig(t, usual, "", func(r *rig, _ *Options) {
		r.keyless = true
		r.auth = map[string]*definition.Auth{"authToken": {HeaderName: "x-partner"}, "jwt": {HeaderName: "X-User"}}
	})
	for i, body := range told(t, r, "", headers...) {
		if body != fmt.Sprint("answer ", i) {
			t.Errorf("%q is given %q", headers[i], body)
		}
	}
	for i, body := range told(t, r, "", "X: z", "X-Partner: one") {
		if want := []string{"answer 0", "answer 6"}[i]; body != want {
			t.Errorf("again: given %q, not %q", body, want)
		}
	}
}

// The gateway of a keyless API cannot know which headers its upstream looks at, and some
// upstreams do not tell _ from - in names.
func TestHeadersThatLookLikeCredentialsOrOverridesAreAPartOfTheKey(t *testing.T) {
	headers := []string{
		"X: y", "X_Api_Key: one", "X-Api_Key: two", "X-ApiToken: one", "X-Session: one", "X-Sessionid: one", "Partner-Key: one", "X-My-Secret: one",
		"X-JWT-Assertion: one", "X-Password: one", "X-Signature: one", "X-Remote-User: one", "X_Remote_User: two",
		"X_HTTP_Method_Override: DELETE", "X-Override-Path: /b", "X-Original-Host: b", "X-Rewrite-To: /b", "X-Target-Url: /b",
	}
	r := newRig(t, usual, "", func(r *rig, _ *Options) { r.keyless = true })
	for i, body := range told(t, r, "", headers...) {
		if body != fmt.Sprint("answer ", i) {
			t.Errorf("%q is given %q", headers[i], body)
		}
	}
	r.upcalls()
	told(t, r, "", "User-Agent: a", "Accept-Language: en", "X-Requested-With: b", "Upgrade-Insecure-Requests: 1", "Sec-Fetch-Mode: cors", "Sec-Fetch-User: ?1",
		"X_Forwarded_For: 192.0.2.1", "X-Original-Forwarded-For: 192.0.2.1", "X-B3-TraceId: 1", "Priority: u=1")
	r.expect(0, "headers of which answers do not depend")
}

func TestListedHeadersAndThoseOfVaryAreComparedWithUnderscores(t *testing.T) {
	r := newRig(t, `{"enable_cache": true, "cache_all_safe_requests": true, "cache_by_headers": ["X-Tenant"]}`, "", nil)
	headers := []string{"X: y", "X-Tenant: a", "X_Tenant: a", "X_Tenant: b", "X-Tenant: a\r\nX_Tenant: b", "X_Tenant: a\r\nX-Tenant: b"}
	for i, body := range told(t, r, "k", headers...) {
		if body != fmt.Sprint("answer ", i) {
			t.Errorf("%q is given %q", headers[i], body)
		}
	}
}

// An upstream that is told of https redirects those who come by http, for ever if
// they are then given what others got.
func TestWhereTheClientCameInIsAPartOfTheKey(t *testing.T) {
	headers := []string{
		"X: y", "X-Forwarded-Proto: https", "X-Forwarded-Host: a", "X-Forwarded-Host: b", "X-Forwarded-Port: 8443", "X-Forwarded-Prefix: /a",
		"Forwarded: for=192.0.2.1;host=a", "Forwarded: for=192.0.2.1; Host=b, for=192.0.2.2", "Forwarded: proto=https",
		"X-HTTP-Method-Override: DELETE", "X-Original-URL: /b", "X-Rewrite-URL: /b",
	}
	r := newRig(t, usual, "", nil)
	for i, body := range told(t, r, "k", headers...) {
		if body != fmt.Sprint("answer ", i) {
			t.Errorf("%q is given %q", headers[i], body)
		}
	}
	r.upcalls()
	told(t, r, "k", "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.2", "Forwarded: for=192.0.2.3;by=192.0.2.4", "X-Request-Id: 5")
	r.expect(0, "calls of other clients, which came in at the same place")

	call, _ := wire.NewCall([]byte("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
	call.Started, call.TLS = r.now, true
	ex := pipeline.For(call)
	ex.API, ex.KeyHash, ex.Path, ex.Rest = r.api, "k", call.Path, call.Path
	r.run(ex)
	r.expect(1, "a call by TLS")
}

func TestATokenOfClaimsIsAPartOfTheKeyWhereverItStands(t *testing.T) {
	r := newRig(t, usual, "", nil)
	for i, token := range []string{"one", "two"} {
		r.answer("", fmt.Sprint("answer ", i))
		call, _ := wire.NewCall([]byte("GET /a HTTP/1.1\r\nHost: h\r\nX-User: "+token+"\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
		call.Started = r.now
		ex := pipeline.For(call)
		ex.API, ex.KeyHash, ex.Path, ex.Rest = r.api, "identity", call.Path, call.Path
		ex.Token, ex.Claims = []byte(token), []byte(`{"role":"`+token+`"}`)
		if got := r.run(ex).body; got != fmt.Sprint("answer ", i) {
			t.Errorf("%s is given %q", token, got)
		}
	}
}

func TestSharedAnswersAreTheSameForAllCredentials(t *testing.T) {
	r := newRig(t, `{"enable_cache": true, "cache_all_safe_requests": true, "shared": true}`, "", nil)
	told(t, r, "k", "X-Api-Key: one", "X-Api-Key: two", "X: y")
	r.expect(1, "three callers")
	told(t, r, "k", "X-Forwarded-Host: a", "X-HTTP-Method: PUT")
	r.expect(2, "calls that may be answered differently to whomever")
}

// The gateway takes headers off that Connection names: what was asked for without
// them would be told to those who ask with them.
func TestHeadersThatDoNotGoUpDecideOnNothing(t *testing.T) {
	r := newRig(t, `{"enable_cache": true, "cache_all_safe_requests": true, "cache_by_headers": ["X-Tenant"]}`, "", nil)
	for _, c := range []struct {
		connection string
		ups        int64
	}{
		{"close, X-Tenant", 2}, {"x-tenant", 2}, {"keep-alive\r\nConnection: X-Tenant", 2}, {"Keep-Alive", 1}, {"close", 0}, {"TE, close", 0}, {"", 0},
	} {
		for range 2 {
			r.send("k", "GET", "/a", "X-Tenant: b", "Connection: "+c.connection)
		}
		r.expect(c.ups, c.connection)
	}
}
