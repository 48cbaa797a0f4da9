package traffic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

func TestUsersLogInByTheBody(t *testing.T) {
	t.Parallel()
	up, target := newRecorder(t)
	api := rig.APIDef("login", target, false)
	api["org_id"], api["use_basic_auth"], api["strip_auth_data"] = "acme", true, true
	api["basic_auth"] = object{"extract_from_body": true, "body_user_regexp": "<User>([^<]*)</User>", "body_password_regexp": "<Password>([^<]*)</Password>"}
	g := newTraffic(t, settings{"passwords.max_body": "32KiB"}, nil, api)
	password := rig.Plant("the password of bob")
	session := object{"org_id": "acme", "access_rights": rig.AccessTo("login"), "basic_auth_data": object{"password": password}}
	if got := g.ask(http.MethodPost, "/svc/keys/bob", session); got.Status != 200 {
		t.Fatal(got)
	}
	envelope := func(user, password string, size int) string {
		text := "<Envelope><User>" + user + "</User><Password>" + password + "</Password>"
		return text + strings.Repeat(" ", max(size-len(text), 0))
	}
	ask := func(body string, headers ...string) rig.Answer {
		return rig.Call(t, http.MethodPost, g.Traffic+"/login/x", body, headers...)
	}
	for _, size := range []int{0, 20 << 10} { // at hand, or in pieces
		body := envelope("bob", password, size)
		if got := ask(body); got.Status != 200 {
			t.Errorf("%d bytes: %s", len(body), got)
		}
		// It goes on as it was: nothing is taken out of a body.
		if got := up.reached(); len(got) != 1 || got[0].body != body {
			t.Errorf("%d bytes: the upstream got %d requests", len(body), len(got))
		}
	}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
		reason  string
	}{
		"wrong":             {envelope("bob", "guess", 0), nil, 401, "auth_unknown"},
		"nobody":            {envelope("ann", password, 0), nil, 401, "auth_unknown"},
		"no name":           {"<Password>x</Password>", nil, 400, "auth_missing"},
		"no password":       {"<User>bob</User>", nil, 400, "auth_missing"},
		"nothing":           {"", nil, 400, "auth_missing"},
		"too large":         {envelope("bob", password, 33<<10), nil, 413, "body_too_large"},
		"in the header":     {"x", []string{"Authorization", rig.BasicHeader("bob", password)}, 200, ""},
		"a token elsewhere": {envelope("bob", password, 0), []string{"Authorization", "Bearer x"}, 200, ""},
	} {
		got := ask(c.body, c.headers...)
		if got.Status != c.status || c.reason != "" && got.Reason() != c.reason || got.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	e := g.explained(object{"method": "POST", "url": g.Traffic + "/login/x", "body": "<User>bob</User>"})
	if e.Outcome.Allowed || e.Outcome.Stage != "auth" || e.Outcome.Status != 400 {
		t.Errorf("explained as %+v", e.Outcome)
	}
	if e := g.explained(object{"method": "POST", "url": g.Traffic + "/login/x", "body": envelope("bob", password, 0)}); !e.Outcome.Allowed {
		t.Errorf("explained as %+v", e.Outcome)
	}
	for _, bad := range []string{"no group", "(a)(b)", "("} {
		api["basic_auth"].(object)["body_user_regexp"] = bad
		got := rig.Call(t, http.MethodPut, g.Control+"/svc/apis/login", api, "X-Svc-Authorization", testSecret)
		if got.Status != 400 || !strings.Contains(got.Body, "basic_auth.body_user_regexp") {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
