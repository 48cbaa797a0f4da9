package system

import (
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// portal is what tests of the portal do by REST.
type portal struct{ *rig.Rest }

// developer makes one who can log in, and returns the id.
func (p portal) developer(email, password string) string {
	p.T.Helper()
	var made struct{ Message string }
	p.Do("POST", "/api/portal/developers", object{"email": email, "password": password}).Into(p.T, &made)
	return made.Message
}

// login returns a client of the REST as a developer.
func (p portal) login(email, password string) *rig.Rest {
	p.T.Helper()
	var entered struct {
		Key string `json:"access_key"`
	}
	p.Do("POST", "/api/portal/login", object{"email": email, "password": password}).Into(p.T, &entered)
	return rig.NewRest(p.T, p.URL, rig.Plant(entered.Key))
}

// credential is what requests come to.
type credential struct {
	RawKey, Password string
	ID               string `json:"key_id"`
}

// approve approves a request.
func (p portal) approve(id string) (c credential) {
	p.T.Helper()
	p.Do("PUT", "/api/portal/requests/approve/"+id, nil).Into(p.T, &c)
	if c.RawKey == "" {
		p.T.Fatalf("approving request %s came to no key", id)
	}
	rig.Plant(c.RawKey)
	return c
}

// askFor asks for a policy as a developer and returns the request's id.
func askFor(developer *rig.Rest, policy string) string {
	developer.T.Helper()
	var made struct{ Message string }
	developer.Do("POST", "/api/portal/me/requests", object{"for_plan": policy, "version": "v2"}).Into(developer.T, &made)
	return made.Message
}

// keysOf returns the keys that a developer sees.
func keysOf(developer *rig.Rest) (list struct {
	Data []struct {
		ID    string `json:"key_id"`
		State string
		APIs  []struct {
			Used      *int64 `json:"quota_used"`
			Remaining *int64 `json:"quota_remaining"`
		} `json:"apis"`
	}
},
) {
	developer.T.Helper()
	developer.Do("GET", "/api/portal/me/keys", nil).Into(developer.T, &list)
	return list
}

// From asking to a call: a request's key works at every gateway within a second of
// its approval, and so do all later changes of it.
func TestAnApprovedKeyWorksAtEveryGatewayWithinASecond(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 2, testenv.Postgres(t))
	p := portal{s.rest}
	s.rest.Do("POST", "/api/apis", rig.APIDef("shop", s.origin, false))
	s.policy("shop-plan", 5, "shop")
	s.rest.Do("POST", "/api/portal/catalogue/entries", object{"name": "Shop", "api_id": "shop", "policy_id": "shop-plan", "show": true})
	p.developer("ada@dev.example", "correct horse battery")
	ada := p.login("ada@dev.example", "correct horse battery")
	// The first key of a policy finds it at the gateways.
	s.everywhere("the policy", "/shop/x", s.rest.NewKey(object{"apply_policies": []string{"shop-plan"}}), limited(5))

	approved, rotated, revoked := &measured{t: t, what: "an approved key"}, &measured{t: t, what: "a rotated key"}, &measured{t: t, what: "a revoked key"}
	for i := range 5 {
		key := p.approve(askFor(ada, "shop-plan")).RawKey
		approved.add(s.everywhere("the key", "/shop/x", key, limited(5)))
		shown := keysOf(ada).Data
		if len(shown) != 1 || shown[0].State != "active" || len(shown[0].APIs) != 1 || shown[0].APIs[0].Used == nil || *shown[0].APIs[0].Used != 2 {
			t.Fatalf("round %d: the developer sees %+v", i, shown)
		}
		if i == 0 {
			for n := range 3 {
				if got := rig.Call(t, "GET", s.gateways[n%2].Traffic+"/shop/x", nil, "Authorization", key); got.Status != 200 {
					t.Errorf("call %d: %s", n+3, got)
				}
			}
			s.everywhere("an exhausted quota", "/shop/x", key, refused("quota_exceeded"))
		}
		var next credential
		ada.Do("POST", "/api/portal/me/keys/"+shown[0].ID+"/rotate", object{"grace": "0s"}).Into(t, &next)
		rotated.add(s.everywhere("the former key", "/shop/x", key, func(got rig.Answer) error {
			if got.Status != 401 && got.Status != 403 || got.Reason() == "quota_exceeded" {
				return fmt.Errorf("%s: it is valid still", got)
			}
			return nil
		}))
		ada.Do("DELETE", "/api/portal/me/keys/"+shown[0].ID, nil)
		revoked.add(s.everywhere("no key", "/shop/x", rig.Plant(next.RawKey), refused("auth_unknown")))
	}
	approved.report()
	rotated.report()
	revoked.report()
	for _, one := range append(s.gateways, s.admin) {
		if code := one.Stop(); code != 0 {
			t.Errorf("%s stopped with code %d, want 0", one, code)
		}
	}
}

// In one process it is the same, without a shared store.
func TestAnApprovedKeyWorksInOneProcess(t *testing.T) {
	t.Parallel()
	origin := "http://" + testenv.Origin(t, rig.Echo)
	up := rig.NewUp(t, rig.DataDir(t), settings{"admin.private_upstreams": "allow"}).StartReady()
	p := portal{up.Rest()}
	p.Do("POST", "/api/apis", rig.APIDef("shop", origin, false))
	p.Do("POST", "/api/portal/policies", object{"id": "plan", "name": "plan", "quota_max": 5, "quota_renewal_rate": 3600, "access_rights": rig.AccessTo("shop")})
	p.Do("POST", "/api/portal/catalogue/entries", object{"name": "Shop", "api_id": "shop", "policy_id": "plan", "show": true})
	p.Do("POST", "/api/portal/catalogue/entries", object{"name": "Shop for users", "api_id": "shop", "policy_id": "plan", "show": true, "auth_type": "authToken"})
	p.developer("ada@dev.example", "correct horse battery")
	ada := p.login("ada@dev.example", "correct horse battery")
	id := askFor(ada, "plan")
	key := p.approve(id).RawKey
	took := up.Await("the key", func() error {
		got, err := rig.Send("GET", up.Traffic+"/shop/x", nil, "Authorization", key)
		return rig.Want(200, got, err)
	})
	t.Logf("the key worked after %s", took)
	if again, err := p.Try("PUT", "/api/portal/requests/approve/"+id, nil); err != nil || again.Status != 409 {
		t.Errorf("approved twice: %v %v", again, err)
	}
	if code := up.Stop(); code != 0 {
		t.Errorf("stopped with code %d, want 0", code)
	}
}
