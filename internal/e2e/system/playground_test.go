package system

import (
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
	"github.com/sluicegate/sluice/internal/testenv"
)

// played is the answer to a call of the playground.
type played struct {
	Sent, Counted bool
	Status        int
	Body          string
	RequestID     string          `json:"request_id"`
	Explanation   rig.Explanation `json:"explanation"`
}

// newKeyHash makes a key and returns its hash alone.
func newKeyHash(t *testing.T, rest *rig.Rest, session object) string {
	t.Helper()
	var made struct {
		Hash string `json:"key_hash"`
	}
	rest.Do("POST", "/api/keys", session).Into(t, &made)
	return made.Hash
}

// A call as a key needs the key's hash alone, and counts when that is asked for.
func TestThePlaygroundCallsAsAKey(t *testing.T) {
	t.Parallel()
	s := rig.NewUp(t, rig.DataDir(t), nil).StartReady()
	rest := s.Rest()
	rest.Do("POST", "/api/apis", rig.APIDef("orders", "http://"+testenv.Origin(t, rig.Echo), false))
	hash := newKeyHash(t, rest, object{"quota_max": 2, "quota_renewal_rate": 600, "access_rights": object{"orders": object{}}})
	play := func(count bool) (p played) {
		t.Helper()
		rest.Do("POST", "/api/apis/orders/playground", object{"as": object{"key_hash": hash}, "path": "/x", "count": count}).Into(t, &p)
		return p
	}
	s.Await("the gateway to serve the API", func() error {
		return status(200)(rig.Answer{Status: play(false).Status})
	})
	for range 3 {
		if p := play(false); p.Status != 200 || p.Counted || len(p.RequestID) != 32 {
			t.Errorf("uncounted: %+v", p)
		}
	}
	for i, want := range []int{200, 200, 403} {
		if p := play(true); p.Status != want || !p.Counted || !p.Sent {
			t.Errorf("counted, call %d: %+v", i, p)
		}
	}
	p := play(false)
	if p.Status != 403 || p.Explanation.Outcome.Reason != "quota_exceeded" {
		t.Errorf("with a used quota: %+v", p)
	}
	if got, err := rest.Try("POST", "/api/explain", object{"id": p.RequestID}); err != nil || got.Status != 200 {
		t.Errorf("why: %v %s", err, got)
	}
}

// An admin without a gateway calls the upstream itself, with the keys of the gateways.
func TestThePlaygroundOfAnAdminAlone(t *testing.T) {
	t.Parallel()
	s := newSplit(t, 1, testenv.Postgres(t))
	s.rest.Do("POST", "/api/apis", rig.APIDef("orders", s.origin, false))
	s.rest.Do("POST", "/api/apis", rig.APIDef("others", s.origin, false))
	hash := newKeyHash(t, s.rest, object{"access_rights": object{"orders": object{}}})
	play := func(api string) (p played) {
		s.rest.Do("POST", "/api/apis/"+api+"/playground", object{"as": object{"key_hash": hash}, "path": "/x"}).Into(t, &p)
		return p
	}
	rig.Eventually(t, "the call to reach the API", func() error {
		return status(200)(rig.Answer{Status: play("orders").Status})
	})
	rig.Eventually(t, "a call to the other API to be refused", func() error {
		return status(403)(rig.Answer{Status: play("others").Status})
	})
}
