package system

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestKeysAreKeptByCommands(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://"+up, false))
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("orders")})
	s.CLI("key", "create").Wants(t, 2, "--policy ID")
	s.CLI("key", "create", "--policy", "none").Wants(t, 6, "none")
	old := strings.TrimSpace(s.CLI("key", "create", "--policy", "gold", "--alias", "ann", "-q").Wants(t, 0).Stdout)
	if a := s.AwaitUse("/orders/", old); a.Status != 200 {
		t.Fatalf("%s", a)
	}
	var listed struct {
		Keys []struct {
			Hash string `json:"key_hash"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(s.CLI("key", "ls", "-o", "json").Wants(t, 0, "ann").Stdout), &listed); err != nil || len(listed.Keys) != 1 {
		t.Fatalf("%+v, %v", listed, err)
	}
	hash := listed.Keys[0].Hash
	s.CLI("key", "get", hash).Wants(t, 0, "gold")
	fresh := strings.TrimSpace(s.CLI("key", "rotate", hash, "--grace", "1h", "-q").Wants(t, 0).Stdout)
	if a := s.AwaitUse("/orders/", fresh); a.Status != 200 || a.Header.Get("X-RateLimit-Remaining") == "4" {
		t.Errorf("the successor: %s", a)
	}
	s.CLI("key", "reset-quota", hash).Wants(t, 0, "whole again")
	s.CLI("key", "retire", hash).Wants(t, 0, "newest")
	rig.Eventually(t, "the end of the key before", func() error {
		return rig.Lacks(rig.Call(t, http.MethodGet, s.Traffic+"/orders/", nil, "Authorization", old).String(), "has expired")
	})
	s.CLI("key", "revoke", hash).Wants(t, 2, "--yes")
	s.CLI("key", "revoke", hash, "--yes").Wants(t, 0)
	s.CLI("key", "revoke", hash, "--yes").Wants(t, 6)
	rig.Eventually(t, "the end of the key", func() error {
		return rig.Lacks(rig.Call(t, http.MethodGet, s.Traffic+"/orders/", nil, "Authorization", fresh).String(), "disallowed")
	})
}

func TestChangesAreListedComparedAndTakenBackByCommands(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	api := rig.APIDef("orders", "http://127.0.0.1:1", true)
	r.Do(http.MethodPost, "/api/apis", api)
	api["name"] = "another name"
	r.Do(http.MethodPut, "/api/apis/orders", api)
	var list struct {
		Revisions []struct{ Revision int64 }
	}
	if err := json.Unmarshal([]byte(s.CLI("config", "history", "-o", "json").Wants(t, 0).Stdout), &list); err != nil || len(list.Revisions) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	first := string(rune('0' + list.Revisions[1].Revision))
	s.CLI("config", "history").Wants(t, 0, "updated api orders", "created api orders")
	s.CLI("config", "show", first).Wants(t, 0, "API orders")
	s.CLI("config", "diff", string(rune('0'+list.Revisions[0].Revision))).Wants(t, 5, "name", "another name")
	s.CLI("config", "diff", "99").Wants(t, 6, "not found")
	s.CLI("config", "diff", "zero").Wants(t, 2, "number of a revision")
	s.CLI("config", "rollback", first).Wants(t, 2, "--yes")
	s.CLI("config", "rollback", first, "--yes", "--reason", "a slip").Wants(t, 0, "rolled back")
	s.CLI("config", "rollback", first, "--yes").Wants(t, 0, "is what it was")
	s.CLI("config", "history").Wants(t, 0, "a slip", "rollback")
	rig.Command(t, settings{"data_dir": s.Settings["data_dir"], "admin.listen": rig.FreeAddress(t)}, "config", "history").Wants(t, 7, "cannot be reached")
}
