package traffic

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

	"github.com/sluicegate/sluice/internal/e2e/rig"
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
		cached(rig.APIDef("own", up.url, false), nil), cached(rig.APIDef("open", up.url, true), nil),
		cached(rig.APIDef("shared", up.url, false), object{"shared": true}))
	one := g.newKey(object{"access_rights": rig.AccessTo("own", "shared"), "rate": 1000, "per": 1, "quota_max": 4, "quota_renewal_rate": 3600})
	two := g.newKey(object{"access_rights": rig.AccessTo("own", "shared"), "rate": 1000, "per": 1})
	get := func(api, path, key string) rig.Answer {
		return rig.Call(t, "GET", g.Traffic+"/"+api+path, nil, "Authorization", key)
	}
	first, again, other := get("own", "/a", one), get("own", "/a", one), get("own", "/a", two)
	if first.Header.Get("X-Cache") != "miss" || again.Body != first.Body || again.Header.Get("X-Cache") != "hit" || again.Header.Get("Age") == "" {
		t.Errorf("%s %v, then %s %v", first, first.Header, again, again.Header)
	}
	if other.Body == first.Body || !strings.Contains(other.Body, two) {
		t.Errorf("another key is given %s", other)
	}
	// A kept answer is no way past what decides on calls.
	if got := get("own", "/a", ""); got.Status != 401 {
		t.Errorf("without a key: %s", got)
	}
	if got := get("own", "/a", one).Header.Get("X-Ratelimit-Remaining"); got != "1" {
		t.Errorf("%s calls are left of 4 after 3", got)
	}
	get("own", "/a", one)
	if got := get("own", "/a", one); got.Status != 403 {
		t.Errorf("over the quota: %s", got)
	}
	// The upstream sees the keys, and did not say that all may be told the same.
	if a, b := get("shared", "/a", two), get("shared", "/a", two); a.Body == b.Body {
		t.Errorf("kept without leave: %s", b)
	}
	const public = "/b?say=Cache-Control:%20public,%20max-age=60"
	if a, b := get("shared", public, two), get("shared", public, g.newKey(object{"access_rights": rig.AccessTo("shared")})); a.Body != b.Body {
		t.Errorf("%s, then %s", a, b)
	}
	for _, path := range []string{"/x?say=Set-Cookie:%20a=b", "/x?say=Cache-Control:%20private", "/x?say=Cache-Control:%20no-store", "/x?say=Vary:%20*"} {
		if a, b := get("open", path, ""), get("open", path, ""); a.Body == b.Body {
			t.Errorf("%s is kept", path)
		}
	}
}

func TestKeptAnswersByHeaderAndCondition(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil, cached(rig.APIDef("open", up.url, true), nil))
	vary := g.Traffic + "/open/v?say=Vary:%20Accept-Language"
	de, fr := rig.Call(t, "GET", vary, nil, "Accept-Language", "de"), rig.Call(t, "GET", vary, nil, "Accept-Language", "fr")
	if de.Body == fr.Body {
		t.Errorf("both languages are given %s", de)
	}
	if got := rig.Call(t, "GET", vary, nil, "Accept-Language", "de"); got.Body != de.Body {
		t.Errorf("%s, then %s", de, got)
	}
	tagged := g.Traffic + "/open/t?say=ETag:%20%22v1%22"
	rig.Call(t, "GET", tagged, nil)
	if got := rig.Call(t, "GET", tagged, nil, "If-None-Match", `"v1"`); got.Status != 304 || got.Body != "" || got.Header.Get("Etag") != `"v1"` {
		t.Errorf("%s %v", got, got.Header)
	}
	if got := rig.Call(t, "HEAD", tagged, nil); got.Status != 200 || got.Header.Get("X-Cache") != "hit" || got.Header.Get("Content-Length") == "0" {
		t.Errorf("HEAD: %s %v", got, got.Header)
	}
	before := up.calls.Load()
	if got := rig.Call(t, "POST", tagged, object{}); got.Status != 200 || up.calls.Load() != before+1 {
		t.Errorf("POST: %s", got)
	}
}

