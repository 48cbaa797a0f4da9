package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// usageReport is what GET /api/usage answers.
type usageReport struct {
	Totals struct{ Hits, Errors int64 } `json:"totals"`
	Data   []struct {
		API    string   `json:"api_id"`
		Key    string   `json:"key"`
		Status int      `json:"status"`
		Reason string   `json:"reason"`
		Hits   int64    `json:"hits"`
		P50    *float64 `json:"p50_ms"`
	}
}

// usage asks for one.
func (r *rest) usage(path string) (u usageReport) {
	r.t.Helper()
	r.do("GET", path, nil).into(r.t, &u)
	return u
}

// counted waits until a report has so many hits.
func (s *split) counted(path string, hits int64) time.Duration {
	s.t.Helper()
	return s.admin.await(fmt.Sprintf("%d hits at %s", hits, path), func() error {
		if got := s.rest.usage(path).Totals.Hits; got != hits {
			return fmt.Errorf("%d hits", got)
		}
		return nil
	})
}

// usageFlush is often, so that tests need not wait.
const usageFlush = 500 * time.Millisecond

// newUsage starts an admin and n gateways that hand over often.
func newUsage(t *testing.T, n int) *split {
	s := newSplit(t, 0, testenv.Postgres(t))
	for range n {
		s.gateways = append(s.gateways, newGateway(t, settings{
			"valkey.timeout": "5s", "gateway.token": splitToken, "valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr, "log.format": "json",
			"gateway.admin_url": s.admin.admin, "secret": splitSecret, "usage.flush": usageFlush.String(),
		}).startReady())
	}
	return s
}

// Calls rise in the reports, told apart by API, key, status and reason; a rotated
// key goes on as what it was; what the admin missed it has once it is back, and
// what a gateway has at its stop it hands over.
func TestCallsRiseInUsage(t *testing.T) {
	t.Parallel()
	s := newUsage(t, 2)
	s.rest.do("POST", "/api/apis", apiDef("open", s.origin, true))
	s.rest.do("POST", "/api/apis", apiDef("keyed", s.origin, false))
	s.policy("five", 5, "keyed")
	key := s.rest.newKey(object{"apply_policies": []string{"five"}})
	opened, used := int64(0), int64(0) // what was answered
	open := func(times int) {
		for i := range times {
			if got := call(t, "GET", s.gateways[i%2].traffic+"/open/x", nil); got.status == 200 {
				opened++
			}
		}
	}
	s.everywhere("the policy", "/keyed/x", s.rest.newKey(object{"apply_policies": []string{"five"}}), limited(5))
	s.everywhere("the open API", "/open/x", "", func(got answer) error {
		if got.status != 404 {
			opened++
		}
		return status(200)(got)
	})
	open(20)
	for i := range 8 {
		if got := call(t, "GET", s.gateways[i%2].traffic+"/keyed/x", nil, "Authorization", key); got.status == 200 || got.reason() == "quota_exceeded" {
			used++
		}
	}
	t.Logf("calls were counted after %s", s.counted("/api/usage?api=open", opened).Round(time.Millisecond))
	s.counted("/api/keys/"+key+"/usage", used)
	s.counted("/api/usage/rejections?api=keyed&reason=quota_exceeded", used-5)
	if u := s.rest.usage("/api/usage?api=open&group_by=api"); len(u.Data) != 1 || u.Data[0].P50 == nil || *u.Data[0].P50 <= 0 {
		t.Errorf("how long calls took is not told: %+v", u)
	}
	if u := s.rest.usage("/api/usage?api=keyed&group_by=status,reason&status=403"); len(u.Data) != 1 || u.Data[0].Reason != "quota_exceeded" || u.Data[0].Hits != used-5 {
		t.Errorf("refusals by status and reason: %+v", u)
	}

	var next struct {
		Key string `json:"key"`
	}
	s.rest.do("POST", "/api/keys/"+key+"/rotate", object{"grace": "1h"}).into(t, &next)
	plant(next.Key)
	if got := call(t, "GET", s.gateways[0].traffic+"/keyed/x", nil, "Authorization", next.Key); got.reason() != "quota_exceeded" {
		t.Errorf("with the successor: %s", got)
	}
	s.counted("/api/keys/"+next.Key+"/usage", used+1)

	s.admin.stop()
	open(30)
	s.admin.startReady()
	s.counted("/api/usage?api=open", opened)

	open(10)
	for _, g := range s.gateways {
		if code := g.stop(); code != 0 {
			t.Errorf("%s stopped with code %d", g, code)
		}
	}
	if got := s.rest.usage("/api/usage?api=open").Totals.Hits; got != opened {
		t.Errorf("%d calls after the gateways' stop, want %d", got, opened)
	}
	if code := s.admin.stop(); code != 0 {
		t.Errorf("the admin stopped with code %d", code)
	}
}

