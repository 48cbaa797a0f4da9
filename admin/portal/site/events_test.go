package site_test

import (
	"slices"
	"testing"
)

// Developers choose events of streams beside those of the portal, and see which API publishes
// them and whether they get them already.
func TestDevelopersSubscribeToEventsOfStreams(t *testing.T) {
	b := start(t)
	b.configure(`"require_key_approval":false`)
	const streams = `"x-svc-streaming":{"streams":{"out":{"input":{"http_server":{"path":"/in"}},"output":{"portal_webhook":{"event_type":"order.created","portal_url":"https://portal.example.org/portal/events","secret":"the secret of a connector"}}}}}`
	b.Call("PUT", "/api/apis/orders", b.admin, `{"api_id":"orders","name":"Orders API","use_keyless":false,"auth":{"auth_header_name":"Authorization"},"proxy":{"listen_path":"/orders/","target_url":"http://up.example","strip_listen_path":true},`+streams+`}`).Want(200)
	ada := b.signUp("ada@example.com")
	ada.open("/portal/apis/free").want(200, "/portal/apis/free").says("Events", "order.created")
	ada.open("/portal/webhooks").says("Events of APIs", "order.created Orders API (once you have access)")

	_, sent := ada.form("/portal/webhooks")
	if slices.Contains(sent["events"], "order.created") || len(sent["events"]) < 5 {
		t.Errorf("chosen at first: %q", sent["events"])
	}
	sent.Add("events", "order.created")
	sent.Set("url", "https://example.com/x")
	hook := ada.post(b.URL+"/portal/webhooks", sent, "Sec-Fetch-Site", "same-origin").follow("I have stored it").at.Path
	events := func() []any {
		t.Helper()
		list := b.Call("GET", "/api/portal/webhooks", b.admin, "").Want(200).Object()["Data"].([]any)
		return list[0].(map[string]any)["events"].([]any)
	}
	if got := events(); !slices.Equal(got, []any{"*", "order.created"}) {
		t.Errorf("stored %v", got)
	}

	ada.open("/portal/request/free").submit("/portal/request/free").byID("secret")
	ada.open(hook).says("order.created Orders API")
	ada.hides("(once you have access)")
	_, sent = ada.form(hook)
	if n := len(sent["events"]); n != 9 {
		t.Errorf("%d types are chosen: %q", n, sent["events"])
	}
	sent["events"] = []string{"order.created"}
	ada.post(b.URL+hook, sent, "Sec-Fetch-Site", "same-origin").want(200, hook)
	if got := events(); !slices.Equal(got, []any{"order.created"}) {
		t.Errorf("stored %v", got)
	}
}
