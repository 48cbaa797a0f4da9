package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv/wait"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const patience = 60 * time.Second

// receiver is a collector of traces.
type receiver struct {
	*httptest.Server
	spans  chan *otlp.Span
	header http.Header // of the last call; to be read once a span has come
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newReceiver(t testing.TB, answer func(http.ResponseWriter, *http.Request) bool) *receiver {
	r := &receiver{spans: make(chan *otlp.Span, 10_000), answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.answer != nil && r.answer(w, req) {
		return
	}
	var sent collector.ExportTraceServiceRequest
	body, err := io.ReadAll(req.Body)
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.header = req.Header
	for _, from := range sent.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			for _, s := range scope.Spans {
				s.Attributes = append(s.Attributes, from.Resource.Attributes...)
				r.spans <- s
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *receiver) next(t testing.TB) *otlp.Span {
	t.Helper()
	select {
	case s := <-r.spans:
		return s
	case <-time.After(patience):
		t.Fatal("no span came")
		return nil
	}
}

// about returns what a span says, in one line each.
func about(s *otlp.Span) string {
	var b strings.Builder
	for _, a := range s.Attributes {
		fmt.Fprintf(&b, "%s=%s%d\n", a.Key, a.Value.GetStringValue(), a.Value.GetIntValue())
	}
	return strings.ReplaceAll(b.String(), "0\n", "\n") // a text has the number 0
}

func newRecorder(t testing.TB, o Options) (r *Recorder, stop func()) {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

// finished is an exchange as it is at its end.
func finished(t testing.TB) *pipeline.Exchange {
	t.Helper()
	call, fault := wire.NewCall([]byte("GET /orders/7?token=hidden HTTP/1.1\r\nHost: a\r\n\r\n"), wire.Config{
		MaxHeader: 16 << 10, MaxURL: 1 << 10, MaxHeaders: 100, MaxBody: 1 << 20, ReadTimeout: time.Second,
	})
	if fault != nil {
		t.Fatal(fault.Text)
	}
	ex := pipeline.For(call)
	t.Cleanup(ex.Release)
	ex.API = &pipeline.API{Definition: &definition.API{ID: "orders", Proxy: definition.Proxy{ListenPath: "/orders/"}}}
	copy(ex.ID[:], strings.Repeat("1a", 16))
	copy(ex.Trace.ID[:], strings.Repeat("2b", 16))
	copy(ex.Trace.Parent[:], strings.Repeat("3c", 8))
	copy(ex.Trace.Span[:], strings.Repeat("4d", 8))
	ex.Trace.Flags, ex.KeyName, ex.Revision = 1, "0123456789ab", "r1"
	ex.Upstream = pipeline.Upstream{Address: "10.0.0.1:80", Status: 204, Retries: 2}
	ex.Answer.Status = 204
	at := ex.Started
	ex.Trace.Steps = &pipeline.Steps{List: []pipeline.Step{
		{Name: "auth", Start: at, End: at.Add(1000)},
		{Name: "limit", Start: at.Add(1000), End: at.Add(2000)},
		{Name: "upstream", Start: at.Add(2000), End: at.Add(9000)},
	}}
	return ex
}

func TestSpansDescribeTheStepsOfARequest(t *testing.T) {
	got := newReceiver(t, nil)
	r, _ := newRecorder(t, Options{Endpoint: got.URL, Headers: "X-Api-Key=a=b, X-Other = c", Sample: 1, Version: "1.2.3", Instance: "here"})
	r.Done(finished(t))
	root := got.next(t)
	if got.header.Get("X-Api-Key") != "a=b" || got.header.Get("X-Other") != "c" {
		t.Errorf("headers %v", got.header)
	}
	if id := hex.EncodeToString(root.TraceId); id != strings.Repeat("2b", 16) || hex.EncodeToString(root.ParentSpanId) != strings.Repeat("3c", 8) {
		t.Errorf("trace %s, parent %x", id, root.ParentSpanId)
	}
	if root.Name != "GET /orders/" || root.Kind != otlp.Span_SPAN_KIND_SERVER || root.EndTimeUnixNano < root.StartTimeUnixNano || root.Flags&1 == 0 {
		t.Errorf("%v", root)
	}
	said := about(root)
	for _, want := range []string{
		"http.request.method=GET\n", "url.path=/orders/7\n", "http.response.status_code=204\n", "http.route=/orders/\n", "sluice.api=orders\n",
		"sluice.key=0123456789ab\n", "sluice.revision=r1\n", "sluice.request_id=" + strings.Repeat("1a", 16) + "\n",
		"service.name=sluice\n", "service.version=1.2.3\n", "service.instance.id=here\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if strings.Contains(said, "hidden") {
		t.Errorf("the query string is sent: %s", said)
	}
	for i, name := range []string{"auth", "limit", "upstream"} {
		s := got.next(t)
		if s.Name != name || !bytes.Equal(s.TraceId, root.TraceId) || !bytes.Equal(s.ParentSpanId, root.SpanId) || s.EndTimeUnixNano <= s.StartTimeUnixNano {
			t.Errorf("span %d: %v", i, s)
		}
		if name == "upstream" && (hex.EncodeToString(s.SpanId) != strings.Repeat("4d", 8) || s.Kind != otlp.Span_SPAN_KIND_CLIENT || !strings.Contains(about(s), "server.address=10.0.0.1:8")) {
			t.Errorf("%v", s)
		}
	}
	wait.Until(t, "four spans are sent", func() bool { return r.Stats() == Stats{Sent: 4} })
}

func TestRequestsToDataSourcesHaveSpans(t *testing.T) {
	got := newReceiver(t, nil)
	r, _ := newRecorder(t, Options{Endpoint: got.URL, Sample: 1})
	ex := finished(t)
	span := func(c string) (id [16]byte) {
		copy(id[:], strings.Repeat(c, 8))
		return id
	}
	at := ex.Started
	ex.Trace.Steps.List = []pipeline.Step{
		{Name: "auth", Start: at, End: at.Add(1000)},
		{Name: "fetch", Start: at.Add(2000), End: at.Add(8000), Fetch: &pipeline.Fetch{Source: "users", Address: "10.0.0.2:80", Status: 201, Span: span("5e")}},
		{Name: "fetch", Start: at.Add(3000), End: at.Add(4000), Fetch: &pipeline.Fetch{Source: "todos", Address: "10.0.0.3:80", Span: span("6f")}},
		{Name: "upstream", Start: at.Add(2000), End: at.Add(9000)},
	}
	r.Done(ex)
	root, _, users, todos, all := got.next(t), got.next(t), got.next(t), got.next(t), got.next(t)
	if !bytes.Equal(all.ParentSpanId, root.SpanId) || hex.EncodeToString(all.SpanId) != strings.Repeat("4d", 8) || all.Kind != otlp.Span_SPAN_KIND_INTERNAL {
		t.Errorf("%v", all)
	}
	for i, s := range []*otlp.Span{users, todos} {
		want := [][]string{{"fetch users", "5e", "sluice.source=users\nserver.address=10.0.0.2:80\nhttp.response.status_code=201\n"}, {"fetch todos", "6f", "http.response.status_code=\n"}}[i]
		if s.Name != want[0] || hex.EncodeToString(s.SpanId) != strings.Repeat(want[1], 8) || !bytes.Equal(s.ParentSpanId, all.SpanId) || !strings.Contains(about(s), want[2]) ||
			s.Kind != otlp.Span_SPAN_KIND_CLIENT || (s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR) != (i == 1) {
			t.Errorf("%v\n%s", s, about(s))
		}
	}
}

func TestFailuresAreErrorsAndRefusalsHaveAReason(t *testing.T) {
	got := newReceiver(t, nil)
	r, _ := newRecorder(t, Options{Endpoint: got.URL, Sample: 1})
	ex := finished(t)
	ex.Trace.Parent = [16]byte{}
	ex.Answer.Status, ex.Rejection = 503, pipeline.NewRejection(pipeline.ReasonOverloaded, 503, "x")
	ex.Trace.Steps.List = []pipeline.Step{{Name: "overload", Verdict: pipeline.Rejected}}
	r.Done(ex)
	root, step := got.next(t), got.next(t)
	if root.Status.Code != otlp.Status_STATUS_CODE_ERROR || len(root.ParentSpanId) != 0 || !strings.Contains(about(root), "sluice.reason=overloaded\n") {
		t.Errorf("%v\n%s", root, about(root))
	}
	if step.Name != "overload" || step.Status.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", step)
	}
}

func TestTheLastSpansAreSentAtTheEnd(t *testing.T) {
	got := newReceiver(t, nil)
	r, stop := newRecorder(t, Options{Endpoint: got.URL, Sample: 1})
	for range 3 * maxBatch {
		r.Done(finished(t))
	}
	stop()
	if want := (Stats{Sent: 3 * maxBatch * 4}); r.Stats() != want || len(got.spans) != 3*maxBatch*4 {
		t.Errorf("%+v, %d came", r.Stats(), len(got.spans))
	}
}

func TestACollectorThatHangsDelaysNothing(t *testing.T) {
	hangs := make(chan struct{})
	called := make(chan struct{}, 100)
	got := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) bool {
		called <- struct{}{}
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
		return true
	})
	r, stop := newRecorder(t, Options{Endpoint: got.URL, Sample: 1})
	r.Done(finished(t))
	<-called
	ex := finished(t)
	for range maxQueue + 10 {
		r.Done(ex)
	}
	if n := r.Stats().Dropped; n != 10 {
		t.Errorf("%d dropped", n)
	}
	close(hangs)
	stop() // comes to an end
}

func TestSpansThatACollectorRefusesAreCounted(t *testing.T) {
	got := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	r, stop := newRecorder(t, Options{Endpoint: got.URL, Sample: 1})
	r.Done(finished(t))
	stop()
	if want := (Stats{Failed: 4}); r.Stats() != want {
		t.Errorf("%+v", r.Stats())
	}
}

func TestTheShareOfTracesFollowsTheirIDs(t *testing.T) {
	id := func(last string) *[32]byte {
		var id [32]byte
		copy(id[:], strings.Repeat("f", 32-len(last))+last)
		return &id
	}
	for _, c := range []struct {
		sample float64
		id     *[32]byte
		want   bool
	}{
		{1, id("ffffffffffffff"), true},
		{0, id("00000000000000"), false},
		{0.5, id("7fffffffffffff"), true},
		{0.5, id("80000000000000"), false},
		{0.25, id("3fffffffffffff"), true},
		{0.25, id("40000000000000"), false},
	} {
		r, err := New(Options{Endpoint: "http://127.0.0.1:1", Sample: c.sample})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Begins(c.id); got != c.want {
			t.Errorf("%v of %s: %v", c.sample, c.id, got)
		}
		if n := testing.AllocsPerRun(100, func() { r.Begins(c.id) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func BenchmarkBegins(b *testing.B) {
	r, err := New(Options{Endpoint: "http://127.0.0.1:1", Sample: 0.01})
	if err != nil {
		b.Fatal(err)
	}
	id := [32]byte([]byte(strings.Repeat("4bf92f35", 4)))
	b.ReportAllocs()
	for b.Loop() {
		r.Begins(&id)
	}
}
