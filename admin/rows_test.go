package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// rowsOf returns the rows of an answer as objects, and what the list says of itself.
func rowsOf(t *testing.T, r *admintest.Answer) (rows []map[string]any, total int, capped bool) {
	t.Helper()
	var list struct {
		Rows   []map[string]any `json:"rows"`
		Total  int              `json:"total"`
		Capped bool             `json:"total_capped"`
		Pages  int              `json:"pages"`
	}
	if err := json.Unmarshal(r.Body, &list); err != nil || list.Rows == nil {
		t.Fatalf("%s: %v", r.Body, err)
	}
	return list.Rows, list.Total, list.Capped
}

// named returns one member of every row.
func named(rows []map[string]any, member string) string {
	all := make([]string, 0, len(rows))
	for _, row := range rows {
		all = append(all, fmt.Sprint(row[member]))
	}
	return strings.Join(all, " ")
}

// found asks for rows and returns one member of each.
func (b *bench) found(path, member string) string {
	b.t.Helper()
	rows, _, _ := rowsOf(b.t.(*testing.T), b.Call("GET", path, b.viewer, "").Want(200))
	return named(rows, member)
}

func TestRowsOfAPIs(t *testing.T) {
	b := start(t)
	for _, api := range []string{
		`{"api_id":"one","name":"Alpha","use_keyless":true,"tags":["team=a","eu"],"proxy":{"listen_path":"/first/","target_url":"http://up.example"}}`,
		`{"api_id":"two","name":"Beta","active":false,"domain":"API.Example.com","use_basic_auth":true,"use_standard_auth":true,"proxy":{"listen_path":"/second/","target_url":"http://up.example"}}`,
		`{"api_id":"three","name":"Gamma","graphql":{"enabled":true,"execution_mode":"proxyOnly","schema":"type Query { ` + strings.Repeat("a", 30_000) + `: Int }"},"tags":["team=b"],"proxy":{"listen_path":"/third/","target_url":"http://up.example"}}`,
	} {
		b.Call("POST", "/api/apis", b.editor, api).Want(200)
	}
	all := b.Call("GET", "/api/apis?view=row", b.viewer, "").Want(200)
	rows, total, capped := rowsOf(t, all)
	if total != 3 || capped || len(rows) != 3 {
		t.Fatalf("%d rows of %d, capped %v", len(rows), total, capped)
	}
	if len(all.Body) > 3*1024 {
		t.Errorf("3 rows take %d bytes", len(all.Body))
	}
	for i, want := range []string{"[keyless]", "[basic token]", "[token]"} {
		if got := fmt.Sprint(rows[i]["auth"]); got != want {
			t.Errorf("auth of %v is %s instead of %s", rows[i]["api_id"], got, want)
		}
	}
	if rows[0]["listen_path"] != "/first/" || rows[0]["changed_by"] == "" || rows[1]["active"] != false || rows[2]["kind"] != "graphql" || fmt.Sprint(rows[0]["labels"]) != "[team=a eu]" {
		t.Errorf("rows are %v", rows)
	}
	for query, want := range map[string]string{
		"kind=graphql": "three", "kind=rest": "one two", "auth=token": "two three", "auth=mtls": "", "active=false": "two", "label=team%3Db": "three",
		"q=LPH": "one", "q=/second": "two", "q=hre": "three", "q=api.exam": "two", "q=nothing": "", "q=%25": "", "sort=-name": "three two one", "sort=-listen_path": "three two one",
		"sort=-created_at": "three two one", "page_size=1&p=2": "two", "kind=rest&active=true&q=a": "one",
	} {
		if got := b.found("/api/apis?view=row&"+query, "api_id"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
	if got := b.Call("GET", "/api/apis?view=row", b.other, "").Want(200); strings.Contains(string(got.Body), "one") {
		t.Errorf("another organisation sees %s", got.Body)
	}
	// A definition that is saved again shows at once.
	b.Call("PUT", "/api/apis/one", b.editor, `{"api_id":"one","name":"Alpha","use_basic_auth":true,"proxy":{"listen_path":"/moved/","target_url":"http://up.example"}}`).Want(200)
	if got := b.found("/api/apis?view=row&auth=basic&q=/moved", "version"); got != "2" {
		t.Errorf("after a change: %q", got)
	}
}

func TestRowsSayHowOftenAPIsAndKeysAreCalled(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "one", "/one")
	made := b.Call("POST", "/api/keys", b.editor, `{"alias":"caller","access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	org := b.Text("select id from orgs where id <> 'second'")
	now := time.Now().UTC()
	for _, at := range []time.Time{now.Truncate(time.Hour), now.Add(-30 * time.Hour).Truncate(time.Hour)} {
		b.Exec("insert into usage_api_hour (org_id, bucket, api_id, status, reason, hits, errors, total_us, upstream_us) values ($1, $2, 'one', 200, '', 7, 2, 0, 0)", org, at)
		b.Exec("insert into usage_hour (org_id, bucket, api_id, key_hash, status, reason, hits, errors, total_us, upstream_us) values ($1, $2, 'one', $3, 200, '', 5, 1, 0, 0)", org, at.Add(-time.Hour), made.Text("key_hash"))
	}
	if got := b.found("/api/apis?view=row", "calls_24h") + "/" + b.found("/api/apis?view=row", "errors_24h"); got != "7/2" {
		t.Errorf("calls and errors of the API: %s", got)
	}
	if got := b.found("/api/keys?view=row", "calls_24h") + "/" + b.found("/api/keys?view=row", "errors_24h"); got != "5/1" {
		t.Errorf("calls and errors of the key: %s", got)
	}
}

func TestRowsOfPolicies(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "one", "/one")
	b.Call("POST", "/api/policies", b.editor, `{"id":"gold","name":"Gold","rate":100,"per":60,"quota_max":5,"max_query_depth":-1,"tags":["team=a"],"access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	b.Call("POST", "/api/policies", b.editor, `{"id":"trial","name":"Trial","state":"draft","enforcement":"measure"}`).Want(200)
	rows, total, _ := rowsOf(t, b.Call("GET", "/api/portal/policies?view=row", b.viewer, "").Want(200))
	limits, _ := rows[0]["limits"].(map[string]any)
	if total != 2 || rows[0]["apis"] != 1.0 || limits["rate"] != 100.0 || limits["max_query_depth"] != -1.0 || rows[1]["state"] != "draft" {
		t.Errorf("rows are %v", rows)
	}
	for query, want := range map[string]string{
		"label=team%3Da": "gold", "q=ria": "trial", "q=old": "gold", "active=true": "gold", "sort=-name": "trial gold",
	} {
		if got := b.found("/api/policies?view=row&"+query, "id"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
	if got := b.found("/api/policies/search?view=row&state=draft", "id") + b.found("/api/policies/search?view=row&api_id=one", "id"); got != "trialgold" {
		t.Errorf("by state and by API: %q", got)
	}
}

func TestRowsOfKeys(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "one", "/one")
	b.createAPI(b.editor, "two", "/two")
	b.Call("POST", "/api/policies", b.editor, `{"id":"gold","name":"Gold","access_rights":{"one":{"api_id":"one"}}}`).Want(200)
	for _, session := range []string{
		`{"alias":"a-partner","apply_policies":["gold"],"tags":["team=a"]}`,
		`{"alias":"b-partner","is_inactive":true,"access_rights":{"two":{"api_id":"two"}}}`,
		`{"alias":"c-partner","expires":1600000000,"apply_policies":["gold"]}`,
	} {
		b.Call("POST", "/api/keys", b.editor, session).Want(200)
	}
	for query, want := range map[string]string{
		"sort=name": "a-partner b-partner c-partner", "sort=-name": "c-partner b-partner a-partner", "sort=-created_at": "c-partner b-partner a-partner",
		"sort=name&active=false": "b-partner c-partner", "active=true": "a-partner", "policy_id=gold&sort=name": "a-partner c-partner", "api_id=two": "b-partner",
		"api_id=one&active=true": "a-partner", "label=team%3Da": "a-partner", "q=B-P": "b-partner", "q=partner": "",
	} {
		if got := b.found("/api/keys?view=row&"+query, "alias"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
	if got := b.found("/api/apis/one/keys?view=row&sort=name", "alias"); got != "a-partner c-partner" {
		t.Errorf("keys of an API: %q", got)
	}
	if got := b.found("/api/keys?view=row&active=true", "changed_by"); got == "" {
		t.Error("a row does not say who made the key")
	}
}

func TestRowsCountOnlySoFar(t *testing.T) {
	b := start(t)
	org := b.Text("select id from orgs where id <> 'second'")
	b.Exec(`insert into keys (key_hash, org_id, alias, active, apis, policies, body) select encode(sha256(i::text::bytea), 'hex'), $1, 'k'||i, true, '{}', '{}', '{}' from generate_series(1, 10001) i`, org)
	rows, total, capped := rowsOf(t, b.Call("GET", "/api/keys?view=row&p=201&page_size=50", b.viewer, "").Want(200))
	if len(rows) != 1 || total != 10_000 || !capped {
		t.Errorf("%d rows on the page after the last counted one, %d in all, capped %v", len(rows), total, capped)
	}
}

func TestRowsRefuseWhatTheyDoNotKnow(t *testing.T) {
	b := start(t)
	for path, says := range map[string]string{
		"/api/apis?view=card":                "view must be row",
		"/api/apis?kind=graphql":             "kind needs view=row",
		"/api/apis?view=row&kind=soap":       "kind must be one of [graphql rest]",
		"/api/apis?view=row&auth=magic":      "auth must be one of",
		"/api/apis?view=row&active=1":        "active must be one of [true false]",
		"/api/apis?view=row&sort=version":    "sort must be one of",
		"/api/apis?view=row&p=-1":            "never given out whole",
		"/api/keys?view=row&sort=updated_at": "sort must be one of",
		"/api/keys?label=a":                  "label needs view=row",
		"/api/policies?view=row&sort=x":      "sort must be one of",
	} {
		b.Call("GET", path, b.viewer, "").Want(400).Says(says)
	}
}

func TestRowsOfUsersAndDevelopers(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Passwords = passwords() })
	b.Call("POST", "/api/users", b.admin, `{"email_address":"Zoe@example.com","first_name":"Zoë","last_name":"Ann","role":"editor","active":false}`).Want(200)
	users := func(query, member string) string {
		t.Helper()
		rows, _, _ := rowsOf(t, b.Call("GET", "/api/users?view=row&"+query, b.admin, "").Want(200))
		return named(rows, member)
	}
	for query, want := range map[string]string{"q=zOE": "Zoe@example.com", "q=%C3%AB+ann": "Zoe@example.com", "active=false": "Zoe@example.com", "q=%25": "", "page_size=1&sort=-created_at": "Zoe@example.com"} {
		if got := users(query, "email_address"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
	all := b.Call("GET", "/api/users?view=row", b.admin, "").Want(200).Says(`"has_password":false`).Hides("access_key", "user_permissions")
	if rows, total, capped := rowsOf(t, all); total != len(rows) || total != 5 || capped {
		t.Errorf("%d of %d users", len(rows), total)
	}
	b.Call("GET", "/api/users?sort=name", b.admin, "").Want(400).Says("sort needs view=row")
	b.Call("GET", "/api/users?view=row&sort=listen_path", b.admin, "").Want(400).Says("sort must be one of")

	ada, _ := b.aDeveloper("ada")
	b.aDeveloper("Bob")
	b.createAPI(b.admin, "ours", "/ours")
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"op","name":"ours","access_rights":{"ours":{"api_id":"ours","versions":["Default"]}}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"other","name":"other"}`).Want(200)
	b.Call("POST", "/api/portal/developers/"+ada+"/keys", b.editor, `{"apply_policies":["op"]}`).Want(200)
	for query, want := range map[string]string{"": "ada@dev.example Bob@dev.example", "q=BO": "Bob@dev.example", "sort=-name": "Bob@dev.example ada@dev.example", "q=dev": "", "inactive=true": "", "inactive=false&sort=-created_at": "Bob@dev.example ada@dev.example", "page_size=1&p=2": "Bob@dev.example"} {
		if got := b.found("/api/portal/developers?view=row&"+query, "email"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
	if got := b.found("/api/portal/developers?view=row", "key_count"); got != "1 0" {
		t.Errorf("keys: %s", got)
	}
	b.Call("GET", "/api/portal/developers?view=row", b.viewer, "").Want(200).Hides("password", "nonce")
	b.Call("GET", "/api/portal/developers?view=table", b.viewer, "").Want(400)
	if rows, total, _ := rowsOf(t, b.Call("GET", "/api/portal/developers?view=row", b.other, "").Want(200)); len(rows) != 0 || total != 0 {
		t.Errorf("another organisation sees %v", rows)
	}

	for query, want := range map[string]string{"policy_ids=other": "other", "policy_ids=op,other": "other ours", "policy_ids=none": "", "policy_ids=op&q=oth": ""} {
		if got := b.found("/api/portal/policies?view=row&"+query, "name"); got != want {
			t.Errorf("%s finds %q instead of %q", query, got, want)
		}
	}
}
