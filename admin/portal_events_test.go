package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/secret"
)

func TestAnOrganisationIsToldOfItsAPIs(t *testing.T) {
	b := start(t, func(d *Deps) { d.MasterKey = secret.NewKey() })
	b.Call("POST", "/api/portal/webhooks", b.editor, `{"name":"apis","url":"https://hooks.example/x","events":["api_event.created","api_event.deleted"]}`).Want(201)
	b.Call("POST", "/api/portal/configuration", b.editor, `{"event_options":{"api_event":{"webhook":"https://hooks.example/y","email":"apis@example.com"}}}`).Want(200)
	api := func(id string) string {
		return fmt.Sprintf(`{"api_id":%q,"name":"API %s","proxy":{"listen_path":"/%s/","target_url":"http://secret.example"}}`, id, id, id)
	}
	told := func(want ...string) {
		t.Helper()
		got := strings.Split(b.Text(`select coalesce(string_agg(kind || ' ' || event || ' ' || coalesce(convert_from(payload, 'UTF8')::jsonb -> 'data' ->> 'api_id', ''), ',' order by kind, event, convert_from(payload, 'UTF8')), '') from deliveries where kind <> 'letter'`), ",")
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("told of %q\nwant    %q", got, want)
		}
		b.Exec("delete from deliveries")
	}
	b.Call("POST", "/api/apis", b.editor, api("a")).Want(200)
	if n := b.Count("select count(*) from deliveries where kind = 'letter'"); n != 1 {
		t.Errorf("%d letters", n)
	}
	if payload := b.Text("select convert_from(payload, 'UTF8') from deliveries where kind = 'hook'"); !strings.Contains(payload, `{"event":"api_event.created","data":{"api_id":"a","name":"API a","org_id":"`) || strings.Contains(payload, "secret.example") {
		t.Errorf("told %s", payload)
	}
	told("hook api_event.created a", "webhook api_event.created a")
	b.Call("PUT", "/api/apis/a", b.editor, strings.Replace(api("a"), "API a", "Other", 1)).Want(200)
	told("hook api_event.updated a")
	b.Call("POST", "/api/apis", b.editor, api("a")).Want(409)
	b.Call("POST", "/api/config/apply", b.editor, `{"dry_run":true,"apis":[`+api("b")+`]}`).Want(200)
	told("")
	b.Call("POST", "/api/config/apply", b.editor, `{"apis":[`+api("b")+`,`+api("c")+`],"delete":{"apis":["a"]}}`).Want(200)
	told("hook api_event.created b", "hook api_event.created c", "hook api_event.deleted a",
		"webhook api_event.created b", "webhook api_event.created c", "webhook api_event.deleted a")
	b.Call("POST", "/api/config/revisions/1/rollback", b.admin, "").Want(200)
	told("hook api_event.created a", "hook api_event.deleted b", "hook api_event.deleted c",
		"webhook api_event.created a", "webhook api_event.deleted b", "webhook api_event.deleted c")
	b.Call("DELETE", "/api/apis/a", b.editor, "").Want(200)
	told("hook api_event.deleted a", "webhook api_event.deleted a")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p"}`).Want(200)
	told("")
}
