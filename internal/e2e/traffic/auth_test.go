package traffic

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"golang.org/x/crypto/bcrypt"
)

const (
	textNoUser    = "User not authorised"
	textThrottled = "Too many attempts with a wrong password, please try again later"
	textMalformed = "Attempted access with malformed header, "
)

// callers is a gateway with an API for each way of saying who calls.
func callers(t *testing.T, with settings) (*traffic, *scripted) {
	up, address := newScripted(t, noContent)
	api := func(id string, more object) object {
		def := rig.APIDef(id, "http://"+address, false)
		def["org_id"] = "acme"
		maps.Copy(def, more)
		return def
	}
	everywhere := object{"authToken": object{"use_param": true, "param_name": "api_key", "use_cookie": true, "cookie_name": "session"}}
	return newTraffic(t, with, nil,
		api("header", nil),
		api("places", object{"auth_configs": everywhere}),
		api("elsewhere", object{"auth_configs": object{"authToken": object{"disable_header": true, "use_param": true, "use_cookie": true, "auth_header_name": "X-Key"}}}),
		api("strip", object{"auth_configs": everywhere, "strip_auth_data": true}),
		api("users", object{"use_basic_auth": true, "name": `The "users" API`}),
		api("usersstrip", object{"use_basic_auth": true, "strip_auth_data": true}),
		api("both", object{"use_basic_auth": true, "use_standard_auth": true, "auth_configs": object{"authToken": object{"auth_header_name": "X-Key"}}}),
		api("bothuser", object{
			"use_basic_auth": true, "use_standard_auth": true, "base_identity_provided_by": "basic_auth_user",
			"auth_configs": object{"authToken": object{"auth_header_name": "X-Key"}},
		}),
	), up
}

var callerAPIs = []string{"header", "places", "elsewhere", "strip", "users", "usersstrip", "both", "bothuser"}

// newUser makes a user by the gateway API.
func (g *traffic) newUser(name, password string, more object) rig.Answer {
	g.T.Helper()
	session := object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...), "basic_auth_data": object{"password": rig.Plant(password)}}
	maps.Copy(session, more)
	return g.ask(http.MethodPost, "/svc/keys/"+name, session)
}

// ask makes a call of the gateway API.
func (g *traffic) ask(method, path string, body any) rig.Answer {
	g.T.Helper()
	return rig.Call(g.T, method, g.Control+path, body, "X-Svc-Authorization", testSecret)
}

// get sends one request with header lines and returns the answer.
func (g *traffic) get(path string, lines ...string) rig.Answer {
	g.T.Helper()
	all := append([]string{"GET " + path + " HTTP/1.1", "Host: a"}, lines...)
	got := parse(g.T, conversation(g.T, g.addr, strings.Join(all, "\r\n")+"\r\n\r\n"))
	if len(got) != 1 {
		g.T.Fatalf("%s %q: %d answers", path, lines, len(got))
	}
	return got[0]
}

func TestTokensStandInCookiesParametersAndHeaders(t *testing.T) {
	t.Parallel()
	g, up := callers(t, nil)
	key := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...)})
	escaped := "%" + fmt.Sprintf("%02X", key[0]) + key[1:]
	for _, c := range []struct {
		path   string
		lines  []string
		status int
		text   string
		line   string // the request line that the upstream saw
	}{
		{"/header/x", nil, 401, textMissing, ""},
		{"/header/x?Authorization=" + key, []string{"Cookie: Authorization=" + key}, 401, textMissing, ""},
		{"/places/x", []string{"Authorization: Bearer " + key}, 200, "", "GET /x HTTP/1.1"},
		{"/places/x?api_key=" + key, nil, 200, "", "GET /x?api_key=" + key + " HTTP/1.1"},
		{"/places/x?a=1&api%5Fkey=" + escaped, nil, 200, "", "GET /x?a=1&api%5Fkey=" + escaped + " HTTP/1.1"},
		{"/places/x", []string{"Cookie: a=1; session=" + key}, 200, "", "GET /x HTTP/1.1"},
		{"/places/x", []string{"Cookie: a=1", `Cookie: session="` + key + `"`}, 200, "", "GET /x HTTP/1.1"},
		{"/places/x?api_key=nobodys", []string{"Cookie: session=" + key, "Authorization: nobodys"}, 200, "", ""},
		{"/places/x?api_key=" + key, []string{"Cookie: session=nobodys"}, 403, textNoAccess, ""},
		{"/places/x?api_key=nobodys", []string{"Authorization: " + key}, 403, textNoAccess, ""},
		{"/places/x?api_key=", []string{"Authorization: " + key, "Cookie: session="}, 200, "", ""},
		{"/places/x?api_key=%zz", []string{"Cookie: session"}, 401, textMissing, ""},
		{"/places/x?api_key=%00%0d%0a", nil, 403, textNoAccess, ""},
		{"/places/x?api_key=ab", nil, 403, textNoAccess, ""},
		{"/places/x?api_key=" + strings.Repeat("x", 4000), nil, 403, textNoAccess, ""},
		{"/elsewhere/x", []string{"X-Key: " + key}, 401, textMissing, ""},
		{"/elsewhere/x?X-Key=" + key, nil, 200, "", ""},
		{"/elsewhere/x", []string{"Cookie: X-Key=" + key}, 200, "", ""},
	} {
		before := len(up.with(""))
		got := g.get(c.path, c.lines...)
		if got.Status != c.status || c.text != "" && got.Body != errorBody(c.text) {
			t.Errorf("%s %q: %s", c.path, c.lines, got)
		}
		if asked := len(up.with("")) - before; asked != 0 != (c.status == 200) {
			t.Errorf("%s %q: the upstream was asked %d times", c.path, c.lines, asked)
		}
		if head := up.lastHead(); c.line != "" && headerLines(head)[0] != c.line {
			t.Errorf("%s: the upstream was asked for %q", c.path, head)
		}
	}
	if err := rig.Lacks(g.logged(), "api_key"); err == nil {
		t.Error("the access log has query strings")
	}
}

