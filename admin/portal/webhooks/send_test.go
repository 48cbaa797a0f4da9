package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// verify checks a message as a receiver does who has read the specification of
// Standard Webhooks and knows nothing of this program.
func verify(secret string, header http.Header, body string, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	id, stamp := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return err
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > 5*time.Minute || age < -5*time.Minute {
		return fmt.Errorf("the timestamp is %v off", age)
	}
	if id == "" || strings.Contains(id, ".") {
		return fmt.Errorf("id %q", id)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	want := mac.Sum(nil)
	for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		version, value, _ := strings.Cut(signature, ",")
		have, err := base64.StdEncoding.DecodeString(value)
		if version == "v1" && err == nil && hmac.Equal(have, want) {
			return nil
		}
	}
	return errors.New("no signature is right")
}

func TestTheVerifierOfTheTestsKnowsRightFromWrong(t *testing.T) {
	// Values computed with openssl:
	// printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:<32 bytes of 0x61> -binary | base64
	key := shown([]byte(strings.Repeat("a", 32)))
	header := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Signature": {"v1,gY5u0Gy1AnBsf6YdPFLa7N7Wpo237alzmdfC0DTFXRI="}}
	now := time.Unix(1700000010, 0)
	if err := verify(key, header, `{"a":1}`, now); err != nil {
		t.Error(err)
	}
	if verify(key, header, `{"a":2}`, now) == nil || verify(shown([]byte(strings.Repeat("b", 32))), header, `{"a":1}`, now) == nil {
		t.Error("a wrong message or secret passes")
	}
	if own := webhooksign.Sign([][]byte{[]byte(strings.Repeat("a", 32))}, "msg_1", "1700000000", []byte(`{"a":1}`)); own != "v1,gY5u0Gy1AnBsf6YdPFLa7N7Wpo237alzmdfC0DTFXRI=" {
		t.Errorf("signed %s", own)
	}
}

func TestAnEventReachesWhoWantsItAndNobodyElse(t *testing.T) {
	b := start(t, options{private: true})
	var mine, org, others, quiet, off receiver
	serve := func(r *receiver) string {
		s := httptest.NewServer(r)
		t.Cleanup(s.Close)
		return s.URL
	}
	own := b.mine(serve(&mine))
	b.add(editor, "/api/portal/webhooks", fmt.Sprintf(`{"url":%q,"events":["key_event.revoked","key_event.created"]}`, serve(&org)))
	b.add(dev2, "/api/portal/me/webhooks", fmt.Sprintf(`{"url":%q,"events":["*"]}`, serve(&others)))
	b.add(foreign, "/api/portal/webhooks", fmt.Sprintf(`{"url":%q,"events":["*"]}`, serve(&others)))
	b.add(dev, "/api/portal/me/webhooks", fmt.Sprintf(`{"url":%q,"events":["key_event.revoked"]}`, serve(&quiet)))
	disabled := b.mine(serve(&off))
	b.Call("POST", "/api/portal/me/webhooks/"+disabled.ID+"/disable", dev, "").Want(200)

	b.emit(created())
	wait.Until(t, "both have it", func() bool { return len(mine.messages()) == 1 && len(org.messages()) == 1 })
	m := mine.messages()[0]
	if err := verify(own.Meta.Secret, m.header, m.body, time.Now()); err != nil {
		t.Errorf("%v: %v", err, m.header)
	}
	var said struct {
		Type, Timestamp string
		Data            json.RawMessage
	}
	if err := json.Unmarshal([]byte(m.body), &said); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.RFC3339, said.Timestamp); err != nil || said.Type != "key_event.created" || string(said.Data) != `{"id":"k1","text":"<ü>"}` {
		t.Errorf("it says %s", m.body)
	}
	if m.header.Get("Content-Type") != "application/json" {
		t.Errorf("header %v", m.header)
	}
	b.stop() // nothing is on its way any more
	for name, r := range map[string]*receiver{"another's": &others, "of other events": &quiet, "disabled": &off} {
		if n := len(r.messages()); n > 0 {
			t.Errorf("%s webhook got %d messages", name, n)
		}
	}
	if n := b.Text("select count(*)::text from deliveries"); n != "2" {
		t.Errorf("%s deliveries", n)
	}
}

