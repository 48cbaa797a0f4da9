package system

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// governed makes an API with a policy of a quota and a key of it, and waits until
// every gateway knows them.
func (s *split) governed(id string, most int) (path, key string) {
	s.t.Helper()
	s.rest.Do("POST", "/api/apis", rig.APIDef(id, s.origin, false))
	s.policy(id, most, id)
	path = "/" + id + "/x"
	s.everywhere("the policy", path, s.rest.NewKey(object{"apply_policies": []string{id}}), limited(most))
	return path, s.rest.NewKey(object{"apply_policies": []string{id}})
}

// traffic loads every gateway with calls that must be answered 200.
func (s *split) traffic(workers int, path, key string) *rig.Load {
	return rig.StartLoad(s.t, workers, func(client *http.Client, n int) error {
		got, err := rig.SendBy(client, "GET", s.gateways[n%len(s.gateways)].Traffic+path, nil, "Authorization", key)
		return rig.Want(200, got, err)
	})
}

// degraded waits until a gateway says that its admin is away, or no longer.
func (s *split) degraded(g *rig.Server, away bool) time.Duration {
	s.t.Helper()
	return g.Await(fmt.Sprintf("the admin away: %v", away), func() error {
		got, err := rig.Send("GET", g.Telemetry+"/readyz", nil)
		if err == nil && (got.Status != 200 || strings.Contains(got.Body, "admin does not answer") != away) {
			err = fmt.Errorf("%s", got)
		}
		return err
	})
}

// While the admin is gone traffic goes on, and a gateway that starts meanwhile
// serves what it last had in force.
func TestGatewaysGoOnWithoutTheAdmin(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	path, key := s.governed("calm", 1_000_000)
	first, second := s.gateways[0], s.gateways[1]
	s.gateways = []*rig.Server{first} // the other one is restarted
	load := s.traffic(4, path, key)
	load.AwaitMore(200)
	s.admin.Kill()
	noticed := s.degraded(first, true)
	load.AwaitMore(200)

	for _, end := range []func(){second.Kill, func() { second.Stop() }} {
		end()
		second.StartReady()
		second.AwaitLog("serving the last good configuration from disk")
		if got := rig.Call(t, "GET", second.Traffic+path, nil, "Authorization", key); got.Status != 200 {
			t.Errorf("restarted without the admin: %s", got)
		}
		if got := rig.Call(t, "GET", second.Telemetry+"/metrics", nil); !strings.Contains(got.Body, `source="disk"`) {
			t.Error("no metric says that the configuration is from disk")
		}
	}
	s.admin.StartReady()
	s.gateways = []*rig.Server{first, second}
	s.rest.Do("POST", "/api/apis", rig.APIDef("after", s.origin, true))
	took := s.everywhere("a change after the admin is back", "/after/x", "", status(200))
	s.degraded(second, false)
	load.AwaitMore(200)
	t.Logf("%d requests, none failed; the admin's end noticed after %s; a change made after its return in force %s later",
		load.Stop(), noticed.Round(time.Millisecond), took.Round(time.Millisecond))
}

// While the database is gone the admin says so and keeps what it acknowledged;
// traffic notices nothing.
func TestTheDatabaseMayBeKilled(t *testing.T) {
	t.Parallel()
	db := rig.NewDatabase(t)
	s := newSplit(t, 1, db.Dsn)
	path, key := s.governed("calm", 1_000_000)
	load := s.traffic(3, path, key)

	var mu sync.Mutex
	var acknowledged []string
	var refusedWrites atomic.Int64
	writes := rig.StartLoad(t, 3, func(*http.Client, int) error {
		mu.Lock()
		id := fmt.Sprintf("w-%d-%d", len(acknowledged), refusedWrites.Add(1))
		mu.Unlock()
		got, err := s.rest.Try("POST", "/api/apis", rig.APIDef(id, s.origin, true))
		switch {
		case err != nil:
			return err
		case got.Status == 200:
			mu.Lock()
			acknowledged = append(acknowledged, id)
			mu.Unlock()
			return nil
		case got.Status == 503 && got.Header.Get("Retry-After") != "":
			return nil
		}
		return fmt.Errorf("a write is answered %s, want 200, or 503 with Retry-After", got)
	})
	var recovered time.Duration
	for range 2 {
		writes.AwaitMore(20)
		db.Kill()
		rig.Within(t, rig.Patience, "the admin to miss its database", func() error {
			got, err := s.rest.Try("GET", "/api/apis", nil)
			if err == nil && got.Header.Get("Retry-After") == "" {
				err = fmt.Errorf("%s has no Retry-After", got)
			}
			return rig.Want(503, got, err)
		})
		load.AwaitMore(100)
		db.Start()
		began := time.Now()
		rig.Eventually(t, "the admin to find its database again", func() error {
			got, err := s.rest.Try("GET", "/api/apis", nil)
			return rig.Want(200, got, err)
		})
		recovered = max(recovered, time.Since(began))
	}
	writes.AwaitMore(20)
	writes.Stop()
	s.whole(acknowledged)
	s.rest.Do("POST", "/api/apis", rig.APIDef("after", s.origin, true))
	took := s.everywhere("a change after the outages", "/after/x", "", status(200))
	t.Logf("%d requests, none failed; %d writes acknowledged over two outages, none lost; the admin was back %s after the database, a change took %s",
		load.Stop(), len(acknowledged), recovered.Round(time.Millisecond), took.Round(time.Millisecond))
}

