package system

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestRotationReachesEveryGatewayWithinASecond(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	s.rest.Do("POST", "/api/apis", rig.APIDef("one", s.origin, false))
	first := rig.Plant(s.rest.NewKey(object{"access_rights": rig.AccessTo("one"), "quota_max": 100, "quota_renewal_rate": 3600}))
	s.everywhere("the key", "/one/x", first, status(200))
	var made struct {
		Key  string
		Hash string `json:"key_hash"`
	}
	s.rest.Do("POST", "/api/keys/"+first+"/rotate", object{"grace": "24h"}).Into(t, &made)
	second := rig.Plant(made.Key)
	ways := &measured{t: t, what: "a change of a key"}
	ways.add(s.everywhere("the successor", "/one/x", second, limited(100)))
	ways.add(s.everywhere("the key", "/one/x", first, limited(100)))
	var list struct {
		Data struct{ Keys []string }
	}
	s.rest.Do("GET", "/api/keys", nil).Into(t, &list)
	if len(list.Data.Keys) != 1 || list.Data.Keys[0] != made.Hash {
		t.Errorf("listed %q, want %q alone", list.Data.Keys, made.Hash)
	}
	if got := rig.Call(t, http.MethodDelete, s.gateways[0].Traffic+"/svc/keys/"+second+"/rotate", nil, "X-Svc-Authorization", splitSecret); got.Status != 200 {
		t.Fatal(got)
	}
	ways.add(s.everywhere("the end of the key", "/one/x", first, refused("auth_expired")))
	s.everywhere("the successor", "/one/x", second, status(200))
	if got, err := s.rest.Try("POST", "/api/keys/"+first+"/rotate", object{"grace": "-1s"}); err != nil || got.Status != 400 || !strings.Contains(got.Body, "grace must be") {
		t.Errorf("%v, %s", err, got)
	}
	s.rest.Do("DELETE", "/api/keys/"+made.Hash, nil)
	ways.add(s.everywhere("the deletion", "/one/x", second, refused("auth_unknown")))
	t.Logf("took %s", ways.took)
}

func TestUsersOfAnAdminReachItsGateways(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	def := rig.APIDef("users", s.origin, false)
	def["use_basic_auth"] = true
	s.rest.Do("POST", "/api/apis", def)
	session := object{"access_rights": rig.AccessTo("users"), "basic_auth_data": object{"password": rig.Plant("split-secret")}}
	made := s.rest.Do("POST", "/api/keys/bob", session)
	if strings.Contains(made.Body, "$argon2id") {
		t.Errorf("the admin shows what it stores: %s", made)
	}
	opens := func(password string) func() error {
		return func() error {
			got, err := rig.Send("GET", s.gateways[0].Traffic+"/users/x", nil, "Authorization", rig.BasicHeader("bob", password))
			return rig.Want(200, got, err)
		}
	}
	s.gateways[0].Await("the user", opens("split-secret"))
	session["basic_auth_data"] = object{"password": rig.Plant("second-split-secret")}
	if got := rig.Call(t, http.MethodPut, s.gateways[0].Traffic+"/svc/keys/bob", session, "X-Svc-Authorization", splitSecret); got.Status != 200 {
		t.Fatal(got)
	}
	rig.Eventually(t, "the new password", opens("second-split-secret"))
	began := time.Now()
	if opens("split-secret")() == nil {
		t.Errorf("the old password is right after %s", time.Since(began))
	}
}
