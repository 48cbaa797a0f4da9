package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

const testToken = "token-of-the-gateways"

// onAdmin starts a gateway API whose definitions and keys belong to a real
// admin, and a gateway that follows it.
func onAdmin(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, live: new(served), events: new(heard), log: new(testenv.Log), counters: counter.NewMemory(nil), keys: keystore.NewMemory()}
	url := b.startAdmin()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections) // the admin waits for them
	src, err := source.NewAdmin(source.AdminOptions{URL: url, Token: secret.New(testToken), Transport: transport, Gateway: "one", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	freely := make(chan struct{})
	close(freely)
	b.live.follow(t, src, freely)
	b.through(url, transport)
	return b
}

func (b *bench) startAdmin() (url string) {
	b.t.Helper()
	dsn := testenv.Database(b.t, func(ctx context.Context, dsn string) error {
		_, err := store.Migrate(ctx, dsn)
		return err
	}, "control")
	st, err := store.Open(b.t.Context(), store.Options{URL: dsn, MaxConns: 5})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(st.Close)
	server, err := admin.New(admin.Deps{
		Store: st, Keys: b.keys, Counters: b.counters, GatewayToken: secret.New(testToken),
		KeyOptions: keys.Options{Hasher: &credential.Hasher{Prefix: credential.DefaultPrefix}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := server.Bootstrap(b.t.Context(), secret.New("first-admin")); err != nil {
		b.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ln) }()
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-ended); err != nil {
			b.t.Error(err)
		}
	})
	url = "http://" + ln.Addr().String()
	first, err := NewAdmin(AdminOptions{URL: url, Token: secret.New("first-admin"), Live: b.live})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := first.do(b.t.Context(), "POST", "/api/orgs", map[string]string{"id": "acme", "name": "Acme"}, nil); err != nil {
		b.t.Fatal(err)
	}
	return url
}

// through starts the gateway API in front of an admin.
func (b *bench) through(url string, transport http.RoundTripper) *Admin {
	b.t.Helper()
	backend, err := NewAdmin(AdminOptions{URL: url, Token: secret.New(testToken), Transport: transport, Live: b.live})
	if err != nil {
		b.t.Fatal(err)
	}
	b.start(Deps{
		Secret: secret.New(testSecret), Live: b.live, Definitions: backend, Keys: backend, ListKeys: true,
		Reloader: backend, Group: backend, Events: b.events, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	})
	return backend
}

