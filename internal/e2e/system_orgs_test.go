package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv"
)

// Where an admin owns the keys it owns the limits of organisations too: a gateway
// takes them to it, every gateway learns of them, and they are not among the keys.
func TestTheAdminOwnsTheLimitsOfItsOrganisation(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 0, testenv.Postgres(t))
	var gateways []*server
	for range 2 {
		gateways = append(gateways, newGateway(t, settings{
			"valkey.timeout": "5s", "gateway.token": splitToken, "valkey.url": "redis://:" + splitPassword + "@" + s.store.Addr,
			"gateway.admin_url": s.admin.admin, "secret": splitSecret, "enforce_org_quotas": "true",
		}).startReady())
	}
	s.gateways = gateways
	s.rest.do("POST", "/api/apis", apiDef("owned", s.origin, true))
	s.everywhere("the API", "/owned/a", "", status(200))
	var api struct {
		Org string `json:"org_id"`
	}
	s.rest.do("GET", "/api/apis/owned", nil).into(t, &api)
	if api.Org == "" {
		t.Fatal("the API belongs to no organisation")
	}
	org := func(method, more string, session any) answer {
		t.Helper()
		return call(t, method, gateways[0].control+"/svc/org/keys"+more, session, "X-Svc-Authorization", splitSecret)
	}
	limits := object{"quota_max": 3, "quota_renewal_rate": 3600}
	if got := org("POST", "/nobodys", limits); got.status != 404 {
		t.Errorf("an organisation without APIs: %s", got)
	}
	if got := org("GET", "/"+api.Org, nil); got.status != 404 {
		t.Errorf("before it is made: %s", got)
	}
	if got := org("POST", "/"+api.Org, object{"is_inactive": true}); got.status != 200 {
		t.Fatalf("making it: %s", got)
	}
	s.everywhere("a switched off organisation", "/owned/a", "", refused("org_inactive"))
	if got := org("PUT", "/"+api.Org, limits); got.status != 200 || !strings.Contains(got.body, `"action":"modified"`) {
		t.Fatalf("changing it: %s", got)
	}
	for i, g := range gateways {
		g.await(fmt.Sprintf("the organisation to be on again at gateway %d", i+1), func() error {
			got, err := send("GET", g.traffic+"/owned/a", nil)
			if err == nil && got.reason() == "org_inactive" {
				err = fmt.Errorf("%s", got)
			}
			return err
		})
	}
	s.everywhere("one quota for all gateways", "/owned/a", "", func(got answer) error {
		if got.status == 200 {
			return fmt.Errorf("%s", got)
		}
		return refused("org_quota")(got)
	})
	if got := org("GET", "/"+api.Org, nil); got.status != 200 || !strings.Contains(got.body, `"quota_max":3`) || !strings.Contains(got.body, `"quota_remaining":0`) {
		t.Errorf("shown: %s", got)
	}
	if got := org("GET", "", nil); got.body != `{"keys":["`+api.Org+`"]}` {
		t.Errorf("listed: %s", got)
	}
	if got := s.rest.do("GET", "/api/apis/keys", nil); strings.Contains(got.body, "org:") {
		t.Errorf("among the keys: %s", got)
	}
	if got := org("PUT", "/"+api.Org+"?reset_quota=1", limits); got.status != 200 {
		t.Fatalf("resetting it: %s", got)
	}
	s.everywhere("a fresh quota", "/owned/a", "", status(200))
	if got := org("DELETE", "/"+api.Org, nil); got.status != 200 {
		t.Fatalf("deleting it: %s", got)
	}
	for range 5 {
		s.everywhere("no limits", "/owned/a", "", status(200))
	}
}
