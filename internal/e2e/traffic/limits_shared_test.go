package traffic

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

const (
	textAPIRate     = "API Rate Limit Exceeded"
	textOrgQuota    = "This organisation quota has been exceeded, please contact your API administrator"
	textOrgRate     = "This organisation rate limit has been exceeded, please contact your API administrator"
	textOrgInactive = "this organisation access has been disabled, please contact your API administrator"
)

// onEveryStore runs a test with counters and keys in the process, and in a store
// that gateways share.
func onEveryStore(t *testing.T, test func(t *testing.T, with settings)) {
	t.Run("in process", func(t *testing.T) { t.Parallel(); test(t, nil) })
	t.Run("shared store", func(t *testing.T) {
		t.Parallel()
		test(t, settings{"valkey.url": "redis://" + testenv.Valkey(t).Addr, "valkey.timeout": "5s"})
	})
}

// outcomes makes calls one after another and returns what came of them, as in
// "200 200 429".
func (g *traffic) outcomes(calls int, method, path string, headers ...string) string {
	g.T.Helper()
	var all []string
	for range calls {
		all = append(all, strconv.Itoa(rig.Call(g.T, method, g.Traffic+path, nil, headers...).Status))
	}
	return strings.Join(all, " ")
}

func (g *traffic) want(want string, calls int, method, path string, headers ...string) {
	g.T.Helper()
	if got := g.outcomes(calls, method, path, headers...); got != want {
		g.T.Errorf("%s %s: %s, want %s", method, path, got, want)
	}
}

// refused checks the answer to a call that is refused.
func (g *traffic) refused(got rig.Answer, status int, text, reason string) {
	g.T.Helper()
	if got.Status != status || got.Body != errorBody(text) || got.Reason() != reason {
		g.T.Errorf("%s (%s), want %d %s (%s)", got, got.Reason(), status, text, reason)
	}
}

func TestAllCallersOfAnAPIShareItsRate(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		keyed, open := rig.APIDef("keyed", "http://"+up, false), rig.APIDef("open", "http://"+up, true)
		keyed["global_rate_limit"] = object{"rate": 3, "per": 60}
		open["global_rate_limit"] = object{"rate": 2, "per": 60}
		off := rig.APIDef("off", "http://"+up, true)
		off["global_rate_limit"] = object{"rate": 1, "per": 60, "disabled": true}
		g := newTraffic(t, with, nil, keyed, open, off)
		g.want("200 200 200", 3, "GET", "/off/a")
		g.want("200 200 429 429", 4, "GET", "/open/a")
		got := rig.Call(t, "GET", g.Traffic+"/open/a", nil)
		g.refused(got, 429, textAPIRate, "api_rate_limit")
		if after, err := strconv.Atoi(got.Header.Get("Retry-After")); err != nil || after < 1 || after > 60 {
			t.Errorf("Retry-After %q", got.Header.Get("Retry-After"))
		}
		session := object{"quota_max": 10, "quota_renewal_rate": 3600, "rate": 2, "per": 60, "access_rights": rig.AccessTo("keyed")}
		one, two := g.newKey(session), g.newKey(session)
		// The key's own rate is told before that of the API.
		g.want("200 200 429", 3, "GET", "/keyed/a", "Authorization", one)
		g.refused(rig.Call(t, "GET", g.Traffic+"/keyed/a", nil, "Authorization", one), 429, textRate, "rate_limit")
		g.want("200 429 429", 3, "GET", "/keyed/a", "Authorization", two)
		g.refused(rig.Call(t, "GET", g.Traffic+"/keyed/a", nil, "Authorization", two), 429, textAPIRate, "api_rate_limit")
		if left := g.quotaLeft(two); left != 9 {
			t.Errorf("%d left of the quota: calls that the API refused were charged to the key", left)
		}
	})
}

// quotaLeft is what is left of a key's quota.
func (g *traffic) quotaLeft(key string) int64 {
	g.T.Helper()
	var session struct {
		Left int64 `json:"quota_remaining"`
	}
	rig.Call(g.T, "GET", g.Control+"/svc/keys/"+key, nil, "X-Svc-Authorization", testSecret).Into(g.T, &session)
	return session.Left
}

