package admin

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestThePulseFollowsWhatPagesShow(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	first := b.Call("GET", "/api/pulse", b.viewer, "").Want(200).Says(`"revision":0`, `"pending_requests":0`, `"failed_deliveries":0`, `"version":"test"`)
	if len(first.Body) >= 300 {
		t.Errorf("%d bytes: %s", len(first.Body), first.Body)
	}
	b.createAPI(b.editor, "a", "/a")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","access_rights_array":[{"api_id":"a"}]}`).Want(200)
	developer, _ := b.aDeveloper("ada")
	b.Call("POST", "/api/portal/requests", b.editor, fmt.Sprintf(`{"by_user":%q,"for_plan":"p","version":"v2"}`, developer)).Want(200)
	b.bundle("0s", "", "X-Sluice-Gateway", "gw-1", "X-Sluice-Revision", "2").Want(200)
	b.Exec("insert into deliveries (id, org_id, kind, target, event, payload, sealed, state) select 'd' || n, org_id, 'webhook', 'x', 'x', '', false, 'failed' from users, generate_series(1, 2000) n where email = 'admin@localhost'")
	b.Exec("insert into usage_senders (gateway, boot, sequence, seen_at) values ('gw-1', 'x', 1, '2026-01-02 03:04:05Z')")
	var now *admintest.Answer
	wait.Until(t, "the pulse has all of it", func() bool {
		now = b.Call("GET", "/api/pulse", b.viewer, "", "If-None-Match", first.ETag)
		return now.Status == 200 && strings.Contains(string(now.Body), `"gateways":1`) && strings.Contains(string(now.Body), `"usage_until":"2026-01-02T03:04:05Z"`)
	})
	now.Says(`"revision":2`, `"up_to_date":1`, `"pending_requests":1`, `"failed_deliveries":1000`)
	wait.Until(t, "the pulse is the same again", func() bool {
		return b.Call("GET", "/api/pulse", b.viewer, "", "If-None-Match", b.Call("GET", "/api/pulse", b.viewer, "").ETag).Status == 304
	})
	b.Call("GET", "/api/pulse", b.other, "").Want(200).Says(`"pending_requests":0`, `"failed_deliveries":0`)
}

func TestObjectsOfAllKindsAreFound(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	ids := b.estate()
	kinds := func(q, key string) (found []string) {
		t.Helper()
		var list struct{ Results []searchResult }
		b.Call("GET", "/api/search?q="+q, key, "").Want(200).Into(&list)
		for _, r := range list.Results {
			found = append(found, r.Kind+" "+r.ID)
		}
		return found
	}
	for q, want := range map[string]string{
		"OUR":             "[api ours policy op catalogue " + ids["/api/portal/catalogue/entries/"] + "]",
		"op":              "[policy op]",
		ids["/api/keys/"]: "[key " + ids["/api/keys/"] + "]",
		"%25":             "[]",
		"viewer":          "[]",
		"nothing%20here":  "[]",
	} {
		if got := fmt.Sprint(kinds(q, b.viewer)); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if got := fmt.Sprint(kinds("ADA@", b.viewer)); !strings.Contains(got, "developer "+ids["/api/portal/developers/"]) {
		t.Errorf("the beginning of an address finds %s", got)
	}
	if got := kinds("viewer", b.admin); len(got) != 1 || !strings.HasPrefix(got[0], "user ") {
		t.Errorf("an admin finds %s", got)
	}
	if got := kinds("our", b.other); got != nil {
		t.Errorf("another organisation finds %s", got)
	}
	for i := range 7 {
		b.createAPI(b.editor, fmt.Sprint("many", i), fmt.Sprint("/many", i))
	}
	if got := kinds("many", b.viewer); len(got) != 5 {
		t.Errorf("found %s", got)
	}
	b.Call("GET", "/api/search", b.viewer, "").Want(400).Says("q must have 1")
	b.Call("GET", "/api/search?q="+strings.Repeat("x", 201), b.viewer, "").Want(400)
}

func TestEveryAnswerHasARequestID(t *testing.T) {
	b := start(t)
	id := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := make(map[string]bool)
	for _, c := range []struct{ method, path, key string }{
		{"GET", "/api/apis", b.viewer}, {"GET", "/api/apis", ""}, {"GET", "/nowhere", ""}, {"DELETE", "/api/apis", ""}, {"GET", "/healthz", ""}, {"HEAD", "/healthz", ""}, {"GET", "/portal/", ""},
	} {
		got := b.Call(c.method, c.path, c.key, "", "X-Request-Id", "mine").Header.Get("X-Request-Id")
		if !id.MatchString(got) || seen[got] {
			t.Errorf("%s %s: id %q", c.method, c.path, got)
		}
		seen[got] = true
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 4096)
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	n, err := conn.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), "X-Request-Id: ") {
		t.Errorf("%v: %s", err, answer[:n])
	}

	b.Exec("alter table apis rename to away")
	failed := b.Call("GET", "/api/apis", b.viewer, "")
	if failed.Status < 500 || !strings.Contains(b.log.String(), "request_id="+failed.Header.Get("X-Request-Id")) {
		t.Errorf("%d: %s is not in %s", failed.Status, failed.Header.Get("X-Request-Id"), b.log.String())
	}
	b.Exec("alter table away rename to apis")
}

func TestEventHandlersOfAllAPIsAreListed(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "plain", "/plain")
	b.Call("POST", "/api/apis", b.editor, `{"api_id":"a","name":"A","use_keyless":true,"proxy":{"listen_path":"/a","target_url":"http://up.example"},"event_handlers":{"events":{
		"QuotaExceeded":[{"handler_name":"eh_web_hook_handler","handler_meta":{"target_path":"https://me:pw@hooks.example:8443/T0/secret?x=1","event_timeout":60,"header_map":{"X-A":"b"}}}],
		"AuthFailure":[{"handler_name":"eh_log_handler","handler_meta":{"prefix":"refused","disabled":true}}]}}}`).Want(200)
	b.Call("GET", "/api/events", b.viewer, "").Want(200).Hides("secret", "pw", "X-A", "plain").Says(
		`{"handlers":[{"api_id":"a","api_name":"A","event":"AuthFailure","handler":"eh_log_handler","target":"refused","event_timeout":0,"disabled":true},` +
			`{"api_id":"a","api_name":"A","event":"QuotaExceeded","handler":"eh_web_hook_handler","target":"https://hooks.example:8443","event_timeout":60,"disabled":false}]}`)
	b.Call("GET", "/api/events", b.other, "").Want(200).Says(`{"handlers":[]}`)
}
