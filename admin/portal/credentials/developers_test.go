package credentials_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
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
		if r := b.Call("POST", path, session, c.body); r.Status != 400 || !strings.Contains(string(r.Body), c.says) {
			t.Errorf("%s: %d %s, want %s", name, r.Status, r.Body, c.says)
		}
	}
	// Whoever they say they are, it is their own request.
	id := b.Call("POST", path, session, fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","fields":{"purpose":"x"},"org_id":"second","state":"approved"}`, other)).Want(200).Text("Message")
	b.Call("GET", path+"/"+id, b.viewer, "").Want(200).Says(`"by_user":"`+dev+`"`, `"state":"pending"`, `"org_id":"`+b.org+`"`)
	own := b.Call("GET", "/api/portal/me/requests", session, "").Want(200)
	if list := own.Data(); len(list) != 1 || list[0]["id"] != id {
		t.Errorf("own requests: %s", own.Body)
	}
	theirs := b.request(other, "gold")
	b.Call("GET", "/api/portal/me/requests/"+theirs, session, "").Want(404)
	b.Call("DELETE", "/api/portal/me/requests/"+theirs, session, "").Want(404)
	b.Call("DELETE", "/api/portal/me/requests/"+id, session, "").Want(200)
	again := b.Call("POST", "/api/portal/me/requests", session, `{"for_plan":"gold","version":"v2","fields":{"purpose":"x"}}`).Want(200).Text("Message")
	b.approve(again)
	b.Call("DELETE", "/api/portal/me/requests/"+again, session, "").Want(409)
	shown := b.Call("GET", "/api/portal/me/requests/"+again, session, "").Want(200).Says(`"state":"approved"`)
	if strings.Contains(string(shown.Body), "approver@example.com") {
		t.Errorf("a developer sees who decided: %s", shown.Body)
	}
}

func TestWithoutApprovalADeveloperGetsTheCredentialAtOnce(t *testing.T) {
	b := start(t)
	b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.entry("silver", `"show":true,"auth_type":"basic"`)
	b.configure(`"require_key_approval":false`)
	r := b.Call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`, "Idempotency-Key", "k").Want(200)
	meta, _ := r.Object()["Meta"].(map[string]any)
	key, _ := meta["RawKey"].(string)
	if key == "" || meta["Password"] != "" {
		t.Fatalf("answered %s", r.Body)
	}
	b.session(key)
	b.Call("GET", "/api/portal/me/requests/"+r.Text("Message"), session, "").Want(200).Says(`"approved":true`)
	again := b.Call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`, "Idempotency-Key", "k").Want(409)
	if strings.Contains(string(again.Body), key) || b.Count("select count(*) from keys") != 1 {
		t.Errorf("a repeated call: %s", again.Body)
	}
	user := b.Call("POST", "/api/portal/requests", session, `{"for_plan":"silver","version":"v2"}`).Want(200)
	if meta, _ := user.Object()["Meta"].(map[string]any); meta["Password"] == "" {
		t.Errorf("answered %s", user.Body)
	}
	// What operators write down waits for one of them all the same.
	id := b.request(b.developer("bob"), "gold")
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(`"approved":false`)
}

