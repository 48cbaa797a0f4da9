package portalhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

const secret = "the secret of this connector"

// patience bounds waits that end by an event.
const patience = time.Minute

// site is one whose dialer may call this machine.
func site(t *testing.T) *stream.Site {
	allowed, err := dialguard.ParseAllowed([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	guard := &dialguard.Dialer{Allowed: allowed, Setting: "streaming.allow_addresses"}
	return &stream.Site{
		Org: "o", API: "orders", Stream: "out", Label: "portal", MaxMessageBytes: 1 << 20, MaxInFlight: 256,
		Log: slog.New(slog.DiscardHandler), State: new(stream.State), Dial: guard.DialContext,
	}
}

func output(t *testing.T, at *stream.Site, url, data string) *Output {
	t.Helper()
	o, err := NewOutput(&streams.PortalWebhook{EventType: "order.created", PortalURL: url, Secret: secret, Data: streams.Template(data)}, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close(t.Context()) })
	return o.(*Output)
}

func message(id, body string) *stream.Message {
	return &stream.Message{ID: id, Body: []byte(body), At: time.Unix(1_700_000_000, 0), Attempt: 1}
}

// write writes a message and returns what it is settled with.
func write(t *testing.T, o *Output, m *stream.Message) error {
	t.Helper()
	settled := make(chan error, 2)
	o.Write(m, func(err error) { settled <- err })
	select {
	case err := <-settled:
		return err
	case <-time.After(patience):
		t.Fatal("the message is not settled")
		return nil
	}
}

// portal keeps what was posted.
type portal struct {
	answer http.HandlerFunc // nil: 202

	mu  sync.Mutex
	all []posted
}

type posted struct {
	header http.Header
	body   string
}

func (p *portal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.all = append(p.all, posted{r.Header.Clone(), string(body)})
	p.mu.Unlock()
	if p.answer != nil {
		p.answer(w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (p *portal) last(t *testing.T) posted {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		t.Fatal("nothing was posted")
	}
	return p.all[len(p.all)-1]
}

func TestAMessageIsPostedSigned(t *testing.T) {
	p := new(portal)
	server := httptest.NewServer(p)
	defer server.Close()
	at := site(t)
	o := output(t, at, server.URL+"/portal/events", "")
	if err := write(t, o, message("m-1", `{"total":1.50,"text":"<ü>"}`)); err != nil {
		t.Fatal(err)
	}
	got := p.last(t)
	if want := `{"type":"order.created","timestamp":"2023-11-14T22:13:20Z","api_id":"orders","stream":"out","data":{"total":1.50,"text":"<ü>"}}`; got.body != want {
		t.Errorf("posted %s\nwant   %s", got.body, want)
	}
	if got.header.Get("webhook-id") != "m-1" || got.header.Get("Content-Type") != "application/json" || len(got.header["Idempotency-Key"]) > 0 {
		t.Errorf("header %v", got.header)
	}
	seconds, err := strconv.ParseInt(got.header.Get("webhook-timestamp"), 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || age < -time.Minute || age > time.Hour {
		t.Errorf("timestamp %q", got.header.Get("webhook-timestamp"))
	}
	signatures, err := webhooksign.Parse(got.header.Get("webhook-signature"))
	if err != nil || !signatures.Match([][]byte{[]byte(secret)}, "m-1", got.header.Get("webhook-timestamp"), []byte(got.body)) {
		t.Errorf("signature %q, %v", got.header.Get("webhook-signature"), err)
	}
	if n, bytes := at.State.Messages.Load(), at.State.Bytes.Load(); n != 1 || bytes != 28 {
		t.Errorf("counted %d messages, %d bytes", n, bytes)
	}
}

func TestDataIsJSONOrTextOrBase64(t *testing.T) {
	p := new(portal)
	server := httptest.NewServer(p)
	defer server.Close()
	for _, c := range []struct{ data, body, want, encoding string }{
		{"", `[1,2]`, `[1,2]`, ""},
		{"", ` "a" `, `"a"`, ""},
		{"", `12345678901234567890`, `12345678901234567890`, ""},
		{"", "plain \"text\"\n", `"plain \"text\"\n"`, ""},
		{"", "", `""`, ""},
		{"", "\xff\x00", `"/wA="`, "base64"},
		{"", "\"\xff\"", `"Iv8i"`, "base64"},
		{`{"id": ${! this.id }}`, `{"id":7,"more":true}`, `{"id":7}`, ""},
		{`order ${! this.id }`, `{"id":7}`, `"order 7"`, ""},
	} {
		o := output(t, site(t), server.URL, c.data)
		if err := write(t, o, message("m", c.body)); err != nil {
			t.Errorf("%q: %v", c.body, err)
			continue
		}
		var got struct {
			Data     json.RawMessage `json:"data"`
			Encoding string          `json:"data_encoding"`
		}
		if err := json.Unmarshal([]byte(p.last(t).body), &got); err != nil || string(got.Data) != c.want || got.Encoding != c.encoding {
			t.Errorf("%q became %s (%q), %v; want %s", c.body, got.Data, got.Encoding, err, c.want)
		}
	}
}

func TestATemplateThatFailsIsPermanent(t *testing.T) {
	o := output(t, site(t), "http://127.0.0.1:9", "${! this.id.uppercase() }")
	if err := write(t, o, message("m", "no JSON")); stream.ClassOf(err) != stream.Permanent || !strings.Contains(err.Error(), "data: ") {
		t.Errorf("settled with %v", err)
	}
}

func TestIDsFitAHeader(t *testing.T) {
	p := new(portal)
	server := httptest.NewServer(p)
	defer server.Close()
	o := output(t, site(t), server.URL, "")
	seen := make(map[string]bool)
	for _, id := range []string{"a b", "a\nb", "ü", "", strings.Repeat("x", 257), strings.Repeat("x", 258)} {
		if err := write(t, o, message(id, "{}")); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		sent := p.last(t).header.Get("webhook-id")
		if !strings.HasPrefix(sent, "sha256-") || len(sent) != 71 || seen[sent] {
			t.Errorf("%q became %q", id, sent)
		}
		seen[sent] = true
	}
}

func TestAnswersHaveClasses(t *testing.T) {
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer elsewhere.Close()
	for _, c := range []struct {
		status int
		class  stream.Class
		phase  stream.Phase
	}{
		{301, stream.Permanent, stream.Failing},
		{307, stream.Permanent, stream.Failing},
		{400, stream.Permanent, stream.Running},
		{401, stream.Permanent, stream.Failing},
		{404, stream.Permanent, stream.Failing},
		{413, stream.Permanent, stream.Running},
		{408, stream.Transient, stream.Reconnecting},
		{425, stream.Transient, stream.Reconnecting},
		{429, stream.Transient, stream.Reconnecting},
		{500, stream.Unknown, stream.Reconnecting},
		{503, stream.Transient, stream.Reconnecting},
	} {
		server := httptest.NewServer(&portal{answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(c.status)
		}})
		at := site(t)
		err := write(t, output(t, at, server.URL+"/?q=secret", ""), message("m", "{}"))
		server.Close()
		f, ok := errors.AsType[*stream.Failure](err)
		if !ok || f.Class != c.class || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", c.status, err)
			continue
		}
		if phase, _ := at.State.Phase(); phase != c.phase {
			t.Errorf("%d: phase %s", c.status, phase)
		}
		if c.class != stream.Permanent && f.After != 7*time.Second || !strings.Contains(err.Error(), "status "+strconv.Itoa(c.status)) {
			t.Errorf("%d: after %v, %v", c.status, f.After, err)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}

func TestWhatMayHaveArrivedIsUnknown(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + free.Addr().String()
	_ = free.Close()
	at := site(t)
	if err := write(t, output(t, at, address, ""), message("m", "{}")); stream.ClassOf(err) != stream.Transient || err == nil {
		t.Errorf("a refused connection: %v", err)
	}
	if phase, _ := at.State.Phase(); phase != stream.Reconnecting {
		t.Errorf("phase %s", phase)
	}
	server := httptest.NewServer(&portal{answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }})
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	defer server.Close()
	if err := write(t, output(t, site(t), server.URL, ""), message("m", "{}")); stream.ClassOf(err) != stream.Unknown {
		t.Errorf("a cut after the request: %v", err)
	}
}

func TestPrivateAddressesAreNotCalled(t *testing.T) {
	p := new(portal)
	server := httptest.NewServer(p)
	defer server.Close()
	at := site(t)
	at.Dial = (&dialguard.Dialer{Setting: "streaming.allow_addresses"}).DialContext
	err := write(t, output(t, at, server.URL, ""), message("m", "{}"))
	if !errors.Is(err, dialguard.ErrPrivate) || !strings.Contains(err.Error(), "add it to streaming.allow_addresses") {
		t.Errorf("settled with %v", err)
	}
}

// levels is the demand of an output as its watchers see it.
type levels struct{ seen chan bool }

func watch(o *Output) *levels {
	l := &levels{make(chan bool, 1000)}
	o.Demand().Watch(func(on bool) { l.seen <- on })
	return l
}

func (l *levels) until(t *testing.T, on bool) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case level := <-l.seen:
			if level == on {
				return
			}
		case <-deadline:
			t.Fatalf("the demand does not become %v", on)
		}
	}
}

