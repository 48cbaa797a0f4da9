package traffic

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// flood calls without a pause, on many connections at once.
type flood struct {
	t       testing.TB
	conns   []net.Conn
	calling sync.WaitGroup
	ended   atomic.Bool
	served  atomic.Int64 // answered 200
	shed    atomic.Int64 // answered 503 as too many
}

func startFlood(t testing.TB, addr string, conns int, request string) *flood {
	t.Helper()
	f := &flood{t: t}
	for range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		f.conns = append(f.conns, c)
		f.calling.Go(func() { f.call(c, request) })
	}
	t.Cleanup(f.stop)
	return f
}

func (f *flood) call(c net.Conn, request string) {
	br := bufio.NewReader(c)
	for !f.ended.Load() {
		if err := f.one(c, br, request); err != nil {
			f.t.Errorf("a call of the flood: %v", err)
			return
		}
	}
}

func (f *flood) one(c net.Conn, br *bufio.Reader, request string) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusOK:
		f.served.Add(1)
	case resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("X-Sluice-Reason") == "overloaded":
		f.shed.Add(1)
		if resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), `"error"`) {
			return fmt.Errorf("shed with %v %s", resp.Header, body)
		}
	default:
		return fmt.Errorf("%d %s", resp.StatusCode, body)
	}
	return nil
}

// stop ends the flood with the last answers, so that all calls are accounted for.
func (f *flood) stop() {
	f.ended.Store(true)
	f.calling.Wait()
	for _, c := range f.conns {
		_ = c.Close()
	}
}

// served calls n times, one after the other, and returns how many were served.
// None may be refused for another reason than that there are too many.
func (g *traffic) served(n int, path, key string) (served int) {
	g.T.Helper()
	for range n {
		switch got := rig.Call(g.T, "GET", g.Traffic+path, nil, "Authorization", key); {
		case got.Status == http.StatusOK:
			served++
		case got.Status != http.StatusServiceUnavailable || got.Reason() != "overloaded":
			g.T.Fatalf("%s: %s", path, got)
		}
	}
	return served
}

// A key that floods is shed, and it alone; what is shed is not counted; and all
// is as before once it ends. This test is alone, since it takes the machine.
func TestAFloodIsShedAndTheOthersAreServed(t *testing.T) {
	asked := &seen{}
	origin := honest(t, asked)
	g := newTraffic(t, settings{
		"overload.target_delay": "1ms", "GOMAXPROCS": "1", "log.sample_ok": "0", "upstream.response_timeout": "30s",
	}, nil,
		rig.APIDef("one", origin, false), rig.APIDef("two", origin, false))
	const quota = 100_000_000
	key := func(api string) string {
		return g.newKey(object{"quota_max": quota, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo(api)})
	}
	greedy, quiet, other := key("one"), key("one"), key("two")
	if got := rig.Call(t, "GET", g.Control+"/hello", nil); !strings.Contains(got.Body, `"load"`) {
		t.Errorf("the load is not in /hello: %s", got)
	}

	f := startFlood(t, g.addr, 1200, "GET /one/x HTTP/1.1\r\nHost: a\r\nAuthorization: "+greedy+"\r\n\r\n")
	g.awaitMetric("sluice_overload_shedding", 1)
	rig.Eventually(t, "calls that are shed", func() error {
		if f.shed.Load() < 1000 {
			return errors.New("there are few")
		}
		return nil
	})
	for _, c := range []struct{ path, key string }{{"/one/x", quiet}, {"/two/x", other}} {
		const calls = 100
		if served := g.served(calls, c.path, c.key); served < calls*9/10 {
			t.Errorf("%s: %d of %d calls were served", c.path, served, calls)
		}
	}
	for _, path := range []string{"/ready", "/live"} {
		if got := rig.Call(t, "GET", g.Control+path, nil); got.Status != http.StatusOK {
			t.Errorf("%s under overload: %s", path, got)
		}
	}
	f.stop()

	g.awaitMetric("sluice_overload_shedding", 0)
	if times := g.metric("sluice_overload_total"); times < 1 {
		t.Errorf("shedding began %v times", times)
	}
	g.AwaitLog("overloaded: calls that are too many get 503")
	g.AwaitLog("no longer overloaded")
	served, shed := f.served.Load(), f.shed.Load()
	t.Logf("%d calls of the flood were served, %d shed", served, shed)
	if served < shed/100 {
		t.Errorf("of the flood only %d calls were served, and %d shed", served, shed)
	}
	last := rig.Call(t, "GET", g.Traffic+"/one/x", nil, "Authorization", greedy)
	left, err := strconv.ParseInt(last.Header.Get("X-RateLimit-Remaining"), 10, 64)
	if err != nil || quota-left != served+1 {
		t.Errorf("the quota counts %d calls where %d were served; %v", quota-left, served+1, err)
	}
}

// With a target of 0 nothing is shed, whatever comes in.
func TestSheddingCanBeTurnedOff(t *testing.T) {
	asked := &seen{}
	g := newTraffic(t, settings{"overload.target_delay": "0s", "GOMAXPROCS": "1", "log.sample_ok": "0"}, nil, rig.APIDef("open", honest(t, asked), true))
	f := startFlood(t, g.addr, 200, "GET /open/x HTTP/1.1\r\nHost: a\r\n\r\n")
	rig.Eventually(t, "some traffic", func() error {
		if f.served.Load() < 5000 {
			return errors.New("there is little")
		}
		return nil
	})
	f.stop()
	if shed := f.shed.Load(); shed > 0 {
		t.Errorf("%d calls were shed", shed)
	}
}
