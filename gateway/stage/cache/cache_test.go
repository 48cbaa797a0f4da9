package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/race"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// rig is an API whose answers are kept, before an upstream that the test plays.
type rig struct {
	t     testing.TB
	cache *Cache
	api   *pipeline.API
	stage *Stage
	fill  pipeline.Stage

	keyless  bool
	auth     map[string]*definition.Auth
	upstream func(ex *pipeline.Exchange)
	calls    atomic.Int64
	now      time.Time
}

func options() Options {
	return Options{MaxBytes: 64 << 20, MaxBody: 64 << 10, Patience: 5 * time.Second}
}

// newRig compiles cache_options, and extended_paths unless they are "".
func newRig(t testing.TB, cacheOptions, extended string, change func(*rig, *Options)) *rig {
	t.Helper()
	o := options()
	r := &rig{t: t, now: time.Now()}
	if change != nil {
		change(r, &o)
	}
	def := &definition.API{ID: "a", UseKeyless: r.keyless, AuthConfigs: r.auth, CacheOptions: testenv.Part[definition.CacheOptions](cacheOptions)}
	var version *definition.Version
	if extended != "" {
		version = &definition.Version{UseExtendedPaths: true, ExtendedPaths: testenv.Part[definition.ExtendedPaths](extended)}
	}
	r.cache = New(o)
	stage, err := r.cache.Compile(def, version)
	if err != nil {
		t.Fatal(err)
	}
	if stage == nil {
		return r
	}
	r.stage = stage
	r.fill = r.cache.CompileFill(def)
	r.api = &pipeline.API{Definition: def, Versions: []*pipeline.Version{{Cache: stage}}}
	r.cache.Swap([]*pipeline.API{r.api}, nil)
	r.answer("Content-Type: text/plain\r\n", "hello")
	return r
}

// answer has the upstream answer with lines and a body, and count.
func (r *rig) answer(lines, body string) {
	r.upstream = func(ex *pipeline.Exchange) {
		ex.Answer.Status, ex.Upstream.Status = 200, 200
		ex.Answer.Lines = append(ex.Answer.Lines, lines...)
		ex.Answer.Body = []byte(body)
	}
}

// got is what a client sees.
type got struct {
	status int
	lines  string
	body   string
	err    error
}

func (g got) header(name string) string {
	for line := range strings.SplitSeq(g.lines, "\r\n") {
		if n, value, ok := strings.Cut(line, ": "); ok && n == name {
			return value
		}
	}
	return ""
}

const usual = `{"enable_cache": true, "cache_timeout": 60, "cache_all_safe_requests": true}`

// send makes a call with a key.
func (r *rig) send(key, method, target string, headers ...string) got {
	r.t.Helper()
	raw := method + " " + target + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	call, fault := wire.NewCall([]byte(raw), wire.Config{MaxHeader: 16 << 10, MaxURL: 8 << 10, MaxHeaders: 100, MaxBody: 1 << 20})
	if fault != nil {
		r.t.Fatalf("%q: %v", raw, fault)
	}
	call.Started = r.now
	ex := pipeline.For(call)
	ex.API, ex.KeyHash = r.api, key
	ex.Path, ex.Rest = call.Path, call.Path
	return r.run(ex)
}

func (r *rig) run(ex *pipeline.Exchange) got {
	a := ex.Answer
	a.Lines = append(a.Lines, "X-Entry: 1\r\n"...) // of a stage in front
	defer ex.Release()
	verdict := pipeline.Next
	if r.stage != nil {
		verdict = r.stage.Handle(ex)
	}
	if verdict == pipeline.Next {
		r.calls.Add(1)
		r.upstream(ex)
		if ex.Rejection != nil {
			return got{status: ex.Rejection.Status}
		}
	}
	if r.fill != nil {
		r.fill.Handle(ex)
	}
	g := got{status: a.Status, lines: string(a.Lines), body: string(a.Body)}
	if a.NoBody {
		g.body = ""
	}
	if a.Stream != nil {
		all, err := io.ReadAll(a.Stream)
		g.body, g.err = string(all), err
		_ = a.Stream.Close()
	}
	return g
}