func TestWhomTheConfigurationNamesIsTold(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	b.Exec(`insert into portal_objects (org_id, kind, id, body) values ('o', 'configuration', 'c', $1::text::json)`,
		fmt.Sprintf(`{"event_options":{"key_event":{"webhook":%q,"email":"ops@example.com"},"key_request_event":{"webhook":"","email":""}}}`, server.URL+"/hook"))
	b.emit(created())
	b.emit(model.Event{Org: "o", Type: model.RequestSubmitted, Data: 1})
	wait.Until(t, "the URL is told", func() bool { return len(r.messages()) == 1 })
	m := r.messages()[0]
	if m.body != `{"event":"key_event.created","data":{"id":"k1","text":"<ü>"}}` || m.header.Get("Webhook-Id") == "" || m.header.Get("Webhook-Signature") != "" {
		t.Errorf("%s %v", m.body, m.header)
	}
	if all := b.letters.letters(); len(all) != 1 || all[0].To != "ops@example.com" || all[0].Event != "key_event.created" || all[0].Kind != model.EventLetter {
		t.Errorf("letters %+v", all)
	}
	var log delivery.Log
	b.Call("GET", "/api/portal/deliveries", viewer, "").Want(200).Into(&log)
	if len(log.Data) != 1 || log.Data[0].Kind != "hook" || log.Data[0].Target != server.URL+"/hook" {
		t.Errorf("log %+v", log)
	}
}

func TestAConfigurationThatCannotBeReadStopsNothing(t *testing.T) {
	b := start(t, options{private: true})
	b.Exec(`insert into portal_objects (org_id, kind, id, body) values ('o', 'configuration', 'c', '{"event_options":7}')`)
	b.emit(created())
	if !strings.Contains(b.log.String(), "cannot be read") {
		t.Errorf("log %s", b.log)
	}
}

func TestDataThatIsTooLargeIsLeftOutButForItsID(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	b.mine(server.URL)
	b.emit(model.Event{Org: "o", Developer: "d1", Type: model.RequestSubmitted, Data: map[string]string{"id": "r1", "more": strings.Repeat("x", maxData)}})
	wait.Until(t, "it arrives", func() bool { return len(r.messages()) == 1 })
	if body := r.messages()[0].body; !strings.Contains(body, `"data":{"id":"r1"},"data_omitted":true`) {
		t.Errorf("it says %.200s", body)
	}
}

func TestAnswersOfReceiversAreHeeded(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	patient := start(t, options{private: true})
	hasty := start(t, options{private: true, queue: func(o *delivery.Options) { o.Timeout = time.Second }})
	for name, c := range map[string]struct {
		answer   http.HandlerFunc
		state    string
		attempts int
		status   int
		says     string
	}{
		"200 and a text": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "thanks") }, "done", 1, 200, ""},
		"500":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "failed", 3, 500, "it answers 500 Internal Server Error"},
		"404":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "failed", 3, 404, "it answers 404 Not Found"},
		"a redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, "failed", 3, 302, "a redirect, which is not followed"},
		"410":            {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }, "failed", 1, 410, "410 Gone"},
		"silence":        {func(_ http.ResponseWriter, r *http.Request) { holdOpen(r, hang) }, "failed", 3, 0, "did not answer in time"},
		"a cut":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "failed", 3, 0, "ended the connection"},
		"a slow body": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			holdOpen(r, hang)
		}, "done", 1, 200, ""},
		"a huge answer":  {huge, "done", 1, 200, ""},
		"a strange code": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }, "failed", 3, 599, "it answers 599"},
		"an unclear date": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "soon")
			w.WriteHeader(503)
		}, "failed", 3, 503, "it answers 503 Service Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			b := patient
			if name == "silence" {
				b = hasty
			}
			server := httptest.NewServer(&receiver{answer: c.answer})
			defer server.Close()
			hook := b.add(editor, here, fmt.Sprintf(`{"url":%q,"events":["*"]}`, server.URL))
			b.Call("POST", here+"/"+hook.ID+"/ping", editor, "").Want(200)
			var e delivery.Entry
			wait.Until(t, "it is "+c.state, func() bool { e = b.deliveries(hook.ID)[0]; return e.State == c.state })
			if e.Attempts != c.attempts || e.Status != c.status || !strings.Contains(e.Error, c.says) || c.says == "" && e.Error != "" {
				t.Errorf("entry %+v", e)
			}
		})
	}
}

