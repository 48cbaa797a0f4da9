package credentials_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

const form = "application/x-www-form-urlencoded"

// app makes an OAuth client of a developer and returns its id and secret.
func (b *bench) app(developer string) (id, secret string) {
	b.t.Helper()
	b.entry("gold", `"show":true,"auth_type":"oauth"`)
	request := b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(
		`{"by_user":%q,"for_plan":"gold","version":"v2","fields":{"oauth_app_description":"an app","oauth_use_case":"tests"},"oauth_info":{"redirect_uri":"https://app.example"}}`, developer)).Want(200).Text("Message")
	r := b.Call("PUT", "/api/portal/requests/approve/"+request, b.approver, "").Want(200)
	return r.Text("RawKey"), r.Text("Password")
}

// postForm sends a form to the token endpoint, or to another one of OAuth.
func (b *bench) postForm(path string, members ...string) *admintest.Answer {
	b.t.Helper()
	values := url.Values{}
	for i := 0; i < len(members); i += 2 {
		values.Add(members[i], members[i+1])
	}
	return b.Call("POST", path, "", values.Encode(), "Content-Type", form)
}

func TestAClientGetsTokensThatStandForOneSession(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id, secret := b.app(dev)
	r := b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(200)
	if r.Text("token_type") != "Bearer" || !strings.Contains(string(r.Body), `"expires_in":3600`) || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Pragma") != "no-cache" {
		t.Errorf("%s %v", r.Body, r.Header)
	}
	first := r.Text("access_token")
	second := b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(200).Text("access_token")
	one, two := b.session(first), b.session(second)
	if one.SuccessorOf() == "" || one.SuccessorOf() != two.SuccessorOf() || one.Expires < time.Now().Unix()+3500 {
		t.Errorf("tokens are %+v and %+v", one.Extra, two.Extra)
	}
	owner, err := b.keys.Get(t.Context(), one.SuccessorOf())
	if err != nil || owner.OAuthClient() != id || owner.ApplyPolicies[0] != "gold" {
		t.Errorf("the client's session is %+v, %v", owner, err)
	}
	if n := b.Count("select count(*) from oauth_clients where encode(secret_hash, 'escape') like '%' || $1 || '%'", secret); n != 0 {
		t.Error("the secret is stored")
	}
	own := b.login("ada")
	b.Call("GET", "/api/portal/me/oauth-clients", own, "").Want(200).Says(`"client_id":"`+id+`"`, `"secret":""`, `"app_description":"an app"`, `"redirect_uri":"https://app.example"`, `"policy_id":"gold"`)
	b.Call("GET", "/api/portal/me/keys", own, "").Want(200).Says(`"auth_type":"oauth"`)
	b.Call("GET", "/api/portal/developers/"+dev, b.viewer, "").Want(200).Says(`"oauth_clients":{"gold":[{"client_id":"` + id + `"`)

	b.postForm("/oauth/revoke", "client_id", id, "client_secret", secret, "token", first).Want(200)
	b.postForm("/oauth/revoke", "client_id", id, "client_secret", secret, "token", first).Want(200) // it has ended already
	wait.Until(t, "the token is gone", func() bool {
		_, err := b.keys.Get(t.Context(), hashOf(first))
		return err != nil
	})
	b.session(second)

	renewed := b.Call("POST", "/api/portal/me/oauth-clients/"+id+"/secret", own, "").Want(200).Text("secret")
	b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(401)
	b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", renewed).Want(200)
	b.Call("DELETE", "/api/portal/me/oauth-clients/"+id, own, "").Want(200)
	b.Call("DELETE", "/api/portal/me/oauth-clients/"+id, own, "").Want(404)
	b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", renewed).Want(401)
	wait.Until(t, "the client's session is gone", func() bool {
		_, err := b.keys.Get(t.Context(), one.SuccessorOf())
		return err != nil
	})
}

func TestWhoAsksWronglyIsToldAsTheStandardHasIt(t *testing.T) {
	b := start(t)
	id, secret := b.app(b.developer("ada"))
	good := []string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret}
	for _, c := range []struct {
		name   string
		form   []string
		status int
		code   string
	}{
		{"no grant", []string{"client_id", id, "client_secret", secret}, 400, "invalid_request"},
		{"another grant", []string{"grant_type", "password", "client_id", id, "client_secret", secret}, 400, "unsupported_grant_type"},
		{"a scope", append([]string{"scope", "all"}, good...), 400, "invalid_scope"},
		{"twice", append([]string{"client_id", id}, good...), 400, "invalid_request"},
		{"no client", []string{"grant_type", "client_credentials"}, 401, "invalid_client"},
		{"unknown client", []string{"grant_type", "client_credentials", "client_id", "nobody", "client_secret", secret}, 401, "invalid_client"},
		{"wrong secret", []string{"grant_type", "client_credentials", "client_id", id, "client_secret", secret + "x"}, 401, "invalid_client"},
		{"SQL", []string{"grant_type", "client_credentials", "client_id", "' or 1=1 --", "client_secret", "x"}, 401, "invalid_client"},
		{"a zero byte", []string{"grant_type", "client_credentials", "client_id", "a\x00b", "client_secret", "x"}, 400, "invalid_request"},
		{"large", append([]string{"x", strings.Repeat("x", 10_000)}, good...), 400, "invalid_request"},
	} {
		r := b.postForm("/oauth/token", c.form...)
		if r.Status != c.status || r.Text("error") != c.code || c.status == 401 && r.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %d %s", c.name, r.Status, r.Body)
		}
	}
	b.Call("POST", "/oauth/token", "", `{"grant_type":"client_credentials"}`, "Content-Type", "application/json").Want(400).Says("invalid_request")
	b.Call("POST", "/oauth/token", "", "%zz", "Content-Type", form).Want(400).Says("invalid_request")
	body := "grant_type=client_credentials"
	b.Call("POST", "/oauth/token", "Basic bm9ib2R5", body, "Content-Type", form).Want(401).Says("invalid_client")
	if r := b.Call("POST", "/oauth/token", "Bearer x", body, "Content-Type", form).Want(401).Says("invalid_client"); r.Header.Get("WWW-Authenticate") == "" {
		t.Error("another scheme is not told which one is right")
	}
	b.postForm("/oauth/revoke", "client_id", id, "client_secret", "x", "token", "t").Want(401)
	b.postForm("/oauth/revoke", "client_id", id, "client_secret", secret).Want(400).Says("token")
}

