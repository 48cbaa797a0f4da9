package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// sink collects what is written, with delays and errors that tests set.
type sink struct {
	mu     sync.Mutex
	text   bytes.Buffer
	err    error
	gate   chan struct{} // when not nil, each write waits for one
	closed bool
}

func (s *sink) Write(b []byte) (int, error) {
	if s.gate != nil {
		<-s.gate
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	return s.text.Write(b)
}

func (s *sink) Close() error { s.closed = true; return nil }

func (s *sink) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.SplitAfter(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

func lineOf(t testing.TB, ex *pipeline.Exchange, status int) map[string]any {
	t.Helper()
	o := New(Options{Log: quiet()})
	line := appendLine(nil, o.meter("sample"), &observed{ex: ex, status: status, method: methodOf(ex.Call.Method), total: 1500 * time.Microsecond, own: 1200 * time.Microsecond})
	if bytes.Count(line, []byte{'\n'}) != 1 || line[len(line)-1] != '\n' {
		t.Fatalf("not one line: %q", line)
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	return got
}

func TestALineDescribesARequest(t *testing.T) {
	ex := exchange("POST", "/sample/things", 201)
	ex.Started = time.Date(2026, 11, 21, 9, 5, 7, 42e6, time.FixedZone("", 7200))
	ex.Call.SetBody([]byte("four"))
	ex.KeyHash, ex.KeyName = "geheimgeheim", "0123456789ab"
	ex.Grant = &pipeline.Grant{Policy: "gold"}
	ex.Upstream.Retries = 1
	got := lineOf(t, ex, 201)
	want := map[string]any{
		"ts": "2026-11-21T07:05:07.042Z", "id": "0123456789abcdef0123456789abcdef", "api": "sample", "rev": "42",
		"key": "0123456789ab", "policy": "gold", "method": "POST", "path": "/sample/things", "status": 201.,
		"bytes_in": 4., "bytes_out": 5., "total_us": 1500., "gateway_us": 1200., "upstream_us": 300.,
		"upstream": "10.0.0.1:80", "upstream_status": 201., "retries": 1., "ip": "192.0.2.7", "user_agent": "curl/8.5.0",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("other members than expected: %v", got)
	}
	if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), "geheim") {
		t.Errorf("a secret is in the line: %s", text)
	}
}

func TestALineNamesTheReasonOfARefusal(t *testing.T) {
	got := lineOf(t, rejected(pipeline.ReasonQuotaExceeded, 403, ""), 403)
	if got["reason"] != "quota_exceeded" || got["upstream"] != nil || got["key"] != nil {
		t.Errorf("got %v", got)
	}
}

func TestALineBoundsTextsOfClients(t *testing.T) {
	ex := exchange(strings.Repeat("M", 5000), "/"+strings.Repeat("é", 9000), 200)
	ex.Call.SetLines([]byte("User-Agent: " + strings.Repeat("\x01", 9000)))
	ex.Client = netip.MustParseAddr(`fe80::1%"},{"` + strings.Repeat("z", 100))
	got := lineOf(t, ex, 200)
	for name, most := range map[string]int{"method": maxMethod, "path": maxPath + 3, "user_agent": maxUserAgent, "ip": 45} {
		if text := got[name].(string); len(text) > most {
			t.Errorf("%s has %d bytes, want at most %d", name, len(text), most)
		}
	}
}

func TestBodiesOfUnknownLengthAreLeftOut(t *testing.T) {
	ex := exchange("POST", "/", 200)
	ex.Call.Stream, ex.Call.Length = strings.NewReader("unread"), -1
	ex.Answer.Stream, ex.Answer.Length = &sinkReader{}, -1
	got := lineOf(t, ex, 200)
	if got["bytes_in"] != nil || got["bytes_out"] != nil {
		t.Errorf("got %v", got)
	}
	ex.Answer.Length = 77
	if got := lineOf(t, ex, 200); got["bytes_out"] != 77. {
		t.Errorf("bytes_out %v, want 77", got["bytes_out"])
	}
	ex.Answer.Stream, ex.Answer.NoBody = nil, true
	if got := lineOf(t, ex, 200); got["bytes_out"] != 0. {
		t.Errorf("bytes_out %v, want 0", got["bytes_out"])
	}
}

type sinkReader struct{}

func (sinkReader) Read([]byte) (int, error) { panic("a body was read by the log") }
func (sinkReader) Close() error             { return nil }

func FuzzLine(f *testing.F) {
	f.Add("GET", []byte("/a"), []byte("curl"), "rev", "up:80")
	f.Add("\"", []byte("/\\\"\n\r\x00\x7f\u2028\u0085"), []byte("\xff\xc3\xe2\x82"), "\x80", "é\xf0\x9f")
	f.Fuzz(func(t *testing.T, method string, path, agent []byte, revision, upstream string) {
		ex := exchange("GET", "", 200)
		ex.Call.Method = []byte(method)
		ex.Call.SetLines(append([]byte("User-Agent: "), agent...))
		ex.Call.Path, ex.Revision, ex.Upstream.Address = path, revision, upstream
		line := appendLine(nil, New(Options{Log: quiet()}).meter("sample"), &observed{ex: ex, status: 200})
		body := line[:len(line)-1]
		if !json.Valid(body) || line[len(line)-1] != '\n' {
			t.Fatalf("not JSON: %q", line)
		}
		for _, r := range string(body) {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' {
				t.Fatalf("control character %q in %q", r, line)
			}
		}
		if bytes.ContainsRune(path, 0xfffd) || len(path) > maxPath {
			return
		}
		var got struct{ Path string }
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(string(path), ""); strings.ReplaceAll(got.Path, "\uFFFD", "") != want {
			t.Fatalf("path %q became %q", path, got.Path)
		}
	})
}

