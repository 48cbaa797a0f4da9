package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	counts "github.com/sluicegate/sluice/internal/usage"
)

// aDeveloper makes a developer of the first organisation and returns the id and a
// session.
func (b *bench) aDeveloper(name string) (id, session string) {
	b.t.Helper()
	const password = "correct horse battery"
	id = b.Call("POST", "/api/portal/developers", b.editor, fmt.Sprintf(`{"email":"%s@dev.example","password":%q}`, name, password)).Want(200).Text("Message")
	session = b.Call("POST", "/api/portal/login", "", fmt.Sprintf(`{"email":"%s@dev.example","password":%q}`, name, password)).Want(200).Text("access_key")
	return id, session
}

// nowhere fills a path with ids that name nothing.
var nowhere = strings.NewReplacer("{id}", "none", "{n}", "1", "{key}", "none", "{api}", "none", "{client}", "none", "{path}", "none", "{domain}", "none")

// TestEveryRouteAsksForItsRole goes through the routes as they are registered,
// so that a new one is covered from the start.
func TestEveryRouteAsksForItsRole(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	_, session := b.aDeveloper("ada")
	callers := map[rest.Role]string{
		rest.Viewer: b.viewer, rest.Approver: b.user("approver"), rest.Editor: b.editor, rest.Admin: b.admin, rest.Gateway: gatewayToken, rest.Developer: session,
	}
	let, refused := 0, 0
	for _, r := range b.server.routes() {
		path := nowhere.Replace(r.Path)
		if r.Role == rest.Anyone {
			if got := b.Call(r.Method, path, "", ""); got.Status >= 500 || got.Status == 403 {
				t.Errorf("%s without credentials: %d %s", r.Name(), got.Status, got.Body)
			}
			let++
			continue
		}
		for _, wrong := range []string{"", "Bearer wrong", "Bearer ", "slp_" + strings.Repeat("x", 43), "Basic YTpi"} {
			b.Call(r.Method, path, wrong, "").Want(401).Says("Not authorised")
			refused++
		}
		for role, key := range callers {
			if r.Waits && r.Allows(role) || role == rest.Developer && ends(&r) {
				continue // tested on their own
			}
			got := b.Call(r.Method, path, key, "")
			switch allowed := got.Status != 403; {
			case allowed != r.Allows(role):
				t.Errorf("%s as %s: %d %s", r.Name(), role, got.Status, got.Body)
			case got.Status >= 500:
				t.Errorf("%s as %s: %d %s", r.Name(), role, got.Status, got.Body)
			case allowed:
				let++
			default:
				refused++
			}
		}
	}
	t.Logf("%d routes; of the calls that were tried %d were let through to their route and %d refused", len(b.server.routes()), let, refused)
	b.Call("POST", "/api/apis", b.viewer, "{}").Want(403).Says("access denied: You do not have permission to access  /api/apis")
	b.Call("POST", "/api/apis", b.robot, anAPI("r", "/r")).Want(200)
	b.Call("GET", "/api/users", b.robot, "").Want(403)
}

// ends reports whether a route ends the session that calls it.
func ends(r *rest.Route) bool {
	return r.Path == "/api/portal/logout" || r.Method == "DELETE" && (r.Path == "/api/portal/me" || r.Path == "/api/portal/me/sessions")
}

