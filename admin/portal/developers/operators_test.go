package developers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
)

func TestOperatorsLookAfterDevelopers(t *testing.T) {
	b := start(t)
	made := b.call("POST", "/api/portal/developers", "approver", `{"email":"Ann@Example.com","password":"open sesame","fields":{"Company":"A & B"},
		"sso_key":"outside","nonce":"n1","password_max_days":30,"keys":{"x":["y"]},"PWHistory":["x"],"later":{"n":1.50},"Password_hint":"none"}`).want(200)
	id := made.text("Message")
	if len(id) != 32 || made.etag != `"1"` || made.object()["Meta"] != nil {
		t.Errorf("made %s, ETag %s", made.body, made.etag)
	}
	got := b.call("GET", "/api/portal/developers/"+id, "approver", "").want(200).says(
		`"id":"`+id+`"`, `"email":"Ann@Example.com"`, `"org_id":"one"`, `"Company":"A & B"`, `"sso_key":"outside"`, `"nonce":"n1"`,
		`"password_max_days":30`, `"PWHistory":[]`, `"later":{"n":1.50}`, `"keys":{}`, `"subscriptions":{}`, `"oauth_clients":{}`,
		`"last_login_date":"0001-01-01T00:00:00Z"`, `"verified":true`, `"inactive":false`,
	).hides("sesame", "argon2")
	if got.etag != `"1"` {
		t.Errorf("ETag %s", got.etag)
	}
	b.call("GET", "/api/portal/developers/"+id, "viewer", "").want(200).says("Ann@Example.com").hides("outside", `"nonce":"n1"`)

	changed := strings.Replace(string(got.body), "A & B", "C", 1)
	if put := b.call("PUT", "/api/portal/developers/"+id, "approver", changed, "If-Match", `"1"`).want(200).says("Data updated"); put.etag != `"2"` {
		t.Errorf("ETag %s", put.etag)
	}
	if stale := b.call("PUT", "/api/portal/developers/"+id, "approver", changed, "If-Match", `"1"`).want(409); stale.etag != `"2"` {
		t.Errorf("a stale update learns ETag %q", stale.etag)
	}
	b.call("GET", "/api/portal/developers/"+id, "approver", "").want(200).says(`"Company":"C"`, `"later":{"n":1.50}`, `"nonce":"n1"`)
	b.login("ann@example.com", "open sesame").want(200)

	b.call("DELETE", "/api/portal/developers/"+id, "approver", "").want(200).says("Data deleted")
	for _, method := range []string{"GET", "DELETE"} {
		b.call(method, "/api/portal/developers/"+id, "approver", "").want(404).says("Developer not found")
	}
	b.call("PUT", "/api/portal/developers/"+id, "approver", changed).want(404)
	if n := b.count("select count(*) from audit_log where object_kind = 'developer' and object_id = $1", id); n != 4 {
		t.Errorf("%d entries in the audit log", n)
	}
	if n := b.count("select count(*) from audit_log where position('outside' in coalesce(before::text, '') || coalesce(after::text, '')) > 0 or position('argon2' in coalesce(after::text, '')) > 0"); n != 0 {
		t.Error("secrets are in the audit log")
	}
}

func TestRolesOfDevelopersRoutes(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	session := b.session("ann@example.com")
	ranks := []string{"viewer", "approver", "editor", "admin"}
	for i := range b.routes {
		r := &b.routes[i]
		for rank, role := range ranks {
			want := r.Role == rest.Anyone
			for least := 0; least <= rank && r.Role != rest.Developer; least++ {
				want = want || string(r.Role) == ranks[least]
			}
			if got := r.Allows(rest.Role(role)); got != want {
				t.Errorf("%s for %s: %v", r.Name(), role, got)
			}
		}
		if r.Allows(rest.Gateway) && r.Role != rest.Anyone {
			t.Errorf("%s for gateways", r.Name())
		}
		path := strings.ReplaceAll(r.Path, "{id}", id)
		switch {
		case r.Role == rest.Anyone:
		case r.Role == rest.Developer:
			b.call(r.Method, path, "admin", "{}").want(403)
			b.call(r.Method, path, "", "{}").want(401)
		default:
			b.call(r.Method, path, session, "{}").want(403)
			b.call(r.Method, path, "", "{}").want(401)
			if strings.Contains(r.Path, "{id}") {
				body := `{"email":"x@example.com"}`
				if r.Method == "POST" {
					body = `{"password":"open sesame 2"}`
				}
				b.call(r.Method, path, "two:admin", body).want(404)
			}
			if r.Method != "GET" {
				b.call(r.Method, path, "viewer", "{}").want(403)
			}
		}
	}
	b.call("GET", "/api/portal/me", SessionPrefix+strings.Repeat("0", rest.KeyDigits), "").want(401)
	b.call("GET", "/api/portal/developers", "two:viewer", "").want(200).says(`"Data":[]`, `"Pages":0`)
}

