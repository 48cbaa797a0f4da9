package system

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

// held is an upstream that answers once it is told to.
type held struct {
	address string
	arrived chan struct{}
	release chan struct{}
}

func newHeld(t *testing.T) *held {
	t.Helper()
	h := &held{arrived: make(chan struct{}, 100), release: make(chan struct{})}
	h.address = testenv.Origin(t, func(ctx *fasthttp.RequestCtx) {
		h.arrived <- struct{}{}
		<-h.release
		ctx.SetBodyString("late")
	})
	t.Cleanup(h.letGo)
	return h
}

func (h *held) letGo() {
	select {
	case <-h.release:
	default:
		close(h.release)
	}
}

// stopping starts a gateway, has requests wait for its upstream and sends the
// first signal. The results arrive in the channel.
func stopping(t *testing.T, h *held, requests int, with settings) (*rig.Server, chan error) {
	t.Helper()
	dir := t.TempDir()
	rig.SaveJSON(t, filepath.Join(dir, "slow.json"), rig.APIDef("slow", "http://"+h.address, true))
	g := rig.NewGateway(t, rig.Merge(with, settings{"gateway.apps_dir": dir})).StartReady()
	results := make(chan error, requests)
	for range requests {
		go func() {
			got, err := rig.Send("GET", g.Traffic+"/slow/x", nil)
			if err == nil {
				err = body("late")(got)
			}
			results <- err
		}()
	}
	for range requests {
		<-h.arrived
	}
	g.Signal(syscall.SIGINT)
	g.AwaitLog("stopping")
	rig.Eventually(t, "new connections to be refused", func() error {
		if _, err := rig.Send("GET", g.Traffic+"/slow/x", nil); err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("not refused: %v", err)
		}
		return nil
	})
	return g, results
}

// The first Ctrl-C waits for requests in flight, the second one does not.
func TestAStopWaitsForRequestsInFlight(t *testing.T) {
	t.Parallel()
	const requests = 5
	t.Run("once", func(t *testing.T) {
		h := newHeld(t)
		g, results := stopping(t, h, requests, settings{"gateway.drain_timeout": "60s"})
		if g.HasEnded() {
			t.Fatal("it ended although requests are in flight")
		}
		h.letGo()
		for range requests {
			if err := <-results; err != nil {
				t.Errorf("a request in flight at the stop: %v", err)
			}
		}
		if code := g.Wait(); code != 0 {
			t.Errorf("ended with code %d, want 0", code)
		}
	})
	t.Run("twice", func(t *testing.T) {
		h := newHeld(t)
		g, results := stopping(t, h, requests, settings{"gateway.drain_timeout": (2 * rig.Patience).String()})
		g.Signal(syscall.SIGINT)
		if code := g.Wait(); code != 0 { // for as long as patience lasts
			t.Errorf("ended with code %d, want 0", code)
		}
		for range requests {
			if err := <-results; err == nil {
				t.Error("a request was answered by an upstream that never did")
			}
		}
	})
}

// When the private database dies under the program, it is started again;
// meanwhile the admin says so and traffic goes on.
func TestThePrivateDatabaseIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := rig.DataDir(t)
	s := rig.NewUp(t, dir, nil, "--demo").StartReady()
	rest := s.Rest()
	load := rig.StartLoad(t, 2, func(client *http.Client, n int) error {
		got, err := rig.SendBy(client, "GET", s.Traffic+"/open/hello", nil)
		return rig.Want(200, got, err)
	})
	var unavailable atomic.Int64
	writes := rig.StartLoad(t, 2, func(_ *http.Client, n int) error {
		got, err := rest.Try("POST", "/api/keys", object{"access_rights": rig.AccessTo("demo-keyed")})
		if err == nil && got.Status == 503 && got.Header.Get("Retry-After") != "" {
			unavailable.Add(1)
			return nil
		}
		return rig.Want(200, got, err)
	})
	var slowest time.Duration
	for range 3 {
		writes.AwaitMore(20)
		pid, err := strconv.Atoi(rig.FirstLine(filepath.Join(dir, "pg", "postmaster.pid")))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		rig.Eventually(t, "another database server", func() error {
			if now, _ := strconv.Atoi(rig.FirstLine(filepath.Join(dir, "pg", "postmaster.pid"))); now == pid || now == 0 {
				return fmt.Errorf("it is process %d", now)
			}
			got, err := rest.Try("GET", "/api/apis", nil)
			return rig.Want(200, got, err)
		})
		slowest = max(slowest, time.Since(began))
	}
	writes.AwaitMore(20)
	t.Logf("3 kills: %d requests, none failed; of %d writes %d were told to try again; the admin was back after %s at most",
		load.Stop(), writes.Stop(), unavailable.Load(), slowest.Round(time.Millisecond))
	if code := s.Stop(); code != 0 {
		t.Errorf("ended with code %d, want 0", code)
	}
}

// A gateway that stops is not waited for any more, and the admin explains what another
// one refused.
func TestTheAdminKnowsWhichGatewaysServe(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	s.rest.Do("POST", "/api/apis", rig.APIDef("dead", "http://"+rig.FreeAddress(t), true))
	s.everywhere("the API", "/dead/x", "", status(502))
	for i, g := range s.gateways {
		failed := rig.Call(t, "GET", g.Traffic+"/dead/x", nil)
		got := s.admin.CLI("explain", "--id", failed.Header.Get("X-Request-Id"))
		got.Wants(t, 5, "reason=upstream_connect", "connection refused")
		if t.Failed() {
			t.Fatalf("a request that gateway %d refused", i+1)
		}
	}
	listed := func() string { return s.rest.Do("GET", "/api/gateways", nil).Body }
	rig.Eventually(t, "two gateways to be known", func() error {
		if n := strings.Count(listed(), `"name":`); n != 2 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if code := s.gateways[1].Stop(); code != 0 {
		t.Errorf("ended with code %d", code)
	}
	if got := listed(); strings.Count(got, `"name":`) != 1 {
		t.Errorf("a gateway that has stopped is known: %s", got)
	}
	file := filepath.Join(t.TempDir(), "more.json")
	rig.SaveJSON(t, file, object{"kind": "API", "metadata": object{"name": "more"}, "spec": rig.APIDef("more", s.origin, true)})
	s.admin.CLI("apply", "-f", file, "--wait").Wants(t, 0, "1 gateway serves it")
	s.gateways[0].Signal(syscall.SIGSTOP)
	defer s.gateways[0].Signal(syscall.SIGCONT)
	rig.SaveJSON(t, file, object{"kind": "API", "metadata": object{"name": "again"}, "spec": rig.APIDef("again", s.origin, true)})
	s.admin.CLI("apply", "-f", file, "--wait=2s").Wants(t, 1, "missing: ", strings.TrimPrefix(s.gateways[0].Traffic, "http://"))
}
