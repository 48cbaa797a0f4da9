package admin

import (
	"fmt"
	"strings"
	"testing"
)

const (
	aGraph = `{"api_id":"g","name":"g","proxy":{"listen_path":"/g","target_url":"http://up.example"},"graphql":{"enabled":true,"execution_mode":"proxyOnly",
		"schema":"type Query { country: Country pets: [Pet] } type Country { name: String code: ID } interface Pet { name: String } enum Color { RED }"}}`
	withVersions = `{"api_id":"v","name":"v","proxy":{"listen_path":"/v","target_url":"http://up.example"},
		"definition":{"location":"header","key":"X-Version"},"version_data":{"versions":{"v1":{"name":"v1"},"v2":{"name":"v2"}}}}`
)

// referring starts an admin with a plain API, a GraphQL API and one with versions.
func referring(t *testing.T) *bench {
	b := withAPI(t)
	for _, api := range []string{aGraph, withVersions} {
		b.Call("POST", "/api/apis", b.editor, api).Want(200)
	}
	return b
}

// TestRightsNameWhatExists: a rule about a field that no API has would protect nothing.
func TestRightsNameWhatExists(t *testing.T) {
	b := referring(t)
	for i, c := range []struct{ rights, says string }{
		{`{"gone":{}}`, `access_rights[\"gone\"]: names an API that does not exist`},
		{`{"v":{"versions":["v1","v3"]}}`, `access_rights[\"v\"].versions[1]: names the version \"v3\", which the API does not have; it has v1, v2`},
		{`{"g":{"restricted_types":[{"name":"Contry","fields":["name"]}]}}`, `access_rights[\"g\"].restricted_types[0].name: names the type \"Contry\", which the API's schema does not have; did you mean Country?`},
		{`{"g":{"restricted_types":[{"name":"Country","fields":["name","cod"]}]}}`, `access_rights[\"g\"].restricted_types[0].fields[1]: names the field \"cod\", which type Country of the API's schema does not have; did you mean code?`},
		{`{"g":{"allowed_types":[{"name":"Color","fields":["*"]}]}}`, `access_rights[\"g\"].allowed_types[0].name: names \"Color\", which is neither an object type nor an interface`},
		{`{"g":{"field_access_rights":[{"type_name":"Query","field_name":"county","limits":{"max_query_depth":2}}]}}`, `access_rights[\"g\"].field_access_rights[0].field_name: names the field \"county\"`},
		{`{"a":{"restricted_types":[{"name":"Country","fields":["name"]}]}}`, `access_rights[\"a\"]: has rules about GraphQL fields`},
		{`{"a":{"limit":{"rate":-5,"per":1}}}`, `access_rights[\"a\"].limit.rate: must not be negative`},
		{`{"a":{"endpoints":[{"path":"/x","methods":[{"name":"GET","limit":{"rate":-3,"per":1}}]}]}}`, `access_rights[\"a\"].endpoints[0].methods[0].limit.rate: must not be negative`},
	} {
		b.Call("POST", "/api/keys", b.editor, `{"access_rights":`+c.rights+`}`).Want(400).Says(c.says)
		policy := fmt.Sprintf(`{"id":"p%d","name":"p%d","access_rights":%s}`, i, i, c.rights)
		b.Call("POST", "/api/portal/policies", b.editor, policy).Want(400).Says(c.says)
		b.Call("POST", "/api/config/apply", b.editor, `{"policies":[`+policy+`]}`).Want(400).Says(fmt.Sprintf(`policies[\"p%d\"].access_rights[`, i))
	}
	const good = `{"a":{"versions":["any"],"limit":{"rate":-1}},"v":{"versions":["v2"]},"g":{"versions":["Default"],
		"allowed_types":[{"name":"Query","fields":["*"]},{"name":"Country","fields":["name","__typename"]},{"name":"Pet","fields":["name"]}],
		"field_access_rights":[{"type_name":"Query","field_name":"country","limits":{"max_query_depth":2}}]}}`
	b.Call("POST", "/api/keys", b.editor, `{"access_rights":`+good+`}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"good","name":"good","access_rights":`+good+`}`).Want(200)
}

