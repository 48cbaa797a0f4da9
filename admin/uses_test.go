package admin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

func TestUsesOfAPIsAndPolicies(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	b.createAPI(b.editor, "one", "/one")
	b.Call("POST", "/api/policies", b.editor, `{"id":"gold","name":"Gold","access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	b.Call("POST", "/api/policies", b.editor, `{"id":"idle","name":"Idle"}`).Want(200)
	hash := b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["gold"]}`).Want(200).Text("key_hash")
	b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	b.Call("POST", "/api/portal/catalogue/entries", b.editor, `{"name":"Offer","show":true,"api_id":"one","policy_id":"gold"}`).Want(201)
	developer, _ := b.aDeveloper("ada")
	b.Call("POST", "/api/portal/requests", b.editor, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, developer)).Want(200)
	org := b.Text("select id from orgs where id <> 'second'")
	at := time.Now().UTC().Truncate(time.Hour).Add(-48 * time.Hour)
	b.Exec("insert into usage_api_hour (org_id, bucket, api_id, status, reason, hits, errors, total_us, upstream_us) values ($1, $2, 'one', 200, '', 9, 4, 0, 0)", org, at)
	b.Exec("insert into usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us) values ($1, $2, 'one', $3, 200, '', 6, 3, 0, 0)", org, at, hash)

	var api apiUses
	b.Call("GET", "/api/apis/one/uses", b.viewer, "").Want(200).Into(&api)
	if len(api.Policies) != 1 || api.Policies[0].Name != "Gold" || api.Keys != 2 || api.KeysCapped || api.CatalogueCount != 1 || !*api.Catalogue[0].Shown || api.Calls != 9 || api.Errors != 4 {
		t.Errorf("uses of the API: %+v", api)
	}
	var policy policyUses
	b.Call("GET", "/api/policies/gold/uses", b.viewer, "").Want(200).Into(&policy)
	if policy.Keys != 1 || policy.Called != 0 || policy.CatalogueCount != 1 || policy.Pending != 1 || policy.Calls == nil || *policy.Calls != 6 || *policy.Errors != 3 {
		t.Errorf("uses of the policy: %+v", policy)
	}
	var idle policyUses
	b.Call("GET", "/api/portal/policies/idle/uses", b.viewer, "").Want(200).Into(&idle)
	if idle.Keys != 0 || idle.CatalogueCount != 0 || idle.Pending != 0 || *idle.Calls != 0 {
		t.Errorf("uses of a policy that nobody uses: %+v", idle)
	}
	b.Call("GET", "/api/apis/none/uses", b.viewer, "").Want(404)
	b.Call("GET", "/api/policies/none/uses", b.viewer, "").Want(404)
	b.Call("GET", "/api/apis/one/uses", b.other, "").Want(404)
}

func TestKeysAreFoundWithoutAnAddress(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "one", "/one")
	made := b.Call("POST", "/api/keys", b.editor, `{"alias":"partner","access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	for _, named := range []string{made.Text("key"), made.Text("key_hash")} {
		b.Call("POST", "/api/keys/find", b.viewer, fmt.Sprintf(`{"key":%q}`, named)).Want(200).Says(made.Text("key_hash"), `"alias":"partner"`, `"active":true`).Hides(made.Text("key"))
	}
	next := b.Call("POST", "/api/keys/"+made.Text("key_hash")+"/rotate", b.editor, `{"grace":"1h"}`)
	if next.Status == 200 {
		b.Call("POST", "/api/keys/find", b.viewer, fmt.Sprintf(`{"key":%q}`, next.Text("key"))).Want(200).Says(made.Text("key_hash"))
	} else {
		t.Errorf("rotating: %d %s", next.Status, next.Body)
	}
	b.Call("POST", "/api/keys/find", b.viewer, `{"key":"slk_unknown"}`).Want(404)
	b.Call("POST", "/api/keys/find", b.viewer, `{"key":""}`).Want(400).Says("key: must be")
	b.Call("POST", "/api/keys/find", b.other, fmt.Sprintf(`{"key":%q}`, made.Text("key"))).Want(404)
	if strings.Contains(b.log.String(), made.Text("key")) {
		t.Error("the log has the key")
	}
}