func TestRequestsAreMadeElsewhereWhereTheConfigurationSaysSo(t *testing.T) {
	b := start(t)
	b.developer("ada")
	b.entry("gold", "")
	b.configure(`"require_key_approval":true,"redirect_on_key_request":true,"redirect_to":"/contact"`)
	session := b.login("ada")
	r := b.Call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`).Want(403).Says("/contact")
	if r.Header.Get("Location") != "/contact" || b.Count("select count(*) from key_requests") != 0 {
		t.Errorf("Location %q", r.Header.Get("Location"))
	}
	b.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	browser := b.Call("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`, "Accept", "text/html,application/xhtml+xml").Want(303)
	if browser.Header.Get("Location") != "/contact" || b.Count("select count(*) from key_requests") != 0 {
		t.Errorf("a browser: Location %q", browser.Header.Get("Location"))
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
	b.Call("POST", "/api/portal/requests", session, `{"apply_policies":["gold","user"],"version":"v2"}`).Want(400).Says("auth_type")
	b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"apply_policies":["gold","user"],"version":"v2"}`, dev)).Want(400).Says("auth_type")
	b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":"user","version":"v2","jwt_secret":%q}`, dev, strings.Repeat("s", 40))).Want(400).Says("jwt_secret")
	id := b.Call("POST", "/api/portal/requests", session, `{"apply_policies":["gold","silver"],"version":"v2"}`).Want(200).Text("Message")
	key := b.approve(id)
	if s := b.session(key); fmt.Sprint(s.ApplyPolicies) != "[gold silver]" {
		t.Errorf("policies %v", s.ApplyPolicies)
	}
	b.Call("GET", "/api/portal/developers/"+dev, b.viewer, "").Want(200).Says(`"gold":"`+hashOf(key)+`"`, `"silver":"`+hashOf(key)+`"`)
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
		id := b.Call("POST", "/api/portal/requests", b.approver, body).Want(200).Text("Message")
		if s := b.session(b.approve(id)); fmt.Sprint(s.ApplyPolicies) != "[gold]" {
			t.Errorf("%s: policies %v", body, s.ApplyPolicies)
		}
	}
	b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":%q,"version":"v2"}`, dev, entry)).Want(400).Says("for_plan: policy")
}

func TestADeveloperHasOnlySoManyRequestsWaiting(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", "")
	b.Exec("insert into key_requests (id, org_id, state, developer_id, policies, body) select 'r' || n, $1, 'pending', $2, '{gold}', '{}' from generate_series(1, 95) n", b.org, dev)
	var made, refused atomic.Int64
	b.atOnce(20, func(int) {
		switch r, err := b.Try("POST", "/api/portal/requests", session, `{"for_plan":"gold","version":"v2"}`); {
		case err == nil && r.Status == 200:
			made.Add(1)
		case err == nil && r.Status == 409:
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
	more := b.Call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"apply_policies":["silver"],"version":"v2"}`, id)).Want(200).Text("Message")
	r := b.Call("PUT", "/api/portal/requests/approve/"+more, b.approver, "").Want(200)
	if r.Text("RawKey") != "" || r.Text("Password") != "" {
		t.Errorf("a key that there is was shown: %s", r.Body)
	}
	wait.Until(t, "the key has both policies", func() bool { return fmt.Sprint(b.session(key).ApplyPolicies) == "[gold silver]" })
	fewer := b.Call("POST", "/api/portal/me/requests", session, `{"remove_policies":["gold"],"version":"v2"}`).Want(200).Text("Message")
	b.Call("PUT", "/api/portal/requests/approve/"+fewer, b.approver, "").Want(200)
	wait.Until(t, "the key has lost one", func() bool { return fmt.Sprint(b.session(key).ApplyPolicies) == "[silver]" })
	b.Call("GET", "/api/portal/developers/"+dev, b.viewer, "").Want(200).Says(`"keys":{"`+id+`":["silver"]}`, `"subscriptions":{"silver":"`+id+`"}`)
	last := b.Call("POST", "/api/portal/me/requests", session, `{"remove_policies":["silver"],"version":"v2"}`).Want(200).Text("Message")
	b.Call("PUT", "/api/portal/requests/approve/"+last, b.approver, "").Want(409).Says("revoke it instead")
	b.Call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"version":"v2"}`, id)).Want(400).Says("apply_policies")
	b.Call("POST", "/api/portal/me/requests", session, fmt.Sprintf(`{"key_id":%q,"remove_policies":["gold"],"version":"v2"}`, id)).Want(400).Says("does not have policy")
	b.developer("bob")
	b.Call("POST", "/api/portal/me/requests", b.login("bob"), fmt.Sprintf(`{"key_id":%q,"apply_policies":["silver"],"version":"v2"}`, id)).Want(400).Says("key_id")
	b.Call("DELETE", "/api/portal/me/keys/"+id, session, "").Want(200)
	b.Call("PUT", "/api/portal/requests/approve/"+last, b.approver, "").Want(409).Says("gone")
}

