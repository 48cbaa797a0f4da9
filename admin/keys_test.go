package admin

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
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

// keyOf returns the key in an answer.
func keyOf(a *admintest.Answer) (m made) {
	a.Want(200).Into(&m)
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
	r := b.Call("POST", "/api/keys", b.editor, aKey)
	m := keyOf(r)
	if !credential.Check("slk_", []byte(m.Key)) || m.ID != m.Key || len(m.Hash) != 64 || m.Data.QuotaRemaining != 10 ||
		m.Data.Rights["a"] == nil || len(m.Data.Array) != 1 {
		t.Fatalf("created %s", r.Body)
	}
	r.Says(`"api_model":{}`, `"own":{"n":1.50}`)
	stored, err := b.keys.Get(t.Context(), m.Hash)
	if err != nil || stored.Alias != "first" || stored.AccessRights["a"] == nil {
		t.Fatalf("the key store has %+v when the call is answered: %v", stored, err)
	}
	for _, path := range []string{"/api/keys/" + m.Key, "/api/keys/" + m.Hash, "/api/keys/" + m.Hash + "?hashed=true", "/api/apis/a/keys/" + m.Hash} {
		if got := keyOf(b.Call("GET", path, b.viewer, "")); got.Hash != m.Hash || got.Key != "" || got.Data.Alias != "first" {
			t.Errorf("%s: %+v", path, got)
		}
	}
	b.Call("GET", "/api/keys/"+m.Key+"?hashed=1", b.viewer, "").Want(404)
	b.take(t, m.Hash, 4)
	if got := keyOf(b.Call("GET", "/api/keys/"+m.Hash, b.viewer, "")); got.Data.QuotaRemaining != 6 {
		t.Errorf("%d of the quota are left, want 6", got.Data.QuotaRemaining)
	}
	changed := strings.Replace(aKey, "first", "second", 1)
	if got := keyOf(b.Call("PUT", "/api/keys/"+m.Key+"?suppress_reset=1", b.editor, changed)); got.Data.Alias != "second" || got.Data.QuotaRemaining != 6 {
		t.Errorf("changed without a reset: %+v", got)
	}
	if got := keyOf(b.Call("PUT", "/api/keys/"+m.Key, b.editor, changed)); got.Data.QuotaRemaining != 10 {
		t.Errorf("changed: %+v", got)
	}
	b.take(t, m.Hash, 10)
	b.Call("POST", "/api/keys/"+m.Hash+"/reset_quota", b.editor, "").Want(200).Says("Quota reset")
	if got := keyOf(b.Call("GET", "/api/keys/"+m.Hash, b.viewer, "")); got.Data.QuotaRemaining != 10 {
		t.Errorf("%d of the quota are left after a reset", got.Data.QuotaRemaining)
	}
	b.Call("DELETE", "/api/keys/"+m.Key, b.editor, "").Want(200).Says("Key deleted successfully.")
	if _, err := b.keys.Get(t.Context(), m.Hash); err == nil {
		t.Error("a deleted key is still in the key store")
	}
	for _, method := range []string{"GET", "DELETE"} {
		b.Call(method, "/api/keys/"+m.Key, b.editor, "").Want(404).Says("Could not retrieve key detail.")
	}
	b.Call("PUT", "/api/keys/"+m.Key, b.editor, aKey).Want(404)
	if log := b.log.String(); strings.Contains(log, m.Key) {
		t.Error("the log holds a key")
	}
	if n := b.Count("select count(*) from audit_log where object_kind = 'key' and object_id = $1", m.Hash); n != 5 {
		t.Errorf("%d entries in the audit log", n)
	}
	if n := b.Count("select count(*) from audit_log where strpos(coalesce(before::text,'') || coalesce(after::text,'') || object_id, $1) > 0", m.Key); n != 0 {
		t.Error("the audit log holds a key")
	}
}

