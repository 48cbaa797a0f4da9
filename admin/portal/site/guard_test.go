package site_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin"
)

// Forms that another site's page sends are refused, whatever they hold.
func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	b := start(t)
	b.configure(`"require_key_approval":false`)
	w := b.signUp("ada@example.com")
	other := b.signUp("bob@example.com")
	w.open("/portal/request/free")
	to, sent := w.form("/portal/request/free")
	refused := func(why string, sent url.Values, headers ...string) {
		t.Helper()
		if w.post(to.String(), sent, headers...); w.status != 403 {
			t.Errorf("%s: %d", why, w.status)
		}
	}
	refused("another site", sent, "Sec-Fetch-Site", "cross-site")
	refused("another host of the domain", sent, "Sec-Fetch-Site", "same-site")
	refused("another origin", sent, "Origin", "https://evil.example")
	refused("no origin", sent, "Origin", "null")
	for why, token := range map[string]string{"no token": "", "some token": "x", "a token of somebody else": ""} {
		changed := url.Values{"once": sent["once"], "token": {token}}
		if why == "a token of somebody else" {
			_, theirs := other.open("/portal/request/free").form("/portal/request/free")
			changed["token"] = theirs["token"]
		}
		refused(why, changed, "Sec-Fetch-Site", "same-origin")
	}
	if n := b.Count("select count(*) from developer_keys"); n != 0 {
		t.Errorf("%d keys", n)
	}
	w.post(to.String(), sent, "Origin", b.URL).want(200, "/portal/request/free").says("shown this once")

	// Before sign-in as well: otherwise an attacker could sign a visitor in to the
	// attacker's account.
	stranger := b.browser()
	stranger.open("/portal/login")
	to, sent = stranger.form("/portal/login")
	sent.Set("email", "bob@example.com")
	sent.Set("password", "correct horse")
	stranger.post(to.String(), sent, "Sec-Fetch-Site", "cross-site").want(403, "/portal/login")
	fresh := b.browser()
	fresh.post(to.String(), sent, "Sec-Fetch-Site", "same-origin").want(403, "/portal/login").says("no longer valid")
}

// A developer sees and changes nothing of another.
func TestDevelopersDoNotSeeEachOther(t *testing.T) {
	b := start(t)
	b.configure(`"require_key_approval":false`)
	ada, bob := b.signUp("ada@example.com"), b.signUp("bob@example.com")
	key := ada.open("/portal/request/free").submit("/portal/request/free").byID("secret")
	path := "/portal/keys/" + hashOf(key)
	ada.open(path).want(200, path)
	bob.open(path).want(404, path).says("You have no such key")
	_, form := bob.open("/portal/account").form("/portal/logout")
	for _, act := range []string{"/rotate", "/revoke"} {
		sent := url.Values{"token": form["token"], "once": {"x" + act}, "sure": {"yes"}, "grace": {"0s"}}
		bob.post(b.URL+path+act, sent, "Sec-Fetch-Site", "same-origin").want(404, path+act)
	}
	hook := ada.open("/portal/webhooks").submit("/portal/webhooks", "name", "Ada's", "url", "https://example.com/x").follow("I have stored it").at.Path
	bob.open(hook).want(404, hook)
	bob.post(b.URL+hook+"/secret", url.Values{"token": form["token"], "once": {"y"}}, "Sec-Fetch-Site", "same-origin").want(404, hook+"/secret")
	ada.open(path).want(200, path)
}

// The cookie of a session cannot be read by scripts, and on https it is bound to the host.
func TestCookiesOfSessions(t *testing.T) {
	b := start(t, func(d *admin.Deps) { d.Portal.PublicURL = "https://dev.example.com/docs/portal" })
	resp, err := http.Get(b.URL + "/portal/login")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	cookies := resp.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "__Host-sluice-portal-form" || !cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "/" {
		t.Errorf("%+v", cookies)
	}
	w := b.browser().open("/portal/login")
	w.hides(`"/portal/`)
	if !strings.Contains(string(w.body), `action="/docs/portal/login"`) {
		t.Errorf("links do not begin with the public path: %s", w.body)
	}
}

