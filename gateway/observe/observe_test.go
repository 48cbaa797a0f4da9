package observe

import (
	"fmt"
	"log/slog"
	"math/bits"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/event"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// exchange is a finished call that went well.
func exchange(method, path string, status int) *pipeline.Exchange {
	call := &wire.Call{Method: []byte(method), Path: []byte(path), Query: []byte("token=geheim"), Started: time.Now()}
	call.SetLines([]byte("User-Agent: curl/8.5.0\r\nAuthorization: Bearer geheim\r\n"))
	ex := pipeline.For(call)
	copy(ex.ID[:], "0123456789abcdef0123456789abcdef")
	ex.Client = netip.MustParseAddr("192.0.2.7")
	ex.Revision = "42"
	ex.Answer.Status = status
	ex.Answer.Body = []byte("hello")
	ex.Upstream = pipeline.Upstream{Address: "10.0.0.1:80", Status: status, Duration: 300 * time.Microsecond}
	return ex
}

func rejected(reason pipeline.Reason, status int, name event.Name) *pipeline.Exchange {
	ex := exchange("GET", "/sample/", status)
	ex.Upstream = pipeline.Upstream{}
	ex.Reject(pipeline.NewRejection(reason, status, "no").Raising(name))
	return ex
}

// scrape returns what /metrics shows.
func scrape(t *testing.T, o *Observer) string {
	t.Helper()
	status, body := get(t, o, HandlerOptions{Metrics: true}, "GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("/metrics answered %d: %s", status, body)
	}
	return body
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if t.Failed() {
		t.Log(onlyOurs(text))
	}
}

func onlyOurs(text string) string {
	var ours strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "sluice_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

func TestRequestsAreCountedByAPIMethodAndClass(t *testing.T) {
	o := New(Options{Version: "1.2.3", Log: quiet()})
	m := o.NewMeter("sample")
	for _, c := range []struct {
		method string
		status int
		times  int
	}{{"GET", 200, 3}, {"GET", 404, 1}, {"POST", 201, 2}, {"PROPFIND", 207, 1}, {"DELETE", 500, 1}} {
		for range c.times {
			m.Done(exchange(c.method, "/", c.status))
		}
	}
	o.Unmatched().Done(rejected(pipeline.ReasonRouteNotFound, 404, ""))
	expect(t, scrape(t, o),
		`sluice_requests_total{api="sample",code="2xx",method="GET"} 3`,
		`sluice_requests_total{api="sample",code="4xx",method="GET"} 1`,
		`sluice_requests_total{api="sample",code="2xx",method="POST"} 2`,
		`sluice_requests_total{api="sample",code="2xx",method="other"} 1`,
		`sluice_requests_total{api="sample",code="5xx",method="DELETE"} 1`,
		`sluice_request_seconds_count{api="sample"} 8`,
		`sluice_upstream_seconds_bucket{api="sample",le="0.0002"} 0`,
		`sluice_upstream_seconds_bucket{api="sample",le="0.0004"} 8`,
		fmt.Sprintf(`sluice_build_info{goversion="%s",version="1.2.3"} 1`, runtime.Version()),
	)
}

func TestTheUpstreamsTimeIsNotTheGateways(t *testing.T) {
	o := New(Options{Log: quiet()})
	m := o.NewMeter("sample")
	for _, upstream := range []time.Duration{time.Hour - time.Minute, 2 * time.Hour} { // the second as if clocks had jumped
		ex := exchange("GET", "/", 200)
		ex.Started = ex.Started.Add(-time.Hour)
		ex.Upstream.Duration = upstream
		m.Done(ex)
	}
	expect(t, scrape(t, o),
		`sluice_gateway_seconds_bucket{api="sample",le="0.0001"} 1`,
		`sluice_gateway_seconds_bucket{api="sample",le="+Inf"} 2`,
		`sluice_request_seconds_bucket{api="sample",le="3.2768"} 0`,
	)
	if !strings.Contains(scrape(t, o), `sluice_gateway_seconds_sum{api="sample"} 60.`) {
		t.Error("the gateway's part is not a minute")
	}
}

func TestUnmatchedRequestsAreCounted(t *testing.T) {
	o := New(Options{Log: quiet()})
	o.Unmatched().Done(rejected(pipeline.ReasonRouteNotFound, 404, ""))
	o.Drop([]string{""})
	o.NewMeter("").Done(rejected(pipeline.ReasonRouteNotFound, 404, ""))
	expect(t, scrape(t, o), `sluice_rejections_total{api="",reason="route_not_found"} 2`)
}

func TestRejectionsAreCountedByReasonAndCause(t *testing.T) {
	o := New(Options{Log: quiet()})
	m := o.NewMeter("sample")
	for range 2 {
		m.Done(rejected(pipeline.ReasonQuotaExceeded, 403, event.QuotaExceeded))
	}
	m.Done(rejected(pipeline.ReasonUpstreamLookup, 502, ""))
	text := scrape(t, o)
	expect(t, text,
		`sluice_rejections_total{api="sample",reason="quota_exceeded"} 2`,
		`sluice_rejections_total{api="sample",reason="upstream_lookup"} 1`,
		`sluice_upstream_errors_total{api="sample",cause="dns"} 1`,
	)
	if strings.Contains(text, "sluice_upstream_seconds") {
		t.Error("the upstream's time is shown although it was never called")
	}
}

func TestEveryReasonOfTheUpstreamHasACause(t *testing.T) {
	for _, r := range pipeline.Reasons() {
		if has := causes[r] != ""; has != strings.HasPrefix(r.String(), "upstream_") {
			t.Errorf("%s: has a cause: %v", r, has)
		}
	}
}

func TestSeriesOfRemovedAPIsAreGoneAndOthersGoOn(t *testing.T) {
	o := New(Options{Log: quiet()})
	for _, id := range []string{"stays", "goes"} {
		o.NewMeter(id).Done(exchange("GET", "/", 200))
	}
	o.NewMeter("stays").Done(exchange("GET", "/", 200)) // compiled again
	o.Drop([]string{"goes"})
	text := scrape(t, o)
	expect(t, text, `sluice_requests_total{api="stays",code="2xx",method="GET"} 2`)
	if strings.Contains(text, `"goes"`) {
		t.Error("the removed API is still shown")
	}
	o.NewMeter("goes").Done(exchange("GET", "/", 200))
	expect(t, scrape(t, o), `sluice_requests_total{api="goes",code="2xx",method="GET"} 1`)
}

func TestAnAPIThatWasNeverCalledTakesLittleMemory(t *testing.T) {
	const apis, most = 20_000, 300
	o := New(Options{Log: quiet()})
	ids := make([]string, apis)
	for i := range ids {
		ids[i] = fmt.Sprintf("api-%d", i)
	}
	meters := make([]pipeline.Meter, apis)
	before := heap()
	for i, id := range ids {
		meters[i] = o.NewMeter(id)
	}
	per := (heap() - before) / apis
	t.Logf("%d bytes for an API that was never called", per)
	if per > most {
		t.Errorf("%d bytes for each, want at most %d", per, most)
	}
	if text := scrape(t, o); strings.Contains(text, "api-7") {
		t.Error("an API that was never called is shown")
	}
	before = heap()
	ex := exchange("GET", "/", 200)
	for _, m := range meters {
		m.Done(ex)
	}
	t.Logf("%d bytes more for one that was", (heap()-before)/apis)
	runtime.KeepAlive(o)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestHistogramPutsEachDurationBelowItsBound(t *testing.T) {
	for _, d := range []time.Duration{
		0, 1, 99 * time.Microsecond, 100 * time.Microsecond, 100*time.Microsecond + 1, 200 * time.Microsecond,
		200*time.Microsecond + 1, 400 * time.Microsecond, 3276800 * time.Microsecond, 3276800*time.Microsecond + 1, time.Hour,
	} {
		var h times
		h.observe(partOwn, d)
		count, sum, buckets := h.read(partOwn)
		if count != 1 || sum != d.Seconds() || len(buckets) != bounds {
			t.Errorf("%s: count %d, sum %v, %d buckets", d, count, sum, len(buckets))
		}
		for bound, n := range buckets {
			if want := d.Seconds() <= bound; (n == 1) != want {
				t.Errorf("%s: bucket %v holds %d", d, bound, n)
			}
		}
	}
	if got := firstBound << (bounds - 1); got != 3276800*time.Microsecond || bits.Len(bounds) != 5 {
		t.Errorf("last bound %s", got)
	}
}

type recorder struct{ got []event.Event }

func (r *recorder) Raise(e event.Event) { r.got = append(r.got, e) }

func TestARefusalRaisesItsEvent(t *testing.T) {
	events := &recorder{}
	o := New(Options{Log: quiet(), Events: events})
	m := o.NewMeter("sample")
	m.Done(exchange("GET", "/", 200))
	m.Done(rejected(pipeline.ReasonAuthMissing, 401, ""))
	ex := rejected(pipeline.ReasonQuotaExceeded, 403, event.QuotaExceeded)
	ex.KeyName = "0123456789ab"
	m.Done(ex)
	if len(events.got) != 1 {
		t.Fatalf("%d events, want 1: %v", len(events.got), events.got)
	}
	if e := events.got[0]; e.Name != event.QuotaExceeded || e.API != "sample" || e.Key != "0123456789ab" || !e.At.Equal(ex.Started) {
		t.Errorf("got %+v", e)
	}
}

func TestConfigurationIsShown(t *testing.T) {
	o := New(Options{Log: quiet()})
	if strings.Contains(scrape(t, o), "sluice_config_revision") {
		t.Error("a revision is shown before there is one")
	}
	o.Applied("41", time.Second, 0)
	o.Applied("42\xff", 250*time.Millisecond, 3)
	o.Refused("43")
	text := scrape(t, o)
	expect(t, text,
		"sluice_config_revision{revision=\"42\uFFFD\"} 1",
		`sluice_config_swap_seconds 0.25`,
		`sluice_config_failed_definitions 3`,
		`sluice_config_rejected_total 1`,
	)
	if strings.Contains(text, `revision="41"`) || !strings.Contains(text, "sluice_config_last_success_timestamp 1.") {
		t.Errorf("got\n%s", onlyOurs(text))
	}
}

func TestTheAccessLogAndTheSourceOfTheConfigurationAreShown(t *testing.T) {
	access, err := OpenAccessLog(AccessOptions{Target: "stdout"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	o := New(Options{Log: quiet(), Access: access, Source: func() string { return "disk\xff" }})
	expect(t, scrape(t, o), "sluice_config_source{source=\"disk\uFFFD\"} 1", `sluice_log_dropped_total 0`)
	if text := scrape(t, New(Options{Log: quiet()})); strings.Contains(text, "sluice_config_source") || strings.Contains(text, "sluice_log_dropped") {
		t.Error("a source or a log is shown that is not there")
	}
}

func TestDoneDoesNotAllocate(t *testing.T) {
	access := newAccessLog(keepOpen{&strings.Builder{}}, AccessOptions{SampleOK: 1}, quiet())
	for name, o := range map[string]*Observer{
		"metrics alone":  New(Options{Log: quiet()}),
		"with log":       New(Options{Log: quiet(), Access: access}),
		"calls":          New(Options{Log: quiet(), Calls: usage.NewCalls()}),
		"log and events": New(Options{Log: quiet(), Access: access, Events: event.NewBus(4)}),
	} {
		m := o.NewMeter("sample")
		good, bad := exchange("GET", "/sample/things", 200), rejected(pipeline.ReasonQuotaExceeded, 403, event.QuotaExceeded)
		good, bad = ofAPI(good, sampleAPI("one"), "0123456789abcdef", "0123456789ab"), ofAPI(bad, sampleAPI("one"), "", "")
		m.Done(good)
		m.Done(bad)
		n := testing.AllocsPerRun(1000, func() {
			access.block = access.block[:0] // nobody writes here
			m.Done(good)
			m.Done(bad)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkDone(b *testing.B) {
	access := newAccessLog(keepOpen{&strings.Builder{}}, AccessOptions{SampleOK: 1}, quiet())
	for _, c := range []struct {
		name string
		o    *Observer
	}{
		{"metrics", New(Options{Log: quiet()})},
		{"metrics and log", New(Options{Log: quiet(), Access: access})},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, ex := c.o.NewMeter("sample"), exchange("GET", "/sample/things", 200)
			ex.KeyName, ex.Grant = "0123456789ab", &pipeline.Grant{Policy: "gold"}
			b.ReportAllocs()
			for b.Loop() {
				access.block = access.block[:0]
				m.Done(ex)
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	s, ex := newSeries(), exchange("GET", "/", 200)
	o := observed{ex: ex, status: 200, method: methodOf(ex.Call.Method), total: time.Millisecond, own: 700 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		s.count(&o)
	}
}

func BenchmarkLine(b *testing.B) {
	ex := exchange("GET", "/sample/things", 200)
	ex.KeyName, ex.Grant = "0123456789ab", &pipeline.Grant{Policy: "gold"}
	m := New(Options{Log: quiet()}).meter("sample")
	o := observed{ex: ex, status: 200, method: methodOf(ex.Call.Method), total: time.Millisecond, own: 700 * time.Microsecond}
	b.ReportAllocs()
	for b.Loop() {
		ex.Buf = appendLine(ex.Buf[:0], m, &o)
	}
	b.SetBytes(int64(len(ex.Buf)))
}
