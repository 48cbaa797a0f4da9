package requests_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/testenv/portaltest"
)

func TestADeveloperAsksForThemselvesAndForWhatIsOffered(t *testing.T) {
	b := start(t)
	dev, other := b.developer("ada"), b.developer("bob")
	session := b.login("ada")
	b.entry("gold", "")
	b.entry("silver", `"show":false`)
	b.policy("free", "")
	b.entry("free", `"show":true,"is_keyless":true`)
	b.policy("unlisted", "")
	b.configure(`"require_key_approval":true,"key_request_fields":["purpose"]`)
	const path = "/api/portal/requests"
	for name, c := range map[string]struct{ body, says string }{
		"hidden":         {`{"for_plan":"silver","version":"v2","fields":{"purpose":"x"}}`, "not offered"},
		"unlisted":       {`{"for_plan":"unlisted","version":"v2","fields":{"purpose":"x"}}`, "not offered"},
		"keyless":        {`{"for_plan":"free","version":"v2","fields":{"purpose":"x"}}`, "no key is needed"},
		"no field":       {`{"for_plan":"gold","version":"v2"}`, "fields: must have purpose"},
		"an empty field": {`{"for_plan":"gold","version":"v2","fields":{"purpose":""}}`, "fields: must have purpose"},
		"several":        {`{"apply_policies":["gold","free"],"version":"v2","fields":{"purpose":"x"}}`, "one policy at a time"},
	} {
		if r := b.call("POST", path, session, c.body); r.status != 400 || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s: %d %s, want %s", name, r.status, r.body, c.says)
		}
	}
	// Whoever they say they are, it is their own request.
	id := b.call("POST", path, session, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","fields":{"purpose":"x"},"org_id":"second","state":"approved"}`, other)).want(200).text("Message")
	b.call("GET", path+"/"+id, b.viewer, "").want(200).says(`"by_user":"`+dev+`"`, `"state":"pending"`, `"org_id":"`+b.org+`"`)
	own := b.call("GET", "/api/portal/me/requests", session, "").want(200)
	if list := own.data(); len(list) != 1 || list[0]["id"] != id {
		t.Errorf("own requests: %s", own.body)
	}
	theirs := b.request(other, "gold")
	b.call("GET", "/api/portal/me/requests/"+theirs, session, "").want(404)
	b.call("DELETE", "/api/portal/me/requests/"+theirs, session, "").want(404)
	b.call("DELETE", "/api/portal/me/requests/"+id, session, "").want(200)
	again := b.call("POST", "/api/portal/me/requests", session, `{"for_plan":"gold","version":"v2","fields":{"purpose":"x"}}`).want(200).text("Message")
	b.approve(again)
	b.call("DELETE", "/api/portal/me/requests/"+again, session, "").want(409)
	shown := b.call("GET", "/api/portal/me/requests/"+again, session, "").want(200).says(`"state":"approved"`)
	if strings.Contains(string(shown.body), "approver@example.com") {
		t.Errorf("a developer sees who decided: %s", shown.body)
	}
}

func TestWithoutApprovalADeveloperGetsTheCredentialAtOnce(t *testing.T) {
	b := start(t)
	b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.entry("silver", `"show":true,"auth_type":"basic"`)
	b.configure(`"require_key_approval":false`)
	r := b.call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`, "Idempotency-Key", "k").want(200)
	meta, _ := r.object()["Meta"].(map[string]any)
	key, _ := meta["RawKey"].(string)
	if key == "" || meta["Password"] != "" {
		t.Fatalf("answered %s", r.body)
	}
	b.session(key)
	b.call("GET", "/api/portal/me/requests/"+r.text("Message"), session, "").want(200).says(`"approved":true`)
	again := b.call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`, "Idempotency-Key", "k").want(409)
	if strings.Contains(string(again.body), key) || b.count("select count(*) from keys") != 1 {
		t.Errorf("a repeated call: %s", again.body)
	}
	user := b.call("POST", "/api/portal/requests", session, `{"for_plan":"silver","version":"v2"}`).want(200)
	if meta, _ := user.object()["Meta"].(map[string]any); meta["Password"] == "" {
		t.Errorf("answered %s", user.body)
	}
	// What operators write down waits for one of them all the same.
	id := b.request(b.developer("bob"), "gold")
	b.call("GET", "/api/portal/requests/"+id, b.viewer, "").want(200).says(`"approved":false`)
}

