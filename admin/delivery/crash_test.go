package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// Variables that make the test binary a process that sends what waits in a
// database to a receiver.
const (
	childOf = "SLUICE_TEST_DELIVERIES_OF"
	childTo = "SLUICE_TEST_DELIVERIES_TO"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childOf); dsn != "" {
		if err := runChild(dsn, os.Getenv(childTo)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// childTimeout makes leases short: four and a half seconds.
const childTimeout = 1500 * time.Millisecond

// runChild sends until the process is killed.
func runChild(dsn, to string) error {
	st, err := store.Open(context.Background(), store.Options{URL: dsn, MaxConns: 20})
	if err != nil {
		return err
	}
	q, err := New(Options{
		Store: st, Timeout: childTimeout, Poll: 50 * time.Millisecond, Pauses: []time.Duration{time.Second, time.Second, time.Second},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	q.Handle(Webhook, poster(to))
	fmt.Println("sending")
	q.Run(context.Background())
	return nil
}

// poster sends to a receiver over HTTP.
type poster string

func (to poster) Send(ctx context.Context, d Delivery) Outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(to), bytes.NewReader(d.Payload))
	if err != nil {
		return Outcome{Result: Never, Error: err.Error()}
	}
	req.Header.Set("webhook-id", d.ID)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Outcome{Error: err.Error()}
	}
	defer resp.Body.Close()
	return Outcome{Result: Done, Status: resp.StatusCode}
}

// child starts a process that sends.
func (b *bench) child(to string) (kill func()) {
	b.t.Helper()
	_, kill = testenv.Child(b.t, childOf+"="+b.dsn, childTo+"="+to)
	return kill
}

// receiver takes messages slowly and sees when one comes twice at a time.
type receiver struct {
	mu     sync.Mutex
	active map[string]int
	got    map[string]int
	total  int
	twice  int
	after  func(total int) // a message was taken; nil: nothing
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	r.active[id]++
	if r.active[id] > 1 {
		r.twice++
	}
	r.got[id]++
	r.total++
	total, after := r.total, r.after
	r.mu.Unlock()
	if after != nil {
		after(total)
	}
	timer := time.NewTimer(20 * time.Millisecond) // what taking a message costs
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done(): // the sender is gone
	}
	r.mu.Lock()
	r.active[id]--
	r.mu.Unlock()
}

func TestNoMessageIsLostNorSentTwiceAtATimeWhenSendersAreKilled(t *testing.T) {
	b := start(t)
	const many = 300
	kills := make(chan struct{}, many)
	r := &receiver{active: map[string]int{}, got: map[string]int{}}
	r.after = func(total int) {
		if total == 40 || total == 120 || total == 200 {
			kills <- struct{}{}
		}
	}
	server := httptest.NewServer(r)
	defer server.Close()
	q := b.queue()
	var ids []string
	for i := range many {
		ids = append(ids, b.put(q, Message{Kind: Webhook, Target: fmt.Sprint("t", i%9), Event: "e", Payload: []byte("{}")}))
	}
	children := []func(){b.child(server.URL), b.child(server.URL)}
	for i := range 3 {
		<-kills
		children[i%2]() // with messages on their way
		children[i%2] = b.child(server.URL)
	}
	wait.Until(t, "every message is done", func() bool { return b.count("select count(*) from deliveries where state <> 'done'") == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	again := 0
	for _, id := range ids {
		if r.got[id] == 0 {
			t.Errorf("%s did not arrive", id)
		}
		if r.got[id] > 1 {
			again++
		}
	}
	if r.twice > 0 {
		t.Errorf("%d times a message came twice at a time", r.twice)
	}
	if again == 0 {
		t.Error("no kill caught a message on its way: nothing was tested")
	}
	t.Logf("%d messages came %d times, %d of them again after a kill", many, r.total, again)
}
