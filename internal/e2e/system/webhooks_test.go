package system

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// heard is a message that a webhook got.
type heard struct {
	header http.Header
	body   string
}

// listener is where a webhook's messages arrive, once it listens.
type listener struct {
	address string
	mu      sync.Mutex
	all     []heard
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, heard{r.Header.Clone(), string(body)})
	w.WriteHeader(http.StatusNoContent)
}

func (l *listener) listen(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", l.address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: l}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = server.Close() // nobody waits for an answer any more
		<-done
	})
}

func (l *listener) messages() []heard {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]heard(nil), l.all...)
}

// signed checks a message as the specification of Standard Webhooks says.
func signed(m heard, secret string) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", m.header.Get("webhook-id"), m.header.Get("webhook-timestamp"), m.body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); m.header.Get("webhook-signature") != want {
		return errors.New("the signature is wrong")
	}
	return nil
}

// A webhook whose receiver is away when a key is made hears of it later, although
// the process is killed in between; then its secret is replaced, and what went to
// it can be read and sent once more.
func TestAWebhookHearsOfKeysThroughACrash(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	l := &listener{address: rig.FreeAddress(t)}
	var hook struct {
		ID   string
		Meta struct{ Secret string }
	}
	r.Do("POST", "/api/portal/webhooks", object{"name": "ops", "url": "http://" + l.address + "/hooks", "events": []string{"key_event.created"}}).Into(t, &hook)
	rig.Plant(hook.Meta.Secret)
	r.Do("POST", "/api/apis", rig.APIDef("hooked", "http://127.0.0.1:9/", false))
	var policy, developer struct{ Message string }
	r.Do("POST", "/api/portal/policies", object{"name": "gold", "active": true, "rate": 10, "per": 1, "quota_max": -1, "access_rights": rig.AccessTo("hooked")}).Into(t, &policy)
	r.Do("POST", "/api/portal/developers", object{"email": "dev@example.com"}).Into(t, &developer)
	r.Do("POST", "/api/portal/developers/"+developer.Message+"/keys", object{"apply_policies": []string{policy.Message}})

	log := func() (entry struct {
		ID, State, Error string
		Attempts         int
	},
	) {
		var log struct{ Data []json.RawMessage }
		r.Do("GET", "/api/portal/webhooks/"+hook.ID+"/deliveries", nil).Into(t, &log)
		if len(log.Data) == 1 {
			if err := json.Unmarshal(log.Data[0], &entry); err != nil {
				t.Fatal(err)
			}
		}
		return entry
	}
	s.Await("the first attempt", func() error {
		if e := log(); e.Attempts != 1 || e.State != "pending" || e.Error != "it refuses connections" {
			return fmt.Errorf("the log has %+v", e)
		}
		return nil
	})
	s.Kill()
	s.StartReady()
	l.listen(t)
	arrived := func(n int) func() error {
		return func() error {
			if have := len(l.messages()); have < n {
				return fmt.Errorf("%d messages", have)
			}
			return nil
		}
	}
	s.Await("the message", arrived(1))
	first := l.messages()[0]
	if err := signed(first, hook.Meta.Secret); err != nil || !strings.Contains(first.body, `"type":"key_event.created"`) {
		t.Errorf("%v: %s", err, first.body)
	}
	s.Await("the log", func() error {
		if e := log(); e.State != "done" || e.Attempts < 2 {
			return fmt.Errorf("the log has %+v", e)
		}
		return nil
	})

	var renewed struct{ Meta struct{ Secret string } }
	r.Do("POST", "/api/portal/webhooks/"+hook.ID+"/secret", object{"grace": "0s"}).Into(t, &renewed)
	rig.Plant(renewed.Meta.Secret)
	r.Do("POST", "/api/portal/deliveries/"+log().ID+"/replay", nil)
	s.Await("the message once more", arrived(2))
	second := l.messages()[1]
	if err := signed(second, renewed.Meta.Secret); err != nil || second.body != first.body || second.header.Get("webhook-id") != first.header.Get("webhook-id") {
		t.Errorf("%v: %s", err, second.body)
	}
	s.Await("the log of it", func() error { // a message is there before that is noted
		if e := log(); e.State != "done" {
			return fmt.Errorf("the log has %+v", e)
		}
		return nil
	})
	metrics := rig.Call(t, "GET", s.Telemetry+"/metrics", nil)
	for _, line := range []string{`sluice_deliveries_total{kind="webhook",result="done"} `, `sluice_deliveries_pending{kind="webhook"} 0`, `sluice_deliveries_late_seconds{kind="webhook"} 0`} {
		if !strings.Contains(string(metrics.Body), line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// A message that a client posts to a stream reaches the webhook of a developer who may call
// the API, signed with the developer's secret, although the process is killed before the
// webhook's receiver is there. The same message again is not sent twice.
func TestMessagesOfStreamsReachDevelopersThroughACrash(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), settings{"portal.private_webhooks": "allow"}).StartReady()
	r := s.Rest()
	const connector = "the-secret-of-the-connector"
	r.Do("PUT", "/api/secrets/portal", object{"value": rig.Plant(connector)})
	api := rig.APIDef("events", "", true)
	api["x-svc-streaming"] = object{"streams": object{"out": object{
		"input":    object{"http_server": object{"path": "/in", "timeout": "30s"}},
		"pipeline": object{"processors": []object{{"mapping": "root.id = this.id\nroot.seen = true"}}},
		"output":   object{"portal_webhook": object{"event_type": "order.created", "portal_url": s.Admin + "/portal/events", "secret": "{secret:portal}"}},
	}}}
	r.Do("POST", "/api/apis", api)
	r.Do("POST", "/api/portal/catalogue/entries", object{"name": "Events", "api_id": "events", "show": true, "is_keyless": true})
	var developer struct{ Message string }
	r.Do("POST", "/api/portal/developers", object{"email": "dev@example.com"}).Into(t, &developer)
	l := &listener{address: rig.FreeAddress(t)}
	var hook struct{ Meta struct{ Secret string } }
	r.Do("POST", "/api/portal/webhooks", object{"url": "http://" + l.address + "/hooks", "events": []string{"order.created"}, "developer_id": developer.Message}).Into(t, &hook)
	rig.Plant(hook.Meta.Secret)

	post := func(id string) error {
		a, err := rig.Send("POST", s.Traffic+"/events/in", object{"id": id}, "Idempotency-Key", id)
		if err == nil && a.Status != http.StatusOK {
			err = errors.New(a.Body)
		}
		return err
	}
	s.Await("the stream to take messages", func() error { return post("first") })
	if err := post("second"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.StartReady()
	s.Await("the stream to take messages", func() error { return post("first") })
	l.listen(t)
	s.Await("both messages", func() error {
		if n := len(l.messages()); n < 2 {
			return fmt.Errorf("%d messages", n)
		}
		return nil
	})
	seen := make(map[string]bool)
	for _, m := range l.messages() {
		if err := signed(m, hook.Meta.Secret); err != nil {
			t.Error(err)
		}
		var said struct {
			Type string
			API  string `json:"api_id"`
			Data struct {
				ID   string
				Seen bool
			}
		}
		if err := json.Unmarshal([]byte(m.body), &said); err != nil || said.Type != "order.created" || said.API != "events" || !said.Data.Seen {
			t.Errorf("%v: %s", err, m.body)
		}
		seen[said.Data.ID] = true
	}
	if !seen["first"] || !seen["second"] {
		t.Errorf("arrived: %v", seen)
	}
	var log struct{ Data []json.RawMessage }
	r.Do("GET", "/api/portal/deliveries?developer="+developer.Message, nil).Into(t, &log)
	if len(log.Data) != 2 {
		t.Errorf("%d deliveries", len(log.Data))
	}
}

func TestWebhooksGoWhereEventsMayNotWhereSchemasComeFrom(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), settings{"events.private_targets": "refuse", "admin.private_upstreams": "allow"}).StartReady()
	r := s.Rest()
	for _, target := range []string{"http://127.0.0.1:9/", "https://127.0.0.1:9/", "https://[::ffff:10.0.0.1]/"} {
		body := object{"name": "ops", "url": target, "events": []string{"*"}}
		if a, err := r.Try("POST", "/api/portal/webhooks", body); err != nil || a.Status != 400 || !strings.Contains(a.Body, "url: ") {
			t.Errorf("%s: %v %s", target, err, a)
		}
	}
	var hook struct{ ID string }
	r.Do("POST", "/api/portal/webhooks", object{"name": "ops", "url": "https://localhost:9/", "events": []string{"*"}}).Into(t, &hook)
	r.Do("POST", "/api/portal/webhooks/"+hook.ID+"/ping", nil)
	rig.Eventually(t, "the attempt", func() error {
		a := r.Do("GET", "/api/portal/webhooks/"+hook.ID+"/deliveries", nil)
		if !strings.Contains(a.Body, "its address is none that messages may be sent to") {
			return errors.New(a.Body)
		}
		return nil
	})
}
