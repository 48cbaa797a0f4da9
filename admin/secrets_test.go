package admin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/internal/credential"
)

// planted is the marker in every secret of a test, which nobody below editor may see.
const planted = "planted-0123456789-0123456789-0123456789"

var plantedBase64 = base64.StdEncoding.EncodeToString([]byte(planted))

// secretAPI returns a definition that holds the marker wherever a definition holds
// secrets.
func secretAPI(name string) string {
	return strings.NewReplacer("PLANTED64", plantedBase64, "PLANTED", planted, "NAME", name).Replace(`{
		"api_id": "secretive", "name": "NAME", "enable_jwt": true, "jwt_signing_method": "hmac", "jwt_source": "PLANTED64",
		"jwt_default_policies": ["secretive"],
		"proxy": {
			"listen_path": "/secretive/", "target_url": "http://up.example/?key=PLANTED",
			"health_check": {"path": "/health", "headers": {"X-Any": "PLANTED"}}
		},
		"uptime_tests": {"check_list": [{"url": "http://up.example/?key=PLANTED", "body": "PLANTED64", "headers": {"X-Any": "PLANTED"}}]},
		"version_data": {"not_versioned": true, "versions": {"Default": {
			"name": "Default", "use_extended_paths": true, "global_headers": {"X-Any": "PLANTED", "Authorization": "PLANTED"},
			"extended_paths": {"transform_headers": [{"path": "/a", "method": "GET", "add_headers": {"X-Any": "PLANTED"}}]}
		}}},
		"event_handlers": {"events": {"QuotaExceeded": [{"handler_name": "eh_web_hook_handler", "handler_meta": {
			"method": "POST", "target_path": "https://hooks.example/PLANTED", "header_map": {"X-Any": "PLANTED"}
		}}]}},
		"later": {"client_secret": "PLANTED"}
	}`)
}

const secretPolicy = `{"id":"secretive","name":"secretive","state":"active","meta_data":{"upstream_token":"` + planted + `","owner":"ann"}}`

// badSecrets are definitions with faults in what is secret, for errors that may show it.
var badSecrets = []string{
	`{"api_id":"secretive","name":"n","enable_jwt":true,"jwt_signing_method":"hmac","jwt_source":"PLANTED!","proxy":{"listen_path":"/s/","target_url":"http://up.example"}}`,
	`{"api_id":"secretive","name":"n","enable_jwt":true,"jwt_signing_method":"rsa","jwt_source":"-----BEGIN PUBLIC KEY-----PLANTED","proxy":{"listen_path":"/s/","target_url":"http://up.example"}}`,
	`{"api_id":"secretive","name":"n","enable_jwt":true,"jwt_source":["PLANTED"],"proxy":{"listen_path":"/s/","target_url":"http://up.example"}}`,
	`{"api_id":"secretive","name":"n","use_keyless":true,"proxy":{"listen_path":"/s/","target_url":"ftp://user:PLANTED@up.example/?key=PLANTED"}}`,
	`{"api_id":"secretive","name":"n","use_keyless":true,"proxy":{"listen_path":"/s/","target_url":"http://up.example"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":{"X-Any":"PLANTED\n","Host":"PLANTED"}}}}}`,
	`{"api_id":"secretive","name":"n","use_keyless":true,"proxy":{"listen_path":"/s/","target_url":"http://up.example"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default","global_headers":"PLANTED"}}}}`,
	`{"api_id":"secretive","name":"n","use_keyless":true,"proxy":{"listen_path":"/s/","target_url":"http://up.example"},
		"event_handlers":{"events":{"QuotaExceeded":[{"handler_name":"eh_web_hook_handler","handler_meta":{"target_path":"PLANTED","header_map":{"Host":"PLANTED"}}}]}}}`,
}

// plant stores an API, a policy and a key that hold the marker, each in two revisions. It
// returns the key's hash.
func (b *bench) plant() (hash string) {
	b.t.Helper()
	b.Call("POST", "/api/portal/policies", b.editor, secretPolicy).Want(200)
	b.Call("POST", "/api/apis", b.editor, secretAPI("first")).Want(200)
	b.Call("PUT", "/api/apis/secretive", b.editor, strings.ReplaceAll(secretAPI("second"), "/"+planted, "/"+planted+"/2")).Want(200)
	changed := strings.NewReplacer(`"ann"`, `"bob"`, `"state"`, `"access_rights":{"secretive":{"api_id":"secretive"}},"state"`).Replace(secretPolicy)
	b.Call("PUT", "/api/portal/policies/secretive", b.editor, changed).Want(200)
	session := fmt.Sprintf(`{"alias":"secretive","apply_policies":["secretive"],"access_rights":{"secretive":{"api_id":"secretive","versions":["Default"]}},
		"meta_data":{"upstream_token":%q},"jwt_data":{"secret":%q}}`, planted, planted)
	return b.Call("POST", "/api/keys", b.editor, session).Want(200).Text("key_hash")
}