func TestNumbersThatLimitNothingAreRefused(t *testing.T) {
	b := withAPI(t)
	for body, says := range map[string]string{
		`{"rate":-5,"per":1}`: "rate: must not be negative", `{"rate":5,"per":-60}`: "per: must not be negative", `{"quota_max":-2}`: "quota_max: must not be negative",
	} {
		rights := strings.Replace(body, "{", `{"access_rights":{"a":{}},`, 1)
		b.Call("POST", "/api/keys", b.editor, rights).Want(400).Says(says)
		b.Call("POST", "/api/portal/policies", b.editor, strings.Replace(rights, "{", `{"id":"p","name":"p",`, 1)).Want(400).Says(says)
	}
	api := strings.Replace(anAPI("a", "/a"), "{", `{"global_rate_limit":{"rate":-5,"per":1},`, 1)
	b.Call("PUT", "/api/apis/a", b.editor, api).Want(400).Says("global_rate_limit.rate: must not be negative")
	b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{}},"rate":-1,"per":-1,"quota_max":-1}`).Want(200)
}

func TestAPolicyWithLimitsPerAPIHasNoOtherPartition(t *testing.T) {
	b := withAPI(t)
	const policy = `{"id":"p","name":"p","access_rights":{"a":{}},"partitions":{"per_api":true,"quota":true}}`
	const says = "partitions.quota: must be false beside per_api"
	b.Call("POST", "/api/portal/policies", b.editor, policy).Want(400).Says(says)
	b.Call("POST", "/api/config/apply", b.editor, `{"policies":[`+policy+`]}`).Want(400).Says(says)
	b.Call("POST", "/api/portal/policies", b.editor, strings.Replace(policy, `,"quota":true`, "", 1)).Want(200)
}

func TestKeysNamePoliciesThatExist(t *testing.T) {
	b := withAPI(t)
	policy := func(id string) string { return fmt.Sprintf(`{"id":%q,"name":%q,"access_rights":{"a":{}}}`, id, id) }
	b.Call("POST", "/api/portal/policies", b.editor, policy("here")).Want(200)
	b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["here","gone"]}`).Want(400).Says(`policy not found: \"gone\"`)
	b.Call("POST", "/api/portal/policies", b.editor, policy("gone")).Want(200)
	m := keyOf(b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["here","gone"]}`))
	b.Call("DELETE", "/api/portal/policies/gone", b.editor, "").Want(200)
	b.Call("PUT", "/api/keys/"+m.Hash, b.editor, `{"alias":"kept","apply_policies":["here","gone"]}`).Want(200)
	b.Call("PUT", "/api/keys/"+m.Hash+"/policies", b.editor, `{"apply_policies":["here","other"]}`).Want(400).Says(`policy not found: \"other\"`)
}

// TestAKeyKeepsNamingWhatIsGone: a key can be changed after one of its APIs was deleted.
func TestAKeyKeepsNamingWhatIsGone(t *testing.T) {
	b := withAPI(t)
	b.createAPI(b.editor, "b", "/b")
	m := keyOf(b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{},"b":{}}}`))
	b.Call("DELETE", "/api/apis/b", b.editor, "").Want(200)
	b.Call("PUT", "/api/keys/"+m.Hash, b.editor, `{"alias":"kept","access_rights":{"a":{},"b":{}}}`).Want(200)
	b.Call("PUT", "/api/keys/"+m.Hash, b.editor, `{"alias":"kept","access_rights":{"a":{},"c":{}}}`).Want(400).Says(`access_rights[\"c\"]`)
}