func running(t *testing.T, l *AccessLog) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func TestLinesAreWrittenSoonInOrderAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{}
		l := newAccessLog(out, AccessOptions{SampleOK: 1}, quiet())
		m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
		stop := running(t, l)
		m.Done(exchange("GET", "/first", 200))
		time.Sleep(flushEvery + time.Millisecond) // on the test's clock
		synctest.Wait()
		if got := out.lines(); len(got) != 1 || !strings.Contains(got[0], "/first") {
			t.Fatalf("after a while: %q", got)
		}
		for range 2000 { // several blocks
			m.Done(exchange("GET", "/then", 200))
		}
		m.Done(exchange("GET", "/last", 200))
		stop()
		got := out.lines()
		if len(got) != 2002 || !strings.Contains(got[2001], "/last") || l.Dropped() != 0 || !out.closed {
			t.Errorf("%d lines, the last %q, %d dropped, closed %v", len(got), got[len(got)-1], l.Dropped(), out.closed)
		}
		for i, line := range got {
			if !json.Valid([]byte(line)) {
				t.Fatalf("line %d: %q", i, line)
			}
		}
	})
}

func TestAStalledLogDropsLinesAndDoesNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &sink{gate: make(chan struct{})}
		l := newAccessLog(out, AccessOptions{SampleOK: 1}, quiet())
		m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
		stop := running(t, l)
		const sent = 30_000
		for range sent {
			m.Done(exchange("GET", "/", 200))
		}
		if l.Dropped() == 0 {
			t.Error("nothing was dropped: the log has no bound")
		}
		close(out.gate)
		stop()
		if got := uint64(len(out.lines())) + l.Dropped(); got != sent {
			t.Errorf("%d lines written or dropped, want %d", got, sent)
		}
	})
}

func TestABlockedLogDoesNotDelayTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		out := &sink{gate: make(chan struct{})}
		l := newAccessLog(out, AccessOptions{SampleOK: 1}, slog.New(slog.NewTextHandler(&log, nil)))
		m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
		stop := running(t, l)
		m.Done(exchange("GET", "/", 200))
		time.Sleep(2 * flushEvery) // on the test's clock
		began := time.Now()
		stop()
		if took := time.Since(began); took != finishWithin || !strings.Contains(log.String(), "last lines are lost") {
			t.Errorf("took %s, logged %q", took, log.String())
		}
		close(out.gate)
	})
}

func TestAFailingLogIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		out := &sink{err: errors.New("no space left")}
		l := newAccessLog(out, AccessOptions{SampleOK: 1}, slog.New(slog.NewTextHandler(&log, nil)))
		m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
		stop := running(t, l)
		for range 3 {
			m.Done(exchange("GET", "/", 200))
			time.Sleep(flushEvery) // on the test's clock
			synctest.Wait()
		}
		out.mu.Lock()
		out.err = nil
		out.mu.Unlock()
		m.Done(exchange("GET", "/", 200))
		stop()
		if l.Dropped() != 3 || len(out.lines()) != 1 {
			t.Errorf("%d dropped, %d written", l.Dropped(), len(out.lines()))
		}
		if got := log.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "no space left") || !strings.Contains(got, "works again") {
			t.Errorf("logged\n%s", got)
		}
	})
}

