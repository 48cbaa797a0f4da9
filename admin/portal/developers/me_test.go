package developers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
)

func TestDevelopersChangeTheirProfile(t *testing.T) {
	b := start(t)
	id := b.call("POST", "/api/portal/developers", "approver", `{"email":"ann@example.com","password":"open sesame","fields":{"Name":"Ann","Tier":"gold"},"sso_key":"k","note":"watch"}`).want(200).text("Message")
	session := b.session("ann@example.com")
	b.conf.set(func(c *record.Configuration) { c.SignupFields = []string{"Name"} })
	got := b.call("GET", "/api/portal/me", session, "").want(200).says(`"Tier":"gold"`).hides("watch", `"sso_key":"k"`)
	whole := strings.NewReplacer(`"Ann"`, `"Bea"`, `"inactive":false`, `"inactive":true`, `"password_max_days":0`, `"password_max_days":9`).Replace(string(got.body))
	b.call("PUT", "/api/portal/me", session, whole, "If-Match", got.etag).want(200).says("Data updated")
	b.call("PUT", "/api/portal/me", session, whole, "If-Match", got.etag).want(409)
	b.call("GET", "/api/portal/developers/"+id, "approver", "").want(200).says(`"Name":"Bea"`, `"Tier":"gold"`, `"note":"watch"`, `"sso_key":"k"`, `"inactive":false`, `"password_max_days":0`)
	for body, says := range map[string]string{
		`{"fields":{"Name":"Ann","Tier":"platinum"}}`: "is not asked for",
		`{"fields":{}}`: "is needed",
		`{"email":"eve@example.com","fields":{"Name":"Ann"}}`: "whoever looks after the portal",
		`{"fields":{"Name":7}}`:                               "fields",
		`[`:                                                   "",
		`{"fields":{"Name":"` + strings.Repeat("x", 5000) + `"}}`: "4096",
	} {
		b.call("PUT", "/api/portal/me", session, body).want(400).says(says)
	}
}

func TestDevelopersChangeTheirPassword(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	session, other := b.session("ann@example.com"), b.session("ann@example.com")
	b.call("POST", "/api/portal/me/password", session, `{"current_password":"wrong","password":"open sesame 2"}`).want(403).says("current_password")
	b.call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"short"}`).want(400)
	b.call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"open sesame"}`).want(400).says("last 5")
	b.call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame","password":"open sesame 2"}`).want(200)
	b.call("GET", "/api/portal/me", session, "").want(200)
	b.call("GET", "/api/portal/me", other, "").want(401)
	b.login("ann@example.com", "open sesame").want(401)
	b.login("ann@example.com", "open sesame 2").want(200)
	for range 3 {
		b.call("POST", "/api/portal/me/password", session, `{"current_password":"wrong","password":"open sesame 3"}`).want(403)
	}
	b.call("POST", "/api/portal/me/password", session, `{"current_password":"open sesame 2","password":"open sesame 3"}`).want(429)
}

func TestAPasswordThatIsTooOldHasToChange(t *testing.T) {
	b := start(t)
	b.call("POST", "/api/portal/developers", "approver", `{"email":"ann@example.com","password":"open sesame","password_max_days":30}`).want(200)
	b.clock.pass(30 * day)
	b.session("ann@example.com")
	b.clock.pass(time.Second)
	b.login("ann@example.com", "open sesame").want(403).says("new_password")
	b.call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open sesame"}`).want(401).says("too old")
	change := `{"email":"ann@example.com","password":%q,"new_password":%q}`
	b.call("POST", "/api/portal/login", "", fmt.Sprintf(change, "wrong", "open sesame 2")).want(401)
	b.call("POST", "/api/portal/login", "", fmt.Sprintf(change, "open sesame", "open sesame")).want(400).says("new_password: must not be one of the last 5")
	b.call("POST", "/api/portal/login", "", fmt.Sprintf(change, "open sesame", "open sesame 2")).want(200).says(SessionPrefix)
	b.login("ann@example.com", "open sesame 2").want(200)
}

