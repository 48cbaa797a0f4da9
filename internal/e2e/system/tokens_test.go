package system

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// The token of the gateways is changed on the admin, then on one gateway after the other,
// and the former one is taken away in the end: no call fails, and no gateway loses its
// admin or its last good configuration.
func TestTheTokenOfTheGatewaysIsChangedWithoutAGap(t *testing.T) {
	t.Parallel()
	const next = "next-token-of-all-gateways-31c9"
	rig.Plant(next)
	s := newSplit(t, 2, testenv.Postgres(t))
	path, key := s.governed("calm", 1_000_000)
	first, second := s.gateways[0], s.gateways[1]
	s.gateways = []*rig.Server{first}
	load := s.traffic(2, path, key)
	load.AwaitMore(50)
	rotate := func(p *rig.Server, token, former string) {
		p.Stop()
		p.Settings["gateway.token"] = token
		if delete(p.Settings, "gateway.former_token"); former != "" {
			p.Settings["gateway.former_token"] = former
		}
	}
	rotate(s.admin, next, splitToken)
	rotate(second, next, splitToken)
	second.StartReady() // the admin is away: the last good configuration is of the former token
	second.AwaitLog("serving the last good configuration from disk")
	s.admin.StartReady()
	s.gateways = []*rig.Server{first, second}
	s.rest.Do("POST", "/api/apis", rig.APIDef("between", s.origin, true))
	s.everywhere("a change under both tokens", "/between/x", "", status(200))
	s.admin.AwaitLog("a gateway still uses gateway.former_token")
	load.AwaitMore(50)
	load.Stop()

	rotate(first, next, "")
	first.StartReady()
	rotate(s.admin, next, "")
	s.admin.StartReady()
	s.rest.Do("POST", "/api/apis", rig.APIDef("after", s.origin, true))
	s.everywhere("a change under the new token", "/after/x", "", status(200))
	for _, g := range s.gateways {
		s.degraded(g, false)
	}
}

// A gateway with an access key of its own is shut out without the others.
func TestAGatewayHasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	s.rest.Do("POST", "/api/apis", rig.APIDef("calm", s.origin, true))
	s.admin.CLI("gateway", "key", "create", "edge 2").Wants(t, 2, "want one NAME of a gateway")
	key := s.admin.CLI("gateway", "key", "create", "edge-2").Wants(t, 0, "edge-2", "sla_").LastWord()
	s.admin.CLI("gateway", "key", "create", "edge-2").Wants(t, 6, "email_address")
	s.admin.CLI("gateway", "key", "ls").Wants(t, 0, "edge-2")
	own := s.freshGateway()
	own.Settings["gateway.token"] = key
	own.StartReady()
	s.gateways = append(s.gateways, own)
	s.everywhere("the API", "/calm/x", "", status(200))

	s.admin.CLI("gateway", "key", "revoke", "edge-3", "--yes").Wants(t, 6, "no gateway has a key under the name edge-3")
	s.admin.CLI("gateway", "key", "revoke", "edge-2", "--yes").Wants(t, 0, "the key of edge-2 has ended")
	s.rest.Do("POST", "/api/apis", rig.APIDef("after", s.origin, true)) // ends the poll that was let in before
	answers(own.Process, own.Telemetry+"/readyz", 200, "the admin refuses this gateway's token")
	answers(own.Process, own.Traffic+"/calm/x", 200, "origin /x")
	answers(s.gateways[0].Process, s.gateways[0].Traffic+"/after/x", 200, "origin /x")
}

// The file with the first admin's key follows a reset of that key. A file that went stale
// elsewhere is reported by the server and by commands that use it.
func TestTheFileWithTheAdminKeyDoesNotGoStaleUnnoticed(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	var me struct {
		ID string `json:"id"`
	}
	first := s.AdminKey()
	s.Rest().Do("GET", "/api/users/me", nil).Into(t, &me)
	s.Rest().Do("PUT", "/api/users/"+me.ID+"/actions/key/reset", nil)
	if now := s.AdminKey(); now == first {
		t.Fatal("the file has the key that has ended")
	}
	s.Rest().Do("GET", "/api/users/me", nil)
	s.CLI("config", "history").Wants(t, 0)

	rig.SaveText(t, filepath.Join(s.Settings["data_dir"], "admin.key"), first+"\n")
	s.CLI("config", "history").Wants(t, 6, "Not authorised", "admin.key: no user of http://")
	s.Stop()
	s.StartReady()
	s.AwaitLog("no user has the access key in this file")
	if strings.Contains(s.Run.Stderr.String(), first) {
		t.Error("the log has the key")
	}
}
