package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/valyala/fasthttp"
)

func TestWithoutASecretThereIsNoGatewayAPI(t *testing.T) {
	b := onFiles(t)
	deps := b.api.deps
	deps.Secret = secret.New("")
	if _, err := New(deps); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	for _, lack := range []func(*Deps){
		func(d *Deps) { d.Live = nil }, func(d *Deps) { d.Definitions = nil },
		func(d *Deps) { d.Keys = nil }, func(d *Deps) { d.Reloader = nil },
	} {
		deps := b.api.deps
		lack(&deps)
		if _, err := New(deps); err == nil {
			t.Error("incomplete, but no error")
		}
	}
}

func TestOnlyTheSecretLetsIn(t *testing.T) {
	b := onFiles(t)
	const denied = `{"status":"error","message":"Attempted administrative access with invalid or missing key!"}`
	for name, header := range map[string]http.Header{
		"missing":   {},
		"empty":     {"X-Svc-Authorization": {""}},
		"wrong":     {"X-Svc-Authorization": {"wrong"}},
		"beginning": {"X-Svc-Authorization": {testSecret[:31]}},
		"longer":    {"X-Svc-Authorization": {testSecret + "0"}},
		"case":      {"X-Svc-Authorization": {strings.ToUpper(testSecret)}},
		"two":       {"X-Svc-Authorization": {testSecret, "wrong"}},
		"elsewhere": {"Authorization": {testSecret}},
	} {
		for _, path := range []string{"/svc/apis", "/svc/", "/svc", "/svc/nowhere", "/svc/keys/x", "/svc/reload"} {
			for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
				got := b.send(method, path, "", header)
				if got.status != 403 || got.body != denied || got.header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: %s %s: %d %s", name, method, path, got.status, got.body)
				}
			}
		}
	}
	if got := b.send("GET", "/svc/apis", "", http.Header{"X-Svc-Authorization": {testSecret}}); got.status != 200 {
		t.Errorf("right secret: %d %s", got.status, got.body)
	}
}

func TestGuessesAtTheSecretAreCountedAndSlowedDown(t *testing.T) {
	b := onFiles(t, func(d *Deps) { d.LoginRate = 3 })
	wrong := http.Header{"X-Svc-Authorization": {"guess-at-the-secret"}}
	for i := range 3 {
		if got := b.send("GET", "/svc/keys", "", wrong); got.status != 403 {
			t.Errorf("guess %d: %d %s", i, got.status, got.body)
		}
	}
	for range 2 {
		got := b.send("GET", "/svc/keys", "", wrong)
		if got.status != 429 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "Too many failed attempts from this address") {
			t.Errorf("after 3 guesses: %d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
		}
	}
	if got := b.call("GET", "/svc/apis", ""); got.status != 200 {
		t.Errorf("the right secret from the same address: %d %s", got.status, got.body)
	}
	if got := b.send("GET", "/hello", "", nil); got.status != 200 {
		t.Errorf("a health path: %d", got.status)
	}
	text := b.log.String()
	if n := strings.Count(text, "a call without the right secret was refused"); n != 3 || !strings.Contains(text, "address=0.0.0.0") || strings.Contains(text, "guess-at") {
		t.Errorf("%d lines in the log:\n%s", n, text)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.api.Metrics())
	found, err := registry.Gather()
	if err != nil || len(found) != 1 || found[0].GetName() != "sluice_control_refused_total" || found[0].Metric[0].GetCounter().GetValue() != 5 {
		t.Errorf("measured %v: %v", found, err)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	b := onFiles(t)
	for _, path := range []string{"/svc", "/svc/", "/svc/nowhere", "/svc/apis/x/y", "/svc/org", "/svc/caches/x", "/svc/certs", "/svc//apis", "/svc/apis/../keys", "/elsewhere"} {
		b.want("GET", path, "", 404, failed("Not found"))
	}
	for _, c := range []struct{ method, path, allow string }{
		{"PATCH", "/svc/apis", "GET, POST"},
		{"OPTIONS", "/svc/apis", "GET, POST"},
		{"POST", "/svc/apis/x", "DELETE, GET, PUT"},
		{"PUT", "/svc/keys", "GET, POST"},
		{"POST", "/svc/reload/group", "GET"},
		{"GET", "/svc/keys/reset/x", "POST"},
		{"POST", "/hello", "GET"},
		{"DELETE", "/ready/", "GET"},
	} {
		got := b.want(c.method, c.path, "", 405, failed("Method not allowed"))
		if got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, c.path, got.header.Get("Allow"), c.allow)
		}
	}
}

func TestAFinalSlashIsIgnored(t *testing.T) {
	b := onFiles(t)
	b.want("POST", "/svc/apis/", definitionOf("weather", ""), 200, done("weather", "added"))
	b.want("GET", "/svc/reload/group/", "", 200, `{"status":"ok","message":""}`)
	b.want("GET", "/svc/policies/weather/", "", 404, failed("Policy not found"))
}