func TestSwitchesOfThePortal(t *testing.T) {
	b := start(t)
	w := b.signUp("ada@example.com")
	b.configure(`"catalogue_login_only":true,"disable_signup":true`)
	stranger := b.browser()
	stranger.open("/portal/").want(200, "/portal/login")
	stranger.open("/portal/apis/gold").want(200, "/portal/login").hides("Sign up")
	stranger.open("/portal/signup").says("Sign-up is switched off")
	stranger.open("/portal/login?next=/apis/gold").submit("/portal/login", "email", "ada@example.com", "password", "correct horse").want(200, "/portal/apis/gold")
	w.open("/portal/").want(200, "/portal/").says("Orders gold")
	b.configure(`"disable_login":true`)
	b.browser().open("/portal/login").says("Sign-in is switched off")
	b.configure(`"redirect_on_key_request":true,"redirect_to":"https://ask.example.com/form","redirect_hosts":["ask.example.com"]`)
	w.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if w.open("/portal/request/gold"); w.status != 303 || w.header.Get("Location") != "https://ask.example.com/form" {
		t.Errorf("%d to %q", w.status, w.header.Get("Location"))
	}
	b.configure(`"enable_multi_selection":true`)
	w.open("/portal/request/gold").says("Also for", "Orders free")
	to, sent := w.form("/portal/request/gold")
	sent.Set("also", "free")
	w.post(to.String(), sent)
	if n := b.Count("select count(*) from key_requests where cardinality(policies) = 2"); n != 1 {
		t.Errorf("%d requests for both plans", n)
	}
}

// Pages that sign-in leads to are of the site.
func TestSignInLeadsToPagesOfTheSiteOnly(t *testing.T) {
	b := start(t)
	b.signUp("ada@example.com")
	for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "javascript:alert(1)", "/\tevil", "http:evil.example"} {
		w := b.browser()
		w.open("/portal/login?next="+url.QueryEscape(next)).submit("/portal/login", "email", "ada@example.com", "password", "correct horse").want(200, "/portal/")
	}
}

func TestAccountPasswordAndRecovery(t *testing.T) {
	b := start(t)
	b.configure(`"signup_fields":["Company"]`)
	w := b.browser()
	w.open("/portal/signup").submit("/portal/signup", "email", "ada@example.com", "password", "correct horse").want(400, "/portal/signup").says("is needed")
	w.submit("/portal/signup", "password", "correct horse", "field.Company", "Acme").want(200, "/portal/signup")
	link := b.letter("ada@example.com", "/verify?token=")
	link = link[strings.Index(link, "/portal/verify"):]
	w.open(strings.Fields(link)[0]).submit("/portal/verify", "password", "wrong horse").want(401, "/portal/verify").submit("/portal/verify", "password", "correct horse").want(200, "/portal/")
	w.open("/portal/account").submit("/portal/account", "field.Company", "Acme & Sons").want(200, "/portal/account").says("Saved.")
	w.submit("/portal/account/password", "current", "wrong", "password", "better horse").want(403, "/portal/account/password").says("is not the present one")
	w.submit("/portal/account/password", "current", "correct horse", "password", "better horse").want(200, "/portal/account").says("Your password was changed")

	lost := b.browser()
	lost.open("/portal/forgot").submit("/portal/forgot", "email", "nobody@example.com").want(200, "/portal/forgot").says("If there is an account")
	lost.open("/portal/forgot").submit("/portal/forgot", "email", "ada@example.com").want(200, "/portal/forgot").says("If there is an account")
	link = b.letter("ada@example.com", "/reset?token=")
	link = link[strings.Index(link, "/portal/reset"):]
	lost.open(strings.Fields(link)[0]).submit("/portal/reset", "password", "newest horse").want(200, "/portal/login").says("Sign in with the new one")
	lost.submit("/portal/login", "email", "ada@example.com", "password", "newest horse").want(200, "/portal/")
	w.open("/portal/account").want(200, "/portal/login") // all sessions have ended
	lost.open("/portal/account").submit("/portal/account/delete", "password", "newest horse").want(200, "/portal/").says("Your account was deleted").hides("Sign out")
}
