package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func TestOrganisationsAreMadeChangedAndEnded(t *testing.T) {
	b := start(t, func(d *Deps) { d.OrgLimits = true })
	made := b.Call("POST", "/api/orgs", b.admin, `{"id":"acme","name":"Acme","limits":{"rate":100,"per":60,"quota_max":1000},"admin":{"email_address":"ann@acme.example"}}`).
		Want(201).Says(`"Meta":"acme"`).Hides("Warnings")
	ann := made.Text("access_key")
	b.Call("POST", "/api/orgs", b.admin, `{"id":"acme","name":"Other"}`).Want(409)
	b.Call("POST", "/api/orgs", b.admin, `{"name":"Third"}`).Want(201).Hides("access_key")

	b.Call("GET", "/api/orgs/acme", b.admin, "").Want(200).Says(`"name":"Acme"`, `"rate":100`, `"quota_remaining":1000`)
	b.Call("GET", "/api/orgs", b.admin, "").Want(200).Says(`"acme"`, `"second"`, `"Third"`, `"Pages":1`)
	b.Call("GET", "/api/orgs?q=aCm", b.admin, "").Want(200).Says(`"acme"`).Hides("second")
	b.Call("GET", "/api/orgs", ann, "").Want(200).Says(`"acme"`).Hides("second", "Third")

	b.Call("PUT", "/api/orgs/acme", b.admin, `{"name":"Acme Ltd"}`).Want(200)
	b.Call("GET", "/api/orgs/acme", ann, "").Want(200).Says(`"name":"Acme Ltd"`, `"rate":100`)
	b.Call("PUT", "/api/orgs/acme", b.admin, `{"limits":{"quota_max":50}}`).Want(200)
	b.Call("GET", "/api/orgs/acme", b.viewer, "").Want(404)
	b.Call("GET", "/api/orgs/acme", b.admin, "").Want(200).Says(`"name":"Acme Ltd"`, `"rate":0`, `"quota_remaining":50`)
	b.Call("PUT", "/api/orgs/acme", b.admin, `{"limits":null}`).Want(200)
	b.Call("GET", "/api/orgs/acme", b.admin, "").Want(200).Hides("limits")
	b.Call("PUT", "/api/orgs/acme", b.admin, `{"name":"x"}`, "If-Match", `"1"`).Want(409)

	b.Call("DELETE", "/api/orgs/acme", b.admin, "").Want(200)
	b.Call("GET", "/api/orgs/acme", b.admin, "").Want(404)
	b.Call("GET", "/api/users/me", ann, "").Want(401)
	b.Call("POST", "/api/orgs", b.admin, `{"id":"acme","name":"Again"}`).Want(409)
	b.Call("GET", "/api/audit?object_kind=org", b.admin, "").Want(200).Says(`"created"`, `"updated"`, `"ended"`)
}

func TestWhatIsWrongWithAnOrganisationIsNamed(t *testing.T) {
	b := start(t)
	for body, want := range map[string]string{
		`{}`:                      "name: must be 1 to",
		`{"id":"a/b","name":"x"}`: "id: must consist of",
		`{"name":"x","nmae":"y"}`: `unknown member "nmae"`,
		`{"name":"x","limits":{"access_rights":{"a":{}}}}`: "access_rights: are those of keys",
		`{"name":"x","limits":{"org_id":"other"}}`:         "limits.org_id: must be",
		`{"name":"x","admin":{"email_address":"nobody"}}`:  "admin.email_address: must be an address",
	} {
		b.Call("POST", "/api/orgs", b.admin, body).Want(400).Says(strings.ReplaceAll(want, `"`, `\"`))
	}
	if n := b.Count("select count(*) from orgs"); n != 2 {
		t.Errorf("%d organisations", n)
	}
	b.Call("PUT", "/api/orgs/second", b.admin, `{}`).Want(400).Says("name or limits")
	b.Call("PUT", "/api/orgs/second", b.admin, `{"limits":{"quota_max":"x"}}`).Want(400).Says("limits.quota_max")
	b.Call("PUT", "/api/orgs/nowhere", b.admin, `{"name":"x"}`).Want(404)
}