func TestDevelopersSeeAndEndTheirSessions(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	b.make("bob@example.com")
	foreign := b.session("bob@example.com")
	first := b.session("ann@example.com")
	b.clock.pass(time.Minute)
	b.from = "198.51.100.7"
	second := b.session("ann@example.com")
	list, _ := b.call("GET", "/api/portal/me/sessions", second, "").want(200).says("198.51.100.7", "192.0.2.1", `"user_agent":"a browser"`).hides(first, second).object()["Data"].([]any)
	if len(list) != 2 {
		t.Fatalf("sessions %v", list)
	}
	newest, oldest := list[0].(map[string]any), list[1].(map[string]any)
	if newest["current"] != true || oldest["current"] != false {
		t.Errorf("sessions %v", list)
	}
	b.call("DELETE", "/api/portal/me/sessions/"+oldest["id"].(string), foreign, "").want(404).says("Session not found")
	for _, id := range []string{"x", "00", "", strings.Repeat("0", 32), strings.Repeat("0", 64)} {
		b.call("DELETE", "/api/portal/me/sessions/"+id, second, "").want(404)
	}
	b.call("DELETE", "/api/portal/me/sessions/"+oldest["id"].(string), second, "").want(200)
	b.call("GET", "/api/portal/me", first, "").want(401)
	third := b.session("ann@example.com")
	b.call("DELETE", "/api/portal/me/sessions", second, "").want(200)
	b.call("GET", "/api/portal/me", third, "").want(401)
	b.call("GET", "/api/portal/me", second, "").want(200)
	b.call("GET", "/api/portal/me", foreign, "").want(200)
}

func TestSessionsAreBoundedInNumberAndTime(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	first := b.session("ann@example.com")
	for range maxSessions {
		b.clock.pass(time.Second)
		b.session("ann@example.com")
	}
	b.call("GET", "/api/portal/me", first, "").want(401)
	if n := b.count("select count(*) from developer_tokens"); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	busy, idle := b.session("ann@example.com"), b.session("ann@example.com")
	for range 12 {
		b.clock.pass(59 * time.Minute)
		b.call("GET", "/api/portal/me", busy, "").want(200)
	}
	b.call("GET", "/api/portal/me", idle, "").want(401)
	b.clock.pass(12 * time.Minute)
	b.call("GET", "/api/portal/me", busy, "").want(401)
	b.service.sweep(t.Context())
	if n := b.count("select count(*) from developer_tokens"); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestTheUseOfASessionIsNotedOnceAMinute(t *testing.T) {
	b := start(t)
	b.make("ann@example.com")
	session := b.session("ann@example.com")
	writes := func() int { return b.count("select sum(xmin::text::bigint) from developer_tokens") }
	before := writes()
	for range 6 {
		b.clock.pass(10 * time.Second)
		b.call("GET", "/api/portal/me", session, "").want(200)
	}
	if writes() != before {
		t.Error("it was written within a minute")
	}
	b.clock.pass(time.Second)
	b.call("GET", "/api/portal/me", session, "").want(200)
	if writes() == before {
		t.Error("it was not written after a minute")
	}
}

func TestDevelopersDeleteTheirAccount(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	b.key(id, "h1", "gold")
	session := b.session("ann@example.com")
	b.call("DELETE", "/api/portal/me", session, "").want(400)
	b.call("DELETE", "/api/portal/me", session, `{"password":"wrong"}`).want(403)
	b.call("DELETE", "/api/portal/me", session, `{"password":"open sesame"}`).want(200).says("Data deleted")
	b.call("GET", "/api/portal/me", session, "").want(401)
	if b.count("select count(*) from developers") != 0 || b.count("select count(*) from keys") != 0 {
		t.Error("something is left")
	}
}

func TestSignUpsThatNobodyWentOnWithAreForgotten(t *testing.T) {
	b := start(t)
	for _, email := range []string{"gone@example.com", "kept@example.com"} {
		b.signUp(email, "open sesame").want(200)
	}
	kept := b.make("made@example.com")
	b.exec("update developers set updated_at = now() - interval '8 days'")
	b.exec("insert into key_requests (id, org_id, state, developer_id, policies, body) select 'r', 'one', 'pending', id, '{gold}', '{}' from developers where email = 'kept@example.com'")
	b.signUp("fresh@example.com", "open sesame").want(200)
	b.service.sweep(t.Context())
	b.call("GET", "/api/portal/developers", "viewer", "").want(200).says("kept@", "made@", "fresh@").hides("gone@")
	b.call("GET", "/api/portal/developers/"+kept, "viewer", "").want(200)
	if b.count("select count(*) from audit_log where actor = 'never verified'") != 1 {
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
		if badEmail(email) == "" && (strings.ContainsAny(email, "\r\n \x00") || len(email) > maxEmail || !strings.Contains(email, "@")) {
			t.Errorf("%q is taken for an address", email)
		}
		if badFields(map[string]string{name: value}) == nil && (strings.ContainsRune(name+value, 0) || len(value) > maxValue || name == "") {
			t.Errorf("%q: %q are taken for a field", name, value)
		}
		_ = badAnswers([]string{name}, map[string]string{value: name}, map[string]string{name: value})
		r, err := record.Parse[record.Developer]([]byte(body))
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
		again, err := record.Parse[record.Developer](extra)
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