func TestSinglePathsHaveRates(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		api := rig.APIDef("paths", "http://"+up, false)
		api["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{
			"name": "Default", "use_extended_paths": true,
			"extended_paths": object{"rate_limit": []object{
				{"path": "/items/{id}", "method": "GET", "rate": 2, "per": 60},
				{"path": "/search", "rate": 1, "per": 60, "disabled": true},
			}},
		}}}
		g := newTraffic(t, with, nil, api)
		rights := rig.AccessTo("paths")
		rights["paths"].(object)["endpoints"] = []object{{"path": "/own", "methods": []object{
			{"name": "POST", "limit": object{"rate": 1, "per": 60}}, {"name": "PUT", "limit": object{"rate": -1, "per": 0}},
		}}}
		one, two := g.newKey(object{"access_rights": rights}), g.newKey(object{"access_rights": rights})
		g.want("200 200 429", 3, "GET", "/paths/items/7", "Authorization", one)
		g.want("429", 1, "GET", "/paths/items/8", "Authorization", two) // all callers share it
		g.refused(rig.Call(t, "GET", g.Traffic+"/paths/items/8", nil, "Authorization", two), 429, textAPIRate, "api_rate_limit")
		g.want("200 200 200", 3, "POST", "/paths/items/7", "Authorization", one)
		g.want("200 200 200", 3, "GET", "/paths/search", "Authorization", one)
		g.want("200 429", 2, "POST", "/paths/own", "Authorization", one)
		g.refused(rig.Call(t, "POST", g.Traffic+"/paths/own", nil, "Authorization", one), 429, textRate, "rate_limit")
		g.want("200 429", 2, "POST", "/paths/own/deep", "Authorization", two) // each key has its own
		g.want("200 200", 2, "GET", "/paths/own", "Authorization", one)
		g.want("200 200", 2, "PUT", "/paths/own", "Authorization", one)
	})
}

// org calls the gateway API about an organisation.
func (g *traffic) org(method, path string, session object) rig.Answer {
	g.T.Helper()
	var body any
	if session != nil {
		body = session
	}
	return rig.Call(g.T, method, g.Control+"/svc/org/keys/"+path, body, "X-Svc-Authorization", testSecret)
}

func TestOrganisationsHaveLimits(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		one, two, other := rig.APIDef("one", "http://"+up, false), rig.APIDef("two", "http://"+up, true), rig.APIDef("other", "http://"+up, true)
		one["org_id"], two["org_id"], other["org_id"] = "acme", "acme", "else"
		g := newTraffic(t, rig.Merge(settings{"enforce_org_quotas": "true"}, with), nil, one, two, other)
		key := g.newKey(object{"org_id": "acme", "access_rights": rig.AccessTo("one")})
		g.want("200 200 200", 3, "GET", "/two/a") // without a session nothing is limited
		if got := g.org("POST", "acme", object{"quota_max": 4, "quota_renewal_rate": 3600}); got.Status != 200 || got.Body != `{"key":"acme","status":"ok","action":"added"}` {
			t.Fatalf("making it: %s", got)
		}
		rig.Eventually(t, "the organisation's quota", func() error {
			if got := rig.Call(t, "GET", g.Traffic+"/two/a", nil); got.Status != 403 {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
		if got := g.org("PUT", "acme?reset_quota=1", object{"quota_max": 4, "quota_renewal_rate": 3600}); got.Status != 200 {
			t.Fatalf("resetting it: %s", got)
		}
		// Calls count that have no key, and those that are refused for it.
		g.want("200 200", 2, "GET", "/one/a", "Authorization", key)
		g.want("401", 1, "GET", "/one/a")
		g.want("200 403", 2, "GET", "/two/a")
		g.refused(rig.Call(t, "GET", g.Traffic+"/one/a", nil, "Authorization", key), 403, textOrgQuota, "org_quota")
		g.refused(rig.Call(t, "GET", g.Traffic+"/one/a", nil), 403, textOrgQuota, "org_quota")
		g.want("200 200", 2, "GET", "/other/a")

		changed := func(session object, status int, text, reason string) {
			t.Helper()
			if got := g.org("PUT", "acme", session); got.Status != 200 {
				t.Fatalf("changing it: %s", got)
			}
			rig.Eventually(t, "the change of the organisation", func() error {
				got := rig.Call(t, "GET", g.Traffic+"/two/a", nil)
				if got.Status != status || got.Reason() != reason || text != "" && got.Body != errorBody(text) {
					return fmt.Errorf("%s", got)
				}
				return nil
			})
		}
		changed(object{"rate": 1, "per": 3600}, 403, textOrgRate, "org_rate_limit")
		changed(object{"is_inactive": true}, 403, textOrgInactive, "org_inactive")
		if got := g.org("DELETE", "acme", nil); got.Status != 200 {
			t.Fatalf("deleting it: %s", got)
		}
		rig.Eventually(t, "the end of the organisation's limits", func() error {
			if got := rig.Call(t, "GET", g.Traffic+"/two/a", nil); got.Status != 200 {
				return fmt.Errorf("%s", got)
			}
			return nil
		})
		if got := g.org("GET", "acme", nil); got.Status != 404 {
			t.Errorf("showing it after: %s", got)
		}
	})
}

func TestOrganisationsAreNotLimitedUnlessThatIsTurnedOn(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	api := rig.APIDef("one", "http://"+up, true)
	api["org_id"] = "acme"
	g := newTraffic(t, nil, nil, api)
	if got := g.org("POST", "acme", object{"is_inactive": true}); got.Status != 200 {
		t.Fatalf("%s", got)
	}
	g.want("200 200", 2, "GET", "/one/a")
}

// A call over its rate waits for it, as often as its key may try.
func TestCallsOverTheirRateWait(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		g := newTraffic(t, with, nil, rig.APIDef("one", "http://"+up, false))
		patient := g.newKey(object{
			"rate": 1, "per": 1, "throttle_interval": 0.2, "throttle_retry_limit": 50,
			"quota_max": 100, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("one"),
		})
		began := time.Now()
		g.want("200 200 200", 3, "GET", "/one/a", "Authorization", patient)
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("three calls at one a second took %s", took)
		}
		if left := g.quotaLeft(patient); left != 97 {
			t.Errorf("%d left of the quota, want 97", left)
		}
		hasty := g.newKey(object{"rate": 1, "per": 60, "throttle_interval": 0.3, "throttle_retry_limit": 2, "access_rights": rig.AccessTo("one")})
		began = time.Now()
		g.want("200 429", 2, "GET", "/one/a", "Authorization", hasty)
		if took := time.Since(began); took < 600*time.Millisecond {
			t.Errorf("the late refusal came after %s", took)
		}
	})
}

