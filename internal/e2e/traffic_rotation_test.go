package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// rotate makes a successor of a key by the gateway API.
func (g *traffic) rotate(key, grace string) string {
	g.t.Helper()
	var made struct {
		Key    string
		Action string
	}
	got := g.ask(http.MethodPost, "/svc/keys/"+key+"/rotate", object{"grace": grace})
	if got.status != 200 {
		g.t.Fatalf("rotating: %s", got)
	}
	got.into(g.t, &made)
	if made.Action != "rotated" || made.Key == key {
		g.t.Fatalf("rotating: %s", got)
	}
	return plant(made.Key)
}

// left is what an answer says is left of the quota.
func left(got answer) string {
	return fmt.Sprint(got.status, " ", got.header.Get("X-Ratelimit-Remaining"))
}

func TestAKeyAndItsSuccessorHaveOneQuotaAndOneName(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, nil)
	first := g.newKey(object{"org_id": "acme", "access_rights": accessTo(callerAPIs...), "quota_max": 100, "quota_renewal_rate": 3600})
	use := func(key string) answer { return g.get("/header/x", "Authorization: "+key) }
	if got := left(use(first)); got != "200 99" {
		t.Fatal(got)
	}
	second := g.rotate(first, "1h")
	for i, key := range []string{first, second, first, second} {
		if got, want := left(use(key)), fmt.Sprint("200 ", 98-i); got != want {
			t.Errorf("call %d: %s, want %s", i, got, want)
		}
	}
	log := g.logged()
	if n := strings.Count(log, `"key_retires":true`); n != 2 {
		t.Errorf("%d lines tell of the first key, want 2:\n%s", n, log)
	}
	for _, body := range []string{`{"grace":"soon"}`, `{"grace":"-1h"}`, `{"grace":"1h","x":1}`, `{}`, ``, `nope`} {
		if got := g.ask(http.MethodPost, "/svc/keys/"+first+"/rotate", body); got.status != 400 {
			t.Errorf("%q: %s", body, got)
		}
	}
	if got := g.ask(http.MethodPost, "/svc/keys/nobodys/rotate", object{"grace": "1h"}); got.status != 404 {
		t.Error(got)
	}

	// A machine that stops at once keeps what was answered.
	g.kill()
	g.startReady()
	if got := left(use(second)); !strings.HasPrefix(got, "200") {
		t.Errorf("the successor after a restart: %s", got)
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/"+second+"/rotate", nil); got.status != 200 {
		t.Fatal(got)
	}
	if got := use(first); got.status != 401 || got.body != errorBody(textExpired) {
		t.Errorf("the first key once it is ended: %s", got)
	}
	if got := use(second); got.status != 200 {
		t.Errorf("its successor: %s", got)
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/"+second, nil); got.status != 200 || use(second).status != 403 || use(first).status != 403 {
		t.Errorf("deleted: %s", got)
	}
}

func TestRotationReachesEveryGatewayWithinASecond(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	s.rest.do("POST", "/api/apis", apiDef("one", s.origin, false))
	first := plant(s.rest.newKey(object{"access_rights": accessTo("one"), "quota_max": 100, "quota_renewal_rate": 3600}))
	s.everywhere("the key", "/one/x", first, status(200))
	var made struct {
		Key  string
		Hash string `json:"key_hash"`
	}
	s.rest.do("POST", "/api/keys/"+first+"/rotate", object{"grace": "24h"}).into(t, &made)
	second := plant(made.Key)
	ways := &measured{t: t, what: "a change of a key"}
	ways.add(s.everywhere("the successor", "/one/x", second, limited(100)))
	ways.add(s.everywhere("the key", "/one/x", first, limited(100)))
	var list struct {
		Data struct{ Keys []string }
	}
	s.rest.do("GET", "/api/keys", nil).into(t, &list)
	if len(list.Data.Keys) != 1 || list.Data.Keys[0] != made.Hash {
		t.Errorf("listed %q, want %q alone", list.Data.Keys, made.Hash)
	}
	if got := call(t, http.MethodDelete, s.gateways[0].traffic+"/svc/keys/"+second+"/rotate", nil, "X-Svc-Authorization", splitSecret); got.status != 200 {
		t.Fatal(got)
	}
	ways.add(s.everywhere("the end of the key", "/one/x", first, refused("auth_expired")))
	s.everywhere("the successor", "/one/x", second, status(200))
	if got, err := s.rest.try("POST", "/api/keys/"+first+"/rotate", object{"grace": "-1s"}); err != nil || got.status != 400 || !strings.Contains(got.body, "grace must be") {
		t.Errorf("%v, %s", err, got)
	}
	s.rest.do("DELETE", "/api/keys/"+made.Hash, nil)
	ways.add(s.everywhere("the deletion", "/one/x", second, refused("auth_unknown")))
	t.Logf("took %s", ways.took)
}

func TestUsersOfAnAdminReachItsGateways(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	def := apiDef("users", s.origin, false)
	def["use_basic_auth"] = true
	s.rest.do("POST", "/api/apis", def)
	session := object{"access_rights": accessTo("users"), "basic_auth_data": object{"password": plant("split-secret")}}
	made := s.rest.do("POST", "/api/keys/bob", session)
	if strings.Contains(made.body, "$argon2id") {
		t.Errorf("the admin shows what it stores: %s", made)
	}
	opens := func(password string) func() error {
		return func() error {
			got, err := send("GET", s.gateways[0].traffic+"/users/x", nil, "Authorization", basicHeader("bob", password))
			return want(200, got, err)
		}
	}
	s.gateways[0].await("the user", opens("split-secret"))
	session["basic_auth_data"] = object{"password": plant("second-split-secret")}
	if got := call(t, http.MethodPut, s.gateways[0].traffic+"/svc/keys/bob", session, "X-Svc-Authorization", splitSecret); got.status != 200 {
		t.Fatal(got)
	}
	eventually(t, "the new password", opens("second-split-secret"))
	began := time.Now()
	if opens("split-secret")() == nil {
		t.Errorf("the old password is right after %s", time.Since(began))
	}
}
