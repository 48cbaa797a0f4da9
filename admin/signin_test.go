package admin

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// browser is one browser with a session.
type browser struct {
	b      *bench
	cookie string // name and value; "" without a session
	csrf   string
}

// own are the headers that a browser sends with the calls of our own pages.
func (u *browser) own() []string {
	return []string{"Sec-Fetch-Site", "same-origin", "Cookie", u.cookie, "X-CSRF-Token", u.csrf}
}

// call makes a call as a page of ours.
func (u *browser) call(method, path, body string) *admintest.Answer {
	u.b.t.Helper()
	return u.b.Call(method, path, "", body, u.own()...)
}

// take keeps the session of an answer.
func (u *browser) take(a *admintest.Answer) *admintest.Answer {
	u.b.t.Helper()
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		u.cookie = c.Name + "=" + c.Value
	}
	var said struct {
		CSRF string `json:"csrf_token"`
		Meta struct {
			CSRF string `json:"csrf_token"`
		}
	}
	a.Into(&said)
	u.csrf = said.CSRF + said.Meta.CSRF
	return a
}

// signIn signs in with a body.
func (b *bench) signIn(body string, headers ...string) *browser {
	b.t.Helper()
	u := &browser{b: b}
	u.take(b.Call("POST", "/api/session", "", body, headers...).Want(200))
	return u
}

// withPassword makes a user with a role and a password.
func (b *bench) withPassword(role string) (id, email string) {
	b.t.Helper()
	email = role + "-with-password@example.com"
	id = b.Call("POST", "/api/users", b.admin, fmt.Sprintf(`{"email_address":%q,"role":%q}`, email, role)).Want(200).Text("Meta")
	b.Call("POST", "/api/users/"+id+"/actions/reset", b.admin, `{"new_password":"correct horse"}`).Want(200)
	return id, email
}

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func startAt(t *testing.T, change ...func(*Deps)) (*bench, *clock) {
	now := &clock{at: time.Now().UTC().Truncate(time.Second)}
	return start(t, append(change, func(d *Deps) { d.KeyOptions.Passwords, d.Now = passwords(), now.now })...), now
}

func TestUsersSignInByPasswordKeyAndLink(t *testing.T) {
	b, _ := startAt(t)
	id, email := b.withPassword("editor")
	byPassword := b.signIn(fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, strings.ToUpper(email)))
	byKey := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.viewer))
	link := b.Call("POST", "/api/users/"+id+"/actions/enter", b.admin, "").Want(200).Text("link")
	if !regexp.MustCompile(`^http://127\.0\.0\.1:\d+/enter#[0-9A-Za-z]{43}$`).MatchString(link) {
		t.Fatalf("link %s", link)
	}
	_, token, _ := strings.Cut(link, "#")
	byLink := b.signIn(fmt.Sprintf(`{"enter":%q}`, token))
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"enter":%q}`, token)).Want(401).Says("The link is unknown, was used, or has expired")

	for name, u := range map[string]*browser{email: byPassword, "viewer@example.com": byKey, email + " ": byLink} {
		got := u.call("GET", "/api/session", "").Want(200).Says(`"email_address":"`+strings.TrimSpace(name)+`"`, `"csrf_token":"`+u.csrf+`"`, `"expires_at":"`)
		if cookie, _, _ := strings.Cut(u.cookie, "="); cookie != "sluice" || len(u.cookie) != len("sluice=sls_")+43 {
			t.Errorf("cookie %s from %s", u.cookie, got.Body)
		}
	}
	byPassword.call("POST", "/api/apis", anAPI("a", "/a")).Want(200)
	byKey.call("POST", "/api/apis", anAPI("b", "/b")).Want(403).Says("You do not have permission")
	login := b.Call("POST", "/api/users/login", "", fmt.Sprintf(`{"email_address":%q,"password":"correct horse"}`, email)).Want(200)
	for _, part := range []string{"sluice=sls_", "HttpOnly", "SameSite=Strict", "path=/", "max-age=43200"} {
		if !strings.Contains(strings.ToLower(login.Header.Get("Set-Cookie")), strings.ToLower(part)) {
			t.Errorf("Set-Cookie %q lacks %s", login.Header.Get("Set-Cookie"), part)
		}
	}
	b.Call("POST", "/api/users/login", "", fmt.Sprintf(`{"email_address":%q,"password":"wrong horse"}`, email)).Want(401)

	if n := b.Count("select count(*) from user_tokens where token_hash::text like '%sls_%' or octet_length(token_hash) <> 32"); n != 0 {
		t.Error("a session is stored as it is shown")
	}
	b.Call("GET", "/api/audit?object_kind=user&object_id="+id, b.admin, "").Want(200).Says(`"signed in"`, `"link created"`, `"sign-in refused"`, `"password changed"`).Hides("horse", token)
}