func TestGuessingSecretsIsSlow(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.LoginRate = 3 })
	limited := 0
	for range 10 {
		r := b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", "a", "client_secret", "b")
		if r.Status == 429 {
			limited++
		}
	}
	if limited < 5 {
		t.Errorf("%d of 10 guesses were put off", limited)
	}
}

func TestTheLimitOfClientsHoldsHoweverManyComeAtOnce(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	b.configure(`"oauth_usage_limit":3`)
	var all sync.WaitGroup
	statuses := make(chan int, 12)
	for range cap(statuses) {
		all.Go(func() {
			statuses <- b.Call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.approver, `{"policy_id":"gold"}`).Status
		})
	}
	all.Wait()
	close(statuses)
	got := map[int]int{}
	for s := range statuses {
		got[s]++
	}
	if got[201] != 3 || got[409] != 9 || b.Count("select count(*) from oauth_clients") != 3 {
		t.Errorf("answers %v", got)
	}
	b.Call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.viewer, `{"policy_id":"gold"}`).Want(403)
	b.Call("POST", "/api/portal/developers/nobody/oauth-clients", b.approver, `{"policy_id":"gold"}`).Want(404)
	b.Call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.other, `{"policy_id":"gold"}`).Want(404)
	b.Call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.approver, `{}`).Want(400).Says("policy_id")
	b.Call("DELETE", "/api/portal/developers/"+dev, b.approver, "").Want(200)
	if n := b.Count("select count(*) from oauth_clients") + b.Count("select count(*) from keys"); n != 0 {
		t.Errorf("%d rows are left of a deleted developer", n)
	}
}

func TestTokensThatEndedAreForgotten(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.Portal = portal.Settings{TokenTTL: time.Second} })
	id, secret := b.app(b.developer("ada"))
	token := b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", id, "client_secret", secret).Want(200).Text("access_token")
	b.Exec("update keys set expires_at = now() - interval '2 hours' where key_hash = $1", hashOf(token))
	b.serve() // the second admin sweeps as it starts
	wait.Until(t, "the token is forgotten", func() bool { return b.Count("select count(*) from keys where successor_of <> ''") == 0 })
}

func TestAnEntryCanSayHowManyClientsItsPolicyComesTo(t *testing.T) {
	b := start(t)
	dev, other := b.developer("ada"), b.developer("bob")
	client := func(developer, policy string) *admintest.Answer {
		return b.Call("POST", "/api/portal/developers/"+developer+"/oauth-clients", b.approver, fmt.Sprintf(`{"policy_id":%q}`, policy))
	}
	b.configure(`"oauth_usage_limit":1`)
	b.entry("gold", `"show":true,"auth_type":"oauth","config":{"override":true,"oauth_usage_limit":2}`)
	silver := b.entry("silver", `"show":true,"auth_type":"oauth","config":{"override":false,"oauth_usage_limit":5}`)
	client(dev, "silver").Want(201)
	client(dev, "gold").Want(201) // one of another policy does not count
	request := b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, dev)).Want(200).Text("Message")
	b.Call("PUT", "/api/portal/requests/approve/"+request, b.approver, "").Want(200)
	client(dev, "gold").Want(409).Says(`2 OAuth clients for policy \"gold\"`, "oauth_usage_limit")
	request = b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, dev)).Want(200).Text("Message")
	b.Call("PUT", "/api/portal/requests/approve/"+request, b.approver, "").Want(409).Says("oauth_usage_limit")

	// An entry that overrides nothing is as all others, and one without a limit has none.
	client(other, "silver").Want(201)
	client(other, "silver").Want(409).Says("1 OAuth clients, which is the most")
	b.Call("PUT", "/api/portal/catalogue/entries/"+silver, b.editor,
		`{"name":"Silver","api_id":"orders","policy_id":"silver","show":true,"auth_type":"oauth","config":{"override":true,"oauth_usage_limit":-1}}`).Want(200)
	for range 3 {
		client(other, "silver").Want(201)
	}
}