// holdOpen waits until the caller is gone or the test is over.
func holdOpen(r *http.Request, over chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-over:
	}
}

// huge answers for as long as anybody reads.
func huge(w http.ResponseWriter, r *http.Request) {
	part := make([]byte, 64<<10)
	for r.Context().Err() == nil {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

func TestAReceiverThatAsksForTimeIsLeftAlone(t *testing.T) {
	b := start(t, options{private: true})
	for name, value := range map[string]func() string{
		"seconds": func() string { return "3600" },
		"a date":  func() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(&receiver{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", value())
				w.WriteHeader(429)
			}})
			defer server.Close()
			hook := b.mine(server.URL)
			b.Call("POST", me+"/"+hook.ID+"/ping", dev, "").Want(200)
			var e delivery.Entry
			wait.Until(t, "it is put off", func() bool { e = b.deliveries(hook.ID)[0]; return e.Status == 429 && e.NextAttempt != nil })
			next, err := time.Parse(time.RFC3339, *e.NextAttempt)
			if in := time.Until(next); err != nil || in < 58*time.Minute || in > 62*time.Minute || e.State != "pending" {
				t.Errorf("next in %v, %v: %+v", in, err, e)
			}
		})
	}
}

func TestNoMessageGoesToAPrivateAddress(t *testing.T) {
	b := start(t, options{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address was called") }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	hook := b.mine("https://localhost:" + port) // a name, whose addresses are seen when it is called
	b.emit(created())
	wait.Until(t, "it is given up", func() bool { return b.deliveries(hook.ID)[0].State == "failed" })
	if e := b.deliveries(hook.ID)[0]; e.Error != "its address is none that messages may be sent to" || strings.Contains(e.Error, "127.") {
		t.Errorf("entry %+v", e)
	}
}

// Operators may let their own webhooks call private addresses, and those of developers go
// on calling public ones alone.
func TestWebhooksOfDevelopersReachNoPrivateAddress(t *testing.T) {
	b := start(t, options{private: true, public: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	plain := fmt.Sprintf(`{"url":%q,"events":["*"]}`, server.URL)
	own := b.add(editor, "/api/portal/webhooks", plain)
	named := fmt.Sprintf(`{"url":"https://localhost:%s/","events":["*"],"developer_id":"d1"}`, strings.TrimPrefix(server.URL, "http://127.0.0.1:"))
	for _, id := range []string{b.mine("https://localhost:" + strings.TrimPrefix(server.URL, "http://127.0.0.1:")).ID, b.add(editor, "/api/portal/webhooks", named).ID} {
		b.Call("PUT", "/api/portal/webhooks/"+id, editor, plain).Want(400).Says("url: must begin with https://")
		b.Call("PUT", "/api/portal/webhooks/"+id, editor, `{"url":"https://127.0.0.1/","events":["*"]}`).Want(400).Says("url: leads to an address")
	}
	b.Call("POST", "/api/portal/me/webhooks", dev, plain).Want(400).Says("url: must begin with https://")
	b.Call("POST", "/api/portal/webhooks", editor, strings.Replace(plain, "{", `{"developer_id":"d1",`, 1)).Want(400).Says("url: ")
	b.emit(created())
	wait.Until(t, "everything is done", func() bool { return b.Count("select count(*) from deliveries where state = 'pending'") == 0 })
	if n := len(r.messages()); n != 1 || b.deliveries(own.ID)[0].State != "done" {
		t.Errorf("%d messages arrived, want the organisation's alone", n)
	}
}

// A developer who could tell failures apart could find out what there is in a network.
func TestFailuresReadAlikeToDevelopers(t *testing.T) {
	b := start(t, options{private: true})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	closed.Close()
	plain := httptest.NewServer(&receiver{})
	defer plain.Close()
	for _, url := range []string{"http://" + address, "https://name.invalid/", strings.Replace(plain.URL, "http", "https", 1)} {
		hook := b.mine(url)
		b.Call("POST", "/api/portal/me/webhooks/"+hook.ID+"/ping", dev, "").Want(200)
		wait.Until(t, url+" is given up", func() bool { return b.deliveries(hook.ID)[0].State == "failed" })
		var list delivery.Log
		b.Call("GET", "/api/portal/me/webhooks/"+hook.ID+"/deliveries", dev, "").Want(200).Into(&list)
		seen := list.Data[0]
		var one delivery.Entry
		b.Call("GET", "/api/portal/me/deliveries/"+seen.ID, dev, "").Want(200).Into(&one)
		if seen.Error != delivery.Failed || one.Error != delivery.Failed || seen.Status != 0 {
			t.Errorf("%s: %+v, %+v", url, seen, one)
		}
		if text := string(one.Tries); strings.Count(text, delivery.Failed) != 3 || strings.Contains(text, "milliseconds") {
			t.Errorf("%s: attempts %s", url, text)
		}
	}
	b.Exec(`update webhooks set disabled_at = now(), disabled_for = 'nothing could be delivered for five days; the last time it refuses connections'`)
	b.Call("GET", "/api/portal/me/webhooks", dev, "").Want(200).Says(`for five days"`).Hides("refuses")
	b.Call("GET", "/api/portal/webhooks", viewer, "").Want(200).Says("the last time it refuses connections")
}

func TestErrorsSayWhatIsWrongAndNothingOfTheNetwork(t *testing.T) {
	b := start(t, options{private: true})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	closed.Close()
	untrusted := httptest.NewUnstartedServer(&receiver{})
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	plain := httptest.NewServer(&receiver{})
	defer plain.Close()
	for url, want := range map[string]string{
		"http://" + address:     "it refuses connections",
		"https://name.invalid/": "its name cannot be resolved",
		untrusted.URL:           "its certificate is not trusted",
		strings.Replace(plain.URL, "http", "https", 1): "it does not speak TLS",
	} {
		hook := b.mine(url)
		b.Call("POST", "/api/portal/me/webhooks/"+hook.ID+"/ping", dev, "").Want(200)
		wait.Until(t, url+" is given up", func() bool { return b.deliveries(hook.ID)[0].State == "failed" })
		if e := b.deliveries(hook.ID)[0]; !strings.HasPrefix(e.Error, want) || strings.Contains(e.Error, "127.0.0.1:") {
			t.Errorf("%s: %+v", url, e)
		}
	}
}

func TestARotatedSecretIsValidBesideTheFormerForAWhile(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	given := shown([]byte(strings.Repeat("k", 24)))
	hook := b.add(dev, "/api/portal/me/webhooks", fmt.Sprintf(`{"url":%q,"events":["*"],"secret":%q}`, server.URL, given))
	if hook.Meta.Secret != "" {
		t.Errorf("a secret that was given came back: %s", hook.Meta.Secret)
	}
	valid := func(secrets ...string) {
		t.Helper()
		before := len(r.messages())
		b.emit(created())
		wait.Until(t, "it arrives", func() bool { return len(r.messages()) == before+1 })
		m := r.messages()[before]
		if n := len(strings.Fields(m.header.Get("Webhook-Signature"))); n != len(secrets) {
			t.Errorf("%d signatures, want %d", n, len(secrets))
		}
		for i, secret := range secrets {
			if err := verify(secret, m.header, m.body, time.Now()); err != nil {
				t.Errorf("secret %d: %v", i, err)
			}
		}
	}
	valid(given)
	path := "/api/portal/me/webhooks/" + hook.ID + "/secret"
	second := b.add(dev, path, "").Meta.Secret
	valid(second, given)
	if b.webhook(hook.ID).FormerUntil == nil {
		t.Error("nobody sees that two secrets are valid")
	}
	third := b.add(dev, path, `{"grace":"1h"}`).Meta.Secret
	valid(third, second)
	b.Exec("update webhooks set former_until = now() - interval '1 second'")
	valid(third)
	fourth := b.add(dev, path, `{"grace":"0s"}`).Meta.Secret
	valid(fourth)

	stored := b.Text("select row_to_json(w)::text || coalesce((select string_agg(coalesce(before::text, '') || coalesce(after::text, ''), '') from audit_log), '') from webhooks w")
	for _, s := range []string{given, second, third, fourth} {
		if strings.Contains(stored, strings.TrimPrefix(s, "whsec_")) || strings.Contains(b.log.String(), s) {
			t.Error("a secret is stored in clear, or logged")
		}
	}
}

func TestAnEndpointThatIsGoneIsDisabledAtOnce(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) }
	server := httptest.NewServer(&r)
	defer server.Close()
	hook := b.mine(server.URL)
	b.emit(created())
	wait.Until(t, "it is disabled", func() bool { return !b.webhook(hook.ID).Enabled })
	w := b.webhook(hook.ID)
	if w.DisabledFor != "it answers 410 Gone" || w.Disabled == nil {
		t.Errorf("webhook %+v", w)
	}
	all := b.letters.letters()
	if len(all) != 1 || all[0].To != "one@example.com" || all[0].Developer != "d1" || all[0].Event != model.WebhookDisabled || !strings.Contains(all[0].Reason, server.URL) {
		t.Errorf("letters %+v", all)
	}
	if by := b.Text("select actor_kind || ' ' || action from audit_log where object_kind = 'webhook' and action = 'disabled'"); by != "system disabled" {
		t.Errorf("audit %q", by)
	}
	before := len(r.messages())
	b.emit(created())
	if n := b.Text("select count(*)::text from deliveries"); n != "1" {
		t.Errorf("%s deliveries", n)
	}
	b.Call("POST", "/api/portal/me/webhooks/"+hook.ID+"/ping", dev, "").Want(409).Says("disabled")

	r.mu.Lock()
	r.answer = nil
	r.mu.Unlock()
	b.Call("POST", "/api/portal/me/webhooks/"+hook.ID+"/enable", dev, "").Want(200)
	b.emit(created())
	wait.Until(t, "it is told again", func() bool { return len(r.messages()) == before+1 })
	if w := b.webhook(hook.ID); !w.Enabled || w.DisabledFor != "" || w.Failing != nil {
		t.Errorf("webhook %+v", w)
	}
}

func TestAnEndpointThatFailsForDaysIsDisabled(t *testing.T) {
	b := start(t, options{private: true})
	server := httptest.NewServer(&receiver{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }})
	defer server.Close()
	b.Exec(`insert into portal_objects (org_id, kind, id, body) values ('o', 'configuration', 'c', '{"email":"portal@example.com"}')`)
	hook := b.add(editor, "/api/portal/webhooks", fmt.Sprintf(`{"url":%q,"events":["*"]}`, server.URL))
	b.emit(created())
	failed := func() bool {
		for _, e := range b.deliveries(hook.ID) {
			if e.State != "failed" {
				return false
			}
		}
		return true
	}
	wait.Until(t, "the message is given up", failed)
	if w := b.webhook(hook.ID); !w.Enabled || w.Failing == nil {
		t.Fatalf("webhook %+v", w)
	}
	b.Exec("update webhooks set failing_since = now() - interval '4 days 23 hours'")
	b.emit(created())
	wait.Until(t, "the message is given up", failed)
	if !b.webhook(hook.ID).Enabled {
		t.Fatal("it is disabled before five days are over")
	}
	b.Exec("update webhooks set failing_since = now() - interval '5 days 1 minute'")
	// What waits meanwhile is given up with it.
	b.Exec(`insert into deliveries (id, org_id, kind, target, event, payload, sealed, state, next_at) values ('later', 'o', 'webhook', $1, 'e', '', false, 'pending', now() + interval '1 hour')`, hook.ID)
	b.emit(created())
	wait.Until(t, "it is disabled", func() bool { return !b.webhook(hook.ID).Enabled })
	if w := b.webhook(hook.ID); !strings.Contains(w.DisabledFor, "five days") || !strings.Contains(w.DisabledFor, "500") {
		t.Errorf("webhook %+v", w)
	}
	if all := b.letters.letters(); len(all) != 1 || all[0].To != "portal@example.com" {
		t.Errorf("letters %+v", all)
	}
	if state := b.Text("select state || ': ' || error from deliveries where id = 'later'"); state != "failed: "+reasonDisabled {
		t.Errorf("what waited is %s", state)
	}
}

func TestAnEndpointThatWorksAgainIsNotFailing(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	hook := b.mine(server.URL)
	b.Exec("update webhooks set failing_since = now() - interval '9 days'")
	b.emit(created())
	wait.Until(t, "it works", func() bool { return b.webhook(hook.ID).Failing == nil })
	if !b.webhook(hook.ID).Enabled {
		t.Error("it is disabled")
	}
}

func TestAMessageIsSentOnceMoreWithTheSameID(t *testing.T) {
	b := start(t, options{private: true})
	var r receiver
	server := httptest.NewServer(&r)
	defer server.Close()
	hook := b.mine(server.URL)
	b.emit(created())
	wait.Until(t, "it is done", func() bool { return b.deliveries(hook.ID)[0].State == "done" })
	id := b.deliveries(hook.ID)[0].ID
	b.Call("POST", "/api/portal/deliveries/"+id+"/replay", approver, "").Want(200).Says(id)
	wait.Until(t, "it arrives again", func() bool { return len(r.messages()) == 2 })
	wait.Until(t, "it is done", func() bool { return b.deliveries(hook.ID)[0].State == "done" })
	first, second := r.messages()[0], r.messages()[1]
	if first.body != second.body || first.header.Get("Webhook-Id") != id || second.header.Get("Webhook-Id") != id {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if err := verify(hook.Meta.Secret, second.header, second.body, time.Now()); err != nil {
		t.Error(err)
	}
	b.Call("POST", "/api/portal/me/deliveries/"+id+"/replay", dev, "").Want(200)
	for _, who := range []string{dev2, foreign, viewer} {
		path := "/api/portal/deliveries/" + id + "/replay"
		if who == dev2 {
			path = "/api/portal/me/deliveries/" + id + "/replay"
		}
		want := 404
		if who == viewer {
			want = 403
		}
		b.Call("POST", path, who, "").Want(want)
	}
	if n := b.Text("select count(*)::text from audit_log where action = 'replayed' and object_id = $1", id); n != "2" {
		t.Errorf("%s entries in the audit log", n)
	}
}

func TestADeletedWebhookIsToldNothingMore(t *testing.T) {
	b := start(t, options{private: true, queue: func(o *delivery.Options) { o.Pauses = []time.Duration{time.Hour} }})
	var r receiver
	r.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }
	server := httptest.NewServer(&r)
	defer server.Close()
	hook := b.mine(server.URL)
	b.emit(created())
	wait.Until(t, "it waits for another attempt", func() bool { e := b.deliveries(hook.ID)[0]; return e.Status == 500 && e.State == "pending" })
	b.Call("DELETE", me+"/"+hook.ID, dev, "").Want(200)
	const given = "select state || ': ' || error from deliveries"
	if what := b.Text(given); what != "failed: "+reasonDeleted {
		t.Errorf("what waited is %s", what)
	}
	b.Call("GET", me+"/"+hook.ID, dev, "").Want(404)
	// What is sent once more, or was on its way, finds nobody.
	b.Call("POST", "/api/portal/deliveries/"+b.Text("select id from deliveries")+"/replay", approver, "").Want(200)
	wait.Until(t, "it is given up", func() bool { return b.Text(given) == "failed: "+reasonDeleted })
	if n := len(r.messages()); n != 1 {
		t.Errorf("%d messages", n)
	}
}