func TestOnlySuccessesAreSampled(t *testing.T) {
	for _, c := range []struct {
		share      float64
		least, max int
	}{{0, 0, 0}, {0.25, 350, 650}, {1, 2000, 2000}} {
		out := &sink{}
		l := newAccessLog(out, AccessOptions{SampleOK: c.share}, quiet())
		m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
		for range 2000 {
			m.Done(exchange("GET", "/good", 200))
		}
		for range 10 {
			m.Done(rejected(pipeline.ReasonAuthMissing, 401, ""))
			m.Done(exchange("GET", "/bad", 500))
		}
		running(t, l)()
		text := out.text.String()
		good, bad, refused := strings.Count(text, "/good"), strings.Count(text, "/bad"), strings.Count(text, "auth_missing")
		if good < c.least || good > c.max || bad != 10 || refused != 10 {
			t.Errorf("share %v: %d successes, %d errors, %d refusals", c.share, good, bad, refused)
		}
	}
}

func TestTheFileIsOpenedAgainOnRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := OpenAccessLog(AccessOptions{Target: "file", File: path, SampleOK: 1}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Log: quiet(), Access: l}).NewMeter("sample")
	stop := running(t, l)
	m.Done(exchange("GET", "/before", 200))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	wait.Until(t, "the file is opened again", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
	m.Done(exchange("GET", "/after", 200))
	stop()
	for name, want := range map[string]string{path + ".1": "/before", path: "/after"} {
		text, err := os.ReadFile(name)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v %q", name, err, text)
		}
	}
}

func TestTargetsOfTheAccessLog(t *testing.T) {
	if l, err := OpenAccessLog(AccessOptions{Target: "off"}, quiet()); l != nil || err != nil {
		t.Errorf("off: %v, %v", l, err)
	}
	for _, o := range []AccessOptions{{Target: "syslog"}, {Target: "file", File: t.TempDir()}, {Target: "file"}} {
		if _, err := OpenAccessLog(o, quiet()); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// Every text is written as a JSON string that reads back.
func FuzzText(f *testing.F) {
	f.Add("plain text that is longer than eight")
	f.Add("12345\"78\\0123\x7f567\x1f\u20281\xff2345678")
	f.Fuzz(func(t *testing.T, text string) {
		line, same := appendText([]byte{'"'}, text), appendText([]byte{'"'}, []byte(text))
		var got string
		if err := json.Unmarshal(line, &got); err != nil || got != strings.ToValidUTF8(text, "\ufffd") && !strings.Contains(got, "\ufffd") || !bytes.Equal(line, same) {
			t.Fatalf("%q is written as %q, which reads %q: %v", text, line, got, err)
		}
	})
}

func TestSuccessesAndShedCallsAreSampled(t *testing.T) {
	shed := pipeline.NewRejection(pipeline.ReasonOverloaded, 503, "too many")
	limited := pipeline.NewRejection(pipeline.ReasonRateLimit, 429, "too many")
	for _, c := range []struct {
		name     string
		sample   float64
		r        *pipeline.Rejection
		status   int
		min, max int // of 10,000
	}{
		{"successes", 1, nil, 200, 10_000, 10_000},
		{"a share of successes", 0.5, nil, 200, 4_500, 5_500},
		{"no successes", 0, nil, 200, 0, 0},
		{"errors of the upstream", 0, nil, 502, 10_000, 10_000},
		{"refusals", 0, limited, 429, 10_000, 10_000},
		{"calls that are shed", 1, shed, 503, 30, 250},
	} {
		l := newAccessLog(keepOpen{&bytes.Buffer{}}, AccessOptions{SampleOK: c.sample}, quiet())
		n := 0
		for range 10_000 {
			if l.wants(&observed{ex: &pipeline.Exchange{Rejection: c.r}, status: c.status}) {
				n++
			}
		}
		if n < c.min || n > c.max {
			t.Errorf("%s: %d of 10,000 are written, want %d to %d", c.name, n, c.min, c.max)
		}
	}
}
