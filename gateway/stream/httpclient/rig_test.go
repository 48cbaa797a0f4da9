package httpclient

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/gateway/stream"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// A logBuffer is what was logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func siteFor(t *testing.T) (*stream.Site, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	var dialer net.Dialer
	return &stream.Site{
		Stream: "s", Label: "l", MaxMessageBytes: 1 << 20, MaxInFlight: 16, State: &stream.State{},
		Log: slog.New(slog.NewTextHandler(log, nil)), Dial: dialer.DialContext,
	}, log
}

// tripper makes calls without a network.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f tripper) forSite(bool) http.RoundTripper { return f }

// A taken is a message that a flow has got.
type taken struct {
	*stream.Message
	settle stream.Settle
}

// A flow keeps what it is given.
type flow struct {
	demand *stream.Demand
	full   sync.Mutex // held: nothing is taken
	got    chan taken
	asked  chan struct{} // a message that is not taken
}

func newFlow(on bool) *flow {
	return &flow{demand: stream.NewDemand(on), got: make(chan taken, 1000), asked: make(chan struct{}, 1000)}
}

func (f *flow) Demand() *stream.Demand { return f.demand }

func (f *flow) Take(m *stream.Message, settle stream.Settle) bool {
	if !f.full.TryLock() {
		f.asked <- struct{}{}
		return false
	}
	defer f.full.Unlock()
	f.got <- taken{m, settle}
	return true
}

func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case one := <-from:
		return one
	case <-time.After(patience):
		t.Fatal("it does not come")
		panic("unreachable")
	}
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// goroutines returns the stacks of goroutines of this package and of connections to servers.
func goroutines() []string {
	buf := make([]byte, 1<<20)
	var ours []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "httpclient.(*") || strings.Contains(stack, "http.(*persistConn)") || strings.Contains(stack, "http.(*Transport)") {
			ours = append(ours, stack)
		}
	}
	return ours
}

// noGoroutines waits until there are none.
func noGoroutines(t *testing.T) {
	t.Helper()
	end := time.Now().Add(patience)
	for left := goroutines(); len(left) > 0; left = goroutines() {
		if time.Now().After(end) {
			t.Fatalf("goroutines are left:\n%s", strings.Join(left, "\n\n"))
		}
		time.Sleep(time.Millisecond)
	}
}
