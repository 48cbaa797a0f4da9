package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Where an admin owns the keys it owns the limits of organisations too: a gateway
// takes them to it, every gateway learns of them, and they are not among the keys.
func TestTheAdminOwnsTheLimitsOfItsOrganisation(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 0, testenv.Postgres(t))
	var gateways []*rig.Server
	for range 2 {
		gateways = append(gateways, rig.NewGateway(t, settings{
			"valkey.timeout": "5s", "gateway.token": splitToken, "valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr,
			"gateway.admin_url": s.admin.Admin, "secret": splitSecret, "enforce_org_quotas": "true",
		}).StartReady())
	}
	s.gateways = gateways
	s.rest.Do("POST", "/api/apis", rig.APIDef("owned", s.origin, true))
	s.everywhere("the API", "/owned/a", "", status(200))
	var api struct {
		Org string `json:"org_id"`
	}
	s.rest.Do("GET", "/api/apis/owned", nil).Into(t, &api)
	if api.Org == "" {
		t.Fatal("the API belongs to no organisation")
	}
	org := func(method, more string, session any) rig.Answer {
		t.Helper()
		return rig.Call(t, method, gateways[0].Control+"/svc/org/keys"+more, session, "X-Svc-Authorization", splitSecret)
	}
	limits := object{"quota_max": 3, "quota_renewal_rate": 3600}
	if got := org("POST", "/nobodys", limits); got.Status != 404 {
		t.Errorf("an organisation without APIs: %s", got)
	}
	if got := org("GET", "/"+api.Org, nil); got.Status != 404 {
		t.Errorf("before it is made: %s", got)
	}
	if got := org("POST", "/"+api.Org, object{"is_inactive": true}); got.Status != 200 {
		t.Fatalf("making it: %s", got)
	}
	s.everywhere("a switched off organisation", "/owned/a", "", refused("org_inactive"))
	if got := org("PUT", "/"+api.Org, limits); got.Status != 200 || !strings.Contains(got.Body, `"action":"modified"`) {
		t.Fatalf("changing it: %s", got)
	}
	for i, g := range gateways {
		g.Await(fmt.Sprintf("the organisation to be on again at gateway %d", i+1), func() error {
			got, err := rig.Send("GET", g.Traffic+"/owned/a", nil)
			if err == nil && got.Reason() == "org_inactive" {
				err = fmt.Errorf("%s", got)
			}
			return err
		})
	}
	s.everywhere("one quota for all gateways", "/owned/a", "", func(got rig.Answer) error {
		if got.Status == 200 {
			return fmt.Errorf("%s", got)
		}
		return refused("org_quota")(got)
	})
	if got := org("GET", "/"+api.Org, nil); got.Status != 200 || !strings.Contains(got.Body, `"quota_max":3`) || !strings.Contains(got.Body, `"quota_remaining":0`) {
		t.Errorf("shown: %s", got)
	}
	if got := org("GET", "", nil); got.Body != `{"keys":["`+api.Org+`"]}` {
		t.Errorf("listed: %s", got)
	}
	if got := s.rest.Do("GET", "/api/apis/keys", nil); strings.Contains(got.Body, "org:") {
		t.Errorf("among the keys: %s", got)
	}
	if got := org("PUT", "/"+api.Org+"?reset_quota=1", limits); got.Status != 200 {
		t.Fatalf("resetting it: %s", got)
	}
	s.everywhere("a fresh quota", "/owned/a", "", status(200))
	if got := org("DELETE", "/"+api.Org, nil); got.Status != 200 {
		t.Fatalf("deleting it: %s", got)
	}
	for range 5 {
		s.everywhere("no limits", "/owned/a", "", status(200))
	}
}
