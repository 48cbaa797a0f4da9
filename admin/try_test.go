package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// A triedBench has two APIs with a plan and a catalogue entry each, and two developers.
type triedBench struct {
	*bench
	player         *fakePlayer
	ada, bob       string // sessions
	adaKey, bobKey string // ids: of the plan "one", and of "two"
}

const triedGraph = `{"api_id":"graph","name":"Graph","use_keyless":false,"proxy":{"listen_path":"/graph/","target_url":"http://up.example"},
	"graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { open: Int secret: Int }"}}`

func startTried(t *testing.T) *triedBench {
	t.Helper()
	b := &triedBench{player: &fakePlayer{answer: PlayedAnswer{Sent: true, Status: 200, Body: []byte("hi"), RequestID: "4bf9", Report: json.RawMessage(`{"steps":[],"outcome":{"allowed":true}}`)}}}
	b.bench = start(t, func(d *Deps) { d.Try, d.KeyOptions.Passwords = b.player, passwords() })
	b.createAPI(b.editor, "orders", "/orders/")
	b.createAPI(b.editor, "open", "/open/")
	b.Call("POST", "/api/apis", b.editor, triedGraph).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"one","name":"One","state":"active","access_rights":{"orders":{"api_id":"orders"},"graph":{"api_id":"graph","restricted_types":[{"name":"Query","fields":["secret"]}]}}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"two","name":"Two","state":"active","access_rights":{"graph":{"api_id":"graph"}}}`).Want(200)
	for _, e := range []string{
		`{"id":"orders","name":"Orders","show":true,"api_id":"orders","policy_id":"one"}`, `{"id":"graph","name":"Graph","show":true,"api_id":"graph","policy_id":"one"}`,
		`{"id":"hidden","name":"Hidden","show":false,"api_id":"orders","policy_id":"one"}`, `{"id":"open","name":"Open","show":true,"api_id":"open","is_keyless":true}`,
	} {
		b.Call("POST", "/api/portal/catalogue/entries", b.editor, e).Want(201)
	}
	var ada, bob string
	ada, b.ada = b.aDeveloper("ada")
	bob, b.bob = b.aDeveloper("bob")
	b.adaKey = b.Call("POST", "/api/portal/developers/"+ada+"/keys", b.editor, `{"apply_policies":["one"]}`).Want(200).Text("key_id")
	b.bobKey = b.Call("POST", "/api/portal/developers/"+bob+"/keys", b.editor, `{"apply_policies":["two"]}`).Want(200).Text("key_id")
	return b
}

func (b *triedBench) try(entry, session, body string) *admintest.Answer {
	b.t.Helper()
	return b.Call("POST", "/api/portal/me/apis/"+entry+"/try", session, body)
}

func TestADeveloperTriesAnAPIAsTheirOwnKey(t *testing.T) {
	b := startTried(t)
	b.try("orders", b.ada, fmt.Sprintf(`{"key_id":%q,"method":"PUT","path":"/7?x=1","headers":{"X-A":"1"},"body":"{}"}`, b.adaKey)).Want(200).
		Says(`"status":200`, `"body":"hi"`, `"request_id":"4bf9"`, `"allowed":true`)
	d := b.player.described(t)
	if got, want := fmt.Sprint(d["key_hash"], d["method"], d["url"], d["body"], d["headers"]), fmt.Sprint(b.adaKey, "PUT", "/orders/7?x=1", "{}", map[string]any{"X-A": "1", "Content-Type": "application/json"}); got != want {
		t.Errorf("described as %s, want %s", got, want)
	}
	if call := b.player.calls[0]; !call.Counted || call.API != "orders" {
		t.Errorf("%+v", call)
	}
	b.try("open", b.ada, `{}`).Want(200)
	if d := b.player.described(t); d["key_hash"] != nil || d["url"] != "/open/" {
		t.Errorf("described as %v", d)
	}
}

func TestADeveloperTriesNothingWithKeysOfOthersOrOnOtherAPIs(t *testing.T) {
	b := startTried(t)
	operators := b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["one"]}`).Want(200).Text("key_hash")
	for name, c := range map[string]struct {
		entry, session, body string
		status               int
		says                 string
	}{
		"another developer's key":      {"graph", b.ada, fmt.Sprintf(`{"key_id":%q}`, b.bobKey), 404, "Could not retrieve key"},
		"a key that is no developer's": {"orders", b.ada, fmt.Sprintf(`{"key_id":%q}`, operators), 404, "Could not retrieve key"},
		"an API beyond the plan":       {"orders", b.bob, fmt.Sprintf(`{"key_id":%q}`, b.bobKey), 403, "no plan of the key includes this API"},
		"no key":                       {"orders", b.ada, `{}`, 400, "key_id: "},
		"a hidden entry":               {"hidden", b.ada, fmt.Sprintf(`{"key_id":%q}`, b.adaKey), 404, "Could not retrieve"},
		"no such entry":                {"none", b.ada, `{}`, 404, "Could not retrieve"},
		"an unknown key":               {"orders", b.ada, `{"key_id":"none"}`, 404, "Could not retrieve key"},
		"a user of the organisation":   {"open", b.editor, `{}`, 403, ""},
		"an address of another caller": {"open", b.ada, `{"headers":{"x-forwarded-for":"10.0.0.1"}}`, 400, "headers.x-forwarded-for: is set by the gateway"},
		"a connection":                 {"open", b.ada, `{"headers":{"Upgrade":"websocket"}}`, 400, "headers.Upgrade: "},
		"a path of another API":        {"open", b.ada, `{"path":"x"}`, 400, "path: must begin with a slash"},
		"a body that is too large":     {"open", b.ada, `{"body":"` + strings.Repeat("x", maxPlayBody+1) + `"}`, 400, "body: must have at most"},
		"a caller of one's choice":     {"open", b.ada, `{"as":{"policy":"one"}}`, 400, "unknown member"},
	} {
		if got := b.try(c.entry, c.session, c.body); got.Status != c.status || !strings.Contains(string(got.Body), c.says) {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
	}
	if len(b.player.calls) != 0 {
		t.Errorf("%d calls were made", len(b.player.calls))
	}
	b.player.err = context.DeadlineExceeded
	b.try("open", b.ada, `{}`).Want(504).Says("did not answer within 10s")
}