func TestRequestsAreMadeElsewhereWhereTheConfigurationSaysSo(t *testing.T) {
	b := start(t)
	b.developer("ada")
	b.entry("gold", "")
	b.configure(`"require_key_approval":true,"redirect_on_key_request":true,"redirect_to":"/contact"`)
	r := b.call("POST", "/api/portal/requests", b.login("ada"), `{"for_plan":"gold","version":"v2"}`).want(403).says("/contact")
	if r.header.Get("Location") != "/contact" || b.count("select count(*) from key_requests") != 0 {
		t.Errorf("Location %q", r.header.Get("Location"))
	}
}

func TestSeveralPoliciesAreForOneAuthType(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.entry("silver", "")
	b.policy("user", "")
	b.entry("user", `"show":true,"auth_type":"basic"`)
	b.configure(`"require_key_approval":true,"enable_multi_selection":true`)
	b.call("POST", "/api/portal/requests", session, `{"apply_policies":["gold","user"],"version":"v2"}`).want(400).says("auth_type")
	b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"apply_policies":["gold","user"],"version":"v2"}`, dev)).want(400).says("auth_type")
	b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"user","version":"v2","jwt_secret":%q}`, dev, strings.Repeat("s", 40))).want(400).says("jwt_secret")
	id := b.call("POST", "/api/portal/requests", session, `{"apply_policies":["gold","silver"],"version":"v2"}`).want(200).text("Message")
	key := b.approve(id)
	if s := b.session(key); fmt.Sprint(s.ApplyPolicies) != "[gold silver]" {
		t.Errorf("policies %v", s.ApplyPolicies)
	}
	b.call("GET", "/api/portal/developers/"+dev, b.viewer, "").want(200).says(`"gold":"`+hashOf(key)+`"`, `"silver":"`+hashOf(key)+`"`)
}

func TestOldRecordsNameAnEntryOfTheCatalogue(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	entry := b.entry("gold", "")
	for _, body := range []string{
		fmt.Sprintf(`{"by_user":%q,"for_plan":%q}`, dev, entry),
		fmt.Sprintf(`{"by_user":%q,"catalogue_entry":{"id":%q}}`, dev, entry),
		fmt.Sprintf(`{"by_user":%q,"catalogues":[{"policy_id":"gold"}]}`, dev),
		fmt.Sprintf(`{"by_user":%q,"for_plan":"gold"}`, dev),
	} {
		id := b.call("POST", "/api/portal/requests", b.approver, body).want(200).text("Message")
		if s := b.session(b.approve(id)); fmt.Sprint(s.ApplyPolicies) != "[gold]" {
			t.Errorf("%s: policies %v", body, s.ApplyPolicies)
		}
	}
	b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":%q,"version":"v2"}`, dev, entry)).want(400).says("for_plan: policy")
}

func TestADeveloperHasOnlySoManyRequestsWaiting(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.exec("insert into key_requests (id, org_id, state, developer_id, policies, body) select 'r' || n, $1, 'pending', $2, '{gold}', '{}' from generate_series(1, 95) n", b.org, dev)
	var made, refused atomic.Int64
	b.atOnce(20, func(int) {
		switch r, err := b.try("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`); {
		case err == nil && r.status == 200:
			made.Add(1)
		case err == nil && r.status == 409:
			refused.Add(1)
		}
	})
	if made.Load() != 5 || refused.Load() != 15 {
		t.Errorf("%d made, %d refused", made.Load(), refused.Load())
	}
}

