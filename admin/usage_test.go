package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	counts "github.com/sluicegate/sluice/internal/usage"
)

// orgOf returns the first organisation.
func (b *bench) orgOf() (org string) {
	b.t.Helper()
	org, err := b.store.FirstOrg(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return org
}

// hand hands over rows as a gateway does.
func (b *bench) hand(sequence int64, rows ...counts.Row) *admintest.Answer {
	b.t.Helper()
	now := time.Now().Truncate(time.Minute).Unix()
	batch := counts.Batch{Gateway: "gw", Boot: "boot", Sequence: sequence}
	for _, r := range rows {
		if r.Minute == 0 {
			r.Minute = now
		}
		if r.Org == "" {
			r.Org = b.orgOf()
		}
		batch.Rows = append(batch.Rows, r)
		batch.Latencies = append(batch.Latencies, counts.Latency{Minute: r.Minute, Org: r.Org, API: r.API, Counts: counts.Latencies{4: r.Hits}})
	}
	body, err := json.Marshal(batch)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.Call("POST", "/api/gateway/usage", gatewayToken, string(body))
}

// hitsOf returns what a report's totals are.
func (b *bench) hitsOf(path, key string) int64 {
	b.t.Helper()
	var report struct{ Totals struct{ Hits int64 } }
	if err := json.Unmarshal(b.Call("GET", path, key, "").Want(200).Body, &report); err != nil {
		b.t.Fatal(err)
	}
	return report.Totals.Hits
}

func TestUsageIsHandedOverOnceAndShownToItsOrganisation(t *testing.T) {
	b := start(t)
	rows := []counts.Row{
		{API: "a", Key: "k", Status: 200, Hits: 7, Total: 14000, Upstream: 7000},
		{API: "a", Key: "k", Status: 429, Reason: "rate_limit", Hits: 2},
		{API: "b", Status: 200, Hits: 1, Org: "second"},
	}
	for range 3 {
		b.hand(1, rows...).Want(200)
	}
	b.hand(2, rows...).Want(200)
	b.hand(1, rows...).Want(200)
	if got := b.hitsOf("/api/usage", b.viewer); got != 18 {
		t.Errorf("%d hits, want 18", got)
	}
	if got := b.hitsOf("/api/usage", b.other); got != 2 {
		t.Errorf("the other organisation has %d hits, want 2", got)
	}
	if got := b.hitsOf("/api/usage?api=a", b.other); got != 0 {
		t.Errorf("the other organisation sees %d hits of an API that it does not have", got)
	}
	b.Call("GET", "/api/usage?group_by=api,status,reason&api=a&step=minute&from="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), b.viewer, "").Want(200).
		Says(`"api_id":"a","status":200,"reason":"","hits":14,"errors":0,"mean_ms":2,"upstream_mean_ms":1`, `"status":429,"reason":"rate_limit","hits":4,"errors":4`, `"Pages":1`, `"at":"`)
	b.Call("GET", "/api/usage?group_by=api", b.viewer, "").Want(200).Says(`"p50_ms":`, `"p95_ms":`, `"p99_ms":`)
	b.Call("GET", "/api/usage/rejections", b.viewer, "").Want(200).Says(`"totals":{"hits":4,"errors":4`, `"Data":[{"reason":"rate_limit"`)
	b.Call("GET", "/api/usage?group_by=key&page_size=1&p=9", b.viewer, "").Want(200).Says(`"Data":[]`, `"Pages":1`, `"hits":18`)
}