func TestADeveloperSeesOfASchemaWhatTheirKeyMayUse(t *testing.T) {
	b := startTried(t)
	of := func(entry, session, key string) *admintest.Answer {
		return b.Call("GET", "/api/portal/me/apis/"+entry+"/schema?key_id="+key, session, "")
	}
	if got := of("graph", b.ada, b.adaKey).Want(200); !strings.Contains(string(got.Body), "open: Int") || strings.Contains(string(got.Body), "secret") {
		t.Errorf("%s", got.Body)
	}
	of("graph", b.bob, b.bobKey).Want(200).Says("secret: Int")
	of("graph", b.ada, b.bobKey).Want(404)
	of("graph", b.ada, "").Want(400).Says("key_id: ")
	of("orders", b.bob, b.bobKey).Want(403)
	of("orders", b.ada, b.adaKey).Want(400).Says("no GraphQL schema")
	b.Call("GET", "/api/portal/public/catalogue/graph", "", "").Want(200).Says(`"is_graphql":true`)
	b.Call("GET", "/api/portal/public/catalogue/orders", "", "").Want(200).Says(`"is_graphql":false`)
}

// What an explanation says of the configuration and of others does not leave the admin.
func TestDevelopersAreToldTheRuleOfTheirPlanAndNothingElse(t *testing.T) {
	b := startTried(t)
	say := func(reason, steps string) string {
		b.player.answer.Report = json.RawMessage(fmt.Sprintf(`{"revision":"7","key":{"name":"internal"},"steps":[%s],"outcome":{"allowed":false,"reason":%q,"stage":"x","fix":"internal","headers":["internal"],"upstream":{"address":"internal"}}}`, steps, reason))
		return string(b.try("open", b.ada, `{}`).Want(200).Body)
	}
	got := say("depth_limit", `{"stage":"route","result":"ok","said":"internal"},
		{"stage":"graphql","result":"fail","said":"too deep","fix":"internal","facts":[{"rule":"max_query_depth","value":"3","seen":"5","from":"policy one"},{"rule":"max_operation_cost","value":"9","seen":"1","from":"internal"},{"rule":"restricted_types","value":"internal"}]},
		{"stage":"internal","result":"ok"}`)
	for _, want := range []string{`"stage":"route","result":"ok"`, `"said":"too deep"`, `{"rule":"max_query_depth","value":"3","seen":"5","from":"policy one"}`, `{"rule":"max_operation_cost","value":"9","seen":"1"}`, `"reason":"depth_limit"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not have %s", got, want)
		}
	}
	got += say("address_denied", `{"stage":"ip","result":"fail","said":"internal","facts":[{"rule":"allowed_ips","value":"internal","seen":"internal","from":"policy internal"}]}`)
	if strings.Contains(got, "internal") {
		t.Errorf("too much is told: %s", got)
	}
}

func TestCallsOfDevelopersAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tries := newTries(func() time.Time { return now })
	var ends []func()
	for range maxTriedBy {
		done, err := tries.begin("ada")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	if _, err := tries.begin("ada"); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("more calls at once than may be: %v", err)
	}
	for _, end := range ends {
		end()
	}
	made := 0
	for ; made < 1000; made++ {
		done, err := tries.begin("ada")
		if err != nil {
			if !strings.Contains(err.Error(), "Too many calls from the portal") {
				t.Error(err)
			}
			break
		}
		done()
	}
	if made < 30 || made > 60 {
		t.Errorf("%d calls without a pause", made)
	}
	if done, err := tries.begin("bob"); err != nil {
		t.Errorf("another developer waits: %v", err)
	} else {
		done()
	}
	now = now.Add(3 * time.Second)
	if done, err := tries.begin("ada"); err != nil {
		t.Errorf("after a pause: %v", err)
	} else {
		done()
	}
	for i := range maxTried {
		if _, err := tries.begin(fmt.Sprint("developer", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tries.begin("one more"); err == nil {
		t.Error("more calls at once than may be")
	}
}
