package traffic

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// told is a message that a webhook got.
type told struct {
	path, body string
	header     http.Header
}

// newWebhook is a service that is told of events.
func newWebhook(t testing.TB) (url string, messages chan told) {
	t.Helper()
	messages = make(chan told, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		messages <- told{r.Method + " " + r.URL.Path, string(body), r.Header}
	}))
	t.Cleanup(server.Close)
	return server.URL, messages
}

func next(t testing.TB, messages chan told) told {
	t.Helper()
	select {
	case m := <-messages:
		return m
	case <-time.After(rig.Patience):
		t.Fatal("no webhook was told")
		return told{}
	}
}

// hook is a handler that tells a webhook.
func hook(meta object) []object {
	return []object{{"handler_name": "eh_web_hook_handler", "handler_meta": meta}}
}

func TestWebhooksAreToldOfEvents(t *testing.T) {
	t.Parallel()
	url, messages := newWebhook(t)
	_, up := newScripted(t, noContent)
	templates := t.TempDir()
	if err := os.WriteFile(filepath.Join(templates, "short.json"), []byte(`{"what":"{{.Type}}","where":"{{.Meta.Path}}"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	api := rig.APIDef("watched", "http://"+up, false)
	api["event_handlers"] = object{"events": object{
		"QuotaExceeded": hook(object{"method": "POST", "target_path": url + "/quota", "header_map": object{"X-Own": "mine"}, "event_timeout": 60}),
		"AuthFailure":   hook(object{"method": "PUT", "target_path": url + "/auth", "template_path": "short.json"}),
	}}
	g := newTraffic(t, settings{
		"events.private_targets": "allow", "events.templates": templates,
		"events.webhook.url": url + "/keys", "events.webhook.authorization": "Bearer of-the-hook",
	}, nil, api)
	key := g.newKey(object{"quota_max": 1, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("watched")})
	if m := next(t, messages); m.path != "POST /keys" || !strings.Contains(m.body, `"event":"TokenCreated"`) || m.header.Get("Authorization") != "Bearer of-the-hook" {
		t.Errorf("of a new key: %+v", m)
	}
	for range 3 { // the second and third are refused, and told of once
		rig.Call(t, http.MethodGet, g.Traffic+"/watched/a?b=c", nil, "Authorization", key)
	}
	m := next(t, messages)
	var said map[string]string
	if err := json.Unmarshal([]byte(m.body), &said); err != nil {
		t.Fatal(err)
	}
	if m.path != "POST /quota" || m.header.Get("X-Own") != "mine" || said["event"] != "QuotaExceeded" || said["message"] != "Key Quota Limit Exceeded" ||
		said["path"] != "/watched/a" || said["origin"] != "127.0.0.1" || said["key"] == "" || strings.Contains(m.body, key) {
		t.Errorf("of a used up quota: %+v", m)
	}
	rig.Call(t, http.MethodGet, g.Traffic+`/watched/"x`, nil, "Authorization", "unknown-key")
	if m := next(t, messages); m.path != "PUT /auth" || m.body != `{"what":"AuthFailure","where":"/watched/%22x"}` {
		t.Errorf("of an unknown key: %+v", m)
	}
	for _, want := range []string{`sluice_webhook_messages_total{outcome="sent"} 3`, `sluice_webhook_messages_total{outcome="same"} 1`} {
		rig.Eventually(t, "the metric", func() error { return rig.Lacks(rig.Call(t, http.MethodGet, g.Telemetry+"/metrics", nil).Body, want) })
	}
}

func TestWebhooksOfPrivateAddressesAreNotCalledUnlessAllowed(t *testing.T) {
	t.Parallel()
	url, messages := newWebhook(t)
	_, up := newScripted(t, noContent)
	api := rig.APIDef("watched", "http://"+up, false)
	api["event_handlers"] = object{"events": object{"AuthFailure": hook(object{"method": "POST", "target_path": url})}}
	g := newTraffic(t, nil, nil, api)
	if a := rig.Call(t, http.MethodGet, g.Traffic+"/watched/", nil, "Authorization", "unknown-key"); a.Status != 403 {
		t.Errorf("%s", a)
	}
	g.AwaitLog("private and loopback addresses are not called")
	if len(messages) > 0 {
		t.Errorf("told: %+v", <-messages)
	}
}

// TestEventsNameTheKeyThatWasRefused: by its hash as ever, or where the operator says so
// as the client sent it.
func TestEventsNameTheKeyThatWasRefused(t *testing.T) {
	t.Parallel()
	url, messages := newWebhook(t)
	_, up := newScripted(t, noContent)
	api := rig.APIDef("watched", "http://"+up, false)
	api["definition"] = object{"location": "header", "key": "X-Version"}
	api["version_data"] = object{"versions": object{"v1": object{"name": "v1"}}}
	handler := hook(object{"method": "POST", "target_path": url})
	api["event_handlers"] = object{"events": object{"AuthFailure": handler, "VersionFailure": handler}}
	for _, raw := range []string{"false", "true"} {
		g := newTraffic(t, settings{"events.private_targets": "allow", "events.raw_keys": raw}, nil, api)
		for event, version := range map[string]string{"AuthFailure": "v1", "VersionFailure": "v9"} {
			rig.Call(t, http.MethodGet, g.Traffic+"/watched/", nil, "Authorization", "Bearer an-unknown-key-"+event, "X-Version", version)
			m := next(t, messages)
			var said map[string]string
			if err := json.Unmarshal([]byte(m.body), &said); err != nil || said["event"] != event {
				t.Fatalf("%v: %s", err, m.body)
			}
			if raw == "true" && said["key"] != "an-unknown-key-"+event {
				t.Errorf("%s with the key: %s", event, m.body)
			}
			if raw == "false" && (len(said["key"]) != 12 || strings.Trim(said["key"], "0123456789abcdef") != "") {
				t.Errorf("%s without the key: %s", event, m.body)
			}
		}
	}
}
