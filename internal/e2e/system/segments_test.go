package system

import (
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Gateways get the APIs of their segments from the admin, which says who serves what.
func TestEachGatewayServesItsSegments(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	eu := rig.NewGateway(t, settings{
		"gateway.admin_url": s.admin.Admin, "gateway.token": splitToken, "gateway.tags": "eu",
		"valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr, "valkey.timeout": "5s",
	}).StartReady()
	plain := s.gateways[0]
	both := func(path string, atPlain, atEU int) {
		t.Helper()
		for g, want := range map[*rig.Server]int{plain: atPlain, eu: atEU} {
			g.Await(path, func() error {
				got, err := rig.Send("GET", g.Traffic+path, nil)
				if err == nil {
					err = rig.Want(want, got, nil)
				}
				return err
			})
		}
	}
	def := rig.APIDef("orders", s.origin, true)
	s.rest.Do("POST", "/api/apis", def)
	both("/orders/", 200, 200)
	def["tags"] = []string{"eu"}
	s.rest.Do("PUT", "/api/apis/orders", def)
	both("/orders/", 404, 200)
	s.admin.Await("the list of gateways", func() error {
		got, err := s.rest.Try("GET", "/api/gateways", nil)
		if err == nil {
			err = rig.Lacks(got.Body, `"tags":["eu"]`)
		}
		return err
	})
	s.rest.Expect(200, "POST", "/api/explain", object{"method": "GET", "url": "/orders/"}, "served by gateways with one of its tags alone: eu; these have one: ", `"tags":["eu"]`)
	def["tags"] = []string{"asia"}
	s.rest.Do("PUT", "/api/apis/orders", def)
	both("/orders/", 404, 404)
	s.rest.Expect(200, "POST", "/api/explain", object{"method": "GET", "url": "/orders/"}, "asia; no gateway that reported within a day has one")
}