// whole checks that no write is half there: the list, the revisions and what is
// served agree, and hold all that was acknowledged.
func (s *split) whole(acknowledged []string) {
	s.t.Helper()
	var state struct {
		Revision int64 `json:"revision"`
	}
	s.rest.Do("GET", "/api/config", nil).Into(s.t, &state)
	var at struct {
		APIs []struct {
			ID string `json:"api_id"`
		} `json:"apis"`
	}
	s.rest.Do("GET", fmt.Sprintf("/api/config/revisions/%d", state.Revision), nil).Into(s.t, &at)
	inRevision := make(map[string]bool)
	for _, one := range at.APIs {
		inRevision[one.ID] = true
	}
	c := &crashes{t: s.t}
	inList := c.listed(s.rest, "/api/apis", "apis", "api_id")
	if len(inList) != len(inRevision) {
		s.t.Errorf("the list has %d APIs, the newest revision %d", len(inList), len(inRevision))
	}
	for _, id := range acknowledged {
		if !inList[id] || !inRevision[id] {
			s.t.Errorf("API %s was acknowledged; in the list: %v, in the revision: %v", id, inList[id], inRevision[id])
		}
	}
	for id := range inList {
		if id != "calm" {
			s.everywhere("API "+id, "/"+id+"/x", "", status(200))
		}
	}
}

// While the store is gone, or came back empty, traffic goes on under the policy
// local: no more is admitted beyond a quota than the bound, unknown keys are
// told that they cannot be checked, and later all is as before.
func TestTheStoreMayBeKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings []string
	}{
		{"and comes back empty", nil},
		{"and keeps its data", []string{"--appendonly", "yes", "--appendfsync", "always"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSplit(t, 2, testenv.Postgres(t), c.settings...)
			s.storeOutage()
		})
	}
}

// quotaCalls counts what of a quota was admitted.
type quotaCalls struct{ admitted, refused, other atomic.Int64 }

func (q *quotaCalls) call(g *rig.Server, path, key string) error {
	got, err := rig.Send("GET", g.Traffic+path, nil, "Authorization", key)
	switch {
	case err != nil:
	case got.Status == 200:
		q.admitted.Add(1)
	case got.Reason() == "quota_exceeded":
		q.refused.Add(1)
	default:
		q.other.Add(1)
		err = fmt.Errorf("%s, want 200 or quota_exceeded", got)
	}
	return err
}

func (s *split) storeOutage() {
	t, a, b := s.t, s.gateways[0], s.gateways[1]
	t.Helper()
	const most, before = 200, 81
	calm, calmKey := s.governed("calm", 1_000_000)
	path, key := s.governed("scarce", most)
	unseen := s.rest.NewKey(object{"apply_policies": []string{"calm"}})
	s.fleetKnown()

	var calls quotaCalls
	use := func(g *rig.Server, n int) {
		t.Helper()
		for range n {
			if err := calls.call(g, path, key); err != nil {
				t.Error(err)
			}
		}
	}
	// Both gateways know of all calls but the last one.
	use(a, before/2)
	use(b, before/2)
	use(a, before-before/2*2)
	if n := calls.admitted.Load(); n != before {
		t.Fatalf("%d calls of %d were admitted before the outage", n, before)
	}
	load := s.traffic(2, calm, calmKey)
	load.AwaitMore(50)

	const inFlight = 2 // calls at the moment of the kill, one of each worker of the load
	s.store.Kill()
	use(a, most)
	use(b, most)
	away := calls.admitted.Load() - before
	fromA, fromB := ceil(most-before, 2), ceil(most-(before-1), 2)
	if away < 2 || away > fromA+fromB {
		t.Errorf("%d calls were admitted while the store was away, want both shares at most: %d", away, fromA+fromB)
	}
	for i, g := range s.gateways {
		if got := rig.Call(t, "GET", g.Traffic+calm, nil, "Authorization", unseen); got.Status != 200 {
			t.Errorf("a key that gateway %d has not seen: %s, want 200, as the admin knows it", i+1, got)
		}
	}
	made := s.keyMadeMeanwhile()
	load.AwaitMore(100)

	s.store.Restart()
	began := time.Now()
	var work sync.WaitGroup
	for _, g := range s.gateways { // as soon as that, one may not have noticed yet
		work.Go(func() { use(g, most) })
	}
	keys := s.everywhere("the keys that no gateway had seen", calm, unseen, status(200))
	if made != "" {
		s.everywhere("the key made meanwhile", calm, made, status(200))
	}
	work.Wait()
	for _, g := range s.gateways {
		g.AwaitLog("CounterStoreUp")
		use(g, most/2)
	}
	total := calls.admitted.Load()
	// What the other gateway used since this one's last look, a call of each by
	// rounding, and calls in flight.
	bound := most + max(fromA, fromB) + 1 + 2 + inFlight
	if total > bound {
		t.Errorf("%d calls of %d were admitted over the whole outage, want %d at most", total, most, bound)
	}
	t.Logf("%d of %d admitted (%d before, %d while away, %d after): %d too many, bound %d; %d refused; keys were back after %s; calls of the load: %d, none failed; all took %s",
		total, most, before, away, total-before-away, max(0, total-most), bound-most, calls.refused.Load(), keys.Round(time.Millisecond), load.Stop(), time.Since(began).Round(time.Millisecond))
}

