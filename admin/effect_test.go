package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/admin/apply"
	counts "github.com/sluicegate/sluice/internal/usage"
)

// effectOf returns what a batch would do.
func (b *bench) effectOf(batch string) (e apply.Effect) {
	b.t.Helper()
	if err := json.Unmarshal(b.Call("POST", "/api/config/effect", b.editor, batch).Want(200).Body, &e); err != nil {
		b.t.Fatal(err)
	}
	return e
}

// said returns the rights of an effect, one on a line.
func said(e *apply.Effect) string {
	var all []string
	for _, r := range e.Rights {
		all = append(all, strings.Join([]string{r.Direction, r.Policy, r.API, r.Text}, "|"))
	}
	return strings.Join(all, "\n")
}

func TestAnEffectNamesWhatDiffersAndWhomItConcerns(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, `{"api_id":"a","name":"a","graphql":{"enabled":true,"execution_mode":"proxyOnly",
		"schema":"type Query { me: User } type User { id: ID email: String phone: String }"},"proxy":{"listen_path":"/a/","target_url":"http://up.example"}}`).Want(200)
	b.createAPI(b.editor, "c", "/c/")
	gold := func(rest string) string { return `{"id":"gold","name":"gold",` + rest + `}` }
	b.Call("POST", "/api/portal/policies", b.editor, gold(`"rate":100,"per":60,"access_rights":{"a":{"api_id":"a","versions":["Default"],"restricted_types":[{"name":"User","fields":["phone"]}]}}`)).Want(200)
	hash := b.Call("POST", "/api/keys", b.editor, `{"alias":"acme","apply_policies":["gold"]}`).Want(200).Text("key_hash")
	b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"c":{"api_id":"c","versions":["Default"]}}}`).Want(200)
	b.hand(1, counts.Row{API: "a", Key: hash, Status: 200, Hits: 3}).Want(200)
	before := b.content()

	e := b.effectOf(`{"policies":[` + gold(`"rate":20,"per":60,"max_query_depth":3,"access_rights":{
		"a":{"api_id":"a","versions":["Default"],"restricted_types":[{"name":"User","fields":["email"]}],"limit":{"rate":5,"per":60}},
		"c":{"api_id":"c","versions":["Default"],"allowed_urls":[{"url":"/x","methods":["GET"]}]}}`) + `]}`)
	want := `lost|gold||rate limit lowered from 100 to 20 calls in 60 s
