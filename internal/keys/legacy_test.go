package keys_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
)

// based returns a key in the base64 form that names a hash.
func based(hash string) string {
	return base64.RawStdEncoding.EncodeToString([]byte(`{"org":"o","id":"me","h":"` + hash + `"}`))
}

func TestNoKeyIsMadeUnderALegacyHash(t *testing.T) {
	d := open(t)
	for hash, want := range map[string]string{
		"murmur32": "names murmur32 as its hash", "murmur64": "names murmur64", "murmur128": "names murmur128",
		"": "names murmur32", "md5": "names an unknown hash",
	} {
		for _, legacy := range [][]credential.Algorithm{nil, {credential.Murmur32, credential.Murmur64, credential.Murmur128}} {
			d.Options.Hasher.Legacy = legacy
			_, err := d.Create(t.Context(), based(hash), parse[definition.Session](t, quotaOf10), false)
			if custom, ok := errors.AsType[*keys.CustomError](err); !ok || !strings.Contains(custom.Error(), want) || !strings.Contains(custom.Error(), "sha256") {
				t.Errorf("h %q, legacy hashes %v: %v", hash, legacy, err)
			}
		}
	}
	if made := d.create(based("sha256"), quotaOf10); len(made.Hash) != 64 {
		t.Errorf("a key that names sha256: %+v", made)
	}
}

func TestALegacyHashIsAdoptedOnlyWhereItIsListed(t *testing.T) {
	d := open(t)
	session := parse[definition.Session](t, quotaOf10)
	for hash, name := range map[string]string{"248bfa47": "murmur32", "cbd8a7b341bd9b02": "murmur64", "cbd8a7b341bd9b025b1e906a48ae1d19": "murmur128"} {
		d.Options.Hasher.Legacy = nil
		if _, err := d.Adopt(t.Context(), hash, session); err == nil || !strings.Contains(err.Error(), "list "+name+" in keys.legacy_hashes") {
			t.Errorf("%s: %v", name, err)
		}
		a, err := credential.ParseAlgorithm(name)
		if err != nil {
			t.Fatal(err)
		}
		d.Options.Hasher.Legacy = []credential.Algorithm{a}
		if _, err := d.Adopt(t.Context(), hash, session); err != nil {
			t.Errorf("%s where it is listed: %v", name, err)
		}
	}
}

func TestLegacyHashesAreNotShown(t *testing.T) {
	d := open(t)
	d.Options.Hasher.Legacy = []credential.Algorithm{credential.Murmur32}
	const hash = "248bfa47" // murmur32 of hello
	shown := credential.Masked(hash)
	session := parse[definition.Session](t, quotaOf10)
	if made, err := d.Adopt(t.Context(), hash, session); err != nil || made.Hash != shown {
		t.Fatalf("adopted as %+v: %v", made, err)
	}
	if found, err := d.Find(t.Context(), keys.Filter{}); err != nil || !slices.Equal(found, []string{shown}) {
		t.Errorf("listed as %v: %v", found, err)
	}
	for _, ref := range []keys.Ref{{ID: "hello", Org: "o"}, {ID: shown, Hashed: true}} {
		if _, got, err := d.Get(t.Context(), ref); err != nil || got != shown {
			t.Errorf("%+v has the hash %s: %v", ref, got, err)
		}
	}
	again := session.Clone()
	again.Alias = "again"
	if _, err := d.Adopt(t.Context(), shown, again); err != nil {
		t.Fatal(err)
	}
	if stored, err := d.store.Get(t.Context(), hash); err != nil || stored.Alias != "again" {
		t.Errorf("what is shown does not name the key when it is adopted again: %+v, %v", stored, err)
	}
	successor, err := d.Rotate(t.Context(), keys.Ref{ID: shown, Hashed: true}, 0)
	if err != nil || successor.Hash != shown {
		t.Errorf("rotated as %+v: %v", successor, err)
	}
	rotated := d.get(successor.Key)
	if all := rotated.Credentials(); len(all) != 2 || all[0].Hash != shown || len(all[1].Hash) != 64 {
		t.Errorf("the session shows the keys %+v", all)
	}
	if _, err := d.Delete(t.Context(), keys.Ref{ID: shown, Hashed: true}); err != nil {
		t.Error(err)
	}
	if _, err := d.store.Get(t.Context(), hash); err == nil {
		t.Error("the key was not deleted by what is shown in place of its hash")
	}
}

func TestALegacyHashIsReplacedAtTheFirstUse(t *testing.T) {
	d := open(t)
	d.Options.Hasher.Legacy = []credential.Algorithm{credential.Murmur32}
	const hash = "248bfa47" // murmur32 of hello
	session := parse[definition.Session](t, quotaOf10)
	if _, err := d.Adopt(t.Context(), hash, session); err != nil {
		t.Fatal(err)
	}
	d.use(hash, "a", 3)
	strong := d.Options.Hasher.Strong([]byte("hello"), "o", 2)
	for i, want := range []bool{true, false} {
		if changed, err := d.Strengthen(t.Context(), hash, strong); changed != want || err != nil {
			t.Errorf("time %d: %v, %v", i, changed, err)
		}
	}
	if left := d.get("hello").QuotaRemaining; left != 7 {
		t.Errorf("%d calls left of 10 after 3", left)
	}
	stored, err := d.store.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := stored.Credential(hash, hash); !ok || c.Retires != begin.Unix() {
		t.Errorf("the legacy hash still opens the key: %+v", c)
	}
	if c, ok := stored.Credential(hash, strong[0]); !ok || c.Retires != 0 {
		t.Errorf("SHA-256 does not open it: %+v", c)
	}
	for _, c := range []struct {
		name, identity string
	}{{"another token of that hash", hash}, {"an unknown key", "ffffffff"}, {"a key under SHA-256", d.create("", quotaOf10).Hash}} {
		if _, err := d.Strengthen(t.Context(), c.identity, []string{strings.Repeat("0", 64)}); !errors.Is(err, keys.ErrNotFound) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestTheGraceOfALegacyHashIsThatOfItsReplacement(t *testing.T) {
	d := open(t)
	d.Options.Hasher.Legacy = []credential.Algorithm{credential.Murmur32}
	const hash = "248bfa47"
	if _, err := d.Adopt(t.Context(), hash, parse[definition.Session](t, quotaOf10)); err != nil {
		t.Fatal(err)
	}
	successor, err := d.Rotate(t.Context(), keys.Ref{ID: "hello"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	strong := d.Options.Hasher.Strong([]byte("hello"), "", 1)
	if _, err := d.Strengthen(t.Context(), hash, strong); err != nil {
		t.Fatal(err)
	}
	stored, err := d.store.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	all := stored.Credentials()
	if len(all) != 3 || all[0].Retires != begin.Unix() || all[1].Hash != strong[0] || all[1].Retires != begin.Unix()+3600 || all[2].Hash != d.Options.Hasher.Hash(successor.Key) {
		t.Errorf("%+v", all)
	}
}
