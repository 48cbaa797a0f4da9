package source

import (
	"strings"
	"testing"
)

func TestAGatewayServesTheOrganisationsThatItIsTold(t *testing.T) {
	f := newFolder(t, false)
	of := func(id, org string) string {
		return strings.NewReplacer(`"api_id":"a"`, `"api_id":"`+id+`","org_id":"`+org+`"`, "/a/", "/"+id+"/").Replace(goodAPI)
	}
	f.write("one.json", of("one", "acme"))
	f.write("two.json", of("two", "other"))
	f.write("three.json", of("three", ""))
	f.write("policies/p.json", `{"gold":{"name":"Gold","org_id":"acme","rate":5,"per":1},"tin":{"name":"Tin","org_id":"other","rate":5,"per":1}}`)
	for _, c := range []struct {
		orgs           []string
		apis, policies int
		empty          bool
	}{
		{nil, 3, 2, false},
		{[]string{"acme"}, 2, 1, true},
		{[]string{"acme", "other"}, 3, 2, false},
		{[]string{"nobody"}, 1, 0, true},
	} {
		b, err := OfOrgs(f.src, c.orgs).Next(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(b.APIs) != c.apis || len(b.Policies) != c.policies || b.ConfirmedEmpty != c.empty {
			t.Errorf("%v: %d APIs, %d policies, confirmed empty %v", c.orgs, len(b.APIs), len(b.Policies), b.ConfirmedEmpty)
		}
	}
}