// upcalls returns how many calls went up since it was asked last.
func (r *rig) upcalls() int64 { return r.calls.Swap(0) }

func (r *rig) expect(want int64, what string) {
	r.t.Helper()
	if n := r.upcalls(); n != want {
		r.t.Errorf("%s: %d calls went up, want %d", what, n, want)
	}
}

func TestASecondCallIsAnsweredFromTheCache(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.answer("Content-Type: text/plain\r\nAge: 3\r\nX-Cache: theirs\r\nETag: \"1\"\r\n", "hello")
	first := r.send("k", "GET", "/a?b=c")
	if first.body != "hello" || first.header("X-Cache") == "hit" {
		t.Errorf("first %+v", first)
	}
	r.now = r.now.Add(7 * time.Second)
	second := r.send("k", "GET", "/a?b=c")
	r.expect(1, "two calls")
	if second.status != 200 || second.body != "hello" || second.header("X-Cache") != "hit" || second.header("Content-Type") != "text/plain" ||
		second.header("Age") != "9" && second.header("Age") != "10" || strings.Count(second.lines, "Age:") != 1 || strings.Count(second.lines, "X-Entry") != 1 {
		t.Errorf("second %+v", second)
	}
	r.now = r.now.Add(time.Minute)
	r.answer("", "later")
	if third := r.send("k", "GET", "/a?b=c"); third.body != "later" {
		t.Errorf("after its time: %+v", third)
	}
	if again := r.send("k", "GET", "/a?b=c"); again.body != "later" || again.header("X-Cache") != "hit" {
		t.Errorf("what came instead is not kept: %+v", again)
	}
	if s := r.cache.Stats(); s.Hits != 2 || s.Misses != 2 || s.Entries != 1 || s.Bytes < len("later") {
		t.Errorf("stats %+v", s)
	}
}

func TestWhatAnAnswerDependsOnIsNeverMixedUp(t *testing.T) {
	r := newRig(t, `{"enable_cache": true, "cache_all_safe_requests": true, "cache_by_headers": ["X-Tenant"]}`, "", nil)
	for i, c := range []struct {
		key, target string
		headers     []string
	}{
		{"k1", "/a", nil},
		{"k2", "/a", nil},
		{"k1", "/a?", []string{"X-Tenant: b"}},
		{"k1", "/a?x", nil},
		{"k1", "/b", nil},
		{"k1", "/a%2Fb", nil},
		{"k1", "/a", []string{"X-Tenant: c"}},
		{"k1", "/a", []string{"Authorization: Basic eA=="}},
		{"k1", "/a", []string{"Authorization: Basic eB=="}},
		{"k1", "/a", []string{"Cookie: a=b"}},
		{"k1", "/a", []string{"Cookie: a=c"}},
		{"k1", "/a", []string{"Cookie: a=b", "Cookie: a=c"}},
		{"", "/a", nil},
	} {
		r.answer("", fmt.Sprint("answer ", i))
		if got := r.send(c.key, "GET", c.target, c.headers...); got.body != fmt.Sprint("answer ", i) {
			t.Errorf("%d: was given %q", i, got.body)
		}
	}
	r.upcalls()
	if got := r.send("k2", "GET", "/a"); got.body != "answer 1" {
		t.Errorf("k2 is given %q", got.body)
	}
	r.expect(0, "a call that was made before")
	r.send("", "GET", "/a")
	r.expect(1, "a call without a key, whose answer is nobody's")
}

