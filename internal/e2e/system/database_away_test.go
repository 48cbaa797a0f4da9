package system

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// answers waits until a GET is answered with a status and a text.
func answers(p *rig.Process, url string, status int, text string) {
	p.T.Helper()
	p.Await(fmt.Sprintf("%d with %q from %s", status, text, url), func() error {
		got, err := rig.Send(http.MethodGet, url, nil)
		if err == nil && !strings.Contains(got.Body, text) {
			err = fmt.Errorf("%s lacks %q", got, text)
		}
		return rig.Want(status, got, err)
	})
}

// freshGateway describes a further gateway, whose data directory is empty.
func (s *split) freshGateway() *rig.Server {
	s.t.Helper()
	return rig.NewGateway(s.t, rig.Merge(s.gateways[0].Settings, settings{"data_dir": rig.DataDir(s.t)}))
}

// While the database is away, a gateway that starts for the first time gets everything
// from the memory of the admin, and is not degraded.
func TestAFreshGatewayStartsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	db := rig.NewDatabase(t)
	s := newSplit(t, 1, db.Dsn)
	path, key := s.governed("calm", 1_000_000)
	db.Kill()
	answers(s.admin.Process, s.admin.Admin+"/readyz", 503, `"database":"unavailable"`)
	fresh := s.freshGateway().StartReady()
	if got := rig.Call(t, "GET", fresh.Traffic+path, nil, "Authorization", key); got.Status != 200 {
		t.Errorf("a call through the fresh gateway: %s", got)
	}
	if got := rig.Call(t, "GET", fresh.Telemetry+"/readyz", nil); got.Status != 200 || strings.Contains(got.Body, "degraded") {
		t.Errorf("the fresh gateway reports %s", got)
	}
}

// An admin that starts without its database waits for it. It says so in its log
// and in its answers, and gateways report that the database is away, and not the admin.
func TestAnAdminWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	db := rig.NewDatabase(t)
	s := newSplit(t, 1, db.Dsn)
	s.rest.Do("POST", "/api/apis", rig.APIDef("calm", s.origin, true))
	s.everywhere("the API", "/calm/x", "", status(200))
	s.admin.Stop()
	db.Kill()
	s.admin.Start()
	s.admin.AwaitLog("the database does not answer; the admin waits for it")
	answers(s.admin.Process, s.admin.Admin+"/readyz", 503, "the admin waits for it")
	answers(s.admin.Process, s.admin.Admin+"/ready", 503, "the admin waits for it")
	answers(s.admin.Process, s.admin.Admin+"/live", 200, `"status":"pass"`)
	answers(s.admin.Process, s.admin.Admin+"/healthz", 200, `"status":"pass"`)
	answers(s.admin.Process, s.admin.Admin+"/api/apis", 503, "The admin waits for its database")
	answers(s.gateways[0].Process, s.gateways[0].Telemetry+"/readyz", 200, "the admin answers, but its database is away")
	fresh := s.freshGateway()
	fresh.Start()
	answers(fresh.Process, fresh.Telemetry+"/readyz", 503, "no configuration was loaded yet: the admin answers, but its database is away")

	db.Start()
	answers(s.admin.Process, s.admin.Admin+"/readyz", 200, `"status":"pass"`)
	for _, g := range []*rig.Server{s.gateways[0], fresh} {
		answers(g.Process, g.Telemetry+"/readyz", 200, `{"status":"ready"}`)
		answers(g.Process, g.Traffic+"/calm/x", 200, "origin /x")
	}
}

// An admin ends at once, with a reason, when waiting would not help.
func TestAnAdminThatCannotUseItsDatabaseEnds(t *testing.T) {
	t.Parallel()
	dsn := testenv.Postgres(t)
	with := settings{
		"database.url": dsn + " dbname=no_such_database", "data_dir": rig.DataDir(t), "admin.listen": rig.FreeAddress(t),
		"valkey.url": "redis://" + testenv.Valkey(t).Addr,
	}
	rig.Command(t, with, "admin").Wants(t, 1, "no_such_database", "does not exist")
}

// A stop ends the wait for the database.
func TestAnAdminThatWaitsCanBeStopped(t *testing.T) {
	t.Parallel()
	nobody := rig.FreeAddress(t)
	admin := rig.NewAdmin(t, settings{"database.url": "postgres://sluice@" + nobody + "/sluice", "valkey.url": "redis://" + testenv.Valkey(t).Addr})
	admin.Start()
	admin.AwaitLog("the admin waits for it")
	if code := admin.Stop(); code != 0 {
		t.Errorf("stopped with code %d", code)
	}
}
