package keys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/rights"
)

// begin is the time at which every test starts.
var begin = time.Unix(1_700_000_000, 0)

// A desk is a Service over stores in memory, and what it was given.
type desk struct {
	*keys.Service
	t        *testing.T
	store    *keystore.Memory
	counts   *counter.Memory
	now      time.Time
	policies []*definition.Policy
	apis     map[string]*definition.API // nil: every one exists
}

func open(t *testing.T) *desk {
	d := &desk{t: t, store: keystore.NewMemory(), now: begin}
	d.counts = counter.NewMemory(func() time.Time { return d.now })
	d.Service = &keys.Service{
		Store: keys.Direct{Keys: d.store, Counters: d.counts}, Counter: d.counts,
		Policies: func() *definition.PolicySet { return definition.NewPolicySet(d.policies) },
		API: func(id string) *definition.API {
			if d.apis == nil {
				return new(definition.API)
			}
			return d.apis[id]
		},
		Options: keys.Options{Hasher: &credential.Hasher{Prefix: credential.DefaultPrefix}},
		Now:     func() time.Time { return d.now },
	}
	return d
}

func parse[T any](t testing.TB, text string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func (d *desk) policy(text string) {
	d.policies = append(d.policies, parse[definition.Policy](d.t, text))
}

func (d *desk) create(custom, text string) keys.Issued {
	d.t.Helper()
	issued, err := d.Create(d.t.Context(), custom, parse[definition.Session](d.t, text), false)
	if err != nil {
		d.t.Fatal(err)
	}
	return issued
}

func (d *desk) update(key, text string, suppress bool) {
	d.t.Helper()
	if _, err := d.Update(d.t.Context(), keys.Ref{ID: key}, parse[definition.Session](d.t, text), suppress); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) get(key string) *definition.Session {
	d.t.Helper()
	s, _, err := d.Get(d.t.Context(), keys.Ref{ID: key})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// use counts calls to an API as the gateway would.
func (d *desk) use(hash, api string, calls int) {
	d.t.Helper()
	s, err := d.store.Get(context.Background(), hash)
	if err != nil {
		d.t.Fatal(err)
	}
	r, err := rights.Effective(s, d.Policies())
	if err != nil {
		d.t.Fatal(err)
	}
	a, ok := r.For(api)
	limit, limited := a.QuotaLimit(counter.Naming{}, hash)
	if !ok || !limited {
		d.t.Fatalf("access %v, quota %v", ok, limited)
	}
	for range calls {
		if _, err := d.counts.Take(context.Background(), []counter.Limit{limit}, 1, make([]counter.Count, 1)); err != nil {
			d.t.Fatal(err)
		}
	}
}

const quotaOf10 = `{"org_id": "o", "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"a": {}}}`

func TestCreatedKeyIsShownOnceAndStoredByItsHash(t *testing.T) {
	d := open(t)
	given := parse[definition.Session](t, quotaOf10)
	before, _ := json.Marshal(given)
	issued, err := d.Create(t.Context(), "", given, false)
	if err != nil {
		t.Fatal(err)
	}
	if !credential.Check(credential.DefaultPrefix, []byte(issued.Key)) || !strings.HasPrefix(issued.Key, "slk_") || len(issued.Hash) != 64 {
		t.Errorf("issued %+v", issued)
	}
	if after, _ := json.Marshal(given); string(after) != string(before) {
		t.Errorf("the caller's session became %s", after)
	}
	stored, err := d.store.Get(t.Context(), issued.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if stored.DateCreated != "2023-11-14T22:13:20Z" || stored.LastUpdated != "1700000000" || stored.QuotaRenews != 1_700_000_060 || stored.QuotaRemaining != 10 {
		t.Errorf("stored %+v", stored)
	}
	if text, _ := json.Marshal(stored); strings.Contains(string(text), issued.Key) {
		t.Error("the key itself is stored")
	}
}

func TestKeysThatMayNotBeMade(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "foreign", "org_id": "p", "access_rights": {"a": {}}}`)
	d.policy(`{"id": "limits", "org_id": "o", "rate": 1, "per": 1}`)
	for _, c := range []struct{ name, custom, session, want string }{
		{"a master key", "", `{"rate": 5, "per": 1}`, "keys must have at least one Access Rights record set"},
		{"a policy that does not exist", "", `{"apply_policies": ["gone"]}`, `policy not found: "gone"`},
		{"a policy of another organisation", "", `{"org_id": "o", "apply_policies": ["foreign"]}`, `policy "foreign" belongs to another organisation than the key`},
		{"policies without access rights", "", `{"org_id": "o", "apply_policies": ["limits"]}`, "key has no valid policies to be applied"},
		{"a feature that does not exist", "", `{"access_rights": {"a": {}}, "hmac_enabled": true}`, "hmac_enabled: asks for a feature that this release does not have: HMAC request signatures; leave it out or turn it off"},
		{"an id that is too short", "ab", quotaOf10, "key id must have 3 characters at least"},
		{"an id that is too long", strings.Repeat("x", 513), quotaOf10, "key id must have 512 characters at most"},
		{"an id like that of a generated key", "slk_mine", quotaOf10, "key id must not begin with slk_, as generated keys do"},
		{"an id with a space", "a b c", quotaOf10, `key id must consist of visible ASCII characters other than " \ / ? # %`},
		{"an id with a quote", `a"bc`, quotaOf10, `key id must consist of visible ASCII characters other than " \ / ? # %`},
	} {
		_, err := d.Create(t.Context(), c.custom, parse[definition.Session](t, c.session), false)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if d.store.Len() != 0 {
		t.Errorf("%d keys were stored", d.store.Len())
	}
	_, err := d.Create(t.Context(), "", parse[definition.Session](t, `{"apply_policies": ["gone"]}`), false)
	if _, ok := errors.AsType[*keys.PolicyError](err); !ok {
		t.Errorf("policy trouble is a %T", err)
	}
	if _, ok := errors.AsType[*rights.MissingError](err); !ok {
		t.Errorf("its cause is not told: %v", err)
	}
}

func TestMasterKeysWhereTheyAreAllowed(t *testing.T) {
	d := open(t)
	d.Options.AllowMaster = true
	issued := d.create("", `{"quota_max": 5}`)
	d.use(issued.Hash, "anything", 2)
	if got := d.get(issued.Key); got.QuotaRemaining != 3 {
		t.Errorf("remaining %d", got.QuotaRemaining)
	}
}

func TestCustomKeyIsFoundInEveryForm(t *testing.T) {
	d := open(t)
	issued := d.create("me@example.com", quotaOf10)
	if issued.Key != "ome@example.com" {
		t.Errorf("key %q", issued.Key)
	}
	for name, ref := range map[string]keys.Ref{
		"in full": {ID: issued.Key}, "bare, with its organisation": {ID: "me@example.com", Org: "o"}, "by hash": {ID: issued.Hash, Hashed: true},
	} {
		if s, hash, err := d.Get(t.Context(), ref); err != nil || hash != issued.Hash || s.OrgID != "o" {
			t.Errorf("%s: %v, %q, %v", name, s, hash, err)
		}
	}
	bare := keys.Ref{ID: "me@example.com"}
	if _, _, err := d.Get(t.Context(), bare); !errors.Is(err, keys.ErrNotFound) {
		t.Errorf("bare, without an organisation: %v", err)
	}
	d.Orgs = func() []string { return []string{"p", "o"} }
	if _, _, err := d.Get(t.Context(), bare); err != nil {
		t.Errorf("bare, with the organisations there are: %v", err)
	}
}

func TestKeysInClear(t *testing.T) {
	d := open(t)
	d.Options.Hasher = &credential.Hasher{Algorithm: credential.None, Prefix: credential.DefaultPrefix}
	issued := d.create("", quotaOf10)
	if issued.Hash != "" {
		t.Errorf("hash %q", issued.Hash)
	}
	if _, err := d.store.Get(t.Context(), issued.Key); err != nil {
		t.Error(err)
	}
	if _, _, err := d.Get(t.Context(), keys.Ref{ID: "x", Hashed: true}); !errors.Is(err, keys.ErrNotHashed) {
		t.Errorf("by hash: %v", err)
	}
}

func TestUnknownKeysAreNotFound(t *testing.T) {
	d := open(t)
	d.create("", quotaOf10)
	for _, ref := range []keys.Ref{{ID: "nobody"}, {ID: "nobody", Org: "o"}, {ID: "slk_mistyped"}, {ID: "00", Hashed: true}, {ID: credential.Generate("slk_")}} {
		_, _, err := d.Get(t.Context(), ref)
		_, updating := d.Update(t.Context(), ref, parse[definition.Session](t, quotaOf10), false)
		_, deleting := d.Delete(t.Context(), ref)
		_, resetting := d.ResetQuota(t.Context(), ref)
		_, swapping := d.SetPolicies(t.Context(), ref, []string{"p"})
		for i, err := range []error{err, updating, deleting, resetting, swapping} {
			if !errors.Is(err, keys.ErrNotFound) {
				t.Errorf("%+v, call %d: %v", ref, i, err)
			}
		}
	}
}

func TestUpdateReplacesTheSessionAndKeepsWhatItCannotKnow(t *testing.T) {
	d := open(t)
	issued := d.create("", `{"org_id": "o", "alias": "old", "tags": ["t"], "expires": 1800000000, "access_rights": {"a": {}}}`)
	d.now = begin.Add(time.Hour)
	d.update(issued.Key, `{"org_id": "o", "expires": 1700000001, "date_created": "1999-01-01T00:00:00Z", "last_updated": "5", "access_rights": {"b": {}}}`, false)
	got := d.get(issued.Key)
	if got.Alias != "" || got.Tags != nil || got.AccessRights["b"] == nil || got.AccessRights["a"] != nil {
		t.Errorf("not replaced: %+v", got)
	}
	if got.DateCreated != "2023-11-14T22:13:20Z" || got.LastUpdated != "1700003600" {
		t.Errorf("created %s, updated %s", got.DateCreated, got.LastUpdated)
	}
	if got.Expires != 1_800_000_000 {
		t.Errorf("an end in the past became %d, want the old one", got.Expires)
	}
	d.update(issued.Key, `{"expires": -1, "access_rights": {"b": {}}}`, false)
	if got := d.get(issued.Key).Expires; got != -1 {
		t.Errorf("an end of never became %d", got)
	}
}

func TestEveryUpdateStampsTheKeyAnew(t *testing.T) {
	d := open(t)
	issued := d.create("", quotaOf10)
	seen := []string{d.get(issued.Key).LastUpdated}
	for range 3 {
		d.update(issued.Key, quotaOf10, false)
		stamp := d.get(issued.Key).LastUpdated
		if slices.Contains(seen, stamp) {
			t.Errorf("stamped %s again within a second", stamp)
		}
		seen = append(seen, stamp)
	}
	d.update(issued.Key, quotaOf10, true)
	if got := d.get(issued.Key).LastUpdated; got != seen[3] {
		t.Errorf("with suppressed reset stamped %s", got)
	}
}

func TestStoredPasswordIsKeptAndNeverShown(t *testing.T) {
	d := open(t)
	issued := d.create("", quotaOf10)
	stored, _ := d.store.Get(t.Context(), issued.Hash)
	imported := stored.Clone()
	imported.BasicAuth = &definition.BasicAuth{Password: "hashed", HashType: "bcrypt"}
	if err := d.store.Put(t.Context(), issued.Hash, imported); err != nil {
		t.Fatal(err)
	}
	if got := d.get(issued.Key).BasicAuth; got == nil || got.Password != "" {
		t.Errorf("shown: %+v", got)
	}
	d.update(issued.Key, quotaOf10, false)
	if stored, _ = d.store.Get(t.Context(), issued.Hash); stored.BasicAuth == nil || stored.BasicAuth.Password != "hashed" {
		t.Errorf("stored: %+v", stored.BasicAuth)
	}
}

func TestWhenUsedQuotaIsForgotten(t *testing.T) {
	const two = `{"org_id": "o", "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"a": {}, "b": {}}}`
	keep := &definition.API{DontSetQuotas: true}
	ref := func(i keys.Issued) keys.Ref { return keys.Ref{ID: i.Key} }
	for _, c := range []struct {
		name string
		apis map[string]*definition.API
		do   func(*desk, keys.Issued) error
		want int64 // remaining of 10 after 4 calls
	}{
		{"update", nil, func(d *desk, i keys.Issued) error { d.update(i.Key, two, false); return nil }, 10},
		{"update with suppressed reset", nil, func(d *desk, i keys.Issued) error { d.update(i.Key, two, true); return nil }, 6},
		{"update when every API keeps it", map[string]*definition.API{"a": keep, "b": {SkipQuotaReset: true}}, func(d *desk, i keys.Issued) error { d.update(i.Key, two, false); return nil }, 6},
		{"update when the only known API keeps it", map[string]*definition.API{"a": {DontSetQuotasClassic: true}}, func(d *desk, i keys.Issued) error { d.update(i.Key, two, false); return nil }, 6},
		{"update when one API does not keep it", map[string]*definition.API{"a": keep, "b": {}}, func(d *desk, i keys.Issued) error { d.update(i.Key, two, false); return nil }, 10},
		{"creating it again", nil, func(d *desk, _ keys.Issued) error { d.create("custom", two); return nil }, 10},
		{"creating it again with suppressed reset", nil, func(d *desk, _ keys.Issued) error {
			_, err := d.Create(context.Background(), "custom", parse[definition.Session](d.t, two), true)
			return err
		}, 6},
		{"reset", map[string]*definition.API{"a": keep, "b": keep}, func(d *desk, i keys.Issued) error { _, err := d.ResetQuota(context.Background(), ref(i)); return err }, 10},
		{"delete, and creating it again with suppressed reset", map[string]*definition.API{"a": keep, "b": keep}, func(d *desk, i keys.Issued) error {
			if _, err := d.Delete(context.Background(), ref(i)); err != nil {
				return err
			}
			_, err := d.Create(context.Background(), "custom", parse[definition.Session](d.t, two), true)
			return err
		}, 10},
		{"other policies", nil, func(d *desk, i keys.Issued) error {
			_, err := d.SetPolicies(context.Background(), ref(i), []string{"p"})
			return err
		}, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			d.policy(`{"id": "p", "org_id": "o", "partitions": {"acl": true}, "access_rights": {"a": {}}}`)
			issued := d.create("custom", two)
			d.apis = c.apis
			d.use(issued.Hash, "a", 4)
			d.now = d.now.Add(10 * time.Second)
			if err := c.do(d, issued); err != nil {
				t.Fatal(err)
			}
			got := d.get(issued.Key)
			renews := begin.Unix() + 60 // of the period that the calls opened
			if c.want == 10 && !strings.HasPrefix(c.name, "delete") {
				renews += 10
			}
			if strings.HasPrefix(c.name, "delete") {
				renews = 0 // nothing was opened, and nothing noted
			}
			if got.QuotaRemaining != c.want || got.QuotaRenews != renews {
				t.Errorf("remaining %d, renews %d, want %d and %d", got.QuotaRemaining, got.QuotaRenews, c.want, renews)
			}
		})
	}
}

func TestResetReachesEveryCounterOfTheKey(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "p", "org_id": "o", "quota_max": 10, "access_rights": {"a": {}}}`)
	d.policy(`{"id": "q", "org_id": "o", "partitions": {"per_api": true}, "quota_max": 10, "access_rights": {"b": {"limit": {"quota_max": 5}}, "c": {}}}`)
	issued := d.create("", `{"org_id": "o", "apply_policies": ["p", "q"]}`)
	apis := []string{"a", "b", "c"}
	for _, api := range apis {
		d.use(issued.Hash, api, 3)
	}
	left := func() (all []int64) {
		s, _ := d.store.Get(t.Context(), issued.Hash)
		r, err := rights.Effective(s, d.Policies())
		if err != nil {
			t.Fatal(err)
		}
		for _, api := range apis {
			a, _ := r.For(api)
			limit, _ := a.QuotaLimit(counter.Naming{}, issued.Hash)
			counts := make([]counter.Count, 1)
			if err := d.counts.Peek(t.Context(), []counter.Limit{limit}, counts); err != nil {
				t.Fatal(err)
			}
			all = append(all, counts[0].Remaining)
		}
		return all
	}
	if got := left(); !slices.Equal(got, []int64{7, 2, 7}) {
		t.Fatalf("left %v before", got)
	}
	if _, err := d.ResetQuota(t.Context(), keys.Ref{ID: issued.Hash, Hashed: true}); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []int64{10, 5, 10}) {
		t.Errorf("left %v after", got)
	}
}

func TestGetFillsWhatIsLeftOfTheKeyAndOfItsAPIs(t *testing.T) {
	d := open(t)
	issued := d.create("", `{"org_id": "o", "quota_max": 10, "quota_renewal_rate": 60,
		"access_rights": {"a": {"limit": {"quota_max": 5, "quota_renewal_rate": 30}}, "b": {"limit": {"rate": 1, "per": 1}}, "c": {}}}`)
	d.now = begin.Add(20 * time.Second)
	d.use(issued.Hash, "a", 2)
	d.use(issued.Hash, "b", 3)
	d.use(issued.Hash, "c", 99) // more than there are
	got := d.get(issued.Key)
	a, b := got.AccessRights["a"], got.AccessRights["b"]
	if got.QuotaRemaining != 0 || got.QuotaRenews != begin.Unix()+80 {
		t.Errorf("key: remaining %d, renews %d", got.QuotaRemaining, got.QuotaRenews)
	}
	if a.Limit.QuotaRemaining != 3 || a.Limit.QuotaRenews != begin.Unix()+50 || a.AllowanceScope != "a" {
		t.Errorf("entry with a quota: %+v", a.Limit)
	}
	if b.Limit.QuotaRemaining != 0 || b.AllowanceScope != "" {
		t.Errorf("entry without a quota: %+v in scope %q", b.Limit, b.AllowanceScope)
	}
	if stored, _ := d.store.Get(t.Context(), issued.Hash); stored.QuotaRemaining != 10 || stored.AccessRights["a"].AllowanceScope != "" {
		t.Error("what is shown was written into what is stored")
	}
}

func TestGetShowsTheNumbersOfPolicies(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "p", "org_id": "o", "rate": 5, "per": 1, "quota_max": 10, "quota_renewal_rate": 60, "access_rights": {"a": {}, "b": {}}}`)
	d.policy(`{"id": "q", "org_id": "o", "rate": 7, "per": 1, "quota_max": 70, "access_rights": {"c": {}}}`)
	one := d.create("", `{"org_id": "o", "rate": 99, "per": 1, "apply_policies": ["p"]}`)
	d.use(one.Hash, "a", 1)
	d.use(one.Hash, "b", 1)
	if got := d.get(one.Key); got.Rate != 5 || got.QuotaMax != 10 || got.QuotaRemaining != 8 || got.AccessRights != nil {
		t.Errorf("got %+v", got)
	}
	two := d.create("", `{"org_id": "o", "apply_policies": ["p", "q"]}`)
	if got := d.get(two.Key); got.Rate != 0 || got.QuotaMax != 0 || got.QuotaRemaining != 0 {
		t.Errorf("numbers that hold for some APIs only are shown for the key: %+v", got)
	}
	d.use(two.Hash, "b", 3)
	d.use(two.Hash, "c", 4)
	d.now = begin.Add(10 * time.Second)
	got := d.get(two.Key)
	want := []definition.QuotaState{
		{Scope: "p", APIs: []string{"a", "b"}, QuotaMax: 10, QuotaRemaining: 7, QuotaRenews: begin.Unix() + 60, QuotaRenewalRate: 60},
		{Scope: "q", APIs: []string{"c"}, QuotaMax: 70, QuotaRemaining: 66},
	}
	if !reflect.DeepEqual(got.Extra.Quotas, want) {
		t.Errorf("quotas %+v\nwant   %+v", got.Extra.Quotas, want)
	}
	// What is shown can be sent back, and is not stored.
	if _, err := d.Update(t.Context(), keys.Ref{ID: two.Key}, got, true); err != nil {
		t.Fatal(err)
	}
	if stored, _ := d.store.Get(t.Context(), two.Hash); stored.Extra != nil && stored.Extra.Quotas != nil {
		t.Errorf("stored %+v", stored.Extra)
	}
	if d.get(one.Key).Extra != nil {
		t.Error("a key with one quota has a list of them")
	}
	d.policies = nil
	if got := d.get(one.Key); got.Rate != 99 || !slices.Equal(got.ApplyPolicies, []string{"p"}) {
		t.Errorf("a key whose policy is gone: %+v", got)
	}
}