func TestLimitsThatAreNotEnforcedAreWarnedOf(t *testing.T) {
	b := start(t)
	b.Call("PUT", "/api/orgs/second", b.admin, `{"limits":{"quota_max":50}}`).Want(200).Says("Warnings", "enforce_org_quotas is off")
	b.Call("PUT", "/api/orgs/second", b.admin, `{"name":"Second"}`).Want(200).Hides("Warnings")
	b.Call("POST", "/api/orgs", b.admin, `{"id":"o","name":"o","limits":{"rate":1,"per":1}}`).Want(201).Says("enforce_org_quotas is off")
}

// The limits of an organisation bind its users, its admins too.
func TestOnlyAdminsOfTheFirstOrganisationManageOthers(t *testing.T) {
	b := start(t)
	for _, key := range []string{b.other, b.editor} {
		for _, c := range [][3]string{
			{"POST", "/api/orgs", `{"name":"x"}`},
			{"PUT", "/api/orgs/second", `{"limits":null}`},
			{"DELETE", "/api/orgs/second", ""},
			{"POST", "/api/keys/org:second", `{"org_id":"second","quota_max":1}`},
			{"PUT", "/api/keys/org:second", `{"quota_max":1}`},
			{"DELETE", "/api/keys/org:second", ""},
		} {
			if got := b.Call(c[0], c[1], key, c[2]); got.Status != 403 {
				t.Errorf("%v: %d %s", c, got.Status, got.Body)
			}
		}
	}
	b.Call("POST", "/api/config/apply", b.other, `{"keys":[{"key_hash":"org:second","session":{"quota_max":1}}]}`).Want(400).Says("keys[0].key_hash: is that of the limits")
	b.Call("GET", "/api/orgs/second", b.other, "").Want(200)
	first := b.Text("select org_id from users where email = 'admin@localhost'")
	b.Call("GET", "/api/orgs/"+first, b.other, "").Want(404)
	b.Call("DELETE", "/api/orgs/"+first, b.admin, "").Want(409).Says("The first organisation cannot end")
}

func TestAnOrganisationEndsWithWhatItHas(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords, d.MasterKey = passwords(), secret.NewKey() })
	b.createAPI(b.other, "theirs", "/theirs")
	b.Call("POST", "/api/portal/policies", b.other, `{"id":"tp","name":"theirs","access_rights":{"theirs":{"api_id":"theirs","versions":["Default"]}}}`).Want(200)
	hash := b.Call("POST", "/api/keys", b.other, `{"apply_policies":["tp"]}`).Want(200).Text("key_hash")
	ada := b.Call("POST", "/api/portal/developers", b.other, `{"email":"ada@dev.example","password":"correct horse battery"}`).Want(200).Text("Message")
	b.Call("POST", "/api/portal/developers/"+ada+"/keys", b.other, `{"apply_policies":["tp"]}`).Want(200)
	b.Call("POST", "/api/portal/developers/"+ada+"/oauth-clients", b.other, `{"policy_id":"tp"}`)
	b.Call("POST", "/api/portal/requests", b.other, fmt.Sprintf(`{"by_user":%q,"for_plan":"tp","version":"v2"}`, ada)).Want(200)
	b.Call("POST", "/api/portal/webhooks", b.other, `{"name":"w","url":"https://hooks.example/","events":["*"]}`)
	b.Call("PUT", "/api/portal/configuration", b.other, `{"signup_fields":["Name"]}`).Want(200)
	b.Call("PUT", "/api/orgs/second", b.admin, `{"limits":{"quota_max":50}}`).Want(200)
	b.createAPI(b.admin, "ours", "/ours")
	before := b.content()

	b.Call("DELETE", "/api/orgs/second", b.admin, "").Want(409).Says("1 API, 1 policy", "1 developer", "force=true")
	b.Call("DELETE", "/api/orgs/second?force=true", b.admin, "").Want(200)
	for _, table := range []string{"apis", "policies", "keys", "developers", "users", "webhooks", "deliveries", "key_requests", "portal_objects", "oauth_clients", "catalogue_entries", "documents", "certificates"} {
		if n := b.Count("select count(*) from " + table + " where org_id = 'second'"); n != 0 {
			t.Errorf("%d rows of %s stay", n, table)
		}
	}
	if after := b.content(); after != before {
		t.Errorf("the first organisation changed from\n%s to\n%s", before, after)
	}
	wait.Until(t, "its keys leave the key store", func() bool { return b.keys.len() == 0 })
	b.Call("GET", "/api/keys/"+hash+"?hashed=true&org_id=second", b.admin, "").Want(404)
	b.Call("GET", "/api/portal/public/configuration?org_id=second", "", "").Want(404)
	bundle := b.Call("GET", "/api/gateway/bundle", gatewayToken, "").Want(200)
	if text := string(bundle.Body); strings.Contains(text, "theirs") || !strings.Contains(text, `"ours"`) {
		t.Errorf("gateways are sent %s", text)
	}
	if n := b.Count("select count(*) from config_history where org_id = 'second' and body is null"); n != 2 {
		t.Errorf("the history has %d deletions, want 2", n)
	}
}