func TestCredentialsAreStrippedFromWhatGoesUpstream(t *testing.T) {
	t.Parallel()
	g, up := callers(t, nil)
	key := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...)})
	if got := g.newUser("bob", "strip-secret", nil); got.Status != 200 {
		t.Fatal(got)
	}
	for _, c := range []struct {
		path  string
		lines []string
		want  []string // lines that the upstream gets
	}{
		{"/strip/x?a=1&api_key=" + key + "&b=%20", nil, []string{"GET /x?a=1&b=%20 HTTP/1.1"}},
		{"/strip/x?api_key=" + key, []string{"Authorization: other", "Cookie: a=1"}, []string{"GET /x HTTP/1.1", "Cookie: a=1"}},
		{"/strip/x", []string{"Cookie: a=1; session=" + key + "; session_id=7"}, []string{"GET /x HTTP/1.1", "Cookie: a=1; session_id=7"}},
		{"/strip/x", []string{"Cookie: session=" + key}, nil},
		{"/strip/x", []string{"Authorization: Bearer " + key}, nil},
		{"/usersstrip/x", []string{"Authorization: " + rig.BasicHeader("bob", "strip-secret"), "X-Kept: 1"}, []string{"X-Kept: 1"}},
	} {
		if got := g.get(c.path, c.lines...); got.Status != 200 {
			t.Fatalf("%s: %s", c.path, got)
		}
		head := up.lastHead()
		for _, line := range c.want {
			if holds(head, line) != 1 {
				t.Errorf("%s %q: %q is missing: %q", c.path, c.lines, line, head)
			}
		}
		if strings.Contains(head, key) || names(head, "Authorization") || names(head, "Cookie") != slices.ContainsFunc(c.want, func(l string) bool { return strings.HasPrefix(l, "Cookie") }) {
			t.Errorf("%s %q: the upstream got %q", c.path, c.lines, head)
		}
	}
	if g.get("/users/x", "Authorization: "+rig.BasicHeader("bob", "strip-secret")); holds(up.lastHead(), "Authorization: "+rig.BasicHeader("bob", "strip-secret")) != 1 {
		t.Errorf("credentials were lost: %q", up.lastHead())
	}
}

