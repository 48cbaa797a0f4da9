package credentials_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestRecordsKeepWhatTheySaidWhateverItIs(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	odd := `'; DROP TABLE key_requests; -- % _ \\ " <script> é 日本`
	quoted, _ := json.Marshal(odd)
	sent := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","apply_policies":["silver","gold"],"version":"v2","for_api":%s,
		"fields":{"oauth_use_case":%s,"n":1.50,"deep":{"a":[1,null]}},"oauth_info":{"redirect_uri":%s,"more":1},"later":{"kept":[1.50]}}`, dev, quoted, quoted, quoted)
	id := b.Call("POST", "/api/portal/requests", b.approver, sent).Want(200).Text("Message")
	r := b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200)
	r.Says(`"later":{"kept":[1.50]}`, `"n":1.50`, `"more":1`, `"apply_policies":["silver","gold"]`, `"version":"v2"`, `"id":"`+id+`"`, `"org_id":"`+b.org+`"`)
	got := r.Object()
	if got["for_api"] != odd || got["fields"].(map[string]any)["oauth_use_case"] != odd || got["oauth_info"].(map[string]any)["redirect_uri"] != odd {
		t.Errorf("texts changed: %s", r.Body)
	}
	// What is read can be written, and stays the same.
	b.Call("PUT", "/api/portal/requests/"+id, b.approver, string(r.Body)).Want(200).Says(id)
	again := b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200)
	if !reflect.DeepEqual(again.Object(), got) {
		t.Errorf("was %s\nis  %s", r.Body, again.Body)
	}
	b.Call("GET", "/api/portal/requests?q="+"%27%25_", b.viewer, "").Want(200).Says(`"Data":[]`, `"Pages":0`)
}

func TestRecordsHaveTheirDeveloperAndEntry(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	entry := b.entry("gold", "")
	hash := hashOf(b.approve(b.request(dev, "gold")))
	id := b.request(dev, "silver") // which nothing offers
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(
		`"portal_developer":{"id":"`+dev+`"`, `"ada@`, `"keys":{"`+hash+`":["gold"]}`, `"subscriptions":{"gold":"`+hash+`"}`, `"catalogue_entry":null`,
	).Hides("last_login_date", "password_updated", "0001-01-01", "decided_at")
	offered := `"catalogue_entry":{"id":"` + entry + `","name":"Entry of gold"`
	b.Call("GET", "/api/portal/requests?for_plan=gold", b.viewer, "").Want(200).Says(offered, `"decided_at":"2`)
	b.Call("GET", "/api/portal/me/requests", session, "").Want(200).Says(offered, `"portal_developer":{"id":"`+dev+`"`)
	b.Call("PUT", "/api/portal/catalogue/entries/"+entry, b.editor, `{"name":"Hidden","show":false,"api_id":"orders","policy_id":"gold"}`).Want(200)
	b.Call("GET", "/api/portal/me/requests", session, "").Want(200).Hides("Hidden")
	b.Call("GET", "/api/portal/requests?for_plan=gold", b.viewer, "").Want(200).Says("Hidden")
}

