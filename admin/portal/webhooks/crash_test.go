package webhooks

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/webhooksign"
)

// Variables that make the test binary a process that takes events into a database. At the
// first it dies: before its transaction ends, or after that and before it answers.
const (
	childOf   = "SLUICE_TEST_EVENTS_OF"
	childDies = "SLUICE_TEST_EVENTS_DIES" // before or after; "": it does not
)

func TestMain(m *testing.M) {
	dsn := os.Getenv(childOf)
	if dsn == "" {
		os.Exit(m.Run())
	}
	if err := takeEvents(dsn, os.Getenv(childDies)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it arrives
}

func takeEvents(dsn, dies string) error {
	st, err := store.Open(context.Background(), store.Options{URL: dsn, MaxConns: 4})
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	queue, err := delivery.New(delivery.Options{Store: st, Log: logger})
	if err != nil {
		return err
	}
	service := New(Deps{Store: st, Queue: queue, MasterKey: secret.NewKey(), Now: time.Now, Log: logger})
	route := service.ingestRoute()
	if dies == "before" {
		route.Handle = func(ctx context.Context, c *rest.Call) (any, error) {
			return nil, st.InTx(ctx, func(tx *store.Tx) error {
				_, err := queue.PutEvent(ctx, tx, delivery.Event{
					Org: "o", Type: "order.created", Source: sourceID(&StreamEvent{Type: "order.created", API: ordersAPI, Stream: "out"}, "m-1"),
					Payload: []byte("{}"), To: []delivery.Receiver{{Webhook: "hook", Developer: "d1"}},
				})
				if err != nil {
					return err
				}
				die()
				return nil
			})
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	return fasthttp.Serve(ln, func(http *fasthttp.RequestCtx) {
		answer, err := route.Handle(http, &rest.Call{HTTP: http, Route: &route})
		if err != nil {
			fault, _ := rest.FaultOf(err)
			fault.Write(http)
			return
		}
		if dies == "after" {
			die()
		}
		_ = (&rest.Call{HTTP: http, Route: &route}).Write(answer)
	})
}

// postTo posts the event of the tests, and returns the status; 0: there was no answer.
func postTo(t *testing.T, address string) int {
	t.Helper()
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+EventsPath, bytes.NewReader([]byte(orderBody)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(webhooksign.IDHeader, "m-1")
	req.Header.Set(webhooksign.TimestampHeader, stamp)
	req.Header.Set(webhooksign.SignatureHeader, webhooksign.Sign([][]byte{[]byte(connector)}, "m-1", stamp, []byte(orderBody)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestAnEventIsNeitherLostNorDoubledWhenThePortalIsKilled(t *testing.T) {
	for _, c := range []struct {
		dies string
		then int // deliveries after it died
	}{{"before", 0}, {"after", 1}} {
		t.Run(c.dies, func(t *testing.T) {
			b := withOrders(t, options{})
			b.stop() // nothing is sent
			b.Exec(`insert into webhooks (id, org_id, developer_id, url, events, sealed_secret) values ('hook', 'o', 'd1', 'https://example.com/', '{order.created}', '')`)
			address, _ := testenv.Child(t, childOf+"="+b.DSN, childDies+"="+c.dies)
			if status := postTo(t, address); status != 0 {
				t.Fatalf("it answered %d", status)
			}
			if n := b.Count("select count(*) from deliveries"); n != c.then {
				t.Errorf("%d deliveries once it is dead", n)
			}
			// The gateway sends the message again.
			address, _ = testenv.Child(t, childOf+"="+b.DSN, childDies+"=")
			for range 2 {
				if status := postTo(t, address); status != 202 {
					t.Fatalf("it answered %d", status)
				}
			}
			if n := b.Count("select count(*) from deliveries where state = 'pending'"); n != 1 {
				t.Errorf("%d deliveries in the end", n)
			}
		})
	}
}
