package endpoint

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
	"github.com/sluicegate/sluice/internal/definition/streams"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestMessagesAreEvents(t *testing.T) {
	o := output(t, func(c *streams.HTTPServerOutput) {
		c.Path, c.StreamPath, c.WSPath, c.Negotiates, c.Event = "/feed", "", "", true, `${! meta("kind").or("") }`
	})
	r := newRig(t, o)
	l := r.listen("/feed", "application/json;q=0.5, text/event-stream")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Length": ""} {
		if got := l.head.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	ready(t, o, 1)
	var settled outcomes
	for _, m := range []*stream.Message{
		{ID: "1", Body: []byte("a")},
		{ID: "2", Body: []byte("a\r\nb\rc\nd\n"), Meta: []stream.Meta{{Name: "kind", Value: "order"}}},
		{Body: nil},
		{ID: "x\ny", Body: []byte{0xff, 'x'}},
		{Body: []byte("a\x00")},
	} {
		o.Write(m, settled.settle)
	}
	l.wantEvent("retry: 2000\n")
	l.wantEvent("id: 1\ndata: a\n")
	l.wantEvent("id: 2\nevent: order\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n")
	l.wantEvent("data: \n")
	l.wantEvent("event: binary\ndata: /3g=\n")
	l.wantEvent("event: binary\ndata: YQA=\n")
	settled.until(t, 5, 0)
	o.Write(&stream.Message{Body: []byte("a"), Meta: []stream.Meta{{Name: "kind", Value: "a\nb"}}}, settled.settle)
	settled.until(t, 5, 1)
	if c := stream.ClassOf(settled.errs[0]); c != stream.Permanent {
		t.Errorf("a name with a line break: class %d", c)
	}
	o.Write(message("next"), settled.settle)
	l.wantEvent("id: m\ndata: next\n")
	if o.site.State.Messages.Load() != 6 || o.site.State.Clients.Load() != 1 {
		t.Errorf("%d messages, %d clients", o.site.State.Messages.Load(), o.site.State.Clients.Load())
	}
}

func TestClientsGetMessagesInTurn(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	var all []*listener
	for range 3 {
		l := r.listen("/get/stream", "text/event-stream")
		l.wantEvent("retry: 2000\n")
		all = append(all, l)
		ready(t, o, len(all))
	}
	var settled outcomes
	for i := range 9 {
		o.Write(&stream.Message{Body: fmt.Append(nil, i)}, settled.settle)
	}
	for i := range 9 {
		all[i%3].wantEvent(fmt.Sprintf("data: %d\n", i))
	}
	settled.until(t, 9, 0)
	all[1].conn.Close()
	ready(t, o, 2)
	for i := range 4 {
		o.Write(&stream.Message{Body: fmt.Append(nil, i)}, settled.settle)
	}
	settled.until(t, 13, 0)
	for i := range 4 {
		all[i%2*2].wantEvent(fmt.Sprintf("data: %d\n", i))
	}
}

func TestDemandFollowsClients(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	if o.Demand().On() {
		t.Error("demand without clients")
	}
	levels := make(chan bool, 10)
	defer o.Demand().Watch(func(on bool) { levels <- on })()
	<-levels
	l := r.listen("/get/stream", "text/event-stream")
	if !<-levels {
		t.Error("no demand with a client")
	}
	l.conn.Close()
	if <-levels {
		t.Error("demand without a client")
	}
}