func TestWhatUsersAndPasswordsMayDo(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, nil)
	for name, more := range map[string]object{
		"bob":     nil,
		"expired": {"expires": time.Now().Add(-time.Hour).Unix()},
		"off":     {"is_inactive": true},
		"other":   {"access_rights": rig.AccessTo("header")},
	} {
		if got := g.newUser(name, "right-"+name, more); got.Status != 200 || !strings.Contains(got.Body, "acme"+name) {
			t.Fatal(got)
		}
	}
	key := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...)})
	if got := g.ask(http.MethodPost, "/svc/keys/named-by-hand-0001", object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...)}); got.Status != 200 {
		t.Fatal(got)
	}
	const realm = `Basic realm="The \"users\" API"`
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		name, value string
		status      int
		text        string
		challenged  bool
		reason      string
	}{
		{"none", "", 401, textMissing, true, "auth_missing"},
		{"one word", "Basic", 400, textMalformed + "header not in basic auth format", false, "auth_malformed"},
		{"three words", "Basic a b", 400, textMalformed + "header not in basic auth format", false, "auth_malformed"},
		{"another scheme", "Bearer " + encode("bob:right-bob"), 400, textMalformed + "header not in basic auth format", false, "auth_malformed"},
		{"a key", key, 400, textMalformed + "header not in basic auth format", false, "auth_malformed"},
		{"no base64", "Basic !", 400, textMalformed + "auth data not encoded correctly", false, "auth_malformed"},
		{"no colon", "Basic " + encode("bob"), 400, textMalformed + "values not in basic auth format", false, "auth_malformed"},
		{"two colons", "Basic " + encode("bob:right:bob"), 400, textMalformed + "values not in basic auth format", false, "auth_malformed"},
		{"control characters", "Basic " + encode("bob:right\r\nbob"), 400, textMalformed + "values not in basic auth format", false, "auth_malformed"},
		{"nobody", rig.BasicHeader("nobody", "x"), 401, textNoUser, true, "auth_unknown"},
		{"no name", rig.BasicHeader("", "x"), 401, textNoUser, true, "auth_unknown"},
		{"wrong password", rig.BasicHeader("bob", "wrong"), 401, textNoUser, true, "auth_unknown"},
		{"no password", rig.BasicHeader("bob", ""), 401, textNoUser, true, "auth_unknown"},
		{"whole name", rig.BasicHeader("acmebob", "right-bob"), 401, textNoUser, true, "auth_unknown"},
		{"a key without a password", rig.BasicHeader("named-by-hand-0001", ""), 401, textNoUser, true, "auth_unknown"},
		{"a key as a name", rig.BasicHeader(key, ""), 401, textNoUser, true, "auth_unknown"},
		{"right", rig.BasicHeader("bob", "right-bob"), 200, "", false, ""},
		{"right again", rig.BasicHeader("bob", "right-bob"), 200, "", false, ""},
		{"scheme in another case", strings.Replace(rig.BasicHeader("bob", "right-bob"), "Basic", "bAsIc", 1), 200, "", false, ""},
		{"expired", rig.BasicHeader("expired", "right-expired"), 401, textExpired, false, "auth_expired"},
		{"inactive", rig.BasicHeader("off", "right-off"), 403, textInactive, false, "auth_inactive"},
		{"not of this API", rig.BasicHeader("other", "right-other"), 403, textNoAccess, false, "access_denied"},
	} {
		var lines []string
		if c.value != "" {
			lines = append(lines, "Authorization: "+c.value)
		}
		got := g.get("/users/x", lines...)
		if got.Status != c.status || c.text != "" && got.Body != errorBody(c.text) || got.Reason() != c.reason {
			t.Errorf("%s: %s", c.name, got)
		}
		if have := got.Header.Get("WWW-Authenticate"); (have == realm) != c.challenged || have != "" && !c.challenged {
			t.Errorf("%s: challenge %q", c.name, have)
		}
	}
	for _, name := range []string{"bob", "acmebob"} {
		if got := g.get("/header/x", "Authorization: "+name); got.Status != 403 || got.Body != errorBody(textNoAccess) {
			t.Errorf("a user's name alone: %s", got)
		}
	}
}

func TestUsersAreManagedByTheirNames(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, nil)
	made, err := bcrypt.GenerateFromPassword([]byte("imported-secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.newUser("bob", "first-secret", nil); got.Status != 200 {
		t.Fatal(got)
	}
	if got := g.newUser("ann", string(made), object{"basic_auth_data": object{"password": string(made), "hash_type": "bCrypt"}}); got.Status != 200 {
		t.Fatal(got)
	}
	opens := func(user, password string) bool {
		return g.get("/users/x", "Authorization: "+rig.BasicHeader(user, password)).Status == 200
	}
	if !opens("bob", "first-secret") || !opens("ann", "imported-secret") {
		t.Error("a user cannot log in")
	}
	session := object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...)}
	for _, path := range []string{"/svc/keys/acmebob", "/svc/keys/bob?org_id=acme", "/svc/keys/bob?username=true&org_id=acme", "/svc/keys/bob?username=true"} {
		got := g.ask(http.MethodGet, path, nil)
		if got.Status != 200 || !strings.Contains(got.Body, `"hash_type":"argon2id"`) || strings.Contains(got.Body, "$argon2id") {
			t.Errorf("%s: %s", path, got)
		}
		if got := g.ask(http.MethodPut, path, session); got.Status != 200 || !opens("bob", "first-secret") {
			t.Errorf("PUT %s without a password: %s", path, got)
		}
	}
	session["basic_auth_data"] = object{"password": rig.Plant("second-secret")}
	if got := g.ask(http.MethodPut, "/svc/keys/bob?username=true&org_id=acme", session); got.Status != 200 {
		t.Error(got)
	}
	if opens("bob", "first-secret") || !opens("bob", "second-secret") {
		t.Error("the password was not changed at once")
	}
	for body, want := range map[string]string{
		`{"org_id":"acme","basic_auth_data":{"password":"a:b"},"access_rights":{"users":{}}}`:                    "basic_auth_data.password",
		`{"org_id":"acme","basic_auth_data":{"password":"x","hash_type":"md5"},"access_rights":{"users":{}}}`:    "basic_auth_data.hash_type",
		`{"org_id":"acme","basic_auth_data":{"password":"x","hash_type":"bcrypt"},"access_rights":{"users":{}}}`: "basic_auth_data.password",
	} {
		if got := g.ask(http.MethodPost, "/svc/keys/eve", body); got.Status != 400 || !strings.Contains(got.Body, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/bob?username=true&org_id=acme", nil); got.Status != 200 || opens("bob", "second-secret") {
		t.Errorf("deleted: %s", got)
	}
}