func TestPoliciesOfAKeyChangeByARequest(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.entry("silver", "")
	key := b.approve(b.request(dev, "gold"))
	id := hashOf(key)
	more := b.call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"apply_policies":["silver"],"version":"v2"}`, id)).want(200).text("Message")
	r := b.call("PUT", "/api/portal/requests/approve/"+more, b.approver, "").want(200)
	if r.text("RawKey") != "" || r.text("Password") != "" {
		t.Errorf("a key that there is was shown: %s", r.body)
	}
	portaltest.Eventually(t, "the key has both policies", func() bool { return fmt.Sprint(b.session(key).ApplyPolicies) == "[gold silver]" })
	fewer := b.call("POST", "/api/portal/me/requests", session, `{"remove_policies":["gold"],"version":"v2"}`).want(200).text("Message")
	b.call("PUT", "/api/portal/requests/approve/"+fewer, b.approver, "").want(200)
	portaltest.Eventually(t, "the key has lost one", func() bool { return fmt.Sprint(b.session(key).ApplyPolicies) == "[silver]" })
	b.call("GET", "/api/portal/developers/"+dev, b.viewer, "").want(200).says(`"keys":{"`+id+`":["silver"]}`, `"subscriptions":{"silver":"`+id+`"}`)
	last := b.call("POST", "/api/portal/me/requests", session, `{"remove_policies":["silver"],"version":"v2"}`).want(200).text("Message")
	b.call("PUT", "/api/portal/requests/approve/"+last, b.approver, "").want(409).says("revoke it instead")
	b.call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"version":"v2"}`, id)).want(400).says("apply_policies")
	b.call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"remove_policies":["gold"],"version":"v2"}`, id)).want(400).says("does not have policy")
	b.developer("bob")
	b.call("POST", "/api/portal/me/requests", b.login("bob"), fmt.Sprintf(`{"key_id":%q,"apply_policies":["silver"],"version":"v2"}`, id)).want(400).says("key_id")
	b.call("DELETE", "/api/portal/me/keys/"+id, session, "").want(200)
	b.call("PUT", "/api/portal/requests/approve/"+last, b.approver, "").want(409).says("gone")
}

func TestADeveloperSeesRotatesAndRevokesTheirKeys(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	first := b.approve(b.request(dev, "gold"))
	second := b.approve(b.request(dev, "gold"))
	r := b.call("GET", "/api/portal/me/keys", session, "").want(200)
	list := r.data()
	if len(list) != 2 || list[0]["key_id"] != hashOf(first) || list[1]["key_id"] != hashOf(second) || strings.Contains(string(r.body), first) {
		t.Fatalf("keys %s", r.body)
	}
	r.says(`"state":"active"`, `{"id":"gold","name":"Policy gold"}`, `"quota_max":100`, `"quota_used":0`, `"quota_remaining":100`, `"rate":10`)

	path := "/api/portal/me/keys/" + hashOf(first)
	for _, body := range []string{`{"grace":"soon"}`, `{"grace":"-1h"}`, `{"grace":"90000h"}`, `{"graze":"1h"}`, ``} {
		b.call("POST", path+"/rotate", session, body).want(400)
	}
	rotated := b.call("POST", path+"/rotate", session, `{"grace":"1h"}`).want(200)
	successor := rotated.text("RawKey")
	if successor == "" || successor == first || rotated.text("key_id") != hashOf(first) {
		t.Errorf("rotated: %s", rotated.body)
	}
	if s := b.session(successor); s.SuccessorOf() != hashOf(first) {
		t.Errorf("the successor's session is %+v", s)
	}
	r = b.call("GET", "/api/portal/me/keys", session, "").want(200)
	if grace, _ := r.data()[0]["grace_until"].(string); grace == "" {
		t.Errorf("no grace in %s", r.body)
	}

	// The newer key is what the developer has the policy by, until it is gone.
	subscription := func() string {
		return b.text("select coalesce(max(key_hash), '') from developer_subscriptions where developer_id = $1 and policy_id = 'gold'", dev)
	}
	if got := subscription(); got != hashOf(second) {
		t.Errorf("subscription to %.12s", got)
	}
	b.call("DELETE", "/api/portal/me/keys/"+hashOf(second), session, "").want(200)
	if got := subscription(); got != hashOf(first) {
		t.Errorf("subscription to %.12s", got)
	}
	b.call("DELETE", path, session, "").want(200)
	b.call("DELETE", path, session, "").want(404)
	portaltest.Eventually(t, "no key is left", func() bool {
		left := 0
		for _, key := range []string{first, second, successor} {
			if _, err := b.keys.Get(t.Context(), hashOf(key)); err == nil {
				left++
			}
		}
		return left == 0
	})
	for _, event := range []string{"deleted", "created"} {
		if n := b.count("select count(*) from audit_log where object_kind = 'key' and action = $1", event); n != 2 {
			t.Errorf("%d keys %s in the audit log", n, event)
		}
	}
}

func TestAUserRotatesToAnotherPassword(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", `"show":true,"auth_type":"basic"`)
	r := b.call("PUT", "/api/portal/requests/approve/"+b.request(dev, "gold"), b.approver, "").want(200)
	path := "/api/portal/me/keys/" + hashOf(b.org+r.text("RawKey"))
	b.call("POST", path+"/rotate", session, `{"grace":"1h"}`).want(400).says("grace")
	again := b.call("POST", path+"/rotate", session, `{"grace":"0s"}`).want(200)
	if again.text("RawKey") != r.text("RawKey") || again.text("Password") == "" || again.text("Password") == r.text("Password") {
		t.Errorf("rotated: %s", again.body)
	}
	portaltest.Eventually(t, "the other password holds", func() bool {
		s := b.session(b.org + r.text("RawKey"))
		ok, err := keyOptions().Passwords.Verify(t.Context(), s.BasicAuth.Password, []byte(again.text("Password")))
		return err == nil && ok
	})
}

func TestOperatorsLookAfterDevelopersKeys(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	path := "/api/portal/developers/" + dev + "/keys"
	made := b.call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":{"team":"blue","developer_id":"forged"}}`).want(200)
	key, id := made.text("RawKey"), made.text("key_id")
	s := b.session(key)
	if id != hashOf(key) || string(s.MetaData["team"]) != `"blue"` || string(s.MetaData["developer_id"]) != `"`+dev+`"` {
		t.Errorf("made %s, meta %s", made.body, s.MetaData)
	}
	for fields, says := range map[string]string{
		manyFields(51):                           "fields: has 51 members; at most 50",
		`{"` + strings.Repeat("n", 129) + `":1}`: "fields: the name",
		`{"a\u0000b":1}`:                         "fields: the name",
		`{"":1}`:                                 "fields: the name",
		`{"team":"` + strings.Repeat("x", 4096) + `"}`:   `fields[\"team\"]: has 4098 bytes of JSON; at most 4096`,
		`{"team":[` + strings.Repeat("1,", 3000) + `1]}`: `fields[\"team\"]: has`,
	} {
		b.call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":`+fields+`}`).want(400).says(says)
	}
	b.call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":`+manyFields(50)+`}`).want(200)
	b.call("DELETE", path+"/"+b.call("GET", path, b.viewer, "").data()[1]["key_id"].(string), b.approver, "").want(200)
	b.call("PUT", path+"/"+id, b.approver, `{"apply_policies":["silver"]}`).want(200).says("Data updated")
	b.call("GET", path, b.viewer, "").want(200).says(`"id":"silver"`)
	b.call("POST", path+"/"+id+"/reset_quota", b.approver, "").want(200)
	for _, body := range []string{`{}`, `{"apply_policies":[]}`, `{"apply_policies":["lead"]}`, `{"apply_policies":["gold","gold"]}`, `{"apply_policies":["gold"],"fields":{"a":1}}`, `{"policies":["gold"]}`, `[`} {
		b.call("PUT", path+"/"+id, b.approver, body).want(400)
	}
	b.call("POST", path, b.approver, `{"apply_policies":["lead"]}`).want(400).says(`policy \"lead\" does not exist`)
	b.call("PUT", "/api/portal/developers/"+b.developer("bob")+"/keys/"+id, b.approver, `{"apply_policies":["gold"]}`).want(404)
	b.call("PUT", path+"/"+key, b.approver, `{"apply_policies":["gold"]}`).want(404) // keys are named by their hash
	b.call("DELETE", path+"/"+id, b.approver, "").want(200).says("Data deleted")
	b.call("GET", path, b.viewer, "").want(200).says(`"Data":[]`)
}