func TestASessionIsForTLSOrThisMachine(t *testing.T) {
	b, _ := startAt(t)
	body := fmt.Sprintf(`{"access_key":%q}`, b.viewer)
	secure := b.signIn(body, "Origin", "https://127.0.0.1"+b.URL[strings.LastIndex(b.URL, ":"):])
	if !strings.HasPrefix(secure.cookie, "__Host-sluice=sls_") {
		t.Errorf("over TLS: %s", secure.cookie)
	}
	secure.call("GET", "/api/session", "").Want(200)
	for _, c := range []struct {
		host, origin string
		status       int
		says         string
	}{
		{"sluice.example", "http://sluice.example", 400, "Signing in needs HTTPS"},
		{"sluice.example", "https://sluice.example", 200, ""},
		{"sluice.example", "https://evil.example", 403, "another origin"},
		{"localhost:8081", "http://localhost:8081", 200, ""},
		{"[::1]:8081", "http://[::1]:8081", 200, ""},
	} {
		a := b.withHost(c.host, "POST", "/api/session", body, "Origin", c.origin).Want(c.status).Says(c.says)
		secured := strings.Contains(a.Header.Get("Set-Cookie"), "__Host-sluice=") && strings.Contains(a.Header.Get("Set-Cookie"), "secure")
		if c.status == 200 && secured != strings.HasPrefix(c.origin, "https:") {
			t.Errorf("%s: %s", c.origin, a.Header.Get("Set-Cookie"))
		}
	}
	// A neighbour in the domain can plant a cookie without the prefix.
	planted := b.signIn(body)
	b.withHost("sluice.example", "GET", "/api/session", "", planted.own()...).Want(401)
}

// withHost makes a call with another Host.
func (b *bench) withHost(host, method, path, body string, headers ...string) *admintest.Answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.Client.Do(req)
}

func TestOtherOriginsCannotUseASession(t *testing.T) {
	b, _ := startAt(t)
	u := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.editor))
	origin := b.URL
	cookie := []string{"Cookie", u.cookie}
	with := func(more ...string) []string { return append(append([]string{}, cookie...), more...) }
	for _, c := range []struct {
		why     string
		method  string
		body    string
		headers []string
		status  int
	}{
		{"a form of another site", "POST", "a=b", with("Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded"), 401},
		{"a form of another port of this machine", "POST", "a=b", with("Sec-Fetch-Site", "same-site", "Content-Type", "application/x-www-form-urlencoded"), 401},
		{"a fetch of another site that knows the token", "POST", anAPI("x", "/x"), with("Sec-Fetch-Site", "cross-site", "X-CSRF-Token", u.csrf), 401},
		{"an old browser's form", "POST", "a=b", with("Origin", "https://evil.example"), 401},
		{"an old browser without an origin", "POST", anAPI("x", "/x"), with("X-CSRF-Token", u.csrf), 401},
		{"a null origin", "POST", anAPI("x", "/x"), with("Origin", "null", "X-CSRF-Token", u.csrf), 401},
		{"a link from elsewhere", "GET", "", with("Sec-Fetch-Site", "cross-site"), 401},
		{"the address bar", "GET", "", with("Sec-Fetch-Site", "none"), 401},
		{"our page without the token", "POST", anAPI("x", "/x"), with("Sec-Fetch-Site", "same-origin"), 403},
		{"our page with a wrong token", "POST", anAPI("x", "/x"), with("Sec-Fetch-Site", "same-origin", "X-CSRF-Token", u.csrf[1:]), 403},
		{"our page with a form", "POST", anAPI("x", "/x"), with("Sec-Fetch-Site", "same-origin", "X-CSRF-Token", u.csrf, "Content-Type", "application/x-www-form-urlencoded"), 415},
		{"a wrong access key beside the session", "GET", "", with("Sec-Fetch-Site", "same-origin", "Authorization", "wrong"), 401},
		{"the session in Authorization", "GET", "", []string{"Authorization", strings.TrimPrefix(u.cookie, "sluice=")}, 401},
		{"an old browser's own page", "GET", "", with("Origin", origin), 200},
		{"an old browser's own GET", "GET", "", cookie, 200},
		{"our page", "POST", anAPI("ours", "/ours"), with("Sec-Fetch-Site", "same-origin", "X-CSRF-Token", u.csrf), 200},
		{"an old browser's own POST", "POST", anAPI("ours2", "/ours2"), with("Origin", origin, "X-CSRF-Token", u.csrf), 200},
	} {
		if got := b.Call(c.method, "/api/apis", "", c.body, c.headers...); got.Status != c.status {
			t.Errorf("%s: %d %s, want %d", c.why, got.Status, got.Body, c.status)
		}
	}
	if n := b.Count("select count(*) from apis"); n != 2 {
		t.Errorf("%d APIs", n)
	}
	u.call("DELETE", "/api/apis/ours", "").Want(200)
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.viewer), "Sec-Fetch-Site", "cross-site").Want(403)
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.viewer), "Sec-Fetch-Site", "same-site", "Content-Type", "application/x-www-form-urlencoded").Want(403)
}

