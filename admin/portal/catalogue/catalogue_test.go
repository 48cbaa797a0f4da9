package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	wholePath  = "/api/portal/catalogue"
	entryPath  = "/api/portal/catalogue/entries"
	configPath = "/api/portal/configuration"
	publicPath = "/api/portal/public/catalogue"
	docPath    = "/api/portal/documentation"
)

// ids returns the ids of the catalogue's entries, by name.
func (b *bench) ids() map[string]string {
	b.t.Helper()
	var w struct {
		APIs []struct{ ID, Name string } `json:"apis"`
	}
	if err := json.Unmarshal(b.Call("GET", wholePath, "viewer", "").Want(200).Body, &w); err != nil {
		b.t.Fatal(err)
	}
	ids := make(map[string]string)
	for _, e := range w.APIs {
		ids[e.Name] = e.ID
	}
	return ids
}

func TestACatalogueLivesItsLife(t *testing.T) {
	b := start(t)
	b.Call("GET", wholePath, "viewer", "").Want(200).Says(`"id":""`, `"org_id":"one"`, `"apis":[]`)
	b.Call("PUT", wholePath, "editor", `{"id":"c","apis":[]}`).Want(404)
	created := b.Call("POST", wholePath, "editor", `{"later":{"n":1.50},"org_id":"two","apis":[
		{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","auth_type":"authToken","fields":{"a":"b"},"own":[1]},
		{"name":"Silver","policy_id":"silver"},{"name":"Open","api_id":"stock","is_keyless":true}]}`).Want(200).Says(`"Meta":null`)
	id := created.Text("Message")
	if created.ETag != `"1"` || len(id) != 32 {
		t.Errorf("created %s with ETag %s", created.Body, created.ETag)
	}
	if again := b.Call("POST", wholePath, "editor", `{"apis":[]}`).Want(409).Says(id); again.ETag != `"1"` {
		t.Errorf("a second catalogue learns ETag %s", again.ETag)
	}
	got := b.Call("GET", wholePath, "viewer", "").Want(200).Says(`"later":{"n":1.50}`, `"org_id":"one"`, `"own":[1]`, `"id":"`+id+`"`)
	if got.ETag != `"1"` {
		t.Errorf("ETag %s", got.ETag)
	}
	b.Call("PUT", wholePath, "editor", string(got.Body), "If-Match", `"1"`).Want(200).Says("Data updated")
	if same := b.Call("GET", wholePath, "viewer", "").Want(200); string(same.Body) != string(got.Body) || same.ETag != `"2"` {
		t.Errorf("what is sent back comes out otherwise: %s, then %s", got.Body, same.Body)
	}
	stale := b.Call("PUT", wholePath, "editor", string(got.Body), "If-Match", `"1"`).Want(409).Says("version 2")
	if stale.ETag != `"2"` {
		t.Errorf("a stale write learns ETag %s", stale.ETag)
	}
	b.Call("PUT", wholePath, "editor", `{"apis":[]}`).Want(400).Says("id: must be that of the catalogue")
	b.Call("PUT", wholePath, "editor", `{"id":"other","apis":[]}`).Want(400).Says("id: must be " + id)
	if audited := b.Count("select count(*) from audit_log where object_kind = 'portal_catalogue' and org_id = 'one' and actor = 'editor@one'"); audited < 3 {
		t.Errorf("%d entries in the audit log", audited)
	}
}