func TestADeveloperSeesRotatesAndRevokesTheirKeys(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	first := b.approve(b.request(dev, "gold"))
	second := b.approve(b.request(dev, "gold"))
	r := b.Call("GET", "/api/portal/me/keys", session, "").Want(200)
	list := r.Data()
	if len(list) != 2 || list[0]["key_id"] != hashOf(first) || list[1]["key_id"] != hashOf(second) || strings.Contains(string(r.Body), first) {
		t.Fatalf("keys %s", r.Body)
	}
	r.Says(`"state":"active"`, `{"id":"gold","name":"Policy gold"}`, `"quota_max":100`, `"quota_used":0`, `"quota_remaining":100`, `"rate":10`)

	path := "/api/portal/me/keys/" + hashOf(first)
	for _, body := range []string{`{"grace":"soon"}`, `{"grace":"-1h"}`, `{"grace":"90000h"}`, `{"graze":"1h"}`, ``} {
		b.Call("POST", path+"/rotate", session, body).Want(400)
	}
	rotated := b.Call("POST", path+"/rotate", session, `{"grace":"1h"}`).Want(200)
	successor := rotated.Text("RawKey")
	if successor == "" || successor == first || rotated.Text("key_id") != hashOf(first) {
		t.Errorf("rotated: %s", rotated.Body)
	}
	if s := b.session(successor); s.SuccessorOf() != hashOf(first) {
		t.Errorf("the successor's session is %+v", s)
	}
	r = b.Call("GET", "/api/portal/me/keys", session, "").Want(200)
	if grace, _ := r.Data()[0]["grace_until"].(string); grace == "" {
		t.Errorf("no grace in %s", r.Body)
	}

	// The newer key is what the developer has the policy by, until it is gone.
	subscription := func() string {
		return b.Text("select coalesce(max(key_hash), '') from developer_subscriptions where developer_id = $1 and policy_id = 'gold'", dev)
	}
	if got := subscription(); got != hashOf(second) {
		t.Errorf("subscription to %.12s", got)
	}
	b.Call("DELETE", "/api/portal/me/keys/"+hashOf(second), session, "").Want(200)
	if got := subscription(); got != hashOf(first) {
		t.Errorf("subscription to %.12s", got)
	}
	b.Call("DELETE", path, session, "").Want(200)
	b.Call("DELETE", path, session, "").Want(404)
	wait.Until(t, "no key is left", func() bool {
		left := 0
		for _, key := range []string{first, second, successor} {
			if _, err := b.keys.Get(t.Context(), hashOf(key)); err == nil {
				left++
			}
		}
		return left == 0
	})
	for _, event := range []string{"deleted", "created"} {
		if n := b.Count("select count(*) from audit_log where object_kind = 'key' and action = $1", event); n != 2 {
			t.Errorf("%d keys %s in the audit log", n, event)
		}
	}
}

func TestAUserRotatesToAnotherPassword(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.entry("gold", `"show":true,"auth_type":"basic"`)
	r := b.Call("PUT", "/api/portal/requests/approve/"+b.request(dev, "gold"), b.approver, "").Want(200)
	path := "/api/portal/me/keys/" + hashOf(b.org+r.Text("RawKey"))
	b.Call("POST", path+"/rotate", session, `{"grace":"1h"}`).Want(400).Says("grace")
	again := b.Call("POST", path+"/rotate", session, `{"grace":"0s"}`).Want(200)
	if again.Text("RawKey") != r.Text("RawKey") || again.Text("Password") == "" || again.Text("Password") == r.Text("Password") {
		t.Errorf("rotated: %s", again.Body)
	}
	wait.Until(t, "the other password holds", func() bool {
		s := b.session(b.org + r.Text("RawKey"))
		ok, err := keyOptions().Passwords.Verify(t.Context(), s.BasicAuth.Password, []byte(again.Text("Password")))
		return err == nil && ok
	})
}