lost|gold||GraphQL depth limit added: 3 levels
lost|gold|a|may no longer select User.email
gained|gold|a|may select User.phone
lost|gold|a|rate limit lowered from 100 to 5 calls in 60 s
gained|gold|c|may call the API`
	if got := said(&e); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(e.Objects) != 1 || e.Objects[0].Kind != "policy" || e.Objects[0].Action != "updated" || e.Base == 0 || e.Revision <= e.Base || !e.DryRun {
		t.Errorf("%+v", e)
	}
	if text := fmt.Sprint(e.Objects[0].Changes); !strings.Contains(text, "{rate 100 20") || !strings.Contains(text, "max_query_depth") {
		t.Errorf("%s", text)
	}
	if e.Whom.Keys != 1 || e.Whom.Called != 1 || len(e.Whom.Some) != 1 || e.Whom.Some[0] != (apply.ConcernedKey{Hash: hash, Alias: "acme", Called: true}) {
		t.Errorf("%+v", e.Whom)
	}
	if b.content() != before {
		t.Error("something was stored")
	}
}

// A limit that is raised, lowered, added or removed reads as that.
func TestAnEffectSaysHowLimitsDiffer(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/")
	policy := func(limits, access string) string {
		return `{"id":"p","name":"p",` + limits + `"access_rights":{"a":{"api_id":"a"` + access + `}}}`
	}
	for _, c := range []struct{ before, after, want string }{
		{`"rate":100,"per":60,`, `"rate":200,"per":60,`, "gained|p||rate limit raised from 100 to 200 calls in 60 s"},
		{`"rate":200,"per":60,`, `"rate":1,"per":60,`, "lost|p||rate limit lowered from 200 to 1 call in 60 s"},
		{``, `"rate":5,"per":1,`, "lost|p||rate limit added: 5 calls in 1 s"},
		{`"rate":5,"per":1,`, `"rate":-1,`, "gained|p||rate limit removed: it was 5 calls in 1 s"},
		{`"rate":100,"per":60,`, `"rate":200,"per":120,`, "gained|p||rate limit changed from 100 calls in 60 s to 200 calls in 120 s"},
		{`"rate":100,"per":60,`, `"rate":2,"per":1,`, "lost|p||rate limit changed from 100 calls in 60 s to 2 calls in 1 s"},
		{`"quota_max":1000000,"quota_renewal_rate":3600,`, `"quota_max":2000000,"quota_renewal_rate":3600,`, "gained|p||quota raised from 1000000 to 2000000 calls in 3600 s"},
		{`"quota_max":10,"quota_renewal_rate":3600,`, `"quota_max":10,"quota_renewal_rate":60,`, "gained|p||quota changed from 10 calls in 3600 s to 10 calls in 60 s"},
		{`"quota_max":10,`, `"quota_max":10,"quota_renewal_calendar":"day",`, "lost|p||quota changed from 10 calls in all to 10 calls per calendar day"},
		{`"max_query_depth":5,`, `"max_query_depth":3,`, "lost|p||GraphQL depth limit lowered from 5 to 3 levels"},
		{`"max_query_depth":3,`, `"max_query_depth":-1,`, "gained|p||GraphQL depth limit removed: it was 3 levels"},
		{`"rate":7,"per":1,`, `"rate":7,"per":1,`, ""},
	} {
		b.Call("POST", "/api/config/apply", b.editor, `{"policies":[`+policy(c.before, "")+`]}`).Want(200)
		e := b.effectOf(`{"policies":[` + policy(c.after, "") + `]}`)
		if got := said(&e); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
	for _, c := range []struct{ before, after, want string }{
		{``, `,"versions":["v1"]`, "lost|p|a|may call only version v1, no longer any version"},
		{`,"versions":["v1"]`, ``, "gained|p|a|may call any version, no longer only version v1"},
		{`,"versions":["v1"]`, `,"versions":["v2"]`, "lost|p|a|may no longer call version v1\ngained|p|a|may call version v2"},
		{``, `,"allowed_urls":[{"url":"/x","methods":["GET"]}]`, "lost|p|a|may call only GET /x, no longer any path"},
		{`,"allowed_urls":[{"url":"/x","methods":["GET"]}]`, ``, "gained|p|a|may call any path, no longer only GET /x"},
	} {
		b.Call("POST", "/api/config/apply", b.editor, `{"policies":[`+policy("", c.before)+`]}`).Want(200)
		e := b.effectOf(`{"policies":[` + policy("", c.after) + `]}`)
		if got := said(&e); got != c.want {
			t.Errorf("from %s to %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

func TestARevisionNamesTheKeysThatItConcerns(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/")
	b.createAPI(b.editor, "other", "/other/")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	hash := b.Call("POST", "/api/keys", b.editor, `{"alias":"acme","apply_policies":["p"]}`).Want(200).Text("key_hash")
	concerned := func(revision string) (w apply.Whom) {
		t.Helper()
		if err := json.Unmarshal(b.Call("GET", "/api/config/revisions/"+revision, b.viewer, "").Want(200).Body, &w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, revision := range []string{"1/concerned", "3/concerned", "3/concerned?against=1", "2/concerned?against=3"} { // its API, its policy
		if w := concerned(revision); w.Keys != 1 || len(w.Some) != 1 || w.Some[0] != (apply.ConcernedKey{Hash: hash, Alias: "acme"}) {
			t.Errorf("revision %s: %+v", revision, w)
		}
	}
	if w := concerned("2/concerned"); w.Keys != 0 || w.Some == nil {
		t.Errorf("of another API: %+v", w)
	}
	b.Call("GET", "/api/config/revisions/9/concerned", b.viewer, "").Want(404)
	b.Call("GET", "/api/config/revisions/3/concerned?against=x", b.viewer, "").Want(400)
}

func TestAnEffectOfAPIs(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	for range 3 {
		b.Call("POST", "/api/keys", b.editor, `{"apply_policies":["p"]}`).Want(200)
	}
	moved := strings.Replace(anAPI("a", "/b/"), `{`, `{"active":false,`, 1)
	e := b.effectOf(`{"apis":[` + moved + `,` + anAPI("new", "/new/") + `]}`)
	for _, part := range []string{"lost||a|the API is switched off", "lost||a|calls to /a/ no longer reach the API", "gained||a|the API is served at /b/", "gained||new|the API is served at /new/"} {
		if !strings.Contains(said(&e), part) {
			t.Errorf("%q is not in\n%s", part, said(&e))
		}
	}
	if e.Whom.Keys != 3 || e.Whom.Called != 0 {
		t.Errorf("%+v", e.Whom)
	}
	if e := b.effectOf(`{}`); len(e.Objects) != 0 || len(e.Rights) != 0 || e.Whom.Keys != 0 {
		t.Errorf("of nothing: %+v", e)
	}
	e = b.effectOf(`{"delete":{"apis":["a"],"policies":["p"]}}`)
	if !strings.Contains(said(&e), "no longer served") || !strings.Contains(said(&e), "keys that have no other policy are refused") {
		t.Errorf("%s", said(&e))
	}
	b.Call("POST", "/api/config/effect", b.editor, `{"expect_revision":1}`).Want(409)
	b.Call("POST", "/api/config/effect", b.editor, `{"delete":{"apis":["none"]}}`).Want(404)
	b.Call("POST", "/api/config/effect", b.editor, `{"policies":[{"id":"x","access_rights":{"none":{}}}]}`).Want(400)
	b.Call("POST", "/api/config/effect", b.viewer, `{}`).Want(403)
}
