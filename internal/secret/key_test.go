package secret

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestSealedValuesOpenWithTheirKeyAndTheirPlaceOnly(t *testing.T) {
	k := NewKey()
	plain, place := []byte(planted), []byte("apis/42/password")
	sealed, err := k.Seal(plain, place)
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) != len(plain)+overhead || bytes.Contains(sealed, plain) {
		t.Errorf("sealed to %d bytes: %q", len(sealed), sealed)
	}
	if got, err := k.Open(sealed, place); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("opened as %q, %v", got, err)
	}
	if _, err := k.Open(sealed, []byte("apis/43/password")); !errors.Is(err, ErrDamaged) {
		t.Errorf("elsewhere: %v, want ErrDamaged", err)
	}
	if _, err := NewKey().Open(sealed, place); !errors.Is(err, ErrOtherKey) {
		t.Errorf("other key: %v, want ErrOtherKey", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if got, err := k.Open(changed, place); err == nil {
			t.Errorf("byte %d changed, opened as %q", i, got)
		}
		if got, err := k.Open(sealed[:i], place); err == nil {
			t.Errorf("cut to %d bytes, opened as %q", i, got)
		}
	}
}

func TestSealingTwiceGivesDifferentBytes(t *testing.T) {
	k := NewKey()
	a, _ := k.Seal([]byte("x"), nil)
	b, _ := k.Seal([]byte("x"), nil)
	if bytes.Equal(a, b) {
		t.Error("two seals of one value are the same bytes")
	}
	if got, err := k.Open(a, nil); err != nil || string(got) != "x" {
		t.Errorf("opened as %q, %v", got, err)
	}
}

func TestKeysSurviveTheirText(t *testing.T) {
	k := NewKey()
	again, err := ParseKey(k.Text())
	if err != nil || again.ID() != k.ID() || len(k.ID()) != 2*idSize {
		t.Errorf("ids %q and %q, %v", k.ID(), again.ID(), err)
	}
	for _, text := range []string{"", "abc", strings.Repeat("zz", 32), strings.Repeat("ab", 31), strings.Repeat("ab", 33)} {
		_, err := ParseKey(New(text))
		if err == nil {
			t.Errorf("%q was taken for a key", text)
		} else if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
}

func TestKeepKeyMakesAKeyAndFindsItAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "master.key")
	k, created, err := KeepKey(path)
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	again, created, err := KeepKey(path)
	if err != nil || created || again.ID() != k.ID() {
		t.Errorf("again: id %s, created %v, %v; want id %s", again.ID(), created, err, k.ID())
	}
	spoilt := write(t, "not a key", 0o600)
	if _, _, err := KeepKey(spoilt); err == nil || !strings.Contains(err.Error(), spoilt+": key: want 64 hexadecimal digits") {
		t.Errorf("spoilt file: %v", err)
	}
}

func TestDerivedKeysDependOnSecretAndPurpose(t *testing.T) {
	ids := map[string]bool{}
	for _, from := range []string{"a", "b"} {
		for _, purpose := range []string{"last good", "other"} {
			k, err := DeriveKey(New(from), purpose)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := DeriveKey(New(from), purpose)
			if k.ID() != again.ID() {
				t.Error("the same secret and purpose gave two keys")
			}
			ids[k.ID()] = true
		}
	}
	if len(ids) != 4 {
		t.Errorf("%d different keys of 4", len(ids))
	}
	if _, err := DeriveKey(Value{}, "x"); err == nil {
		t.Error("a key was derived from nothing")
	}
}

func TestTheZeroKeyIsAnErrorNotAPanic(t *testing.T) {
	var k Key
	if _, err := k.Seal([]byte("x"), nil); err == nil {
		t.Error("the zero key sealed")
	}
	if _, err := k.Open(make([]byte, 100), nil); err == nil {
		t.Error("the zero key opened")
	}
	if k.ID() != "" || !k.Text().Empty() {
		t.Error("the zero key has an id or a text")
	}
}

func FuzzOpen(f *testing.F) {
	k := NewKey()
	good, _ := k.Seal([]byte("x"), nil)
	f.Add(good)
	f.Add([]byte{})
	f.Add(good[:headerSize])
	f.Fuzz(func(t *testing.T, sealed []byte) {
		if plain, err := k.Open(sealed, nil); err == nil && string(plain) != "x" {
			t.Errorf("%x opened as %q", sealed, plain)
		}
	})
}

func TestAKeyOpensWhatTheOneBeforeItSealed(t *testing.T) {
	former, next, other := NewKey(), NewKey(), NewKey()
	both := next.After(former)
	for name, by := range map[string]Key{"former": former, "next": next, "both": both} {
		sealed, err := by.Seal([]byte(planted), []byte("row"))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := both.Open(sealed, []byte("row")); err != nil || string(plain) != planted {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := both.Open(sealed, []byte("elsewhere")); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, moved elsewhere: %v", name, err)
		}
	}
	sealed, err := both.Seal([]byte(planted), nil)
	if err != nil || both.ID() != next.ID() {
		t.Fatal(err)
	}
	if _, err := next.Open(sealed, nil); err != nil {
		t.Errorf("it seals otherwise than the new key: %v", err)
	}
	if sealed, err = other.Seal([]byte(planted), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Open(sealed, nil); !errors.Is(err, ErrOtherKey) {
		t.Errorf("of another key: %v", err)
	}
}