func TestWhatIsWrongWithADeveloperIsNamed(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	b.make("bob@example.com")
	many := `{"email":"x@example.com","fields":{`
	for i := range maxFields + 1 {
		many += fmt.Sprintf(`"f%d":"",`, i)
	}
	many = strings.TrimSuffix(many, ",") + "}}"
	for _, c := range []struct {
		body string
		want int
		says string
	}{
		{``, 400, "Request body malformed"},
		{`{"email":`, 400, ""},
		{`[]`, 400, ""},
		{`null`, 400, ""},
		{`{"email":7}`, 400, "email"},
		{`{}`, 400, "email: must be an address"},
		{`{"email":"ann"}`, 400, "email: must be an address"},
		{`{"email":"Ann <ann@example.org>"}`, 400, "email: must be an address"},
		{`{"email":"x@example.com\r\nBcc: y@example.com"}`, 400, "email: must be an address"},
		{`{"email":"` + strings.Repeat("x", 250) + `@example.com"}`, 400, "at most 254 bytes"},
		{`{"email":"x@example.com","inactive":"no"}`, 400, "inactive: must be true or false"},
		{`{"email":"x@example.com","fields":{"a":1}}`, 400, "fields"},
		{`{"email":"x@example.com","fields":{"":"a"}}`, 400, "1…128 bytes"},
		{`{"email":"x@example.com","fields":{"a":"\u0000"}}`, 400, "printable"},
		{`{"email":"x@example.com","fields":{"a":"` + strings.Repeat("x", maxValue+1) + `"}}`, 400, "at most 4096 bytes"},
		{many, 400, "are 101, and may be 100"},
		{`{"email":"x@example.com","password_max_days":-1}`, 400, "0…36500"},
		{`{"email":"x@example.com","password_max_days":99999999999}`, 400, "0…36500"},
		{`{"email":"x@example.com","password_max_days":1.5}`, 400, "password_max_days"},
		{`{"email":"x@example.com","sso_key":"\n"}`, 400, "sso_key"},
		{`{"email":"x@example.com","password":7}`, 400, "password: must be a string"},
		{`{"email":"BOB@example.com"}`, 409, "Another developer has this email"},
	} {
		b.call("POST", "/api/portal/developers", "approver", c.body).want(c.want).says(c.says)
		b.call("PUT", "/api/portal/developers/"+id, "approver", c.body).want(c.want).says(c.says)
	}
	b.call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"short"}`).want(400).says("6…1024 bytes")
	b.call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"X@example.com"}`).want(400).says("must not be the address")
	b.call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"`+strings.Repeat("x", 1025)+`"}`).want(400).says("6…1024 bytes")
	b.call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com","password":"open sesame 2"}`).want(400).says("POST /api/portal/developers/password/")
	b.call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com"}`, "If-Match", "new").want(400).says("If-Match")
	for _, query := range []string{"p=x", "page_size=0", "page_size=501", "sort=updated_at", "inactive=maybe"} {
		b.call("GET", "/api/portal/developers?"+query, "viewer", "").want(400)
	}
	if n := b.count("select count(*) from developers"); n != 2 {
		t.Errorf("%d developers", n)
	}
}

