package admin

import (
	"fmt"
	"net/url"
	"testing"
)

// originOf asks where the value of a member comes from, and returns the answer in short:
// author, revision and action of the change, "unset" for a member that is not there.
func (b *bench) originOf(object, path, more string) string {
	b.t.Helper()
	var got memberOrigin
	b.Call("GET", object+"/origin?path="+url.QueryEscape(path)+more, b.viewer, "").Want(200).Into(&got)
	text := ""
	if !got.Set {
		text = "unset "
	}
	if got.Change == nil {
		return text + "none"
	}
	if got.Change.At.IsZero() || got.Path != path {
		b.t.Errorf("%s of %s: %+v", path, object, got)
	}
	return text + fmt.Sprintf("%s %d %s %s", got.Change.Author, got.Change.Revision, got.Change.Action, got.Change.Reason)
}

func TestTheOriginOfAMemberIsTheNewestChangeOfIt(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/") // revision 1
	put := func(key, reason, members string) {
		t.Helper()
		b.Call("PUT", "/api/portal/policies/p?reason="+reason, key, `{"id":"p","name":"p",`+members+`"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	}
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","rate":10,"per":1,"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	put(b.admin, "deeper", `"rate":10,"per":1,"max_query_depth":5,`)
	put(b.editor, "slower", `"rate":2,"per":1,"max_query_depth":5,`)
	put(b.editor, "no+depth", `"rate":2,"per":1,"tags":["x"],`)
	editor := b.originOf("/api/policies/p", "rate", "")
	var author string
	if _, err := fmt.Sscanf(editor, "%s 4 updated slower", &author); err != nil {
		t.Fatalf("rate: %s", editor)
	}
	for _, c := range []struct{ path, more, want string }{
		{"per", "", author + " 2 created "},
		{"rate", "&revision=3", author + " 2 created "},
		{"rate", "&revision=4", author + " 4 updated slower"},
		{"max_query_depth", "&revision=4", "admin@localhost 3 updated deeper"},
		{"max_query_depth", "", author + " 5 updated no depth"},
		{"tags", "", author + " 5 created no depth"},
		{"tags[0]", "", author + " 5 created no depth"},
		{"tags", "&revision=4", "unset none"},
		{"never", "", "unset none"},
		{`access_rights["a"].versions`, "", author + " 2 created "},
		{"access_rights.a.api_id", "", author + " 2 created "},
		{"", "", author + " 5 updated no depth"},
	} {
		for _, object := range []string{"/api/policies/p", "/api/portal/policies/p"} {
			if got := b.originOf(object, c.path, c.more); got != c.want {
				t.Errorf("%s%s of %s: %q, want %q", c.path, c.more, object, got, c.want)
			}
		}
	}
	if got := b.originOf("/api/apis/a", "proxy.listen_path", ""); got != author+" 1 created " {
		t.Errorf("of the API: %s", got)
	}
	b.Call("DELETE", "/api/portal/policies/p", b.editor, "").Want(200)
	if got := b.originOf("/api/policies/p", "rate", ""); got != "unset "+author+" 6 deleted " {
		t.Errorf("of a deleted policy: %s", got)
	}
	b.Call("GET", "/api/policies/none/origin?path=rate", b.viewer, "").Want(404)
	b.Call("GET", "/api/policies/p/origin?path=rate&revision=1", b.viewer, "").Want(404)
	b.Call("GET", "/api/policies/p/origin?path=rate", b.other, "").Want(404)
	for query, says := range map[string]string{"path=a..b": "one dot", "path=a[": "index", "path=rate&revision=x": "number of a revision", "path=%00": "not the name", "path=%ff": "UTF-8"} {
		b.Call("GET", "/api/policies/p/origin?"+query, b.viewer, "").Want(400).Says(says)
	}
	long := make([]byte, maxMemberPath+1)
	for i := range long {
		long[i] = 'a'
	}
	b.Call("GET", "/api/policies/p/origin?path="+string(long), b.viewer, "").Want(400).Says("at most 1000 bytes")
}

// The search is bounded, and crosses the pages that it reads.
func TestTheOriginIsSearchedInABoundedPart(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","rate":10,"per":1}`).Want(200)
	change := func(n int) {
		for range n {
			b.Exec(`with r as (select bump_revision() as n), made as (insert into config_revisions (revision, org_id, author, source, summary)
				select n, org_id, 'x', 'api', '[]' from r, policies where id = 'p')
				insert into config_history (org_id, kind, id, revision, body) select org_id, 'policy', 'p', n, json_build_object('id', 'p', 'rate', 10, 'n', n) from r, policies where id = 'p'`)
		}
	}
	change(45)
	if got := b.originOf("/api/policies/p", "rate", ""); got == "none" {
		t.Errorf("in the third page: %s", got)
	}
	change(160)
	if got := b.originOf("/api/policies/p", "rate", ""); got != "none" {
		t.Errorf("beyond the bound: %s", got)
	}
}

func TestTheOriginInAKey(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/")
	session := func(rate int) string {
		return fmt.Sprintf(`{"alias":"acme","rate":%d,"per":1,"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`, rate)
	}
	hash := b.Call("POST", "/api/keys", b.editor, session(10)).Want(200).Text("key_hash")
	created := b.originOf("/api/keys/"+hash, "rate", "")
	b.Call("PUT", "/api/keys/"+hash+"?hashed=true", b.admin, session(5)).Want(200)
	var author string
	if _, err := fmt.Sscanf(created, "%s 0 created", &author); err != nil {
		t.Fatalf("at first: %s", created)
	}
	if got := b.originOf("/api/keys/"+hash, "rate", ""); got != "admin@localhost 0 updated " {
		t.Errorf("rate: %s", got)
	}
	if got := b.originOf("/api/keys/"+hash, `access_rights["a"].versions`, ""); got != created {
		t.Errorf("versions: %s, want %s", got, created)
	}
	if got := b.originOf("/api/keys/"+hash, "quota_max_of_nothing", ""); got != "unset none" {
		t.Errorf("what is not there: %s", got)
	}
	b.Call("GET", "/api/keys/none/origin?path=rate", b.viewer, "").Want(404)
	b.Call("GET", "/api/keys/"+hash+"/origin?path=rate", b.other, "").Want(404)
}
