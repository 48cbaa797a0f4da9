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
	made := b.Call("POST", "/api/portal/developers", "approver", `{"email":"Ann@Example.com","password":"open sesame","fields":{"Company":"A & B"},
		"sso_key":"outside","nonce":"n1","password_max_days":30,"keys":{"x":["y"]},"PWHistory":["x"],"later":{"n":1.50},"Password_hint":"none"}`).Want(200)
	id := made.Text("Message")
	if len(id) != 32 || made.ETag != `"1"` || made.Object()["Meta"] != nil {
		t.Errorf("made %s, ETag %s", made.Body, made.ETag)
	}
	got := b.Call("GET", "/api/portal/developers/"+id, "approver", "").Want(200).Says(
		`"id":"`+id+`"`, `"email":"Ann@Example.com"`, `"org_id":"one"`, `"Company":"A & B"`, `"sso_key":"outside"`, `"nonce":"n1"`,
		`"password_max_days":30`, `"PWHistory":[]`, `"later":{"n":1.50}`, `"keys":{}`, `"subscriptions":{}`, `"oauth_clients":{}`,
		`"verified":true`, `"inactive":false`,
	).Hides("sesame", "argon2", "last_login_date", "0001-01-01")
	if got.ETag != `"1"` {
		t.Errorf("ETag %s", got.ETag)
	}
	b.Call("GET", "/api/portal/developers/"+id, "viewer", "").Want(200).Says("Ann@Example.com").Hides("outside", `"nonce":"n1"`)

	changed := strings.Replace(string(got.Body), "A & B", "C", 1)
	if put := b.Call("PUT", "/api/portal/developers/"+id, "approver", changed, "If-Match", `"1"`).Want(200).Says("Data updated"); put.ETag != `"2"` {
		t.Errorf("ETag %s", put.ETag)
	}
	if stale := b.Call("PUT", "/api/portal/developers/"+id, "approver", changed, "If-Match", `"1"`).Want(409); stale.ETag != `"2"` {
		t.Errorf("a stale update learns ETag %q", stale.ETag)
	}
	b.Call("GET", "/api/portal/developers/"+id, "approver", "").Want(200).Says(`"Company":"C"`, `"later":{"n":1.50}`, `"nonce":"n1"`)
	b.login("ann@example.com", "open sesame").Want(200)
	b.Call("GET", "/api/portal/developers/"+id, "viewer", "").Want(200).Says(`"last_login_date":"2`)

	b.Call("DELETE", "/api/portal/developers/"+id, "approver", "").Want(200).Says("Data deleted")
	for _, method := range []string{"GET", "DELETE"} {
		b.Call(method, "/api/portal/developers/"+id, "approver", "").Want(404).Says("Developer not found")
	}
	b.Call("PUT", "/api/portal/developers/"+id, "approver", changed).Want(404)
	if n := b.Count("select count(*) from audit_log where object_kind = 'developer' and object_id = $1", id); n != 4 {
		t.Errorf("%d entries in the audit log", n)
	}
	if n := b.Count("select count(*) from audit_log where position('outside' in coalesce(before::text, '') || coalesce(after::text, '')) > 0 or position('argon2' in coalesce(after::text, '')) > 0"); n != 0 {
		t.Error("secrets are in the audit log")
	}
}

