package control

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
)

const (
	aKey      = `{"org_id":"acme","quota_max":10,"quota_renewal_rate":60,"access_rights":{"weather":{"api_id":"weather"}}}`
	noRights  = `{"org_id":"acme","rate":10,"per":1}`
	badPolicy = `{"org_id":"acme","apply_policies":["nowhere"]}`
)

// create makes a key and returns it as the answer shows it.
func (b *bench) create(path, body string) change {
	b.t.Helper()
	got := b.call("POST", path, body)
	made := decoded[change](b.t, got)
	if got.status != 200 || made.Status != "ok" || made.Action != "added" {
		b.t.Fatalf("POST %s: %d %s", path, got.status, got.body)
	}
	return made
}

// use counts calls against the quota of a key.
func (b *bench) use(hash string, calls int) {
	b.t.Helper()
	limit := []counter.Limit{{Key: counter.Naming{}.Quota("", hash), Kind: counter.Quota, Max: 10, Period: 60e9}}
	for range calls {
		if refused, err := b.counters.Take(b.t.Context(), limit, 1, make([]counter.Count, 1)); err != nil || refused >= 0 {
			b.t.Fatalf("refused %d, %v", refused, err)
		}
	}
}

// left is what is left of a key's quota.
func (b *bench) left(id string) int64 {
	b.t.Helper()
	got := b.call("GET", "/svc/keys/"+id, "")
	if got.status != 200 {
		b.t.Fatalf("GET %s: %d %s", id, got.status, got.body)
	}
	return decoded[definition.Session](b.t, got).QuotaRemaining
}

// happened checks which events were raised, each about the key of a hash.
func (b *bench) happened(hash string, names ...event.Name) {
	b.t.Helper()
	events := b.events.take()
	if len(events) != len(names) {
		b.t.Fatalf("events %+v, want %v", events, names)
	}
	for i, e := range events {
		if e.Name != names[i] || e.Key != hash[:12] || e.At.IsZero() {
			b.t.Errorf("event %+v, want %s of %.12s", e, names[i], hash)
		}
	}
}

// withWeather is onFiles with the API that keys name.
func withWeather(t *testing.T, adjust ...func(*Deps)) *bench {
	b := onFiles(t, adjust...)
	b.write("weather.json", definitionOf("weather", ""))
	b.reload()
	return b
}

func TestTheLifeOfAKey(t *testing.T) {
	b := withWeather(t)
	for _, path := range []string{"/svc/keys/create", "/svc/keys"} {
		made := b.create(path, aKey)
		if !credential.Check(credential.DefaultPrefix, []byte(made.Key)) || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(made.KeyHash) {
			t.Fatalf("made %+v", made)
		}
		b.happened(made.KeyHash, event.TokenCreated)
		if left := b.left(made.Key); left != 10 {
			t.Errorf("%d left", left)
		}
		b.use(made.KeyHash, 4)
		if left := b.left(made.KeyHash + "?hashed=true&api_id=weather&org_id=acme"); left != 6 {
			t.Errorf("%d left", left)
		}
		b.want("PUT", "/svc/keys/"+made.Key, strings.Replace(aKey, "{", `{"alias":"second",`, 1), 200,
			`{"key":"`+made.Key+`","status":"ok","action":"modified","key_hash":"`+made.KeyHash+`"}`)
		b.happened(made.KeyHash, event.TokenUpdated)
		b.want("DELETE", "/svc/keys/"+made.KeyHash+"?hashed=true", "", 200, done(made.KeyHash, "deleted"))
		b.happened(made.KeyHash, event.TokenDeleted)
		b.want("DELETE", "/svc/keys/"+made.Key, "", 404, failed("There is no such key found"))
		b.want("GET", "/svc/keys/"+made.Key, "", 404, failed("Key not found"))
		b.want("PUT", "/svc/keys/"+made.Key, aKey, 404, failed("Key is not found"))
		b.happened("")
	}
}

func TestChangingAKeyResetsItsQuotaUnlessSuppressed(t *testing.T) {
	b := withWeather(t)
	made := b.create("/svc/keys", aKey)
	b.use(made.KeyHash, 4)
	for path, want := range map[string]int64{"?suppress_reset=1": 6, "?suppress_reset=true&hashed=0": 6, "?suppress_reset=0": 10, "": 10} {
		b.use(made.KeyHash, int(b.left(made.Key))-6)
		if got := b.call("PUT", "/svc/keys/"+made.Key+path, aKey); got.status != 200 || b.left(made.Key) != want {
			t.Errorf("%q: %d %s, %d left, want %d", path, got.status, got.body, b.left(made.Key), want)
		}
	}
}