// A gateway serves all organisations, and its callers say which one they mean.
func TestObjectsOfEveryOrganisationAreChangedThroughAnAdmin(t *testing.T) {
	b := onAdmin(t)
	b.want("POST", "/svc/apis", definitionOf("nobodys", `"org_id":"nobody",`), 400, `{"status":"error","message":"Validation of API Definition failed. Reason: org_id: names no organisation.","errors":[{"path":"org_id","message":"names no organisation"}]}`)
	b.want("POST", "/svc/apis", definitionOf("weather", `"org_id":"acme",`), 200, done("weather", "added"))
	b.want("POST", "/svc/policies", `{"id":"gold","org_id":"acme","name":"Gold","rate":1,"per":1,"access_rights":{"weather":{}}}`, 200, done("gold", "added"))
	b.reload()
	if api := b.live.API("weather"); api.OrgID != "acme" || b.live.Policies().Get("gold").OrgID != "acme" {
		t.Errorf("organisation %q", api.OrgID)
	}
	made := decoded[change](t, b.call("POST", "/svc/keys", `{"org_id":"acme","apply_policies":["gold"]}`))
	for _, query := range []string{"?hashed=true", "?hashed=true&org_id=acme"} {
		if got := b.call("GET", "/svc/keys/"+made.KeyHash+query, ""); got.status != 200 || !strings.Contains(got.body, `"org_id":"acme"`) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	b.want("GET", "/svc/keys", "", 200, `{"keys":["`+made.KeyHash+`"]}`)
	b.want("GET", "/svc/keys?org_id=acme", "", 200, `{"keys":["`+made.KeyHash+`"]}`)
	b.want("DELETE", "/svc/keys/"+made.KeyHash+"?hashed=true", "", 200, done(made.KeyHash, "deleted"))

	b.want("POST", "/svc/org/keys/acme", orgLimits, 200, done("acme", "added"))
	b.want("GET", "/svc/org/keys", "", 200, `{"keys":["acme"]}`)
	if got := decoded[definition.Session](t, b.call("GET", "/svc/org/keys/acme", "")); got.OrgID != "acme" || got.QuotaMax != 10 {
		t.Errorf("limits %+v", got)
	}
	b.want("DELETE", "/svc/org/keys/acme", "", 200, done("acme", "deleted"))
	b.want("PUT", "/svc/apis/weather", definitionOf("weather", `"tags":["new"],`), 200, done("weather", "modified"))
	b.want("DELETE", "/svc/apis/weather", "", 200, done("weather", "deleted"))
}

func TestDefinitionsOfAnAdminAreChangedThroughIt(t *testing.T) {
	b := onAdmin(t)
	b.want("PUT", "/svc/apis/weather", definitionOf("weather", ""), 404, failed("API not found"))
	b.want("POST", "/svc/apis", definitionOf("weather", `"x-note":"<kept>",`), 200, done("weather", "added"))
	b.reload()
	if got := b.call("GET", "/svc/apis/weather", ""); got.status != 200 || !strings.Contains(got.body, `"x-note":"<kept>"`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	b.want("POST", "/svc/apis", definitionOf("weather", `"tags":["new"],`), 200, done("weather", "added"))
	b.want("PUT", "/svc/apis/weather", definitionOf("weather", `"tags":["new"],`), 200, done("weather", "modified"))
	b.want("PUT", "/svc/apis/weather", definitionOf("other", ""), 400, failed("Request APIID does not match that in Definition! For Update operations these must match."))
	b.want("POST", "/svc/policies", `{"id":"gold","name":"Gold","rate":1,"per":1,"access_rights":{"weather":{}}}`, 200, done("gold", "added"))
	b.want("POST", "/svc/policies", `{"id":"gold","name":"Gold","rate":2,"per":1,"access_rights":{"weather":{}}}`, 200, done("gold", "added"))
	b.want("PUT", "/svc/policies/silver", `{"id":"silver"}`, 404, failed("Policy not found"))
	b.want("PUT", "/svc/policies/gold", `{"id":"gold","name":"Gold","rate":3,"per":1,"access_rights":{"weather":{}}}`, 200, done("gold", "modified"))
	b.reload()
	if api := b.live.API("weather"); len(api.Tags) != 1 || b.live.Policies().Get("gold").Rate != 3 {
		t.Errorf("tags %v, policies %v", api.Tags, b.live.Policies().All())
	}
	made := decoded[change](t, b.call("POST", "/svc/apis", definitionOf("", "")))
	if len(made.Key) != 32 {
		t.Errorf("made %+v", made)
	}
	b.want("DELETE", "/svc/apis/weather", "", 200, done("weather", "deleted"))
	b.want("DELETE", "/svc/apis/weather", "", 404, failed("API not found"))
	b.want("DELETE", "/svc/policies/gold", "", 200, done("gold", "deleted"))
	b.want("DELETE", "/svc/policies/gold", "", 500, failed("Delete failed"))
	b.want("GET", "/svc/reload/group", "", 200, `{"status":"ok","message":""}`)
	if got := b.call("GET", "/svc/reload/group?block=true", ""); got.status != 200 || len(b.live.APIs()) != 1 || b.live.Policies().Len() != 0 {
		t.Errorf("%d %s: %d APIs, %d policies", got.status, got.body, len(b.live.APIs()), b.live.Policies().Len())
	}
}

func TestFaultsOfADefinitionFoundByTheAdmin(t *testing.T) {
	b := onAdmin(t)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	for _, c := range []struct {
		path, body string
		status     int
		message    string
		problems   string
	}{
		{"/svc/apis", strings.Replace(definitionOf("other", ""), "/at-other/", "/at-weather/", 1), 409, "Another API has the same domain and listen path", ""},
		{"/svc/apis", `{"api_id":"../x"}`, 400, "Validation of API Definition failed. Reason: ", "api_id"},
		{"/svc/policies", `{"id":"gold","name":"Gold","access_rights":{"nowhere":{}}}`, 400, `Validation of Policy failed. Reason: access_rights["nowhere"]: names an API that does not exist.`, `access_rights["nowhere"]`},
	} {
		got := b.call("POST", c.path, c.body)
		said := decoded[outcome](t, got)
		if got.status != c.status || !strings.HasPrefix(said.Message, c.message) || (c.problems != "") != (len(said.Errors) > 0) {
			t.Errorf("%s: %d %s", c.body, got.status, got.body)
		}
		if c.problems != "" && said.Errors[0].Path != c.problems {
			t.Errorf("%s: problem at %q", c.body, said.Errors[0].Path)
		}
	}
}

// anOwnKey is aKey of the organisation of the gateways.
var anOwnKey = strings.Replace(aKey, `"org_id":"acme",`, "", 1)

func TestKeysOfAnAdminAreChangedThroughIt(t *testing.T) {
	b := onAdmin(t)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	b.want("GET", "/svc/keys", "", 200, `{"keys":[]}`)
	made := b.create("/svc/keys/create", anOwnKey)
	b.happened(made.KeyHash, event.TokenCreated)
	if _, err := b.keys.Get(t.Context(), made.KeyHash); err != nil {
		t.Errorf("the key store: %v", err)
	}
	b.use(made.KeyHash, 4)
	if left := b.left(made.Key); left != 6 {
		t.Errorf("%d left", left)
	}
	if got := b.call("GET", "/svc/keys/"+made.KeyHash+"?hashed=true", ""); got.status != 200 || strings.Contains(got.body, "access_rights_array") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	modifiedNow := `{"key":"` + made.Key + `","status":"ok","action":"modified","key_hash":"` + made.KeyHash + `"}`
	b.want("PUT", "/svc/keys/"+made.Key+"?suppress_reset=1", anOwnKey, 200, modifiedNow)
	if left := b.left(made.Key); left != 6 {
		t.Errorf("%d left", left)
	}
	b.want("PUT", "/svc/keys/"+made.KeyHash+"?hashed=1", anOwnKey, 200, done(made.KeyHash, "modified"))
	if left := b.left(made.Key); left != 10 {
		t.Errorf("%d left", left)
	}
	b.use(made.KeyHash, 4)
	b.want("POST", "/svc/keys/reset/"+made.Key, "", 200, `{"status":"ok","message":"quota reset"}`)
	if left := b.left(made.Key); left != 10 {
		t.Errorf("%d left", left)
	}
	b.happened(made.KeyHash, event.TokenUpdated, event.TokenUpdated, event.TokenUpdated)
	b.want("GET", "/svc/keys?api_id=weather&filter="+made.KeyHash[:8], "", 200, `{"keys":["`+made.KeyHash+`"]}`)
	b.want("GET", "/svc/keys?filter=zz", "", 200, `{"keys":[]}`)
	b.want("DELETE", "/svc/keys/"+made.Key, "", 200, done(made.Key, "deleted"))
	b.happened(made.KeyHash, event.TokenDeleted)
	named := b.create("/svc/keys/my-key", anOwnKey)
	if !strings.HasSuffix(named.Key, "my-key") || b.left("my-key") != 10 || b.left(named.Key) != 10 {
		t.Errorf("named %+v", named)
	}
}

func TestPoliciesOfAnAdminsKeys(t *testing.T) {
	b := onAdmin(t)
	b.want("POST", "/svc/apis", definitionOf("weather", ""), 200, done("weather", "added"))
	for _, id := range []string{"gold", "silver"} {
		b.want("POST", "/svc/policies", `{"id":"`+id+`","name":"`+id+`","quota_max":7,"quota_renewal_rate":60,"access_rights":{"weather":{}}}`, 200, done(id, "added"))
	}
	made := b.create("/svc/keys", `{"apply_policies":["gold"]}`)
	b.want("POST", "/svc/keys/policy/"+made.KeyHash, `{"policy":"silver"}`, 200, done(made.KeyHash, "updated"))
	got := decoded[definition.Session](t, b.call("GET", "/svc/keys/"+made.Key, ""))
	if strings.Join(got.ApplyPolicies, " ") != "silver" || got.QuotaRemaining != 7 {
		t.Errorf("got %+v", got)
	}
	preview := b.call("POST", "/svc/keys/preview", `{"apply_policies":["gold"]}`)
	if s := decoded[definition.Session](t, preview); preview.status != 200 || s.QuotaMax != 7 || strings.Contains(preview.body, "array") {
		t.Errorf("preview: %d %s", preview.status, preview.body)
	}
}

func TestFaultsOfAKeyFoundByTheAdmin(t *testing.T) {
	b := onAdmin(t)
	b.want("POST", "/svc/apis", definitionOf("weather", `"org_id":"acme",`), 200, done("weather", "added"))
	made := b.create("/svc/keys", aKey)
	for _, c := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/svc/keys/create", `{"org_id":`, 500, "Unmarshalling failed"},
		{"POST", "/svc/keys/create", noRights, 400, "Failed to create key, keys must have at least one Access Rights record set."},
		{"PUT", "/svc/keys/" + made.Key, noRights, 400, "Failed to update key, keys must have at least one Access Rights record set."},
		{"POST", "/svc/keys/create", badPolicy, 500, "Failed to create key - "},
		{"POST", "/svc/keys/my-key", badPolicy, 500, "Failed to create key, ensure security settings are correct."},
		{"PUT", "/svc/keys/" + made.Key, badPolicy, 400, "Failed to update key - "},
		{"POST", "/svc/keys/ab", aKey, 400, "Failed to create key, key id must have 3 characters at least"},
		{"GET", "/svc/keys/unknown", ``, 404, "Key not found"},
		{"PUT", "/svc/keys/unknown", aKey, 404, "Key is not found"},
		{"DELETE", "/svc/keys/unknown", ``, 404, "There is no such key found"},
		{"DELETE", "/svc/keys/..", ``, 404, "There is no such key found"},
		{"POST", "/svc/keys/reset/unknown", ``, 404, "Key not found"},
		{"POST", "/svc/keys/policy/unknown", `{"policy":"gold"}`, 404, "Key not found"},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{"policy":"nowhere"}`, 400, "Failed to update key - "},
	} {
		got := b.call(c.method, c.path, c.body)
		if said := decoded[outcome](t, got); got.status != c.status || said.Status != "error" || !strings.HasPrefix(said.Message, c.message) {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.path, c.body, got.status, got.body, c.status, c.message)
		}
	}
}

// scripted is an admin that answers as a test wants.
type scripted struct {
	mu     sync.Mutex
	answer func(*http.Request) (int, string)
	asked  []string
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, req.Method+" "+req.URL.RequestURI())
	if req.Header.Get("Authorization") != "Bearer "+testToken {
		return nil, fmt.Errorf("credentials %q", req.Header.Get("Authorization"))
	}
	status, body := s.answer(req)
	if status == 0 {
		return nil, errors.New("dial 10.0.0.1: refused")
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

// onScript starts a gateway API in front of such an admin.
func onScript(t *testing.T, answer func(*http.Request) (int, string)) (*bench, *scripted) {
	t.Helper()
	b := &bench{t: t, live: new(served), events: new(heard), log: new(testenv.Log)}
	b.live.put(&definition.Bundle{Revision: "7"})
	s := &scripted{answer: answer}
	b.through("http://admin", s)
	return b, s
}

func always(status int, body string) func(*http.Request) (int, string) {
	return func(*http.Request) (int, string) { return status, body }
}

func TestAnAdminThatCannotAnswer(t *testing.T) {
	const lost = "The admin does not answer; the change may not have been made: try again"
	const token = "The admin refuses this gateway's token: check gateway.token on both sides"
	for _, c := range []struct {
		name    string
		status  int
		body    string
		answer  int
		message string
	}{
		{"away", 0, "", 503, lost},
		{"database away", 503, `{"Status":"Error","Message":"The database is not available; try again"}`, 503, "The admin cannot do it now: The database is not available; try again"},
		{"too many", 429, `{"Status":"Error","Message":"slow down"}`, 503, "The admin cannot do it now: slow down"},
		{"token", 401, `{"Status":"Error","Message":"Not authorised"}`, 500, token},
		{"role", 403, `{"Status":"Error","Message":"access denied"}`, 500, token},
		{"fault", 500, `{"Status":"Error","Message":"Internal error"}`, 500, "The admin cannot do it: Internal error"},
		{"proxy", 502, `<html>`, 500, "gateway.admin_url does not lead to an admin: 502 Bad Gateway"},
		{"not found by somebody else", 404, `<html>`, 500, "gateway.admin_url does not lead to an admin: 404 Not Found"},
		{"redirection", 302, ``, 500, "gateway.admin_url does not lead to an admin: 302 Found"},
		{"conflict", 409, `{"Status":"Error","Message":"taken"}`, 409, "taken"},
		{"too large", 413, `{"Status":"Error","Message":"large"}`, 413, "large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, _ := onScript(t, always(c.status, c.body))
			for _, call := range []struct{ method, path, body string }{
				{"POST", "/svc/apis", definitionOf("a", "")},
				{"PUT", "/svc/apis/a", definitionOf("a", "")},
				{"DELETE", "/svc/apis/a", ""},
				{"POST", "/svc/policies", `{"id":"p"}`},
				{"DELETE", "/svc/policies/p", ""},
				{"POST", "/svc/keys", aKey},
				{"PUT", "/svc/keys/abc", aKey},
				{"GET", "/svc/reload/group", ""},
			} {
				got := b.want(call.method, call.path, call.body, c.answer, failed(c.message))
				if (got.header.Get("Retry-After") == "1") != (c.answer == 503) {
					t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
				}
			}
			if len(b.events.take()) != 0 {
				t.Error("events of what did not happen")
			}
		})
	}
	b, _ := onScript(t, always(0, ""))
	b.want("GET", "/svc/keys/abc", "", 503, failed("The admin does not answer; try again"))
	b.want("GET", "/svc/reload?block=true", "", 503, failed("The admin does not answer; try again"))
	b.want("GET", "/svc/apis", "", 200, `[]`)
	if !strings.Contains(b.log.String(), "10.0.0.1") || strings.Contains(b.log.String(), testToken) {
		t.Errorf("log %s", b.log)
	}
	b, _ = onScript(t, always(200, "<html>"))
	b.want("GET", "/svc/keys/abc", "", 500, failed("The admin's answer cannot be read"))
}

func TestAnIDIsOneSegmentOfAPath(t *testing.T) {
	b, admin := onScript(t, always(404, `{"Status":"Error","Message":"none"}`))
	for id, want := range map[string]string{
		"a%2F..%2Fusers": "DELETE /api/keys/a%2F..%2Fusers?hashed=false", "a%3Fhashed=1": "DELETE /api/keys/a%3Fhashed=1?hashed=false",
		"a%20b+c": "DELETE /api/keys/a%20b+c?hashed=false", "%25": "DELETE /api/keys/%25?hashed=false",
	} {
		if got := b.call("DELETE", "/svc/keys/"+id, ""); got.status != 404 {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
		if last := admin.asked[len(admin.asked)-1]; last != strings.Replace(want, "DELETE", "GET", 1) {
			t.Errorf("%s: %s, want %s", id, last, want)
		}
	}
	before := len(admin.asked)
	for _, path := range []string{"/svc/keys/%2e%2e", "/svc/keys/%2e", "/svc/apis/%2e%2e", "/svc/apis/%2E"} {
		if got := b.call("DELETE", path, ""); got.status != 404 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if len(admin.asked) != before {
		t.Errorf("asked %v", admin.asked[before:])
	}
}

func TestAllPagesOfKeysAreListed(t *testing.T) {
	b, admin := onScript(t, func(r *http.Request) (int, string) {
		if r.URL.Path == "/api/orgs" {
			return 200, `{"Data":[{"id":"o"}],"Pages":1}`
		}
		return 200, fmt.Sprintf(`{"data":{"keys":["a%s","b"]},"pages":3}`, r.URL.Query().Get("p"))
	})
	b.want("GET", "/svc/keys?filter=a&api_id=x", "", 200, `{"keys":["a1","a2","a3"]}`)
	if len(admin.asked) != 4 || admin.asked[3] != "GET /api/apis/keys?api_id=x&org_id=o&p=3&page_size=500&q=a" {
		t.Errorf("asked %q", admin.asked)
	}
}

func TestAReloadWaitsUntilTheAdminsRevisionIsServed(t *testing.T) {
	b, _ := onScript(t, always(200, `{"revision":9}`))
	answered := make(chan response, 1)
	go func() { answered <- b.call("GET", "/svc/reload?block=true", "") }()
	for _, revision := range []string{"8", "x", "10"} {
		select {
		case got := <-answered:
			t.Fatalf("answered at revision %s: %d %s", b.live.Revision(), got.status, got.body)
		case <-time.After(3 * arrivedEvery):
		}
		b.live.put(&definition.Bundle{Revision: revision})
	}
	if got := <-answered; got.status != 200 || got.body != `{"status":"ok","message":"","Meta":{"revision":"10"}}` {
		t.Errorf("got %d %s", got.status, got.body)
	}
	b.live.put(&definition.Bundle{Revision: "11", Skipped: []definition.Skipped{{Source: "weather", Reason: "odd"}}})
	b.want("GET", "/svc/reload?block=true", "", 200, `{"status":"ok","message":"Not everything is served as written: weather: odd","Meta":{"revision":"11","errors":{"weather":"odd"}}}`)
}

func TestAReloadGivesUpOnTheAdminsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := new(served)
		live.put(&definition.Bundle{Revision: "7"})
		backend, err := NewAdmin(AdminOptions{
			URL: "http://admin", Token: secret.New(testToken), Live: live,
			Transport: &scripted{answer: always(200, `{"revision":9}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = backend.Reload(t.Context())
		if err == nil || err.Error() != `This gateway serves revision "7"; the admin's revision 9 has not been applied` {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnInvalidAddressIsRefused(t *testing.T) {
	for _, url := range []string{"", "admin:8081", "ftp://admin", "http://", "://"} {
		if _, err := NewAdmin(AdminOptions{URL: url, Live: new(served)}); err == nil || !strings.Contains(err.Error(), "gateway.admin_url") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := NewAdmin(AdminOptions{URL: "http://admin"}); err == nil {
		t.Error("no Live, but no error")
	}
}

func TestACallThatTheAdminHoldsEnds(t *testing.T) {
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer server.Close()
	defer close(held)
	backend, err := NewAdmin(AdminOptions{URL: server.URL + "/", Token: secret.New(testToken), Live: new(served)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := backend.DeleteAPI(ctx, "a"); statusOf(err) != 503 {
		t.Errorf("got %v", err)
	}
}