func TestRolesOfDevelopersRoutes(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	session := b.session("ann@example.com")
	ranks := []string{"viewer", "approver", "editor", "admin"}
	for i := range b.Routes {
		r := &b.Routes[i]
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
			b.Call(r.Method, path, "admin", "{}").Want(403)
			b.Call(r.Method, path, "", "{}").Want(401)
		default:
			b.Call(r.Method, path, session, "{}").Want(403)
			b.Call(r.Method, path, "", "{}").Want(401)
			if strings.Contains(r.Path, "{id}") {
				body := `{"email":"x@example.com"}`
				if r.Method == "POST" {
					body = `{"password":"open sesame 2"}`
				}
				b.Call(r.Method, path, "two:admin", body).Want(404)
			}
			if r.Method != "GET" {
				b.Call(r.Method, path, "viewer", "{}").Want(403)
			}
		}
	}
	b.Call("GET", "/api/portal/me", SessionPrefix+strings.Repeat("0", rest.KeyDigits), "").Want(401)
	b.Call("GET", "/api/portal/developers", "two:viewer", "").Want(200).Says(`"Data":[]`, `"Pages":0`)
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
		b.Call("POST", "/api/portal/developers", "approver", c.body).Want(c.want).Says(c.says)
		b.Call("PUT", "/api/portal/developers/"+id, "approver", c.body).Want(c.want).Says(c.says)
	}
	b.Call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"short"}`).Want(400).Says("6…1024 bytes")
	b.Call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"X@example.com"}`).Want(400).Says("must not be the address")
	b.Call("POST", "/api/portal/developers", "approver", `{"email":"x@example.com","password":"`+strings.Repeat("x", 1025)+`"}`).Want(400).Says("6…1024 bytes")
	b.Call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com","password":"open sesame 2"}`).Want(400).Says("POST /api/portal/developers/password/")
	b.Call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com"}`, "If-Match", "new").Want(400).Says("If-Match")
	for _, query := range []string{"p=x", "page_size=0", "page_size=501", "sort=updated_at", "inactive=maybe"} {
		b.Call("GET", "/api/portal/developers?"+query, "viewer", "").Want(400)
	}
	if n := b.Count("select count(*) from developers"); n != 2 {
		t.Errorf("%d developers", n)
	}
}

func TestTextsComeBackAsTexts(t *testing.T) {
	b := start(t)
	for i, text := range []string{`'; drop table developers; --`, `" or 1=1`, `%_\`, `$1 $$ {{.}}`, `<script>alert(1)</script>`, "ü\u202e\U0001F600"} {
		body := fmt.Sprintf(`{"email":"a%d@example.com","fields":{%q:%q},"sso_key":%q,"later":%q}`, i, text, text, text, text)
		body = strings.NewReplacer(`\u202e`, "\u202e", `\U0001f600`, "\U0001F600").Replace(body)
		id := b.Call("POST", "/api/portal/developers", "approver", body).Want(200).Text("Message")
		got := b.Call("GET", "/api/portal/developers/"+id, "approver", "").Want(200).Object()
		if fields, _ := got["fields"].(map[string]any); fields[text] != text || got["sso_key"] != text || got["later"] != text {
			t.Errorf("%q came back as %v", text, got)
		}
	}
	b.make("o'neil+%_x@example.com")
	for _, query := range []string{"q=o%27neil%2B%25_", "q=O%27NEIL"} {
		b.Call("GET", "/api/portal/developers?"+query, "viewer", "").Want(200).Says("o'neil+%_x@example.com", `"Pages":1`)
	}
	for _, query := range []string{"q=%25", "q=_", "q=%27%20or%201%3D1--", "q=%00"} {
		b.Call("GET", "/api/portal/developers?"+query, "viewer", "").Hides("example.com")
	}
}

func TestListsOfDevelopersHavePagesOrderAndSearch(t *testing.T) {
	b := start(t)
	for i := range 25 {
		b.Call("POST", "/api/portal/developers", "approver", fmt.Sprintf(`{"email":"%c%02d@example.com","inactive":%v}`, 'a'+i%2, i, i == 3)).Want(200)
	}
	b.Call("POST", "/api/portal/developers", "two:approver", `{"email":"foreign@example.com"}`).Want(200)
	emails := func(query string) []string {
		t.Helper()
		var all []string
		list, _ := b.Call("GET", "/api/portal/developers?"+query, "viewer", "").Want(200).Object()["Data"].([]any)
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
		b.Call("GET", "/api/portal/developers?"+c.query, "viewer", "").Says(`"Pages":` + c.pages)
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
	b.Exec("insert into key_requests (id, org_id, state, developer_id, policies, body) values ('r', 'one', 'approved', $1, '{gold}', '{}')", id)
	b.Call("GET", "/api/portal/developers", "viewer", "").Want(200).Says(`"keys":{"h1":["gold"],"h2":["silver"]}`, `"subscriptions":{"gold":"h1","silver":"h2"}`, `"keys":{"h3":["gold"]}`)

	session := b.session("ann@example.com")
	b.keys.fail = errors.New("broken on purpose")
	if r := b.deleteQuietly(id); r != 500 {
		t.Errorf("status %d", r)
	}
	if n := b.Count("select count(*) from keys") + b.Count("select count(*) from developers") + b.Count("select count(*) from key_requests"); n != 3+2+1 {
		t.Errorf("%d rows are left of 6 although nothing may have happened", n)
	}
	b.keys.fail = nil
	b.Call("DELETE", "/api/portal/developers/"+id, "approver", "").Want(200)
	if n := b.Count("select count(*) from keys where key_hash in ('h1', 'h2')") + b.Count("select count(*) from key_requests") + b.Count("select count(*) from developer_keys where developer_id = $1", id); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if n := b.Count("select count(*) from outbox where id in ('h1', 'h2')"); n != 2 {
		t.Errorf("%d keys are noted for delivery", n)
	}
	if strings.Join(b.keys.delivered, " ") != "h1 h2" {
		t.Errorf("delivered %v", b.keys.delivered)
	}
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	b.Call("GET", "/api/portal/developers/"+other, "viewer", "").Want(200).Says("h3")
}

// deleteQuietly deletes a developer and returns the status.
func (b *bench) deleteQuietly(id string) int {
	quiet := *b
	quiet.T = discard{b.t}
	return quiet.Call("DELETE", "/api/portal/developers/"+id, "approver", "").Status
}

// discard is a test whose errors do not count.
type discard struct{ testing.TB }

func (discard) Errorf(string, ...any) {}

func TestAnInactiveDeveloperIsLoggedOutAndKeepsKeys(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	b.key(id, "h1", "gold")
	session := b.session("ann@example.com")
	b.Call("GET", "/api/portal/me", session, "").Want(200)
	b.Call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com","inactive":true}`).Want(200)
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	b.login("ann@example.com", "open sesame").Want(401).Says(wrongLogin)
	b.Call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open sesame"}`).Want(401)
	b.Call("POST", "/api/portal/password/forgot", "", `{"email":"ann@example.com"}`).Want(200)
	if letters, _ := b.post.take(); len(letters) != 0 {
		t.Errorf("letters %v", letters)
	}
	if b.Count("select count(*) from keys where key_hash = 'h1' and active") != 1 {
		t.Error("the key is gone")
	}
	b.Call("PUT", "/api/portal/developers/"+id, "approver", `{"email":"ann@example.com"}`).Want(200)
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	b.session("ann@example.com")
}

