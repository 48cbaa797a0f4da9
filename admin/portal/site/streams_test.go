package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin"
)

const eventStreams = `{
 "publish":{"input":{"http_server":{"path":"/in/{country}","allowed_verbs":["POST","PUT"]}},"output":{"broker":{"pattern":"fan_out","outputs":[
   {"msgbroker":{"addresses":["amqp://secret-broker:5672"],"topic":"secret-topic"}},
   {"portal_webhook":{"event_type":"order.created","portal_url":"https://portal.example.org/portal/events","secret":"the secret of a connector"}}]}}},
 "feed":{"input":{"msgbroker":{"addresses":["kafka://secret-broker:9092"],"topics":["secret-topic"]}},"output":{"http_server":{"stream_path":"/feed","resume":true}}},
 "live":{"input":{"websocket_server":{"path":"/live","ack":"json"}},"output":{"websocket_server":{"path":"/live"}}},
 "mixed":{"input":{"http_client":{"url":"https://secret-broker/poll"}},"output":{"http_server":{"path":"/mixed"}}},
 "backstage":{"input":{"msgbroker":{"addresses":["inproc://"],"topics":["a"],"consumer_group":"g"}},"output":{"msgbroker":{"addresses":["inproc://"],"topic":"b"}}}}`

// offerStreams offers an API of event streams without an upstream, under a plan and under a
// narrow one.
func (b *bench) offerStreams(streams string) {
	b.t.Helper()
	b.Call("POST", "/api/apis", b.admin, `{"api_id":"events","name":"Events API","use_keyless":false,"auth":{"auth_header_name":"X-Key"},"proxy":{"listen_path":"/events/","strip_listen_path":false},"x-svc-streaming":{"streams":`+streams+`}}`).Want(200)
	for id, urls := range map[string]string{"wide": "", "narrow": `,"allowed_urls":[{"url":"^/in/[a-z]+$","methods":["POST"]},{"url":"^/mixed$","methods":["GET"]}]`} {
		b.Call("POST", "/api/portal/policies", b.admin, fmt.Sprintf(`{"id":%q,"name":"Plan %s","state":"active","rate":10,"per":1,"access_rights":{"events":{"api_id":"events","versions":["Default"]%s}}}`, id, id, urls)).Want(200)
		b.Call("POST", "/api/portal/catalogue/entries", b.admin, fmt.Sprintf(`{"id":%q,"name":"Events %s","show":true,"api_id":"events","policy_id":%q}`, id, id, id)).Want(201)
	}
}

// An API of event streams, which has no upstream, is asked for like any other. Its page has
// the routes, and nothing of what is behind them.
func TestAnAPIOfStreamsIsAProduct(t *testing.T) {
	b := start(t)
	b.offerStreams(eventStreams)
	visitor := b.browser()
	visitor.open("/portal/").says("Events wide", "event streams")
	const page = "/portal/apis/wide"
	rows := []string{
		"publish POST PUT /events/in/{country} Send a message: the body of the request any, up to 1 MiB",
		"feed GET /events/feed Receive messages as server-sent events Continues after a break with Last-Event-ID",
		"live GET /events/live Send and receive messages over WebSocket; each that you send is answered any, up to 1 MiB",
		"mixed GET /events/mixed Receive one message for each request (polling) Receive messages as server-sent events, with Accept: text/event-stream Receive messages over WebSocket",
		"curl 'https://api.example.com/events/in/country' \\ -H 'X-Key: YOUR_KEY' \\ -H 'Content-Type: application/json' \\ -d '{\"text\": \"hello\"}'",
		"curl -N 'https://api.example.com/events/feed' \\ -H 'X-Key: YOUR_KEY' \\ -H 'Accept: text/event-stream'",
		"npx wscat -c 'wss://api.example.com/events/live' -H 'X-Key: YOUR_KEY'",
		"order.created",
	}
	visitor.open(page).want(200, page).says(rows...).hides("secret-broker", "secret-topic", "backstage", "portal.example.org", "the secret of")
	visitor.open(page+"/docs").want(200, page)

	ada := b.signUp("ada@example.com")
	ada.open(page).want(200, page).says(rows...)
	ada.open("/portal/request/wide").submit("/portal/request/wide").want(200, "/portal/requests")
	list := b.Call("GET", "/api/portal/requests?state=pending", b.admin, "").Want(200).Object()["Data"].([]any)
	request := list[0].(map[string]any)["id"].(string)
	key := b.Call("PUT", "/api/portal/requests/approve/"+request, b.admin, "").Want(200).Text("RawKey")
	if key == "" {
		t.Error("the approval has no key")
	}
	ada.open(page).says("Your key")
	ada.open("/portal/webhooks?event=order.created").says("order.created Events API")
	if _, sent := ada.form("/portal/webhooks"); fmt.Sprint(sent["events"]) != "[order.created]" {
		t.Errorf("chosen: %q", sent["events"])
	}
}