func TestUsageOfAKeyIsThatOfAllItsCredentials(t *testing.T) {
	b := start(t)
	b.createAPI(b.editor, "a", "/a/")
	made := b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
	key, hash := made.Text("key"), made.Text("key_hash")
	b.hand(1, counts.Row{API: "a", Key: hash, Status: 200, Hits: 3}, counts.Row{API: "a", Key: "another", Status: 200, Hits: 50}).Want(200)
	next := b.Call("POST", "/api/keys/"+key+"/rotate", b.editor, `{"grace":"1h"}`).Want(200).Text("key")
	for _, name := range []string{key, hash, next} {
		if got := b.hitsOf("/api/keys/"+name+"/usage", b.viewer); got != 3 {
			t.Errorf("%.12s: %d hits, want 3", name, got)
		}
	}
	b.Call("GET", "/api/keys/"+hash+"/usage?group_by=api&status=200", b.viewer, "").Want(200).Says(`"step":"day"`, `"api_id":"a"`)
	b.Call("GET", "/api/keys/"+hash+"/usage", b.other, "").Want(404)
	b.Call("GET", "/api/keys/nobody/usage", b.viewer, "").Want(404)
}

func TestWrongQuestionsAboutUsageAreAnsweredWithWhatWouldBeRight(t *testing.T) {
	b := start(t)
	for query, says := range map[string]string{
		"from=yesterday":                       "from must be a time as in RFC 3339",
		"to=-5":                                "to must be a time as in RFC 3339",
		"from=99999999999999":                  "from must be a time",
		"from=2026-01-02T00:00:00Z&to=1000":    "from must be before to",
		"from=0&to=1000000000":                 "at most 800 days apart",
		"step=year":                            "step must be minute, hour, day or none",
		"step=minute&from=1000000000&to=1e9":   "to must be a time",
		"step=minute&from=100000000&to=100060": "from must be before to",
		"step=minute&from=1000000&to=1000060":  "Minutes are kept from",
		"group_by=api,colour":                  "group_by must be some of api, key, status and reason",
		"group_by=policy":                      "group_by must be some of api, key, status and reason",
		"status=ok":                            "status must be a whole number",
		"status=1000":                          "status must be one of HTTP",
		"page_size=501":                        "page_size must be in 1",
		"p=-1":                                 "never given out whole",
	} {
		for _, path := range []string{"/api/usage?", "/api/usage/rejections?"} {
			b.Call("GET", path+query, b.viewer, "").Want(400).Says(says)
		}
	}
	for _, text := range []string{"'; drop table usage_hour; --", "%00", "%25", "\\", "\""} {
		for _, name := range []string{"api", "key", "reason"} {
			got := b.Call("GET", "/api/usage?"+name+"="+strings.ReplaceAll(strings.ReplaceAll(text, " ", "+"), "\"", "%22"), b.viewer, "")
			if got.Status != 200 && (got.Status != 400 || text != "%00") {
				t.Errorf("%s=%s: %d %s", name, text, got.Status, got.Body)
			}
		}
	}
}

func TestWrongBatchesAreRefusedWhole(t *testing.T) {
	b := start(t)
	for body, says := range map[string]string{
		`{`:                          "Request body malformed",
		`[]`:                         "Request body malformed",
		`{}`:                         "gateway and boot must not be empty",
		`{"gateway":"g","boot":"b"}`: "sequence must be 1 or more",
		`{"gateway":"g\u0000","boot":"b","sequence":1}`:                                                                             "gateway must be UTF-8 without",
		batchWith(`"minute":60,"api":"a","hits":1,"total_us":1e300`):                                                                "Request body malformed",
		`{"gateway":"g","boot":"b","sequence":1,"rows":[` + strings.TrimSuffix(strings.Repeat(`{},`, counts.MaxRows+1), ",") + `]}`: "rows has 4001 elements",
	} {
		b.Call("POST", "/api/gateway/usage", gatewayToken, body).Want(400).Says(says)
	}
	b.Call("POST", "/api/gateway/usage", gatewayToken, batchWith(`"minute":60,"api":"a","hits":1,"a member of":"the future"`)).Want(200)
	for _, who := range []string{b.admin, b.editor, b.viewer} {
		b.Call("POST", "/api/gateway/usage", who, `{}`).Want(403)
	}
	b.Call("POST", "/api/gateway/usage", "", `{}`).Want(401)
	if got := b.hitsOf("/api/usage?from=0&to=86400", b.admin); got != 0 {
		t.Errorf("%d hits", got)
	}
}

