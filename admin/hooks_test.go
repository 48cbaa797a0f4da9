package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
)

// hookedAPI is a definition with a webhook of these settings.
func hookedAPI(id, meta string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":%q,"use_keyless":true,"proxy":{"listen_path":"/%s/","target_url":"http://up.example"},
		"version_data":{"not_versioned":true,"versions":{"Default":{"name":"Default"}}},
		"event_handlers":{"events":{"AuthFailure":[{"handler_name":"eh_web_hook_handler","handler_meta":%s}]}}}`, id, id, id, meta)
}

// called returns a test of whether the handlers of an API call one address with a method.
func called(api, method, target string) func(*definition.Bundle) bool {
	return func(all *definition.Bundle) bool {
		for _, a := range all.APIs {
			if a.ID == api && a.EventHandlers != nil {
				m := a.EventHandlers.Events["AuthFailure"][0].Meta
				return m.Method == method && m.Target == target
			}
		}
		return false
	}
}

func TestWebhooksOfHandlersAreKeptAndListed(t *testing.T) {
	b := start(t)
	b.Call("GET", "/api/hooks", b.viewer, "").Want(200).Says(`{"hooks":[],"pages":0}`)
	b.Call("POST", "/api/hooks", b.viewer, `{"name":"b","target_path":"https://hooks.example/b"}`).Want(403)
	made := b.Call("POST", "/api/hooks", b.editor, `{"name":"b","target_path":"https://hooks.example/path","header_map":{"X-Any":"hidden-value"},"event_timeout":5}`).Want(200).Text("Message")
	b.Call("POST", "/api/hooks", b.editor, `{"id":"own","name":"a","method":"POST","target_path":"https://hooks.example/a"}`).Want(200).Says(`"Message":"own"`)
	b.Call("POST", "/api/hooks", b.editor, `{"id":"own","name":"c","target_path":"https://hooks.example/a"}`).Want(409)

	b.Call("GET", "/api/hooks?page_size=1", b.editor, "").Want(200).Says(`"hooks":[{"id":"own"`, `"pages":2`)
	b.Call("GET", "/api/hooks?page_size=1&p=2", b.editor, "").Want(200).Says(`"hooks":[{"id":"`+made+`"`, `"pages":2`)
	b.Call("GET", "/api/hooks?page_size=1&p=3", b.editor, "").Want(200).Says(`"hooks":[]`)
	b.Call("GET", "/api/hooks", b.other, "").Want(200).Says(`"hooks":[]`)
	b.Call("GET", "/api/hooks/"+made, b.other, "").Want(404).Says(noHook)
	one := b.Call("GET", "/api/hooks/"+made, b.editor, "").Want(200).Says(`"method":"GET"`, `"target_path":"https://hooks.example/path"`, "hidden-value", `"event_timeout":5`)
	for _, path := range []string{"/api/hooks/" + made, "/api/hooks"} {
		seen := b.Call("GET", path, b.viewer, "").Want(200).Says(`"https://hooks.example/***"`, `"X-Any":"***"`)
		if strings.Contains(string(seen.Body), "hidden") {
			t.Errorf("a viewer sees a header: %s", seen.Body)
		}
	}

	changed := `{"name":"b2","method":"PUT","target_path":"https://hooks.example/next","header_map":{"X-Any":"***"}}`
	b.Call("PUT", "/api/hooks/"+made, b.editor, changed, "If-Match", one.Header.Get("ETag")).Want(200)
	b.Call("PUT", "/api/hooks/"+made, b.editor, changed, "If-Match", one.Header.Get("ETag")).Want(409)
	b.Call("GET", "/api/hooks/"+made, b.editor, "").Want(200).Says(`"name":"b2"`, `"method":"PUT"`, "hidden-value")
	b.Call("PUT", "/api/hooks/none", b.editor, changed).Want(404).Says(noHook)
	b.Call("DELETE", "/api/hooks/"+made, b.editor, "", "If-Match", one.Header.Get("ETag")).Want(409)
	b.Call("DELETE", "/api/hooks/"+made, b.editor, "").Want(200)
	b.Call("DELETE", "/api/hooks/"+made, b.editor, "").Want(404).Says(noHook)

	audit := b.Call("GET", "/api/audit?object_kind=hook", b.admin, "").Want(200).Says(`"action":"created"`, `"action":"updated"`, `"action":"deleted"`, made)
	if strings.Contains(string(audit.Body), "hidden-value") || strings.Contains(string(audit.Body), "hooks.example/next") {
		t.Errorf("the audit log has a secret: %s", audit.Body)
	}
	b.Call("GET", "/api/config/revisions", b.editor, "").Want(200).Says(`"kind":"hook"`)
}

func TestWebhooksOfHandlersAreCheckedAsThoseInDefinitions(t *testing.T) {
	b := start(t)
	for body, want := range map[string]string{
		`{"name":"x"}`: "target_path: must be an http or https address",
		`{"name":"x","target_path":"ftp://up.example"}`:                                        "target_path: must be an http or https address",
		`{"target_path":"http://up.example"}`:                                                  "name: must be text",
		`{"name":"x","target_path":"http://up.example","method":"BREW"}`:                       "method: must be one of GET",
		`{"name":"x","target_path":"http://up.example","event_timeout":-1}`:                    "event_timeout: must be 0 to",
		`{"name":"x","target_path":"http://up.example","header_map":{"Host":"a"}}`:             `must be left out`,
		`{"name":"x","target_path":"http://up.example","template_path":"../a"}`:                "template_path: must be the name",
		`{"name":"x","target_path":"http://up.example","id":"a/b"}`:                            "id: ",
		`{"name":"x","target_path":"http://up.example","header_map":{"A":"***"}}`:              `header_map`,
		`{"name":"x","target_path":"http://up.example","header_map":{"A":"{secret:missing}"}}`: `refers to the secret \"missing\", which does not exist`,
		`{"name":"x","target_path":"http://up.example","url":"b"}`:                             "unknown member",
	} {
		b.Call("POST", "/api/hooks", b.editor, body).Want(400).Says(want)
	}
	b.Call("GET", "/api/hooks", b.editor, "").Want(200).Says(`"hooks":[]`)
}

func TestHandlersTakeTheStoredWebhookThatTheyName(t *testing.T) {
	b := start(t, withKey)
	const refused = `event_handlers.events[\"AuthFailure\"][0].handler_meta.id: names the webhook \"own\", which does not exist`
	naming := hookedAPI("orders", `{"id":"own","method":"PUT"}`)
	b.Call("POST", "/api/apis", b.editor, naming).Want(400).Says(refused)
	b.Call("POST", "/api/apis/validate", b.editor, naming).Want(400).Says(refused)
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+naming+`]}`).Want(400).Says(refused)
	b.Call("POST", "/api/config/apply", b.editor, `{"dry_run":true,"apis":[`+naming+`]}`).Want(400).Says(refused)
	b.Call("POST", "/api/hooks", b.other, `{"id":"own","name":"of another organisation","target_path":"https://hooks.example/other"}`).Want(200)
	b.Call("POST", "/api/apis", b.editor, naming).Want(400).Says(refused)

	b.Call("PUT", "/api/secrets/token", b.editor, `{"value":"a sealed value"}`).Want(201)
	b.Call("POST", "/api/hooks", b.editor, `{"id":"own","name":"ours","method":"POST","target_path":"https://hooks.example/first","header_map":{"X-Token":"{secret:token}"}}`).Want(200)
	b.Call("POST", "/api/apis/validate", b.editor, naming).Want(200)
	b.Call("POST", "/api/apis", b.editor, naming).Want(200)
	b.Call("POST", "/api/apis", b.editor, hookedAPI("legacy", `{"id":"unknown","method":"POST","target_path":"https://hooks.example/legacy"}`)).Want(200)
	all := b.delivered(called("legacy", "POST", "https://hooks.example/legacy")) // an address of its own
	if got := all.APIs[1].EventHandlers.Events["AuthFailure"][0].Meta.Headers["X-Token"]; got != "{secret:token}" || all.Secrets[all.APIs[1].OrgID]["token"] != "a sealed value" {
		t.Errorf("gateways get the header %q and the secrets of %d organisations", got, len(all.Secrets))
	}
	if !called("orders", "PUT", "https://hooks.example/first")(all) {
		t.Error("gateways do not get the webhook")
	}
	stored := b.Call("GET", "/api/apis/orders", b.editor, "").Want(200).Says(`"id":"own"`)
	if strings.Contains(string(stored.Body), "hooks.example") {
		t.Errorf("the definition holds the webhook: %s", stored.Body)
	}
	b.Call("GET", "/api/events", b.viewer, "").Want(200).Says(`"target":"https://hooks.example"`)

	b.Call("PUT", "/api/hooks/own", b.editor, `{"name":"ours","method":"POST","target_path":"https://hooks.example/second"}`).Want(200)
	b.delivered(called("orders", "PUT", "https://hooks.example/second"))
	b.Call("PUT", "/api/apis/orders", b.editor, hookedAPI("orders", `{"id":"own"}`), "If-Match", stored.Header.Get("ETag")).Want(200) // the webhook's change is none of the API
	b.delivered(called("orders", "POST", "https://hooks.example/second"))

	b.Call("DELETE", "/api/hooks/own", b.editor, "").Want(409).Says("APIs refer to this webhook; change them first: orders")
	b.Call("PUT", "/api/hooks/own", b.editor, `{"name":"ours","target_path":"https://hooks.example/{secret:token}"}`).Want(200)
	b.Call("DELETE", "/api/secrets/token", b.editor, "").Want(409).Says("webhook own")
	b.Call("PUT", "/api/apis/orders", b.editor, hookedAPI("orders", `{"id":"own","disabled":true}`)).Want(200)
	b.Call("DELETE", "/api/hooks/own", b.editor, "").Want(200)
	b.Call("DELETE", "/api/secrets/token", b.editor, "").Want(200)
	b.Call("PUT", "/api/apis/orders", b.editor, naming).Want(400).Says(refused)
}
