package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/secret"
)

// TestNoDeveloperReachesAnother calls every route that developers may call with the
// ids of what another developer has, of the same organisation and of another.
func TestNoDeveloperReachesAnother(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	ids := b.estate()
	ada := ids["/api/portal/developers/"]
	session := b.Call("POST", "/api/portal/login", "", `{"email":"ada@dev.example","password":"correct horse battery"}`)
	if session.Status != 200 {
		t.Fatalf("ada logs in: %d %s", session.Status, session.Body)
	}
	hook := b.Call("POST", "/api/portal/me/webhooks", session.Text("access_key"), `{"name":"hers","url":"https://hooks.example/","events":["*"]}`).Want(201).Text("Message")
	b.Call("POST", "/api/portal/me/webhooks/"+hook+"/ping", session.Text("access_key"), "").Want(200)
	hers := map[string]string{
		"/api/portal/me/webhooks/": hook, "/api/portal/me/keys/": ids["key"], "/api/portal/me/oauth-clients/": ids["client"],
		"/api/portal/me/requests/":   ids["/api/portal/requests/"],
		"/api/portal/me/apis/":       ids["/api/portal/catalogue/entries/"], // called as ada's key
		"/api/portal/me/deliveries/": b.Text("select id from deliveries where developer_id = $1 limit 1", ada),
		"/api/portal/me/sessions/":   b.Text("select encode(substring(token_hash from 1 for 16), 'hex') from developer_tokens where developer_id = $1 limit 1", ada),
	}
	_, eve := b.aDeveloper("eve")
	_, stranger := b.aDeveloper("mallory")
	b.Exec("update developers set org_id = 'second' where email like 'mallory%'")
	before, tried := b.content(), 0
	for _, r := range b.server.routes() {
		if r.Role == rest.Anyone || !r.Allows(rest.Developer) || !strings.Contains(r.Path, "{") {
			continue
		}
		id := ""
		for prefix, one := range hers {
			if strings.HasPrefix(r.Path, prefix) {
				id = one
			}
		}
		if id == "" {
			t.Errorf("%s: which object does it name?", r.Name())
			continue
		}
		path := strings.NewReplacer("{id}", id, "{key}", id, "{client}", id).Replace(r.Path)
		for _, who := range []string{eve, stranger} {
			tried++
			body := bodyFor(&r)
			switch {
			case strings.HasSuffix(r.Path, "/rotate"):
				body = `{"grace":"0s"}`
			case strings.HasSuffix(r.Path, "/try"):
				body = fmt.Sprintf(`{"key_id":%q}`, ids["key"])
			}
			query := "?developer=" + ada + "&org_id=second"
			if strings.HasPrefix(r.Path, "/api/portal/me/apis/") {
				query = "?key_id=" + ids["key"]
			}
			if got := b.Call(r.Method, path+query, who, body); got.Status < 400 || got.Status >= 500 {
				t.Errorf("%s: %d %s", r.Name(), got.Status, got.Body)
			}
		}
	}
	if after := b.content(); after != before {
		t.Errorf("what the organisation has was changed from\n%s to\n%s", before, after)
	}
	for _, one := range []struct{ path, body string }{
		{"/api/portal/requests", fmt.Sprintf(`{"by_user":%q,"for_plan":"op","version":"v2"}`, ada)},
		{"/api/portal/me/requests", fmt.Sprintf(`{"by_user":%q,"for_plan":"op","version":"v2"}`, ada)},
		{"/api/portal/me/requests", fmt.Sprintf(`{"for_plan":"op","version":"v2","key_id":%q}`, ids["key"])},
	} {
		if got := b.Call("POST", one.path, eve, one.body); got.Status != 200 && got.Status != 400 { // by_user is the caller
			t.Errorf("%s %s: %d %s", one.path, one.body, got.Status, got.Body)
		}
	}
	if n := b.Count("select count(*) from key_requests where developer_id = $1", ada); n != 1 {
		t.Errorf("ada has %d requests", n)
	}
	for _, path := range []string{"/api/portal/me/keys", "/api/portal/me/oauth-clients", "/api/portal/me/webhooks", "/api/portal/me/sessions"} {
		got := b.Call("GET", path+"?developer="+ada+"&org_id=second", eve, "").Want(200)
		for what, one := range hers {
			if strings.Contains(string(got.Body), one) {
				t.Errorf("%s shows ada's %s", path, what)
			}
		}
	}
	t.Logf("%d calls were tried", tried)
}