func TestOperatorsCheckAndChoosePasswords(t *testing.T) {
	b := start(t)
	id := b.make("ann@example.com")
	session := b.session("ann@example.com")
	right := `{"username":"ANN@example.com","password":"open sesame"}`
	b.Call("POST", "/api/portal/developers/verify_credentials", "approver", right).Want(200).Says(id)
	b.Call("POST", "/api/portal/developers/verify_credentials", "two:approver", right).Want(401)
	b.Call("POST", "/api/portal/developers/verify_credentials", "approver", `{"username":"ann@example.com","password":"open"}`).Want(401)
	b.Call("POST", "/api/portal/developers/verify_credentials", "approver", `{"user":"ann@example.com"}`).Want(400).Says("unknown member")

	path := "/api/portal/developers/password/" + id
	b.Call("POST", path, "approver", `{"password":"short"}`).Want(400).Says("password: must have 6…1024 bytes")
	b.Call("POST", path, "approver", `{"password":"open sesame"}`).Want(400).Says("must not be one of the last 5")
	b.Call("POST", path, "approver", `{"password":"open sesame 2"}`).Want(200).Says("Password changed")
	b.Call("GET", "/api/portal/me", session, "").Want(401)
	b.login("ann@example.com", "open sesame").Want(401)
	b.login("ann@example.com", "open sesame 2").Want(200)
	b.Call("POST", "/api/portal/developers/password/unknown", "approver", `{"password":"open sesame 2"}`).Want(404)
	for i := 3; i <= 6; i++ {
		b.Call("POST", path, "approver", fmt.Sprintf(`{"password":"open sesame %d"}`, i)).Want(200)
	}
	b.Call("POST", path, "approver", `{"password":"open sesame 2"}`).Want(400)
	b.Call("POST", path, "approver", `{"password":"open sesame"}`).Want(200)
	if n := b.Count("select cardinality(password_history) from developers"); n != 5 {
		t.Errorf("%d passwords are remembered", n)
	}
	if text := b.log.String(); strings.Contains(text, "sesame") {
		t.Error("a password is in the log")
	}
}