func TestLines(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	l := r.listen("/get/stream", "*/*")
	ready(t, o, 1)
	var settled outcomes
	for _, body := range []string{"a", "{\n\"a\": [1,\n2]}", "two\nlines"} {
		o.Write(message(body), settled.settle)
	}
	for _, want := range []string{"a\n", `{"a":[1,2]}` + "\n", `"two\nlines"` + "\n"} {
		if got, err := l.in.ReadString('\n'); got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	o.Close(t.Context())
	if rest, err := io.ReadAll(l.in); len(rest) > 0 || err != nil {
		t.Errorf("at the end %q, %v", rest, err)
	}
	settled.until(t, 3, 0)
}

func TestALongPollGetsOneMessage(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	var settled outcomes
	type answer struct{ kind, id, body string }
	got := make(chan answer)
	for _, body := range []string{`{"a":1}`, "text", strings.Repeat("long", 30_000)} {
		go func() {
			resp, text := r.do("GET", "/get", "", "Accept: text/event-stream") // it has a path of its own
			got <- answer{resp.Header.Get("Content-Type"), resp.Header.Get("Message-Id"), text}
		}()
		ready(t, o, 1)
		o.Write(message(body), settled.settle)
		want := answer{typeOf([]byte(body)), "m", body}
		if a := <-got; a != want {
			t.Errorf("%.80q, want %.80q", a, want)
		}
	}
	settled.until(t, 3, 0)
	ready(t, o, 0)
}

func TestALongPollEndsInTime(t *testing.T) {
	o := output(t, func(c *streams.HTTPServerOutput) { c.Timeout = 20 * time.Millisecond })
	r := newRig(t, o)
	resp, body := r.do("GET", "/get", "")
	if resp.StatusCode != 408 || !strings.Contains(body, `"error"`) || len(r.reasons()) > 0 {
		t.Errorf("%d %q %v", resp.StatusCode, body, r.reasons())
	}
	if n := clients(o); n > 0 {
		t.Errorf("%d clients are left", n)
	}
}

func TestClientsAreBounded(t *testing.T) {
	o := output(t, func(c *streams.HTTPServerOutput) { c.MaxClients = 1 })
	r := newRig(t, o)
	r.listen("/get/stream", "text/event-stream")
	for _, path := range []string{"/get", "/get/stream"} {
		if resp, _ := r.do("GET", path, ""); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestMessagesWithoutClientsGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output(t)
		var settled outcomes
		began := time.Now()
		o.Write(message("a"), settled.settle)
		o.Write(message("b"), settled.settle)
		time.Sleep(withoutClients - 1)
		synctest.Wait()
		if ok, failed := settled.counts(); ok+failed > 0 {
			t.Errorf("settled after %v", time.Since(began))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, failed := settled.counts(); failed != 2 || stream.ClassOf(settled.errs[0]) != stream.Transient {
			t.Errorf("%v", settled.errs)
		}
	})
}

func TestAClosedOutputHasClientsConnectAgain(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	l := r.listen("/get/stream", "text/event-stream")
	polled := make(chan int)
	go func() { resp, _ := r.do("GET", "/get", ""); polled <- resp.StatusCode }()
	ready(t, o, 2)
	var settled outcomes
	o.Write(message("first"), settled.settle)
	o.Write(message("second"), settled.settle)
	if status := <-polled; status != 200 {
		t.Errorf("poll: %d", status)
	}
	go func() { resp, _ := r.do("GET", "/get", ""); polled <- resp.StatusCode }()
	ready(t, o, 2)
	o.Close(t.Context())
	l.wantEvent("retry: 2000\n")
	if got, err := l.event(); err != nil || !strings.Contains(got, "data: ") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := l.event(); err != nil || !strings.HasPrefix(got, "retry: ") {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := l.event(); err != io.EOF {
		t.Errorf("behind it: %v", err)
	}
	if status := <-polled; status != 503 {
		t.Errorf("poll of a closed output: %d", status)
	}
	o.Write(message("late"), settled.settle)
	settled.until(t, 2, 1)
	if n := clients(o); n > 0 || o.Demand().On() {
		t.Errorf("%d clients, demand %t", n, o.Demand().On())
	}
	if resp, _ := r.do("GET", "/get", ""); resp.StatusCode != 503 {
		t.Errorf("after the end: %d", resp.StatusCode)
	}
}

// TestASlowClientLosesNothing has a client that reads nothing beside one that reads all.
func TestASlowClientLosesNothing(t *testing.T) {
	o := output(t, func(c *streams.HTTPServerOutput) { c.WriteTimeout, c.MaxPending = 5*time.Second, 4 })
	r := newRig(t, o)
	slow := r.listen("/get/stream", "text/event-stream")
	fast := r.listen("/get/stream", "text/event-stream")
	ready(t, o, 2)
	const messages, size = 100, 300_000
	seen := make(chan map[string]int)
	go func() {
		got := make(map[string]int)
		for len(got) < messages {
			event, err := fast.event()
			if err != nil {
				break
			}
			if id, _, ok := strings.Cut(strings.TrimPrefix(event, "id: "), "\n"); ok && id != "retry: 2000" && strings.HasPrefix(event, "id: ") {
				got[id]++
			}
		}
		seen <- got
	}()
	var settled outcomes
	body := []byte(strings.Repeat("x", size))
	for i := range messages {
		o.Write(&stream.Message{ID: fmt.Sprint(i), Body: body}, settled.settle)
	}
	settled.until(t, messages, 0)
	wait.Until(t, "the slow client is dropped", func() bool { return o.site.State.Dropped.Load() == 1 })
	ready(t, o, 1)
	slow.conn.Close()
	fast.conn.Close()
	got := <-seen
	if len(got) == 0 || len(got) == messages {
		t.Logf("the client that reads got %d messages", len(got)) // the other one's socket takes some
	}
	for id, n := range got {
		if n > 1 {
			t.Errorf("message %s came %d times", id, n)
		}
	}
}

func TestAllClientsVanish(t *testing.T) {
	o := output(t)
	r := newRig(t, o)
	before := runtime.NumGoroutine()
	var all []*listener
	for range 200 {
		all = append(all, r.listen("/get/stream", "text/event-stream"))
	}
	ready(t, o, len(all))
	for _, l := range all {
		_ = l.conn.(*net.TCPConn).SetLinger(0) // a reset
		l.conn.Close()
	}
	wait.Until(t, "nothing is left of the clients", func() bool { return clients(o) == 0 && runtime.NumGoroutine() <= before })
	if o.Demand().On() {
		t.Error("there is demand")
	}
}
