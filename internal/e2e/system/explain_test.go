package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// On one machine the command finds the server by itself.
func TestExplainOnTheMachineOfUp(t *testing.T) {
	t.Parallel()
	dir := rig.DataDir(t)
	s := rig.NewUp(t, dir, nil).StartReady()
	rest := s.Rest()
	target := "http://" + testenv.Origin(t, rig.Echo)
	def := rig.APIDef("orders", target+"/first", false)
	rest.Do("POST", "/api/apis", def)
	key := rest.NewKey(object{"quota_max": 2, "quota_renewal_rate": 600, "access_rights": object{"orders": object{}}})
	var was struct{ Revision int64 }
	rest.Do("GET", "/api/config", nil).Into(t, &was)
	def["proxy"].(object)["target_url"] = target + "/second"
	rest.Do("PUT", "/api/apis/orders", def)
	s.Await("the gateway to serve the change", func() error {
		got, err := rest.Try("POST", "/api/explain", object{"url": "/orders/x", "key": key})
		if err == nil {
			err = rig.Lacks(got.Body, "/second/x")
		}
		return err
	})
	rig.Call(t, "GET", s.Traffic+"/orders/x", nil, "Authorization", key)
	here := settings{"data_dir": dir, "admin.listen": strings.TrimPrefix(s.Admin, "http://")}
	explain := func(code int, has string, args ...string) string {
		t.Helper()
		got := rig.Command(t, here, append([]string{"explain"}, args...)...)
		if got.Code != code || !strings.Contains(got.Stdout+got.Stderr, has) {
			t.Errorf("explain %q: exit %d, want %d and %q\n%s%s", args, got.Code, code, has, got.Stdout, got.Stderr)
		}
		return got.Stdout
	}
	explain(0, "/second/x", "GET", "/orders/x", "--key", key)
	explain(0, "quota 1 of 2 per 600 s", "GET", "/orders/x", "--key", key)
	explain(0, "/first/x", "GET", "/orders/x", "--key", key, "--revision", fmt.Sprint(was.Revision))
	explain(6, "revision 9999", "GET", "/orders/x", "--revision", "9999")
	explain(5, "reason=auth_missing", "GET", "/orders/x", "--server", s.Admin, "--data-dir", dir)
	explain(5, `"reason": "route_not_found"`, "GET", "/nowhere", "-o", "json")
	rig.Call(t, "GET", s.Traffic+"/orders/x", nil, "Authorization", key)
	refused := rig.Call(t, "GET", s.Traffic+"/orders/x", nil, "Authorization", key)
	if refused.Reason() != "quota_exceeded" {
		t.Fatalf("the third call: %s", refused)
	}
	explain(5, "quota 0 of 2 left", "--id", refused.Header.Get("X-Request-Id"))
	explain(6, "no refused request with this id", "--id", strings.Repeat("0", 32))
	explain(5, "reason=quota_exceeded", "GET", "/orders/x", "--key", key)
}

