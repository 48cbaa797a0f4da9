package admin

import (
	"strings"
	"testing"
)

// history is a page of the changes of an object.
type history struct {
	Changes []struct {
		Revision                       int64
		Action, Author, Source, Reason string
		Members                        []struct {
			Path          string
			Before, After any
		}
	}
	Pages int
}

func (b *bench) historyOf(path, key string) (h history) {
	b.t.Helper()
	b.Call("GET", path, key, "").Want(200).Into(&h)
	return h
}

func TestEverybodySeesTheHistoryOfAnObject(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "one", "/one")
	b.createAPI(b.editor, "two", "/two")
	body := strings.Replace(anAPI("one", "/one"), "{", `{"config_data":{"password":"hunter22"},`, 1)
	b.Call("PUT", "/api/apis/one?reason=a+better+name", b.admin, body).Want(200)
	got := b.historyOf("/api/apis/one/history", b.viewer)
	if len(got.Changes) != 2 || got.Pages != 1 {
		t.Fatalf("%+v", got)
	}
	newest, oldest := got.Changes[0], got.Changes[1]
	if newest.Action != "updated" || newest.Author != "admin@localhost" || newest.Reason != "a better name" || newest.Revision <= oldest.Revision || len(newest.Members) == 0 {
		t.Errorf("newest: %+v", newest)
	}
	if oldest.Action != "created" || oldest.Author == "" || len(oldest.Members) != 0 {
		t.Errorf("oldest: %+v", oldest)
	}
	b.Call("GET", "/api/apis/one/history", b.viewer, "").Want(200).Hides("hunter22")
	b.Call("GET", "/api/apis/one/history", b.editor, "").Want(200).Says("hunter22")

	b.Call("DELETE", "/api/apis/one", b.editor, "").Want(200)
	if got := b.historyOf("/api/apis/one/history?page_size=1", b.viewer); len(got.Changes) != 1 || got.Changes[0].Action != "deleted" || got.Pages != 3 {
		t.Errorf("after it was deleted: %+v", got)
	}
	if got := b.historyOf("/api/apis/one/history?page_size=1&p=3", b.viewer); len(got.Changes) != 1 || got.Changes[0].Action != "created" {
		t.Errorf("last page: %+v", got)
	}
	b.Call("GET", "/api/apis/one/history", b.other, "").Want(404)
	b.Call("GET", "/api/apis/none/history", b.viewer, "").Want(404)
	b.Call("GET", "/api/apis/two/history?page_size=21", b.viewer, "").Want(400).Says("at most 20")

	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"op","name":"ours"}`).Want(200)
	for _, path := range []string{"/api/portal/policies/op/history", "/api/policies/op/history"} {
		if got := b.historyOf(path, b.viewer); len(got.Changes) != 1 || got.Changes[0].Action != "created" {
			t.Errorf("%s: %+v", path, got)
		}
	}
}

// A page that checks a draft on each keystroke gets problems as an answer, not as a failure.
func TestProblemsAsAReport(t *testing.T) {
	b := start(t)
	faulty := `{"name":"x",
 "proxy":{"listen_path":"","target_url":"nonsense"}}`
	b.Call("POST", "/api/apis/validate", b.viewer, faulty).Want(400).Says("proxy.listen_path")
	got := b.Call("POST", "/api/apis/validate?report=true", b.viewer, faulty).Want(200)
	got.Says(`"Status":"Error"`, `"path":"proxy.listen_path"`, `"line":2`)
	b.Call("POST", "/api/apis/validate?report=true", b.viewer, `{"name":`).Want(200).Says(`"Problems":[{`)
	b.Call("POST", "/api/apis/validate?report=true", b.viewer, anAPI("a", "/a")).Want(200).Says(`"Status":"OK"`).Hides("Problems")
	b.Call("POST", "/api/apis/validate?report=true", b.viewer, "x", "Content-Type", "text/html").Want(415)

	batch := `{"policies":[{"id":"p","name":"p","quota_max":-7}]}`
	b.Call("POST", "/api/config/effect", b.editor, batch).Want(400)
	b.Call("POST", "/api/config/effect?report=true", b.editor, batch).Want(200).Says(`"Status":"Error"`, `quota_max`)
	b.Call("POST", "/api/config/effect?report=true", b.editor, `{"policies":[{"id":"p","name":"p"}]}`).Want(200).Hides(`"Status":"Error"`)
	b.Call("POST", "/api/config/effect?report=true", b.viewer, batch).Want(403)
}

// The list of handlers follows the configuration, although it is kept.
func TestHandlersOfEventsFollowTheConfiguration(t *testing.T) {
	b := start(t)
	handled := func(prefix string) string {
		return strings.Replace(anAPI("one", "/one"), "{", `{"event_handlers":{"events":{"AuthFailure":[{"handler_name":"eh_log_handler","handler_meta":{"prefix":"`+prefix+`"}}]}},`, 1)
	}
	b.Call("GET", "/api/events", b.viewer, "").Want(200).Says(`{"handlers":[]}`)
	b.Call("POST", "/api/apis", b.editor, handled("first")).Want(200)
	for range 2 {
		b.Call("GET", "/api/events", b.viewer, "").Want(200).Says("first")
		b.Call("GET", "/api/events", b.other, "").Want(200).Says(`{"handlers":[]}`)
	}
	b.Call("PUT", "/api/apis/one", b.editor, handled("second")).Want(200)
	b.Call("GET", "/api/events", b.viewer, "").Want(200).Says("second").Hides("first")
}