func TestOperatorsLookAfterDevelopersKeys(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	path := "/api/portal/developers/" + dev + "/keys"
	made := b.Call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":{"team":"blue","developer_id":"forged"}}`).Want(200)
	key, id := made.Text("RawKey"), made.Text("key_id")
	s := b.session(key)
	if id != hashOf(key) || string(s.MetaData["team"]) != `"blue"` || string(s.MetaData["developer_id"]) != `"`+dev+`"` {
		t.Errorf("made %s, meta %s", made.Body, s.MetaData)
	}
	for fields, says := range map[string]string{
		manyFields(51):                           "fields: has 51 members; at most 50",
		`{"` + strings.Repeat("n", 129) + `":1}`: "fields: the name",
		`{"a\u0000b":1}`:                         "fields: the name",
		`{"":1}`:                                 "fields: the name",
		`{"team":"` + strings.Repeat("x", 4096) + `"}`:   `fields[\"team\"]: has 4098 bytes of JSON; at most 4096`,
		`{"team":[` + strings.Repeat("1,", 3000) + `1]}`: `fields[\"team\"]: has`,
	} {
		b.Call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":`+fields+`}`).Want(400).Says(says)
	}
	b.Call("POST", path, b.approver, `{"apply_policies":["gold"],"fields":`+manyFields(50)+`}`).Want(200)
	b.Call("DELETE", path+"/"+b.Call("GET", path, b.viewer, "").Data()[1]["key_id"].(string), b.approver, "").Want(200)
	b.Call("PUT", path+"/"+id, b.approver, `{"apply_policies":["silver"]}`).Want(200).Says("Data updated")
	b.Call("GET", path, b.viewer, "").Want(200).Says(`"id":"silver"`)
	b.Call("POST", path+"/"+id+"/reset_quota", b.approver, "").Want(200)
	for _, body := range []string{`{}`, `{"apply_policies":[]}`, `{"apply_policies":["lead"]}`, `{"apply_policies":["gold","gold"]}`, `{"apply_policies":["gold"],"fields":{"a":1}}`, `{"policies":["gold"]}`, `[`} {
		b.Call("PUT", path+"/"+id, b.approver, body).Want(400)
	}
	b.Call("POST", path, b.approver, `{"apply_policies":["lead"]}`).Want(400).Says(`policy \"lead\" does not exist`)
	b.Call("PUT", "/api/portal/developers/"+b.developer("bob")+"/keys/"+id, b.approver, `{"apply_policies":["gold"]}`).Want(404)
	b.Call("PUT", path+"/"+key, b.approver, `{"apply_policies":["gold"]}`).Want(404) // keys are named by their hash
	b.Call("DELETE", path+"/"+id, b.approver, "").Want(200).Says("Data deleted")
	b.Call("GET", path, b.viewer, "").Want(200).Says(`"Data":[]`)
}

