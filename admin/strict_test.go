package admin

import (
	"strings"
	"testing"
)

const noEffect = "is not known to this release and has no effect"

func TestUnknownMembersAreWarnedOfInEveryAnswer(t *testing.T) {
	b := start(t)
	with := func(text, more string) string { return strings.Replace(text, "{", "{"+more+",", 1) }
	typo := `"proxy_typo":1,"enable_ip_whitelistng":true`
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/api/apis/validate", with(anAPI("a", "/a"), typo), `"Warnings":["enable_ip_whitelistng: ` + noEffect + `; did you mean enable_ip_whitelisting?"`},
		{"POST", "/api/apis", with(anAPI("a", "/a"), typo), `"enable_ip_whitelistng: ` + noEffect + `; did you mean enable_ip_whitelisting?"`},
		{"PUT", "/api/apis/a", `{"api_definition":` + strings.Replace(anAPI("a", "/a"), `"target_url"`, `"retries":3,"target_url"`, 1) + `}`, `"proxy.retries: ` + noEffect + `"`},
		{"POST", "/api/portal/policies", `{"id":"p","name":"p","quota_mx":5,"access_rights":{"a":{"limits":{}}}}`, `"Warnings":["access_rights[\"a\"].limits: ` + noEffect + `; did you mean limit?","quota_mx: ` + noEffect + `; did you mean quota_max?"]`},
		{"PUT", "/api/portal/policies/p", `{"name":"p","access_rights_array":[{"api_id":"a","limits":{}}]}`, `"Warnings":["access_rights_array[0].limits: ` + noEffect},
		{"POST", "/api/keys", `{"apply_policies":["p"],"expirs":5}`, `"warnings":["expirs: ` + noEffect + `; did you mean expires?"]`},
		{"POST", "/api/keys/key-of-a-caller-1", `{"access_rights_array":[{"api_id":"a","verions":[]}]}`, `"warnings":["access_rights[\"a\"].verions: ` + noEffect + `; did you mean versions?"]`},
		{"PUT", "/api/keys/key-of-a-caller-1", `{"apply_policies":["p"],"expirs":5}`, `"warnings":["expirs: `},
		{
			"POST", "/api/config/apply", `{"apis":[` + with(anAPI("a", "/a"), typo) + `],"policies":[{"id":"p","name":"p","quota_mx":5,"access_rights":{"a":{}}}],"keys":[{"generate":true,"session":{"apply_policies":["p"],"expirs":5}}]}`,
			`"policies[\"p\"].quota_mx: ` + noEffect + `; did you mean quota_max?","keys[0].session.expirs: ` + noEffect + `; did you mean expires?"]`,
		},
	} {
		b.Call(c.method, c.path, b.editor, c.body).Want(200).Says(c.want)
	}
	b.Call("GET", "/api/apis/a", b.viewer, "").Want(200).Says(`"enable_ip_whitelistng":true`, `"later":{"kept":1.50}`)
	r := b.Call("POST", "/api/apis", b.editor, `{"name":"c","use_keyless":true,"x-own":1,"do_not_track":true,"proxy":{"listen_path":"/c","target_url":"http://up.example"}}`).Want(200)
	if strings.Contains(string(r.Body), "Warnings") {
		t.Errorf("members that are harmless: %s", r.Body)
	}
}

func TestStrictCallsRefuseUnknownMembers(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"a":{}}}`).Want(200)
	b.Call("POST", "/api/keys/key-of-a-caller-1", b.editor, `{"apply_policies":["p"]}`).Want(200)
	plain := strings.Replace(anAPI("b", "/b"), `"later":{"kept":1.50},`, "", 1)
	for _, c := range []struct{ method, path, body, wrong string }{
		{"POST", "/api/apis/validate", plain, "prxy"},
		{"POST", "/api/apis", plain, "prxy"},
		{"PUT", "/api/apis/a", strings.NewReplacer(`"b"`, `"a"`, "/b", "/a").Replace(plain), "prxy"},
		{"POST", "/api/portal/policies", `{"id":"q","name":"q"}`, "rat"},
		{"PUT", "/api/portal/policies/p", `{"name":"p","access_rights":{"a":{}}}`, "rat"},
		{"POST", "/api/keys", `{"apply_policies":["p"]}`, "rat"},
		{"POST", "/api/keys/key-of-a-caller-2", `{"apply_policies":["p"]}`, "rat"},
		{"PUT", "/api/keys/key-of-a-caller-1", `{"apply_policies":["p"]}`, "rat"},
		{"POST", "/api/keys/preview", `{"apply_policies":["p"]}`, "rat"},
	} {
		wrong := strings.Replace(c.body, "{", `{"`+c.wrong+`":1,`, 1)
		b.Call(c.method, c.path+"?strict=true", b.editor, wrong).Want(400).Says(c.wrong + ": " + noEffect)
		b.Call(c.method, c.path, b.editor, strings.Replace(wrong, "{", `{"strict":true,`, 1)).Want(400).Says(c.wrong + ": " + noEffect)
		b.Call(c.method, c.path, b.editor, strings.Replace(c.body, "{", `{"strict":true,`, 1)).Want(200)
	}
	b.Call("POST", "/api/apis", b.editor, `{"api_definition":`+anAPI("c", "/c")+`,"strict":true}`).Want(400).Says("later: " + noEffect)
	r := b.Call("GET", "/api/apis/b", b.viewer, "").Want(200)
	if strings.Contains(string(r.Body), "strict") {
		t.Errorf("the option is stored: %s", r.Body)
	}
	b.Call("POST", "/api/config/apply", b.editor, `{"strict":true,"apis":[`+anAPI("d", "/d")+`],"policies":[{"id":"r","name":"r","rat":1}],"keys":[{"generate":true,"session":{"apply_policies":["p"],"rat":1}}]}`).
		Want(400).Says(`apis[\"d\"].later: `+noEffect, `policies[\"r\"].rat: `+noEffect, `keys[0].session.rat: `+noEffect)
	b.Call("GET", "/api/apis/d", b.viewer, "").Want(404)
}

func TestFeaturesThatDoNotExistAreRefusedByName(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	const check = `"custom_middleware":{"auth_check":{"name":"check","path":"check.js"}},`
	body := strings.Replace(anAPI("a", "/a"), "{", "{"+check, 1)
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/api/apis", strings.NewReplacer(`"a"`, `"b"`, "/a", "/b").Replace(body)},
		{"PUT", "/api/apis/a", body},
		{"POST", "/api/apis/validate", body},
		{"POST", "/api/config/apply", `{"apis":[` + body + `]}`},
	} {
		b.Call(c.method, c.path, b.editor, c.body).Want(400).Says("custom_middleware.auth_check: asks for a feature that this release does not have: authentication by a plugin; ", "use_standard_auth")
	}
	if r := b.Call("GET", "/api/apis/a", b.viewer, "").Want(200); strings.Contains(string(r.Body), "auth_check") {
		t.Errorf("stored: %s", r.Body)
	}
}

func TestABatchWarnsOfEntriesThatNeverCount(t *testing.T) {
	b := start(t)
	dead := strings.Replace(plainAPI("a", "/a/"), "{", `{"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","use_extended_paths":true,`+
		`"extended_paths":{"ignored":[{"path":"/open"}],"black_list":[{"path":"/open/admin"}]}}}},`, 1)
	const never = `never counts: `
	b.Call("POST", "/api/config/apply", b.editor, `{"strict":true,"apis":[`+dead+`]}`).Want(400).Says(`black_list[0]`, never)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+dead+`]}`).Want(200).Says(`"warnings":["apis[\"a\"].version_data`, never)
}
