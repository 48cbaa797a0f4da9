package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// own runs a command on the server that is this machine's.
func (s *server) own(args ...string) result {
	s.t.Helper()
	return command(s.t, settings{"data_dir": s.settings["data_dir"], "admin.listen": strings.TrimPrefix(s.admin, "http://")}, args...)
}

func (r result) wants(t *testing.T, code int, texts ...string) result {
	t.Helper()
	if r.code != code {
		t.Errorf("ended with code %d, want %d:\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("lacks %q:\n%s%s", text, r.stdout, r.stderr)
		}
	}
	return r
}

func TestKeysAreKeptByCommands(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://"+up, false))
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "gold", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": accessTo("orders")})
	s.own("key", "create").wants(t, 2, "--policy ID")
	s.own("key", "create", "--policy", "none").wants(t, 6, "none")
	old := strings.TrimSpace(s.own("key", "create", "--policy", "gold", "--alias", "ann", "-q").wants(t, 0).stdout)
	if a := s.awaitUse("/orders/", old); a.status != 200 {
		t.Fatalf("%s", a)
	}
	var listed struct {
		Keys []struct {
			Hash string `json:"key_hash"`
		} `json:"keys"`
	}
	if err := json.Unmarshal([]byte(s.own("key", "ls", "-o", "json").wants(t, 0, "ann").stdout), &listed); err != nil || len(listed.Keys) != 1 {
		t.Fatalf("%+v, %v", listed, err)
	}
	hash := listed.Keys[0].Hash
	s.own("key", "get", hash).wants(t, 0, "gold")
	fresh := strings.TrimSpace(s.own("key", "rotate", hash, "--grace", "1h", "-q").wants(t, 0).stdout)
	if a := s.awaitUse("/orders/", fresh); a.status != 200 || a.header.Get("X-RateLimit-Remaining") == "4" {
		t.Errorf("the successor: %s", a)
	}
	s.own("key", "reset-quota", hash).wants(t, 0, "whole again")
	s.own("key", "retire", hash).wants(t, 0, "newest")
	eventually(t, "the end of the key before", func() error {
		return lacks(call(t, http.MethodGet, s.traffic+"/orders/", nil, "Authorization", old).String(), "has expired")
	})
	s.own("key", "revoke", hash).wants(t, 2, "--yes")
	s.own("key", "revoke", hash, "--yes").wants(t, 0)
	s.own("key", "revoke", hash, "--yes").wants(t, 6)
	eventually(t, "the end of the key", func() error {
		return lacks(call(t, http.MethodGet, s.traffic+"/orders/", nil, "Authorization", fresh).String(), "disallowed")
	})
}

func TestChangesAreListedComparedAndTakenBackByCommands(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	api := apiDef("orders", "http://127.0.0.1:1", true)
	r.do(http.MethodPost, "/api/apis", api)
	api["name"] = "another name"
	r.do(http.MethodPut, "/api/apis/orders", api)
	var list struct {
		Revisions []struct{ Revision int64 }
	}
	if err := json.Unmarshal([]byte(s.own("config", "history", "-o", "json").wants(t, 0).stdout), &list); err != nil || len(list.Revisions) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	first := string(rune('0' + list.Revisions[1].Revision))
	s.own("config", "history").wants(t, 0, "updated api orders", "created api orders")
	s.own("config", "show", first).wants(t, 0, "API orders")
	s.own("config", "diff", string(rune('0'+list.Revisions[0].Revision))).wants(t, 5, "name", "another name")
	s.own("config", "diff", "99").wants(t, 6, "not found")
	s.own("config", "diff", "zero").wants(t, 2, "number of a revision")
	s.own("config", "rollback", first).wants(t, 2, "--yes")
	s.own("config", "rollback", first, "--yes", "--reason", "a slip").wants(t, 0, "rolled back")
	s.own("config", "rollback", first, "--yes").wants(t, 0, "is what it was")
	s.own("config", "history").wants(t, 0, "a slip", "rollback")
	command(t, settings{"data_dir": s.settings["data_dir"], "admin.listen": freeAddress(t)}, "config", "history").wants(t, 7, "cannot be reached")
}
