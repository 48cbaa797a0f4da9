package e2e

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// library is an upstream whose every answer is another one.
type library struct {
	url   string
	calls atomic.Int64
	delay atomic.Int64
}

func newLibrary(t testing.TB) *library {
	l := &library{}
	l.url = "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		n := l.calls.Add(1)
		if d := time.Duration(l.delay.Load()); d > 0 {
			<-time.After(d)
		}
		for line := range strings.SplitSeq(string(ctx.QueryArgs().Peek("say")), "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				ctx.Response.Header.Add(name, value)
			}
		}
		switch path := string(ctx.Path()); {
		case strings.HasSuffix(path, "/stream"):
			ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
				for i := range 5 {
					fmt.Fprintf(w, "piece %d of %d;", i, n)
					_ = w.Flush()
				}
			})
		case strings.HasSuffix(path, "/large"):
			ctx.SetBodyString(strings.Repeat("x", 400<<10))
		default:
			fmt.Fprintf(ctx, "answer %d for %s", n, ctx.Request.Header.Peek("Authorization"))
		}
	})
	return l
}

func cached(api object, options object) object {
	all := object{"enable_cache": true, "cache_timeout": 600, "cache_all_safe_requests": true}
	maps.Copy(all, options)
	api["cache_options"] = all
	return api
}

func TestAnswersAreKeptForTheirKeyAlone(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil,
		cached(apiDef("own", up.url, false), nil), cached(apiDef("open", up.url, true), nil),
		cached(apiDef("shared", up.url, false), object{"shared": true}))
	one := g.newKey(object{"access_rights": accessTo("own", "shared"), "rate": 1000, "per": 1, "quota_max": 4, "quota_renewal_rate": 3600})
	two := g.newKey(object{"access_rights": accessTo("own", "shared"), "rate": 1000, "per": 1})
	get := func(api, path, key string) answer {
		return call(t, "GET", g.traffic+"/"+api+path, nil, "Authorization", key)
	}
	first, again, other := get("own", "/a", one), get("own", "/a", one), get("own", "/a", two)
	if first.header.Get("X-Cache") != "miss" || again.body != first.body || again.header.Get("X-Cache") != "hit" || again.header.Get("Age") == "" {
		t.Errorf("%s %v, then %s %v", first, first.header, again, again.header)
	}
	if other.body == first.body || !strings.Contains(other.body, two) {
		t.Errorf("another key is given %s", other)
	}
	// A kept answer is no way past what decides on calls.
	if got := get("own", "/a", ""); got.status != 401 {
		t.Errorf("without a key: %s", got)
	}
	if got := get("own", "/a", one).header.Get("X-Ratelimit-Remaining"); got != "1" {
		t.Errorf("%s calls are left of 4 after 3", got)
	}
	get("own", "/a", one)
	if got := get("own", "/a", one); got.status != 403 {
		t.Errorf("over the quota: %s", got)
	}
	// The upstream sees the keys, and did not say that all may be told the same.
	if a, b := get("shared", "/a", two), get("shared", "/a", two); a.body == b.body {
		t.Errorf("kept without leave: %s", b)
	}
	const public = "/b?say=Cache-Control:%20public,%20max-age=60"
	if a, b := get("shared", public, two), get("shared", public, g.newKey(object{"access_rights": accessTo("shared")})); a.body != b.body {
		t.Errorf("%s, then %s", a, b)
	}
	for _, path := range []string{"/x?say=Set-Cookie:%20a=b", "/x?say=Cache-Control:%20private", "/x?say=Cache-Control:%20no-store", "/x?say=Vary:%20*"} {
		if a, b := get("open", path, ""), get("open", path, ""); a.body == b.body {
			t.Errorf("%s is kept", path)
		}
	}
}

func TestKeptAnswersByHeaderAndCondition(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil, cached(apiDef("open", up.url, true), nil))
	vary := g.traffic + "/open/v?say=Vary:%20Accept-Language"
	de, fr := call(t, "GET", vary, nil, "Accept-Language", "de"), call(t, "GET", vary, nil, "Accept-Language", "fr")
	if de.body == fr.body {
		t.Errorf("both languages are given %s", de)
	}
	if got := call(t, "GET", vary, nil, "Accept-Language", "de"); got.body != de.body {
		t.Errorf("%s, then %s", de, got)
	}
	tagged := g.traffic + "/open/t?say=ETag:%20%22v1%22"
	call(t, "GET", tagged, nil)
	if got := call(t, "GET", tagged, nil, "If-None-Match", `"v1"`); got.status != 304 || got.body != "" || got.header.Get("Etag") != `"v1"` {
		t.Errorf("%s %v", got, got.header)
	}
	if got := call(t, "HEAD", tagged, nil); got.status != 200 || got.header.Get("X-Cache") != "hit" || got.header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %s %v", got, got.header)
	}
	before := up.calls.Load()
	if got := call(t, "POST", tagged, object{}); got.status != 200 || up.calls.Load() != before+1 {
		t.Errorf("POST: %s", got)
	}
}