func TestUnknownQueryParametersAreRefused(t *testing.T) {
	b := onFiles(t)
	for _, c := range []struct{ method, path, message string }{
		{"GET", "/svc/reload?blok=true", `Unknown query parameter "blok"; this call takes block`},
		{"GET", "/svc/apis?x", `Unknown query parameter "x"; this call takes none`},
		{"GET", "/svc/reload?block=yes", `Query parameter "block" must be true, 1, false or 0, not "yes"`},
		{"GET", "/svc/reload?block", `Query parameter "block" must be true, 1, false or 0, not ""`},
		{"GET", "/svc/reload/group?block=2", `Query parameter "block" must be true, 1, false or 0, not "2"`},
		{"GET", "/svc/reload?block=true&block=false", `Query parameter "block" stands twice`},
		{"GET", "/svc/keys/x?hashed=maybe", `Query parameter "hashed" must be true, 1, false or 0, not "maybe"`},
		{"GET", "/svc/keys/x?username=true&hashed=true", "username=true names a user and hashed=true a hash; send one of them"},
		{"GET", "/svc/keys?filter=" + strings.Repeat("x", 1025), `Query parameter "filter" must be UTF-8 of at most 1024 bytes`},
		{"GET", "/svc/keys?filter=%ff", `Query parameter "filter" must be UTF-8 of at most 1024 bytes`},
		{"GET", "/svc/keys?filter=%zz", `The query is malformed: invalid URL escape "%zz"`},
		{"GET", "/svc/keys/" + strings.Repeat("x", 1025), "The id in the path must be percent-encoded UTF-8 of at most 1024 bytes"},
		{"GET", "/svc/keys/%ff", "The id in the path must be percent-encoded UTF-8 of at most 1024 bytes"},
	} {
		got := b.call(c.method, c.path, "")
		if said := decoded[outcome](t, got); got.status != 400 || said.Message != c.message {
			t.Errorf("%s: %d %s\nwant %s", c.path, got.status, got.body, c.message)
		}
	}
}

func TestABodyIsBounded(t *testing.T) {
	b := onFiles(t)
	tooLarge := failed("The body is larger than 4194304 bytes")
	b.want("POST", "/svc/apis", strings.Repeat(" ", maxBody+1), 413, tooLarge)
	b.want("POST", "/svc/keys", strings.Repeat(" ", maxBody+1), 413, tooLarge)
	large := definitionOf("weather", `"graphql":{"schema":"`+strings.Repeat("x", maxBody-1000)+`"},`)
	b.want("POST", "/svc/apis", large, 200, done("weather", "added"))
}

func TestAConnectionEndsWhenABodyWasNotRead(t *testing.T) {
	b := onFiles(t)
	for name, head := range map[string]string{
		"no secret": "POST /svc/apis HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n",
		"too large": "POST /svc/apis HTTP/1.1\r\nHost: g\r\nX-Svc-Authorization: " + testSecret + "\r\nContent-Length: 9000000\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := b.dial()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() {
				_, _ = conn.Write([]byte(head))
				_, _ = conn.Write([]byte(strings.Repeat("GET /live HTTP/1.1\r\nHost: g\r\n\r\n", 300_000))) // until it is closed
			}()
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !resp.Close {
				t.Errorf("%d without Connection: close", resp.StatusCode)
			}
			_ = resp.Body.Close()
			if more, err := http.ReadResponse(in, nil); err == nil {
				t.Errorf("a further answer: %d", more.StatusCode)
			}
		})
	}
}

func TestAPanicIsAnsweredAndLogged(t *testing.T) {
	b := onFiles(t, func(d *Deps) { d.Definitions = faulty{} })
	b.want("DELETE", "/svc/apis/x", "", 500, failed("Internal error"))
	b.want("DELETE", "/svc/policies/x", "", 500, failed("Internal error; the gateway's log has the cause"))
	for _, want := range []string{"boom", "runtime/debug.Stack", "disk on fire"} {
		if !strings.Contains(b.log.String(), want) {
			t.Errorf("log without %q: %s", want, b.log)
		}
	}
}

// faulty fails in ways that nobody expects.
type faulty struct{ Definitions }

func (faulty) DeleteAPI(context.Context, string) error    { panic("boom") }
func (faulty) DeletePolicy(context.Context, string) error { return errors.New("disk on fire") }

func TestAPortWithoutTheGatewayAPIServesHealthOnly(t *testing.T) {
	b := onFiles(t)
	b.reload()
	health := NewHealth(Deps{Live: b.live, Version: "1.2.3"})
	for path, want := range map[string]int{"/hello": 200, "/health": 200, "/ready": 200, "/live": 200, "/svc/apis": 404, "/svc": 404} {
		var rc fasthttp.RequestCtx
		rc.Request.SetRequestURI("http://gateway" + path)
		rc.Request.Header.Set("X-Svc-Authorization", testSecret)
		health.Handle(&rc)
		if got := rc.Response.StatusCode(); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

func TestResponsesAreNotCacheable(t *testing.T) {
	b := onFiles(t)
	if got := b.call("GET", "/svc/apis", ""); got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", got.header)
	}
}

func TestTheListOfAPIsIsInOrder(t *testing.T) {
	b := onFiles(t)
	for i := range 20 {
		b.write(fmt.Sprintf("%d.json", 97*i%20), definitionOf(fmt.Sprintf("api%02d", i), ""))
	}
	b.reload()
	var ids []string
	for _, api := range decoded[[]definition.API](t, b.call("GET", "/svc/apis", "")) {
		ids = append(ids, api.ID)
	}
	if len(ids) != 20 || ids[0] != "api00" || ids[19] != "api19" {
		t.Errorf("got %v", ids)
	}
}