// Whoever may act for an organisation makes objects of it; for others the member is refused.
func TestTheOrganisationOfAnObjectIsHonouredOrRefused(t *testing.T) {
	b := start(t)
	of := func(body, org string) string { return strings.Replace(body, "{", fmt.Sprintf(`{"org_id":%q,`, org), 1) }
	first := b.Text("select org_id from users where email = 'admin@localhost'")
	for _, key := range []string{b.admin, b.robot, gatewayToken} {
		b.Call("POST", "/api/apis", key, of(anAPI("a", "/a"), "second")).Want(200)
		b.Call("PUT", "/api/apis/a", key, of(anAPI("a", "/a2"), "second")).Want(200)
		b.Call("POST", "/api/policies", key, `{"org_id":"second","id":"p","name":"p","access_rights":{"a":{}}}`).Want(200)
		hash := b.Call("POST", "/api/keys", key, `{"org_id":"second","apply_policies":["p"]}`).Want(200).Says(`"org_id":"second"`).Text("key_hash")
		b.Call("GET", "/api/apis/a", b.other, "").Want(200).Says(`"org_id":"second"`, "/a2")
		b.Call("GET", "/api/keys/"+hash, b.other, "").Want(200)
		b.Call("GET", "/api/keys/"+hash+"?org_id=second", key, "").Want(200)
		b.Call("DELETE", "/api/keys/"+hash+"?org_id=second", key, "").Want(200)
		b.Call("DELETE", "/api/policies/p?org_id=second", key, "").Want(200)
		b.Call("DELETE", "/api/apis/a?org_id=second", key, "").Want(200)
		b.Call("POST", "/api/apis", key, of(anAPI("a", "/a"), "nowhere")).Want(400).Says("org_id: names no organisation")
		b.Call("GET", "/api/apis?org_id=nowhere", key, "").Want(404)
		b.Call("POST", "/api/apis?org_id=second", key, of(anAPI("a", "/a"), first)).Want(400).Says("org_id: must be second")
	}
	for key, foreign := range map[string]string{b.other: first, b.editor: "second", b.viewer: "second"} {
		for _, c := range [][3]string{
			{"POST", "/api/apis", of(anAPI("a", "/a"), foreign)},
			{"POST", "/api/apis", fmt.Sprintf(`{"api_definition":%s}`, of(anAPI("a", "/a"), foreign))},
			{"POST", "/api/apis/validate", of(anAPI("a", "/a"), foreign)},
			{"POST", "/api/portal/policies", of(`{"name":"p"}`, foreign)},
			{"POST", "/api/keys", of(`{"apply_policies":["p"]}`, foreign)},
			{"POST", "/api/keys/preview", of(`{"apply_policies":["p"]}`, foreign)},
			{"GET", "/api/apis?org_id=" + foreign, ""},
		} {
			if got := b.Call(c[0], c[1], key, c[2]); got.Status != 403 {
				t.Errorf("%v: %d %s", c, got.Status, got.Body)
			}
		}
	}
	b.Call("POST", "/api/apis", b.editor, of(anAPI("own", "/own"), first)).Want(200)
	batch := fmt.Sprintf(`{"apis":[%s],"policies":[{"id":"p","name":"p","org_id":"second"}],"keys":[{"generate":true,"session":{"org_id":"second","access_rights":{"own":{}}}}]}`, of(anAPI("b", "/b"), "second"))
	b.Call("POST", "/api/config/apply", b.editor, batch).Want(400).Says("apis[\\\"b\\\"].org_id: must be "+first, "policies[\\\"p\\\"].org_id", "keys[0].session.org_id")
	b.Call("POST", "/api/config/apply?org_id=second", b.admin, fmt.Sprintf(`{"apis":[%s]}`, of(anAPI("b", "/b"), "second"))).Want(200)
	b.Call("GET", "/api/apis/b", b.other, "").Want(200)
}