func TestASessionEndsWithSigningOutAndIsNeverTakenOver(t *testing.T) {
	b, _ := startAt(t)
	planted := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.viewer))
	victim := &browser{b: b}
	victim.take(b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.editor), planted.own()...).Want(200))
	if victim.cookie == planted.cookie {
		t.Error("the session of before goes on")
	}
	planted.call("GET", "/api/session", "").Want(401)
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.editor), "Cookie", "sluice=sls_"+strings.Repeat("x", 43), "Sec-Fetch-Site", "same-origin").Want(200)
	b.Call("GET", "/api/session", "", "", "Cookie", "sluice=sls_"+strings.Repeat("x", 43), "Sec-Fetch-Site", "same-origin").Want(401).Says("session has ended")

	second := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.editor), "User-Agent", "second browser")
	list := victim.call("GET", "/api/session/all", "").Want(200).Says("second browser", `"address":"127.0.0.1"`, `"current":true`)
	var all struct {
		Sessions []struct {
			ID      string
			Agent   string
			Current bool
		}
	}
	list.Into(&all)
	for _, one := range all.Sessions {
		if one.Agent == "second browser" {
			victim.call("DELETE", "/api/session/"+one.ID, "").Want(200)
		}
	}
	victim.call("DELETE", "/api/session/"+strings.Repeat("00", 16), "").Want(404)
	second.call("GET", "/api/session", "").Want(401)
	out := victim.call("DELETE", "/api/session", "").Want(200)
	if cookies := out.Header.Values("Set-Cookie"); len(cookies) != 2 || !strings.Contains(cookies[0]+cookies[1], "sluice=;") {
		t.Errorf("signing out sets %q", cookies)
	}
	victim.call("GET", "/api/session", "").Want(401)
	victim.call("POST", "/api/apis", anAPI("x", "/x")).Want(401)
	b.Call("GET", "/api/session", b.editor, "").Want(404).Says("not in a session")
	b.Call("DELETE", "/api/session", b.editor, "").Want(404)
}

