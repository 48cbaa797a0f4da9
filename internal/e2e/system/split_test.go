package system

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// split is Sluice as in production: an admin on a database, gateways, and a
// store that they share.
type split struct {
	t        *testing.T
	store    *testenv.Store
	admin    *rig.Server
	gateways []*rig.Server
	rest     *rig.Rest
	origin   string // URL of an upstream
}

// The secrets that split deployments are given.
const (
	splitToken    = "token-of-all-gateways-6f1d"
	splitPassword = "password-of-the-store-90ab"
	splitSecret   = "secret-of-the-gateway-api-77"
)

// newSplit starts an admin and n gateways on a database, with a store that was
// started as storeSettings say.
func newSplit(t *testing.T, n int, database string, storeSettings ...string) *split {
	t.Helper()
	s := &split{
		t:      t,
		store:  testenv.Valkey(t, append([]string{"--requirepass", splitPassword}, storeSettings...)...),
		origin: "http://" + testenv.Origin(t, rig.Echo),
	}
	rig.Plant(splitPassword)
	shared := settings{
		"valkey.timeout": "5s", // a busy machine's store is slow, not away
		"gateway.token":  splitToken, "valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr, "log.format": "json",
	}
	s.admin = rig.NewAdmin(t, rig.Merge(shared, settings{"database.url": database, "admin.private_upstreams": "allow", "events.private_targets": "allow"})).StartReady()
	s.rest = s.admin.Rest()
	for range n {
		s.gateways = append(s.gateways, rig.NewGateway(t, rig.Merge(shared, settings{"gateway.admin_url": s.admin.Admin, "secret": splitSecret})).StartReady())
	}
	return s
}

// everywhere waits until every gateway answers a GET as said, and returns how
// long the slowest took.
func (s *split) everywhere(what, path, key string, said func(rig.Answer) error) time.Duration {
	s.t.Helper()
	began := time.Now()
	for i, g := range s.gateways {
		g.Await(fmt.Sprintf("%s at gateway %d", what, i+1), func() error {
			got, err := rig.Send("GET", g.Traffic+path, nil, "Authorization", key)
			if err == nil {
				err = said(got)
			}
			return err
		})
	}
	return time.Since(began)
}

// status expects one.
func status(code int) func(rig.Answer) error {
	return func(got rig.Answer) error { return rig.Want(code, got, nil) }
}

// limited expects 200 and a quota maximum.
func limited(most int) func(rig.Answer) error {
	return func(got rig.Answer) error {
		if err := rig.Want(200, got, nil); err != nil {
			return err
		}
		if shown := got.Header.Get("X-RateLimit-Limit"); shown != strconv.Itoa(most) {
			return fmt.Errorf("the limit is %s, want %d", shown, most)
		}
		return nil
	}
}

// refused expects a reason.
func refused(reason string) func(rig.Answer) error {
	return func(got rig.Answer) error {
		if got.Reason() != reason {
			return fmt.Errorf("%s, want %s", got, reason)
		}
		return nil
	}
}

// body expects 200 with a text.
func body(text string) func(rig.Answer) error {
	return func(got rig.Answer) error {
		if got.Status != 200 || got.Body != text {
			return fmt.Errorf("%s, want 200 %s", got, text)
		}
		return nil
	}
}

// policy writes a policy for APIs.
func (s *split) policy(id string, max int, apis ...string) {
	s.t.Helper()
	body := object{"id": id, "name": id, "quota_max": max, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo(apis...)}
	if got, err := s.rest.Try("GET", "/api/portal/policies/"+id, nil); err == nil && got.Status == 200 {
		s.rest.Do("PUT", "/api/portal/policies/"+id, body)
		return
	}
	s.rest.Do("POST", "/api/portal/policies", body)
}

// measured collects how long changes took. Promised is one second, which a busy
// machine that tests may not keep: it is told, and nothing fails for it.
type measured struct {
	t    *testing.T
	what string
	took []time.Duration
}

func (m *measured) add(d time.Duration) {
	m.t.Helper()
	m.took = append(m.took, d)
}

func (m *measured) report() {
	slices.Sort(m.took)
	m.t.Logf("%s: %d times, median %s, slowest %s", m.what, len(m.took), m.took[len(m.took)/2].Round(time.Millisecond), m.took[len(m.took)-1].Round(time.Millisecond))
}

// Changes through the admin reach two gateways: APIs, policies
// under live keys, keys, quota resets and rollbacks; and quotas are exact over
// both.
func TestChangesReachEveryGateway(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	t.Run("an API that is made and deleted", s.apisTravel)
	t.Run("a policy under live keys", s.policiesTravel)
	t.Run("a key that is made, changed and deleted", s.keysTravel)
	t.Run("one quota for all", s.exactQuota)
	t.Run("a rollback", s.rollsBack)
	for _, one := range append(s.gateways, s.admin) {
		if code := one.Stop(); code != 0 {
			t.Errorf("%s stopped with code %d, want 0", one, code)
		}
	}
}

func (s *split) in(t *testing.T) *split {
	c := *s
	c.t, c.rest = t, rig.NewRest(t, s.rest.URL, s.rest.Key)
	return &c
}

func (s *split) apisTravel(t *testing.T) {
	s = s.in(t)
	made, gone := &measured{t: t, what: "a new API"}, &measured{t: t, what: "a deleted API"}
	for i := range 5 {
		id := fmt.Sprintf("travel-%d", i)
		s.rest.Do("POST", "/api/apis", rig.APIDef(id, s.origin, true))
		made.add(s.everywhere("the API", "/"+id+"/x", "", status(200)))
		s.rest.Do("DELETE", "/api/apis/"+id, nil)
		gone.add(s.everywhere("no API", "/"+id+"/x", "", status(404)))
	}
	made.report()
	gone.report()
}

