package admin

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
)

// bundle asks for the configuration as a gateway does.
func (b *bench) bundle(wait, have string, headers ...string) *answer {
	b.t.Helper()
	return b.call("GET", "/api/gateway/bundle?wait="+wait, gatewayToken, "",
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
func (b *bench) atRevision(revision string) *answer {
	b.t.Helper()
	var r *answer
	eventually(b.t, "the bundle is at revision "+revision, func() bool {
		r = b.bundle("0s", "")
		return r.status == 200 && parseBundle(b.t, r.body).Revision == revision
	})
	return r
}

func TestBundleHoldsWhatGatewaysServe(t *testing.T) {
	b := start(t)
	empty := parseBundle(t, b.atRevision("0").body)
	if empty.ConfirmedEmpty || len(empty.APIs) != 0 {
		t.Errorf("a fresh database confirms that it is empty: %+v", empty)
	}
	b.createAPI(b.editor, "a", "/a")
	b.createAPI(b.other, "z", "/z")
	b.call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","access_rights_array":[{"api_id":"a"}]}`).want(200)
	r := b.atRevision("3")
	full := parseBundle(t, r.body)
	if len(full.APIs) != 2 || full.APIs[0].ID != "a" || full.APIs[1].OrgID != "second" || full.Policies[0].AccessRights["a"] == nil {
		t.Errorf("bundle %s", r.body)
	}
	if !strings.Contains(string(r.body), `"later":{"kept":1.50}`) {
		t.Errorf("unknown members are missing: %s", r.body)
	}
	tag := r.header.Get("ETag")
	if !strings.HasPrefix(tag, `"3-0-`) || len(tag) != len(`"3-0-12345678"`) {
		t.Errorf("ETag %s", tag)
	}
	b.call("DELETE", "/api/apis/a?force=true", b.editor, "").want(200)
	b.call("DELETE", "/api/apis/z", b.other, "").want(200)
	if cleared := parseBundle(t, b.atRevision("5").body); !cleared.ConfirmedEmpty {
		t.Error("APIs that were deleted leave a bundle that is not confirmed to be empty")
	}
}

func TestBundleComesCompressedWhereThatIsTaken(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	plain := b.atRevision("1")
	zipped := b.bundle("0s", "", "Accept-Encoding", "br, gzip;q=0.5")
	unzip, err := gzip.NewReader(bytes.NewReader(zipped.body))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(unzip); err != nil || !bytes.Equal(got, plain.body) {
		t.Errorf("gzip: %s: %v", got, err)
	}
	standard := b.bundle("0s", "", "Accept-Encoding", "gzip, zstd")
	if got, err := fasthttp.AppendUnzstdBytes(nil, standard.body); err != nil || !bytes.Equal(got, plain.body) {
		t.Errorf("zstd: %s: %v", got, err)
	}
	if refused := b.bundle("0s", "", "Accept-Encoding", "gzip;q=0"); !bytes.Equal(refused.body, plain.body) {
		t.Errorf("gzip although refused: %q", refused.header.Get("Content-Encoding"))
	}
	if tag := plain.header.Get("ETag"); zipped.header.Get("ETag") != tag || standard.header.Get("ETag") != tag {
		t.Error("the entity tag depends on the encoding")
	}
}

func TestLongPollWaitsAndIsReleasedByAChangeAtAnyAdmin(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").header.Get("ETag")
	started := time.Now()
	if r := b.bundle("300ms", tag); r.status != 304 || time.Since(started) < 300*time.Millisecond || r.header.Get("ETag") != tag {
		t.Errorf("%d after %v", r.status, time.Since(started))
	}
	for _, wait := range []string{"x", "-1s", "1"} {
		b.bundle(wait, tag).want(400)
	}
	_, elsewhere := b.serve(openStore(t, b.dsn))
	const gateways = 40
	results := make(chan *answer, gateways)
	var all sync.WaitGroup
	for range gateways {
		all.Go(func() { results <- b.bundle("30s", tag) })
	}
	eventually(t, "all gateways wait", func() bool { return waiting(t, b.server) == gateways })
	here := b.url
	b.url = elsewhere
	changed := time.Now()
	b.createAPI(b.editor, "b", "/b")
	all.Wait()
	b.url = here
	t.Logf("%d gateways had the change %v after it was sent", gateways, time.Since(changed))
	for range gateways {
		if r := <-results; r.status != 200 || parseBundle(t, r.body).Revision != "2" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

func TestReloadReleasesGatewaysWithTheSameRevision(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	tag := b.atRevision("1").header.Get("ETag")
	released := make(chan *answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	eventually(t, "the gateway waits", func() bool { return waiting(t, b.server) == 1 })
	b.call("POST", "/api/gateway/reload", gatewayToken, "").want(200)
	r := <-released
	if r.status != 200 || parseBundle(t, r.body).Revision != "1" || !strings.HasPrefix(r.header.Get("ETag"), `"1-1-`) {
		t.Errorf("%d %s %s", r.status, r.header.Get("ETag"), r.body)
	}
}

func TestShutdownReleasesWaitingGateways(t *testing.T) {
	b := start(t)
	tag := b.atRevision("0").header.Get("ETag")
	server, url := b.serve(openStore(t, b.dsn))
	here := b.url
	b.url = url
	b.atRevision("0")
	released := make(chan *answer, 1)
	go func() { released <- b.bundle("60s", tag) }()
	eventually(t, "the gateway waits", func() bool { return waiting(t, server) == 1 })
	b.url = here
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second) // less than the gateway would wait
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shut down: %v", err)
	}
	if r := <-released; r.status != 304 {
		t.Errorf("%d", r.status)
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
	eventually(t, "three gateways are known", func() bool {
		return strings.Count(string(b.call("GET", "/api/gateways", b.viewer, "").body), `"name":`) == 3
	})
	b.call("GET", "/api/gateways", b.viewer, "").want(200).says(`"name":"g1"`, `"error":"2 not served as written: a: broken"`, `"version":"1.2"`)
	b.call("GET", "/api/config", b.viewer, "").want(200).says(`"gateways":3`, `"up_to_date":1`)
	before := count(t, b.dsn, "select xmin::text::int from gateways where name = 'g1'")
	say("g1", "1", "", "")
	say("g3", "1", "", "")
	eventually(t, "the third gateway has caught up", func() bool {
		return strings.Contains(string(b.call("GET", "/api/config", b.viewer, "").body), `"up_to_date":2`)
	})
	if after := count(t, b.dsn, "select xmin::text::int from gateways where name = 'g1'"); after != before {
		t.Error("a poll that says nothing new was written")
	}
}

// block keeps everybody out of the database, as if its server were away, and
// returns what lets them in again.
func (b *bench) block() (allow func()) {
	b.t.Helper()
	name := b.dsn[strings.LastIndex(b.dsn, "=")+1:]
	beside := b.dsn + " dbname=postgres"
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
	tag := b.atRevision("1").header.Get("ETag")
	b.call("GET", "/readyz", "", "").want(200)
	allow := b.block()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/apis", ""},
		{"POST", "/api/apis", anAPI("b", "/b")},
		{"PUT", "/api/apis/a", anAPI("a", "/b")},
		{"DELETE", "/api/apis/a", ""},
		{"GET", "/api/users/me", ""},
	} {
		if r := b.call(c.method, c.path, b.admin, c.body).want(503); r.header.Get("Retry-After") != "1" {
			t.Errorf("%s %s: Retry-After %q", c.method, c.path, r.header.Get("Retry-After"))
		}
	}
	if r := b.call("GET", "/readyz", "", ""); r.status != 503 {
		t.Errorf("ready: %d %s", r.status, r.body)
	}
	b.call("GET", "/healthz", "", "").want(200)
	allow()
	eventually(t, "the database is back", func() bool { return b.call("GET", "/readyz", "", "").status == 200 })
	b.call("GET", "/api/apis/b", b.admin, "").want(404)
	released := make(chan *answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	b.createAPI(b.editor, "c", "/c")
	if r := <-released; r.status != 200 {
		t.Errorf("the bundle after the database came back: %d", r.status)
	}
}

func TestStuckDatabaseIsAnsweredInTime(t *testing.T) {
	b := start(t)
	quick, err := store.Open(t.Context(), store.Options{URL: b.dsn, StatementTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quick.Close)
	_, b.url = b.serve(quick)
	release := holdLock(t, b.dsn, "select 1 from config_state for update")
	b.call("POST", "/api/apis", b.editor, anAPI("a", "/a")).want(503)
	b.call("GET", "/api/apis", b.editor, "").want(200).says(`"apis":[]`)
	release()
	b.createAPI(b.editor, "a", "/a")
	if n := count(t, b.dsn, "select revision from config_state"); n != 1 {
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
			sqlExec(t, b.dsn+" dbname=postgres", "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", b.dsn[strings.LastIndex(b.dsn, "=")+1:])
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
				r := b.call("POST", "/api/apis", b.editor, anAPI(id, "/"+id))
				mu.Lock()
				switch r.status {
				case 200:
					acknowledged[id] = true
					written.Add(1)
				case 503:
					refused++
				default:
					t.Errorf("%d %s", r.status, r.body)
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
	stored := count(t, b.dsn, "select count(*) from apis")
	for _, query := range []string{
		"select count(*) from config_history", "select count(*) from config_revisions", "select max(revision) from config_revisions",
		"select count(*) from audit_log where object_kind = 'api'", "select revision from config_state",
	} {
		if n := count(t, b.dsn, query); n != stored {
			t.Errorf("%s: %d beside %d APIs", query, n, stored)
		}
	}
	eventually(t, "the database answers", func() bool { return b.call("GET", "/readyz", "", "").status == 200 })
	for id := range acknowledged {
		b.call("GET", "/api/apis/"+id, b.viewer, "").want(200)
	}
}

func TestMetricsTellOfCallsAndBacklog(t *testing.T) {
	b := start(t)
	b.call("GET", "/api/apis", b.viewer, "").want(200)
	b.call("GET", "/api/apis/none", b.viewer, "").want(404)
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
	tag := b.atRevision("2").header.Get("ETag")
	released := make(chan *answer, 1)
	go func() { released <- b.bundle("30s", tag) }()
	eventually(t, "the gateway waits", func() bool { return waiting(t, b.server) == 1 })
	b.call("DELETE", "/api/apis/a/cache", gatewayToken, "").want(200)
	r := <-released
	if got := parseBundle(t, r.body); r.status != 200 || got.Revision != "2" || len(got.Caches) != 1 || got.Caches["a"] != 1 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	b.call("DELETE", "/api/apis/b/cache", b.editor, "").want(200)
	b.call("DELETE", "/api/apis/a/cache", b.editor, "").want(200)
	eventually(t, "both are to be forgotten", func() bool {
		got := parseBundle(t, b.bundle("0s", "").body)
		return got.Caches["b"] == 2 && got.Caches["a"] == 3
	})
	b.call("DELETE", "/api/apis/nothing/cache", b.editor, "").want(404)
	b.call("DELETE", "/api/apis/a/cache", b.viewer, "").want(403)
	if n := count(t, b.dsn, "select count(*) from audit_log where action = 'emptied' and object_kind = 'cache'"); n != 3 {
		t.Errorf("%d times are in the audit log", n)
	}
	b.call("DELETE", "/api/apis/a", b.editor, "").want(200)
	eventually(t, "an API that is gone is not spoken of", func() bool {
		got := parseBundle(t, b.bundle("0s", "").body)
		return len(got.APIs) == 1 && len(got.Caches) == 1
	})
}
