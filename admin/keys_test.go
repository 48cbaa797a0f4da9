package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
)

// made is the answer to a call about one key.
type made struct {
	ID   string `json:"key_id"`
	Key  string `json:"key"`
	Hash string `json:"key_hash"`
	Data struct {
		OrgID          string `json:"org_id"`
		Alias          string
		QuotaMax       int64 `json:"quota_max"`
		QuotaRemaining int64 `json:"quota_remaining"`
		Expires        int64
		Rights         map[string]any `json:"access_rights"`
		Array          []any          `json:"access_rights_array"`
	}
}

func (a *answer) key() (m made) {
	a.t.Helper()
	if err := json.Unmarshal(a.want(200).body, &m); err != nil {
		a.t.Fatal(err)
	}
	return m
}

const aKey = `{"alias":"first","quota_max":10,"quota_renewal_rate":3600,"rate":5,"per":1,"own":{"n":1.50},"access_rights_array":[{"api_id":"a","versions":["Default"]}]}`

func withAPI(t *testing.T) *bench {
	b := start(t)
	b.createAPI(b.editor, "a", "/a")
	return b
}

func TestKeysLiveTheirLife(t *testing.T) {
	b := withAPI(t)
	r := b.call("POST", "/api/keys", b.editor, aKey)
	m := r.key()
	if !credential.Check("slk_", []byte(m.Key)) || m.ID != m.Key || len(m.Hash) != 64 || m.Data.QuotaRemaining != 10 ||
		m.Data.Rights["a"] == nil || len(m.Data.Array) != 1 {
		t.Fatalf("created %s", r.body)
	}
	r.says(`"api_model":{}`, `"own":{"n":1.50}`)
	stored, err := b.keys.Get(t.Context(), m.Hash)
	if err != nil || stored.Alias != "first" || stored.AccessRights["a"] == nil {
		t.Fatalf("the key store has %+v when the call is answered: %v", stored, err)
	}
	for _, path := range []string{"/api/keys/" + m.Key, "/api/keys/" + m.Hash, "/api/keys/" + m.Hash + "?hashed=true", "/api/apis/a/keys/" + m.Hash} {
		if got := b.call("GET", path, b.viewer, "").key(); got.Hash != m.Hash || got.Key != "" || got.Data.Alias != "first" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	b.call("GET", "/api/keys/"+m.Key+"?hashed=1", b.viewer, "").want(404)
	b.take(t, m.Hash, 4)
	if got := b.call("GET", "/api/keys/"+m.Hash, b.viewer, "").key(); got.Data.QuotaRemaining != 6 {
		t.Errorf("%d of the quota are left, want 6", got.Data.QuotaRemaining)
	}
	changed := strings.Replace(aKey, "first", "second", 1)
	if got := b.call("PUT", "/api/keys/"+m.Key+"?suppress_reset=1", b.editor, changed).key(); got.Data.Alias != "second" || got.Data.QuotaRemaining != 6 {
		t.Errorf("changed without a reset: %+v", got)
	}
	if got := b.call("PUT", "/api/keys/"+m.Key, b.editor, changed).key(); got.Data.QuotaRemaining != 10 {
		t.Errorf("changed: %+v", got)
	}
	b.take(t, m.Hash, 10)
	b.call("POST", "/api/keys/"+m.Hash+"/reset_quota", b.editor, "").want(200).says("Quota reset")
	if got := b.call("GET", "/api/keys/"+m.Hash, b.viewer, "").key(); got.Data.QuotaRemaining != 10 {
		t.Errorf("%d of the quota are left after a reset", got.Data.QuotaRemaining)
	}
	b.call("DELETE", "/api/keys/"+m.Key, b.editor, "").want(200).says("Key deleted successfully.")
	if _, err := b.keys.Get(t.Context(), m.Hash); err == nil {
		t.Error("a deleted key is still in the key store")
	}
	for _, method := range []string{"GET", "DELETE"} {
		b.call(method, "/api/keys/"+m.Key, b.editor, "").want(404).says("Could not retrieve key detail.")
	}
	b.call("PUT", "/api/keys/"+m.Key, b.editor, aKey).want(404)
	if log := b.log.String(); strings.Contains(log, m.Key) {
		t.Error("the log holds a key")
	}
	if n := count(t, b.dsn, "select count(*) from audit_log where object_kind = 'key' and object_id = $1", m.Hash); n != 5 {
		t.Errorf("%d entries in the audit log", n)
	}
	if n := count(t, b.dsn, "select count(*) from audit_log where strpos(coalesce(before::text,'') || coalesce(after::text,'') || object_id, $1) > 0", m.Key); n != 0 {
		t.Error("the audit log holds a key")
	}
}

// take uses up some of a key's quota.
func (b *bench) take(t *testing.T, hash string, n int) {
	t.Helper()
	limit := []counter.Limit{{Key: counter.Naming{}.Quota("", hash), Kind: counter.Quota, Max: 10, Period: time.Hour}}
	for range n {
		if refused, err := b.counters.Take(t.Context(), limit, 1, make([]counter.Count, 1)); err != nil || refused >= 0 {
			t.Fatalf("refused by %d: %v", refused, err)
		}
	}
}

func TestKeysWithPoliciesAndCustomIDs(t *testing.T) {
	b := withAPI(t)
	b.call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","quota_max":7,"quota_renewal_rate":60,"key_expires_in":3600,"access_rights":{"a":{"api_id":"a"}}}`).want(200)
	b.call("POST", "/api/portal/policies", b.editor, `{"id":"q","name":"silver","quota_max":3,"quota_renewal_rate":60,"access_rights":{"a":{"api_id":"a"}}}`).want(200)
	m := b.call("POST", "/api/keys/my-custom-id", b.editor, `{"apply_policies":["p"]}`).key()
	if !strings.HasSuffix(m.Key, "my-custom-id") || m.Data.QuotaMax != 7 || m.Data.Expires == 0 {
		t.Errorf("created %+v", m)
	}
	if got := b.call("GET", "/api/keys/my-custom-id", b.viewer, "").key(); got.Hash != m.Hash {
		t.Errorf("found %+v", got)
	}
	if got := b.call("PUT", "/api/keys/my-custom-id/policies", b.editor, `{"policy":"q"}`).key(); got.Data.QuotaMax != 3 {
		t.Errorf("with another policy: %+v", got)
	}
	b.call("POST", "/api/keys/preview", b.viewer, `{"apply_policies":["p"]}`).want(200).says(`"quota_max":7`, `"access_rights_array":[{`)
	b.call("GET", "/api/keys?api_id=a", b.viewer, "").want(200).says(m.Hash)
	b.call("GET", "/api/apis/a/keys", b.viewer, "").want(200).says(m.Hash)
	b.call("GET", "/api/apis/none/keys", b.viewer, "").want(200).says(`"data":{"keys":[]},"pages":0`)
	b.call("GET", "/api/keys/detailed", b.viewer, "").want(200).says(`"apply_policies":["q"]`, `"pages":1`)
	b.call("GET", "/api/apis/keys?q="+m.Hash[:8], b.viewer, "").want(200).says(m.Hash)
	b.call("POST", "/api/gateway/keys/lookup", gatewayToken, `{"key_hash":"`+m.Hash+`"}`).want(200).says(`"session":{`, `"apply_policies":["q"]`)
	b.call("POST", "/api/gateway/keys/lookup", gatewayToken, `{"key_hash":"none"}`).want(404)
	b.call("POST", "/api/gateway/keys/lookup", gatewayToken, `{}`).want(400)
	if n := count(t, b.dsn, "select count(*) from keys where key_hash like '%custom%'"); n != 0 {
		t.Error("a key is stored in clear")
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	b := withAPI(t)
	b.call("POST", "/api/portal/policies", b.other, `{"id":"foreign","name":"gold"}`).want(200)
	for body, says := range map[string]string{
		`{}`:                                            "at least one Access Rights record",
		`{"apply_policies":["none"]}`:                   "policy not found",
		`{"apply_policies":["foreign"]}`:                "policy not found",
		`{"quota_max":"x"}`:                             "quota_max",
		`{"access_rights_array":[{}]}`:                  "access_rights_array[0].api_id",
		`{"access_rights_array":7}`:                     "access_rights_array",
		`{"access_rights_array":`:                       "not JSON",
		`{"rate":-5,"per":"x"}`:                         "per",
		`{"alias":"a\u0000b","access_rights":{"a":{}}}`: "alias",
	} {
		r := b.call("POST", "/api/keys", b.editor, body)
		r.what += " " + body
		if r.want(400); !strings.Contains(string(r.body), says) {
			// What cannot be stored may also be said in general.
			if !strings.Contains(string(r.body), "U+0000") {
				t.Errorf("%s: %s", body, r.body)
			}
		}
	}
	b.call("POST", "/api/keys/ab", b.editor, aKey).want(400).says("3 characters")
	b.call("POST", "/api/keys/slk_abc", b.editor, aKey).want(400)
	m := b.call("POST", "/api/keys", b.other, `{"access_rights":{"a":{"api_id":"a"}}}`).key()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"PUT", "", aKey}, {"DELETE", "", ""}, {"POST", "/reset_quota", ""}, {"PUT", "/policies", `{"policy":"p"}`},
	} {
		b.call(c.method, "/api/keys/"+m.Hash+c.path, b.admin, c.body).want(404)
		b.call(c.method, "/api/keys/"+m.Key+c.path, b.admin, c.body).want(404)
	}
	b.call("GET", "/api/keys", b.admin, "").want(200).says(`"keys":[]`)
}