// TestNobodyBelowEditorSeesASecret reads every route as it is registered, so that a new
// one is covered from the start.
func TestNobodyBelowEditorSeesASecret(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	hash := b.plant()
	newest := b.newest()
	existing := strings.NewReplacer("{id}", "secretive", "{n}", newest, "{key}", hash, "{client}", "none")
	answered := 0
	for role, key := range map[rest.Role]string{rest.Viewer: b.viewer, rest.Approver: b.user("approver")} {
		for _, r := range b.server.routes() {
			if r.Method != "GET" || !r.Allows(role) || r.Waits {
				continue
			}
			for _, query := range []string{"", "?against=1", "?q=secretive", "?sort=name"} {
				got := b.Call("GET", existing.Replace(r.Path)+query, key, "")
				if got.Status == 200 {
					answered++
				}
				b.lacksMarker(r.Name()+query+" as "+string(role), string(got.Body), fmt.Sprint(got.Header))
			}
		}
		sent := fmt.Sprintf(`{"apply_policies":["secretive"],"meta_data":{"my_token":%q}}`, planted)
		b.lacksMarker("preview", string(b.Call("POST", "/api/keys/preview", key, sent).Want(200).Body))
		for i, bad := range badSecrets {
			bad := strings.NewReplacer("PLANTED", planted).Replace(bad)
			b.lacksMarker(fmt.Sprint("validate ", i), string(b.Call("POST", "/api/apis/validate", key, bad).Want(400).Body))
		}
	}
	for i, bad := range badSecrets {
		bad := strings.NewReplacer("PLANTED", planted).Replace(bad)
		b.lacksMarker(fmt.Sprint("update ", i), string(b.Call("PUT", "/api/apis/secretive", b.editor, bad).Want(400).Body))
		b.lacksMarker(fmt.Sprint("apply ", i), string(b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+bad+`]}`).Want(400).Body))
	}
	if answered < 100 {
		t.Errorf("only %d calls were answered", answered)
	}
	b.lacksMarker("the log", b.log.String())
	b.lacksMarker("the audit log", string(b.Call("GET", "/api/audit?page_size=100", b.admin, "").Want(200).Body))
	for _, path := range []string{"/api/apis/secretive", "/api/config/revisions/" + newest, "/api/config/revisions/" + newest + "/diff?against=1"} {
		b.Call("GET", path, b.viewer, "").Want(200).Says("***")
		if got := b.Call("GET", path, b.editor, "").Want(200); !strings.Contains(string(got.Body), planted) {
			t.Errorf("%s: an editor does not see the secrets: %s", path, got.Body)
		}
	}
}

// newest returns the number of the revision in force.
func (b *bench) newest() string {
	b.t.Helper()
	var state configState
	b.Call("GET", "/api/config", b.viewer, "").Want(200).Into(&state)
	return fmt.Sprint(state.Revision)
}

// lacksMarker fails the test if a text holds the marker in any form.
func (b *bench) lacksMarker(what string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		for _, form := range []string{planted, plantedBase64, url.QueryEscape(plantedBase64)} {
			if at := strings.Index(text, form); at >= 0 {
				b.t.Errorf("%s shows a secret: …%s", what, text[max(0, at-200):at+10])
				break
			}
		}
	}
}

// TestADifferenceBetweenSecretsIsShownWithoutThem changes nothing but secrets.
func TestADifferenceBetweenSecretsIsShownWithoutThem(t *testing.T) {
	b := start(t)
	b.plant()
	b.Call("PUT", "/api/apis/secretive", b.editor, strings.Replace(secretAPI("second"), plantedBase64, base64.StdEncoding.EncodeToString([]byte("x"+planted)), 1)).Want(200)
	newest := b.newest()
	got := b.Call("GET", "/api/config/revisions/"+newest+"/diff", b.viewer, "").Want(200).Says(`{"path":"jwt_source","before":"***","after":"***"}`)
	b.lacksMarker("the difference", string(got.Body))
	b.Call("GET", "/api/config/revisions/"+newest+"/diff", b.editor, "").Want(200).Says(plantedBase64)
}

