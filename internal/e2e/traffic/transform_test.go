package traffic

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// unversioned gives an API a version, which all of its calls use.
func unversioned(def, version object) object {
	def["version_data"] = object{"not_versioned": true, "versions": object{"Default": version}}
	return def
}

// headRows are lines that a head must hold, once each, and names that it must not.
func headRows(t *testing.T, what, head string, lines, not []string) {
	t.Helper()
	for _, line := range lines {
		if holds(head, line) != 1 {
			t.Errorf("%s: %q is there %d times in\n%s", what, line, holds(head, line), head)
		}
	}
	for _, name := range not {
		if names(head, name) {
			t.Errorf("%s: %s is there in\n%s", what, name, head)
		}
	}
}

// asks sends requests to a gateway as they are written, and returns the answer's
// head beside what the upstream was asked.
type asks struct {
	*traffic
	up *scripted
}

func (a asks) ask(t *testing.T, raw string) (answered, asked string) {
	t.Helper()
	got := conversation(t, a.addr, raw)
	head, _, _ := strings.Cut(got, "\r\n\r\n")
	return head, a.up.lastHead()
}

func TestHeadersAreTransformed(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, "HTTP/1.1 200 OK\r\nServer: theirs\r\nX-Secret: 1\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")
	def := unversioned(rig.APIDef("head", "http://"+address, false), object{
		"global_headers": object{
			"X-Fixed": "one", "User-Agent": "ours", "X-Forwarded-For": "nobody", "X-Team": "$svc_meta.team", "X-Token": "<$svc_context.token>",
			"X-Who":   "$svc_context.headers_X_Client of $svc_context.remote_addr at $svc_context.path, $svc_context.path_parts",
			"X-Query": "$svc_context.request_data_q", "X-Cookie": "$svc_context.cookies_id", "X-Left": "$svc_context.quota_remaining",
			"X-Trace": "$svc_context.svc_trace_id",
		},
		"global_headers_remove":          []string{"X-Internal", "accept-encoding", "Authorization"},
		"global_response_headers":        object{"X-For": "$svc_meta.team", "X-Echo": "$svc_context.request_data_q"},
		"global_response_headers_remove": []string{"server"},
		"use_extended_paths":             true,
		"extended_paths": object{
			"transform_headers":          []object{{"path": "/one/{id}", "method": "GET", "add_headers": object{"X-Fixed": "call"}, "delete_headers": []string{"X-Team"}}},
			"transform_response_headers": []object{{"path": "/one", "add_headers": object{"X-Call": "c"}, "delete_headers": []string{"X-Secret"}}},
		},
	})
	def["enable_context_vars"] = true
	g := asks{newTraffic(t, nil, nil, def), up}
	key := g.newKey(object{"access_rights": rig.AccessTo("head"), "quota_max": 10, "quota_renewal_rate": 60, "meta_data": object{"team": "blue\r\nX-Evil: 1\u0000"}})
	const more = "X-Client: c1\r\nX-Internal: 1\r\nx-fixed: theirs\r\nCookie: a=b; id=7\r\nAccept-Encoding: gzip\r\n" +
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nConnection: close\r\n\r\n"

	answered, asked := g.ask(t, "GET /head/two%2Fx?q=a%0d%0aX-Evil:+2%00%0a HTTP/1.1\r\nHost: a\r\nAuthorization: "+key+"\r\n"+more)
	headRows(t, "all calls", asked, []string{
		"X-Fixed: one", "User-Agent: ours", "X-Forwarded-For: nobody", "X-Team: blueX-Evil: 1", "X-Token: <" + key + ">",
		"X-Who: c1 of 127.0.0.1 at /head/two%2Fx, head,two%2Fx", "X-Query: aX-Evil: 2", "X-Cookie: 7", "X-Left: 9",
		"X-Trace: 0af7651916cd43dd8448eb211c80319c", "Cookie: a=b; id=7",
	}, []string{"X-Internal", "Accept-Encoding", "Authorization", "X-Evil"})
	headRows(t, "all answers", answered, []string{"X-For: blueX-Evil: 1", "X-Echo: aX-Evil: 2", "X-Kept: 1", "X-Secret: 1"}, []string{"Server", "X-Evil", "X-Call"})

	answered, asked = g.ask(t, "GET /head/one/7 HTTP/1.1\r\nHost: a\r\nAuthorization: "+key+"\r\n"+more)
	headRows(t, "one call", asked, []string{"X-Fixed: call", "X-Query: ", "X-Left: 8"}, []string{"X-Team", "X-Internal"})
	headRows(t, "one answer", answered, []string{"X-Call: c", "X-Kept: 1", "X-Echo: "}, []string{"Server", "X-Secret"})

	answered, _ = g.ask(t, "GET /head/one/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answered, "HTTP/1.1 401") {
		t.Errorf("got %s", answered)
	}
	headRows(t, "a refusal", answered, []string{"Content-Type: application/json"}, []string{"X-Call", "X-For"})
}