func TestAQuotaIsReset(t *testing.T) {
	b := withWeather(t)
	made := b.create("/svc/keys", aKey)
	b.events.take()
	b.use(made.KeyHash, 10)
	if left := b.left(made.Key); left != 0 {
		t.Errorf("%d left", left)
	}
	b.want("POST", "/svc/keys/reset/"+made.Key, "", 200, `{"status":"ok","message":"quota reset"}`)
	b.happened(made.KeyHash, event.TokenUpdated)
	if left := b.left(made.Key); left != 10 {
		t.Errorf("%d left", left)
	}
	b.use(made.KeyHash, 1)
	b.want("POST", "/svc/keys/reset/"+made.KeyHash+"?hashed=true", "", 200, `{"status":"ok","message":"quota reset"}`)
	if left := b.left(made.Key); left != 10 {
		t.Errorf("%d left", left)
	}
	b.want("POST", "/svc/keys/reset/unknown", "", 404, failed("Key not found"))
}

func TestAKeyOfAChosenName(t *testing.T) {
	b := withWeather(t)
	made := b.create("/svc/keys/my-key", aKey)
	if made.Key != "acmemy-key" || made.KeyHash == "" {
		t.Errorf("made %+v", made)
	}
	for _, id := range []string{"my-key", "acmemy-key", "my-key?org_id=acme", made.KeyHash + "?hashed=1"} {
		if left := b.left(id); left != 10 {
			t.Errorf("%s: %d left", id, left)
		}
	}
	b.create("/svc/keys/other?org_id=acme", `{"access_rights":{"weather":{}}}`)
	if b.left("acmeother") != 0 {
		t.Error("the key of the query's organisation is not there")
	}
	b.want("POST", "/svc/keys/other?org_id=foes", aKey, 400, failed("org_id in the query does not match that in the session"))
	b.want("POST", "/svc/keys/ab", aKey, 400, failed("Failed to create key, key id must have 3 characters at least"))
	b.want("POST", "/svc/keys/a%2Fb%2Fc", aKey, 400, failed(`Failed to create key, key id must consist of visible ASCII characters other than \" \\ / ? # %`))
	b.want("POST", "/svc/keys/slk_abcdef", aKey, 400, failed("Failed to create key, key id must not begin with slk_, as generated keys do"))
	const insecure = `{"status":"error","message":"Failed to create key, ensure security settings are correct.","errors":[`
	b.want("POST", "/svc/keys/my-key2", noRights, 500, insecure+`{"path":"access_rights","message":"keys must have at least one Access Rights record set"}]}`)
	if got := b.call("POST", "/svc/keys/my-key2", badPolicy); got.status != 500 || !strings.HasPrefix(got.body, insecure+`{"path":"apply_policies","message":"`) {
		t.Errorf("unknown policy: %d %s", got.status, got.body)
	}
}