func TestTextsComeBackAsTexts(t *testing.T) {
	b := start(t)
	for i, text := range []string{`'; drop table developers; --`, `" or 1=1`, `%_\`, `$1 $$ {{.}}`, `<script>alert(1)</script>`, "ü\u202e\U0001F600"} {
		body := fmt.Sprintf(`{"email":"a%d@example.com","fields":{%q:%q},"sso_key":%q,"later":%q}`, i, text, text, text, text)
		body = strings.NewReplacer(`\u202e`, "\u202e", `\U0001f600`, "\U0001F600").Replace(body)
		id := b.call("POST", "/api/portal/developers", "approver", body).want(200).text("Message")
		got := b.call("GET", "/api/portal/developers/"+id, "approver", "").want(200).object()
		if fields, _ := got["fields"].(map[string]any); fields[text] != text || got["sso_key"] != text || got["later"] != text {
			t.Errorf("%q came back as %v", text, got)
		}
	}
	b.make("o'neil+%_x@example.com")
	for _, query := range []string{"q=o%27neil%2B%25_", "q=O%27NEIL"} {
		b.call("GET", "/api/portal/developers?"+query, "viewer", "").want(200).says("o'neil+%_x@example.com", `"Pages":1`)
	}
	for _, query := range []string{"q=%25", "q=_", "q=%27%20or%201%3D1--", "q=%00"} {
		b.call("GET", "/api/portal/developers?"+query, "viewer", "").hides("example.com")
	}
}

func TestListsOfDevelopersHavePagesOrderAndSearch(t *testing.T) {
	b := start(t)
	for i := range 25 {
		b.call("POST", "/api/portal/developers", "approver", fmt.Sprintf(`{"email":"%c%02d@example.com","inactive":%v}`, 'a'+i%2, i, i == 3)).want(200)
	}
	b.call("POST", "/api/portal/developers", "two:approver", `{"email":"foreign@example.com"}`).want(200)
	emails := func(query string) []string {
		t.Helper()
		var all []string
		list, _ := b.call("GET", "/api/portal/developers?"+query, "viewer", "").want(200).object()["Data"].([]any)
		for _, one := range list {
			all = append(all, strings.TrimSuffix(one.(map[string]any)["email"].(string), "@example.com"))
		}
		return all
	}
	for _, c := range []struct {
		query       string
		n           int
		first, last string
		pages       string
	}{
		{"", 10, "a00", "a18", "3"},
		{"p=3", 5, "b15", "b23", "3"},
		{"p=4", 0, "", "", "3"},
		{"p=-1", 25, "a00", "b23", "1"},
		{"sort=-email&page_size=3", 3, "b23", "b19", "9"},
		{"sort=created_at&page_size=2", 2, "a00", "b01", "13"},
		{"sort=-created&page_size=2", 2, "a24", "b23", "13"},
		{"q=A0&page_size=100", 5, "a00", "a08", "1"},
		{"q=b&sort=-created_at&page_size=100", 12, "b23", "b01", "1"},
		{"inactive=true", 1, "b03", "b03", "1"},
		{"inactive=false&page_size=500", 24, "a00", "b23", "1"},
		{"q=foreign", 0, "", "", "0"},
	} {
		got := emails(c.query)
		b.call("GET", "/api/portal/developers?"+c.query, "viewer", "").says(`"Pages":` + c.pages)
		if len(got) != c.n || c.n > 0 && (got[0] != c.first || got[c.n-1] != c.last) {
			t.Errorf("%q: %v", c.query, got)
		}
	}
}

func TestADevelopersKeysAreShownAndEndWithThem(t *testing.T) {
	b := start(t)
	id, other := b.make("ann@example.com"), b.make("bob@example.com")
	b.key(id, "h1", "gold")
	b.key(id, "h2", "silver")
	b.key(other, "h3", "gold")
	b.exec("insert into key_requests (id, org_id, state, developer_id, policies, body) values ('r', 'one', 'approved', $1, '{gold}', '{}')", id)
	b.call("GET", "/api/portal/developers", "viewer", "").want(200).says(`"keys":{"h1":["gold"],"h2":["silver"]}`, `"subscriptions":{"gold":"h1","silver":"h2"}`, `"keys":{"h3":["gold"]}`)

	session := b.session("ann@example.com")
	b.keys.fail = errors.New("broken on purpose")
	if r := b.deleteQuietly(id); r != 500 {
		t.Errorf("status %d", r)
	}
	if n := b.count("select count(*) from keys") + b.count("select count(*) from developers") + b.count("select count(*) from key_requests"); n != 3+2+1 {
		t.Errorf("%d rows are left of 6 although nothing may have happened", n)
	}
	b.keys.fail = nil
	b.call("DELETE", "/api/portal/developers/"+id, "approver", "").want(200)
	if n := b.count("select count(*) from keys where key_hash in ('h1', 'h2')") + b.count("select count(*) from key_requests") + b.count("select count(*) from developer_keys where developer_id = $1", id); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if n := b.count("select count(*) from outbox where id in ('h1', 'h2')"); n != 2 {
		t.Errorf("%d keys are noted for delivery", n)
	}
	if strings.Join(b.keys.delivered, " ") != "h1 h2" {
		t.Errorf("delivered %v", b.keys.delivered)
	}
	b.call("GET", "/api/portal/me", session, "").want(401)
	b.call("GET", "/api/portal/developers/"+other, "viewer", "").want(200).says("h3")
}

// deleteQuietly deletes a developer and returns the status.
func (b *bench) deleteQuietly(id string) int {
	quiet := *b
	quiet.t = discard{b.t}
	return quiet.call("DELETE", "/api/portal/developers/"+id, "approver", "").status
}

// discard is a test whose errors do not count.
type discard struct{ testing.TB }

func (discard) Errorf(string, ...any) {}

func TestAnInactiveDeveloperIsLoggedOutAndKeepsKeys(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	b.key(id, "h1", "gold")
	session := b.session("ann@example.com")
	b.call("GET", "/api/portal/me", session, "").want(200)
	b.call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com","inactive":true}`).want(200)
	b.call("GET", "/api/portal/me", session, "").want(401)
	b.login("ann@example.com", "open sesame").want(401).says(wrongLogin)
	b.call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open sesame"}`).want(401)
	b.call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).want(200)
	if letters, _ := b.post.take(); len(letters) != 0 {
		t.Errorf("letters %v", letters)
	}
	if b.count("select count(*) from keys where key_hash = 'h1' and active") != 1 {
		t.Error("the key is gone")
	}
	b.call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com"}`).want(200)
	b.call("GET", "/api/portal/me", session, "").want(401)
	b.session("ann@example.com")
}