func TestKeyChangeIsAnsweredWhileTheKeyStoreIsAway(t *testing.T) {
	b := withAPI(t)
	b.keys.breakWith(errors.New("away"))
	m := b.call("POST", "/api/keys", b.editor, aKey).key()
	b.call("PUT", "/api/keys/"+m.Hash, b.editor, strings.Replace(aKey, "first", "second", 1)).want(200)
	b.keys.breakWith(nil)
	eventually(t, "the key arrives", func() bool { s, err := b.keys.Get(t.Context(), m.Hash); return err == nil && s.Alias == "second" })
}

func TestParallelChangesOfKeysEndWithTheLast(t *testing.T) {
	b := withAPI(t)
	m := b.call("POST", "/api/keys", b.editor, aKey).key()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			r := b.call("PUT", "/api/keys/"+m.Hash, b.editor, strings.Replace(aKey, "first", fmt.Sprint("n", i), 1))
			if r.status != 200 {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
	all.Wait()
	last := b.call("GET", "/api/keys/"+m.Hash, b.editor, "").key().Data.Alias
	eventually(t, "nothing waits", func() bool { return count(t, b.dsn, "select count(*) from outbox") == 0 })
	if s, err := b.keys.Get(t.Context(), m.Hash); err != nil || s.Alias != last {
		t.Errorf("the key store has %q, the database %q: %v", s.Alias, last, err)
	}
}

func TestLegacyStoresInClear(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Hasher = &credential.Hasher{Algorithm: credential.None, Prefix: "slk_"} })
	b.createAPI(b.editor, "a", "/a")
	m := b.call("POST", "/api/keys", b.editor, aKey).key()
	if m.Hash != m.Key {
		t.Errorf("created %+v", m)
	}
	b.call("GET", "/api/keys/"+m.Key, b.viewer, "").want(200)
	b.call("PUT", "/api/keys/"+m.Key, b.editor, aKey).want(200)
	b.call("DELETE", "/api/keys/"+m.Key, b.editor, "").want(200)
}

func TestAPageOfKeysBeyondTheLastTellsHowManyThereAre(t *testing.T) {
	b := withAPI(t)
	for i := range 3 {
		b.call("POST", "/api/keys", b.editor, fmt.Sprintf(`{"alias":"ann-%d","access_rights":{"a":{"api_id":"a"}}}`, i)).want(200)
	}
	for _, q := range []string{"", "&q=ann", "&api_id=a"} {
		b.call("GET", "/api/keys?p=9&page_size=2"+q, b.viewer, "").want(200).says(`"keys":[]`, `"pages":2`)
		b.call("GET", "/api/keys?p=2&page_size=2"+q, b.viewer, "").want(200).says(`"pages":2`)
	}
}
