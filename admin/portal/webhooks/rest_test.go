package webhooks

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/admin/delivery"
)

const (
	here = "/api/portal/webhooks"
	me   = "/api/portal/me/webhooks"
)

const aHook = `{"name":"mine","url":"https://example.com/hooks?a=1","events":["key_event.created"]}`

func TestAWebhookIsAddedReadChangedAndDeleted(t *testing.T) {
	b := start(t, options{})
	a := b.add(dev, me, aHook)
	if len(a.ID) != 32 || !strings.HasPrefix(a.Meta.Secret, "whsec_") {
		t.Fatalf("added %+v", a)
	}
	if secret, err := parseSecret(a.Meta.Secret); err != nil || len(secret) != newSecrets {
		t.Errorf("secret %q, %v", a.Meta.Secret, err)
	}
	got := b.Call("GET", me+"/"+a.ID, dev, "").Want(200)
	var w Webhook
	got.Into(&w)
	if w.ID != a.ID || w.Org != "o" || w.Developer != "d1" || w.Name != "mine" || w.URL != "https://example.com/hooks?a=1" || !slices.Equal(w.Events, []string{"key_event.created"}) || !w.Enabled {
		t.Errorf("webhook %+v", w)
	}
	if strings.Contains(string(got.Body), "secret") || got.ETag != `"1"` {
		t.Errorf("%s, ETag %s", string(got.Body), got.ETag)
	}

	// What was read can be sent back, changed.
	w.Name, w.Events = "theirs", []string{"*"}
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	changed := b.Call("PUT", me+"/"+a.ID, dev, string(body), "If-Match", `"1"`).Want(200).Says("Data updated")
	if changed.ETag != `"2"` || b.webhook(a.ID).Name != "theirs" {
		t.Errorf("ETag %s, %+v", changed.ETag, b.webhook(a.ID))
	}
	stale := b.Call("PUT", me+"/"+a.ID, dev, string(body), "If-Match", `"1"`).Want(409).Says("it is at version 2")
	if stale.ETag != `"2"` {
		t.Errorf("ETag %s", stale.ETag)
	}
	b.Call("DELETE", me+"/"+a.ID, dev, "", "If-Match", `"1"`).Want(409)
	b.Call("DELETE", me+"/"+a.ID, dev, "", "If-Match", `"2"`).Want(200).Says("Data deleted")
	b.Call("GET", me+"/"+a.ID, dev, "").Want(404).Says("Webhook does not exist")
	if actions := b.Text("select string_agg(action, ' ' order by at, id) from audit_log where object_kind = 'webhook' and object_id = $1", a.ID); actions != "created updated deleted" {
		t.Errorf("audit %s", actions)
	}
}

