package credentials_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
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
	ask := func(body string) *admintest.Answer {
		t.Helper()
		return b.Call("POST", "/api/portal/me/requests", session, `{"version":"v2",`+body+`}`)
	}
	id := func(policy string) string {
		t.Helper()
		ask(fmt.Sprintf(`"for_plan":%q`, policy)).Want(200)
		for _, key := range b.Call("GET", "/api/portal/me/keys", session, "").Want(200).Data() {
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
		ask(fmt.Sprintf(`"key_id":%q,"apply_policies":[%q]`, c.key, c.policy)).Want(400).Says(c.says)
	}
	ask(fmt.Sprintf(`"key_id":%q,"apply_policies":["silver"]`, key)).Want(200)
}

func TestADevelopersRequestSaysWhatApprovingItComesTo(t *testing.T) {
	b := start(t)
	gold := b.entry("gold", `"show":true,"short_description":"for all"`)
	b.entry("silver", "")
	b.developer("ada")
	session := b.login("ada")
	b.Call("POST", "/api/portal/me/requests", session, `{"version":"v2","for_plan":"silver","apply_policies":["gold"]}`).Want(400).Says("for_plan: must be one of apply_policies")
	b.Call("POST", "/api/portal/me/requests", session, `{"version":"v2","for_plan":"gold","apply_policies":["gold"]}`).Want(200)

	lies := fmt.Sprintf(`{"id":%q,"name":"Free plan","policy_id":"silver","api_id":"other"}`, gold)
	for _, member := range []string{`"catalogue_entry":` + lies, `"catalogues":[` + lies + `]`} {
		made := b.Call("POST", "/api/portal/me/requests", session, `{`+member+`}`).Want(200).Text("Message")
		shown := b.Call("GET", "/api/portal/requests/"+made, b.approver, "").Want(200).Says(`"policy_id":"gold"`, `"short_description":"for all"`)
		if text := string(shown.Body); strings.Contains(text, "Free plan") || strings.Contains(text, "silver") {
			t.Errorf("who decides reads %s", text)
		}
	}
}

func TestWhatIsSaidOfAClientCanBeKeptAndRunsNothing(t *testing.T) {
	b := start(t)
	b.entry("gold", `"show":true,"auth_type":"oauth"`)
	dev := b.developer("ada")
	ask := func(rest string) *admintest.Answer {
		t.Helper()
		return b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"version":"v2","by_user":%q,"for_plan":"gold",%s}`, dev, rest))
	}
	direct := func(rest string) *admintest.Answer {
		t.Helper()
		return b.Call("POST", "/api/portal/developers/"+dev+"/oauth-clients", b.approver, `{"policy_id":"gold",`+rest+`}`)
	}
	for _, uri := range []string{
		"javascript:alert(1)", "data:text/html,x", "//app.example", "/back", "https://", "https://a:b@app.example", "https://app.example/#x", `https://app.example/\u0000`, "app:/back",
		"https://app.example/" + strings.Repeat("x", 2000),
	} {
		ask(`"oauth_info":{"redirect_uri":"` + uri + `"}`).Want(400).Says("oauth_info.redirect_uri")
		direct(`"redirect_uri":"` + uri + `"`).Want(400).Says("redirect_uri")
	}
	ask(`"fields":{"oauth_app_description":"a\u0000b"}`).Want(400).Says("fields.oauth_app_description")
	direct(`"use_case":"a\u0000b"`).Want(400).Says("use_case")
	for _, uri := range []string{"https://app.example/back?a=b", "http://localhost:8080/", "com.example.app:/back", ""} {
		ask(`"oauth_info":{"redirect_uri":"` + uri + `"}`).Want(200)
	}
}

func TestDevelopersAreNotToldWhoDecided(t *testing.T) {
	b := start(t)
	b.entry("gold", "")
	dev := b.developer("ada")
	session := b.login("ada")
	hook := b.Call("POST", "/api/portal/me/webhooks", session, `{"name":"mine","url":"https://hooks.example/","events":["*"]}`).Want(201).Text("ID")
	b.approve(b.request(dev, "gold"))
	seen := 0
	for _, one := range b.Call("GET", "/api/portal/me/webhooks/"+hook+"/deliveries", session, "").Want(200).Data() {
		if one["event"] != "key_request_event.approved" {
			continue
		}
		seen++
		message := b.Call("GET", "/api/portal/me/deliveries/"+one["id"].(string), session, "").Want(200).Says("decided_at")
		if strings.Contains(string(message.Body), "approver@") {
			t.Errorf("the developer is told %s", message.Body)
		}
	}
	if seen != 1 {
		t.Fatalf("%d messages of the approval", seen)
	}
	b.Call("POST", "/api/portal/webhooks/"+hook+"/disable", b.approver, "").Want(200)
	if shown := b.Call("GET", "/api/portal/me/webhooks/"+hook, session, "").Want(200).Says("by an operator"); strings.Contains(string(shown.Body), "approver@") {
		t.Errorf("the developer is told %s", shown.Body)
	}
}