// batchWith returns a batch with a good row, and a second one.
func batchWith(row string) string {
	return fmt.Sprintf(`{"gateway":"g","boot":"b","sequence":1,"rows":[{"minute":60,"org":"o","api":"a","status":200,"hits":1},{%s}]}`, row)
}

// TestARowThatCannotBeCountedIsNamedAndTheOthersCount hands over a good row beside a bad
// one, as of a request that no API served.
func TestARowThatCannotBeCountedIsNamedAndTheOthersCount(t *testing.T) {
	b := start(t)
	sequence := 0
	minute := time.Now().Unix() / 60 * 60
	for row, says := range map[string]string{
		`"minute":61,"api":"a","hits":1`:                                "rows[1].minute is ",
		`"minute":60,"hits":5`:                                          "rows[1].api must not be empty",
		`"minute":60,"api":"a"`:                                         "rows[1].hits must be 1 or more",
		`"minute":60,"api":"a","hits":-1`:                               "rows[1].hits is -1",
		`"minute":60,"api":"a","hits":1,"status":-200`:                  "rows[1].status is -200",
		`"minute":60,"api":"a","hits":1,"key":"\u0000"`:                 "rows[1].key must be UTF-8 without",
		`"minute":9999999999999960,"api":"a","hits":1`:                  "rows[1].minute is",
		`"minute":60,"api":"` + strings.Repeat("x", 600) + `"`:          "rows[1].hits must be 1 or more",
		`"minute":60,"hits":1,"api":"` + strings.Repeat("x", 600) + `"`: "rows[1].api has 600 bytes",
	} {
		sequence++
		body := strings.NewReplacer(
			`"sequence":1`, fmt.Sprintf(`"sequence":%d`, sequence), `"org":"o"`, fmt.Sprintf(`"org":%q`, b.orgOf()),
			`"minute":60,`, fmt.Sprintf(`"minute":%d,`, minute), `"minute":61,`, fmt.Sprintf(`"minute":%d,`, minute+1),
		).Replace(batchWith(row))
		for range 2 { // a repetition gets the same answer
			b.Call("POST", "/api/gateway/usage", gatewayToken, body).Want(200).Says(`"refused":1`, says)
		}
	}
	b.Call("POST", "/api/gateway/usage", gatewayToken, batchWith(`"minute":60,"hits":5`)).Want(200).Says(`"refused_calls":5`)
	b.Call("POST", "/api/gateway/usage", gatewayToken,
		`{"gateway":"h","boot":"b","sequence":1,"latencies":[{"minute":60,"api":"a","counts":[-1]}]}`).Want(200).Says("latencies[0].counts[0] is -1")
	if got := b.hitsOf(fmt.Sprintf("/api/usage?from=%d&to=%d", minute-3600, minute+3600), b.admin); got != int64(sequence) {
		t.Errorf("%d hits, want %d", got, sequence)
	}
	if log := b.log.String(); strings.Count(log, "usage that cannot be counted") != sequence+1 {
		t.Errorf("want %d warnings: %s", sequence+1, log)
	}
}