func TestBadWebhooksAreRefusedByName(t *testing.T) {
	b := start(t, options{})
	with := func(member, value string) string {
		all := map[string]string{"name": `"n"`, "url": `"https://example.com/"`, "events": `["*"]`}
		all[member] = value
		var parts []string
		for name, v := range all {
			parts = append(parts, fmt.Sprintf("%q:%s", name, v))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	for _, c := range []struct{ body, says string }{
		{"", "Request body malformed: it is empty"},
		{"{", "Request body malformed"},
		{"[]", "Request body malformed"},
		{"null", "url: is missing"},
		{"{} {}", "Request body malformed: something follows"},
		{with("name", "7"), "name must not be a JSON number"},
		{with("events", `"*"`), "events must not be a JSON string"},
		{with("colour", `"red"`), `unknown member \"colour\"`},
		{with("name", fmt.Sprintf("%q", strings.Repeat("n", 201))), "name: must be printable text of at most 200 bytes"},
		{with("name", `"a\u0000b"`), "name: must be printable"},
		{with("name", `"a\r\nb"`), "name: must be printable"},
		{with("url", `""`), "url: is missing"},
		{with("url", `"example.com/hooks"`), "url: must begin with https://"},
		{with("url", `"http://example.com/"`), "url: must begin with https://"},
		{with("url", `"ftp://example.com/"`), "url: must begin with https://"},
		{with("url", `"file:///etc/passwd"`), "url: must begin with https://"},
		{with("url", `"https:example.com"`), "url: names no host"},
		{with("url", `"https:///path"`), "url: names no host"},
		{with("url", `"https://user:pw@example.com/"`), "url: must not hold a user or password"},
		{with("url", `"https://example.com/#part"`), "url: must not have a fragment"},
		{with("url", `"https://example.com:0/"`), "url: has a port"},
		{with("url", `"https://example.com:70000/"`), "url: has a port"},
		{with("url", `"https://exa mple.com/"`), "url: is no URL"},
		{with("url", `"https://example.com/\n"`), "url: is no URL"},
		{with("url", `"https://[::1/"`), "url: is no URL"},
		{with("url", fmt.Sprintf("%q", "https://example.com/"+strings.Repeat("p", 2048))), "url: must have at most 2048 bytes"},
		{with("url", `"https://127.0.0.1/"`), "url: leads to an address that messages are not sent to"},
		{with("url", `"https://10.1.2.3:8443/"`), "url: leads to an address"},
		{with("url", `"https://169.254.169.254/latest"`), "url: leads to an address"},
		{with("url", `"https://[::1]/"`), "url: leads to an address"},
		{with("url", `"https://[::ffff:192.168.0.1]/"`), "url: leads to an address"},
		{with("events", `[]`), "events: must name at least one type"},
		{with("events", `["key_event.created","nothing.happened"]`), "events[1]:"},
		{with("events", `["*","*"]`), "events[1]: "},
		{with("secret", `"short"`), "secret: must be whsec_ followed by"},
		{with("secret", `"whsec_"`), "secret: must be"},
		{with("secret", fmt.Sprintf("%q", shown(make([]byte, 23)))), "secret: must be"},
		{with("secret", fmt.Sprintf("%q", shown(make([]byte, 65)))), "secret: must be"},
		{with("secret", `"whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!="`), "secret: must be"},
		{with("developer_id", `"d2"`), "developer_id: must be yours"},
	} {
		b.Call("POST", me, dev, c.body).Want(400).Says(c.says)
	}
	b.Call("POST", here, approver, with("developer_id", `"nobody"`)).Want(400).Says("developer_id: there is no developer")
	b.Call("POST", here, approver, with("developer_id", `"x"`)).Want(400).Says("developer_id: there is no developer") // of the other organisation
	b.Call("POST", here, approver, with("developer_id", `"' or 1=1 --"`)).Want(400).Says("developer_id: there is no developer")
	several := b.Call("POST", me, dev, `{"name":"\u0007","url":"x","events":[]}`).Want(400)
	var f struct{ Errors []string }
	several.Into(&f)
	if len(f.Errors) != 3 {
		t.Errorf("errors %q", f.Errors)
	}
	if n := b.Text("select count(*)::text from webhooks"); n != "0" {
		t.Errorf("%s webhooks", n)
	}
	hook := b.add(dev, me, aHook).ID
	b.Call("PUT", me+"/"+hook, dev, with("url", `"http://example.com/"`)).Want(400).Says("url: must begin with https://")
	b.Call("PUT", me+"/"+hook, dev, aHook, "If-Match", "x").Want(400).Says("If-Match")
	for _, grace := range []string{`"a day"`, `"-1h"`, `"169h"`, `"1"`} {
		b.Call("POST", me+"/"+hook+"/secret", dev, `{"grace":`+grace+`}`).Want(400).Says("grace: must be a duration")
	}
	b.Call("POST", me+"/"+hook+"/secret", dev, `{"secret":"x"}`).Want(400).Says("secret: must be")
	for query, says := range map[string]string{
		"p=-1": "p must be", "p=x": "p must be", "page_size=0": "page_size must be", "page_size=501": "page_size must be",
	} {
		b.Call("GET", me+"?"+query, dev, "").Want(400).Says(says)
		b.Call("GET", here+"/"+hook+"/deliveries?"+query, viewer, "").Want(400).Says(says)
	}
	b.Call("GET", "/api/portal/deliveries?delivery_state=lost", viewer, "").Want(400).Says("delivery_state must be")
}

func TestSecretsOfEverySizeAreTaken(t *testing.T) {
	for n := range 80 {
		secret := newSecret()
		for len(secret) < n {
			secret = append(secret, newSecret()...)
		}
		got, err := parseSecret(shown(secret[:n]))
		if ok := n >= minSecret && n <= maxSecret; ok != (err == nil) || ok && string(got) != string(secret[:n]) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add("whsec_" + strings.Repeat("QUJD", 10))
	f.Add("whsec_QUJD\nQUJD")
	f.Fuzz(func(t *testing.T, text string) {
		secret, err := parseSecret(text)
		if err != nil {
			return
		}
		if shown(secret) != text {
			t.Errorf("%q became %q", text, shown(secret))
		}
	})
}

func FuzzURLs(f *testing.F) {
	for _, u := range []string{"https://example.com/", "https://user@example.com", "https://127.0.0.1", "https://[::ffff:7f00:1]:1/", "https://example.com:443?q#f"} {
		f.Add(u)
	}
	to := new(reach)
	f.Fuzz(func(t *testing.T, text string) {
		if to.checkURL(text) != nil {
			return
		}
		req, err := http.NewRequest("POST", text, nil)
		if err != nil || req.URL.Scheme != "https" || req.URL.User != nil || req.URL.Hostname() == "" {
			t.Errorf("%q passes: %v", text, err)
		}
	})
}

func TestWhoMayDoWhat(t *testing.T) {
	b := start(t, options{})
	mine := b.add(dev, me, aHook).ID
	org := b.add(editor, here, aHook).ID
	b.Exec(`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state)
		values ('theirs', 'o', 'webhook', $1, 'd1', 'e', 'what was said', false, 'done'), ('ours', 'o', 'webhook', $2, '', 'e', 'what was said', false, 'done'),
		('letter', 'o', 'letter', 'one@example.com', 'd1', 'e', 'token', false, 'done')`, mine, org)
	const never, none = 403, 404
	for _, c := range []struct {
		method, path, body string
		by                 map[string]int
	}{
		{"GET", here, "", map[string]int{viewer: 200, approver: 200, editor: 200, foreign: 200, dev: never, "gateway o g": never, "": 401}},
		{"GET", here + "/events", "", map[string]int{viewer: 200, dev: 200, "gateway o g": never, "": 401}},
		{"GET", here + "/" + mine, "", map[string]int{viewer: 200, foreign: none, dev: never}},
		{"GET", me + "/" + mine, "", map[string]int{dev: 200, dev2: none, "developer other x": none, viewer: never, editor: never, "": 401}},
		{"GET", me + "/" + org, "", map[string]int{dev: none, dev2: none}},
		{"PUT", me + "/" + mine, aHook, map[string]int{dev2: none, viewer: never, dev: 200}},
		{"PUT", me + "/" + org, aHook, map[string]int{dev: none}},
		{"PUT", here + "/" + mine, aHook, map[string]int{viewer: never, foreign: none, dev: never, approver: 200, editor: 200}},
		{"PUT", here + "/" + org, aHook, map[string]int{viewer: never, approver: never, foreign: none, editor: 200}},
		{"POST", here, aHook, map[string]int{viewer: never, approver: never, dev: never, editor: 201}},
		{"POST", here, strings.Replace(aHook, "{", `{"developer_id":"d2",`, 1), map[string]int{viewer: never, approver: 201}},
		{"POST", here + "/" + mine + "/secret", "", map[string]int{viewer: never, foreign: none, dev: never, approver: 200}},
		{"POST", here + "/" + org + "/secret", "", map[string]int{approver: never, editor: 200}},
		{"POST", me + "/" + mine + "/secret", "", map[string]int{dev2: none, dev: 200}},
		{"POST", me + "/" + mine + "/ping", "", map[string]int{dev2: none, viewer: never}},
		{"POST", me + "/" + mine + "/disable", "", map[string]int{dev2: none, viewer: never}},
		{"POST", me + "/" + mine + "/enable", "", map[string]int{dev2: none, viewer: never, dev: 200}},
		{"GET", me + "/" + mine + "/deliveries", "", map[string]int{dev: 200, dev2: none, viewer: never}},
		{"GET", here + "/" + mine + "/deliveries", "", map[string]int{viewer: 200, foreign: none}},
		{"GET", "/api/portal/deliveries", "", map[string]int{viewer: 200, dev: never, "": 401}},
		{"GET", "/api/portal/deliveries/theirs", "", map[string]int{viewer: 200, foreign: none, dev: never}},
		{"GET", "/api/portal/me/deliveries/theirs", "", map[string]int{dev: 200, dev2: none, viewer: never}},
		{"GET", "/api/portal/me/deliveries/ours", "", map[string]int{dev: none}},
		{"GET", "/api/portal/me/deliveries/letter", "", map[string]int{dev: none}},
		{"POST", "/api/portal/me/deliveries/ours/replay", "", map[string]int{dev: none}},
		{"POST", "/api/portal/me/deliveries/letter/replay", "", map[string]int{dev: none}},
		{"DELETE", here + "/" + org, "", map[string]int{approver: never, foreign: none, editor: 200}},
		{"DELETE", me + "/" + mine, "", map[string]int{dev2: none, dev: 200}},
	} {
		for who, want := range c.by {
			if want >= 300 {
				b.Call(c.method, c.path, who, c.body).Want(want)
			}
		}
		for who, want := range c.by {
			if want < 300 {
				b.Call(c.method, c.path, who, c.body).Want(want)
			}
		}
	}
}

func TestWhatWasSentIsForThoseWhoMaySeeIt(t *testing.T) {
	b := start(t, options{})
	b.Exec(`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state)
		values ('open', 'o', 'webhook', 'w', 'd1', 'e', 'what was said', false, 'done'), ('closed', 'o', 'letter', 'one@example.com', 'd1', 'e', 'what was sealed', true, 'kept')`)
	for who, sees := range map[string]bool{viewer: false, approver: true, editor: true} {
		if body := b.Call("GET", "/api/portal/deliveries/open", who, "").Want(200).Body; strings.Contains(string(body), "what was said") != sees {
			t.Errorf("%s: %s", who, body)
		}
		if body := b.Call("GET", "/api/portal/deliveries/closed", who, "").Want(200).Body; strings.Contains(string(body), "sealed") {
			t.Errorf("%s: %s", who, body)
		}
	}
	b.Call("GET", "/api/portal/me/deliveries/open", dev, "").Want(200).Says("what was said")
	b.Call("POST", "/api/portal/deliveries/closed/replay", editor, "").Want(409).Says("local mailbox")
	b.Call("GET", "/api/portal/deliveries", editor, "").Want(200)
}

func TestListsArePagedAndFiltered(t *testing.T) {
	b := start(t, options{})
	for i := range 12 {
		b.add(dev, me, strings.Replace(aHook, "mine", fmt.Sprintf("Hook %c_%%'", 'a'+i), 1))
	}
	b.add(dev2, me, aHook)
	b.add(editor, here, aHook)
	pages := func(who, path string) (names []string, pages int64) {
		t.Helper()
		var l List
		b.Call("GET", path, who, "").Want(200).Into(&l)
		for _, w := range l.Data {
			names = append(names, w.Name)
		}
		return names, l.Pages
	}
	if names, n := pages(dev, me); len(names) != 10 || n != 2 || names[0] != "Hook a_%'" {
		t.Errorf("%q of %d", names, n)
	}
	if names, n := pages(dev, me+"?p=2&developer=d2"); len(names) != 2 || n != 2 {
		t.Errorf("%q of %d", names, n)
	}
	if names, n := pages(viewer, here+"?page_size=500"); len(names) != 14 || n != 1 {
		t.Errorf("%q of %d", names, n)
	}
	if names, _ := pages(viewer, here+"?developer=d2"); len(names) != 1 {
		t.Errorf("%q", names)
	}
	if names, _ := pages(viewer, here+"?q=hook%20B_%25"); !slices.Equal(names, []string{"Hook b_%'"}) {
		t.Errorf("%q", names)
	}
	if names, _ := pages(viewer, here+"?q=%25"); len(names) != 0 {
		t.Errorf("%q", names)
	}
	if names, n := pages(foreign, here); len(names) != 0 || n != 0 {
		t.Errorf("%q of %d", names, n)
	}

	b.Exec(`insert into deliveries (id, org_id, kind, target, developer_id, event, payload, sealed, state, created_at)
		select 'm' || n, 'o', 'webhook', 'w' || n % 3, 'd' || n % 2, 'e', '', false, (array['done','failed','kept'])[n % 3 + 1], now() + n * interval '1 second' from generate_series(1, 30) n`)
	for query, want := range map[string]int{
		"": 30, "delivery_state=failed": 10, "webhook=w1": 10, "webhook=w1&delivery_state=done": 0, "developer=d1": 15, "developer=d1&delivery_state=kept": 5, "developer=nobody": 0,
	} {
		var l delivery.Log
		b.Call("GET", "/api/portal/deliveries?page_size=100&"+query, viewer, "").Want(200).Into(&l)
		if len(l.Data) != want {
			t.Errorf("%q: %d entries, want %d", query, len(l.Data), want)
		}
		if query == "" && l.Data[0].ID != "m30" {
			t.Errorf("the first is %+v", l.Data[0])
		}
	}
}

func TestNobodyHasMoreWebhooksThanMay(t *testing.T) {
	b := start(t, options{})
	var adding sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for range 30 {
		adding.Go(func() {
			r := b.Call("POST", me, dev, aHook)
			mu.Lock()
			defer mu.Unlock()
			codes[r.Status]++
		})
	}
	adding.Wait()
	if codes[201] != maxWebhooks || codes[409] != 10 {
		t.Errorf("codes %v", codes)
	}
	b.add(dev2, me, aHook)
	b.add(editor, here, aHook)
}

func TestWithoutAMasterKeyNoSecretIsTaken(t *testing.T) {
	b := start(t, options{noKey: true})
	b.Call("POST", me, dev, aHook).Want(503).Says("admin.master_key")
}

func TestPrivateTargetsMayBePlainWhereTheyArePermitted(t *testing.T) {
	b := start(t, options{private: true})
	b.add(dev, me, `{"url":"http://10.0.0.1:8080/","events":["*"]}`)
	b.Call("POST", me, dev, `{"url":"http://169.254.169.254/","events":["*"]}`).Want(400).Says("leads to an address")
}

func TestADatabaseThatIsAwayIsSaid(t *testing.T) {
	b := start(t, options{})
	server := httptest.NewServer(&receiver{})
	defer server.Close()
	id := b.add(dev, me, aHook).ID
	b.stop()
	b.store.Close()
	for _, c := range [][3]string{
		{"GET", me, ""},
		{"POST", me, aHook},
		{"GET", me + "/" + id, ""},
		{"PUT", me + "/" + id, aHook},
		{"DELETE", me + "/" + id, ""},
		{"POST", me + "/" + id + "/secret", ""},
		{"POST", me + "/" + id + "/ping", ""},
		{"GET", me + "/" + id + "/deliveries", ""},
	} {
		b.Call(c[0], c[1], dev, c[2]).Want(503).Says("database is not available")
	}
}

func TestTheTypesOfEventsAreListed(t *testing.T) {
	b := start(t, options{})
	var l Types
	b.Call("GET", here+"/events", dev, "").Want(200).Into(&l)
	if len(l.Data) != 8 || l.Pages != 1 {
		t.Errorf("types %+v", l)
	}
	b.Call("POST", me, dev, `{"url":"https://example.com","events":["api_event.created"]}`).Want(400)
	for _, e := range l.Data {
		b.Call("POST", me, dev, fmt.Sprintf(`{"url":"https://example.com","events":[%q]}`, e.Type)).Want(201)
	}
}