// estate is one object of each kind that the first organisation has, by the
// beginning of the paths that name it.
func (b *bench) estate() map[string]string {
	b.t.Helper()
	message := func(r *admintest.Answer) string {
		if r.Status != 201 {
			r.Want(200)
		}
		return r.Text("Message")
	}
	b.createAPI(b.admin, "ours", "/ours")
	policy := message(b.Call("POST", "/api/portal/policies", b.editor, `{"id":"op","name":"ours","access_rights":{"ours":{"api_id":"ours","versions":["Default"]}}}`))
	key := b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["op"]}`).Want(200).Text("key_hash")
	developer, _ := b.aDeveloper("ada")
	entry := message(b.Call("POST", "/api/portal/catalogue/entries", b.editor, `{"name":"ours","show":true,"api_id":"ours","policy_id":"op"}`))
	request := message(b.Call("POST", "/api/portal/requests", b.editor, fmt.Sprintf(`{"by_user":%q,"for_plan":"op","version":"v2"}`, developer)))
	document := message(b.Call("POST", "/api/portal/documentation", b.editor, `{"api_id":"ours","doc_type":"markdown","documentation":"IyBIZWxsbw=="}`))
	hook := b.Call("POST", "/api/portal/webhooks", b.editor, `{"name":"ours","url":"https://hooks.example/","events":["*"]}`).Want(201).Text("Message")
	client := b.Call("POST", "/api/portal/developers/"+developer+"/oauth-clients", b.editor, `{"policy_id":"op"}`).Want(201).Text("client_id")
	b.Call("POST", "/api/portal/webhooks/"+hook+"/ping", b.editor, "").Want(200)
	b.Call("PUT", "/api/portal/pages", b.editor, `{"pages":[{"path":"ours","title":"Ours","body":"ours"}]}`).Want(200)
	b.Call("POST", "/api/hooks", b.editor, `{"id":"ours","name":"ours","target_path":"https://hooks.example/"}`).Want(200)
	b.Call("PUT", "/api/secrets/ours", b.editor, `{"value":"a sealed value"}`).Want(201)
	b.Call("PUT", acmePath+acmeIssue, gatewayToken, acmeBody("sealed", 0)).Want(200)
	owned := b.Call("POST", "/api/portal/developers/"+developer+"/keys", b.editor, `{"apply_policies":["op"]}`).Want(200).Text("key_id")
	b.Call("POST", "/api/session", "", fmt.Sprintf(`{"access_key":%q}`, b.viewer)).Want(200)
	b.handRefusals(1, counts.Refusal{ID: "refused", API: "ours", Key: key, Status: 429, Reason: "rate_limit"})
	return map[string]string{
		"/api/session/":      b.Text("select encode(substring(token_hash from 1 for 16), 'hex') from user_tokens limit 1"),
		"/api/refusals/":     "refused",
		"/api/acme/domains/": "a.example.com",
		"/api/secrets/":      "ours",
		"/api/hooks/":        "ours",
		"/api/apis/":         "ours", "/api/portal/policies/": policy, "/api/keys/": key, "/api/portal/developers/": developer, "/api/portal/catalogue/entries/": entry,
		"/api/portal/requests/": request, "/api/portal/documentation/": document, "/api/portal/webhooks/": hook, "client": client, "/api/portal/deliveries/": b.Text("select id from deliveries limit 1"),
		"/api/portal/public/catalogue/": entry, "/api/portal/public/pages/": "ours", "key": owned, "/api/portal/me/": owned, "/api/users/": b.Text("select id from users where org_id <> 'second' limit 1"), "/api/certs/": "none", "/api/gateways/": "none", "/api/connections/": "none", "/api/policies/": policy, "/api/orgs/": b.Text("select org_id from users where email = 'admin@localhost'"), "/api/portal/mailbox/": "none", "/api/config/": "1",
	}
}

// TestNoRouteReachesAnotherOrganisation calls every route that names an object
// with the ids of another organisation's.
func TestNoRouteReachesAnotherOrganisation(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	ids := b.estate()
	before := b.content()
	tried := 0
	for _, r := range b.server.routes() {
		if !strings.Contains(r.Path, "{") || r.Role == rest.Gateway || r.Role == rest.Developer {
			continue
		}
		if r.Name() == "PUT /api/secrets/{name}" { // makes one of the caller's organisation
			continue
		}
		id, longest := "", ""
		for prefix, one := range ids {
			if strings.HasPrefix(r.Path, prefix) && len(prefix) > len(longest) {
				id, longest = one, prefix
			}
		}
		if id == "" {
			t.Errorf("%s: which object does it name?", r.Name())
			continue
		}
		key := ids["/api/keys/"]
		if strings.HasPrefix(r.Path, "/api/portal/developers/") {
			key = ids["key"]
		}
		path := strings.NewReplacer("{id}", id, "{name}", id, "{n}", "1", "{key}", key, "{path}", id, "{domain}", id, "{client}", ids["client"]).Replace(r.Path)
		query := "?hashed=true&force=true"
		if r.Role == rest.Anyone {
			query += "&org_id=second"
		}
		tried++
		got := b.Call(r.Method, path+query, b.other, bodyFor(&r))
		if got.Status < 400 && !empty(got) || got.Status >= 500 {
			t.Errorf("%s: %d %s", r.Name(), got.Status, got.Body)
		}
	}
	if after := b.content(); after != before {
		t.Errorf("what the organisation has was changed from\n%s to\n%s", before, after)
	}
	t.Logf("%d routes were tried", tried)
}

// passwords hash those of developers.
func passwords() *password.Hasher { return password.NewHasher(2, 100, 20*time.Second) }

// bodyFor is a body that a route takes, as far as one for all can be.
func bodyFor(r *rest.Route) string {
	switch {
	case r.Body == nil:
		return ""
	case strings.Contains(r.Path, "/apis/"):
		return anAPI("ours", "/theirs")
	case strings.HasSuffix(r.Path, "/password/{id}"):
		return `{"password":"another password"}`
	case strings.HasSuffix(r.Path, "/actions/reset"):
		return `{"new_password":"another password"}`
	case strings.Contains(r.Path, "/oauth-clients"):
		return `{"policy_id":"op"}`
	case strings.Contains(r.Path, "/keys"):
		return `{"apply_policies":["op"]}`
	}
	return `{"name":"theirs"}`
}

// empty reports whether a list that was answered has nothing in it.
func empty(a *admintest.Answer) bool {
	text := string(a.Body)
	return strings.Contains(text, `"Data":[]`) || strings.Contains(text, `"keys":[]`) || strings.Contains(text, `"usage":[]`)
}

// content is what the first organisation has, in short, but for what becomes of messages
// that are being sent.
func (b *bench) content() string {
	b.t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"apis", "policies", "keys", "developers", "developer_keys", "developer_tokens", "catalogue_entries", "key_requests", "documents", "webhooks", "oauth_clients", "portal_objects", "users", "user_tokens",
	} {
		key := "org_id"
		switch table {
		case "developer_tokens":
			key = "developer_id"
		case "user_tokens":
			key = "user_id"
		}
		fmt.Fprintln(&all, table, b.Text(fmt.Sprintf("select count(*) || ' ' || coalesce(md5(string_agg((to_jsonb(t) - 'failing_since')::text, '|' order by t::text)), '') from %s t where %s <> 'second'", table, key)))
	}
	return all.String()
}
