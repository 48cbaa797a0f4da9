package traffic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// lineOf returns the access log's line of a path.
func (g *traffic) lineOf(path string) (line struct {
	Total    int64 `json:"total_us"`
	Gateway  int64 `json:"gateway_us"`
	Upstream int64 `json:"upstream_us"`
	Out      int64 `json:"bytes_out"`
	ID, IP   string
},
) {
	g.T.Helper()
	rig.Eventually(g.T, "the access log to have "+path, func() error {
		text, err := os.ReadFile(g.log)
		if err != nil {
			return err
		}
		for one := range strings.Lines(string(text)) {
			if strings.Contains(one, `"path":"`+path+`"`) {
				return json.Unmarshal([]byte(one), &line)
			}
		}
		return errors.New("it has not yet")
	})
	return line
}

// pause is how long the upstream is silent in the middle of its answers.
const pause = 300 * time.Millisecond

// slowAnswers are answers in two parts.
var slowAnswers = map[string][2]string{
	"whole":   {"Content-Length: 10\r\n\r\n01234", "56789"},
	"large":   {"Content-Length: 100000\r\n\r\n", strings.Repeat("x", 100_000)},
	"chunks":  {"Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n", "5\r\n56789\r\n0\r\n\r\n"},
	"events":  {"Content-Type: text/event-stream\r\n\r\n:a\n\n", ":b\n\n"},
	"to-late": {"", ""},
}

