package traffic

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	aTrace  = "0af7651916cd43dd8448eb211c80319c"
	aSpan   = "b7ad6b7169203331"
	aParent = "00-" + aTrace + "-" + aSpan
)

// collected is a collector of traces.
type collected struct {
	mu    sync.Mutex
	spans []*otlp.Span
	token string
}

func newCollector(t testing.TB) (*collected, string) {
	t.Helper()
	c := &collected{}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	return c, s.URL
}

// ServeHTTP implements http.Handler.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var sent collector.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err != nil || proto.Unmarshal(body, &sent) != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = r.Header.Get("X-Token")
	for _, from := range sent.ResourceSpans {
		for _, scope := range from.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// of returns the spans of a trace by their names once all that are wanted came.
func (c *collected) of(t testing.TB, trace string, names ...string) map[string]*otlp.Span {
	t.Helper()
	found := make(map[string]*otlp.Span)
	rig.Eventually(t, "the spans", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans {
			if hex.EncodeToString(s.TraceId) == trace {
				found[s.Name] = s
			}
		}
		for _, name := range names {
			if found[name] == nil {
				return fmt.Errorf("no span %q of trace %s among %d", name, trace, len(found))
			}
		}
		return nil
	})
	return found
}

// headerSent returns a header of the last request that an upstream got.
func headerSent(up *seen, name string) string {
	for line := range strings.SplitSeq(up.lastHead(), "\r\n") {
		if key, value, _ := strings.Cut(line, ": "); strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

var parentForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$`)

func TestTraceContextGoesOn(t *testing.T) {
	for _, way := range ways[:2] {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			up, address := newScripted(t, noContent)
			api := rig.APIDef("open", "http://"+address, true)
			api["enable_context_vars"] = true
			api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
				"name": "Default", "global_headers": object{"X-Trace": "$svc_context.svc_trace_id"},
			}}}
			g := newTraffic(t, way.with, nil, api)

			g.get("/open/plain")
			if got := headerSent(&up.seen, "traceparent"); got != "" || strings.Contains(g.logged(), `"trace"`) {
				t.Errorf("without a trace: %q", got)
			}
			for _, parent := range []string{aParent + "-01", aParent + "-00", "cc-" + aTrace + "-" + aSpan + "-01-what.comes"} {
				g.get("/open/x", "Traceparent: "+parent, "Tracestate: vendor=1, other@x=2")
				if got := headerSent(&up.seen, "traceparent"); got != parent || headerSent(&up.seen, "tracestate") != "vendor=1, other@x=2" || headerSent(&up.seen, "X-Trace") != aTrace {
					t.Errorf("%s became\n%s", parent, up.lastHead())
				}
			}
			if log := g.logged(); strings.Count(log, `"trace":"`+aTrace+`"`) != 3 {
				t.Errorf("the access log:\n%s", log)
			}
			for _, lines := range [][]string{
				{"Traceparent: 00-" + strings.ToUpper(aTrace) + "-" + aSpan + "-01", "Tracestate: vendor=1"},
				{"Traceparent: " + aParent + "-01", "Traceparent: " + aParent + "-01"},
				{"Traceparent: x"},
			} {
				g.get("/open/x", lines...)
				got := parentForm.FindStringSubmatch(headerSent(&up.seen, "traceparent"))
				if got == nil || got[1] == aTrace || got[3] != "00" || got[1] != headerSent(&up.seen, "X-Trace") || headerSent(&up.seen, "tracestate") != "" || strings.Count(strings.ToLower(up.lastHead()), "traceparent:") != 1 {
					t.Errorf("%q became\n%s", lines, up.lastHead())
				}
			}
			g.get("/open/x", "Tracestate: vendor=1")
			if headerSent(&up.seen, "tracestate") != "" {
				t.Errorf("the state of no trace went on:\n%s", up.lastHead())
			}
		})
	}
}

func TestACollectorIsToldOfRequests(t *testing.T) {
	t.Parallel()
	got, url := newCollector(t)
	up, address := newScripted(t, noContent)
	g := newTraffic(t, settings{"telemetry.otlp.endpoint": url, "telemetry.otlp.headers": "X-Token=planted", "telemetry.otlp.sample": "1"}, nil,
		rig.APIDef("keyed", "http://"+address, false))
	key := g.newKey(object{"access_rights": rig.AccessTo("keyed"), "rate": 100, "per": 1})

	// A trace that begins here.
	g.get("/keyed/x?secret=1", "Authorization: "+key)
	sent := parentForm.FindStringSubmatch(headerSent(&up.seen, "traceparent"))
	if sent == nil || sent[3] != "01" {
		t.Fatalf("sent on: %s", up.lastHead())
	}
	spans := got.of(t, sent[1], "GET /keyed/", "auth", "access", "limit", "upstream")
	root := spans["GET /keyed/"]
	for name, s := range spans {
		if name != root.Name && string(s.ParentSpanId) != string(root.SpanId) {
			t.Errorf("%s is not below the request", name)
		}
	}
	if hex.EncodeToString(spans["upstream"].SpanId) != sent[2] || len(root.ParentSpanId) != 0 {
		t.Errorf("spans %v", spans)
	}

	// One that the caller records, and one that it does not.
	g.get("/keyed/x", "Authorization: "+key, "Traceparent: 00-"+strings.Repeat("c", 32)+"-"+aSpan+"-00")
	if unsampled := headerSent(&up.seen, "traceparent"); unsampled != "00-"+strings.Repeat("c", 32)+"-"+aSpan+"-00" {
		t.Errorf("sent on: %s", unsampled)
	}
	g.get("/keyed/x", "Traceparent: "+aParent+"-01") // refused: there is no key
	spans = got.of(t, aTrace, "GET /keyed/", "auth")
	if root := spans["GET /keyed/"]; hex.EncodeToString(root.ParentSpanId) != aSpan || spans["upstream"] != nil || spans["auth"].Status.Code != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("spans %v", spans)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	for _, s := range got.spans {
		if hex.EncodeToString(s.TraceId) == strings.Repeat("c", 32) {
			t.Errorf("recorded against the caller's will: %v", s)
		}
		if text := s.String(); strings.Contains(text, "secret") || strings.Contains(text, key) {
			t.Errorf("a span tells too much: %s", text)
		}
	}
	if got.token != "planted" {
		t.Errorf("the token was %q", got.token)
	}
	rig.Eventually(t, "the number of spans", func() error {
		return rig.Lacks(rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body, `sluice_trace_spans_total{outcome="sent"} `)
	})
}

func TestACollectorThatIsAwayCostsNoRequest(t *testing.T) {
	t.Parallel()
	_, address := newScripted(t, noContent)
	g := newTraffic(t, settings{"telemetry.otlp.endpoint": deadAddress(t), "telemetry.otlp.sample": "1"}, nil, rig.APIDef("open", "http://"+address, true))
	g.want("200 200 200", 3, "GET", "/open/x")
}