func TestEntriesKeepTheirIDsWhenTheCatalogueIsReplaced(t *testing.T) {
	b := start(t)
	id := b.Call("POST", wholePath, "editor", `{"apis":[{"name":"A","policy_id":"gold"},{"name":"B","policy_id":"gold"},{"name":"C","policy_id":"silver"},{"id":"own","name":"D","policy_id":"silver"}]}`).Want(200).Text("Message")
	before := b.ids()
	version := func(name string) string {
		return b.Call("GET", entryPath+"/"+b.ids()[name], "viewer", "").Want(200).ETag
	}
	// B has changed its place, C its name, A says nothing of its id, D is gone, and E is new.
	b.Call("PUT", wholePath, "editor", fmt.Sprintf(`{"id":%q,"apis":[{"id":%q,"name":"B","policy_id":"gold"},{"name":"E","policy_id":"gold"},{"name":"A","policy_id":"gold"},{"name":"C2","policy_id":"silver"}]}`, id, before["B"])).Want(200)
	after := b.ids()
	if after["B"] != before["B"] || after["A"] != before["A"] || !slices.Contains([]string{before["C"], "own"}, after["C2"]) || len(after) != 4 {
		t.Errorf("ids were %v and are %v", before, after)
	}
	if after["E"] == "" || slices.Contains([]string{before["A"], before["B"], before["C"], "own"}, after["E"]) {
		t.Errorf("the new entry has the id %q of %v", after["E"], before)
	}
	if got := version("B") + version("A") + version("C2"); got != `"1""1""2"` {
		t.Errorf("versions %s: what only moved stays as it was", got)
	}
	list := b.Call("GET", entryPath, "viewer", "").Want(200)
	var names struct{ Data []struct{ Name string } }
	if err := json.Unmarshal(list.Body, &names); err != nil || fmt.Sprint(names.Data) != "[{B} {E} {A} {C2}]" {
		t.Errorf("order %v, %v", names, err)
	}
	b.Call("PUT", wholePath, "editor", fmt.Sprintf(`{"id":%q,"apis":[{"id":"x","name":"A","policy_id":"gold"},{"id":"x","name":"B","policy_id":"gold"}]}`, id)).Want(400).Says(`apis[1].id: \"x\" is there already`)
	b.Call("POST", wholePath, "two:editor", fmt.Sprintf(`{"apis":[{"id":%q,"name":"A","policy_id":"foreign"}]}`, after["A"])).Want(409).Says("same ID")
	b.Call("GET", wholePath, "two:viewer", "").Want(200).Says(`"apis":[]`, `"id":""`)
}

func TestAnEntryLivesItsLife(t *testing.T) {
	b := start(t)
	r := b.Call("POST", entryPath, "editor", `{"name":"Gold","show":true,"api_id":"orders","policy_id":"gold","own":1.0}`).Want(201)
	id := r.Text("Message")
	if r.ETag != `"1"` {
		t.Errorf("ETag %s", r.ETag)
	}
	got := b.Call("GET", entryPath+"/"+id, "viewer", "").Want(200).Says(`"own":1.0`, `"id":"`+id+`"`)
	b.Call("PUT", entryPath+"/"+id, "editor", strings.Replace(string(got.Body), "Gold", "Golden", 1), "If-Match", `"1"`).Want(200)
	if stale := b.Call("PUT", entryPath+"/"+id, "editor", string(got.Body), "If-Match", `"1"`).Want(409); stale.ETag != `"2"` {
		t.Errorf("a stale write learns ETag %s", stale.ETag)
	}
	b.Call("PUT", entryPath+"/"+id, "editor", `{"id":"other","name":"A","policy_id":"gold"}`).Want(400).Says("id: must be " + id)
	b.Call("PUT", entryPath+"/nothing", "editor", string(`{"name":"A","policy_id":"gold"}`)).Want(404)
	b.Call("DELETE", entryPath+"/nothing", "editor", "").Want(404).Says("for deletion")
	if storedCatalogue := b.Call("GET", wholePath, "viewer", "").Want(200).Says("Golden"); storedCatalogue.ETag != `"2"` {
		t.Errorf("changes of entries count for the catalogue: ETag %s", storedCatalogue.ETag)
	}
	b.Call("DELETE", entryPath+"/"+id, "editor", "", "If-Match", `"1"`).Want(409)
	b.Call("DELETE", entryPath+"/"+id, "editor", "", "If-Match", `"2"`).Want(200).Says("Data deleted")
	b.Call("GET", entryPath+"/"+id, "viewer", "").Want(404)
	if n := b.Count("select count(*) from audit_log where object_kind = 'catalogue_entry' and object_id = $1", id); n != 3 {
		t.Errorf("%d entries in the audit log", n)
	}
}