// The time of an upstream runs until the last byte of its answer, and through a time-out.
func TestASlowBodyIsTheUpstreamsTime(t *testing.T) {
	t.Parallel()
	address := testenv.RawOrigin(t, func(c net.Conn, _ int) {
		var none seen
		r, err := none.readRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		for name, parts := range slowAnswers {
			if !strings.HasSuffix(r.path, "/"+name) {
				continue
			}
			if parts[0] == "" {
				_, _ = io.Copy(io.Discard, c)
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n"+parts[0])
			time.Sleep(pause)
			fmt.Fprint(c, parts[1])
		}
	})
	slow := rig.APIDef("slow", "http://"+address, true)
	inner := rig.APIDef("inner", "svc://slow", true)
	spans, endpoint := newCollector(t)
	g := newTraffic(t, settings{"upstream.response_timeout": (2 * pause).String(), "telemetry.otlp.endpoint": endpoint}, nil, slow, inner)
	for name := range slowAnswers {
		for _, api := range []string{"slow", "inner"} {
			path, status := "/"+api+"/"+name, 200
			if name == "to-late" {
				status = 504
			}
			if got := rig.Call(t, "GET", g.Traffic+path, nil, "Traceparent", aParent+"-01"); got.Status != status {
				t.Errorf("%s: %s", path, got)
			}
			line := g.lineOf(path)
			if line.Upstream < pause.Microseconds() || line.Total < line.Upstream || line.Gateway > line.Total-line.Upstream+1 {
				t.Errorf("%s: %+v", path, line)
			}
		}
	}
	if got := g.lineOf("/slow/chunks").Out; got != 10 {
		t.Errorf("the log says that %d bytes of 10 were passed on", got)
	}
	for name, span := range spans.of(t, aTrace, "GET /slow/", "upstream") {
		if took := time.Duration(span.EndTimeUnixNano - span.StartTimeUnixNano); (name == "GET /slow/" || name == "upstream") && took < pause {
			t.Errorf("a span %q of %s", name, took)
		}
	}
	log := g.Run.Stderr.String()
	for _, want := range []string{"upstream.response_timeout (600ms) passed"} {
		if err := rig.Lacks(log, want); err != nil {
			t.Errorf("%q in the log: %v", want, err)
		}
	}
	scrape := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body
	for _, api := range []string{"slow", "inner"} {
		if got := seriesOf(t, scrape, "sluice_upstream_seconds_sum", api); got < 5*pause.Seconds() {
			t.Errorf("the metrics of %s have %.3f s of the upstream", api, got)
		}
	}
}

// seriesOf returns the value of a series of an API.
func seriesOf(t *testing.T, scrape, name, api string) (value float64) {
	t.Helper()
	_, rest, ok := strings.Cut(scrape, name+`{api="`+api+`"} `)
	if _, err := fmt.Sscan(rest, &value); !ok || err != nil {
		t.Errorf("%s of %s: %v", name, api, err)
	}
	return value
}

// The id of a caller behind a trusted proxy is that of its request.
func TestRequestIDsOfTrustedProxiesAreKept(t *testing.T) {
	t.Parallel()
	const id = "0b0c9ab1-5c5e-4a1f-9d61-3fcb2a53e1d7"
	var reached seen
	address := testenv.RawOrigin(t, func(c net.Conn, _ int) {
		br := bufio.NewReader(c)
		for {
			if _, err := reached.readRequest(br); err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	def := rig.APIDef("a", "http://"+address, true)
	def["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "global_headers": object{"X-Ours": "$svc_context.request_id"}}}}
	def["enable_context_vars"] = true
	for _, c := range []struct {
		name string
		with settings
		sent []string
		kept bool
	}{
		{"a trusted proxy", settings{"gateway.trusted_proxies": "127.0.0.0/8"}, []string{id}, true},
		{"anybody", nil, []string{id}, false},
		{"anybody, with the switch", settings{"gateway.keep_request_id": "true"}, []string{id}, true},
		{"two ids", settings{"gateway.keep_request_id": "true"}, []string{id, id}, false},
		{"an id that needs escapes", settings{"gateway.keep_request_id": "true"}, []string{`a"b`}, false},
		{"an id that is too long", settings{"gateway.keep_request_id": "true"}, []string{strings.Repeat("a", 65)}, false},
		{"no id", settings{"gateway.keep_request_id": "true"}, nil, false},
	} {
		g := newTraffic(t, c.with, nil, def)
		var headers []string
		var raw strings.Builder
		raw.WriteString("GET /a/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n")
		for _, one := range c.sent {
			raw.WriteString("X-Request-Id: " + one + "\r\n")
			headers = append(headers, "X-Request-Id", one)
		}
		conversation(t, g.addr, raw.String()+"\r\n")
		head := reached.lastHead()
		logged := g.lineOf("/a/x").ID
		if kept := strings.Contains(head, "X-Request-Id: "+id+"\r\n"); kept != c.kept || (logged == id) != c.kept || strings.Count(head, "X-Request-Id: ") != 1 ||
			!strings.Contains(head, "X-Request-Id: "+logged+"\r\n") || !strings.Contains(head, "X-Ours: "+logged+"\r\n") {
			t.Errorf("%s: logged as %s, upstream saw\n%s", c.name, logged, head)
		}
		if len(headers) > 2 {
			continue
		}
		refused := rig.Call(t, "GET", g.Traffic+"/none", nil, headers...)
		shown := refused.Header.Get("X-Request-Id")
		if (shown == id) != c.kept {
			t.Errorf("%s: refused as %s", c.name, shown)
		}
		why := rig.Call(t, "POST", g.Control+"/svc/explain", object{"id": shown}, "X-Svc-Authorization", testSecret)
		if why.Status != 200 || !strings.Contains(why.Body, `"route_not_found"`) {
			t.Errorf("%s: explained as %s", c.name, why)
		}
	}
}

// A call that the upstream did not answer is explained with address and cause.
func TestFailedCallsAreExplainedWithTheirCause(t *testing.T) {
	t.Parallel()
	dead := deadAddress(t)
	g := newTraffic(t, nil, nil, rig.APIDef("a", dead, true))
	failed := rig.Call(t, "GET", g.Traffic+"/a/x", nil)
	why := rig.Call(t, "POST", g.Control+"/svc/explain", object{"id": failed.Header.Get("X-Request-Id")}, "X-Svc-Authorization", testSecret)
	for _, want := range []string{`"upstream":"` + strings.TrimPrefix(dead, "http://") + `"`, "connection refused", `"status":502`} {
		if err := rig.Lacks(why.Body, want); err != nil {
			t.Errorf("%s: %s", want, why)
		}
	}
}

// A connection from a trusted proxy begins with a header of the PROXY protocol.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	target := "http://" + testenv.Origin(t, rig.Echo)
	g := newTraffic(t, settings{"gateway.trusted_proxies": "127.0.0.0/8", "gateway.proxy_protocol": "true"}, nil, rig.APIDef("a", target, true))
	call := func(path, header string) string {
		return conversation(t, g.addr, header+"GET /a/"+path+" HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.9.9.9\r\nConnection: close\r\n\r\n")
	}
	const v2 = "\r\n\r\n\x00\r\nQUIT\n"
	for name, c := range map[string]struct{ header, ip string }{
		"v1":         {"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n", "192.0.2.7"},
		"v1-ipv6":    {"PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n", "2001:db8::7"},
		"v1-unknown": {"PROXY UNKNOWN\r\n", "9.9.9.9"}, // of the proxy itself, which is trusted
		"v2":         {v2 + "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x01\x02\x03\x04", "192.0.2.7"},
		"v2-local":   {v2 + "\x20\x00\x00\x00", "9.9.9.9"},
	} {
		if got := call(name, c.header); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: %q", name, got)
		} else if ip := g.lineOf("/a/" + name).IP; ip != c.ip {
			t.Errorf("%s: the client is %s, want %s", name, ip, c.ip)
		}
	}
	for name, header := range map[string]string{"none": "", "another": "PROXY UDP4 192.0.2.7 198.51.100.1 1 2\r\n", "cut": "PROXY TCP4 192.0.2.7\r\n"} {
		if got := call(name, header); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	g.AwaitLog("gateway.proxy_protocol")
	scrape := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body
	if err := rig.Lacks(scrape, "sluice_client_proxy_headers_refused_total 3"); err != nil {
		t.Error("the metrics do not count three connections")
	}
}