func TestURLsAreRewritten(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	def := unversioned(rig.APIDef("url", "http://"+address+"/base", false), object{
		"use_extended_paths": true,
		"extended_paths": object{"url_rewrites": []object{
			{"path": "/match/me", "method": "GET", "match_pattern": `(\w+)/(\w+)`, "rewrite_to": "my/service?value1=$1&value2=$2"},
			{"path": "/users", "match_pattern": `^/users/(.*)$`, "rewrite_to": "/v2/people/$1"},
			{"path": "/by", "match_pattern": `id=([^&]*)`, "rewrite_to": "/v2/$1"},
			{"path": "/to", "match_pattern": `.*`, "rewrite_to": "/to/$svc_context.headers_X_To?team=$svc_meta.team", "triggers": []object{
				{"on": "any", "options": object{"header_matches": object{"X-Beta": object{"match_rx": "^b(.*)"}}}, "rewrite_to": "/beta/$svc_context.trigger-0-X-Beta-0-0"},
			}},
		}},
	})
	def["enable_context_vars"] = true
	g := asks{newTraffic(t, nil, nil, def), up}
	key := g.newKey(object{"access_rights": rig.AccessTo("url"), "meta_data": object{"team": "a&b=c\r\n"}})
	for _, c := range []struct{ method, target, header, want string }{
		{"GET", "/match/me", "", "GET /base/my/service?value1=match&value2=me HTTP/1.1"},
		{"POST", "/match/me?x=1", "", "POST /base/match/me?x=1 HTTP/1.1"},
		{"GET", "/users/7/keys?all=true", "", "GET /base/v2/people/7/keys?all=true HTTP/1.1"},
		{"GET", "/users/7%2Fx%20y", "", "GET /base/v2/people/7%2Fx%20y HTTP/1.1"},
		{"GET", "/by?id=9&x=1", "", "GET /base/v2/9 HTTP/1.1"},
		{"GET", "/by?id=../../etc", "", "400"},
		{"GET", "/by?id=%2e%2e", "", "400"},
		{"GET", "/to", "X-To: a/b?c=1#\r\n", "GET /base/to/a%2Fb%3Fc%3D1%23?team=a%26b%3Dc%0D%0A HTTP/1.1"},
		{"GET", "/to", "X-To: ..\r\n", "400"},
		{"GET", "/to", "X-Beta: b1\r\n", "GET /base/beta/1 HTTP/1.1"},
		{"GET", "/to", "X-Beta: b../x\r\n", "400"},
		{"GET", "/other?x=1", "", "GET /base/other?x=1 HTTP/1.1"},
	} {
		before := len(up.with(""))
		answered, asked := g.ask(t, c.method+" /url"+c.target+" HTTP/1.1\r\nHost: a\r\nAuthorization: "+key+"\r\n"+c.header+"Connection: close\r\n\r\n")
		if c.want == "400" {
			if !strings.HasPrefix(answered, "HTTP/1.1 400") || holds(answered, "X-Sluice-Reason: bad_request") != 1 || len(up.with("")) != before {
				t.Errorf("%s %q: got %s", c.target, c.header, answered)
			}
			continue
		}
		if line, _, _ := strings.Cut(asked, "\r\n"); line != c.want {
			t.Errorf("%s %s %q: got %s, want %s", c.method, c.target, c.header, line, c.want)
		}
	}
}

func TestEachVersionHasRulesOfItsOwn(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	def := rig.APIDef("each", "http://"+address, true)
	def["definition"] = object{"enabled": true, "location": "header", "key": "X-Version"}
	def["version_data"] = object{"default_version": "one", "versions": object{
		"one": object{"name": "one", "global_headers": object{"X-Of": "one"}, "global_response_headers": object{"X-From": "one"}},
		"two": object{
			"name": "two", "use_extended_paths": true,
			"paths": object{}, "extended_paths": object{"url_rewrites": []object{{"path": "/", "match_pattern": "^/(.*)", "rewrite_to": "/two/$1"}}},
		},
	}}
	g := asks{newTraffic(t, nil, nil, def), up}
	answered, asked := g.ask(t, "GET /each/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	headRows(t, "one", asked, []string{"X-Of: one", "GET /x HTTP/1.1"}, nil)
	headRows(t, "one", answered, []string{"X-From: one"}, nil)
	answered, asked = g.ask(t, "GET /each/x HTTP/1.1\r\nHost: a\r\nX-Version: two\r\nConnection: close\r\n\r\n")
	headRows(t, "two", asked, []string{"GET /two/x HTTP/1.1"}, []string{"X-Of"})
	headRows(t, "two", answered, []string{"HTTP/1.1 200 OK"}, []string{"X-From"})
}
