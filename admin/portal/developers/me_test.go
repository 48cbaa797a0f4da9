package developers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
)

func TestDevelopersChangeTheirProfile(t *testing.T) {
	b := start(t)
	id := b.Call("POST", "/api/portal/developers", "approver", `{"email":"ann@example.com","password":"open sesame","fields":{"Name":"Ann","Tier":"gold"},"sso_key":"k","note":"watch"}`).Want(200).Text("Message")
	session := b.session("ann@example.com")
	b.conf.set(func(c *model.Configuration) { c.SignupFields = []string{"Name"} })
	got := b.Call("GET", "/api/portal/me", session, "").Want(200).Says(`"Tier":"gold"`).Hides("watch", `"sso_key":"k"`)
	whole := strings.NewReplacer(`"Ann"`, `"Bea"`, `"inactive":false`, `"inactive":true`, `"password_max_days":0`, `"password_max_days":9`).Replace(string(got.Body))
	b.Call("PUT", "/api/portal/me", session, whole, "If-Match", got.ETag).Want(200).Says("Data updated")
	b.Call("PUT", "/api/portal/me", session, whole, "If-Match", got.ETag).Want(409)
	b.Call("GET", "/api/portal/developers/"+id, "approver", "").Want(200).Says(`"Name":"Bea"`, `"Tier":"gold"`, `"note":"watch"`, `"sso_key":"k"`, `"inactive":false`, `"password_max_days":0`)
	for body, says := range map[string]string{
		`{"fields":{"Name":"Ann","Tier":"platinum"}}`: "is not asked for",
		`{"fields":{}}`: "is needed",
		`{"email":"eve@example.com","fields":{"Name":"Ann"}}`: "can only be changed by an administrator",
		`{"fields":{"Name":7}}`:                               "fields",
		`[`:                                                   "",
		`{"fields":{"Name":"` + strings.Repeat("x", 5000) + `"}}`: "4096",
	} {
		b.Call("PUT", "/api/portal/me", session, body).Want(400).Says(says)
	}
}

func TestDevelopersChangeTheirPassword(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	session, other := b.session("ann@example.com"), b.session("ann@example.com")
	b.Call("POST", "/api/portal/me/password", session, `{"current_password":"wrong","password":"open sesame 2"}`).Want(403).Says("current_password")
	b.Call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"short"}`).Want(400)
	b.Call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"open sesame"}`).Want(400).Says("last 5")
	b.Call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"open sesame 2"}`).Want(200)
	b.Call("GET", "/api/portal/me", session, "").Want(200)
	b.Call("GET", "/api/portal/me", other, "").Want(401)
	b.login("ann@example.com", "open sesame").Want(401)
	b.login("ann@example.com", "open sesame 2").Want(200)
	for range 3 {
		b.Call("POST", "/api/portal/me/password", session, `{"current_password":"wrong","password":"open sesame 3"}`).Want(403)
	}
	b.Call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame 2","password":"open sesame 3"}`).Want(429)
}

func TestAPasswordThatIsTooOldHasToChange(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/portal/developers", "approver", `{"email":"ann@example.com","password":"open sesame","password_max_days":30}`).Want(200)
	b.clock.pass(30 * day)
	b.session("ann@example.com")
	b.clock.pass(time.Second)
	b.login("ann@example.com", "open sesame").Want(403).Says("new_password")
	b.Call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open sesame"}`).Want(401).Says("too old")
	change := `{"email":"ann@example.com","password":%q,"new_password":%q}`
	b.Call("POST", "/api/portal/login", "", fmt.Sprintf(change, "wrong", "open sesame 2")).Want(401)
	b.Call("POST", "/api/portal/login", "", fmt.Sprintf(change, "open sesame", "open sesame")).Want(400).Says("new_password: must not be one of the last 5")
	b.Call("POST", "/api/portal/login", "", fmt.Sprintf(change, "open sesame", "open sesame 2")).Want(200).Says(SessionPrefix)
	b.login("ann@example.com", "open sesame 2").Want(200)
}

func TestDevelopersSeeAndEndTheirSessions(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	b.make("bob@example.com")
	foreign := b.session("bob@example.com")
	first := b.session("ann@example.com")
	b.clock.pass(time.Minute)
	b.From = "198.51.100.7"
	second := b.session("ann@example.com")
	list, _ := b.Call("GET", "/api/portal/me/sessions", second, "").Want(200).Says("198.51.100.7", "192.0.2.1", `"user_agent":"a browser"`).Hides(first, second).Object()["Data"].([]any)
	if len(list) != 2 {
		t.Fatalf("sessions %v", list)
	}
	newest, oldest := list[0].(map[string]any), list[1].(map[string]any)
	if newest["current"] != true || oldest["current"] != false {
		t.Errorf("sessions %v", list)
	}
	b.Call("DELETE", "/api/portal/me/sessions/"+oldest["id"].(string), foreign, "").Want(404).Says("Session not found")
	for _, id := range []string{"x", "00", "", strings.Repeat("0", 32), strings.Repeat("0", 64)} {
		b.Call("DELETE", "/api/portal/me/sessions/"+id, second, "").Want(404)
	}
	b.Call("DELETE", "/api/portal/me/sessions/"+oldest["id"].(string), second, "").Want(200)
	b.Call("GET", "/api/portal/me", first, "").Want(401)
	third := b.session("ann@example.com")
	b.Call("DELETE", "/api/portal/me/sessions", second, "").Want(200)
	b.Call("GET", "/api/portal/me", third, "").Want(401)
	b.Call("GET", "/api/portal/me", second, "").Want(200)
	b.Call("GET", "/api/portal/me", foreign, "").Want(200)
}

