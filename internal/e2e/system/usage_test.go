package system

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// counted waits until a report has so many hits.
func (s *split) counted(path string, hits int64) time.Duration {
	s.t.Helper()
	return s.admin.Await(fmt.Sprintf("%d hits at %s", hits, path), func() error {
		if got := s.rest.Usage(path).Totals.Hits; got != hits {
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
		s.gateways = append(s.gateways, rig.NewGateway(t, settings{
			"valkey.timeout": "5s", "gateway.token": splitToken, "valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr, "log.format": "json",
			"gateway.admin_url": s.admin.Admin, "secret": splitSecret, "usage.flush": usageFlush.String(),
		}).StartReady())
	}
	return s
}

// Calls rise in the reports, told apart by API, key, status and reason; a rotated
// key goes on as what it was; what the admin missed it has once it is back, and
// what a gateway has at its stop it hands over.
func TestCallsRiseInUsage(t *testing.T) {
	t.Parallel()
	s := newUsage(t, 2)
	s.rest.Do("POST", "/api/apis", rig.APIDef("open", s.origin, true))
	s.rest.Do("POST", "/api/apis", rig.APIDef("keyed", s.origin, false))
	s.policy("five", 5, "keyed")
	key := s.rest.NewKey(object{"apply_policies": []string{"five"}})
	opened, used := int64(0), int64(0) // what was answered
	open := func(times int) {
		for i := range times {
			if got := rig.Call(t, "GET", s.gateways[i%2].Traffic+"/open/x", nil); got.Status == 200 {
				opened++
			}
		}
	}
	s.everywhere("the policy", "/keyed/x", s.rest.NewKey(object{"apply_policies": []string{"five"}}), limited(5))
	s.everywhere("the open API", "/open/x", "", func(got rig.Answer) error {
		if got.Status != 404 {
			opened++
		}
		return status(200)(got)
	})
	open(20)
	for i := range 8 {
		if got := rig.Call(t, "GET", s.gateways[i%2].Traffic+"/keyed/x", nil, "Authorization", key); got.Status == 200 || got.Reason() == "quota_exceeded" {
			used++
		}
	}
	t.Logf("calls were counted after %s", s.counted("/api/usage?api=open", opened).Round(time.Millisecond))
	s.counted("/api/keys/"+key+"/usage", used)
	s.counted("/api/usage/rejections?api=keyed&reason=quota_exceeded", used-5)
	if u := s.rest.Usage("/api/usage?api=open&group_by=api"); len(u.Data) != 1 || u.Data[0].P50 == nil || *u.Data[0].P50 <= 0 {
		t.Errorf("how long calls took is not told: %+v", u)
	}
	reasons := make(map[string]int64)
	for _, row := range s.rest.Usage("/api/usage?api=keyed&group_by=status,reason&status=403").Data {
		if row.Status != 403 {
			t.Errorf("of status 403: %+v", row)
		}
		reasons[row.Reason] += row.Hits
	}
	delete(reasons, "access_denied") // until the gateways had the policy
	if len(reasons) != 1 || reasons["quota_exceeded"] != used-5 {
		t.Errorf("refusals by status and reason: %v, want quota_exceeded %d times", reasons, used-5)
	}

	var next struct {
		Key string `json:"key"`
	}
	s.rest.Do("POST", "/api/keys/"+key+"/rotate", object{"grace": "1h"}).Into(t, &next)
	rig.Plant(next.Key)
	if got := rig.Call(t, "GET", s.gateways[0].Traffic+"/keyed/x", nil, "Authorization", next.Key); got.Reason() != "quota_exceeded" {
		t.Errorf("with the successor: %s", got)
	}
	s.counted("/api/keys/"+next.Key+"/usage", used+1)

	s.admin.Stop()
	open(30)
	s.admin.StartReady()
	s.counted("/api/usage?api=open", opened)

	open(10)
	for _, g := range s.gateways {
		if code := g.Stop(); code != 0 {
			t.Errorf("%s stopped with code %d", g, code)
		}
	}
	if got := s.rest.Usage("/api/usage?api=open").Totals.Hits; got != opened {
		t.Errorf("%d calls after the gateways' stop, want %d", got, opened)
	}
	if code := s.admin.Stop(); code != 0 {
		t.Errorf("the admin stopped with code %d", code)
	}
}

// A gateway that dies takes with it what it counted since it last handed over,
// and no more.
func TestAGatewaysDeathLosesNoMoreUsageThanItsFlush(t *testing.T) {
	t.Parallel()
	s := newUsage(t, 1)
	s.rest.Do("POST", "/api/apis", rig.APIDef("open", s.origin, true))
	g := s.gateways[0]
	s.everywhere("the API", "/open/x", "", status(200))
	s.admin.Await("the first calls", func() error {
		if s.rest.Usage("/api/usage?api=open").Totals.Hits == 0 {
			return errors.New("none")
		}
		return nil
	})
	before := s.rest.Usage("/api/usage?api=open").Totals.Hits

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
			if got, err := rig.SendBy(client, "GET", g.Traffic+"/open/x", nil); err == nil && got.Status == 200 {
				times.Store(answered.Add(1), time.Now())
			}
		}
	})
	s.admin.Await("calls to rise", func() error {
		if got := s.rest.Usage("/api/usage?api=open").Totals.Hits - before; got < 500 {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	died := time.Now()
	g.Kill()
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
	got := s.rest.Usage("/api/usage?api=open").Totals.Hits - before
	if got < old.Load() || got > answered.Load()+20 { // a few before it are counted with them
		t.Errorf("%d calls are counted of %d; at least %d were older than a flush", got, answered.Load(), old.Load())
	}
	t.Logf("of %d calls %d are counted", answered.Load(), got)
	g.StartReady()
	after := s.rest.Usage("/api/usage?api=open").Totals.Hits
	for range 5 {
		rig.Call(t, "GET", g.Traffic+"/open/x", nil)
	}
	s.counted("/api/usage?api=open", after+5)
}

// All in one process counts too, and its stop loses nothing.
func TestUsageOfOneProcessOutlivesItsStop(t *testing.T) {
	t.Parallel()
	up := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	origin := "http://" + testenv.Origin(t, rig.Echo)
	up.Rest().Do("POST", "/api/apis", rig.APIDef("open", origin, true))
	up.Await("the API", func() error {
		got, err := rig.Send("GET", up.Traffic+"/open/x", nil)
		return rig.Want(200, got, err)
	})
	for range 9 {
		rig.Call(t, "GET", up.Traffic+"/open/x", nil)
	}
	if code := up.Stop(); code != 0 {
		t.Fatalf("it stopped with code %d", code)
	}
	up.StartReady()
	if got := up.Rest().Usage("/api/usage?api=open").Totals.Hits; got != 10 {
		t.Errorf("%d calls are known after a stop, want 10", got)
	}
}