func TestSessionsEndByThemselves(t *testing.T) {
	b, now := startAt(t)
	body := fmt.Sprintf(`{"access_key":%q}`, b.viewer)
	idle, busy := b.signIn(body), b.signIn(body)
	for range 12 {
		now.add(59 * time.Minute)
		busy.call("GET", "/api/session", "").Want(200)
	}
	idle.call("GET", "/api/session", "").Want(401)
	now.add(13 * time.Minute)
	busy.call("GET", "/api/session", "").Want(401)

	link := b.Call("POST", "/api/users/me/actions/enter", b.viewer, "").Want(200).Text("link")
	_, token, _ := strings.Cut(link, "#")
	now.add(10 * time.Minute)
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"enter":%q}`, token)).Want(401)
	made := b.Call("POST", "/api/users", b.admin, `{"email_address":"new@example.com","role":"editor","invite":"link"}`).Want(200)
	_, token, _ = strings.Cut(made.Text("invitation"), "#")
	now.add(71 * time.Hour)
	b.signIn(fmt.Sprintf(`{"enter":%q}`, token))
	b.server.signin.Sweep(t.Context())
	if n := b.Count("select count(*) from user_tokens where expires_at <= $1", now.now()); n != 0 {
		t.Errorf("%d ended tokens were not swept", n)
	}
}

func TestAChangeOfRoleOrPasswordEndsSessions(t *testing.T) {
	b, now := startAt(t)
	id, email := b.withPassword("editor")
	body := fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, email)
	first, second := b.signIn(body), b.signIn(body)
	first.call("POST", "/api/users/me/actions/reset", `{"new_password":"another horse"}`).Want(400).Says("password: is not the password in force")
	first.call("POST", "/api/users/me/actions/reset", `{"password":"correct horse","new_password":"short"}`).Want(400).Says("new_password: must have 10")
	first.call("POST", "/api/users/me/actions/reset", fmt.Sprintf(`{"password":"correct horse","new_password":%q}`, email)).Want(400).Says("must not be the address")
	changed := first.call("POST", "/api/users/me/actions/reset", `{"password":"correct horse","new_password":"another horse"}`).Want(200).Says("csrf_token")
	first.call("GET", "/api/session", "").Want(401)
	second.call("GET", "/api/session", "").Want(401)
	goesOn := &browser{b: b}
	goesOn.take(changed)
	goesOn.call("GET", "/api/session", "").Want(200)
	b.Call("POST", "/api/session", "", body).Want(401)

	b.Call("PUT", "/api/users/"+id, b.admin, fmt.Sprintf(`{"email_address":%q,"role":"editor","first_name":"Ann"}`, email)).Want(200)
	goesOn.call("GET", "/api/session", "").Want(200).Says(`"first_name":"Ann"`)
	for _, change := range []string{`{"email_address":%q,"role":"viewer"}`, `{"email_address":%q,"role":"editor"}`, `{"email_address":%q,"role":"editor","active":false}`} {
		u := b.signIn(fmt.Sprintf(`{"email":%q,"password":"another horse"}`, email))
		b.Call("PUT", "/api/users/"+id, b.admin, fmt.Sprintf(change, email)).Want(200)
		u.call("GET", "/api/session", "").Want(401)
	}
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"email":%q,"password":"another horse"}`, email)).Want(401)
	b.Call("PUT", "/api/users/"+id, b.admin, fmt.Sprintf(`{"email_address":%q,"role":"editor"}`, email)).Want(200)
	u := b.signIn(fmt.Sprintf(`{"email":%q,"password":"another horse"}`, email))
	key := b.Call("PUT", "/api/users/"+id+"/actions/key/reset", b.admin, "").Want(200).Text("access_key")
	u.call("GET", "/api/session", "").Want(401)

	// Who lost the password chooses another one soon after a sign-in by other means.
	lost := b.signIn(fmt.Sprintf(`{"access_key":%q}`, key))
	now.add(15 * time.Minute)
	lost.call("POST", "/api/users/me/actions/reset", `{"new_password":"third horse!"}`).Want(400)
	lost = b.signIn(fmt.Sprintf(`{"access_key":%q}`, key))
	lost.call("POST", "/api/users/me/actions/reset", `{"new_password":"third horse!"}`).Want(200)
	u = b.signIn(fmt.Sprintf(`{"email":%q,"password":"third horse!"}`, email))
	b.Call("DELETE", "/api/users/"+id, b.admin, "").Want(200)
	u.call("GET", "/api/session", "").Want(401)
}

