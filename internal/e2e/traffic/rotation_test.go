package traffic

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// rotate makes a successor of a key by the gateway API.
func (g *traffic) rotate(key, grace string) string {
	g.T.Helper()
	var made struct {
		Key    string
		Action string
	}
	got := g.ask(http.MethodPost, "/svc/keys/"+key+"/rotate", object{"grace": grace})
	if got.Status != 200 {
		g.T.Fatalf("rotating: %s", got)
	}
	got.Into(g.T, &made)
	if made.Action != "rotated" || made.Key == key {
		g.T.Fatalf("rotating: %s", got)
	}
	return rig.Plant(made.Key)
}

// left is what an answer says is left of the quota.
func left(got rig.Answer) string {
	return fmt.Sprint(got.Status, " ", got.Header.Get("X-Ratelimit-Remaining"))
}

func TestAKeyAndItsSuccessorHaveOneQuotaAndOneName(t *testing.T) {
	t.Parallel()
	g, _ := callers(t, nil)
	first := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo(callerAPIs...), "quota_max": 100, "quota_renewal_rate": 3600})
	use := func(key string) rig.Answer { return g.get("/header/x", "Authorization: "+key) }
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
		if got := g.ask(http.MethodPost, "/svc/keys/"+first+"/rotate", body); got.Status != 400 {
			t.Errorf("%q: %s", body, got)
		}
	}
	if got := g.ask(http.MethodPost, "/svc/keys/nobodys/rotate", object{"grace": "1h"}); got.Status != 404 {
		t.Error(got)
	}

	// A machine that stops at once keeps what was answered.
	g.Kill()
	g.StartReady()
	if got := left(use(second)); !strings.HasPrefix(got, "200") {
		t.Errorf("the successor after a restart: %s", got)
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/"+second+"/rotate", nil); got.Status != 200 {
		t.Fatal(got)
	}
	if got := use(first); got.Status != 401 || got.Body != errorBody(textExpired) {
		t.Errorf("the first key once it is ended: %s", got)
	}
	if got := use(second); got.Status != 200 {
		t.Errorf("its successor: %s", got)
	}
	if got := g.ask(http.MethodDelete, "/svc/keys/"+second, nil); got.Status != 200 || use(second).Status != 403 || use(first).Status != 403 {
		t.Errorf("deleted: %s", got)
	}
}