// A gateway's callers name objects by their ids alone.
func TestGatewaysFindObjectsOfEveryOrganisation(t *testing.T) {
	b := start(t)
	b.createAPI(b.other, "theirs", "/theirs")
	b.Call("POST", "/api/policies", b.other, `{"id":"tp","name":"tp","access_rights":{"theirs":{}}}`).Want(200)
	hash := b.Call("POST", "/api/keys/their-own-key-0001", b.other, `{"apply_policies":["tp"]}`).Want(200).Text("key_hash")
	b.Call("GET", "/api/apis/theirs", gatewayToken, "").Want(200)
	b.Call("PUT", "/api/apis/theirs", gatewayToken, anAPI("theirs", "/theirs2")).Want(200)
	b.Call("GET", "/api/apis/theirs", b.other, "").Want(200).Says("/theirs2", `"org_id":"second"`)
	b.Call("GET", "/api/policies/tp", gatewayToken, "").Want(200)
	for _, name := range []string{hash, "their-own-key-0001"} {
		b.Call("GET", "/api/keys/"+name, gatewayToken, "").Want(200).Says(`"org_id":"second"`)
	}
	b.Call("PUT", "/api/keys/"+hash, gatewayToken, `{"apply_policies":["tp"],"alias":"x"}`).Want(200).Says(`"org_id":"second"`)
	b.Call("DELETE", "/api/keys/"+hash, gatewayToken, "").Want(200)
	b.Call("DELETE", "/api/apis/theirs?force=1", gatewayToken, "").Want(200)
	for _, path := range []string{"/api/apis/theirs", "/api/keys/" + hash} {
		b.Call("GET", path, gatewayToken, "").Want(404)
	}
}

func TestUsersOfAnOrganisationAreManagedFromTheFirst(t *testing.T) {
	b := start(t)
	made := b.Call("POST", "/api/users?org_id=second", b.admin, `{"email_address":"eve@second.example","role":"editor"}`).Want(200)
	eve := made.Text("access_key")
	b.Call("GET", "/api/users/me", eve, "").Want(200).Says(`"org_id":"second"`)
	b.Call("GET", "/api/users/me?org_id=second", b.admin, "").Want(200).Says("admin@localhost")
	b.Call("GET", "/api/users?org_id=second", b.admin, "").Want(200).Says("eve@second.example").Hides("admin@localhost")
	b.Call("POST", "/api/users?org_id=second", b.admin, `{"email_address":"g@second.example","role":"gateway"}`).Want(403)
	b.Call("GET", "/api/portal/configuration?org_id=second", b.admin, "").Want(200).Says(`"org_id":"second"`)
}

func TestOneShapeOfErrorsAndOneNameForEach(t *testing.T) {
	b := start(t)
	for _, c := range [][3]string{
		{"GET", "/nowhere", ""},
		{"PATCH", "/api/apis", "{}"},
		{"POST", "/api/apis", "{"},
		{"GET", "/api/apis/none", ""},
		{"POST", "/api/apis", strings.Repeat("x", 5<<20)},
		{"OPTIONS", "/api/apis", ""},
		{"GET", "/api/orgs/none", ""},
	} {
		got := b.Call(c[0], c[1], b.admin, c[2])
		var said struct {
			Status, Message string
			Meta            *string
		}
		if err := json.Unmarshal(got.Body, &said); err != nil || said.Status != "Error" || said.Message == "" || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s %s", c[0], c[1], got.Status, got.Header.Get("Content-Type"), got.Body)
		}
	}
}
