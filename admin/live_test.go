package admin

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// bundle asks for the configuration as a gateway does.
func (b *bench) bundle(poll, have string, headers ...string) *admintest.Answer {
	b.t.Helper()
	return b.Call("GET", "/api/gateway/bundle?wait="+poll, gatewayToken, "",
		append([]string{"If-None-Match", have, "Accept-Encoding", "identity"}, headers...)...)
}

func parseBundle(t testing.TB, body []byte) *definition.Bundle {
	t.Helper()
	bundle, err := definition.ParseBundle(body)
	if err != nil || len(bundle.Skipped) > 0 {
		t.Fatalf("%v, skipped %v in %s", err, bundle.Skipped, body)
	}
	return bundle
}

// atRevision waits until the bundle is at a revision.
func (b *bench) atRevision(revision string) *admintest.Answer {
	b.t.Helper()
	var r *admintest.Answer
	wait.Until(b.t, "the bundle is at revision "+revision, func() bool {
		r = b.bundle("0s", "")
		return r.Status == 200 && parseBundle(b.t, r.Body).Revision == revision
	})
	return r
}

func TestBundleHoldsWhatGatewaysServe(t *testing.T) {
	b := start(t)
	empty := parseBundle(t, b.atRevision("0").Body)
	if empty.ConfirmedEmpty || len(empty.APIs) != 0 {
		t.Errorf("a fresh database confirms that it is empty: %+v", empty)
	}
	b.createAPI(b.editor, "a", "/a")
	b.createAPI(b.other, "z", "/z")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","access_rights_array":[{"api_id":"a"}]}`).Want(200)
	r := b.atRevision("3")
	full := parseBundle(t, r.Body)
	if len(full.APIs) != 2 || full.APIs[0].ID != "a" || full.APIs[1].OrgID != "second" || full.Policies[0].AccessRights["a"] == nil {
		t.Errorf("bundle %s", r.Body)
	}
	if !strings.Contains(string(r.Body), `"later":{"kept":1.50}`) {
		t.Errorf("unknown members are missing: %s", r.Body)
	}
	tag := r.Header.Get("ETag")
	if !strings.HasPrefix(tag, `"3-0-`) || len(tag) != len(`"3-0-12345678"`) {
		t.Errorf("ETag %s", tag)
	}
	b.Call("DELETE", "/api/apis/a?force=true", b.editor, "").Want(200)
	b.Call("DELETE", "/api/apis/z", b.other, "").Want(200)
	if cleared := parseBundle(t, b.atRevision("5").Body); !cleared.ConfirmedEmpty {
		t.Error("APIs that were deleted leave a bundle that is not confirmed to be empty")
	}
}

func TestBundleComesCompressedWhereThatIsTaken(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	plain := b.atRevision("1")
	zipped := b.bundle("0s", "", "Accept-Encoding", "br, gzip;q=0.5")
	unzip, err := gzip.NewReader(bytes.NewReader(zipped.Body))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(unzip); err != nil || !bytes.Equal(got, plain.Body) {
		t.Errorf("gzip: %s: %v", got, err)
	}
	standard := b.bundle("0s", "", "Accept-Encoding", "gzip, zstd")
	if got, err := fasthttp.AppendUnzstdBytes(nil, standard.Body); err != nil || !bytes.Equal(got, plain.Body) {
		t.Errorf("zstd: %s: %v", got, err)
	}
	if refused := b.bundle("0s", "", "Accept-Encoding", "gzip;q=0"); !bytes.Equal(refused.Body, plain.Body) {
		t.Errorf("gzip although refused: %q", refused.Header.Get("Content-Encoding"))
	}
	if tag := plain.Header.Get("ETag"); zipped.Header.Get("ETag") != tag || standard.Header.Get("ETag") != tag {
		t.Error("the entity tag depends on the encoding")
	}
}