func TestDemandEndsWhileAllAreBusyAndWriteNeverBlocks(t *testing.T) {
	release := make(chan struct{})
	var now, most atomic.Int64
	server := httptest.NewServer(&portal{answer: func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusAccepted)
	}})
	defer server.Close()
	var once sync.Once
	open := func() { once.Do(func() { close(release) }) }
	defer open()
	o := output(t, site(t), server.URL, "")
	l := watch(o)
	l.until(t, true)
	const many = 50
	settled := make(chan error, many)
	for i := range many {
		o.Write(message(strconv.Itoa(i), "{}"), func(err error) { settled <- err })
	}
	l.until(t, false)
	if len(settled) > 0 {
		t.Error("a message is settled without an answer")
	}
	open()
	for range many {
		select {
		case err := <-settled:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("messages are not settled")
		}
	}
	l.until(t, true)
	if n := most.Load(); n > maxPosting {
		t.Errorf("%d at once", n)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int64
	server := httptest.NewUnstartedServer(new(portal))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	o := output(t, site(t), server.URL, "")
	for i := range 100 {
		if err := write(t, o, message(strconv.Itoa(i), "{}")); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n > 3 {
		t.Errorf("%d connections for 100 messages, one after the other", n)
	}
}

func TestCloseSettlesEverything(t *testing.T) {
	hung := make(chan struct{}, 100)
	server := httptest.NewServer(&portal{answer: func(_ http.ResponseWriter, r *http.Request) {
		hung <- struct{}{}
		<-r.Context().Done()
	}})
	defer server.Close()
	at := site(t)
	o := output(t, at, server.URL, "")
	const many = 40
	settled := make(chan error, many)
	for i := range many {
		o.Write(message(strconv.Itoa(i), "{}"), func(err error) { settled <- err })
	}
	for range maxPosting {
		<-hung
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	o.Close(ended)
	if len(settled) != many {
		t.Fatalf("%d of %d are settled", len(settled), many)
	}
	for range many {
		if err := <-settled; stream.ClassOf(err) != stream.Unknown {
			t.Errorf("settled with %v", err)
		}
	}
	if err := write(t, o, message("late", "{}")); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if phase, _ := at.State.Phase(); phase != stream.Stopped || o.Demand().On() {
		t.Errorf("phase %s, demand %v", phase, o.Demand().On())
	}
}

func TestConfigurationsThatCannotBeUsedAreRefused(t *testing.T) {
	at := site(t)
	if _, err := NewOutput(&streams.PortalWebhook{PortalURL: "http://portal.example/", Data: "${! this. }"}, at); err == nil || !strings.Contains(err.Error(), "data: ") {
		t.Errorf("a template: %v", err)
	}
	at.Dial = nil
	if _, err := NewOutput(&streams.PortalWebhook{PortalURL: "http://portal.example/"}, at); err == nil {
		t.Error("there is an output that cannot call anything")
	}
}