func ceil(n, parts int) int64 { return int64(math.Ceil(float64(n) / float64(parts))) }

// keyMadeMeanwhile makes a key while the store is away: it is kept, and reaches
// the gateways later. It returns "" when the admin rather refuses, which then
// has to say that it is for now.
func (s *split) keyMadeMeanwhile() string {
	s.t.Helper()
	got, err := s.rest.Try("POST", "/api/keys", object{"apply_policies": []string{"calm"}})
	if err != nil {
		s.t.Error(err)
	}
	if got.Status == 503 && got.Header.Get("Retry-After") != "" {
		return ""
	}
	var made struct {
		Key string `json:"key_id"`
	}
	if got.Status != 200 {
		s.t.Errorf("making a key while the store is away: %s", got)
		return ""
	}
	got.Into(s.t, &made)
	return rig.Plant(made.Key)
}

// fleetKnown waits until the gateways know among how many they share.
func (s *split) fleetKnown() {
	s.t.Helper()
	want := strconv.Itoa(len(s.gateways))
	s.admin.Await("the admin to know its gateways", func() error {
		got, err := rig.Send("GET", s.admin.Admin+"/api/gateway/bundle", nil, "Authorization", "Bearer "+splitToken)
		if shown := got.Header.Get("X-Sluice-Gateways"); err == nil && shown != want {
			err = fmt.Errorf("it says %q (status %d), want %s", shown, got.Status, want)
		}
		return err
	})
	s.rest.Do("POST", "/api/apis", rig.APIDef("fleet", s.origin, true)) // has every gateway hear it
	s.everywhere("the change", "/fleet/x", "", status(200))
}

// An upstream that is killed is answered for with 502 and a reason, and served
// again as soon as it is back.
func TestAnUpstreamMayBeKilled(t *testing.T) {
	t.Parallel()
	address := rig.FreeAddress(t)
	dir := t.TempDir()
	rig.SaveJSON(t, dir+"/gone.json", rig.APIDef("gone", "http://"+address, true))
	g := rig.NewGateway(t, settings{"gateway.apps_dir": dir}).StartReady()
	var served, failed, odd atomic.Int64
	load := rig.StartLoad(t, 4, func(client *http.Client, n int) error {
		method := []string{"GET", "POST"}[n%2]
		got, err := rig.SendBy(client, method, g.Traffic+"/gone/x", strings.Repeat("x", n%3*1000))
		switch {
		case err != nil:
		case got.Status == 200 && got.Body == "alive":
			served.Add(1)
		case got.Status == 502 && (got.Reason() == "upstream_connect" || got.Reason() == "upstream_reset"):
			failed.Add(1)
		default:
			odd.Add(1)
			err = fmt.Errorf("%s %s, want 200, or 502 with upstream_connect or upstream_reset", method, got)
		}
		return err
	})
	var back time.Duration
	for range 3 {
		upstream := serveUpstream(t, address)
		began, had := time.Now(), served.Load()
		rig.Eventually(t, "an answer of the upstream", func() error { return more(&served, had) })
		back = max(back, time.Since(began))
		load.AwaitMore(100)
		if err := upstream.Close(); err != nil { // cuts every connection
			t.Fatal(err)
		}
		had = failed.Load()
		rig.Eventually(t, "an answer 502", func() error { return more(&failed, had) })
		load.AwaitMore(50)
	}
	t.Logf("%d requests: %d served, %d answered 502; served again %s after the upstream was back", load.Stop(), served.Load(), failed.Load(), back.Round(time.Millisecond))
}

func more(n *atomic.Int64, than int64) error {
	if now := n.Load(); now <= than {
		return fmt.Errorf("still %d", now)
	}
	return nil
}

// serveUpstream answers on an address until it is closed.
func serveUpstream(t *testing.T, address string) *http.Server {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("alive")) })}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(ln) // ends with Close
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return server
}