// An admin without a gateway explains with the stores that the gateways share.
func TestExplanationsOfAnAdminAlone(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	s.rest.Do("POST", "/api/apis", rig.APIDef("orders", s.origin+"/first", false))
	var was struct{ Revision int64 }
	s.rest.Do("GET", "/api/config", nil).Into(t, &was)
	s.rest.Do("PUT", "/api/apis/orders", rig.APIDef("orders", s.origin+"/second", false))
	key := s.rest.NewKey(object{"quota_max": 5, "quota_renewal_rate": 600, "access_rights": object{"orders": object{}}})
	s.everywhere("the API", "/orders/x", key, status(200))
	for range 2 {
		rig.Call(t, "GET", s.gateways[0].Traffic+"/orders/x", nil, "Authorization", key)
	}
	explained := func(description object) *rig.Explanation {
		e := &rig.Explanation{}
		s.rest.Do("POST", "/api/explain", description).Into(t, e)
		return e
	}
	var now *rig.Explanation
	rig.Eventually(t, "an explanation by the second revision", func() error {
		if now = explained(object{"url": "/orders/x", "key": key}); now.Revision == strconv.FormatInt(was.Revision, 10) {
			return errors.New("it is by the first")
		}
		return nil
	})
	if !now.Outcome.Allowed || now.Outcome.Upstream.Target != "/second/x" || !strings.HasPrefix(now.Said("limit"), "quota 3 of 5 per 600 s") {
		t.Errorf("%+v", now)
	}
	if then := explained(object{"url": "/orders/x", "key": key, "revision": was.Revision}); then.Outcome.Upstream == nil || then.Outcome.Upstream.Target != "/first/x" {
		t.Errorf("at revision %d: %+v", was.Revision, then)
	}
	refused := rig.Call(t, "GET", s.gateways[0].Traffic+"/orders/x", nil)
	id := refused.Header.Get("X-Request-Id")
	if got, err := s.rest.Try("POST", "/api/explain", object{"id": id}); err != nil || got.Status != 200 || !strings.Contains(got.Body, `"reason":"auth_missing"`) {
		t.Errorf("%v %s", err, got)
	}
	own := rig.Call(t, "POST", s.gateways[0].Control+"/svc/explain", object{"id": id}, "X-Svc-Authorization", splitSecret)
	if own.Status != 200 || !strings.Contains(own.Body, `"reason":"auth_missing"`) {
		t.Errorf("asked itself: %s", own)
	}
}

func TestExplanationsOfAnotherTimeUseTheRevisionOfThen(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	first := rig.APIDef("orders", "http://127.0.0.1:1", false)
	first["version_data"] = object{"not_versioned": true, "versions": object{"Default": object{"name": "Default", "expires": "2040-01-01 00:00"}}}
	r.Do(http.MethodPost, "/api/apis", first)
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("orders")})
	key := strings.TrimSpace(s.CLI("-q", "key", "create", "--policy", "gold", "--expires", "48h").Wants(t, 0).Stdout)
	s.AwaitUse("/orders/", key)

	ask := func(at string, more ...string) rig.Result {
		return s.CLI(append([]string{"explain", "GET", "/orders/", "--key", key, "--at", at}, more...)...)
	}
	ask("+30m").Wants(t, 0, "quota 1 of 5 per 3600 s, renews in")
	ask("+2h").Wants(t, 0, "quota 0 of 5 per 3600 s")
	ask("+72h").Wants(t, 5, "auth", "reason=auth_expired")
	ask("2040-01-02T00:00:00Z", "--facts").Wants(t, 5, "FAIL", "at 2040-01-02T00:00:00Z")
	ask("-8760h").Wants(t, 6, "at: is before the oldest revision that is kept")
	ask("yesterday").Wants(t, 2, "--at: \"yesterday\" is no time")

	was := revisionTimes(t, s)
	r.Do(http.MethodDelete, "/api/portal/policies/gold", nil)
	past := was[0].Format(time.RFC3339Nano)
	told := s.CLI("explain", "GET", "/orders/", "--key", key, "--at", past, "-o", "json").Wants(t, 0).Stdout
	if !strings.Contains(told, `"untold": [`) || !strings.Contains(told, `"revision": "2"`) {
		t.Errorf("in the past: %s", told)
	}
}

// revisionTimes returns when the revisions of a server were made, newest first.
func revisionTimes(t *testing.T, s *rig.Server) (all []time.Time) {
	t.Helper()
	var told struct {
		Revisions []struct{ At time.Time }
	}
	text := s.CLI("config", "history", "-o", "json").Wants(t, 0).Stdout
	if err := json.Unmarshal([]byte(text), &told); err != nil || len(told.Revisions) == 0 {
		t.Fatalf("%v in %s", err, text)
	}
	for _, one := range told.Revisions {
		all = append(all, one.At)
	}
	return all
}