func TestSessionsAreBoundedInNumberAndTime(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	first := b.session("ann@example.com")
	for range maxSessions {
		b.clock.pass(time.Second)
		b.session("ann@example.com")
	}
	b.Call("GET", "/api/portal/me", first, "").Want(401)
	if n := b.Count("select count(*) from developer_tokens"); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	busy, idle := b.session("ann@example.com"), b.session("ann@example.com")
	for range 12 {
		b.clock.pass(59 * time.Minute)
		b.Call("GET", "/api/portal/me", busy, "").Want(200)
	}
	b.Call("GET", "/api/portal/me", idle, "").Want(401)
	b.clock.pass(12 * time.Minute)
	b.Call("GET", "/api/portal/me", busy, "").Want(401)
	b.service.sweep(t.Context())
	if n := b.Count("select count(*) from developer_tokens"); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestTheUseOfASessionIsNotedOnceAMinute(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	session := b.session("ann@example.com")
	writes := func() int { return b.Count("select sum(xmin::text::bigint) from developer_tokens") }
	before := writes()
	for range 6 {
		b.clock.pass(10 * time.Second)
		b.Call("GET", "/api/portal/me", session, "").Want(200)
	}
	if writes() != before {
		t.Error("it was written within a minute")
	}
	b.clock.pass(time.Second)
	b.Call("GET", "/api/portal/me", session, "").Want(200)
	if writes() == before {
		t.Error("it was not written after a minute")
	}
}

func TestDevelopersDeleteTheirAccount(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	b.key(id, "h1", "gold")
	session := b.session("ann@example.com")
	b.Call("DELETE", "/api/portal/me", session, "").Want(400)
	b.Call("DELETE", "/api/portal/me", session, `{"password":"wrong"}`).Want(403)
	b.Call("DELETE", "/api/portal/me", session, `{"password":"open sesame"}`).Want(200).Says("Data deleted")
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	if b.Count("select count(*) from developers") != 0 || b.Count("select count(*) from keys") != 0 {
		t.Error("something is left")
	}
}

func TestSignUpsThatNobodyWentOnWithAreForgotten(t *testing.T) {
	b := start(t)
	for _, email := range []string{"gone@example.com", "kept@example.com"} {
		b.signUp(email, "open sesame").Want(200)
	}
	kept := b.make("made@example.com")
	b.Exec("update developers set updated_at = now() - interval '8 days'")
	b.Exec("insert into key_requests (id, org_id, state, developer_id, policies, body) select 'r', 'one', 'pending', id, '{gold}', '{}' from developers where email = 'kept@example.com'")
	b.signUp("fresh@example.com", "open sesame").Want(200)
	b.service.sweep(t.Context())
	b.Call("GET", "/api/portal/developers", "viewer", "").Want(200).Says("kept@", "made@", "fresh@").Hides("gone@")
	b.Call("GET", "/api/portal/developers/"+kept, "viewer", "").Want(200)
	if b.Count("select count(*) from audit_log where actor = 'never verified'") != 1 {
		t.Error("not one entry in the audit log")
	}
}

func TestTokensAreOfNoOtherForm(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token, hash := newToken(SessionPrefix)
		if !wellFormed(token, SessionPrefix) || seen[token] || len(hash) != 32 {
			t.Fatalf("token %q", token)
		}
		seen[token] = true
	}
	for _, text := range []string{"", "slp_", strings.Repeat("0", rest.KeyDigits), SessionPrefix + strings.Repeat("0", rest.KeyDigits+1), SessionPrefix + strings.Repeat("-", rest.KeyDigits)} {
		if wellFormed(text, SessionPrefix) {
			t.Errorf("%q is taken for a token", text)
		}
	}
}

func FuzzDeveloper(f *testing.F) {
	f.Add(`{"email":"a@b.c","fields":{"a":"b"},"later":[1]}`, "a@b.c", "n", "v")
	f.Add(`{"PASSWORD":"x","email":null}`, "A <a@b.c>", "", "\x00")
	f.Fuzz(func(t *testing.T, body, email, name, value string) {
		if emailProblem(email) == "" && (strings.ContainsAny(email, "\r\n \x00") || len(email) > maxEmail || !strings.Contains(email, "@")) {
			t.Errorf("%q is taken for an address", email)
		}
		if fieldProblems(map[string]string{name: value}) == nil && (strings.ContainsRune(name+value, 0) || len(value) > maxValue || name == "") {
			t.Errorf("%q: %q are taken for a field", name, value)
		}
		_ = signupFieldProblems([]string{name}, map[string]string{value: name}, map[string]string{name: value})
		r, err := model.Parse[model.Developer]([]byte(body))
		if err != nil {
			return
		}
		extra, _, err := extraOf([]byte(body), r)
		if err != nil {
			if _, expected := rest.FaultOf(err); !expected {
				t.Errorf("%s: %v", body, err)
			}
			return
		}
		again, err := model.Parse[model.Developer](extra)
		if err != nil {
			t.Fatalf("%s left %s: %v", body, extra, err)
		}
		for _, known := range []string{"email", "password", "PASSWORD", "keys"} {
			if again.Unknown.Get(known) != nil {
				t.Errorf("%s left %s", body, extra)
			}
		}
	})
}
