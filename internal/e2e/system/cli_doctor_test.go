package system

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/valyala/fasthttp"
)

func TestDoctorFindsWhatFails(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	listen := settings{"data_dir": s.Settings["data_dir"], "admin.listen": strings.TrimPrefix(s.Admin, "http://"), "gateway.listen": strings.TrimPrefix(s.Traffic, "http://")}
	well := rig.Command(t, listen, "doctor").Wants(t, 0, "admin: "+s.Admin+" is ready", "gateway: "+s.Traffic+" answers", "clock of the admin")
	if strings.Contains(well.Stdout, "fail ") {
		t.Errorf("%s", well.Stdout)
	}
	var found []struct{ State, Check, Remedy string }
	if err := json.Unmarshal([]byte(rig.Command(t, listen, "doctor", "-o", "json").Wants(t, 0).Stdout), &found); err != nil || len(found) < 5 {
		t.Errorf("%+v, %v", found, err)
	}
	listen["gateway.listen"] = listen["admin.listen"] // where something else answers
	rig.Command(t, listen, "doctor").Wants(t, 1, "fail  gateway.listen: "+listen["gateway.listen"], "-> end what listens there")
	listen["gateway.tls.listen"] = rig.FreeAddress(t)
	listen["gateway.tls.cert"] = filepath.Join(t.TempDir(), "none.pem")
	rig.Command(t, listen, "doctor").Wants(t, 1, "fail  gateway.tls.cert")
	rig.Command(t, settings{"data_dir": t.TempDir(), "admin.listen": rig.FreeAddress(t)}, "doctor").Wants(t, 0, "warn  admin: not asked", "is free")
}

func TestTopShowsWhatHappensNow(t *testing.T) {
	t.Parallel()
	up := testenv.Origin(t, rig.Echo)
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	s.Rest().Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://"+up, true))
	s.AwaitUse("/orders/", "")
	s.CLI("top", "--once", "--every", "200ms").Wants(t, 0, "REQ/S", "orders")
	var told struct {
		APIs []struct {
			API string `json:"api"`
		} `json:"apis"`
	}
	if err := json.Unmarshal([]byte(s.CLI("top", "--once", "--every", "200ms", "--api", "orders", "-o", "json").Wants(t, 0).Stdout), &told); err != nil || len(told.APIs) != 1 {
		t.Errorf("%+v, %v", told, err)
	}
	s.CLI("top", "--once", "--every", "1ms").Wants(t, 2, "--every")
	s.CLI("top", "--once", "--metrics", "http://"+rig.FreeAddress(t)).Wants(t, 7, "cannot be reached")
	admin := "http://" + testenv.Origin(t, func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("sluice_admin_bundle_waiting 0\n") })
	s.CLI("top", "--once", "--metrics", admin).Wants(t, 7, admin+" has no metrics of a gateway")
}

func TestObjectsAreListedShownAndDeleted(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	r := s.Rest()
	r.Do(http.MethodPost, "/api/apis", rig.APIDef("orders", "http://127.0.0.1:1", false))
	r.Do(http.MethodPost, "/api/portal/policies", object{"id": "gold", "name": "Gold", "access_rights": rig.AccessTo("orders")})
	s.CLI("api", "ls").Wants(t, 0, "ID", "orders", "/orders/")
	s.CLI("api", "get", "orders").Wants(t, 0, "listen_path")
	s.CLI("policy", "ls", "-o", "json").Wants(t, 0, `"gold"`)
	s.CLI("policy", "get", "gold").Wants(t, 0, "Gold")
	s.CLI("api", "rm", "orders", "--yes").Wants(t, 6, "gold", "--force")
	s.CLI("policy", "rm", "gold").Wants(t, 2, "--yes")
	s.CLI("policy", "rm", "gold", "--yes").Wants(t, 0)
	s.CLI("api", "rm", "orders", "--yes").Wants(t, 0)
	s.CLI("api", "get", "orders").Wants(t, 6)
	s.CLI("api", "get").Wants(t, 2, "ID")
}
