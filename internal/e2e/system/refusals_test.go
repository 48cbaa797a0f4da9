package system

import (
	"fmt"
	"testing"

	"github.com/sluicegate/sluice/internal/e2e/rig"
)

// What gateways refuse is listed with its counts, the same from both, and stays there
// when the gateway that refused it is gone.
func TestRefusalsOfAllGatewaysAreListed(t *testing.T) {
	t.Parallel()
	s := newUsage(t, 2)
	s.rest.Do("POST", "/api/apis", rig.APIDef("keyed", s.origin, false))
	s.policy("five", 5, "keyed")
	var made struct {
		Key  string `json:"key"`
		Hash string `json:"key_hash"`
	}
	s.rest.Do("POST", "/api/keys", object{"apply_policies": []string{"five"}}).Into(t, &made)
	rig.Plant(made.Key)
	key := made.Key
	s.everywhere("the policy", "/keyed/x", s.rest.NewKey(object{"apply_policies": []string{"five"}}), limited(5))
	for range 5 {
		rig.Call(t, "GET", s.gateways[0].Traffic+"/keyed/x", nil, "Authorization", key)
	}
	var id string
	const calls = 30
	for i := range calls {
		got := rig.Call(t, "GET", s.gateways[i%2].Traffic+"/keyed/refused?token=in-the-query", nil, "Authorization", key)
		if got.Reason() != "quota_exceeded" {
			t.Fatalf("call %d: %s", i, got)
		}
		id = got.Header.Get("X-Request-Id")
	}
	// The record is there at once: a gateway still remembers what it did not hand over.
	s.rest.Do("GET", "/api/refusals/"+id, nil)
	var page struct {
		Data []struct {
			ID, Path, Reason, Gateway string
			API                       string `json:"api_id"`
		}
		Total  int
		Counts []struct {
			Reason string
			Calls  int
		}
	}
	s.admin.Await("the refusals of both gateways", func() error {
		s.rest.Do("GET", "/api/refusals?reason=quota_exceeded&page_size=50&key="+made.Hash, nil).Into(t, &page)
		if len(page.Counts) != 1 || page.Counts[0].Calls != calls || page.Total < calls || len(page.Data) < calls {
			return fmt.Errorf("%d records, %d on the page, counted %+v", page.Total, len(page.Data), page.Counts)
		}
		return nil
	})
	from := make(map[string]int)
	for _, r := range page.Data {
		from[r.Gateway]++
		if r.API != "keyed" || r.Path != "/keyed/refused" || r.Reason != "quota_exceeded" {
			t.Errorf("%+v", r)
		}
	}
	if len(from) != 2 || page.Total != calls || len(page.Data) != calls {
		t.Errorf("%d records from %v", page.Total, from)
	}
	for _, g := range s.gateways {
		g.Kill()
	}
	s.rest.Do("GET", "/api/refusals/"+id, nil)
}