// Routes, samples and documents have what the plan admits alone.
func TestRoutesOfStreamsAreCutToThePlan(t *testing.T) {
	b := start(t)
	b.offerStreams(eventStreams)
	w := b.browser()
	const page = "/portal/apis/narrow"
	w.open(page).want(200, page).says("publish POST /events/in/{country}", "mixed GET /events/mixed").hides("PUT", "/events/feed", "/events/live", "live", "wscat -c 'wss://api.example.com/events/live'")
	w.open(page+"/routes/publish.1").want(200, page+"/routes/publish.1").says("POST", "of the stream publish").hides("PUT")
	for _, hidden := range []string{"feed.1", "live.1", "none.1", "backstage.1"} {
		w.open(page+"/routes/"+hidden).want(404, page+"/routes/"+hidden)
	}
	doc := b.document("events", "openapi", `{"openapi":"3.0.3","info":{"title":"Events","version":"1"},"paths":{
	 "/in/{land}":{"post":{"operationId":"send","parameters":[{"name":"land","in":"path","required":true,"schema":{"type":"string"}}],"responses":{"200":{"description":"ok"}}}},
	 "/feed":{"get":{"operationId":"feed","responses":{"200":{"description":"ok"}}}},"/mixed":{"get":{"operationId":"mixed","responses":{"200":{"description":"ok"}}}}}}`)
	for _, id := range []string{"wide", "narrow"} {
		b.Call("PUT", "/api/portal/catalogue/entries/"+id, b.admin, fmt.Sprintf(`{"name":"Events","show":true,"api_id":"events","policy_id":%q,"documentation":%q}`, id, doc)).Want(200)
	}
	w.open(page+"/docs").want(200, page+"/docs").says("/in/{land}", "/mixed").hides("/feed")
	w.open("/portal/apis/wide/docs/feed").says("curl -N 'https://api.example.com/events/feed'", "Messages are not received here").hides(`action="/portal/try`)
	w.open("/portal/apis/wide/docs/send").says("Sign in to call the API")
	b.Call("PUT", "/api/portal/policies/narrow", b.admin, `{"id":"narrow","name":"Narrow","state":"active","access_rights":{"orders":{"api_id":"orders"}}}`).Want(200)
	w.open(page).want(200, page).says("The plan of this entry does not include the API").hides("/events/in")
}