func TestListsThatWereLeftOutComeBackEmpty(t *testing.T) {
	b := start(t)
	id := b.request(b.developer("ada"), "gold")
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(`"apply_policies":[]`, `"remove_policies":[]`, `"catalogues":[]`, `"fields":{}`)
	b.Call("PUT", "/api/portal/requests/"+id, b.approver, `{"for_plan":"gold","version":"v2","remove_policies":null,"catalogues":[{"policy_id":"gold","config":{}}]}`).Want(200)
	b.Call("GET", "/api/portal/requests?state=pending", b.viewer, "").Want(200).Says(
		`"remove_policies":[]`, `"signup_fields":[],"key_request_fields":[]`, `"redirect_hosts":[]`)

	entry := b.entry("gold", `"config":{"override":true}`)
	shown := b.Call("GET", "/api/portal/catalogue/entries/"+entry, b.viewer, "").Want(200)
	shown.Says(`"fields":{}`, `"key_request_fields":[]`)
	for _, path := range []string{"/api/portal/catalogue", "/api/portal/catalogue/entries", "/api/portal/configuration", "/api/portal/developers"} {
		if r := b.Call("GET", path, b.viewer, "").Want(200); strings.Contains(string(r.Body), "null") {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
}

func TestPUTAndUPDATEReplaceARequestThatIsPending(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	path := "/api/portal/requests/" + id
	if tag := b.Call("GET", path, b.viewer, "").Header.Get("ETag"); tag != `"1"` {
		t.Errorf("ETag %q", tag)
	}
	changed := fmt.Sprintf(`{"by_user":%q,"for_plan":"silver","version":"v2"}`, dev)
	for i, method := range []string{"PUT", "UPDATE"} {
		r := b.Call(method, path, b.approver, changed, "If-Match", fmt.Sprintf(`"%d"`, i+1)).Want(200)
		if r.Text("Message") != id || r.Header.Get("ETag") != fmt.Sprintf(`"%d"`, i+2) {
			t.Errorf("%s: %s %s", method, r.Header.Get("ETag"), r.Body)
		}
	}
	stale := b.Call("PUT", path, b.approver, changed, "If-Match", `"2"`).Want(409)
	if stale.Header.Get("ETag") != `"3"` {
		t.Errorf("ETag %q", stale.Header.Get("ETag"))
	}
	b.Call("DELETE", path, b.approver, "", "If-Match", `"1"`).Want(409)
	b.Call("PUT", path, b.approver, `{"id":"another","for_plan":"gold","version":"v2"}`).Want(400).Says("id: must be " + id)
	if s := b.session(b.approve(id)); fmt.Sprint(s.ApplyPolicies) != "[silver]" {
		t.Errorf("policies %v", s.ApplyPolicies)
	}
	b.Call("PUT", path, b.approver, changed).Want(409).Says("approved, at version 4")
	b.Call("UPDATE", path, b.approver, changed).Want(409)
	b.Call("PUT", "/api/portal/requests/unknown", b.approver, changed).Want(404)
}

func TestADeletedRequestLeavesItsKey(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	pending, approved := b.request(dev, "gold"), b.request(dev, "gold")
	key := b.approve(approved)
	for _, id := range []string{pending, approved} {
		b.Call("DELETE", "/api/portal/requests/"+id, b.approver, "").Want(200).Says("Data deleted", `"Meta":null`)
		b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(404)
		b.Call("DELETE", "/api/portal/requests/"+id, b.approver, "").Want(404)
		b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(404)
	}
	b.session(key)
}

func TestListsAreFilteredAndPaged(t *testing.T) {
	b := start(t)
	ada, bob := b.developer("ada"), b.developer("bob")
	var ids []string
	for i := range 7 {
		ids = append(ids, b.request([]string{ada, bob}[i%2], []string{"gold", "silver"}[i/4]))
	}
	b.approve(ids[0])
	b.Call("PUT", "/api/portal/requests/reject/"+ids[1], b.approver, "").Want(200)
	for _, c := range []struct {
		query string
		want  []int
		pages int
	}{
		{"", []int{6, 5, 4, 3, 2, 1, 0}, 1},
		{"page_size=3", []int{6, 5, 4}, 3},
		{"page_size=3&p=0", []int{6, 5, 4}, 3},
		{"page_size=3&p=3", []int{0}, 3},
		{"page_size=3&p=9", nil, 3},
		{"p=-1&page_size=3", []int{6, 5, 4, 3, 2, 1, 0}, 1},
		{"approved=true", []int{0}, 1},
		{"approved=false", []int{6, 5, 4, 3, 2, 1}, 1},
		{"approved=false&page_size=2&p=3", []int{2, 1}, 3},
		{"state=pending", []int{6, 5, 4, 3, 2}, 1},
		{"state=rejected", []int{1}, 1},
		{"by_user=" + ada, []int{6, 4, 2, 0}, 1},
		{"by_user=" + ada + "&approved=false", []int{6, 4, 2}, 1},
		{"by_user=" + ada + "&for_plan=gold&state=pending", []int{2}, 1},
		{"for_plan=silver", []int{6, 5, 4}, 1},
		{"for_plan=gold&approved=false", []int{3, 2, 1}, 1},
		{"q=BOB", []int{5, 3, 1}, 1},
		{"q=bob&state=pending", []int{5, 3}, 1},
		{"q=" + ids[4], []int{4}, 1},
		{"q=" + ids[4] + "&state=approved", nil, 0},
		{"q=nobody", nil, 0},
		{"by_user=nobody", nil, 0},
	} {
		r := b.Call("GET", "/api/portal/requests?"+c.query, b.viewer, "").Want(200)
		var got []int
		for _, one := range r.Data() {
			for i, id := range ids {
				if one["id"] == id {
					got = append(got, i)
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || r.Object()["Pages"] != float64(c.pages) {
			t.Errorf("%s: %v of %v pages, want %v of %d", c.query, got, r.Object()["Pages"], c.want, c.pages)
		}
	}
	for _, query := range []string{"p=x", "page_size=0", "page_size=501", "page_size=-1", "approved=maybe", "state=draft", "approved=true&state=approved", "p=99999999999"} {
		b.Call("GET", "/api/portal/requests?"+query, b.viewer, "").Want(400)
	}
}

// manyFields is an object with n members.
func manyFields(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"f%d":%d`, i, i)
	}
	return "{" + strings.Join(members, ",") + "}"
}

func TestWrongRequestsAreNamed(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	b.Exec("insert into developers (id, org_id, email) values ('theirs', 'second', 'x@example.com')")
	b.Exec("insert into policies (id, org_id, name, state, apis, body) values ('foreign', 'second', 'foreign', 'active', '{}', '{}')")
	base := fmt.Sprintf(`"by_user":%q,"version":"v2"`, dev)
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"no body":                {"", 400, "empty"},
		"no JSON":                {`{"by_user":`, 400, ""},
		"a list":                 {`[]`, 400, ""},
		"wrong type":             {`{"by_user":7}`, 400, "by_user"},
		"wrong list":             {`{"apply_policies":"gold"}`, 400, "apply_policies"},
		"too large":              {fmt.Sprintf(`{%s,"for_plan":"gold","more":%q}`, base, strings.Repeat("x", 70<<10)), 413, "65536"},
		"nobody":                 {`{"for_plan":"gold","version":"v2"}`, 400, "by_user: must be"},
		"unknown developer":      {`{"by_user":"nobody","for_plan":"gold","version":"v2"}`, 400, "by_user: developer"},
		"foreign developer":      {`{"by_user":"theirs","for_plan":"gold","version":"v2"}`, 400, "by_user: developer"},
		"no policy":              {`{` + base + `}`, 400, "for_plan: must"},
		"unknown plan":           {`{` + base + `,"for_plan":"lead"}`, 400, "for_plan: policy"},
		"foreign plan":           {`{` + base + `,"for_plan":"foreign"}`, 400, "for_plan: policy"},
		"unknown policy":         {`{` + base + `,"apply_policies":["gold","lead"]}`, 400, "apply_policies: policy"},
		"twice":                  {`{` + base + `,"apply_policies":["gold","gold"]}`, 400, "apply_policies[1]"},
		"empty":                  {`{` + base + `,"apply_policies":[""]}`, 400, "apply_policies[0]"},
		"many":                   {`{` + base + `,"apply_policies":[` + strings.Repeat(`"gold",`, 50) + `"gold"]}`, 400, "apply_policies: names 51"},
		"approved already":       {`{` + base + `,"for_plan":"gold","approved":true}`, 400, "approved: must be false"},
		"old without entry":      {fmt.Sprintf(`{"by_user":%q,"for_plan":"lead"}`, dev), 400, "for_plan: policy"},
		"short secret":           {`{` + base + `,"for_plan":"gold","jwt_secret":"short"}`, 400, "jwt_secret: must"},
		"no certificate":         {`{` + base + `,"for_plan":"gold","certificate":"nonsense"}`, 400, "certificate: must"},
		"foreign certificate":    {`{` + base + `,"for_plan":"gold","certificate":"second` + strings.Repeat("ab", 32) + `"}`, 400, "certificate: must"},
		"many fields":            {`{` + base + `,"for_plan":"gold","fields":` + manyFields(51) + `}`, 400, "fields: has 51 members"},
		"a long field's name":    {`{` + base + `,"for_plan":"gold","fields":{"` + strings.Repeat("n", 129) + `":1}}`, 400, "fields: the name"},
		"a long field":           {`{` + base + `,"for_plan":"gold","fields":{"use":"` + strings.Repeat("x", 4096) + `"}}`, 400, `fields[\"use\"]: has 4098 bytes`},
		"no key to take from":    {`{` + base + `,"remove_policies":["gold"]}`, 400, "remove_policies: the developer"},
		"no such key":            {`{` + base + `,"key_id":"` + strings.Repeat("ab", 32) + `","apply_policies":["gold"]}`, 400, "key_id: names no key"},
		"control characters":     {`{` + base + `,"for_plan":"gold\u0007"}`, 400, "for_plan: must be printable"},
		"a zero character in id": {`{"by_user":"\u0000","for_plan":"gold","version":"v2"}`, 400, "by_user: must be printable"},
	} {
		r := b.Call("POST", "/api/portal/requests", b.approver, c.body)
		if r.Status != c.status || !strings.Contains(string(r.Body), c.says) {
			t.Errorf("%s: %d %s, want %d %s", name, r.Status, r.Body, c.status, c.says)
		}
	}
	if n := b.Count("select count(*) from key_requests"); n != 0 {
		t.Errorf("%d requests", n)
	}
	r := b.Call("POST", "/api/portal/requests", b.approver, `<xml/>`, "Content-Type", "text/xml")
	r.Want(415)
}

func TestWhoMayDoWhat(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	session := b.login("ada")
	id := b.request(dev, "gold")
	key := hashOf(b.approve(b.request(dev, "gold")))
	other := b.developer("bob")
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, dev)
	counts := map[int]int{}
	for _, c := range []struct {
		method, path, body string
		least              string // role; "developer" for developers alone
		both               bool   // developers as well
	}{
		{"GET", "/api/portal/requests", "", "viewer", false},
		{"POST", "/api/portal/requests", body, "approver", true},
		{"GET", "/api/portal/requests/" + id, "", "viewer", false},
		{"PUT", "/api/portal/requests/" + id, body, "approver", false},
		{"UPDATE", "/api/portal/requests/" + id, body, "approver", false},
		{"DELETE", "/api/portal/requests/none", "", "approver", false},
		{"PUT", "/api/portal/requests/approve/none", "", "approver", false},
		{"PUT", "/api/portal/requests/reject/none", "", "approver", false},
		{"GET", "/api/portal/developers/" + dev + "/keys", "", "viewer", false},
		{"POST", "/api/portal/developers/none/keys", `{"apply_policies":["gold"]}`, "approver", false},
		{"PUT", "/api/portal/developers/" + dev + "/keys/none", `{"apply_policies":["gold"]}`, "approver", false},
		{"DELETE", "/api/portal/developers/" + other + "/keys/" + key, "", "approver", false},
		{"POST", "/api/portal/developers/" + dev + "/keys/none/reset_quota", "", "approver", false},
		{"GET", "/api/portal/me/requests", "", "developer", true},
		{"POST", "/api/portal/me/requests", `{"for_plan":"none"}`, "developer", true},
		{"GET", "/api/portal/me/requests/none", "", "developer", true},
		{"DELETE", "/api/portal/me/requests/none", "", "developer", true},
		{"GET", "/api/portal/me/keys", "", "developer", true},
		{"POST", "/api/portal/me/keys/none/rotate", `{"grace":"0s"}`, "developer", true},
		{"DELETE", "/api/portal/me/keys/none", "", "developer", true},
	} {
		ranks := map[string]int{"viewer": 1, "approver": 2, "editor": 3, "admin": 4, "developer": 9}
		for _, who := range []struct {
			name, key string
			rank      int
		}{
			{"nobody", "", 0},
			{"wrong", "sla_wrong", 0},
			{"wrong developer", "slp_wrong", 0},
			{"viewer", b.viewer, 1},
			{"approver", b.approver, 2},
			{"editor", b.editor, 3},
			{"admin", b.admin, 4},
			{"gateway", b.robot, -1},
			{"developer", session, -2},
		} {
			r := b.Call(c.method, c.path, who.key, c.body)
			counts[r.Status]++
			allowed := who.rank >= ranks[c.least] || who.rank == -2 && c.both
			switch {
			case who.rank == 0 && r.Status != 401:
				t.Errorf("%s %s as %s: %d", c.method, c.path, who.name, r.Status)
			case who.rank != 0 && allowed == (r.Status == 403 || r.Status == 401):
				t.Errorf("%s %s as %s: %d %s", c.method, c.path, who.name, r.Status, r.Body)
			case who.rank != 0 && !allowed:
				r.Want(403).Says("access denied: You do not have permission to access  ")
			}
		}
	}
	t.Logf("answers by status: %v", counts)
}

func TestOtherOrganisationsSeeNothing(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	id := b.request(dev, "gold")
	key := hashOf(b.approve(b.request(dev, "gold")))
	b.Exec("insert into developers (id, org_id, email) values ('theirs', 'second', 'x@example.com')")
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, dev)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/portal/requests/" + id, ""},
		{"PUT", "/api/portal/requests/" + id, body},
		{"DELETE", "/api/portal/requests/" + id, ""},
		{"PUT", "/api/portal/requests/approve/" + id, ""},
		{"PUT", "/api/portal/requests/reject/" + id, ""},
		{"GET", "/api/portal/developers/" + dev + "/keys", ""},
		{"POST", "/api/portal/developers/" + dev + "/keys", `{"apply_policies":["gold"]}`},
		{"PUT", "/api/portal/developers/" + dev + "/keys/" + key, `{"apply_policies":["gold"]}`},
		{"PUT", "/api/portal/developers/theirs/keys/" + key, `{"apply_policies":["gold"]}`},
		{"DELETE", "/api/portal/developers/" + dev + "/keys/" + key, ""},
		{"DELETE", "/api/portal/developers/theirs/keys/" + key, ""},
		{"POST", "/api/portal/developers/" + dev + "/keys/" + key + "/reset_quota", ""},
	} {
		b.Call(c.method, c.path, b.other, c.body).Want(404)
	}
	b.Call("GET", "/api/portal/requests", b.other, "").Want(200).Says(`"Data":[]`)
	b.Call("GET", "/api/portal/requests?by_user="+dev, b.other, "").Want(200).Says(`"Data":[]`)
	b.Call("GET", "/api/portal/requests?q="+id, b.other, "").Want(200).Says(`"Data":[]`)
	b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says("pending")
}

func TestARepeatedPOSTAsksOnce(t *testing.T) {
	b := start(t)
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2"}`, b.developer("ada"))
	first := b.Call("POST", "/api/portal/requests", b.approver, body, "Idempotency-Key", "once").Want(200)
	second := b.Call("POST", "/api/portal/requests", b.approver, body, "Idempotency-Key", "once").Want(200)
	if string(second.Body) != string(first.Body) || second.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("first %s, second %s", first.Body, second.Body)
	}
	if n := b.Count("select count(*) from key_requests"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestSecretsOfRequestsAreSealedAndNeverShown(t *testing.T) {
	b := start(t)
	dev := b.developer("ada")
	const planted = "a-secret-of-the-developer-32-bytes-and-more"
	body := fmt.Sprintf(`{"by_user":%q,"for_plan":"gold","version":"v2","jwt_secret":%q}`, dev, planted)
	id := b.Call("POST", "/api/portal/requests", b.approver, body).Want(200).Text("Message")
	shown := b.Call("GET", "/api/portal/requests/"+id, b.viewer, "").Want(200).Says(`"jwt_secret":""`)
	b.Call("PUT", "/api/portal/requests/"+id, b.approver, string(shown.Body)).Want(200)
	for _, where := range []string{"key_requests r", "audit_log r", "deliveries r"} {
		if n := b.Count("select count(*) from "+where+" where r::text like '%' || $1 || '%'", planted); n != 0 {
			t.Errorf("%d rows of %s hold the secret", n, where)
		}
	}
	s := b.session(b.approve(id))
	if s.Extra == nil || s.Extra.JWT.Value() != planted {
		t.Errorf("session %+v", s.Extra)
	}
	if n := b.Count("select octet_length(sealed_secret) from key_requests where id = $1", id); n != 0 {
		t.Errorf("%d bytes of the secret are left", n)
	}
	if strings.Contains(b.log.String(), planted) {
		t.Error("the secret is logged")
	}
}