// A gateway that dies takes with it what it counted since it last handed over,
// and no more.
func TestAGatewaysDeathLosesNoMoreUsageThanItsFlush(t *testing.T) {
	t.Parallel()
	s := newUsage(t, 1)
	s.rest.do("POST", "/api/apis", apiDef("open", s.origin, true))
	g := s.gateways[0]
	s.everywhere("the API", "/open/x", "", status(200))
	s.admin.await("the first calls", func() error {
		if s.rest.usage("/api/usage?api=open").Totals.Hits == 0 {
			return errors.New("none")
		}
		return nil
	})
	before := s.rest.usage("/api/usage?api=open").Totals.Hits

	var answered, old atomic.Int64 // all, and those that are older than a flush when it dies
	var times sync.Map
	stop := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		client := &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}
		defer client.CloseIdleConnections()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got, err := sendBy(client, "GET", g.traffic+"/open/x", nil); err == nil && got.status == 200 {
				times.Store(answered.Add(1), time.Now())
			}
		}
	})
	s.admin.await("calls to rise", func() error {
		if got := s.rest.usage("/api/usage?api=open").Totals.Hits - before; got < 500 {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	died := time.Now()
	g.kill()
	close(stop)
	calling.Wait()
	// What is on its way counts if it comes: the time that it may take is added.
	const slack = 2 * time.Second
	times.Range(func(_, at any) bool {
		if died.Sub(at.(time.Time)) > usageFlush+slack {
			old.Add(1)
		}
		return true
	})
	got := s.rest.usage("/api/usage?api=open").Totals.Hits - before
	if got < old.Load() || got > answered.Load()+20 { // a few before it are counted with them
		t.Errorf("%d calls are counted of %d; at least %d were older than a flush", got, answered.Load(), old.Load())
	}
	t.Logf("of %d calls %d are counted", answered.Load(), got)
	g.startReady()
	after := s.rest.usage("/api/usage?api=open").Totals.Hits
	for range 5 {
		call(t, "GET", g.traffic+"/open/x", nil)
	}
	s.counted("/api/usage?api=open", after+5)
}

// All in one process counts too, and its stop loses nothing.
func TestUsageOfOneProcessOutlivesItsStop(t *testing.T) {
	t.Parallel()
	up := newUp(t, dataDir(t), nil).startReady()
	origin := "http://" + testenv.Origin(t, echo)
	up.rest().do("POST", "/api/apis", apiDef("open", origin, true))
	up.await("the API", func() error {
		got, err := send("GET", up.traffic+"/open/x", nil)
		return want(200, got, err)
	})
	for range 9 {
		call(t, "GET", up.traffic+"/open/x", nil)
	}
	if code := up.stop(); code != 0 {
		t.Fatalf("it stopped with code %d", code)
	}
	up.startReady()
	if got := up.rest().usage("/api/usage?api=open").Totals.Hits; got != 10 {
		t.Errorf("%d calls are known after a stop, want 10", got)
	}
}