func TestADeletedDeveloperTakesTheirKeysAlong(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	keys := []string{b.approve(b.request(dev, "gold")), b.approve(b.request(dev, "silver"))}
	for _, key := range keys {
		b.session(key)
	}
	b.call("DELETE", "/api/portal/developers/"+dev, b.approver, "").want(200)
	portaltest.Eventually(t, "the gateways have no key of theirs", func() bool {
		for _, key := range keys {
			if _, err := b.keys.Get(t.Context(), hashOf(key)); err == nil {
				return false
			}
		}
		return true
	})
	if n := b.count("select count(*) from keys") + b.count("select count(*) from developer_keys"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestConcurrentChangesOfOneKeyAreAllHeeded(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	key := b.approve(b.request(dev, "gold"))
	var ids []string
	for i := range 8 {
		id := fmt.Sprintf("extra%d", i)
		b.policy(id, "")
		body := fmt.Sprintf(`{"by_user":%q,"key_id":%q,"apply_policies":[%q],"version":"v2"}`, dev, hashOf(key), id)
		ids = append(ids, b.call("POST", "/api/portal/requests", b.approver, body).want(200).text("Message"))
	}
	b.atOnce(len(ids), func(i int) {
		if r, err := b.try("PUT", "/api/portal/requests/approve/"+ids[i], b.approver, ""); err != nil || r.status != 200 {
			t.Errorf("%v %v", r, err)
		}
	})
	if n := b.count("select cardinality(policies) from keys"); n != 9 {
		t.Errorf("%d policies", n)
	}
	if n := b.count("select count(*) from developer_subscriptions where developer_id = $1", dev); n != 9 {
		t.Errorf("%d subscriptions", n)
	}
}

func TestAKeyEndsWhenItsPolicySaysSo(t *testing.T) {
	b := start(t)
	b.policy("short", `,"key_expires_in":60`)
	key := b.approve(b.request(b.developer("ada"), "short"))
	if left := time.Until(time.Unix(b.session(key).Expires, 0)); left < 50*time.Second || left > time.Minute {
		t.Errorf("%s left", left)
	}
}

func TestKeysThatAreStoredInClearAreNotShown(t *testing.T) {
	b := start(t, func(d *admin.Deps) {
		d.KeyOptions.Hasher = &credential.Hasher{Prefix: credential.DefaultPrefix, Algorithm: credential.None}
	})
	dev := b.developer("ada")
	session := b.login("ada")
	id := b.request(dev, "gold")
	key := b.approve(id)
	list := b.call("GET", "/api/portal/me/keys", session, "").want(200)
	shown := []*answer{
		list, b.call("GET", "/api/portal/requests/"+id, b.viewer, ""), b.call("GET", "/api/portal/developers/"+dev, b.viewer, ""),
	}
	for _, one := range shown {
		if one.want(200); strings.Contains(string(one.body), key) {
			t.Errorf("%s shows the key: %s", one.what, one.body)
		}
	}
	name := list.data()[0]["key_id"].(string)
	path := "/api/portal/me/keys/" + name
	next := b.call("POST", path+"/rotate", session, `{"grace":"1h"}`).want(200).text("RawKey")
	if next == "" || next == key {
		t.Errorf("rotated to %q", next)
	}
	plain := b.call("POST", "/api/keys", b.editor, `{"access_rights":{"orders":{"api_id":"orders"}}}`).want(200).text("key")
	b.call("DELETE", "/api/keys/"+plain, b.editor, "").want(200)
	app, secret := b.app(dev)
	token := b.ask("/oauth/token", "grant_type", "client_credentials", "client_id", app, "client_secret", secret).want(200).text("access_token")
	b.ask("/oauth/revoke", "client_id", app, "client_secret", secret, "token", token).want(200)
	b.call("POST", "/api/config/apply", b.editor, `{"keys":[{"generate":true,"session":{"access_rights":{"orders":{"api_id":"orders"}}}}]}`).want(200)
	log := b.call("GET", "/api/audit?page_size=500", b.admin, "").want(200).says(`"`+name+`"`, "token issued")
	for _, one := range []string{key, next, plain, token, credential.DefaultPrefix} {
		if strings.Contains(string(log.body), one) {
			t.Errorf("the audit log shows a key that begins with %.8s", one)
		}
		if strings.Contains(b.log.String(), one) {
			t.Errorf("the log shows a key that begins with %.8s", one)
		}
	}
	b.call("DELETE", "/api/portal/me/keys/"+key, session, "").want(404) // a key is not what names it
	b.call("DELETE", path, session, "").want(200)
}

func TestWebhooksAreToldOfRequestsAndKeysWithoutSecrets(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.call("POST", "/api/portal/webhooks", b.editor, `{"name":"all","url":"https://hooks.example/x","events":["*"]}`).want(200)
	id := b.request(dev, "gold")
	b.call("PUT", "/api/portal/requests/"+id, b.approver, `{"for_plan":"gold","version":"v2"}`).want(200)
	key := b.approve(id)
	b.call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"reason":"later"}`).want(200)
	b.call("DELETE", "/api/portal/requests/"+b.request(dev, "gold"), b.approver, "").want(200)
	path := "/api/portal/me/keys/" + hashOf(key)
	b.call("PUT", "/api/portal/developers/"+dev+"/keys/"+hashOf(key), b.approver, `{"apply_policies":["silver"]}`).want(200)
	b.call("POST", path+"/rotate", session, `{"grace":"0s"}`).want(200)
	b.call("DELETE", path, session, "").want(200)
	got := b.text("select string_agg(event || ' ' || n, ', ' order by event) from (select event, count(*) n from deliveries where kind = 'webhook' group by event) e")
	const want = "key_event.created 1, key_event.revoked 1, key_event.rotated 1, key_event.updated 1, " +
		"key_request_event.approved 1, key_request_event.rejected 2, key_request_event.submitted 3, key_request_event.updated 1"
	if got != want {
		t.Errorf("told of %s\nwant    %s", got, want)
	}
	if n := b.count("select count(*) from deliveries where kind = 'webhook' and position(convert_to($1, 'UTF8') in payload) > 0", key); n != 0 {
		t.Errorf("%d messages hold the key", n)
	}
}

func TestWhatIsNotedOfADevelopersKeyFollowsIt(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	path := "/api/portal/developers/" + dev
	older := hashOf(b.approve(b.request(dev, "gold")))
	newer := hashOf(b.approve(b.request(dev, "gold")))
	b.call("GET", path, b.viewer, "").want(200).says(`"subscriptions":{"gold":"` + newer + `"}`)
	b.call("PUT", "/api/keys/"+newer+"/policies?hashed=true", b.editor, `{"apply_policies":["silver"]}`).want(200)
	b.call("GET", path, b.viewer, "").want(200).says(`"gold":"`+older+`"`, `"silver":"`+newer+`"`, `"`+newer+`":["silver"]`)
	b.call("DELETE", "/api/keys/"+newer+"?hashed=true", b.editor, "").want(200)
	b.call("GET", path, b.viewer, "").want(200).says(`"subscriptions":{"gold":"` + older + `"}`)
}