func TestGuessingIsSlowAndDoesNotKeepUsersOut(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, settings{"passwords.wrong_per_user": "3"})
	if got := g.newUser("bob", "guessed-secret", nil); got.Status != 200 {
		t.Fatal(got)
	}
	right := "Authorization: " + rig.BasicHeader("bob", "guessed-secret")
	if got := g.get("/users/x", right); got.Status != 200 {
		t.Fatal(got)
	}
	for _, user := range []string{"bob", "nobody"} {
		for i := range 3 {
			if got := g.get("/users/x", "Authorization: "+rig.BasicHeader(user, fmt.Sprint("guess", i))); got.Status != 401 {
				t.Errorf("guess %d for %s: %s", i, user, got)
			}
		}
		got := g.get("/users/x", "Authorization: "+rig.BasicHeader(user, "one-too-many"))
		if got.Status != 429 || got.Body != errorBody(textThrottled) || got.Header.Get("Retry-After") == "" || got.Reason() != "auth_throttled" {
			t.Errorf("one too many for %s: %s", user, got)
		}
	}
	if got := g.get("/users/x", right); got.Status != 200 {
		t.Errorf("the user is kept out: %s", got)
	}
}

func TestSeveralCredentialsMustAllBeRight(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, nil)
	key := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...), "quota_max": 7, "quota_renewal_rate": 60})
	if got := g.newUser("bob", "both-secret", object{"quota_max": 5, "quota_renewal_rate": 60}); got.Status != 200 {
		t.Fatal(got)
	}
	user, token := "Authorization: "+rig.BasicHeader("bob", "both-secret"), "X-Key: "+key
	for _, c := range []struct {
		path   string
		lines  []string
		status int
		text   string
		quota  string // whose session counts
	}{
		{"/both/x", []string{user, token}, 200, "", "7"},
		{"/bothuser/x", []string{user, token}, 200, "", "5"},
		{"/both/x", []string{user}, 401, textMissing, ""},
		{"/both/x", []string{token}, 401, textMissing, ""},
		{"/both/x", []string{user, "X-Key: nobodys"}, 403, textNoAccess, ""},
		{"/bothuser/x", []string{"Authorization: " + rig.BasicHeader("bob", "wrong"), token}, 401, textNoUser, ""},
	} {
		got := g.get(c.path, c.lines...)
		if got.Status != c.status || c.text != "" && got.Body != errorBody(c.text) || c.quota != "" && got.Header.Get("X-Ratelimit-Limit") != c.quota {
			t.Errorf("%s %q: %s", c.path, c.lines, got)
		}
	}
}

func TestOperatorsWordRefusalsOfCredentials(t *testing.T) {
	t.Parallel()
	g := newTraffic(t, settings{
		"override_messages.auth.auth_field_missing.message": "Send the key that the portal gave you", "override_messages.auth.auth_field_missing.code": "400",
		"override_messages.auth.key_not_found.code": "401",
	}, nil, rig.APIDef("a", deadAddress(t), false))
	for key, want := range map[string]string{
		"": "400 {\n    \"error\": \"Send the key that the portal gave you\"\n}", "nobodys-key": "401 {\n    \"error\": \"Access to this API has been disallowed\"\n}",
	} {
		got := rig.Call(t, "GET", g.Traffic+"/a/", nil, "Authorization", key)
		if said := fmt.Sprint(got.Status, " ", got.Body); said != want {
			t.Errorf("%q: %s", key, said)
		}
	}
}
