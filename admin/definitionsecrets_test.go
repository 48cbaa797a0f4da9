package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
)

// referringAPI is a definition with a header.
func referringAPI(id, header string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s/","target_url":"http://up.example"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-Any":%q}}}}}`, id, id, id, header)
}

// delivered returns the first configuration that gateways get and that is the one waited
// for.
func (b *bench) delivered(wanted func(*definition.Bundle) bool) *definition.Bundle {
	b.t.Helper()
	for etag := ""; ; {
		got := b.Call("GET", "/api/gateway/bundle?wait=30s", gatewayToken, "", "If-None-Match", etag).Want(200)
		all := new(definition.Bundle)
		if err := json.Unmarshal(got.Body, all); err != nil {
			b.t.Fatal(err)
		}
		if wanted(all) {
			return all
		}
		etag = got.Header.Get("ETag")
	}
}

func withKey(d *Deps) { d.MasterKey = secret.NewKey() }

func TestSecretsOfDefinitionsLiveTheirLifeUnseen(t *testing.T) {
	b := start(t, withKey)
	b.Call("GET", "/api/secrets", b.editor, "").Want(200).Says(`{"secrets":[]}`)
	b.Call("POST", "/api/apis", b.editor, referringAPI("orders", "Bearer {secret:orders}")).Want(400).
		Says(`global_headers[\"X-Any\"]: refers to the secret \"orders\", which does not exist; set it first`)
	var shown []string
	note := func(text []byte) { shown = append(shown, string(text)) }
	note(b.Call("PUT", "/api/secrets/orders", b.editor, `{"value":"`+planted+`"}`).Want(201).Says(`"ID":"orders"`).Body)
	note(b.Call("PUT", "/api/secrets/spare", b.admin, `{"value":"`+planted+`-spare"}`).Want(201).Body)
	b.Call("POST", "/api/apis", b.editor, referringAPI("orders", "Bearer {secret:orders}")).Want(200)
	note(b.Call("GET", "/api/secrets", b.editor, "").Want(200).Says(`"name":"orders"`, `"used_by":[{"api_id":"orders","name":"orders"}]`, `"name":"spare"`, `"updated_by":"`).Body)
	note(b.Call("GET", "/api/apis/orders", b.editor, "").Want(200).Says(`"Bearer {secret:orders}"`).Body)
	note(b.Call("GET", "/api/config", b.editor, "").Want(200).Body)

	secretIs := func(value string) func(*definition.Bundle) bool {
		return func(all *definition.Bundle) bool {
			return len(all.APIs) == 1 && all.Secrets[all.APIs[0].OrgID]["orders"] == value
		}
	}
	all := b.delivered(secretIs(planted))
	if len(all.Secrets) != 1 || len(all.Secrets[all.APIs[0].OrgID]) != 1 {
		t.Error("gateways get a secret that no API refers to")
	}
	note(b.Call("PUT", "/api/secrets/orders", b.editor, `{"value":"`+planted+`-next"}`).Want(200).Body)
	b.delivered(secretIs(planted + "-next"))
	note(b.Call("GET", "/api/audit?object_kind=secret", b.admin, "").Want(200).Says(`"action":"created"`, `"action":"updated"`, "spare").Body)
	note(b.Call("GET", "/api/config/revisions", b.editor, "").Want(200).Says(`"kind":"secret"`).Body)
	for _, text := range shown {
		if strings.Contains(text, planted) {
			t.Errorf("a secret is shown: %s", text)
		}
	}

	b.Call("DELETE", "/api/secrets/orders", b.editor, "").Want(409).Says("APIs refer to this secret; change them first: orders")
	b.Call("PUT", "/api/apis/orders", b.editor, referringAPI("orders", "none")).Want(200)
	b.Call("DELETE", "/api/secrets/orders", b.editor, "").Want(200)
	b.Call("DELETE", "/api/secrets/orders", b.editor, "").Want(404).Says("Secret does not exist")
	b.delivered(func(all *definition.Bundle) bool { return len(all.Secrets) == 0 })
	var history struct {
		Revisions []struct {
			Revision int64 `json:"revision"`
		} `json:"revisions"`
	}
	b.Call("GET", "/api/config/revisions", b.admin, "").Want(200).Into(&history)
	b.Call("POST", fmt.Sprintf("/api/config/revisions/%d/rollback", history.Revisions[2].Revision), b.admin, `{"reason":"test"}`).Want(400).Says(`refers to the secret \"orders\", which does not exist`)
}