func TestEntriesAreListed(t *testing.T) {
	b := start(t)
	for i := range 25 {
		b.Call("POST", entryPath, "editor", fmt.Sprintf(`{"name":"Entry %02d%%_","show":%v,"policy_id":"gold","api_id":%q}`, i, i%2 == 0, []string{"orders", "stock"}[i%2])).Want(201)
	}
	b.Call("POST", entryPath, "editor", `{"name":"not yet","show":true,"policy_id":"draft"}`).Want(201)
	names := func(query string) (got []string, pages float64) {
		t.Helper()
		var list struct {
			Data  []struct{ Name string }
			Pages float64
		}
		if err := json.Unmarshal(b.Call("GET", entryPath+query, "viewer", "").Want(200).Body, &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Data {
			got = append(got, e.Name)
		}
		return got, list.Pages
	}
	for query, want := range map[string]struct {
		n     int
		first string
		pages float64
	}{
		"": {10, "Entry 00%_", 3}, "?p=3": {6, "Entry 20%_", 3}, "?p=4": {0, "", 3}, "?p=2&page_size=5": {5, "Entry 05%_", 6},
		"?q=ENTRY%200": {10, "Entry 00%_", 1}, "?q=entry%2001%25_": {1, "Entry 01%_", 1}, "?q=%25": {0, "", 0}, "?q=entry%2001%25%25": {0, "", 0},
		"?show=false": {10, "Entry 01%_", 2}, "?show=true&api_id=stock": {0, "", 0}, "?policy_id=draft": {1, "not yet", 1}, "?api_id=stock&page_size=500": {12, "Entry 01%_", 1},
		"?policy_id=gold%27--": {0, "", 0},
	} {
		got, pages := names(query)
		if len(got) != want.n || len(got) > 0 && got[0] != want.first || pages != want.pages {
			t.Errorf("%s: %q, %v pages", query, got, pages)
		}
	}
	for _, query := range []string{"?p=x", "?p=-1", "?page_size=0", "?page_size=501", "?page_size=1e3", "?show=maybe", "?p=99999999999"} {
		b.Call("GET", entryPath+query, "viewer", "").Want(400)
	}
	b.Call("GET", entryPath+"?policy_id=draft", "viewer", "").Says("the policy draft is in the state draft, not active")
	b.publish("one", deletePolicy("gold"))
	b.publish("one", deleteAPI("stock"))
	b.Call("GET", entryPath+"?show=false&page_size=1", "viewer", "").Says("show is false", "the API stock does not exist", "the policy gold does not exist")
}

func TestWhatIsWrongWithAnEntryIsNamed(t *testing.T) {
	b := start(t)
	id := b.Call("POST", wholePath, "editor", `{"apis":[]}`).Want(200).Text("Message")
	long := strings.Repeat("x", 40<<10)
	for body, says := range map[string]string{
		`{}`: "name: must be", `{"name":"a"}`: "policy_id: must be the policy", `{"name":"a","is_keyless":true}`: "api_id: must be the API",
		`{"name":"a","policy_id":"nothing"}`: "policy_id: names a policy that does not exist", `{"name":"a","policy_id":"foreign"}`: "policy_id: names a policy that does not exist",
		`{"name":"a","policy_id":"gold","api_id":"theirs"}`: "api_id: names an API that does not exist", `{"name":"a","policy_id":"gold","documentation":"x"}`: "documentation: names a document that does not exist",
		`{"name":"a","policy_id":"gold","auth_type":"hmac"}`: "auth_type: must be authToken, basic or oauth", `{"name":"a\nb","policy_id":"gold"}`: "name: must be one line",
		`{"name":3,"policy_id":"gold"}`: "name: must be a string", `{"name":"a","policy_id":"gold","show":"yes"}`: "show: must be true or false",
		`{"name":"a","policy_id":"gold","fields":{"x":1}}`: "fields", `{"name":"a","policy_id":"gold","long_description":"` + long + `"}`: "long_description: is 40960 bytes",
		`{"name":"` + long[:201] + `","policy_id":"gold"}`: "name: is 201 bytes", `{"id":"../x","name":"a","policy_id":"gold"}`: "id: must be 1 to 128 letters",
		`{"name":"a","policy_id":"gold","config":{"override":true,"redirect_on_key_request":true}}`: "config.redirect_to: must be set",
		`{"name":"a","policy_id":"gold","own":"` + strings.Repeat(long, 4) + `"}`:                   "at most 131072",
		`[]`: "must be an object", `{`: "", ``: "", `{"name":"a","name":"b","policy_id":"gold"}`: "", `{"name":"a","policy_id":"gold"} x`: "",
	} {
		b.Call("POST", entryPath, "editor", body).Want(400).Says(says)
		if strings.HasPrefix(body, "{") && strings.HasSuffix(body, "}") && says != "" {
			storedCatalogue := fmt.Sprintf(`{"id":%q,"apis":[{"name":"fine","policy_id":"gold"},%s]}`, id, body)
			says = "apis[1]." + says
			if strings.HasPrefix(says, "apis[1].at most") {
				says = "apis[1]: is"
			}
			b.Call("PUT", wholePath, "editor", storedCatalogue).Want(400).Says(says)
		}
	}
	for _, body := range []string{`[]`, `{"apis":{}}`, `{"apis":[1]}`, `{"apis":[{"name":"a","policy_id":"gold"}`, `null`, `{"id":3}`} {
		b.Call("PUT", wholePath, "editor", body).Want(400)
	}
	many := `{"id":"` + id + `","apis":[` + strings.TrimSuffix(strings.Repeat(`{},`, 5001), ",") + `]}`
	b.Call("PUT", wholePath, "editor", many).Want(400).Says("apis: has 5001 entries; at most 5000 are allowed")
	if n := b.Count("select count(*) from catalogue_entries"); n != 0 {
		t.Errorf("%d entries came of it", n)
	}
}

func TestTextComesBackAsText(t *testing.T) {
	b := start(t)
	const text = `'; drop table catalogue_entries; -- "\" % _ $1 $$ \' <script>alert(1)</script> ☃`
	quoted, _ := json.Marshal(text)
	q := string(quoted)
	id := b.Call("POST", entryPath, "editor", `{"name":`+q+`,"show":true,"short_description":`+q+`,"long_description":`+q+`,"version":`+q+`,"policy_id":"gold","fields":{`+q+`:`+q+`},`+q+`:`+q+`}`).Want(201).Text("Message")
	for path, who := range map[string]string{entryPath + "/" + id: "viewer", publicPath + "/" + id: ""} {
		e := b.Call("GET", path, who, "").Want(200).Object()
		for _, member := range []string{"name", "short_description", "long_description", "version"} {
			if e[member] != text {
				t.Errorf("%s: %s is %v", path, member, e[member])
			}
		}
		if fields, _ := e["fields"].(map[string]any); fields[text] != text {
			t.Errorf("%s: fields %v", path, fields)
		}
	}
	for _, path := range []string{entryPath + "/" + "';--", publicPath + "/" + "%27;--", entryPath + "/%00", entryPath + "/%zz"} {
		who := "viewer"
		b.Call("GET", path, who, "").Want(404)
	}
	b.Call("POST", entryPath, "editor", `{"name":"a","long_description":"\u0000","policy_id":"gold"}`).Want(400).Says("long_description: must be text without the character U+0000")
	b.Call("POST", entryPath, "editor", `{"name":"a","own":"\u0000","policy_id":"gold"}`).Want(201) // JSON that is kept as it is
}

func TestOrganisationsDoNotSeeEachOthersCatalogues(t *testing.T) {
	b := start(t)
	id := b.Call("POST", entryPath, "editor", `{"name":"A","show":true,"policy_id":"gold"}`).Want(201).Text("Message")
	doc := b.document("markdown", "# hello", "")
	b.Call("POST", configPath, "editor", `{"email":"a@example.com"}`).Want(200)
	for _, c := range []struct{ method, path, body string }{
		{"GET", entryPath + "/" + id, ""},
		{"PUT", entryPath + "/" + id, `{"name":"A","policy_id":"foreign"}`},
		{"DELETE", entryPath + "/" + id, ""},
		{"GET", docPath + "/" + doc, ""},
		{"GET", docPath + "/" + doc + "/preview", ""},
		{"DELETE", docPath + "/" + doc, ""},
		{"PUT", docPath + "/" + doc, `{"doc_type":"markdown","documentation":"YQ=="}`},
		{"GET", publicPath + "/" + id + "?org_id=two", ""},
	} {
		b.Call(c.method, c.path, "two:admin", c.body).Want(404)
	}
	b.Call("POST", entryPath, "two:editor", `{"name":"A","policy_id":"foreign","documentation":"`+doc+`"}`).Want(400).Says("documentation: names a document")
	for _, path := range []string{entryPath, docPath, publicPath + "?org_id=two"} {
		b.Call("GET", path, "two:viewer", "").Want(200).Says(`"Data":[]`, `"Pages":0`)
	}
	b.Call("GET", configPath, "two:viewer", "").Want(200).Says(`"id":""`).Hides("a@example.com")
}

func TestWhoMayWhat(t *testing.T) {
	b := start(t)
	ranks := []string{"viewer", "approver", "editor", "admin"}
	for _, r := range b.Routes {
		path := strings.ReplaceAll(r.Path, "{id}", "x")
		open := strings.HasPrefix(r.Path, "/api/portal/public/")
		for _, who := range []string{"", "slp_one", "gateway", "viewer", "approver", "editor", "admin"} {
			refused := b.Call(r.Method, path, who, "").Status
			least := "editor"
			if r.Method == "GET" {
				least = "viewer"
			}
			may := open || slices.Index(ranks, who) >= slices.Index(ranks, least)
			want := 403
			if who == "" {
				want = 401
			}
			if got := refused == want; got == may {
				t.Errorf("%s %s as %q: %d", r.Method, r.Path, who, refused)
			}
		}
	}
}

func TestOfTwoWritersOneWins(t *testing.T) {
	b := start(t)
	race := func(n int, call func(i int) int) (won int) {
		var done sync.WaitGroup
		statuses := make([]int, n)
		for i := range n {
			done.Go(func() { statuses[i] = call(i) })
		}
		done.Wait()
		for _, status := range statuses {
			switch status {
			case 200, 201:
				won++
			case 409:
			default:
				t.Errorf("status %d", status)
			}
		}
		return won
	}
	if won := race(8, func(int) int {
		return b.Call("POST", wholePath, "editor", `{"id":"c","apis":[{"name":"A","policy_id":"gold"}]}`).Status
	}); won != 1 {
		t.Errorf("%d catalogues were made", won)
	}
	if won := race(8, func(i int) int {
		return b.Call("PUT", wholePath, "editor", fmt.Sprintf(`{"id":"c","apis":[{"name":"B%d","policy_id":"gold"}]}`, i), "If-Match", `"1"`).Status
	}); won != 1 {
		t.Errorf("%d replaced the same version", won)
	}
	if won := race(8, func(int) int { return b.Call("POST", configPath, "editor", `{}`).Status }); won != 1 {
		t.Errorf("%d configurations were made", won)
	}
	if won := race(20, func(i int) int {
		return b.Call("POST", entryPath, "editor", fmt.Sprintf(`{"name":"N%d","policy_id":"gold"}`, i)).Status
	}); won != 20 {
		t.Errorf("%d entries were added", won)
	}
	if n := b.Count("select count(distinct position) from catalogue_entries"); n != 21 {
		t.Errorf("%d places for 21 entries", n)
	}
}

func TestAThousandEntriesAreNoTrouble(t *testing.T) {
	b := start(t)
	entries := make([]string, 1000)
	for i := range entries {
		entries[i] = fmt.Sprintf(`{"name":"Entry %d","show":true,"api_id":"orders","policy_id":"gold","long_description":%q}`, i, strings.Repeat("text ", 400))
	}
	body := func(id string) string { return fmt.Sprintf(`{"id":%q,"apis":[%s]}`, id, strings.Join(entries, ",")) }
	id := b.Call("POST", wholePath, "editor", body("")).Want(200).Text("Message")
	b.Call("PUT", wholePath, "editor", body(id)).Want(200)
	slices.Reverse(entries)
	b.Call("PUT", wholePath, "editor", body(id)).Want(200)
	sent := b.Call("GET", wholePath, "viewer", "").Want(200)
	b.Call("PUT", wholePath, "editor", string(sent.Body), "If-Match", sent.ETag).Want(200)
	if n := b.Count("select count(*) from catalogue_entries where version = 1"); n != 1000 {
		t.Errorf("%d of 1,000 entries are as they were", n)
	}
	b.Call("GET", publicPath+"?p=5&page_size=200", "", "").Want(200).Says(`"Pages":5`, "Entry 0")
	if n := b.Count("select max(octet_length(after::text)) from audit_log where object_kind = 'portal_catalogue' and action = 'updated' and id > (select min(id) + 1 from audit_log where object_kind = 'portal_catalogue')"); n > 1000 {
		t.Errorf("the audit log repeats %d bytes of what did not change", n)
	}
	entries = append(entries, `{"name":"big","policy_id":"gold","own":"`+strings.Repeat("x", 120<<10)+`"}`)
	for len(strings.Join(entries, "")) < maxBytes {
		entries = append(entries, entries[1000])
	}
	b.Call("PUT", wholePath, "editor", body(id)).Want(400).Says("bytes together")
}

func TestTheDatabaseGoesAway(t *testing.T) {
	b := start(t)
	b.Call("POST", wholePath, "editor", `{"apis":[]}`).Want(200)
	b.store.Close()
	for _, c := range []struct{ method, path, who, body string }{
		{"GET", wholePath, "viewer", ""},
		{"POST", wholePath, "editor", `{}`},
		{"PUT", wholePath, "editor", `{"id":"c"}`},
		{"GET", entryPath, "viewer", ""},
		{"POST", entryPath, "editor", `{"name":"A","policy_id":"gold"}`},
		{"GET", configPath, "viewer", ""},
		{"PUT", configPath, "editor", `{}`},
		{"GET", publicPath, "", ""},
		{"GET", "/api/portal/public/configuration", "", ""},
		{"GET", docPath, "viewer", ""},
		{"POST", docPath, "editor", `{"doc_type":"markdown","documentation":"YQ=="}`},
	} {
		b.Call(c.method, c.path, c.who, c.body).Want(503).Says(`"Status":"Error"`)
	}
}