func TestStreamedAnswersAreKeptAndLargeOnesAreNot(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	g := newTraffic(t, nil, nil, cached(rig.APIDef("open", up.url, true), nil))
	first := rig.Call(t, "GET", g.Traffic+"/open/stream", nil)
	if got := rig.Call(t, "GET", g.Traffic+"/open/stream", nil); got.Body != first.Body || strings.Count(got.Body, "piece") != 5 {
		t.Errorf("%s, then %s", first, got)
	}
	rig.Call(t, "GET", g.Traffic+"/open/large", nil)
	before := up.calls.Load()
	if got := rig.Call(t, "GET", g.Traffic+"/open/large", nil); len(got.Body) != 400<<10 || up.calls.Load() != before+1 {
		t.Errorf("%d bytes, %d calls", len(got.Body), up.calls.Load()-before)
	}
}

func TestOneCallGoesUpForManyAtOnce(t *testing.T) {
	t.Parallel()
	up := newLibrary(t)
	up.delay.Store(int64(300 * time.Millisecond))
	g := newTraffic(t, nil, nil, cached(rig.APIDef("open", up.url, true), nil))
	bodies := make([]string, 20)
	var all sync.WaitGroup
	for i := range bodies {
		all.Go(func() {
			got, err := rig.Send("GET", g.Traffic+"/open/a", nil)
			if err == nil {
				bodies[i] = got.Body
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
	api := cached(rig.APIDef("open", up.url, true), nil)
	g := newTraffic(t, nil, nil, api)
	get := func() string { return rig.Call(t, "GET", g.Traffic+"/open/a", nil).Body }
	first := get()
	if get() != first {
		t.Fatal("nothing is kept")
	}
	metrics := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body
	for _, want := range []string{`sluice_answer_cache_total{result="hit"} 1`, `sluice_answer_cache_total{result="miss"} 1`, "sluice_answer_cache_entries 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
	got := rig.Call(t, http.MethodDelete, g.Control+"/svc/cache/open", nil, "X-Svc-Authorization", testSecret)
	if got.Status != 200 || got.Body != `{"status":"ok","message":"cache invalidated"}` {
		t.Errorf("invalidating: %s", got)
	}
	second := get()
	if second == first || get() != second {
		t.Errorf("%q, then %q", first, second)
	}
	api["name"] = "another name"
	rig.Call(t, http.MethodPut, g.Control+"/svc/apis/open", api, "X-Svc-Authorization", testSecret)
	rig.Call(t, http.MethodGet, g.Control+"/svc/reload?block=true", nil, "X-Svc-Authorization", testSecret)
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
	g := newTraffic(t, nil, nil, cached(rig.APIDef("open", up.url, true), object{"cache_timeout": 1}))
	first := rig.Call(t, "GET", g.Traffic+"/open/a", nil).Body
	rig.Eventually(t, "another answer", func() error {
		if rig.Call(t, "GET", g.Traffic+"/open/a", nil).Body == first {
			return io.ErrNoProgress
		}
		return nil
	})
}

func TestKeptAnswersAreForgottenByEveryGatewayOfAStore(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	with := settings{"valkey.url": "redis://" + testenv.Valkey(t).Addr, "valkey.timeout": "5s"}
	first := newTraffic(t, with, nil, cached(rig.APIDef("books", l.url, true), nil))
	second := newTraffic(t, with, nil, cached(rig.APIDef("books", l.url, true), nil))
	rig.ForgetEverywhere(t, []*rig.Server{first.Server, second.Server}, "/books/x", func() {
		if got := second.ask(http.MethodDelete, "/svc/cache/books", nil); got.Status != 200 {
			t.Fatal(got)
		}
	})
}
