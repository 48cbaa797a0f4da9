package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// problemsOf parses data as kind and returns its problems, one a line.
func problemsOf(t *testing.T, kind, data string) []string {
	t.Helper()
	var err error
	switch kind {
	case "api":
		_, err = ParseAPI([]byte(data))
	case "policy":
		_, err = ParsePolicy([]byte(data))
	case "session":
		_, err = ParseSession([]byte(data))
	default:
		_, err = ParsePolicies([]byte(data))
	}
	if err == nil {
		return nil
	}
	p, ok := errors.AsType[*Problems](err)
	if !ok {
		t.Fatalf("error is a %T, not *Problems", err)
	}
	var lines []string
	for _, one := range *p {
		lines = append(lines, one.String())
	}
	return lines
}

func TestSamplesAreAccepted(t *testing.T) {
	for _, kind := range []string{"api", "policy", "session"} {
		data, err := os.ReadFile("testdata/" + kind + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if p := problemsOf(t, kind, string(data)); p != nil {
			t.Errorf("%s: %q", kind, p)
		}
	}
}

const plainAPI = `{"api_id": "a", "use_keyless": true, "proxy": {"listen_path": "/a/", "target_url": "http://b"}`

func TestProblemsNamePathAndRemedy(t *testing.T) {
	proxy := func(listen, target string) string {
		return fmt.Sprintf(`{"proxy": {"listen_path": %q, "target_url": %q}}`, listen, target)
	}
	for _, c := range []struct{ kind, data, want string }{
		{"api", "{\n  \"name\": \"x\",,\n}", "line 2, column 15 is not JSON: invalid character ',' looking for beginning of object key string"},
		{"api", "", "line 1, column 1 is not JSON: unexpected end of JSON input"},
		{"api", "{\"name\":\n \"\xff\"}", "line 2, column 3 is not UTF-8"},
		{"api", strings.Repeat("[", 100), "line 1, column 65 nests deeper than the 64 levels that are read"},
		{"api", `{"x": "` + strings.Repeat("x", 9<<20) + `"}`, "is 9437193 bytes; at most 8388608 are read"},
		{"api", strings.TrimSuffix(plainAPI, "}") + `, "x": "` + strings.Repeat("x", 1<<20) + `"}}`, "is 1048680 bytes; at most 1048576 are read beside its graphql part"},
		{"api", `[]`, "must be an object, not an array"},
		{"api", `null`, "must be an object, not null"},
		{"api", plainAPI + `, "name": 7}`, "name: must be a string, not a number"},
		{"api", plainAPI + `, "active": "yes"}`, "active: must be true or false, not a string"},
		{"api", plainAPI + `, "tags": "a"}`, "tags: must be an array, not a string"},
		{"api", plainAPI + `, "tags": ["a", {}]}`, "tags[1]: must be a string, not an object"},
		{"api", plainAPI + `, "name": "a", "name": "b"}`, "name: stands twice; leave one of them out"},
		{"api", plainAPI + `, "vendor": 1, "vendor": 2}`, "vendor: stands twice; leave one of them out"},
		{"api", plainAPI + `, "auth_configs": {"a": {}, "a": {}}}`, `auth_configs["a"]: stands twice; leave one of them out`},
		{"api", plainAPI + `, "auth_configs": {"a": null}}`, `auth_configs["a"]: must be an object, not null`},
		{"api", plainAPI + `, "version_data": {"versions": {"v 1": {"expires": 5}}, "not_versioned": true}}`, `version_data.versions["v 1"].expires: must be a string, not a number`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {"global_size_limit": -1}}, "not_versioned": true}}`, `version_data.versions["a"].global_size_limit: must not be negative; 0 is no limit`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {"override_target": "ftp://b"}}, "not_versioned": true}}`, `version_data.versions["a"].override_target: must begin with http:// or https://`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {"paths": {"ignored": ["/x", "/("]}}}, "not_versioned": true}}`, "version_data.versions[\"a\"].paths.ignored[1]: is neither a path such as /users/{id} nor an expression: missing closing ): `/(`"},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {"use_extended_paths": true, "extended_paths": {"size_limits": [{"path": "/", "size_limit": -1}]}}}}}`, `version_data.versions["a"].extended_paths.size_limits[0].size_limit: must not be negative; 0 is no limit`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {}, "b": {}}, "default_version": "c"}}`, `version_data.default_version: must be the name of a version: one of a, b`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {}}}, "definition": {"location": "cookie"}}`, `definition.location: must be "header", "url-param" or "url"`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {}}}, "definition": {"location": "header"}}`, `definition.key: must be the name of the header that names the version, such as X-Api-Version`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {}}}, "definition": {"location": "url-param", "key": ""}}`, `definition.key: must be the name of the query parameter that names the version, such as version`},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {}}}, "definition": {"location": "url", "url_versioning_pattern": "("}}`, "definition.url_versioning_pattern: is not a regular expression in RE2 syntax: missing closing ): `(`"},
		{"api", plainAPI + `, "version_data": {"versions": {"a": {"extended_paths": []}}, "not_versioned": true}}`, `version_data.versions["a"].extended_paths: must be an object, not an array`},
		{"api", plainAPI + `, "graphql": 1}`, "graphql: must be an object, not a number"},
		{"api", plainAPI + `, "graphql": {"enabled": "true"}}`, "graphql.enabled: must be true or false, not a string"},
		{"api", plainAPI + `, "domain": "https://a.example/"}`, "domain: must be a host name alone, without scheme or path"},
		{"api", plainAPI + `, "domain": "a.example:80"}`, "domain: must be a host name without a port; an IPv6 address stands in brackets"},
		{"api", plainAPI + `, "domain": "ü.example"}`, "domain: must be a host name of at most 253 letters, digits, dots and dashes; international names are written in their xn-- form"},
		{"api", plainAPI + `, "auth": {"auth_header_name": "a b"}}`, "auth.auth_header_name: must be a header name, such as Authorization or X-Api-Key"},
		{"api", plainAPI + `, "auth_configs": {"authToken": {"auth_header_name": "a:"}}}`, `auth_configs["authToken"].auth_header_name: must be a header name, such as Authorization or X-Api-Key`},
		{"api", plainAPI + `, "org_id": "a/b"}`, "org_id: " + idMessage},
		{"api", plainAPI + `, "name": "a\nb"}`, "name: must not hold control characters"},
		{"api", plainAPI + `, "client_certificates": ["` + strings.Repeat("0a", 32) + `", "acme"]}`, `client_certificates[1]: is "acme"; want the id of a certificate (organisation, then the 64 lower-case hexadecimal digits of its SHA-256) or the path of a PEM file`},
		{"session", `{"certificate": "/x.pem"}`, `certificate: is "/x.pem"; want the id of a certificate: organisation, then the 64 lower-case hexadecimal digits of its SHA-256`},
		{"session", `{"mtls_static_certificate_bindings": ["acme` + strings.Repeat("0a", 32) + `", ""]}`, `mtls_static_certificate_bindings[1]: is ""; want the id of a certificate: organisation, then the 64 lower-case hexadecimal digits of its SHA-256`},
		{"api", plainAPI + `, "upstream_certificates": {"*": ""}}`, `upstream_certificates["*"]: must be a certificate id or the path of a PEM file`},
		{"api", `{"api_id": "../x", "proxy": {"listen_path": "/", "target_url": "http://b"}}`, "api_id: " + idMessage},
		{"api", `{"api_id": "a-oas", "proxy": {"listen_path": "/", "target_url": "http://b"}}`, `api_id: must not end in "-oas": a file of that name is the companion of another definition`},
		{"api", `{"proxy": {"target_url": "http://b"}}`, `proxy.listen_path: is required: a path such as /orders/, or "/" for every path`},
		{"api", proxy("a", "http://b"), `proxy.listen_path: must begin with "/", as in /orders/`},
		{"api", proxy("/"+strings.Repeat("a", 4096), "http://b"), "proxy.listen_path: has 4097 bytes; at most 4096 are allowed"},
		{"api", proxy(strings.Repeat("/a", 65), "http://b"), "proxy.listen_path: has 65 segments; at most 64 are allowed"},
		{"api", proxy("/svc", "http://b"), "proxy.listen_path: /svc is reserved for the gateway itself; choose another path"},
		{"api", proxy("/svc/x", "http://b"), "proxy.listen_path: /svc is reserved for the gateway itself; choose another path"},
		{"api", proxy("/hello/", "http://b"), "proxy.listen_path: /hello is reserved for the gateway itself; choose another path"},
		{"api", proxy("/ready", "http://b"), "proxy.listen_path: /ready is reserved for the gateway itself; choose another path"},
		{"api", proxy("/live", "http://b"), "proxy.listen_path: /live is reserved for the gateway itself; choose another path"},
		{"api", proxy("/a//b", "http://b"), "proxy.listen_path: has two slashes in a row; write one"},
		{"api", proxy("/a/../b", "http://b"), `proxy.listen_path: segment "..": must not be . or .., also not in part or encoded: paths are compared without such segments`},
		{"api", proxy("/a/%2e%2E;x/b", "http://b"), `proxy.listen_path: segment "%2e%2E;x": must not be . or .., also not in part or encoded: paths are compared without such segments`},
		{"api", proxy("/a/b%2f../b", "http://b"), `proxy.listen_path: segment "b%2f..": must not be . or .., also not in part or encoded: paths are compared without such segments`},
		{"api", proxy("/a/%zz", "http://b"), `proxy.listen_path: segment "%zz": % must begin an escape of two hexadecimal digits, other than %00`},
		{"api", proxy("/a/%0", "http://b"), `proxy.listen_path: segment "%0": % must begin an escape of two hexadecimal digits, other than %00`},
		{"api", proxy("/a/%00", "http://b"), `proxy.listen_path: segment "%00": % must begin an escape of two hexadecimal digits, other than %00`},
		{"api", proxy("/%73vc/x", "http://b"), "proxy.listen_path: /svc is reserved for the gateway itself; choose another path"},
		{"api", proxy("/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}/{j}/{k}/{l}/{m}/{n}/{o}/{p}/{q}", "http://b"), "proxy.listen_path: has 17 parameters; at most 16 are allowed"},
		{"api", proxy("/a/*", "http://b"), "proxy.listen_path: must not hold *: a listen path takes everything below it by itself; {name} stands for one segment"},
		{"api", proxy("/a/{b", "http://b"), "proxy.listen_path: has braces that do not match; a parameter is written {name} or {name:regex}"},
		{"api", proxy("/a/x{b}", "http://b"), `proxy.listen_path: segment "x{b}": a parameter must be the whole segment, as in /{name}/`},
		{"api", proxy("/a/{1}", "http://b"), "proxy.listen_path: parameter {1}: its name must consist of letters, digits, _ and -, beginning with a letter or _"},
		{"api", proxy("/{a}/{a}", "http://b"), "proxy.listen_path: parameter {a} stands twice"},
		{"api", proxy("/{a:}", "http://b"), "proxy.listen_path: parameter {a}: the expression after the colon is empty; leave the colon out to take any text"},
		{"api", proxy("/{a:(}", "http://b"), "proxy.listen_path: parameter {a}: is not a regular expression in RE2 syntax: missing closing ): `(`"},
		{"api", proxy("/a b", "http://b"), `proxy.listen_path: segment "a b": must not hold spaces, control characters, ?, # or \`},
		{"api", proxy("/a", ""), "proxy.target_url: is required: an address such as https://upstream.example:8443/base"},
		{"api", proxy("/a", "http://%zz"), "proxy.target_url: must be a URL such as https://upstream.example:8443/base"},
		{"api", proxy("/a", "tcp://b"), "proxy.target_url: must begin with http:// or https://"},
		{"api", proxy("/a", "b:80"), "proxy.target_url: must begin with http:// or https://"},
		{"api", proxy("/a", "http:///x"), "proxy.target_url: must name a host, as in https://upstream.example; international names are written in their xn-- form"},
		{"api", proxy("/a", "http://u:secret@b"), "proxy.target_url: must not hold a user or password"},
		{"api", proxy("/a", "http://b/#x"), "proxy.target_url: must not hold a fragment (#), which is never sent"},
		{"api", proxy("/a", "http://b:70000"), "proxy.target_url: must have a port from 1 to 65535, or none"},
		{"api", proxy("/a", "http://b/?a={x}"), "proxy.target_url: holds a character in its query that must be percent-encoded"},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"dial_timeout": -1}}}`, "proxy.transport.dial_timeout: must be from 0 to 86400 seconds; 0 is the gateway's default"},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"max_conns": -1}}}`, "proxy.transport.max_conns: must not be negative; 0 is the gateway's default"},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"max_conns": 1.5}}}`, "proxy.transport.max_conns: must be a whole number, not 1.5"},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"ssl_min_version": "1.1"}}}`, `proxy.transport.ssl_min_version: must be "1.2" or "1.3"`},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"ssl_key_file": "k"}}}`, "proxy.transport.ssl_certificate_file: and ssl_key_file must both be set, or neither"},
		{"api", `{"proxy": {"listen_path": "/a", "target_url": "http://b", "transport": {"ssl_server_name": "a/b"}}}`, "proxy.transport.ssl_server_name: must be a host name"},

		{"session", `{"rate": "5"}`, "rate: must be a number, not a string"},
		{"session", `{"rate": 1e400}`, "rate: is a number too large to be read"},
		{"session", `{"rate": 0.5, "per": 1}`, "rate: must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds"},
		{"session", `{"rate": 1e10, "per": 1}`, "rate: must be at most 2147483647"},
		{"session", `{"rate": 1, "per": 0.0001}`, "per: must be a whole number of milliseconds, given in seconds, such as 0.25"},
		{"session", `{"rate": 1, "per": 1e12}`, "per: must be at most 3153600000 seconds"},
		{"session", `{"quota_max": 9007199254740992}`, "quota_max: must be at most 9007199254740991"},
		{"session", `{"quota_max": 1e30}`, "quota_max: is a number too large to be read"},
		{"session", `{"quota_renewal_rate": 3153600001}`, "quota_renewal_rate: must be at most 3153600000 seconds; 0 never renews"},
		{"session", `{"apply_policies": ["a b"]}`, "apply_policies[0]: " + idMessage},
		{"session", `{"access_rights": {"a": null}}`, `access_rights["a"]: must be an object, not null`},
		{"session", `{"access_rights": {"a": {"api_id": "b"}}}`, `access_rights["a"].api_id: must be "a", the name of the entry, or be left out`},
		{"session", `{"access_rights": {"a/b": {}}}`, `access_rights["a/b"]: the id of an API ` + idMessage},
		{"session", `{"access_rights": {"a": {"allowed_urls": [{"url": "("}]}}}`, "access_rights[\"a\"].allowed_urls[0].url: is not a regular expression in RE2 syntax: missing closing ): `(`"},
		{"session", `{"access_rights": {"a": {"allowed_urls": [{"url": "/", "methods": ["GET", "post"]}]}}}`, `access_rights["a"].allowed_urls[0].methods[1]: must be POST: methods are compared as they are written`},
		{"session", `{"access_rights": {"a": {"allowed_urls": [{"url": "/", "methods": ["A B"]}]}}}`, `access_rights["a"].allowed_urls[0].methods[0]: must be an HTTP method such as GET`},
		{"session", `{"access_rights": {"a": {"limit": {"rate": 0.5}}}}`, `access_rights["a"].limit.rate: must be a whole number of calls; half a call per second is a rate of 1 per 2 seconds`},
		{"session", `{"alias": "` + strings.Repeat("x", 1025) + `"}`, "alias: has 1025 bytes; at most 1024 are allowed"},

		{"policy", `{"id": "a/b"}`, "id: " + idMessage},
		{"policy", `{"state": "on"}`, `state: must be "active", "draft" or "deny"`},
		{"policy", `{"key_expires_in": -1}`, "key_expires_in: must be from 0 (never) to 3153600000 seconds"},
		{"policy", `{"partitions": {"acl": 1}}`, "partitions.acl: must be true or false, not a number"},

		{"policies", `[]`, `must be an object from policy id to policy, such as {"gold": {"rate": 10, "per": 1}}`},
		{"policies", `{"gold": {"access_rights": {"a": []}}}`, `["gold"].access_rights["a"]: must be an object, not an array`},
		{"policies", `{"gold": {"id": "silver"}}`, `["gold"].id: must be "gold", the name of the entry, or be left out`},
		{"policies", `{"gold": 5}`, `["gold"]: must be an object, not a number`},
	} {
		got := problemsOf(t, c.kind, c.data)
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s %.120s\n got %q\nwant %q", c.kind, c.data, got, c.want)
		}
	}
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	got := problemsOf(t, "api", `{"api_id": "/", "name": 1, "enable_signature_checking": true, "proxy": {"listen_path": [], "target_url": "x"}, "definition": null}`)
	want := []string{
		"name: must be a string, not a number",
		"proxy.listen_path: must be a string, not an array",
		"api_id: " + idMessage,
		"proxy.target_url: must begin with http:// or https://",
		"enable_signature_checking: asks for a feature that this release does not have: HMAC request signatures; leave it out or turn it off",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestProblemsAreBounded(t *testing.T) {
	got := problemsOf(t, "api", `{"tags": [`+strings.Repeat("1,", 5000)+`1]}`)
	if len(got) != maxProblems+1 || got[maxProblems] != "there are further problems, which are not listed" {
		t.Errorf("%d problems, the last is %q", len(got), got[len(got)-1])
	}
}

func TestProblemsAreAJSONArray(t *testing.T) {
	_, err := ParseAPI([]byte(`{"proxy": {"listen_path": "/a", "target_url": "http://b"}, "enable_signature_checking": true}`))
	got, _ := json.Marshal(err)
	want := `[{"path":"enable_signature_checking","message":"asks for a feature that this release does not have: HMAC request signatures; leave it out or turn it off","feature":"HMAC request signatures"}]`
	if string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestPoliciesThatAreRightComeBesideTheProblems(t *testing.T) {
	got, err := ParsePolicies([]byte(`{"b": {"rate": 1}, "a": {"_id": "x"}, "c": {"rate": "1"}, "e e": {}}`))
	if len(got) != 2 || got[0].Key() != "a" || got[1].Key() != "b" {
		t.Errorf("got %v", got)
	}
	want := `["c"].rate: must be a number, not a string; ["e e"]: ` + idMessage
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestBundleSkipsWhatIsWrong(t *testing.T) {
	b, err := ParseBundle([]byte(`{"revision": "7", "org": "o", "confirmed_empty": true, "skipped": [{"source": "s", "reason": "r"}],
		"apis": [` + plainAPI + `}, {"api_id": "bad", "name": 1}], "policies": [{"id": "gold"}, {"id": "bad", "rate": ""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if b.Revision != "7" || b.Org != "o" || !b.ConfirmedEmpty || len(b.APIs) != 1 || len(b.Policies) != 1 || len(b.Skipped) != 3 {
		t.Fatalf("got %+v", b)
	}
	if s := b.Skipped[1]; s.APIID != "bad" || s.Source != "apis[1]" || !strings.HasPrefix(s.Reason, "name: ") {
		t.Errorf("got %+v", s)
	}
	if s := b.Skipped[2]; s.Source != "policies[1] bad" {
		t.Errorf("got %+v", s)
	}
	if _, err := ParseBundle([]byte(`{"apis": 1}`)); err == nil {
		t.Error("a bundle whose apis are a number was read")
	}
}

func TestWholeNumbersMayHaveAFractionOrExponent(t *testing.T) {
	s, err := ParseSession([]byte(`{"quota_max": 1e3, "quota_renewal_rate": 60.0, "expires": -1}`))
	if err != nil || s.QuotaMax != 1000 || s.QuotaRenewalRate != 60 || s.Expires != -1 {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestInternalAPINeedsNoListenPath(t *testing.T) {
	if got := problemsOf(t, "api", `{"internal": true, "proxy": {"target_url": "http://b"}}`); got != nil {
		t.Error(got)
	}
}