func TestRefusedSignInsSayTheSameAndAreSlowed(t *testing.T) {
	b, _ := startAt(t)
	_, email := b.withPassword("editor")
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"email":%q,"password":"wrong horse"}`, email)).Want(401)
	bodies := make(map[string]bool)
	for _, one := range []string{email, "nobody@example.com", "viewer@example.com", "gateway@example.com", strings.Repeat("x", 300) + "@example.com", "\x00"} {
		sent := fmt.Sprintf(`{"email":%q,"password":"wrong horse"}`, one)
		if one == "\x00" {
			sent = `{"email":"a\u0000b","password":"wrong horse"}`
		}
		began := time.Now()
		bodies[string(b.Call("POST", "/api/session", "", sent).Want(401).Body)] = true
		if took := time.Since(began); took < 250*time.Millisecond {
			t.Errorf("%.20s was refused after %v", one, took)
		}
	}
	if len(bodies) != 1 {
		t.Errorf("refusals differ: %v", bodies)
	}
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.robot)).Want(401)
	b.Call("POST", "/api/session", "", `{"access_key":"sla_wrong"}`).Want(401)
	for _, body := range []string{`{}`, `{"email":"a","access_key":"b"}`, `{"enter":"a","access_key":"b"}`, `{"nmae":"a"}`} {
		b.Call("POST", "/api/session", "", body).Want(400)
	}
	for range 2 { // with those above three tries
		b.Call("POST", "/api/session", "", fmt.Sprintf(`{"email":%q,"password":"wrong horse"}`, email))
		b.Call("POST", "/api/session", "", `{"email":"nobody@example.com","password":"wrong horse"}`)
	}
	for _, one := range []string{email, "NOBODY@example.com"} {
		slowed := b.Call("POST", "/api/session", "", fmt.Sprintf(`{"email":%q,"password":"correct horse"}`, one)).Want(429).Says("Too many attempts at this account")
		if slowed.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	if n := b.Count("select count(*) from audit_log where action = 'sign-in refused'"); n != 5 {
		t.Errorf("%d refused sign-ins are in the audit log", n)
	}
	if text := b.log.String(); strings.Contains(text, "horse") || !strings.Contains(text, "a sign-in was refused") {
		t.Errorf("log: %s", text)
	}
}

func TestAddressesThatGuessAreSlowed(t *testing.T) {
	b, _ := startAt(t, func(d *Deps) { d.LoginRate = 2 })
	for i := range 2 {
		b.Call("POST", "/api/session", "", fmt.Sprintf(`{"email":"n%d@example.com","password":"wrong horse"}`, i)).Want(401)
	}
	b.Call("POST", "/api/session", "", `{"email":"n3@example.com","password":"wrong horse"}`).Want(429).Says("from this address")
	b.Call("POST", "/api/session", "", `{"access_key":"sla_wrong"}`).Want(429)
	b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.viewer)) // a right key is never refused
}

func TestCallsInASessionCanBeRepeated(t *testing.T) {
	b, _ := startAt(t)
	u := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.editor))
	b.createAPI(b.editor, "a", "/a")
	body := `{"apply_policies":[],"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`
	again := append(u.own(), "Idempotency-Key", "once")
	b.Call("POST", "/api/keys", "", body, again...).Want(200)
	b.Call("POST", "/api/keys", "", body, again...).Want(409).Says("shown that once")
	b.Call("POST", "/api/keys", "", strings.Replace(body, "[]", "null", 1), again...).Want(409).Says("another call")
	hash := b.Text("select encode(body_hash, 'hex') from repeatable_calls")
	if hash == "" || b.Count("select count(*) from keys") != 1 {
		t.Error("the call was carried out twice")
	}
	other := b.signIn(fmt.Sprintf(`{"access_key":%q}`, b.admin))
	b.Call("POST", "/api/keys", "", body, append(other.own(), "Idempotency-Key", "once")...).Want(200)
}

func TestInvitationsAreForPeople(t *testing.T) {
	b, _ := startAt(t)
	b.Call("POST", "/api/users", b.admin, `{"email_address":"x@example.com","role":"gateway","invite":"link"}`).Want(400).Says("invite")
	b.Call("POST", "/api/users", b.admin, `{"email_address":"x@example.com","invite":"pigeon"}`).Want(400).Says("invite: must be link")
	id := b.Call("POST", "/api/users", b.admin, `{"email_address":"x@example.com","role":"editor","invite":"link"}`).Want(200).Says("access_key").Text("Meta")
	b.Call("PUT", "/api/users/"+id, b.admin, `{"email_address":"x@example.com","role":"editor","invite":"link"}`).Want(400).Says("invite: is for new users")
	link := b.Call("POST", "/api/users/"+id+"/actions/invite", b.admin, "").Want(200).Text("link")
	_, token, _ := strings.Cut(link, "#")
	u := b.signIn(fmt.Sprintf(`{"enter":%q}`, token))
	u.call("POST", "/api/users/me/actions/reset", `{"new_password":"my first horse"}`).Want(200)
	b.signIn(`{"email":"x@example.com","password":"my first horse"}`)
	robot := b.Call("GET", "/api/users?q=gateway", b.admin, "").Want(200)
	var list struct{ Users []struct{ ID string } }
	robot.Into(&list)
	b.Call("POST", "/api/users/"+list.Users[0].ID+"/actions/enter", b.admin, "").Want(400)
	b.Call("POST", "/api/users/"+list.Users[0].ID+"/actions/reset", b.admin, `{"new_password":"a robot's horse"}`).Want(400).Says("gateway")
	b.Call("POST", "/api/users/"+id+"/actions/enter", b.other, "").Want(404)
	b.Call("POST", "/api/users/"+id+"/actions/reset", b.other, `{"new_password":"their horses"}`).Want(404)
}
