package e2e

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorFindsWhatFails(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	listen := settings{"data_dir": s.settings["data_dir"], "admin.listen": strings.TrimPrefix(s.admin, "http://"), "gateway.listen": strings.TrimPrefix(s.traffic, "http://")}
	well := command(t, listen, "doctor").wants(t, 0, "admin: "+s.admin+" is ready", "gateway: "+s.traffic+" answers", "clock of the admin")
	if strings.Contains(well.stdout, "fail ") {
		t.Errorf("%s", well.stdout)
	}
	var found []struct{ State, Check, Remedy string }
	if err := json.Unmarshal([]byte(command(t, listen, "doctor", "-o", "json").wants(t, 0).stdout), &found); err != nil || len(found) < 5 {
		t.Errorf("%+v, %v", found, err)
	}
	listen["gateway.listen"] = listen["admin.listen"] // where something else answers
	command(t, listen, "doctor").wants(t, 1, "fail  gateway.listen: "+listen["gateway.listen"], "-> end what listens there")
	listen["gateway.tls.listen"] = freeAddress(t)
	listen["gateway.tls.cert"] = filepath.Join(t.TempDir(), "none.pem")
	command(t, listen, "doctor").wants(t, 1, "fail  gateway.tls.cert")
	command(t, settings{"data_dir": t.TempDir(), "admin.listen": freeAddress(t)}, "doctor").wants(t, 0, "warn  admin: not asked", "is free")
}

func TestTopShowsWhatHappensNow(t *testing.T) {
	t.Parallel()
	_, up := newScripted(t, noContent)
	s := newUp(t, dataDir(t), nil).startReady()
	s.rest().do(http.MethodPost, "/api/apis", apiDef("orders", "http://"+up, true))
	s.awaitUse("/orders/", "")
	s.own("top", "--once", "--every", "200ms").wants(t, 0, "REQ/S", "orders")
	var told struct {
		APIs []struct {
			API string `json:"api"`
		} `json:"apis"`
	}
	if err := json.Unmarshal([]byte(s.own("top", "--once", "--every", "200ms", "--api", "orders", "-o", "json").wants(t, 0).stdout), &told); err != nil || len(told.APIs) != 1 {
		t.Errorf("%+v, %v", told, err)
	}
	s.own("top", "--once", "--every", "1ms").wants(t, 2, "--every")
	s.own("top", "--once", "--metrics", "http://"+freeAddress(t)).wants(t, 7, "cannot be reached")
}

func TestObjectsAreListedShownAndDeleted(t *testing.T) {
	t.Parallel()
	s := newUp(t, dataDir(t), nil).startReady()
	r := s.rest()
	r.do(http.MethodPost, "/api/apis", apiDef("orders", "http://127.0.0.1:1", false))
	r.do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "Gold", "access_rights": accessTo("orders")})
	s.own("api", "ls").wants(t, 0, "ID", "orders", "/orders/")
	s.own("api", "get", "orders").wants(t, 0, "listen_path")
	s.own("policy", "ls", "-o", "json").wants(t, 0, `"gold"`)
	s.own("policy", "get", "gold").wants(t, 0, "Gold")
	s.own("api", "rm", "orders", "--yes").wants(t, 6, "gold", "--force")
	s.own("policy", "rm", "gold").wants(t, 2, "--yes")
	s.own("policy", "rm", "gold", "--yes").wants(t, 0)
	s.own("api", "rm", "orders", "--yes").wants(t, 0)
	s.own("api", "get", "orders").wants(t, 6)
	s.own("api", "get").wants(t, 2, "ID")
}