const withTokens = `{"api_id":"j","name":"j","enable_jwt":true,"jwt_signing_method":"hmac","jwt_source":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
	"jwt_default_policies":["here","gone"],"jwt_scope_to_policy_mapping":{"read":"nowhere"},"proxy":{"listen_path":"/j","target_url":"http://up.example"}}`

func TestTokensGetPoliciesThatExist(t *testing.T) {
	b := withAPI(t)
	policy := func(id string) string { return fmt.Sprintf(`{"id":%q,"name":%q,"access_rights":{"a":{}}}`, id, id) }
	b.Call("POST", "/api/portal/policies", b.editor, policy("here")).Want(200)
	says := []string{`jwt_default_policies[1]: names the policy \"gone\", which does not exist`, `jwt_scope_to_policy_mapping[\"read\"]: names the policy \"nowhere\"`}
	b.Call("POST", "/api/apis", b.editor, withTokens).Want(400).Says(says...)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+withTokens+`]}`).Want(400).Says(`apis[\"j\"].jwt_default_policies[1]: names the policy`)
	b.Call("POST", "/api/portal/policies", b.editor, policy("gone")).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, policy("nowhere")).Want(200)
	b.Call("POST", "/api/apis", b.editor, withTokens).Want(200)
	b.Call("DELETE", "/api/portal/policies/gone", b.editor, "").Want(200)
	b.Call("PUT", "/api/apis/j", b.editor, withTokens).Want(200) // named before it was deleted
	b.Call("PUT", "/api/apis/j", b.editor, strings.Replace(withTokens, "gone", "other", 1)).Want(400).Says(`\"other\"`)
}

// TestABatchMayNameWhatItCreates: an API, a policy for it, a key and the API's own default
// policy arrive together.
func TestABatchMayNameWhatItCreates(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/config/apply", b.editor, `{
		"apis":[`+aGraph+`,`+strings.Replace(withTokens, `"gone"`, `"here"`, 1)+`],
		"policies":[{"id":"here","name":"here","access_rights":{"j":{},"g":{"restricted_types":[{"name":"Country","fields":["code"]}]}}},
			{"id":"nowhere","name":"nowhere","access_rights":{"j":{}}}],
		"keys":[{"generate":true,"session":{"alias":"k","access_rights":{"g":{"allowed_types":[{"name":"Query","fields":["*"]}]}}}}]}`).Want(200).Says(`"key":"slk_`)
}

func TestAKeyThatTheCallerGivesIsUsedOrRefused(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.MinLength = 16 })
	b.createAPI(b.editor, "a", "/a")
	const own = "an-own-key-of-some-length"
	m := keyOf(b.Call("POST", "/api/keys", b.editor, `{"key":"`+own+`","access_rights":{"a":{}}}`))
	if !strings.HasSuffix(m.Key, own) {
		t.Errorf("created %q", m.Key)
	}
	if got := keyOf(b.Call("GET", "/api/keys/"+own, b.editor, "")); got.Hash != m.Hash {
		t.Errorf("found %+v", got)
	}
	if n := b.Count("select count(*) from keys where strpos(body::text, $1) > 0", own); n != 0 {
		t.Error("the key is stored in clear")
	}
	b.Call("POST", "/api/keys", b.editor, `{"key":"too-short","access_rights":{"a":{}}}`).Want(400).Says("16 characters")
	b.Call("POST", "/api/keys", b.editor, `{"key":7,"access_rights":{"a":{}}}`).Want(400).Says("key: must be a text")
	b.Call("POST", "/api/keys/another-key-of-some-length", b.editor, `{"key":"`+own+`","access_rights":{"a":{}}}`).Want(400).Says("key: must be another-key-of-some-length, as in the path")
	b.Call("POST", "/api/config/apply", b.editor, `{"keys":[{"generate":true,"session":{"key":"`+own+`","access_rights":{"a":{}}}}]}`).Want(400).Says("key: cannot be given in a batch")
}
