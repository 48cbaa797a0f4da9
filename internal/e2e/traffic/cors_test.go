package traffic

import (
	"maps"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// openTo adds what browsers are told to an API.
func openTo(def, cors object) object {
	cors["enable"] = true
	def["CORS"] = cors
	return def
}

func TestBrowsersAreToldWhoMayCall(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: https://theirs\r\nVary: Accept\r\nContent-Length: 0\r\n\r\n")
	g := asks{newTraffic(t, nil, nil,
		openTo(rig.APIDef("cors", "http://"+address, false), object{
			"allowed_origins": []string{"https://app.example", "https://*.apps.example"}, "allowed_methods": []string{"GET", "PUT"},
			"allowed_headers": []string{"Authorization", "X-One"}, "exposed_headers": []string{"X-Out"}, "allow_credentials": true, "max_age": 600,
		}),
		openTo(rig.APIDef("any", "http://"+address, true), object{}),
		openTo(rig.APIDef("theirs", "http://"+address, false), object{"options_passthrough": true}),
	), up}
	key := g.newKey(object{"access_rights": rig.AccessTo("cors", "theirs")})
	const preflight = "Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-one,authorization\r\n"
	vary := "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
	for _, c := range []struct {
		name, call, headers, status string
		lines, not                  []string
		reaches                     bool
	}{
		{"a preflight asks for no key", "OPTIONS /cors/x", "Origin: https://app.example\r\n" + preflight, "204", []string{
			vary, "Access-Control-Allow-Origin: https://app.example", "Access-Control-Allow-Credentials: true", "Access-Control-Allow-Methods: GET, PUT",
			"Access-Control-Allow-Headers: Authorization, X-One", "Access-Control-Max-Age: 600",
		}, []string{"Content-Length", "Transfer-Encoding", "X-Generator"}, false},
		{"a preflight of a stranger", "OPTIONS /cors/x", "Origin: https://app.example.evil\r\n" + preflight, "204", []string{vary}, []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods"}, false},
		{"OPTIONS that is none", "OPTIONS /cors/x", "Origin: https://app.example\r\n", "401", []string{"Vary: Origin", "Access-Control-Allow-Origin: https://app.example"}, nil, false},
		{"a refusal can be read", "GET /cors/x", "Origin: https://app.example\r\n", "401", []string{"Vary: Origin", "Access-Control-Allow-Origin: https://app.example", "Access-Control-Allow-Credentials: true"}, nil, false},
		{"an answer", "GET /cors/x", "Origin: https://a.apps.example\r\nAuthorization: " + key + "\r\n", "200", []string{
			"Vary: Origin", "Vary: Accept", "Access-Control-Allow-Origin: https://a.apps.example", "Access-Control-Allow-Credentials: true", "Access-Control-Expose-Headers: X-Out",
		}, nil, true},
		{"an answer to a stranger", "GET /cors/x", "Origin: https://evil\r\nAuthorization: " + key + "\r\n", "200", []string{"Vary: Origin"}, []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"}, true},
		{"an answer to nobody's page", "GET /cors/x", "Authorization: " + key + "\r\n", "200", []string{"Vary: Origin"}, []string{"Access-Control-Allow-Origin"}, true},
		{"anybody's page", "GET /any/x", "Origin: https://evil\r\n", "200", []string{"Access-Control-Allow-Origin: *"}, []string{"Access-Control-Allow-Credentials"}, true},
		{"the upstream's preflight", "OPTIONS /theirs/x", "Origin: https://evil\r\n" + preflight, "200", []string{"Access-Control-Allow-Origin: https://theirs"}, []string{"Access-Control-Allow-Methods"}, true},
		{"only its preflight", "GET /theirs/x", "Origin: https://evil\r\n", "401", []string{"Access-Control-Allow-Origin: *"}, nil, false},
		{"a line in the origin", "OPTIONS /any/x", "Origin: https://a\x00b\r\n" + preflight, "400", nil, []string{"Access-Control-Allow-Origin"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(up.with(""))
			answered, _ := g.ask(t, c.call+" HTTP/1.1\r\nHost: a\r\n"+c.headers+"Connection: close\r\n\r\n")
			if !strings.HasPrefix(answered, "HTTP/1.1 "+c.status) || (len(up.with("")) > before) != c.reaches {
				t.Errorf("want %s, and %d calls upstream before:\n%s", c.status, before, answered)
			}
			headRows(t, c.name, answered, c.lines, c.not)
		})
	}
}

// Browsers send no header of the page's own with a preflight, so that none names a
// version in one.
func TestPreflightsAreAnsweredWhateverTheVersion(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	versioned := func(id, selector string, cors object) object {
		def := openTo(rig.APIDef(id, "http://"+address, false), cors)
		def["definition"] = object{"location": "header", "key": selector}
		def["version_data"] = object{"not_versioned": false, "versions": object{"v1": object{
			"name": "v1", "use_extended_paths": true, "extended_paths": object{"white_list": []object{{"path": "/x", "method": "PUT"}, {"path": "/o", "method": "OPTIONS"}}},
		}}}
		return def
	}
	g := asks{newTraffic(t, nil, nil,
		versioned("named", "X-Version", object{"allowed_methods": []string{"PUT"}}),
		// The upstream that is to answer depends on the version, which this header, of
		// all that a browser sends, can name.
		versioned("passed", "Origin", object{"options_passthrough": true}),
	), up}
	const asked = "Access-Control-Request-Method: PUT\r\n"
	for _, c := range []struct {
		name, call, headers, status string
		lines, not                  []string
		reaches                     bool
	}{
		{"a preflight names no version", "OPTIONS /named/x", "Origin: https://a\r\n" + asked, "204", []string{"Access-Control-Allow-Origin: *", "Access-Control-Allow-Methods: PUT"}, nil, false},
		{"a preflight for a path that is not listed", "OPTIONS /named/y", "Origin: https://a\r\n" + asked, "204", []string{"Access-Control-Allow-Origin: *"}, nil, false},
		{"OPTIONS that is no preflight", "OPTIONS /named/x", "Origin: https://a\r\n", "403", []string{"Access-Control-Allow-Origin: *"}, nil, false},
		{"one without an origin", "OPTIONS /named/x", asked, "403", nil, nil, false},
		{"one with nothing in it", "OPTIONS /named/x", "Origin: \r\nAccess-Control-Request-Method: \r\n", "403", nil, nil, false},
		{"another method", "GET /named/x", "Origin: https://a\r\n" + asked, "403", nil, nil, false},
		{"the call that follows", "PUT /named/x", "Origin: https://a\r\nX-Version: v1\r\nContent-Length: 0\r\n", "401", []string{"Access-Control-Allow-Origin: *"}, nil, false},
		{"the upstream's preflight", "OPTIONS /passed/o", "Origin: v1\r\n" + asked, "200", nil, nil, true},
		{"the upstream's preflight on a path that is not open to it", "OPTIONS /passed/x", "Origin: v1\r\n" + asked, "403", nil, nil, false},
		{"the upstream's preflight of an unknown version", "OPTIONS /passed/o", "Origin: v2\r\n" + asked, "403", nil, nil, false},
		{"OPTIONS that is none", "OPTIONS /passed/o", "Origin: v1\r\n", "401", nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(up.with(""))
			answered, _ := g.ask(t, c.call+" HTTP/1.1\r\nHost: a\r\n"+c.headers+"Connection: close\r\n\r\n")
			if !strings.HasPrefix(answered, "HTTP/1.1 "+c.status) || (len(up.with("")) > before) != c.reaches {
				t.Errorf("want %s, and %d calls upstream before:\n%s", c.status, before, answered)
			}
			headRows(t, c.name, answered, c.lines, c.not)
		})
	}
}

func TestAddressesDecideWhoMayCall(t *testing.T) {
	t.Parallel()
	up, address := newScripted(t, noContent)
	lists := func(id string, more object) object {
		def := rig.APIDef(id, "http://"+address, false)
		maps.Copy(def, more)
		return def
	}
	g := asks{newTraffic(t, settings{"gateway.trusted_proxies": "127.0.0.0/8"}, nil,
		lists("allow", object{"enable_ip_whitelisting": true, "allowed_ips": []string{"192.0.2.0/24", "2001:db8::7"}}),
		lists("block", object{"enable_ip_blacklisting": true, "blacklisted_ips": []string{"192.0.2.66", "2001:db8:6::/48"}}),
		lists("both", object{"enable_ip_whitelisting": true, "allowed_ips": []string{"192.0.2.0/24"}, "enable_ip_blacklisting": true, "blacklisted_ips": []string{"192.0.2.66"}}),
	), up}
	key := g.newKey(object{"access_rights": rig.AccessTo("allow", "block", "both")})
	for _, c := range []struct {
		api, from, key, want string
	}{
		{"allow", "192.0.2.9", key, "200"},
		{"allow", "2001:db8::7", key, "200"},
		{"allow", "198.51.100.1", key, "403"},
		{"allow", "2001:db8::8", key, "403"},
		{"allow", "", key, "403"}, // the proxy itself
		{"block", "192.0.2.9", key, "200"},
		{"block", "192.0.2.66", key, "403"},
		{"block", "2001:db8:6::1", key, "403"},
		{"block", "::ffff:192.0.2.66", key, "403"},
		{"both", "192.0.2.9", key, "200"},
		{"both", "192.0.2.66", key, "403"},
		// The address comes before the key: who may not call learns nothing about it.
		{"allow", "198.51.100.1", "", "403"},
		{"allow", "192.0.2.9", "", "401"},
	} {
		headers := "X-Forwarded-For: " + c.from + "\r\n"
		if c.from == "" {
			headers = ""
		}
		if c.key != "" {
			headers += "Authorization: " + c.key + "\r\n"
		}
		raw := conversation(t, g.addr, "GET /"+c.api+"/x HTTP/1.1\r\nHost: a\r\n"+headers+"Connection: close\r\n\r\n")
		got := parse(t, raw)
		if len(got) != 1 || !strings.HasPrefix(raw, "HTTP/1.1 "+c.want) {
			t.Errorf("%s from %q: want %s, got %s", c.api, c.from, c.want, raw)
			continue
		}
		if c.want == "403" && (got[0].Body != errorBody("access from this IP has been disallowed") || got[0].Reason() != "address_denied") {
			t.Errorf("%s from %q: %s", c.api, c.from, got[0])
		}
	}
}