// A message is sent from the page of a route, as one's own key.
func TestAMessageIsSentToAStream(t *testing.T) {
	p := &player{answer: admin.PlayedAnswer{Sent: true, Status: 200, Report: []byte(`{"outcome":{"allowed":true}}`)}}
	b := start(t, func(d *admin.Deps) { d.Try = p })
	b.configure(`"require_key_approval":false`)
	b.offerStreams(eventStreams)
	const page = "/portal/apis/wide/routes/"
	b.browser().open(page+"publish.1").want(200, page+"publish.1").says("Sign in to call the API", "import urllib.request")
	w := b.signUp("ada@example.com")
	w.open(page + "publish.1").says("You have no key for this API yet")
	key := hashOf(w.open("/portal/request/wide").submit("/portal/request/wide").byID("secret"))
	w.open(page+"publish.1").submit(page+"publish.1", "key", key).want(400, page+"publish.1").says("Please fill in what is marked")
	w.submit(page+"publish.1", "key", key, "path.country", "a/b c", "body", `{"n":1}`).want(200, page+"publish.1").says("200 OK")
	if call := p.calls[0]; len(p.calls) != 1 || call["url"] != "/events/in/a%2Fb%20c" || call["method"] != "POST" || call["body"] != `{"n":1}` || call["key_hash"] != key {
		t.Errorf("%v", p.calls)
	}
	_, sent := w.form(page + "publish.1")
	for route, note := range map[string]string{"feed.1": "Messages are not received here", "mixed.1": "Messages are not received here", "live.1": "Messages over WebSocket are not sent from here"} {
		w.open(page + route).says(note).hides(`action="` + page)
		w.post(b.URL+page+route, sent, "Sec-Fetch-Site", "same-origin").want(404, page+route)
	}
	if len(p.calls) != 1 {
		t.Errorf("%d calls were made", len(p.calls))
	}
	w.open(page+"feed.1").says("Last-Event-ID: ID_OF_THE_LAST_EVENT", "you receive what came after that event").hides("Clients share")
	w.open(page+"mixed.1").says("Clients share the messages", "curl, one message")
}

// Paths may have almost any character, and event types are text: both are shown as they are,
// and quoted for a shell.
func TestStoredScriptOfStreamsDoesNotRun(t *testing.T) {
	b := start(t)
	const path = `/<img/src=x/onerror=alert(1)>/it's/$(id)/"/{id}`
	b.offerStreams(fmt.Sprintf(`{"out":{"input":{"http_server":{"path":%q}},"output":{"msgbroker":{"addresses":["inproc://"],"topic":"t"}}}}`, path))
	b.Exec("update apis set events = array['<script>alert(1)</script>', $1] where id = 'events'", `"><img src=x onerror=alert(1)>`)
	w := b.browser()
	for _, page := range []string{"/portal/apis/wide", "/portal/apis/wide/routes/out.1"} {
		w.open(page).want(200, page).says(path).hides("<img", "<script>alert")
		if code := textOf(w.page); !strings.Contains(code, `'https://api.example.com/events/%3Cimg/src=x/onerror=alert%281%29%3E/it%27s/$%28id%29/%22/id'`) {
			t.Errorf("%s", code)
		}
	}
	w.open("/portal/apis/wide").says("<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`)
}

// However many streams an API has, a page of it stays small, and shows all of them in turn.
func TestRoutesOfManyStreamsArePaged(t *testing.T) {
	b := start(t)
	var all []string
	for i := range 300 {
		all = append(all, fmt.Sprintf(`"s%03d":{"input":{"http_server":{"path":"/%03d/%s"}},"output":{"msgbroker":{"addresses":["inproc://"],"topic":"t"}}}`, i, i, strings.Repeat("x", 200)))
	}
	b.offerStreams("{" + strings.Join(all, ",") + "}")
	w := b.browser()
	seen := make(map[string]bool)
	for n := 1; n <= 15; n++ {
		w.open(fmt.Sprintf("/portal/apis/wide?p=%d", n)).want(200, "/portal/apis/wide").says(fmt.Sprintf("Page %d of 15", n))
		if len(w.body) > 40<<10 {
			t.Errorf("page %d has %d bytes", n, len(w.body))
		}
		for _, a := range routesOn(w) {
			seen[a] = true
		}
	}
	if len(seen) != 300 {
		t.Errorf("%d routes were shown", len(seen))
	}
	w.open("/portal/apis/wide?p=16").want(200, "/portal/apis/wide")
}

// routesOn returns the addresses of routes on a page.
func routesOn(w *browser) (found []string) {
	for _, a := range all(w.page, "a") {
		if strings.Contains(attr(a, "href"), "/routes/") {
			found = append(found, attr(a, "href"))
		}
	}
	return found
}
