package control

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/connections"
)

// opened stands for open connections: it lists what it has, and notes what is ended.
type opened struct {
	list  []connections.Connection
	asked connections.Filter
	ended []string
}

func (o *opened) List(f connections.Filter) ([]connections.Connection, int) {
	o.asked = f
	return o.list[:min(f.Max, len(o.list))], len(o.list)
}

func (o *opened) Get(id string) *connections.Connection {
	for i := range o.list {
		if o.list[i].ID == id {
			return &o.list[i]
		}
	}
	return nil
}

func (o *opened) End(id, _ string, how connections.End) bool {
	o.ended = append(o.ended, fmt.Sprint(id, how))
	return o.Get(id) != nil
}

func (o *opened) EndAll(f connections.Filter, how connections.End) int {
	o.asked, o.ended = f, append(o.ended, fmt.Sprint("all", how))
	return len(o.list)
}

func TestConnectionsAreListedAndEnded(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o := &opened{list: []connections.Connection{{ID: "00000000000000aa", API: "shop", Since: at}, {ID: "00000000000000ab", API: "shop", Since: at}}}
	b := onFiles(t, func(d *Deps) { d.Connections = connections.Desk{Source: o} })
	if got := b.call("GET", "/svc/connections?page_size=1&api_id=shop&key_hash=h&org_id=o", ""); got.status != 200 ||
		!strings.Contains(got.body, `{"connections":[{"id":"00000000000000aa",`) || !strings.HasSuffix(got.body, `"total":2,"next":"1795262400000000-00000000000000aa"}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if want := (connections.Filter{Org: "o", API: "shop", Key: "h", Max: 2}); o.asked != want {
		t.Errorf("asked for %+v", o.asked)
	}
	if got := b.call("GET", "/svc/connections?after=1795262400000000-00000000000000aa", ""); got.status != 200 || o.asked.After == "" || strings.Contains(got.body, `"next"`) {
		t.Errorf("%d %s, asked for %+v", got.status, got.body, o.asked)
	}
	b.want("GET", "/svc/connections?after=x", "", 400, failed(`Query parameter after must be the member next of the page before`))
	b.want("GET", "/svc/connections?page_size=501", "", 400, failed(`Query parameter page_size must be a whole number in 1…500, not \"501\"`))
	b.want("GET", "/svc/connections/nope", "", 404, failed("This gateway has no open connection with this id"))
	if got := b.call("GET", "/svc/connections/00000000000000ab", ""); got.status != 200 || !strings.HasPrefix(got.body, `{"id":"00000000000000ab"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	b.want("DELETE", "/svc/connections/00000000000000aa", "", 200, done("00000000000000aa", "deleted"))
	b.want("DELETE", "/svc/connections/nope?code=4403&close_reason=Too+loud", "", 404, failed("This gateway has no open connection with this id"))
	b.want("DELETE", "/svc/connections?key_hash=h&code=1012", "", 200, `{"status":"ok","ended":2}`)
	if got := strings.Join(o.ended, ", "); got != "00000000000000aa{1000 Ended by an operator}, nope{4403 Too loud}, all{1012 Ended by an operator}" || o.asked.Key != "h" {
		t.Errorf("ended %s of %+v", got, o.asked)
	}
	b.want("DELETE", "/svc/connections", "", 400, failed("Query parameter key_hash or api_id must name the connections to end"))
	b.want("DELETE", "/svc/connections/nope?code=1006", "", 400, failed(`Query parameter code must be 1000 (normal: clients do not connect again on their own), 1012 (clients connect again) or 4403 (forbidden), not \"1006\"`))
	b.want("DELETE", "/svc/connections/nope?close_reason="+url.QueryEscape(strings.Repeat("é", 62)), "", 400, failed("Query parameter close_reason must be UTF-8 of at most 123 bytes"))
}

func TestConnectionsNeedNotBeListed(t *testing.T) {
	b := onFiles(t, func(d *Deps) { d.Connections = nil })
	for _, call := range []string{"GET /svc/connections", "GET /svc/connections/a", "DELETE /svc/connections/a", "DELETE /svc/connections?key_hash=h"} {
		method, path, _ := strings.Cut(call, " ")
		b.want(method, path, "", 404, failed("This gateway does not list connections"))
	}
}