func (s *split) policiesTravel(t *testing.T) {
	s = s.in(t)
	s.rest.Do("POST", "/api/apis", rig.APIDef("governed", s.origin, false))
	s.policy("travel", 1000, "governed")
	var live []string
	for range 20 {
		live = append(live, s.rest.NewKey(object{"apply_policies": []string{"travel"}}))
	}
	for _, key := range live {
		s.everywhere("the key", "/governed/x", key, limited(1000))
	}
	changed := &measured{t: t, what: "a policy under 20 live keys"}
	for i := range 5 {
		s.policy("travel", 2000+i, "governed")
		began := time.Now()
		for _, key := range live {
			s.everywhere("the policy", "/governed/x", key, limited(2000+i))
		}
		changed.add(time.Since(began))
	}
	changed.report()
}

func (s *split) keysTravel(t *testing.T) {
	s = s.in(t)
	made, off, gone := &measured{t: t, what: "a new key"}, &measured{t: t, what: "a key made inactive"}, &measured{t: t, what: "a deleted key"}
	for range 5 {
		key := s.rest.NewKey(object{"access_rights": rig.AccessTo("governed")})
		made.add(s.everywhere("the key", "/governed/x", key, status(200)))
		s.rest.Do("PUT", "/api/keys/"+key, object{"access_rights": rig.AccessTo("governed"), "is_inactive": true})
		off.add(s.everywhere("the inactive key", "/governed/x", key, refused("auth_inactive")))
		s.rest.Do("DELETE", "/api/keys/"+key, nil)
		gone.add(s.everywhere("no key", "/governed/x", key, refused("auth_unknown")))
	}
	made.report()
	off.report()
	gone.report()
}

// exactQuota calls through both gateways at once: the quota is used to the last
// call and no further, and each value of what is left is shown once.
func (s *split) exactQuota(t *testing.T) {
	s = s.in(t)
	const most, calls, workers = 300, 480, 8
	s.policy("exact", most, "governed")
	key := s.rest.NewKey(object{"apply_policies": []string{"exact"}})
	use := func() (admitted []int, over int) {
		t.Helper()
		var mu sync.Mutex
		var work sync.WaitGroup
		for w := range workers {
			work.Go(func() {
				client := &http.Client{Transport: &http.Transport{}, Timeout: rig.Patience}
				defer client.CloseIdleConnections()
				for i := range calls / workers {
					got, err := rig.SendBy(client, "GET", s.gateways[(w+i)%2].Traffic+"/governed/x", nil, "Authorization", key)
					left, _ := strconv.Atoi(got.Header.Get("X-RateLimit-Remaining"))
					mu.Lock()
					switch {
					case err == nil && got.Status == 200:
						admitted = append(admitted, left)
					case err == nil && got.Reason() == "quota_exceeded":
						over++
					default:
						t.Errorf("%v %s", err, got)
					}
					mu.Unlock()
				}
			})
		}
		work.Wait()
		return admitted, over
	}
	// Another key tells when the policy is there: any call of this one counts.
	s.everywhere("the policy", "/governed/x", s.rest.NewKey(object{"apply_policies": []string{"exact"}}), limited(most))
	admitted, over := use()
	for i, g := range s.gateways {
		if strings.Contains(g.Run.Stderr.String(), "CounterStoreDown") {
			t.Errorf("gateway %d took the store for away, so that its quota is not exact", i+1)
		}
	}
	slices.Sort(admitted)
	if len(admitted) != most || over != calls-most {
		t.Errorf("%d of %d calls were admitted and %d refused, want exactly %d and %d", len(admitted), calls, over, most, calls-most)
	}
	for i, left := range admitted {
		if i != left {
			t.Errorf("the values of what is left have a gap or one twice at %d: %d", i, left)
			break
		}
	}
	s.rest.Do("POST", "/api/keys/"+key+"/reset_quota", nil)
	began := time.Now()
	s.everywhere("the reset quota", "/governed/x", key, status(200))
	t.Logf("exactly %d of %d concurrent calls over two gateways; a reset took %s", len(admitted), calls, time.Since(began).Round(time.Millisecond))
	again, _ := use()
	if len(again) != most-2 {
		t.Errorf("after the reset and two calls %d were admitted, want %d", len(again), most-2)
	}
}

func (s *split) rollsBack(t *testing.T) {
	s = s.in(t)
	other := "http://" + testenv.Origin(t, echoOther)
	s.rest.Do("POST", "/api/apis", rig.APIDef("back", s.origin, true))
	s.everywhere("the first form", "/back/x", "", body("origin /x"))
	var state struct {
		Revision int64 `json:"revision"`
	}
	s.rest.Do("GET", "/api/config", nil).Into(t, &state)
	back := &measured{t: t, what: "a rollback"}
	for range 3 {
		s.rest.Do("PUT", "/api/apis/back", rig.APIDef("back", other, true))
		s.rest.Do("POST", "/api/apis", rig.APIDef("added", s.origin, true))
		s.everywhere("the second form", "/back/x", "", body("other /x"))
		s.rest.Do("POST", fmt.Sprintf("/api/config/revisions/%d/rollback", state.Revision), object{"reason": "a test"})
		back.add(s.everywhere("the first form again", "/back/x", "", body("origin /x")))
		s.everywhere("no added API", "/added/x", "", status(404))
	}
	back.report()
}