func TestOperatorsCheckAndChoosePasswords(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	session := b.session("ann@example.com")
	right := `{"username":"ANN@example.com","password":"open sesame"}`
	b.call("POST", "/api/portal/developers/verify_credentials", "approver", right).want(200).says(id)
	b.call("POST", "/api/portal/developers/verify_credentials", "two:approver", right).want(401)
	b.call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open"}`).want(401)
	b.call("POST", "/api/portal/developers/verify_credentials", "approver", `{"user":"ann@example.com"}`).want(400).says("unknown member")

	path := "/api/portal/developers/password/" + id
	b.call("POST", path, "approver", `{"password":"short"}`).want(400).says("password: must have 6…1024 bytes")
	b.call("POST", path, "approver", `{"password":"open sesame"}`).want(400).says("must not be one of the last 5")
	b.call("POST", path, "approver", `{"password":"open sesame 2"}`).want(200).says("Password changed")
	b.call("GET", "/api/portal/me", session, "").want(401)
	b.login("ann@example.com", "open sesame").want(401)
	b.login("ann@example.com", "open sesame 2").want(200)
	b.call("POST", "/api/portal/developers/password/unknown", "approver", `{"password":"open sesame 2"}`).want(404)
	for i := 3; i <= 6; i++ {
		b.call("POST", path, "approver", fmt.Sprintf(`{"password":"open sesame %d"}`, i)).want(200)
	}
	b.call("POST", path, "approver", `{"password":"open sesame 2"}`).want(400)
	b.call("POST", path, "approver", `{"password":"open sesame"}`).want(200)
	if n := b.count("select cardinality(password_history) from developers"); n != 5 {
		t.Errorf("%d passwords are remembered", n)
	}
	if text := b.log.String(); strings.Contains(text, "sesame") {
		t.Error("a password is in the log")
	}
}