func TestManyQuotasAreReadInSteps(t *testing.T) {
	d := open(t)
	var entries []string
	for i := range 50 {
		entries = append(entries, fmt.Sprintf(`"api-%02d": {"limit": {"quota_max": %d}}`, i, i+1))
	}
	issued := d.create("", `{"access_rights": {`+strings.Join(entries, ",")+`}}`)
	d.use(issued.Hash, "api-49", 7)
	got := d.get(issued.Key).AccessRights
	for i := range 49 {
		if e := got[fmt.Sprintf("api-%02d", i)]; e.Limit.QuotaRemaining != int64(i+1) {
			t.Errorf("%d: %+v", i, e.Limit)
		}
	}
	if e := got["api-49"]; e.Limit.QuotaRemaining != 43 {
		t.Errorf("the last: %+v", e.Limit)
	}
}

func TestPolicySaysHowLongNewKeysLive(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "p", "org_id": "o", "key_expires_in": 3600, "access_rights": {"a": {}}}`)
	d.policy(`{"id": "q", "org_id": "o", "key_expires_in": 60, "access_rights": {"b": {}}}`)
	d.policy(`{"id": "r", "org_id": "o", "access_rights": {"c": {}}}`)
	issued := d.create("", `{"org_id": "o", "apply_policies": ["p", "q", "r"]}`)
	if got := d.get(issued.Key).Expires; got != begin.Unix()+60 {
		t.Errorf("expires %d", got)
	}
	d.update(issued.Key, `{"org_id": "o", "apply_policies": ["p"], "expires": 0}`, false)
	if got := d.get(issued.Key).Expires; got != 0 {
		t.Errorf("an update made it expire at %d", got)
	}
}

func TestSetPolicies(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "p", "org_id": "o", "access_rights": {"a": {}}}`)
	issued := d.create("", `{"org_id": "o", "apply_policy_id": "p"}`)
	ref := keys.Ref{ID: issued.Hash, Hashed: true}
	if _, err := d.SetPolicies(t.Context(), ref, []string{"gone"}); err == nil || err.Error() != `policy not found: "gone"` {
		t.Errorf("got %v", err)
	}
	d.policy(`{"id": "q", "org_id": "o", "access_rights": {"b": {}}}`)
	changed, err := d.SetPolicies(t.Context(), ref, []string{"q"})
	if err != nil || changed != (keys.Issued{Hash: issued.Hash}) {
		t.Errorf("got %+v, %v", changed, err)
	}
	if got := d.get(issued.Key); !slices.Equal(got.Policies(), []string{"q"}) || got.ApplyPolicyID != "" {
		t.Errorf("got %+v", got)
	}
}

