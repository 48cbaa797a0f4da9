package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
)

func sendTo(address string) *streams.HTTPSend {
	return &streams.HTTPSend{HTTPRequest: streams.HTTPRequest{
		URL: streams.Template(address), Verb: "POST", Timeout: time.Minute, RetryPeriod: time.Millisecond, BackoffOn: []int{429},
	}}
}

func outputOf(t *testing.T, c *streams.HTTPSend, at *stream.Site) *output {
	t.Helper()
	out, err := NewOutput(c, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		out.Close(context.Background())
		out.Close(context.Background())
		if phase, _ := at.State.Phase(); phase != stream.Stopped || out.Demand().On() {
			t.Errorf("phase %s at the end", phase)
		}
		noGoroutines(t)
	})
	return out.(*output)
}

// write writes a message and returns what it is settled with. A message that is settled
// twice fails the test.
func write(t *testing.T, out stream.Output, id, body string) <-chan error {
	t.Helper()
	settled, times := make(chan error, 1), atomic.Int32{}
	out.Write(&stream.Message{ID: id, Body: []byte(body)}, func(err error) {
		if times.Add(1) > 1 {
			t.Error("a message is settled twice")
			return
		}
		settled <- err
	})
	return settled
}

func TestASuccessAcknowledges(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Idempotency-Key"), " ", r.Header.Get("Content-Type"), " ", string(body)))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<17)) // more than anyone reads
	}))
	t.Cleanup(server.Close)
	at, log := siteFor(t)
	out := outputOf(t, sendTo(server.URL+`/${! this.a.catch("none") }`), at)
	for _, one := range [][2]string{{"1", `{"a":1}`}, {"with space", "text"}, {"", ""}, {strings.Repeat("x", maxID+1), "x"}} {
		if err := next(t, write(t, out, one[0], one[1])); err != nil {
			t.Error(err)
		}
	}
	for i, want := range []string{
		`POST /1 1 application/json {"a":1}`,
		"POST /none sha256-b8b8f25a5fc711caea1cfebfe02359e3ce2b9a8f9ce02d18fdcb1ba47ff095f1 application/octet-stream text",
		"POST /none sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  ",
		"POST /none sha256-",
	} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("got %s, want %s", got[i], want)
		}
	}
	if phase, _ := at.State.Phase(); phase != stream.Running || at.State.Messages.Load() != 4 || at.State.Bytes.Load() != 12 || counts(at.State) != "0 0 0 4" || log.String() != "" {
		t.Errorf("phase %s, %d messages, %d bytes, errors and attempts %s, log %s", phase, at.State.Messages.Load(), at.State.Bytes.Load(), counts(at.State), log)
	}
}

func TestTheKeyOfTheConfigurationCounts(t *testing.T) {
	keys := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("Idempotency-Key") }))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	c := sendTo(server.URL)
	c.Headers = []streams.Header{{Name: "idempotency-key", Value: "${! content() }"}}
	out := outputOf(t, c, at)
	if err := next(t, write(t, out, "1", "mine")); err != nil || next(t, keys) != "mine" {
		t.Errorf("%v, or the id of the message", err)
	}
}