func TestADeletedDeveloperTakesTheirKeysAlong(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	keys := []string{b.approve(b.request(dev, "gold")), b.approve(b.request(dev, "silver"))}
	for _, key := range keys {
		b.session(key)
	}
	b.Call("DELETE", "/api/portal/developers/"+dev, b.approver, "").Want(200)
	wait.Until(t, "the gateways have no key of theirs", func() bool {
		for _, key := range keys {
			if _, err := b.keys.Get(t.Context(), hashOf(key)); err == nil {
				return false
			}
		}
		return true
	})
	if n := b.Count("select count(*) from keys") + b.Count("select count(*) from developer_keys"); n != 0 {
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
		ids = append(ids, b.Call("POST", "/api/portal/requests", b.approver, body).Want(200).Text("Message"))
	}
	b.atOnce(len(ids), func(i int) {
		if r, err := b.Try("PUT", "/api/portal/requests/approve/"+ids[i], b.approver, ""); err != nil || r.Status != 200 {
			t.Errorf("%v %v", r, err)
		}
	})
	if n := b.Count("select cardinality(policies) from keys"); n != 9 {
		t.Errorf("%d policies", n)
	}
	if n := b.Count("select count(*) from developer_subscriptions where developer_id = $1", dev); n != 9 {
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
	list := b.Call("GET", "/api/portal/me/keys", session, "").Want(200)
	shown := []*admintest.Answer{
		list, b.Call("GET", "/api/portal/requests/"+id, b.viewer, ""), b.Call("GET", "/api/portal/developers/"+dev, b.viewer, ""),
	}
	for _, one := range shown {
		if one.Want(200); strings.Contains(string(one.Body), key) {
			t.Errorf("%s shows the key: %s", one.What, one.Body)
		}
	}
	name := list.Data()[0]["key_id"].(string)
	path := "/api/portal/me/keys/" + name
	next := b.Call("POST", path+"/rotate", session, `{"grace":"1h"}`).Want(200).Text("RawKey")
	if next == "" || next == key {
		t.Errorf("rotated to %q", next)
	}
	plain := b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"orders":{"api_id":"orders"}}}`).Want(200).Text("key")
	b.Call("DELETE", "/api/keys/"+plain, b.editor, "").Want(200)
	app, secret := b.app(dev)
	token := b.postForm("/oauth/token", "grant_type", "client_credentials", "client_id", app, "client_secret", secret).Want(200).Text("access_token")
	b.postForm("/oauth/revoke", "client_id", app, "client_secret", secret, "token", token).Want(200)
	b.Call("POST", "/api/config/apply", b.editor, `{"keys":[{"generate":true,"session":{"access_rights":{"orders":{"api_id":"orders"}}}}]}`).Want(200)
	log := b.Call("GET", "/api/audit?page_size=500", b.admin, "").Want(200).Says(`"`+name+`"`, "token issued")
	for _, one := range []string{key, next, plain, token, credential.DefaultPrefix} {
		if strings.Contains(string(log.Body), one) {
			t.Errorf("the audit log shows a key that begins with %.8s", one)
		}
		if strings.Contains(b.log.String(), one) {
			t.Errorf("the log shows a key that begins with %.8s", one)
		}
	}
	b.Call("DELETE", "/api/portal/me/keys/"+key, session, "").Want(404) // a key is not what names it
	b.Call("DELETE", path, session, "").Want(200)
}

func TestWebhooksAreToldOfRequestsAndKeysWithoutSecrets(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	b.Call("POST", "/api/portal/webhooks", b.editor, `{"name":"all","url":"https://hooks.example/x","events":["*"]}`).Want(201)
	id := b.request(dev, "gold")
	b.Call("PUT", "/api/portal/requests/"+id, b.approver, `{"for_plan":"gold","version":"v2"}`).Want(200)
	key := b.approve(id)
	b.Call("PUT", "/api/portal/requests/reject/"+b.request(dev, "gold"), b.approver, `{"reason":"later"}`).Want(200)
	b.Call("DELETE", "/api/portal/requests/"+b.request(dev, "gold"), b.approver, "").Want(200)
	path := "/api/portal/me/keys/" + hashOf(key)
	b.Call("PUT", "/api/portal/developers/"+dev+"/keys/"+hashOf(key), b.approver, `{"apply_policies":["silver"]}`).Want(200)
	b.Call("POST", path+"/rotate", session, `{"grace":"0s"}`).Want(200)
	b.Call("DELETE", path, session, "").Want(200)
	got := b.Text("select string_agg(event || ' ' || n, ', ' order by event) from (select event, count(*) n from deliveries where kind = 'webhook' group by event) e")
	const want = "key_event.created 1, key_event.revoked 1, key_event.rotated 1, key_event.updated 1, " +
		"key_request_event.approved 1, key_request_event.rejected 2, key_request_event.submitted 3, key_request_event.updated 1"
	if got != want {
		t.Errorf("told of %s\nwant    %s", got, want)
	}
	if n := b.Count("select count(*) from deliveries where kind = 'webhook' and position(convert_to($1, 'UTF8') in payload) > 0", key); n != 0 {
		t.Errorf("%d messages hold the key", n)
	}
}

func TestWhatIsNotedOfADevelopersKeyFollowsIt(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	path := "/api/portal/developers/" + dev
	older := hashOf(b.approve(b.request(dev, "gold")))
	newer := hashOf(b.approve(b.request(dev, "gold")))
	b.Call("GET", path, b.viewer, "").Want(200).Says(`"subscriptions":{"gold":"` + newer + `"}`)
	b.Call("PUT", "/api/keys/"+newer+"/policies?hashed=true", b.editor, `{"apply_policies":["silver"]}`).Want(200)
	b.Call("GET", path, b.viewer, "").Want(200).Says(`"gold":"`+older+`"`, `"silver":"`+newer+`"`, `"`+newer+`":["silver"]`)
	b.Call("DELETE", "/api/keys/"+newer+"?hashed=true", b.editor, "").Want(200)
	b.Call("GET", path, b.viewer, "").Want(200).Says(`"subscriptions":{"gold":"` + older + `"}`)
}