func TestLongPollWaitsAndIsReleasedByAChangeAtAnyAdmin(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").Header.Get("ETag")
	started := time.Now()
	if r := b.bundle("300ms", tag); r.Status != 304 || time.Since(started) < 300*time.Millisecond || r.Header.Get("ETag") != tag {
		t.Errorf("%d after %v", r.Status, time.Since(started))
	}
	for _, poll := range []string{"x", "-1s", "1"} {
		b.bundle(poll, tag).Want(400)
	}
	_, elsewhere := b.serve(b.Open(store.Options{MaxConns: 10}))
	const gateways = 40
	results := make(chan *admintest.Answer, gateways)
	var all sync.WaitGroup
	for range gateways {
		all.Go(func() { results <- b.bundle("30s", tag) })
	}
	wait.Until(t, "all gateways wait", func() bool { return waiting(t, b.server) == gateways })
	here := b.URL
	b.URL = elsewhere
	changed := time.Now()
	b.createAPI(b.editor, "b", "/b")
	all.Wait()
	b.URL = here
	t.Logf("%d gateways had the change %v after it was sent", gateways, time.Since(changed))
	for range gateways {
		if r := <-results; r.Status != 200 || parseBundle(t, r.Body).Revision != "2" {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
}

func TestReloadReleasesGatewaysWithTheSameRevision(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").Header.Get("ETag")
	released := make(chan *admintest.Answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	wait.Until(t, "the gateway waits", func() bool { return waiting(t, b.server) == 1 })
	b.Call("POST", "/api/gateway/reload", gatewayToken, "").Want(200)
	r := <-released
	if r.Status != 200 || parseBundle(t, r.Body).Revision != "1" || !strings.HasPrefix(r.Header.Get("ETag"), `"1-1-`) {
		t.Errorf("%d %s %s", r.Status, r.Header.Get("ETag"), r.Body)
	}
}

func TestShutdownReleasesWaitingGateways(t *testing.T) {
	b := start(t)
	tag := b.atRevision("0").Header.Get("ETag")
	server, url := b.serve(b.Open(store.Options{MaxConns: 10}))
	here := b.URL
	b.URL = url
	b.atRevision("0")
	released := make(chan *admintest.Answer, 1)
	go func() { released <- b.bundle("60s", tag) }()
	wait.Until(t, "the gateway waits", func() bool { return waiting(t, server) == 1 })
	b.URL = here
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second) // less than the gateway would wait
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if r := <-released; r.Status != 304 {
		t.Errorf("%d", r.Status)
	}
}

// Browsers and clients open connections before they have a request for them.
func TestShutdownDoesNotWaitForConnectionsWithoutARequest(t *testing.T) {
	t.Parallel()
	b := start(t)
	server, url := b.serve(b.Open(store.Options{MaxConns: 10}))
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	here := b.URL
	b.URL = url
	b.Call("GET", "/api/apis", b.viewer, "").Want(200) // all three are accepted now
	b.URL = here
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than the server waits for a request
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shut down: %v", err)
	}
}

func TestGatewaysReportWhatTheyServe(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.atRevision("1")
	say := func(name, revision, failed, err string) {
		b.bundle("0s", "", "X-Sluice-Gateway", name, "X-Sluice-Group", "default", "X-Sluice-Version", "1.2",
			"X-Sluice-Revision", revision, "X-Sluice-Failed", failed, "X-Sluice-Error", err)
	}
	say("g1", "1", "", "")
	say("g2", "1", "2", "a: broken")
	say("g3", "0", "", "")
	say("", "1", "", "")
	wait.Until(t, "three gateways are known", func() bool {
		return strings.Count(string(b.Call("GET", "/api/gateways", b.viewer, "").Body), `"name":`) == 3
	})
	b.Call("GET", "/api/gateways", b.viewer, "").Want(200).Says(`"name":"g1"`, `"error":"2 not served as written: a: broken"`, `"version":"1.2"`)
	b.Call("GET", "/api/config", b.viewer, "").Want(200).Says(`"gateways":3`, `"up_to_date":1`)
	b.Call("GET", "/api/config", b.viewer, "").Want(200).Says(`"behind":["g2","g3"]`)
	before := b.Count("select xmin::text::int from gateways where name = 'g1'")
	say("g1", "1", "", "")
	say("g3", "1", "", "")
	wait.Until(t, "the third gateway has caught up", func() bool {
		return strings.Contains(string(b.Call("GET", "/api/config", b.viewer, "").Body), `"up_to_date":2`)
	})
	if after := b.Count("select xmin::text::int from gateways where name = 'g1'"); after != before {
		t.Error("a poll that says nothing new was written")
	}
	b.Call("DELETE", "/api/gateways/g2", b.viewer, "").Want(403)
	b.Call("DELETE", "/api/gateways/g2", b.editor, "").Want(403)
	b.Call("DELETE", "/api/gateways/g2", gatewayToken, "").Want(200)
	b.Call("DELETE", "/api/gateways/g2", b.admin, "").Want(404)
	b.Call("GET", "/api/config", b.viewer, "").Want(200).Says(`"gateways":2`, `"behind":[]`)
	say("g2", "1", "", "")
	wait.Until(t, "a gateway that was forgotten reports again", func() bool {
		return strings.Contains(string(b.Call("GET", "/api/config", b.viewer, "").Body), `"gateways":3`)
	})
}

// block keeps everybody out of the database, as if its server were away, and
// returns what lets them in again.
func (b *bench) block() (allow func()) {
	b.t.Helper()
	name := b.DSN[strings.LastIndex(b.DSN, "=")+1:]
	beside := b.DSN + " dbname=postgres"
	sqlExec(b.t, beside, "alter database "+name+" allow_connections false")
	sqlExec(b.t, beside, "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)
	return func() {
		b.t.Helper()
		sqlExec(b.t, beside, "alter database "+name+" allow_connections true")
	}
}

func TestDatabaseAwayIsTemporary(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").Header.Get("ETag")
	b.Call("GET", "/readyz", "", "").Want(200)
	allow := b.block()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/apis", ""},
		{"POST", "/api/apis", anAPI("b", "/b")},
		{"PUT", "/api/apis/a", anAPI("a", "/b")},
		{"DELETE", "/api/apis/a", ""},
		{"GET", "/api/users/me", ""},
	} {
		if r := b.Call(c.method, c.path, b.admin, c.body).Want(503); r.Header.Get("Retry-After") != "1" {
			t.Errorf("%s %s: Retry-After %q", c.method, c.path, r.Header.Get("Retry-After"))
		}
	}
	if r := b.Call("GET", "/readyz", "", ""); r.Status != 503 {
		t.Errorf("ready: %d %s", r.Status, r.Body)
	}
	b.Call("GET", "/healthz", "", "").Want(200)
	allow()
	wait.Until(t, "the database is back", func() bool { return b.Call("GET", "/readyz", "", "").Status == 200 })
	b.Call("GET", "/api/apis/b", b.admin, "").Want(404)
	released := make(chan *admintest.Answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	b.createAPI(b.editor, "c", "/c")
	if r := <-released; r.Status != 200 {
		t.Errorf("the bundle after the database came back: %d", r.Status)
	}
}

func TestStuckDatabaseIsAnsweredInTime(t *testing.T) {
	b := start(t)
	quick, err := store.Open(t.Context(), store.Options{URL: b.DSN, StatementTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quick.Close)
	_, b.URL = b.serve(quick)
	release := holdLock(t, b.DSN, "select 1 from config_state for update")
	b.Call("POST", "/api/apis", b.editor, anAPI("a", "/a")).Want(503)
	b.Call("GET", "/api/apis", b.editor, "").Want(200).Says(`"apis":[]`)
	release()
	b.createAPI(b.editor, "a", "/a")
	if n := b.Count("select revision from config_state"); n != 1 {
		t.Errorf("revision %d: the refused call left a gap", n)
	}
}

func TestNothingIsHalfWrittenWhenConnectionsBreak(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var killer, writers sync.WaitGroup
	var written atomic.Int64
	killer.Go(func() {
		for ctx.Err() == nil {
			sqlExec(t, b.DSN+" dbname=postgres", "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", b.DSN[strings.LastIndex(b.DSN, "=")+1:])
			had := written.Load()
			for ctx.Err() == nil && written.Load() == had { // on a busy machine too some calls come through
				<-time.After(15 * time.Millisecond)
			}
		}
	})
	var mu sync.Mutex
	acknowledged, refused := map[string]bool{}, 0
	enough := func(i int) bool {
		mu.Lock()
		defer mu.Unlock()
		return i >= 60 && refused > 0 || i >= 1000
	}
	for w := range 4 {
		writers.Go(func() {
			for i := 0; !enough(i); i++ {
				id := fmt.Sprintf("w%d-%d", w, i)
				r := b.Call("POST", "/api/apis", b.editor, anAPI(id, "/"+id))
				mu.Lock()
				switch r.Status {
				case 200:
					acknowledged[id] = true
					written.Add(1)
				case 503:
					refused++
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
				mu.Unlock()
			}
		})
	}
	writers.Wait()
	cancel()
	killer.Wait()
	t.Logf("%d acknowledged, %d refused", len(acknowledged), refused)
	if refused == 0 || len(acknowledged) == 0 {
		t.Errorf("%d acknowledged, %d refused: nothing was tested", len(acknowledged), refused)
	}
	stored := b.Count("select count(*) from apis")
	for _, query := range []string{
		"select count(*) from config_history", "select count(*) from config_revisions", "select max(revision) from config_revisions",
		"select count(*) from audit_log where object_kind = 'api'", "select revision from config_state",
	} {
		if n := b.Count(query); n != stored {
			t.Errorf("%s: %d beside %d APIs", query, n, stored)
		}
	}
	wait.Until(t, "the database answers", func() bool { return b.Call("GET", "/readyz", "", "").Status == 200 })
	for id := range acknowledged {
		b.Call("GET", "/api/apis/"+id, b.viewer, "").Want(200)
	}
}

func TestMetricsTellOfCallsAndBacklog(t *testing.T) {
	b := start(t)
	b.Call("GET", "/api/apis", b.viewer, "").Want(200)
	b.Call("GET", "/api/apis/none", b.viewer, "").Want(404)
	families := gather(t, b.server)
	for name, want := range map[string]string{
		"sluice_admin_requests_total": `code:404 route:GET /api/apis/{id}`,
		"sluice_outbox_pending":       "0",
	} {
		if !strings.Contains(families[name], want) || families[name] == "" {
			t.Errorf("%s: %q, want %q", name, families[name], want)
		}
	}
}

func TestGatewaysAreToldToForgetAnswersThatTheyKeep(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.createAPI(b.editor, "b", "/b")
	tag := b.atRevision("2").Header.Get("ETag")
	released := make(chan *admintest.Answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	wait.Until(t, "the gateway waits", func() bool { return waiting(t, b.server) == 1 })
	b.Call("DELETE", "/api/apis/a/cache", gatewayToken, "").Want(200)
	r := <-released
	if got := parseBundle(t, r.Body); r.Status != 200 || got.Revision != "2" || len(got.Caches) != 1 || got.Caches["a"] != 1 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	b.Call("DELETE", "/api/apis/b/cache", b.editor, "").Want(200)
	b.Call("DELETE", "/api/apis/a/cache", b.editor, "").Want(200)
	wait.Until(t, "both are to be forgotten", func() bool {
		got := parseBundle(t, b.bundle("0s", "").Body)
		return got.Caches["b"] == 2 && got.Caches["a"] == 3
	})
	b.Call("DELETE", "/api/apis/nothing/cache", b.editor, "").Want(404)
	b.Call("DELETE", "/api/apis/a/cache", b.viewer, "").Want(403)
	if n := b.Count("select count(*) from audit_log where action = 'emptied' and object_kind = 'cache'"); n != 3 {
		t.Errorf("%d times are in the audit log", n)
	}
	b.Call("DELETE", "/api/apis/a", b.editor, "").Want(200)
	wait.Until(t, "an API that is gone is not spoken of", func() bool {
		got := parseBundle(t, b.bundle("0s", "").Body)
		return len(got.APIs) == 1 && len(got.Caches) == 1
	})
}