// TestWhatAViewerReadsCanBeSavedWithoutLosingSecrets has an editor save definitions as a
// viewer sees them.
func TestWhatAViewerReadsCanBeSavedWithoutLosingSecrets(t *testing.T) {
	b := start(t)
	hash := b.plant()
	for _, path := range []string{"/api/apis/secretive", "/api/portal/policies/secretive"} {
		before := b.Call("GET", path, b.editor, "").Want(200)
		masked := string(b.Call("GET", path, b.viewer, "").Want(200).Body)
		changed := strings.Replace(masked, `"name":"secretive"`, `"name":"changed"`, 1)
		changed = strings.Replace(changed, `"name":"second"`, `"name":"changed"`, 1)
		if changed == masked {
			t.Fatalf("%s: %s", path, masked)
		}
		b.Call("PUT", path, b.editor, changed).Want(200)
		after := b.Call("GET", path, b.editor, "").Want(200).Says(`"name":"changed"`)
		if have, want := strings.Count(string(after.Body), planted), strings.Count(string(before.Body), planted); have != want || strings.Contains(string(after.Body), "***") {
			t.Errorf("%s: %d secrets of %d are left: %s", path, have, want, after.Body)
		}
	}
	var shown struct{ Data json.RawMessage }
	b.Call("GET", "/api/keys/"+hash, b.viewer, "").Want(200).Into(&shown)
	b.Call("PUT", "/api/keys/"+hash, b.editor, string(shown.Data)).Want(200)
	b.Call("GET", "/api/keys/"+hash, b.editor, "").Want(200).Says(`"upstream_token":"` + planted + `"`)

	api, policy := string(b.Call("GET", "/api/apis/secretive", b.viewer, "").Want(200).Body), `{"id":"secretive","name":"again","meta_data":{"upstream_token":"***"}}`
	b.Call("POST", "/api/config/apply", b.editor, fmt.Sprintf(`{"apis":[%s],"policies":[%s]}`, strings.Replace(api, `"changed"`, `"again"`, 1), policy)).Want(200)
	b.Call("GET", "/api/apis/secretive", b.editor, "").Want(200).Says(`"name":"again"`, `"jwt_source":"`+plantedBase64+`"`, `/`+planted+`/2"`)
	b.Call("GET", "/api/portal/policies/secretive", b.editor, "").Want(200).Says(`"upstream_token":"` + planted + `"`)
}

// TestAMaskThatStandsForNothingIsRefused tries to store masks as secrets.
func TestAMaskThatStandsForNothingIsRefused(t *testing.T) {
	b := start(t)
	b.plant()
	const says = "holds the mask *** of a secret, and no secret is stored here"
	b.Call("POST", "/api/apis", b.editor, `{"name":"n","use_keyless":true,"proxy":{"listen_path":"/n/","target_url":"http://up.example"},"jwt_source":"***"}`).Want(400).Says("jwt_source: " + says)
	b.Call("PUT", "/api/portal/policies/secretive", b.editor, `{"id":"secretive","name":"secretive","meta_data":{"other_token":"***"}}`).Want(400).Says("meta_data.other_token: " + says)
	b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["secretive"],"meta_data":{"a_token":"***"}}`).Want(400).Says("meta_data.a_token: " + says)
	b.Call("POST", "/api/config/apply", b.editor, `{"policies":[{"id":"new","name":"new","meta_data":{"a_token":"***"}}]}`).Want(400).Says(`policies[\"new\"].meta_data.a_token: ` + says)
}

// TestKeysInClearAreNotShownBelowEditor has an admin that stores keys as they are.
func TestKeysInClearAreNotShownBelowEditor(t *testing.T) {
	b := start(t, func(d *Deps) {
		hasher := *d.KeyOptions.Hasher
		hasher.Algorithm = credential.None
		d.KeyOptions.Hasher, d.KeyOptions.Passwords = &hasher, passwords()
	})
	b.createAPI(b.editor, "a", "/a/")
	key := b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200).Text("key")
	b.Call("POST", "/api/keys/"+key+"/rotate", b.editor, `{"grace":"1h"}`).Want(200)
	b.Call("GET", "/api/keys", b.editor, "").Want(200).Says(key)
	for _, r := range b.server.routes() {
		if r.Method != "GET" || !r.Allows(rest.Viewer) || r.Waits || strings.Contains(r.Path, "{key}") {
			continue
		}
		got := b.Call("GET", strings.NewReplacer("{id}", "a", "{n}", "1", "{client}", "none").Replace(r.Path), b.viewer, "")
		if strings.Contains(string(got.Body), key) {
			t.Errorf("%s shows a key: %s", r.Name(), got.Body)
		}
	}
	b.Call("GET", "/api/keys?q="+key[:8], b.viewer, "").Want(400).Says("q: must be left out")
	if log := b.log.String(); strings.Contains(log, key) {
		t.Errorf("the log shows a key: %s", log)
	}
}