func TestPreviewAppliesPoliciesAndStoresNothing(t *testing.T) {
	d := open(t)
	d.policy(`{"id": "p", "org_id": "o", "rate": 5, "per": 1, "quota_max": 10, "is_inactive": true, "tags": ["t"], "meta_data": {"m": "p"},
		"max_query_depth": 4, "max_query_aliases": 3, "max_query_cost": -1,
		"access_rights": {"b": {"limit": {"max_query_depth": 9}}, "a": {"trusted_documents_only": true, "versions": ["v1"], "allowed_urls": [{"url": "/x", "methods": ["GET"]}], "field_access_rights": [{"type_name": "T", "field_name": "f", "limits": {"max_query_depth": 2}}]}}}`)
	got, err := d.Preview(parse[definition.Session](t, `{"org_id": "o", "apply_policies": ["p"], "tags": ["k"], "meta_data": {"m": "k", "n": 1}}`))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	for _, want := range []string{
		`"rate":5`, `"quota_max":10`, `"is_inactive":true`, `"tags":["t","k"]`, `"meta_data":{"m":"p","n":1}`, `"versions":["v1"]`, `"allowed_urls":[{"url":"/x","methods":["GET"]}]`, `"type_name":"T"`, `"quota_remaining":10`,
		`"trusted_documents_only":true`, `"max_query_depth":9,"quota_max":10,"quota_renewal_rate":0,"max_query_aliases":3,"max_query_cost":-1`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if got.MaxQueryDepth != 0 || got.MaxQueryAliases != 3 || got.MaxQueryCost != -1 {
		t.Errorf("of limits that hold for all APIs, and of no others, got %+v", got.Limits)
	}
	if d.store.Len() != 0 {
		t.Error("something was stored")
	}
	if _, err := d.Preview(parse[definition.Session](t, `{"apply_policies": ["gone"]}`)); err == nil {
		t.Error("a preview of what cannot be made")
	}
}

func TestFind(t *testing.T) {
	d := open(t)
	d.Options.Hasher = &credential.Hasher{Algorithm: credential.None}
	d.policy(`{"id": "p", "org_id": "o", "access_rights": {"b": {}}}`)
	d.create("xx-1", `{"access_rights": {"a": {}}}`)
	d.create("xx-2", `{"org_id": "", "access_rights": {"b": {}}}`)
	d.create("yy-1", `{"org_id": "o", "apply_policies": ["p"]}`)
	for _, c := range []struct {
		f    keys.Filter
		want []string
	}{
		{keys.Filter{}, []string{"oyy-1", "xx-1", "xx-2"}},
		{keys.Filter{Prefix: "xx"}, []string{"xx-1", "xx-2"}},
		{keys.Filter{API: "b"}, []string{"oyy-1", "xx-2"}},
		{keys.Filter{Prefix: "xx", API: "b"}, []string{"xx-2"}},
		{keys.Filter{Prefix: "zz"}, nil},
	} {
		if got, err := d.Find(t.Context(), c.f); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, %v, want %q", c.f, got, err, c.want)
		}
	}
	if page, _, err := d.List(t.Context(), "", 10); err != nil || len(page) != 3 {
		t.Errorf("listed %q, %v", page, err)
	}
}

