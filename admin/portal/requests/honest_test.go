package requests_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestAKeyGetsOnlyPoliciesOfItsOwnKind(t *testing.T) {
	b := start(t)
	for _, id := range []string{"users", "apps"} {
		b.policy(id, "")
	}
	b.entry("gold", "")
	b.entry("silver", "")
	b.entry("users", `"show":true,"auth_type":"basic"`)
	b.entry("apps", `"show":true,"auth_type":"oauth"`)
	b.configure(`"require_key_approval":false`)
	b.developer("ada")
	session := b.login("ada")
	ask := func(body string) *answer {
		t.Helper()
		return b.call("POST", "/api/portal/me/requests", session, `{"version":"v2",`+body+`}`)
	}
	id := func(policy string) string {
		t.Helper()
		ask(fmt.Sprintf(`"for_plan":%q`, policy)).want(200)
		for _, key := range b.call("GET", "/api/portal/me/keys", session, "").want(200).data() {
			if key["policies"].([]any)[0].(map[string]any)["id"] == policy {
				return key["key_id"].(string)
			}
		}
		t.Fatal("no key")
		return ""
	}
	key, user, client := id("gold"), id("users"), id("apps")
	for _, c := range []struct{ key, policy, says string }{
		{key, "users", "is for auth_type basic, and the key is of authToken"},
		{key, "apps", "is for auth_type oauth, and the key is of authToken"},
		{user, "silver", "is for auth_type authToken, and the key is of basic"},
		{client, "silver", "an OAuth client is for one policy"},
	} {
		ask(fmt.Sprintf(`"key_id":%q,"apply_policies":[%q]`, c.key, c.policy)).want(400).says(c.says)
	}
	ask(fmt.Sprintf(`"key_id":%q,"apply_policies":["silver"]`, key)).want(200)
}

func TestADevelopersRequestSaysWhatApprovingItComesTo(t *testing.T) {
	b := start(t)
	gold := b.entry("gold", `"show":true,"short_description":"for all"`)
	b.entry("silver", "")
	b.developer("ada")
	session := b.login("ada")
	b.call("POST", "/api/portal/me/requests", session, `{"version":"v2","for_plan":"silver","apply_policies":["gold"]}`).want(400).says("for_plan: must be one of apply_policies")
	b.call("POST", "/api/portal/me/requests", session, `{"version":"v2","for_plan":"gold","apply_policies":["gold"]}`).want(200)

	lies := fmt.Sprintf(`{"id":%q,"name":"Free plan","policy_id":"silver","api_id":"other"}`, gold)
	for _, member := range []string{`"catalogue_entry":` + lies, `"catalogues":[` + lies + `]`} {
		made := b.call("POST", "/api/portal/me/requests", session, `{`+member+`}`).want(200).text("Message")
		shown := b.call("GET", "/api/portal/requests/"+made, b.approver, "").want(200).says(`"policy_id":"gold"`, `"short_description":"for all"`)
		if text := string(shown.body); strings.Contains(text, "Free plan") || strings.Contains(text, "silver") {
			t.Errorf("who decides reads %s", text)
		}
	}
}

func TestWhatIsSaidOfAClientCanBeKeptAndRunsNothing(t *testing.T) {
	b := start(t)
	b.entry("gold", `"show":true,"auth_type":"oauth"`)
	dev := b.developer("ada")
	ask := func(rest string) *answer {
		t.Helper()
		return b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"version":"v2","by_user":%q,"for_plan":"gold",%s}`, dev, rest))
	}
	direct := func(rest string) *answer {
		t.Helper()
		return b.call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.approver, `{"policy_id":"gold",`+rest+`}`)
	}
	for _, uri := range []string{
		"javascript:alert(1)", "data:text/html,x", "//app.example", "/back", "https://", "https://a:b@app.example", "https://app.example/#x", `https://app.example/\u0000`, "app:/back",
		"https://app.example/" + strings.Repeat("x", 2000),
	} {
		ask(`"oauth_info":{"redirect_uri":"` + uri + `"}`).want(400).says("oauth_info.redirect_uri")
		direct(`"redirect_uri":"` + uri + `"`).want(400).says("redirect_uri")
	}
	ask(`"fields":{"oauth_app_description":"a\u0000b"}`).want(400).says("fields.oauth_app_description")
	direct(`"use_case":"a\u0000b"`).want(400).says("use_case")
	for _, uri := range []string{"https://app.example/back?a=b", "http://localhost:8080/", "com.example.app:/back", ""} {
		ask(`"oauth_info":{"redirect_uri":"` + uri + `"}`).want(200)
	}
}

func TestDevelopersAreNotToldWhoDecided(t *testing.T) {
	b := start(t)
	b.entry("gold", "")
	dev := b.developer("ada")
	session := b.login("ada")
	hook := b.call("POST", "/api/portal/me/webhooks", session, `{"name":"mine","url":"https://hooks.example/","events":["*"]}`).want(200).text("ID")
	b.approve(b.request(dev, "gold"))
	seen := 0
	for _, one := range b.call("GET", "/api/portal/me/webhooks/"+hook+"/deliveries", session, "").want(200).data() {
		if one["event"] != "key_request_event.approved" {
			continue
		}
		seen++
		message := b.call("GET", "/api/portal/me/deliveries/"+one["id"].(string), session, "").want(200).says("decided_at")
		if strings.Contains(string(message.body), "approver@") {
			t.Errorf("the developer is told %s", message.body)
		}
	}
	if seen != 1 {
		t.Fatalf("%d messages of the approval", seen)
	}
	b.call("POST", "/api/portal/webhooks/"+hook+"/disable", b.approver, "").want(200)
	if shown := b.call("GET", "/api/portal/me/webhooks/"+hook, session, "").want(200).says("by an operator"); strings.Contains(string(shown.body), "approver@") {
		t.Errorf("the developer is told %s", shown.body)
	}
}