func TestSecretsAreForThoseWhoMayUseThem(t *testing.T) {
	b := start(t, withKey)
	b.Call("PUT", "/api/secrets/one", b.editor, `{"value":"`+planted+`"}`).Want(201)
	for _, role := range []string{b.viewer, gatewayToken} {
		b.Call("GET", "/api/secrets", role, "").Want(403)
		b.Call("PUT", "/api/secrets/one", role, `{"value":"other"}`).Want(403)
		b.Call("DELETE", "/api/secrets/one", role, "").Want(403)
	}
	b.Call("GET", "/api/secrets", b.other, "").Want(200).Says(`{"secrets":[]}`)
	b.Call("DELETE", "/api/secrets/one", b.other, "").Want(404)
	b.Call("POST", "/api/apis", b.other, referringAPI("theirs", "{secret:one}")).Want(400).Says(`refers to the secret \"one\", which does not exist`)
	b.Call("GET", "/api/gateway/bundle", b.admin, "").Want(403)
}

func TestSecretsThatCannotBeUsedAreRefused(t *testing.T) {
	b := start(t, withKey)
	for body, want := range map[string]string{
		`{"value":""}`:    "value: must not be empty",
		`{"value":"abc"}`: "value: has 3 bytes; 4 to 8192 are allowed",
		`{"value":"` + strings.Repeat("a", definition.MaxSecret+1) + `"}`: "value: has 8193 bytes",
		`{"value":"abcd\u0000"}`: "value: must not hold the character U+0000",
		`{"worth":"abcd"}`:       "worth",
	} {
		b.Call("PUT", "/api/secrets/one", b.editor, body).Want(400).Says(want)
	}
	for _, name := range []string{"a%20b", "-a", "a%7Db", strings.Repeat("a", 129)} {
		b.Call("PUT", "/api/secrets/"+name, b.editor, `{"value":"abcd"}`).Want(400).Says("name: must consist of")
	}
}

func TestABatchRefersToSecretsThatExist(t *testing.T) {
	b := start(t, withKey)
	batch := `{"dry_run":%t,"apis":[` + referringAPI("orders", "{secret:orders}") + `]}`
	b.Call("POST", "/api/config/apply", b.editor, fmt.Sprintf(batch, true)).Want(400).Says(`refers to the secret \"orders\"`)
	b.Call("PUT", "/api/secrets/orders", b.editor, `{"value":"`+planted+`"}`).Want(201)
	b.Call("POST", "/api/config/apply", b.editor, fmt.Sprintf(batch, false)).Want(200)
	b.Call("DELETE", "/api/secrets/orders", b.editor, "").Want(409)
	b.Call("POST", "/api/config/apply", b.editor, `{"delete":{"apis":["orders"]}}`).Want(200)
	b.Call("DELETE", "/api/secrets/orders", b.editor, "").Want(200)
}

func TestWhatLooksLikeAReferenceAndIsNoneIsSaid(t *testing.T) {
	b := start(t, withKey)
	b.Call("POST", "/api/apis", b.editor, referringAPI("home", "{env:HOME}")).Want(200).Says("has {env:HOME}, which is literal text and no reference to a secret")
	b.Call("POST", "/api/apis?strict=true", b.editor, referringAPI("strict", "{env:HOME}")).Want(400).Says("has {env:HOME}")
	literal := strings.Replace(referringAPI("literal", "{secret:none}"), "{", `{"disable_secret_references":true,`, 1)
	b.Call("POST", "/api/apis", b.editor, literal).Want(200)
	b.Call("POST", "/api/apis", b.editor, referringAPI("files", "{file:/run/secrets/a}{env:SLUICE_SECRET_A}")).Want(200)
}