// away is a counter or key store that cannot be reached.
type away struct {
	counter.Counter
	keystore.Store
}

func (away) Reset(context.Context, ...string) error { return counter.ErrUnavailable }
func (away) Peek(context.Context, []counter.Limit, []counter.Count) error {
	return counter.ErrUnavailable
}

func (away) Get(context.Context, string) (*definition.Session, error) {
	return nil, keystore.ErrUnavailable
}

func TestStoresThatAreAwayAreToldOf(t *testing.T) {
	d := open(t)
	issued := d.create("custom", quotaOf10)
	ref := keys.Ref{ID: issued.Key}
	session := parse[definition.Session](t, `{"org_id": "o", "alias": "new", "access_rights": {"a": {}}}`)

	d.Service.Store, d.Counter = keys.Direct{Keys: d.store, Counters: away{}}, away{}
	if _, err := d.Update(t.Context(), ref, session, false); !errors.Is(err, counter.ErrUnavailable) || !strings.Contains(err.Error(), "the key is stored: resetting its quota counters: ") {
		t.Errorf("update: %v", err)
	}
	if _, err := d.Delete(t.Context(), ref); !errors.Is(err, counter.ErrUnavailable) || d.store.Len() != 1 {
		t.Errorf("delete: %v; %d keys", err, d.store.Len())
	}
	if _, err := d.Update(t.Context(), ref, parse[definition.Session](t, quotaOf10), true); err != nil {
		t.Errorf("an update that resets nothing: %v", err)
	}
	if _, _, err := d.Get(t.Context(), ref); !errors.Is(err, counter.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}

	d.Service.Store = keys.Direct{Keys: away{}, Counters: d.counts}
	_, creating := d.Create(t.Context(), "", session, false)
	_, naming := d.Create(t.Context(), "custom", session, false)
	_, _, getting := d.Get(t.Context(), ref)
	_, updating := d.Update(t.Context(), ref, session, false)
	for i, err := range []error{creating, naming, getting, updating} {
		if !errors.Is(err, keystore.ErrUnavailable) || errors.Is(err, keys.ErrNotFound) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestDirectHoldsNewToItsWord(t *testing.T) {
	d := open(t)
	store := keys.Direct{Keys: d.store, Counters: d.counts}
	s := &definition.Session{}
	for _, c := range []struct {
		name   string
		change keys.Change
		want   error
	}{
		{"changing what is not there", keys.Change{Hash: "h", Session: s}, keys.ErrNotFound},
		{"deleting what is not there", keys.Change{Hash: "h"}, keys.ErrNotFound},
		{"making it", keys.Change{Hash: "h", Session: s, New: true}, nil},
		{"making it again", keys.Change{Hash: "h", Session: s, New: true}, keys.ErrExists},
		{"deleting it", keys.Change{Hash: "h"}, nil},
	} {
		if err := store.Commit(t.Context(), c.change); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