func TestStreamedAnswersAreKeptAndLargeOnesAreNot(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil, cached(apiDef("open", up.url, true), nil))
	first := call(t, "GET", g.traffic+"/open/stream", nil)
	if got := call(t, "GET", g.traffic+"/open/stream", nil); got.body != first.body || strings.Count(got.body, "piece") != 5 {
		t.Errorf("%s, then %s", first, got)
	}
	call(t, "GET", g.traffic+"/open/large", nil)
	before := up.calls.Load()
	if got := call(t, "GET", g.traffic+"/open/large", nil); len(got.body) != 400<<10 || up.calls.Load() != before+1 {
		t.Errorf("%d bytes, %d calls", len(got.body), up.calls.Load()-before)
	}
}

func TestOneCallGoesUpForManyAtOnce(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	up.delay.Store(int64(300 * time.Millisecond))
	g := newTraffic(t, nil, nil, cached(apiDef("open", up.url, true), nil))
	bodies := make([]string, 20)
	var all sync.WaitGroup
	for i := range bodies {
		all.Go(func() {
			got, err := send("GET", g.traffic+"/open/a", nil)
			if err == nil {
				bodies[i] = got.body
			}
		})
	}
	all.Wait()
	for _, body := range bodies {
		if body != bodies[0] || body == "" {
			t.Errorf("%q and %q", bodies[0], body)
		}
	}
	if n := up.calls.Load(); n != 1 {
		t.Errorf("%d calls went up", n)
	}
}

func TestKeptAnswersAreForgottenOnDemandAndWithTheirDefinition(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	api := cached(apiDef("open", up.url, true), nil)
	g := newTraffic(t, nil, nil, api)
	get := func() string { return call(t, "GET", g.traffic+"/open/a", nil).body }
	first := get()
	if get() != first {
		t.Fatal("nothing is kept")
	}
	metrics := call(t, "GET", g.telemetry+"/metrics", nil).body
	for _, want := range []string{`sluice_answer_cache_total{result="hit"} 1`, `sluice_answer_cache_total{result="miss"} 1`, "sluice_answer_cache_entries 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	got := call(t, http.MethodDelete, g.control+"/svc/cache/open", nil, "X-Svc-Authorization", testSecret)
	if got.status != 200 || got.body != `{"status":"ok","message":"cache invalidated"}` {
		t.Errorf("invalidating: %s", got)
	}
	second := get()
	if second == first || get() != second {
		t.Errorf("%q, then %q", first, second)
	}
	api["name"] = "another name"
	call(t, http.MethodPut, g.control+"/svc/apis/open", api, "X-Svc-Authorization", testSecret)
	call(t, http.MethodGet, g.control+"/svc/reload?block=true", nil, "X-Svc-Authorization", testSecret)
	if get() == second {
		t.Error("an answer outlives its definition")
	}
	if n := strings.Count(g.logged(), `"cache":"hit"`); n != 2 {
		t.Errorf("the log tells of %d kept answers", n)
	}
}

func TestAKeptAnswerEndsWithItsTime(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil, cached(apiDef("open", up.url, true), object{"cache_timeout": 1}))
	first := call(t, "GET", g.traffic+"/open/a", nil).body
	eventually(t, "another answer", func() error {
		if call(t, "GET", g.traffic+"/open/a", nil).body == first {
			return io.ErrNoProgress
		}
		return nil
	})
}

// forgetsEverywhere has one gateway forget the answers to an API, and waits until
// the others have done so too.
func forgetsEverywhere(t *testing.T, gateways []*server, path string, forget func()) {
	t.Helper()
	body := func(g *server) string { return call(t, "GET", g.traffic+path, nil).body }
	before := make([]string, len(gateways))
	for i, g := range gateways {
		if before[i] = body(g); body(g) != before[i] {
			t.Fatalf("gateway %d keeps nothing: %s", i+1, before[i])
		}
	}
	forget()
	for i, g := range gateways {
		eventually(t, fmt.Sprintf("gateway %d forgets", i+1), func() error {
			if got := body(g); got == before[i] {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
	}
}

func TestKeptAnswersAreForgottenByEveryGatewayOfAnAdmin(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	s := newSplit(t, 2, testenv.Postgres(t))
	s.rest.do(http.MethodPost, "/api/apis", cached(apiDef("books", l.url, true), nil))
	s.everywhere("the API", "/books/x", "", status(200))
	forgetsEverywhere(t, s.gateways, "/books/x", func() {
		if got := call(t, "DELETE", s.gateways[0].traffic+"/svc/cache/books", nil, "X-Svc-Authorization", splitSecret); got.status != 200 {
			t.Fatal(got)
		}
	})
	forgetsEverywhere(t, s.gateways, "/books/x", func() { s.rest.do(http.MethodDelete, "/api/apis/books/cache", nil) })
}

func TestKeptAnswersAreForgottenByEveryGatewayOfAStore(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	with := settings{"valkey.url": "redis://" + testenv.Valkey(t).Addr, "valkey.timeout": "5s"}
	first := newTraffic(t, with, nil, cached(apiDef("books", l.url, true), nil))
	second := newTraffic(t, with, nil, cached(apiDef("books", l.url, true), nil))
	forgetsEverywhere(t, []*server{first.server, second.server}, "/books/x", func() {
		if got := second.ask(http.MethodDelete, "/svc/cache/books", nil); got.status != 200 {
			t.Fatal(got)
		}
	})
}