// A change that names the version that its author saw is refused once there is another one,
// and a key can be read without what its policies set.
func TestKeysAreChangedByVersion(t *testing.T) {
	b := withAPI(t)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","quota_max":7,"quota_renewal_rate":60,"access_rights":{"a":{"api_id":"a"}}}`).Want(200)
	m := keyOf(b.Call("POST", "/api/keys", b.editor, `{"alias":"first","quota_max":3,"apply_policies":["p"]}`))
	path := "/api/keys/" + m.Hash
	seen := b.Call("GET", path, b.viewer, "").Want(200)
	if shown := keyOf(seen); shown.Data.QuotaMax != 7 {
		t.Errorf("the key is shown with a quota of %d", shown.Data.QuotaMax)
	}
	own := b.Call("GET", path+"?own=true", b.viewer, "").Want(200)
	if shown := keyOf(own); shown.Data.QuotaMax != 3 || shown.Data.Alias != "first" {
		t.Errorf("the key's own quota is %d", shown.Data.QuotaMax)
	}
	tag := own.Header.Get("ETag")
	if tag == "" || tag != seen.Header.Get("ETag") {
		t.Fatalf("entity tags %q and %q", seen.Header.Get("ETag"), tag)
	}
	changed := b.Call("PUT", path+"?suppress_reset=1", b.editor, `{"alias":"second","quota_max":3,"apply_policies":["p"]}`, "If-Match", tag).Want(200)
	now := changed.Header.Get("ETag")
	if now == tag || now == "" {
		t.Errorf("the entity tag is %q after a change of %q", now, tag)
	}
	for _, call := range [][2]string{{path, `{"alias":"third","apply_policies":["p"]}`}, {path + "/policies", `{"apply_policies":["p"]}`}} {
		stale := b.Call("PUT", call[0], b.editor, call[1], "If-Match", tag).Want(409).Says("changed in the meantime")
		if got := stale.Header.Get("ETag"); got != now {
			t.Errorf("PUT %s names %q as the present tag, want %q", call[0], got, now)
		}
		b.Call("PUT", call[0], b.editor, call[1], "If-Match", `"first"`).Want(400).Says("If-Match must be the ETag")
	}
	b.Call("PUT", path+"/policies", b.editor, `{"apply_policies":["p"]}`, "If-Match", now).Want(200)
	if got := keyOf(b.Call("GET", path, b.viewer, "")); got.Data.Alias != "second" {
		t.Errorf("refused changes were made: %+v", got.Data)
	}
	b.Call("PUT", path, b.editor, `{"alias":"any","apply_policies":["p"]}`).Want(200)
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
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"p","name":"gold","quota_max":7,"quota_renewal_rate":60,"key_expires_in":3600,"access_rights":{"a":{"api_id":"a"}}}`).Want(200)
	b.Call("POST", "/api/portal/policies", b.editor, `{"id":"q","name":"silver","quota_max":3,"quota_renewal_rate":60,"access_rights":{"a":{"api_id":"a"}}}`).Want(200)
	m := keyOf(b.Call("POST", "/api/keys/my-custom-id", b.editor, `{"apply_policies":["p"]}`))
	if !strings.HasSuffix(m.Key, "my-custom-id") || m.Data.QuotaMax != 7 || m.Data.Expires == 0 {
		t.Errorf("created %+v", m)
	}
	if got := keyOf(b.Call("GET", "/api/keys/my-custom-id", b.viewer, "")); got.Hash != m.Hash {
		t.Errorf("found %+v", got)
	}
	if got := keyOf(b.Call("PUT", "/api/keys/my-custom-id/policies", b.editor, `{"policy":"q"}`)); got.Data.QuotaMax != 3 {
		t.Errorf("with another policy: %+v", got)
	}
	b.Call("POST", "/api/keys/preview", b.viewer, `{"apply_policies":["p"]}`).Want(200).Says(`"quota_max":7`, `"access_rights_array":[{`)
	b.Call("GET", "/api/keys?api_id=a", b.viewer, "").Want(200).Says(m.Hash)
	b.Call("GET", "/api/apis/a/keys", b.viewer, "").Want(200).Says(m.Hash)
	b.Call("GET", "/api/apis/none/keys", b.viewer, "").Want(200).Says(`"data":{"keys":[]},"pages":0`)
	b.Call("GET", "/api/keys/detailed", b.viewer, "").Want(200).Says(`"apply_policies":["q"]`, `"pages":1`)
	b.Call("GET", "/api/apis/keys?q="+m.Hash[:8], b.viewer, "").Want(200).Says(m.Hash)
	b.Call("POST", "/api/gateway/keys/lookup", gatewayToken, `{"key_hash":"`+m.Hash+`"}`).Want(200).Says(`"session":{`, `"apply_policies":["q"]`)
	b.Call("POST", "/api/gateway/keys/lookup", gatewayToken, `{"key_hash":"none"}`).Want(404)
	b.Call("POST", "/api/gateway/keys/lookup", gatewayToken, `{}`).Want(400)
	if n := b.Count("select count(*) from keys where key_hash like '%custom%'"); n != 0 {
		t.Error("a key is stored in clear")
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	b := withAPI(t)
	b.Call("POST", "/api/portal/policies", b.other, `{"id":"foreign","name":"gold"}`).Want(200)
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
		r := b.Call("POST", "/api/keys", b.editor, body)
		r.What += " " + body
		if r.Want(400); !strings.Contains(string(r.Body), says) {
			// What cannot be stored may also be said in general.
			if !strings.Contains(string(r.Body), "U+0000") {
				t.Errorf("%s: %s", body, r.Body)
			}
		}
	}
	b.Call("POST", "/api/keys/ab", b.editor, aKey).Want(400).Says("3 characters")
	b.Call("POST", "/api/keys/slk_abc", b.editor, aKey).Want(400)
	b.createAPI(b.other, "theirs", "/theirs")
	m := keyOf(b.Call("POST", "/api/keys", b.other, `{"access_rights":{"theirs":{"api_id":"theirs"}}}`))
	for _, c := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"PUT", "", aKey}, {"DELETE", "", ""}, {"POST", "/reset_quota", ""}, {"PUT", "/policies", `{"policy":"p"}`},
	} {
		b.Call(c.method, "/api/keys/"+m.Hash+c.path, b.admin, c.body).Want(404)
		b.Call(c.method, "/api/keys/"+m.Key+c.path, b.admin, c.body).Want(404)
	}
	b.Call("GET", "/api/keys", b.admin, "").Want(200).Says(`"keys":[]`)
}

func TestKeyChangeIsAnsweredWhileTheKeyStoreIsAway(t *testing.T) {
	b := withAPI(t)
	b.keys.breakWith(errors.New("away"))
	m := keyOf(b.Call("POST", "/api/keys", b.editor, aKey))
	b.Call("PUT", "/api/keys/"+m.Hash, b.editor, strings.Replace(aKey, "first", "second", 1)).Want(200)
	b.keys.breakWith(nil)
	wait.Until(t, "the key arrives", func() bool { s, err := b.keys.Get(t.Context(), m.Hash); return err == nil && s.Alias == "second" })
}

func TestParallelChangesOfKeysEndWithTheLast(t *testing.T) {
	b := withAPI(t)
	m := keyOf(b.Call("POST", "/api/keys", b.editor, aKey))
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			r := b.Call("PUT", "/api/keys/"+m.Hash, b.editor, strings.Replace(aKey, "first", fmt.Sprint("n", i), 1))
			if r.Status != 200 {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		})
	}
	all.Wait()
	last := keyOf(b.Call("GET", "/api/keys/"+m.Hash, b.editor, "")).Data.Alias
	wait.Until(t, "nothing waits", func() bool { return b.Count("select count(*) from outbox") == 0 })
	if s, err := b.keys.Get(t.Context(), m.Hash); err != nil || s.Alias != last {
		t.Errorf("the key store has %q, the database %q: %v", s.Alias, last, err)
	}
}

func TestLegacyStoresInClear(t *testing.T) {
	b := start(t, func(d *Deps) { d.KeyOptions.Hasher = &credential.Hasher{Algorithm: credential.None, Prefix: "slk_"} })
	b.createAPI(b.editor, "a", "/a")
	m := keyOf(b.Call("POST", "/api/keys", b.editor, aKey))
	if m.Hash != m.Key {
		t.Errorf("created %+v", m)
	}
	b.Call("GET", "/api/keys/"+m.Key, b.viewer, "").Want(200)
	b.Call("PUT", "/api/keys/"+m.Key, b.editor, aKey).Want(200)
	b.Call("DELETE", "/api/keys/"+m.Key, b.editor, "").Want(200)
}

func TestAPageOfKeysBeyondTheLastTellsHowManyThereAre(t *testing.T) {
	b := withAPI(t)
	for i := range 3 {
		b.Call("POST", "/api/keys", b.editor, fmt.Sprintf(`{"alias":"ann-%d","access_rights":{"a":{"api_id":"a"}}}`, i)).Want(200)
	}
	for _, q := range []string{"", "&q=ann", "&api_id=a"} {
		b.Call("GET", "/api/keys?p=9&page_size=2"+q, b.viewer, "").Want(200).Says(`"keys":[]`, `"pages":2`)
		b.Call("GET", "/api/keys?p=2&page_size=2"+q, b.viewer, "").Want(200).Says(`"pages":2`)
	}
}