func TestInvalidKeysAreRefused(t *testing.T) {
	b := withWeather(t)
	made := b.create("/svc/keys", aKey)
	for _, c := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/svc/keys/create", `{"org_id":`, 500, "Unmarshalling failed"},
		{"POST", "/svc/keys/preview", ``, 500, "Unmarshalling failed"},
		{"POST", "/svc/keys", `{"org_id":`, 400, "Request malformed"},
		{"POST", "/svc/keys/my-key", `nope`, 400, "Request malformed"},
		{"PUT", "/svc/keys/" + made.Key, `{`, 400, "Request malformed"},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{`, 400, "Request malformed"},
		{"POST", "/svc/keys/create", `{"rate":"x","per":[]}`, 400, "Validation of Key failed. Reason: rate: must be a number, not a string; per: must be a number, not an array."},
		{"POST", "/svc/keys", `[]`, 400, "Validation of Key failed. Reason: must be an object"},
		{"PUT", "/svc/keys/" + made.Key, `{"access_rights":{"a/b":{}}}`, 400, `Validation of Key failed. Reason: access_rights["a/b"]: the id of an API must`},
		{"POST", "/svc/keys/create", noRights, 400, "Failed to create key, keys must have at least one Access Rights record set."},
		{"POST", "/svc/keys", noRights, 400, "Failed to create key, keys must have at least one Access Rights record set."},
		{"PUT", "/svc/keys/" + made.Key, noRights, 400, "Failed to update key, keys must have at least one Access Rights record set."},
		{"POST", "/svc/keys/create", badPolicy, 500, "Failed to create key - "},
		{"POST", "/svc/keys", badPolicy, 500, "Failed to create key - "},
		{"POST", "/svc/keys/preview", badPolicy, 500, "Failed to create key - "},
		{"PUT", "/svc/keys/" + made.Key, badPolicy, 400, "Failed to update key - "},
		{"GET", "/svc/keys/unknown", ``, 404, "Key not found"},
		{"GET", "/svc/keys/" + made.Key + "?hashed=true", ``, 404, "Key not found"},
		{"PUT", "/svc/keys/unknown", aKey, 404, "Key is not found"},
		{"DELETE", "/svc/keys/unknown", ``, 404, "There is no such key found"},
		{"POST", "/svc/keys/policy/unknown", `{"policy":"gold"}`, 404, "Key not found"},
		{"POST", "/svc/keys/policy/" + made.Key, `{"policy":"gold"}`, 404, "Key not found"},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{}`, 400, "Validation of Request failed. Reason: policy: must be the id of a policy; without it apply_policies must have one at least."},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{"policy":"a","apply_policies":["b"]}`, 400, "Validation of Request failed. Reason: policy: must be left out when apply_policies is given."},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{"polcy":"a"}`, 400, "Validation of Request failed. Reason: must be {"},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{"policy":5}`, 400, "Validation of Request failed. Reason: must be {"},
		{"POST", "/svc/keys/policy/" + made.KeyHash, `{"policy":"nowhere"}`, 400, "Failed to update key - "},
	} {
		got := b.call(c.method, c.path, c.body)
		if said := decoded[outcome](t, got); got.status != c.status || said.Status != "error" || !strings.HasPrefix(said.Message, c.message) {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.path, c.body, got.status, got.body, c.status, c.message)
		}
	}
	if hashes := decoded[keyList](t, b.call("GET", "/svc/keys", "")); len(hashes.Keys) != 1 {
		t.Errorf("keys %v", hashes)
	}
}

func TestThePoliciesOfAKeyAreSwapped(t *testing.T) {
	b := withWeather(t)
	for _, id := range []string{"gold", "silver"} {
		b.want("POST", "/svc/policies", `{"id":"`+id+`","org_id":"acme","quota_max":`+fmt.Sprint(len(id))+`,"quota_renewal_rate":60,"access_rights":{"weather":{}}}`, 200, done(id, "added"))
	}
	b.reload()
	made := b.create("/svc/keys", `{"org_id":"acme","apply_policies":["gold"]}`)
	b.events.take()
	for body, want := range map[string]string{
		`{"policy":"silver"}`: "silver", `{"apply_policies":["gold"]}`: "gold", `{"apply_policies":["gold","silver"]}`: "gold silver",
	} {
		b.want("POST", "/svc/keys/policy/"+made.KeyHash, body, 200, done(made.KeyHash, "updated"))
		b.happened(made.KeyHash, event.TokenUpdated)
		got := decoded[definition.Session](t, b.call("GET", "/svc/keys/"+made.Key, ""))
		if strings.Join(got.ApplyPolicies, " ") != want {
			t.Errorf("%s: policies %v", body, got.ApplyPolicies)
		}
	}
}

func TestAPreviewShowsAKeyWithItsPoliciesAndStoresNothing(t *testing.T) {
	b := withWeather(t)
	b.want("POST", "/svc/policies", `{"id":"gold","org_id":"acme","quota_max":7,"quota_renewal_rate":60,"access_rights":{"weather":{}}}`, 200, done("gold", "added"))
	b.reload()
	got := b.call("POST", "/svc/keys/preview", `{"org_id":"acme","apply_policies":["gold"]}`)
	if applied := decoded[definition.Session](t, got); got.status != 200 || applied.QuotaMax != 7 || applied.AccessRights["weather"] == nil {
		t.Errorf("got %d %s", got.status, got.body)
	}
	b.want("GET", "/svc/keys", "", 200, `{"keys":[]}`)
	b.happened("")
}

func TestKeysAreListedWhereThatIsAllowed(t *testing.T) {
	b := withWeather(t)
	b.write("pets.json", strings.Replace(definitionOf("pets", ""), "weather", "pets", -1))
	b.reload()
	b.want("GET", "/svc/keys", "", 200, `{"keys":[]}`)
	one := b.create("/svc/keys", aKey)
	two := b.create("/svc/keys", `{"access_rights":{"pets":{}}}`)
	if all := decoded[keyList](t, b.call("GET", "/svc/keys/", "")); len(all.Keys) != 2 {
		t.Errorf("keys %v", all)
	}
	b.want("GET", "/svc/keys?api_id=weather", "", 200, `{"keys":["`+one.KeyHash+`"]}`)
	b.want("GET", "/svc/keys?filter="+two.KeyHash[:20], "", 200, `{"keys":["`+two.KeyHash+`"]}`)
	b.want("GET", "/svc/keys?filter="+two.KeyHash[:20]+"&api_id=weather", "", 200, `{"keys":[]}`)
	refusing := withWeather(t, func(d *Deps) { d.ListKeys = false })
	refusing.want("GET", "/svc/keys", "", 404, failed("Hashed key listing is disabled in config (enable_hashed_keys_listing)"))
}

func TestKeysInClearHaveNoHash(t *testing.T) {
	b := withWeather(t, func(d *Deps) {
		d.Keys.(LocalKeys).Options.Hasher = &credential.Hasher{Algorithm: credential.None, Prefix: credential.DefaultPrefix}
	})
	got := b.call("POST", "/svc/keys/create", aKey)
	made := decoded[change](t, got)
	if got.status != 200 || made.KeyHash != "" || strings.Contains(got.body, "key_hash") {
		t.Errorf("made %s", got.body)
	}
	if e := b.events.take(); len(e) != 1 || e[0].Key != "" {
		t.Errorf("an event names a key in clear: %+v", e)
	}
	b.want("GET", "/svc/keys/"+made.Key+"?hashed=true", "", 400, failed("Key requested by hash but key hashing is not enabled"))
	b.want("GET", "/svc/keys", "", 200, `{"keys":["`+made.Key+`"]}`)
	b.want("DELETE", "/svc/keys/"+made.Key, "", 200, done(made.Key, "deleted"))
	if strings.Contains(b.log.String(), made.Key) {
		t.Error("the log holds a key")
	}
}

// awayKeys fails every call.
type awayKeys struct {
	Keys
	err error
}

func (a awayKeys) Get(context.Context, keys.Ref) (*definition.Session, string, error) {
	return nil, "", a.err
}

func (a awayKeys) Delete(context.Context, keys.Ref) (keys.Issued, error) { return keys.Issued{}, a.err }

func (a awayKeys) Create(context.Context, string, *definition.Session, bool) (keys.Issued, error) {
	return keys.Issued{}, a.err
}

func TestStoresThatAreAway(t *testing.T) {
	for _, c := range []struct {
		err             error
		status, atDelet int
		message, delete string
	}{
		{fmt.Errorf("dial 10.0.0.1: %w", keystore.ErrUnavailable), 503, 503, "The key store is not available; try again", "The key store is not available; try again"},
		{fmt.Errorf("dial 10.0.0.1: %w", counter.ErrUnavailable), 503, 503, "The counter store is not available; try again", "The counter store is not available; try again"},
		{errors.New("dial 10.0.0.1: odd"), 500, 400, "Internal error; the gateway's log has the cause", "Failed to remove the key"},
	} {
		b := withWeather(t, func(d *Deps) { d.Keys = awayKeys{err: c.err} })
		got := b.want("GET", "/svc/keys/x", "", c.status, failed(c.message))
		if (got.header.Get("Retry-After") == "1") != (c.status == 503) {
			t.Errorf("%v: Retry-After %q", c.err, got.header.Get("Retry-After"))
		}
		b.want("POST", "/svc/keys", aKey, c.status, failed(c.message))
		b.want("DELETE", "/svc/keys/x", "", c.atDelet, failed(c.delete))
		if strings.Count(b.log.String(), "10.0.0.1") != 3 || len(b.events.take()) != 0 {
			t.Errorf("log %s", b.log)
		}
	}
}

func TestNoLogHoldsAKeyOrTheSecret(t *testing.T) {
	b := withWeather(t)
	made := b.create("/svc/keys", aKey)
	b.call("PUT", "/svc/keys/"+made.Key, aKey)
	b.call("DELETE", "/svc/keys/"+made.Key, "")
	b.call("POST", "/svc/keys/reset/"+made.Key, "")
	if strings.Contains(b.log.String(), made.Key) || strings.Contains(b.log.String(), testSecret) {
		t.Errorf("log %s", b.log)
	}
}

func TestAKeyInTheBodyIsUsedOrRefused(t *testing.T) {
	b := withWeather(t)
	own := func(key string) string { return strings.Replace(aKey, "{", `{"key":`+key+`,`, 1) }
	for _, path := range []string{"/svc/keys/create", "/svc/keys", "/svc/keys/my-key"} {
		if made := b.create(path, own(`"my-key"`)); made.Key != "acmemy-key" {
			t.Errorf("%s made %+v", path, made)
		}
	}
	if got := b.call("GET", "/svc/keys/my-key", ""); strings.Contains(got.body, `"key":`) {
		t.Errorf("the key is a member of the session: %s", got.body)
	}
	b.want("POST", "/svc/keys/other", own(`"my-key"`), 400, failed("key in the session does not match that in the path"))
	if got := b.call("POST", "/svc/keys", own("7")); got.status != 400 || !strings.Contains(got.body, "key: must be a text") {
		t.Errorf("a number: %d %s", got.status, got.body)
	}
}