// Requests are repeated by the connector, and the failure of the last one settles the
// message.
func TestOutcomes(t *testing.T) {
	var mu sync.Mutex
	var statuses []int
	keys := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		keys[r.Header.Get("Idempotency-Key")]++
		w.Header().Set("Location", "/other")
		status := statuses[0]
		if statuses = statuses[1:]; status == 0 {
			panic(http.ErrAbortHandler) // breaks off
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	const good = stream.Class(99)
	for _, c := range []struct {
		statuses []int
		class    stream.Class
		want     string
		errors   string // and attempts
	}{
		{[]int{204}, good, "", "0 0 0 1"},
		{[]int{409}, good, "", "0 0 0 1"},
		{[]int{400}, stream.Permanent, "status 400", "0 0 0 1"},
		{[]int{302}, stream.Permanent, "status 302", "0 0 0 1"},
		{[]int{299}, stream.Permanent, "status 299", "0 0 0 1"},
		{[]int{503, 200}, good, "", "0 0 1 2"},
		{[]int{503, 429, 425}, stream.Transient, "status 425", "0 0 2 3"},
		{[]int{503, 404}, stream.Permanent, "status 404", "0 0 1 2"},
		{[]int{500, 408, 503}, stream.Unknown, "status 503", "0 2 0 3"},
		{[]int{0, 0, 0}, stream.Unknown, "the connection was closed", "0 2 0 3"},
		{[]int{0, 200}, good, "", "0 1 0 2"},
	} {
		t.Run(fmt.Sprint(c.statuses), func(t *testing.T) {
			mu.Lock()
			statuses = slices.Clone(c.statuses)
			clear(keys)
			mu.Unlock()
			at, _ := siteFor(t)
			conf := sendTo(server.URL + "/?key=secret")
			conf.Retries, conf.SuccessfulOn, conf.DropOn, conf.Bearer = 2, []int{409}, []int{299}, "secret"
			out := outputOf(t, conf, at)
			err := next(t, write(t, out, "1", "secret"))
			switch {
			case err == nil && c.class != good, err != nil && (c.class == good || stream.ClassOf(err) != c.class):
				t.Error(err)
			case err != nil && (!strings.HasPrefix(err.Error(), "POST "+strings.TrimPrefix(server.URL, "http://")+": ") || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("%v, want %s", err, c.want)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := counts(at.State); got != c.errors || keys["1"] != len(c.statuses) || len(statuses) != 0 {
				t.Errorf("errors and attempts %s, want %s; keys %v", got, c.errors, keys)
			}
		})
	}
}

// Once a request may have arrived, a later one that was refused a connection does not tell
// that the server has nothing.
func TestARequestThatMayHaveArrivedCounts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		conn, err := listener.Accept()
		_ = listener.Close()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
	}()
	at, log := siteFor(t)
	c := sendTo("http://" + listener.Addr().String())
	c.Retries = 2
	out := outputOf(t, c, at)
	if err := next(t, write(t, out, "1", "x")); stream.ClassOf(err) != stream.Unknown || !strings.HasSuffix(err.Error(), "connection refused") {
		t.Errorf("class %d, %v", stream.ClassOf(err), err)
	}
	if err := next(t, write(t, out, "2", "x")); stream.ClassOf(err) != stream.Transient {
		t.Errorf("of another message: class %d, %v", stream.ClassOf(err), err)
	}
	if phase, _ := at.State.Phase(); phase != stream.Reconnecting || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("phase %s, log %s", phase, log)
	}
}

func TestMessagesThatMakeNoRequest(t *testing.T) {
	at, _ := siteFor(t)
	out := outputOf(t, sendTo("http://a/${! this.x.y }"), at)
	if err := next(t, write(t, out, "1", "no JSON")); stream.ClassOf(err) != stream.Permanent || at.State.Attempts.Load() != 0 {
		t.Errorf("%v", err)
	}
	if _, err := NewOutput(sendTo("nowhere"), at); err == nil {
		t.Error("an output without an address")
	}
}

// gate is a server that holds requests until they are let through.
type gate struct {
	arrived chan string
	through chan int // status
	most    atomic.Int32
	busy    atomic.Int32
}

func newGate(t *testing.T) (*gate, *httptest.Server) {
	g := &gate{arrived: make(chan string, 10000), through: make(chan int)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := g.busy.Add(1)
		defer g.busy.Add(-1)
		for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
		}
		body, _ := io.ReadAll(r.Body)
		g.arrived <- string(body)
		select {
		case status := <-g.through:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return g, server
}

func TestDemandIsOffWhileAllIsOnItsWay(t *testing.T) {
	g, server := newGate(t)
	at, _ := siteFor(t)
	at.MaxInFlight = 4
	out := outputOf(t, sendTo(server.URL), at)
	var settled []<-chan error
	for i := range 4 {
		if !out.Demand().On() {
			t.Errorf("no demand after %d messages", i)
		}
		settled = append(settled, write(t, out, "1", "x"))
	}
	if out.Demand().On() {
		t.Error("there is demand although the output is full")
	}
	for range 3 {
		settled = append(settled, write(t, out, "1", "x")) // is taken, and waits
	}
	for range 4 {
		next(t, g.arrived)
	}
	for range 7 {
		g.through <- 200
	}
	for _, one := range settled {
		if err := next(t, one); err != nil {
			t.Error(err)
		}
	}
	if g.most.Load() > 4 || !out.Demand().On() {
		t.Errorf("%d requests at a time; demand %v", g.most.Load(), out.Demand().On())
	}
}

func TestOneAtATimeIsInOrder(t *testing.T) {
	first := true
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, string(body))
		if first {
			w.WriteHeader(503)
		}
		first = !first
	}))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	at.MaxInFlight = 1
	c := sendTo(server.URL)
	c.Retries = 1
	out := outputOf(t, c, at)
	var settled []<-chan error
	for i := range 3 {
		settled = append(settled, write(t, out, "1", fmt.Sprint(i)))
	}
	for _, one := range settled {
		if err := next(t, one); err != nil {
			t.Error(err)
		}
	}
	if fmt.Sprint(got) != "[0 0 1 1 2 2]" {
		t.Errorf("got %v", got)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	_, server := newGate(t)
	at, _ := siteFor(t)
	at.MaxInFlight = 1
	out := outputOf(t, sendTo(server.URL), at)
	for range maxQueued + 1 {
		out.Write(&stream.Message{}, func(error) {})
	}
	if err := next(t, write(t, out, "1", "")); err == nil || stream.ClassOf(err) != stream.Transient {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out.Close(ctx)
}

func TestSendsKeepTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		answers := tripper(func(*http.Request) (*http.Response, error) {
			mu.Lock()
			at = append(at, time.Since(began))
			n := len(at)
			mu.Unlock()
			time.Sleep(5 * time.Second)
			h := http.Header{}
			status := 200
			if n == 1 {
				h.Set("Retry-After", "1")
				status = 503
			}
			return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}, nil
		})
		site, _ := siteFor(t)
		site.HTTP = answers.forSite
		c := sendTo("http://a")
		c.Retries, c.Interval = 1, 2*time.Second
		out, err := NewOutput(c, site)
		if err != nil {
			t.Fatal(err)
		}
		var settled []<-chan error
		for i := range 4 {
			if on := out.Demand().On(); on != (i < 2) { // one may wait for its turn
				t.Errorf("message %d: demand %v", i, on)
			}
			settled = append(settled, write(t, out, "1", "x"))
		}
		for _, one := range settled {
			if err := <-one; err != nil {
				t.Error(err)
			}
		}
		if !out.Demand().On() {
			t.Error("no demand afterwards")
		}
		out.Close(t.Context())
		if fmt.Sprint(at) != "[0s 2s 4s 6s 8s]" {
			t.Errorf("requests at %v", at)
		}
	})
}

func TestRetriesObeyTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		answers := tripper(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Since(began))
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {[]string{"7", "3600", "30"}[len(at)-1]}}, Body: http.NoBody}, nil
		})
		site, _ := siteFor(t)
		site.HTTP = answers.forSite
		c := sendTo("http://a")
		c.Retries = 2
		out, err := NewOutput(c, site)
		if err != nil {
			t.Fatal(err)
		}
		err = <-write(t, out, "1", "x")
		failure, ok := errors.AsType[*stream.Failure](err)
		if fmt.Sprint(at) != "[0s 7s 1m7s]" || !ok || failure.After != 30*time.Second {
			t.Errorf("requests at %v; %v", at, err)
		}
		out.Close(t.Context())
	})
}

func TestCloseSettlesAll(t *testing.T) {
	g, server := newGate(t)
	at, _ := siteFor(t)
	at.MaxInFlight = 2
	out := outputOf(t, sendTo(server.URL), at)
	var settled []<-chan error
	for range 4 {
		settled = append(settled, write(t, out, "1", "x"))
	}
	next(t, g.arrived)
	next(t, g.arrived)
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan struct{})
	go func() { out.Close(ctx); close(closed) }()
	for _, one := range settled[2:] { // they were not sent
		if err := next(t, one); !errors.Is(err, stream.ErrClosed) {
			t.Error(err)
		}
	}
	g.through <- 200
	cancel()
	next(t, closed)
	good := 0
	for _, one := range settled[:2] {
		if err := next(t, one); err == nil {
			good++
		} else if !errors.Is(err, stream.ErrClosed) {
			t.Error(err)
		}
	}
	if good > 1 || next(t, write(t, out, "2", "x")) != error(stream.ErrClosed) || len(g.arrived) > 0 {
		t.Error("messages are sent after the end")
	}
}

func TestCloseSettlesWhatWaitsForAnotherRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	t.Cleanup(server.Close)
	at, _ := siteFor(t)
	c := sendTo(server.URL)
	c.RetryPeriod, c.Retries = time.Hour, 1
	out := outputOf(t, c, at)
	settled := write(t, out, "1", "x")
	eventually(t, "a failure", func() bool { return at.State.Again.Load() == 1 })
	server.CloseClientConnections()
	noGoroutines(t) // while it waits
	out.Close(t.Context())
	if err := next(t, settled); !errors.Is(err, stream.ErrClosed) {
		t.Error(err)
	}
}

func BenchmarkSend(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(server.Close)
	var dialer net.Dialer
	out, err := NewOutput(sendTo(server.URL), &stream.Site{MaxMessageBytes: 1 << 20, MaxInFlight: 16, State: &stream.State{}, Dial: dialer.DialContext})
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close(context.Background())
	m := &stream.Message{ID: "1", Body: []byte(`{"a":"` + strings.Repeat("x", 1000) + `"}`)}
	room := make(chan struct{}, 16)
	b.ReportAllocs()
	for b.Loop() {
		room <- struct{}{}
		out.Write(m, func(err error) {
			if err != nil {
				b.Error(err)
			}
			<-room
		})
	}
	for range cap(room) {
		room <- struct{}{}
	}
}