// Who waits is bounded in number, goes when the client does, and does not hold up
// a stop.
func TestWaitingCallsEndWithTheirClientAndWithTheGateway(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	g := newTraffic(t, settings{"quota.max_waiting": "1", "gateway.drain_timeout": (2 * rig.Patience).String()}, nil, rig.APIDef("one", "http://"+up, false))
	key := g.newKey(object{"rate": 1, "per": 3600, "throttle_interval": 600, "throttle_retry_limit": 9, "access_rights": rig.AccessTo("one")})
	g.want("200", 1, "GET", "/one/a", "Authorization", key)
	ask := func() net.Conn {
		c := connect(t, g.addr)
		fmt.Fprintf(c, "GET /one/a HTTP/1.1\r\nHost: a\r\nAuthorization: %s\r\n\r\n", key)
		return c
	}
	quick := &http.Client{Timeout: 300 * time.Millisecond}
	status := func() int { // 0: it waits
		got, err := rig.SendBy(quick, "GET", g.Traffic+"/one/a", nil, "Authorization", key)
		if err != nil {
			return 0
		}
		return got.Status
	}
	waiting := ask()
	rig.Eventually(t, "the only place to be taken", func() error {
		if got := status(); got != 429 {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	waiting.Close()
	rig.Eventually(t, "the place to be free", func() error {
		if got := status(); got != 0 {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	rig.Eventually(t, "the place to be free again", func() error {
		last := ask()
		if got := status(); got != 429 {
			last.Close()
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	g.Stop() // which waits for it no longer than patience lasts
}

// A quota that goes by the calendar renews when the zone's clocks say so, and
// knows that after a restart.
func TestQuotasRenewByTheCalendar(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		// Half an hour off from most, so that a mistaken zone shows.
		by := object{"quota_max": 2, "quota_renewal_calendar": "hour", "quota_renewal_zone": "Asia/Kolkata"}
		g := newTraffic(t, with, object{"hourly": merge(by, object{"name": "hourly", "access_rights": rig.AccessTo("one")})}, rig.APIDef("one", "http://"+up, false))
		key := g.newKey(object{"apply_policies": []string{"hourly"}})
		kolkata := time.FixedZone("", 5*3600+1800)
		end := func() int64 {
			return time.Now().In(kolkata).Add(1800 * time.Second).Truncate(time.Hour).Add(1800 * time.Second).Unix()
		}
		reset := func() int64 {
			t.Helper()
			got := rig.Call(t, "GET", g.Traffic+"/one/a", nil, "Authorization", key)
			at, err := strconv.ParseInt(got.Header.Get("X-RateLimit-Reset"), 10, 64)
			if err != nil {
				t.Fatalf("%s, X-RateLimit-Reset: %v", got, err)
			}
			return at
		}
		if want := end(); reset() != want {
			t.Errorf("it renews at %d, want %d", reset(), want)
		}
		g.want("200 403", 2, "GET", "/one/a", "Authorization", key)
		if g.Stop() != 0 {
			t.Fatal("it did not stop well")
		}
		g.StartReady()
		g.want("403", 1, "GET", "/one/a", "Authorization", key)
		if want := end(); reset() != want {
			t.Errorf("after a restart it renews at %d, want %d", reset(), want)
		}
	})
}

func merge(all ...object) object {
	into := object{}
	for _, one := range all {
		maps.Copy(into, one)
	}
	return into
}

// A policy on trial refuses nothing, and says what it would have refused.
func TestPoliciesOnTrialRefuseNothing(t *testing.T) {
	onEveryStore(t, func(t *testing.T, with settings) {
		_, up := newScripted(t, noContent)
		rights := rig.AccessTo("one")
		rights["one"].(object)["allowed_urls"] = []object{{"url": "^/good", "methods": []string{"GET"}}}
		policies := object{
			"trial": object{"name": "trial", "enforcement": "measure", "rate": 4, "per": 3600, "quota_max": 3, "quota_renewal_rate": 3600, "access_rights": rights},
			"base":  object{"name": "base", "partitions": object{"acl": true, "rate_limit": true}, "rate": 6, "per": 3600, "access_rights": rig.AccessTo("one")},
			"more":  object{"name": "more", "enforcement": "measure", "partitions": object{"quota": true, "acl": true}, "quota_max": 1, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("one", "two")},
		}
		g := newTraffic(t, with, policies, rig.APIDef("one", "http://"+up, false), rig.APIDef("two", "http://"+up, false))
		alone := g.newKey(object{"apply_policies": []string{"trial"}})
		g.want("200 200 200 200 200 200", 6, "GET", "/one/good", "Authorization", alone)
		g.want("200", 1, "GET", "/one/bad", "Authorization", alone)
		g.want("200", 1, "GET", "/two/any", "Authorization", alone)
		// Beside one that enforces, that one holds where it says something.
		beside := g.newKey(object{"apply_policies": []string{"base", "more"}})
		g.want("200 200 200 200 200 200 429", 7, "GET", "/one/a", "Authorization", beside)
		g.want("403", 1, "GET", "/two/a", "Authorization", beside)

		metrics := rig.Call(t, "GET", g.Telemetry+"/metrics", nil).Body
		for _, want := range []string{
			`sluice_would_refuse_total{api="one",policy="trial",reason="quota_exceeded"} 4`,
			`sluice_would_refuse_total{api="one",policy="trial",reason="rate_limit"} 3`,
			`sluice_would_refuse_total{api="one",policy="trial",reason="url_denied"} 1`,
			`sluice_would_refuse_total{api="two",policy="trial",reason="access_denied"} 1`,
			`sluice_would_refuse_total{api="one",policy="more",reason="quota_exceeded"} 5`,
		} {
			if !strings.Contains(metrics, want+"\n") {
				t.Errorf("metrics lack %s", want)
			}
		}
		if t.Failed() {
			for line := range strings.Lines(metrics) {
				if strings.HasPrefix(line, "sluice_would") {
					t.Log(line)
				}
			}
		}
		if log := g.logged(); !strings.Contains(log, `"would":[{"reason":"url_denied","policy":"trial"},{"reason":"rate_limit","policy":"trial"},{"reason":"quota_exceeded","policy":"trial"}]`) {
			t.Errorf("the access log does not tell of the trial:\n%s", log)
		}
	})
}

// Each share of a quota that is to be told is told once, over all gateways.
func TestSharesOfQuotasAreToldOnce(t *testing.T) {
	t.Parallel()
	store := testenv.Valkey(t)
	_, up := newScripted(t, noContent)
	api := rig.APIDef("one", "http://"+up, false)
	api["org_id"] = "acme"
	with := settings{
		"valkey.url": "redis://" + store.Addr, "valkey.timeout": "5s", "log.format": "json", "enforce_org_quotas": "true",
		"monitor.enable_trigger_monitors": "true", "monitor.global_trigger_limit": "80", "monitor.monitor_org_keys": "true",
	}
	first, second := newTraffic(t, with, nil, api), newTraffic(t, with, nil, api)
	first.org("POST", "acme", object{"quota_max": 1000, "quota_renewal_rate": 3600, "monitor": object{"trigger_limits": []int{1}}})
	key := first.newKey(object{
		"org_id": "acme", "quota_max": 20, "quota_renewal_rate": 3600,
		"monitor": object{"trigger_limits": []int{50}}, "access_rights": rig.AccessTo("one"),
	})
	var all sync.WaitGroup
	for _, g := range []*traffic{first, second} {
		for range 4 {
			all.Go(func() {
				for range 4 {
					if _, err := rig.Send("GET", g.Traffic+"/one/a", nil, "Authorization", key); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	told := func() int {
		return strings.Count(first.Run.Stderr.String()+second.Run.Stderr.String(), `"TriggerExceeded"`)
	}
	rig.Eventually(t, "50 % and 80 % of the key, and 1 % of the organisation", func() error {
		if n := told(); n < 3 {
			return fmt.Errorf("%d are told", n)
		}
		return nil
	})
	first.Stop()
	second.Stop()
	if n := told(); n != 3 {
		t.Errorf("%d thresholds were told, want 3", n)
	}
}