func TestHostsAndTheClientsPathAreAPartOfTheKey(t *testing.T) {
	r := newRig(t, usual, "", nil)
	inner := r.upstream
	r.upstream = func(ex *pipeline.Exchange) {
		inner(ex)
		ex.Answer.Body = append([]byte(nil), ex.Call.Host...)
		ex.Answer.Body = append(ex.Answer.Body, ex.Call.Path...)
	}
	for range 2 {
		for _, c := range [][2]string{{"a", "/one/x"}, {"b", "/one/x"}, {"a", "/two/x"}} {
			call, _ := wire.NewCall([]byte("GET "+c[1]+" HTTP/1.1\r\nHost: "+c[0]+"\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
			call.Started = r.now
			ex := pipeline.For(call)
			ex.API, ex.KeyHash, ex.Path, ex.Rest = r.api, "k", []byte("/x"), []byte("/x") // below a listen path with a parameter
			if got := r.run(ex).body; got != c[0]+c[1] {
				t.Errorf("%q is given %q", c, got)
			}
		}
	}
	r.expect(3, "three calls, twice")
}

func TestWhatTheGatewayAddsIsAPartOfTheKey(t *testing.T) {
	r := newRig(t, usual, "", nil)
	inner := r.upstream
	send := func(extra, path string) string {
		call, _ := wire.NewCall([]byte("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
		call.Started = r.now
		ex := pipeline.For(call)
		ex.API, ex.KeyHash, ex.Path, ex.Rest = r.api, "k", call.Path, call.Path
		ex.Outgoing.Extra = append(ex.Outgoing.Extra, extra...)
		ex.Outgoing.Path, ex.Outgoing.HasPath = []byte(path), path != ""
		return r.run(ex).body
	}
	r.upstream = func(ex *pipeline.Exchange) {
		inner(ex)
		ex.Answer.Body = append([]byte(nil), ex.Outgoing.Extra...)
		ex.Answer.Body = append(ex.Answer.Body, ex.Outgoing.Path...)
	}
	for range 2 {
		for _, c := range [][2]string{{"X-User: a\r\n", ""}, {"X-User: b\r\n", ""}, {"", "/x"}, {"", "/y"}, {"", ""}} {
			if got := send(c[0], c[1]); got != c[0]+c[1] {
				t.Errorf("%q is given %q", c, got)
			}
		}
	}
	r.expect(5, "five calls, twice")
}

func TestATokenIsTheKeyAndNoMore(t *testing.T) {
	r := newRig(t, usual, "", nil)
	send := func(header, token string, claims []byte) {
		call, _ := wire.NewCall([]byte("GET /a HTTP/1.1\r\nHost: h\r\nAuthorization: "+header+"\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
		call.Started = r.now
		ex := pipeline.For(call)
		ex.API, ex.KeyHash, ex.Token, ex.Claims = r.api, "identity", []byte(token), claims
		ex.Path, ex.Rest = call.Path, call.Path
		r.run(ex)
	}
	send("Bearer one", "one", nil)
	send("two", "two", nil) // of the same identity, as after a rotation
	r.expect(1, "two tokens of one key")
	send("Bearer x one", "one", nil) // the key came by another way
	send("someone", "one", nil)
	r.expect(2, "other credentials that end like the key")
	send("Bearer one", "one", []byte(`{"role":"a"}`))
	send("Bearer two", "two", []byte(`{"role":"b"}`))
	r.expect(2, "two tokens that say different things")
}

func TestVaryTellsWhatAnAnswerDependsOn(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.upstream = func(ex *pipeline.Exchange) {
		ex.Answer.Status, ex.Upstream.Status = 200, 200
		ex.Answer.Lines = append(ex.Answer.Lines, "Vary: Accept-Language, accept\r\n"...)
		ex.Answer.Body = append([]byte("in "), ex.Call.Header("Accept-Language")...)
	}
	for range 2 {
		for _, language := range []string{"de", "fr"} {
			if got := r.send("k", "GET", "/a", "Accept-Language: "+language); got.body != "in "+language {
				t.Errorf("%s is given %q", language, got.body)
			}
		}
		if got := r.send("k", "GET", "/a"); got.body != "in " {
			t.Errorf("nothing is given %q", got.body)
		}
	}
	r.expect(3, "three languages, twice")
}

func TestACodingIsTakenForADependency(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.answer("Content-Encoding: gzip\r\n", "packed")
	r.send("k", "GET", "/a", "Accept-Encoding: gzip")
	r.answer("", "plain")
	if got := r.send("k", "GET", "/a"); got.body != "plain" {
		t.Errorf("a client without gzip is given %q", got.body)
	}
}

func TestWhatMayNotBeKeptIsNot(t *testing.T) {
	for _, lines := range []string{
		"Set-Cookie: a=b\r\n", "Cache-Control: private\r\n", "Cache-Control: max-age=60, no-store\r\n", "cache-control: public, NO-CACHE\r\n",
		"Cache-Control: private=\"x\"\r\n", "Vary: *\r\n", "Vary: Accept, *\r\n", "Pragma: no-cache\r\n", "Cache-Control: max-age=0\r\n",
		"Content-Type: text/event-stream\r\n", "Cache-Control: s-maxage=0, max-age=60\r\n", "Expires: 0\r\n", "Age: 60\r\n",
		"Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "Cache-Control: max-age=x\r\n",
	} {
		r := newRig(t, usual, "", nil)
		r.answer(lines, "x")
		r.send("k", "GET", "/a")
		r.send("k", "GET", "/a")
		r.expect(2, fmt.Sprintf("%q", lines))
	}
}

func TestCallsThatDoNotAskForTheWholeOrChangeSomethingPass(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.send("k", "GET", "/a")
	r.upcalls()
	for _, c := range []struct {
		method  string
		headers []string
	}{
		{"POST", nil},
		{"OPTIONS", nil},
		{"DELETE", nil},
		{"GET", []string{"Range: bytes=0-1"}},
		{"GET", []string{"Upgrade: websocket", "Connection: upgrade"}},
		{"GET", []string{"Accept: text/event-stream"}},
		{"GET", []string{"Cache-Control: no-store"}},
	} {
		r.send("k", c.method, "/a", c.headers...)
		r.expect(1, fmt.Sprint(c))
	}
}

func TestHeadIsAnsweredFromWhatGetBrought(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.send("k", "HEAD", "/a")
	r.send("k", "HEAD", "/a")
	r.expect(2, "nothing is kept of HEAD")
	r.send("k", "GET", "/a")
	r.upcalls()
	if got := r.send("k", "HEAD", "/a"); got.status != 200 || got.body != "" || got.header("X-Cache") != "hit" {
		t.Errorf("%+v", got)
	}
	r.expect(0, "HEAD behind GET")
}

func TestLifetimes(t *testing.T) {
	const upstream = `{"enable_cache": true, "cache_timeout": 60, "cache_all_safe_requests": true, "enable_upstream_cache_control": true}`
	now := time.Now().UTC()
	date := "Date: " + now.Format("Mon, 02 Jan 2006 15:04:05 GMT") + "\r\n"
	in := func(d time.Duration) string {
		return "Expires: " + now.Add(d).Format("Mon, 02 Jan 2006 15:04:05 GMT") + "\r\n"
	}
	for _, c := range []struct {
		options, lines string
		seconds        int // 0: not kept
	}{
		{usual, "", 60},
		{usual, "Cache-Control: max-age=10\r\n", 10},
		{usual, "Cache-Control: max-age=100\r\n", 60},
		{usual, "Cache-Control: max-age=\"10\"\r\nAge: 4\r\n", 6},
		{usual, date + in(20*time.Second), 20},
		{upstream, "", 0},
		{upstream, "Cache-Control: max-age=100\r\n", 100},
		{upstream, "Cache-Control: max-age=100, s-maxage=7\r\n", 7},
		{upstream, date + in(90*time.Second), 90},
		{upstream, "X-Svc-Cache-Action-Set: 1\r\n", 60},
		{upstream, "X-Svc-Cache-Action-Set: 1\r\nX-Svc-Cache-Action-Set-Ttl: 5\r\n", 5},
		{upstream, "X-Svc-Cache-Action-Set-Ttl: 5\r\nCache-Control: max-age=50\r\n", 5},
		{strings.Replace(upstream, `}`, `, "cache_control_ttl_header": "x-ttl"}`, 1), "X-TTL: 9\r\n", 9},
	} {
		r := newRig(t, c.options, "", nil)
		r.answer(c.lines, "x")
		r.send("k", "GET", "/a")
		r.upcalls()
		start := r.now
		r.now = start.Add(time.Duration(c.seconds)*time.Second - 500*time.Millisecond)
		want := int64(0)
		if c.seconds == 0 {
			want, r.now = 1, start
		}
		r.send("k", "GET", "/a")
		r.expect(want, fmt.Sprintf("%q before its time", c.lines))
		r.now = start.Add(time.Duration(c.seconds)*time.Second + 500*time.Millisecond)
		r.send("k", "GET", "/a")
		r.expect(1, fmt.Sprintf("%q after its time", c.lines))
	}
}

func TestStatusesThatAreKept(t *testing.T) {
	for _, c := range []struct {
		options string
		status  int
		kept    bool
	}{
		{usual, 200, true},
		{usual, 404, false},
		{usual, 500, false},
		{usual, 204, true},
		{usual, 301, true},
		{usual, 302, false},
		{usual, 206, false},
		{strings.Replace(usual, `}`, `, "cache_response_codes": [404, 500]}`, 1), 404, true},
		{strings.Replace(usual, `}`, `, "cache_response_codes": [404, 500]}`, 1), 500, true},
		{strings.Replace(usual, `}`, `, "cache_response_codes": [404, 500]}`, 1), 200, false},
	} {
		r := newRig(t, c.options, "", nil)
		r.upstream = func(ex *pipeline.Exchange) {
			ex.Answer.Status, ex.Upstream.Status = c.status, c.status
			ex.Answer.NoBody, ex.Answer.Length = c.status == 204, -1
		}
		r.send("k", "GET", "/a")
		got := r.send("k", "GET", "/a")
		if kept := r.upcalls() == 1; kept != c.kept || got.status != c.status {
			t.Errorf("%d kept: %t (%+v)", c.status, kept, got)
		}
	}
}

func TestOnlyTheCallsOfTheRulesAreKept(t *testing.T) {
	r := newRig(t, `{"enable_cache": true}`, `{"cache": ["/a"], "advance_cache_config": [{"path": "/b", "method": "GET", "timeout": 5, "cache_response_codes": [200]}]}`, nil)
	for _, c := range []struct {
		target string
		ups    int64
	}{{"/a", 1}, {"/b/c", 1}, {"/c", 2}} {
		r.send("k", "GET", c.target)
		r.send("k", "GET", c.target)
		r.expect(c.ups, c.target)
	}
	r.now = r.now.Add(6 * time.Second)
	r.send("k", "GET", "/a")
	r.expect(0, "after 6 of 60 seconds")
	r.send("k", "GET", "/b/c")
	r.expect(1, "after 6 of 5 seconds")
}

func TestNothingIsThereForAPIsThatDoNotAsk(t *testing.T) {
	for _, options := range []string{``, `{"enable_cache": false, "cache_all_safe_requests": true}`, `{"enable_cache": true}`} {
		if r := newRig(t, options, "", nil); r.stage != nil {
			t.Errorf("%s has a stage", options)
		}
	}
	if r := newRig(t, usual, "", func(_ *rig, o *Options) { o.MaxBytes = 0 }); r.stage != nil {
		t.Error("a cache of no bytes has a stage")
	}
	if fill := New(options()).CompileFill(&definition.API{}); fill != nil {
		t.Error("something is kept for nobody")
	}
}

func TestAnswersThatAreSharedAskTheUpstreamsLeave(t *testing.T) {
	shared := strings.Replace(usual, `}`, `, "shared": true}`, 1)
	for _, c := range []struct {
		lines, header string
		shared        bool
	}{
		{"", "X: y", true},
		{"", "Authorization: Bearer a", false},
		{"", "Cookie: a=b", false},
		{"Cache-Control: public\r\n", "Authorization: Bearer a", true},
		{"Cache-Control: s-maxage=5\r\n", "Cookie: a=b", true},
		{"Cache-Control: max-age=5\r\n", "Cookie: a=b", false},
		{"Cache-Control: must-revalidate\r\n", "Authorization: Bearer a", true},
	} {
		r := newRig(t, shared, "", nil)
		r.answer(c.lines, "x")
		r.send("k1", "GET", "/a", c.header)
		r.send("k2", "GET", "/a")
		if got := r.upcalls() == 1; got != c.shared {
			t.Errorf("%q %q shared: %t", c.lines, c.header, got)
		}
	}
}

func TestConditionsAreAnsweredFromTheCache(t *testing.T) {
	r := newRig(t, usual, "", nil)
	inner := func(ex *pipeline.Exchange) {
		if ex.Outgoing.Drop == nil {
			t.Error("the client's condition went up")
		}
		ex.Answer.Status, ex.Upstream.Status = 200, 200
		ex.Answer.Lines = append(ex.Answer.Lines, "ETag: W/\"v1\"\r\nLast-Modified: Mon, 02 Jan 2006 15:04:05 GMT\r\n"...)
		ex.Answer.Body = []byte("hello")
	}
	r.upstream = inner
	if got := r.send("k", "GET", "/a", `If-None-Match: "v1"`); got.status != 304 || got.body != "" {
		t.Errorf("the first call: %+v", got)
	}
	for _, c := range []struct {
		header string
		status int
	}{
		{`If-None-Match: "v1"`, 304},
		{`If-None-Match: "v0", W/"v1"`, 304},
		{`If-None-Match: *`, 304},
		{`If-None-Match: "v2"`, 200},
		{`If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT`, 304},
		{`If-Modified-Since: Mon, 02 Jan 2005 15:04:05 GMT`, 200},
		{"X: y", 200},
	} {
		if got := r.send("k", "GET", "/a", c.header); got.status != c.status || (got.body == "") != (c.status == 304) || got.header("ETag") != `W/"v1"` {
			t.Errorf("%s: %+v", c.header, got)
		}
	}
	r.expect(1, "all of them")
}

func TestOneCallGoesUpForManyThatAskTheSame(t *testing.T) {
	r := newRig(t, usual, "", nil)
	const many = 20
	release := make(chan struct{})
	inner := r.upstream
	r.upstream = func(ex *pipeline.Exchange) { <-release; inner(ex) }
	var all sync.WaitGroup
	var answered atomic.Int64
	for range many {
		all.Go(func() {
			if r.send("k", "GET", "/a").body == "hello" {
				answered.Add(1)
			}
		})
	}
	wait.Until(t, "the state that the test expects", func() bool { return r.calls.Load() == 1 })
	close(release)
	all.Wait()
	if r.expect(1, "all of them"); answered.Load() != many {
		t.Errorf("%d of %d were answered", answered.Load(), many)
	}
	if n := len(r.stage.calls); n != 0 {
		t.Errorf("%d single-flight calls are left", n)
	}
	if s := r.cache.Stats(); s.Misses != 1 || s.Hits+s.Shared != many-1 {
		t.Errorf("stats %+v", s)
	}
}

func TestWhoWaitsGoesUpWhenTheFirstCallFailed(t *testing.T) {
	r := newRig(t, usual, "", nil)
	entered, release := make(chan struct{}), make(chan struct{})
	failing := pipeline.NewRejection(pipeline.ReasonUpstreamTimeout, 504, "late")
	inner := r.upstream
	var first atomic.Bool
	r.upstream = func(ex *pipeline.Exchange) {
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-release
			ex.Rejection = failing
			return
		}
		inner(ex)
	}
	results := make(chan got, 2)
	go func() { results <- r.send("k", "GET", "/a") }()
	<-entered
	go func() { results <- r.send("k", "GET", "/a") }()
	close(release)
	statuses := map[int]int{(<-results).status: 1}
	statuses[(<-results).status]++
	if statuses[504] != 1 || statuses[200] != 1 {
		t.Errorf("statuses %v", statuses)
	}
}

func TestNobodyWaitsLongForACallThatHangs(t *testing.T) {
	r := newRig(t, usual, "", func(_ *rig, o *Options) { o.Patience = 10 * time.Millisecond })
	entered, release := make(chan struct{}), make(chan struct{})
	inner := r.upstream
	var first atomic.Bool
	r.upstream = func(ex *pipeline.Exchange) {
		if first.CompareAndSwap(false, true) {
			close(entered)
			<-release
		}
		inner(ex)
	}
	done := make(chan got)
	go func() { done <- r.send("k", "GET", "/a") }()
	<-entered
	for range 3 {
		if got := r.send("k", "GET", "/a"); got.body != "hello" {
			t.Errorf("%+v", got)
		}
	}
	close(release)
	<-done
	if n := len(r.stage.calls); n != 0 {
		t.Errorf("%d single-flight calls are left", n)
	}
}

func TestCallsWhoseAnswersCannotBeKeptDoNotWaitForEachOther(t *testing.T) {
	r := newRig(t, usual, "", func(_ *rig, o *Options) { o.Patience = time.Hour })
	r.answer("Cache-Control: no-store\r\n", "x")
	r.send("k", "GET", "/a")
	entered, release := make(chan struct{}, 2), make(chan struct{})
	inner := r.upstream
	r.upstream = func(ex *pipeline.Exchange) { entered <- struct{}{}; <-release; inner(ex) }
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { r.send("k", "GET", "/a") })
	}
	<-entered
	<-entered // both are up at the same time
	close(release)
	all.Wait()
}

func TestStreamsAreKeptWhenTheyCameToTheirEnd(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		lines  string
		kept   bool
	}{
		{"whole", strings.NewReader("hello"), -1, "", true},
		{"whole, of known length", strings.NewReader("hello"), 5, "", true},
		{"too long", strings.NewReader(long), -1, "", false},
		{"known to be too long", strings.NewReader(long), 70 << 10, "", false},
		{"broken off", io.MultiReader(strings.NewReader("hel"), failing{}), -1, "", false},
		{"events", strings.NewReader("data: x\n\n"), -1, "Content-Type: text/event-stream\r\n", false},
	} {
		r := newRig(t, usual, "", nil)
		r.upstream = func(ex *pipeline.Exchange) {
			ex.Answer.Status, ex.Upstream.Status = 200, 200
			ex.Answer.Lines = append(ex.Answer.Lines, c.lines...)
			ex.Answer.Stream, ex.Answer.Length = io.NopCloser(c.body), c.length
		}
		first := r.send("k", "GET", "/a")
		r.answer("", "again")
		second := r.send("k", "GET", "/a")
		if kept := r.upcalls() == 1; kept != c.kept || kept && second.body != first.body {
			t.Errorf("%s: kept %t (%d bytes, %v)", c.name, kept, len(second.body), first.err)
		}
		if n := len(r.stage.calls); n != 0 {
			t.Errorf("%s: %d single-flight calls are left", c.name, n)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestWhatIsForgottenStaysForgotten(t *testing.T) {
	r := newRig(t, usual, "", nil)
	r.send("k", "GET", "/a")
	r.upcalls()
	r.cache.Invalidate("other")
	r.send("k", "GET", "/a")
	r.expect(0, "another API's is forgotten")
	inner := r.upstream
	r.upstream = func(ex *pipeline.Exchange) { r.cache.Invalidate("a"); inner(ex) } // while a call is under way
	r.cache.Invalidate("a")
	if s := r.cache.Stats(); s.Entries != 0 {
		t.Errorf("%d entries are left", s.Entries)
	}
	r.send("k", "GET", "/a")
	r.send("k", "GET", "/a")
	r.expect(2, "what a call brings that began before")
	if s := r.cache.Stats(); s.Entries != 0 {
		t.Errorf("%d entries are kept that nobody is told", s.Entries)
	}
	r.upstream = inner
	r.send("k", "GET", "/b")
	r.cache.Swap(nil, []*pipeline.API{r.api})
	if len(r.cache.live) != 0 {
		t.Error("an API that left is remembered")
	}
	if got := r.cache.kept.Hits(); got == 0 {
		t.Error("nothing was found ever")
	}
}

func TestMemoryIsBoundedUnderEntriesOfManySizes(t *testing.T) {
	const most = 8 << 20
	r := newRig(t, usual, "", func(_ *rig, o *Options) { o.MaxBytes = most })
	kept := 0
	for i := range 4000 {
		body := bytes.Repeat([]byte{'x'}, i*i%60_000)
		r.answer("", string(body))
		r.send("k", "GET", fmt.Sprint("/", i))
		if s := r.cache.Stats(); s.Bytes > most {
			t.Fatalf("%d bytes after %d answers", s.Bytes, i)
		}
		kept = r.cache.Stats().Entries
	}
	if kept < 100 {
		t.Errorf("%d entries", kept)
	}
}

func TestADryCallNeitherWaitsNorIsRemembered(t *testing.T) {
	r := newRig(t, usual, "", nil)
	dry := func() pipeline.Verdict {
		call, _ := wire.NewCall([]byte("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
		call.Started = r.now
		ex := pipeline.For(call)
		defer ex.Release()
		ex.API, ex.KeyHash, ex.Path, ex.Rest, ex.DryRun = r.api, "k", call.Path, call.Path, &pipeline.DryRun{}
		verdict := r.stage.Handle(ex)
		var f pipeline.Finding
		r.stage.Explain(ex, &f)
		if len(f.Facts) != 1 {
			t.Errorf("facts %+v", f)
		}
		return verdict
	}
	if dry() != pipeline.Next || len(r.stage.calls) != 0 {
		t.Error("a dry call takes off")
	}
	r.send("k", "GET", "/a")
	before := r.cache.Stats()
	if dry() != pipeline.Answered {
		t.Error("it is not shown what a call would get")
	}
	if after := r.cache.Stats(); after != before {
		t.Errorf("%+v became %+v", before, after)
	}
}

func FuzzPromise(f *testing.F) {
	f.Add([]byte("Cache-Control: max-age=5, s-maxage=\"6\"\r\nVary: a, b\r\nExpires: x\r\n"))
	f.Add([]byte("Age: 99999999999999999999\r\nDate: x\r\nVary: *\r\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		if len(lines) > 0 && !bytes.HasSuffix(lines, []byte("\r\n")) {
			lines = append(lines, "\r\n"...)
		}
		var p promise
		p.read(lines, "X-Ttl")
		if d, ok := p.lifetime(); ok && d < 0 || p.age < 0 {
			t.Errorf("lifetime %v, age %v", d, p.age)
		}
		kept := p.kept(lines)
		if len(kept) > len(lines) {
			t.Errorf("%q became %q", lines, kept)
		}
		p.within(kept)
	})
}

func hot(t testing.TB) (*rig, *wire.Call) {
	r := newRig(t, usual, "", nil)
	r.answer("Content-Type: text/plain\r\nETag: \"1\"\r\n", strings.Repeat("x", 1024))
	r.send("k", "GET", "/a?b=c", "User-Agent: bench", "Accept: */*", "Authorization: Bearer token")
	call, _ := wire.NewCall([]byte("GET /a?b=c HTTP/1.1\r\nHost: h\r\nUser-Agent: bench\r\nAccept: */*\r\nAuthorization: Bearer token\r\n\r\n"),
		wire.Config{MaxHeader: 1 << 10, MaxURL: 1 << 10, MaxHeaders: 10})
	call.Started = r.now
	return r, call
}

func (r *rig) hit(call *wire.Call) pipeline.Verdict {
	ex := pipeline.For(call)
	ex.API, ex.KeyHash, ex.Path, ex.Rest = r.api, "k", call.Path, call.Path
	verdict := r.stage.Handle(ex)
	r.fill.Handle(ex)
	ex.Answer.Lines = ex.Answer.Lines[:0]
	ex.Release()
	return verdict
}

func TestAHitDoesNotAllocate(t *testing.T) {
	r, call := hot(t)
	if r.hit(call) != pipeline.Answered {
		t.Fatal("no hit")
	}
	if n := testing.AllocsPerRun(1000, func() { r.hit(call) }); n > 0.5 && !race.Enabled { // the detector drops what is pooled
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHit(b *testing.B) {
	r, call := hot(b)
	b.ReportAllocs()
	for b.Loop() {
		r.hit(call)
	}
}