func TestKeysInClearAreShownByAHash(t *testing.T) {
	b := start(t, func(d *Deps) {
		hasher := *d.KeyOptions.Hasher
		hasher.Algorithm = credential.None
		d.KeyOptions.Hasher = &hasher
	})
	b.createAPI(b.editor, "a", "/a/")
	key := b.Call("POST", "/api/keys", b.editor, `{"access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200).Text("key")
	b.hand(1, counts.Row{API: "a", Key: counts.KeyOf(key, true), Status: 200, Hits: 3}).Want(200)
	if got := b.hitsOf("/api/keys/"+key+"/usage", b.viewer); got != 3 {
		t.Errorf("%d hits, want 3", got)
	}
	if shown := b.Call("GET", "/api/usage?group_by=key", b.viewer, ""); strings.Contains(string(shown.Body), key) {
		t.Error("a report shows a key")
	}
}

func TestUsageNamesAPIsAndKeys(t *testing.T) {
	b := start(t)
	b.Call("POST", "/api/apis", b.editor, `{"api_id":"a","name":"Orders","proxy":{"listen_path":"/a/","target_url":"http://127.0.0.1:1/"}}`).Want(200)
	hash := b.Call("POST", "/api/keys", b.editor, `{"alias":"acme-prod","access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200).Text("key_hash")
	b.hand(1, counts.Row{API: "a", Key: hash, Status: 200, Hits: 3}, counts.Row{API: "gone", Key: "gone", Status: 200, Hits: 2}).Want(200)
	b.Call("GET", "/api/usage?group_by=api", b.viewer, "").Want(200).Says(`{"api_id":"a","api_name":"Orders",`, `{"api_id":"gone","hits":2`)
	b.Call("GET", "/api/usage?group_by=key", b.viewer, "").Want(200).Says(`"key":"`+hash+`","key_alias":"acme-prod"`, `"key":"gone","hits":2`)
	b.Call("GET", "/api/keys/"+hash+"/usage?group_by=api", b.viewer, "").Want(200).Says(`"api_name":"Orders"`)
	b.hand(2, counts.Row{API: "a", Key: hash, Status: 200, Hits: 1, Org: "second"}).Want(200)
	if shown := b.Call("GET", "/api/usage?group_by=api,key", b.other, "").Want(200); strings.Contains(string(shown.Body), "Orders") || strings.Contains(string(shown.Body), "acme-prod") {
		t.Errorf("another organisation reads names: %s", shown.Body)
	}
}

func TestDevelopersSeeHowTheirOwnKeysAreUsed(t *testing.T) {
	for _, algorithm := range []credential.Algorithm{credential.SHA256, credential.None} {
		b := start(t, func(d *Deps) {
			hasher := *d.KeyOptions.Hasher
			hasher.Algorithm = algorithm
			d.KeyOptions.Hasher, d.KeyOptions.Passwords = &hasher, passwords()
		})
		b.createAPI(b.editor, "a", "/a/")
		b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"p","access_rights":{"a":{"api_id":"a","versions":["Default"]}}}`).Want(200)
		ada, session := b.aDeveloper("ada")
		_, other := b.aDeveloper("bob")
		id := b.Call("POST", "/api/portal/developers/"+ada+"/keys", b.editor, `{"apply_policies":["p"]}`).Want(200).Text("key_id")
		b.hand(1, counts.Row{API: "a", Key: id, Status: 200, Hits: 3}, counts.Row{API: "a", Key: id, Status: 429, Reason: "rate_limit", Hits: 2}).Want(200)
		path := "/api/portal/me/keys/" + id + "/usage"
		b.Call("GET", path, session, "").Want(200).Says(`"step":"day"`, `"totals":{"hits":5,"errors":2`)
		b.Call("GET", path+"?days=1&step=hour&group_by=reason", session, "").Want(200).Says(`"reason":"rate_limit","hits":2`)
		b.Call("GET", path+"?group_by=api", session, "").Want(200).Says(`"api_id":"a","hits":5`)
		b.Call("GET", path, other, "").Want(404)
		b.Call("GET", "/api/portal/me/keys/none/usage", session, "").Want(404)
		for query, says := range map[string]string{
			"days=0": "days must be in 1", "days=93": "days must be in 1", "days=x": "days must be a whole number",
			"step=minute": "at most 2 days apart", "group_by=org": "group_by must be some of",
		} {
			b.Call("GET", path+"?"+query, session, "").Want(400).Says(says)
		}
	}
}
