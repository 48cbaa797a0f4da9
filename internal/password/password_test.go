package password

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func few() *Hasher { return NewHasher(2, 8, time.Minute) }

func TestAPasswordIsKnownByItsHashAlone(t *testing.T) {
	h := few()
	first, err := h.Hash(t.Context(), "open sesame")
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.Hash(t.Context(), "open sesame")
	if err != nil {
		t.Fatal(err)
	}
	if first == second || strings.Contains(first, "sesame") || !strings.HasPrefix(first, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("stored %q and %q", first, second)
	}
	if err := CheckStored(Argon2id, first); err != nil {
		t.Error(err)
	}
	for plain, want := range map[string]bool{"open sesame": true, "open sesamE": false, "": false, first: false} {
		if got, err := h.Verify(t.Context(), first, []byte(plain)); err != nil || got != want {
			t.Errorf("%q: %v, %v", plain, got, err)
		}
	}
}

func TestImportedHashesAreUnderstood(t *testing.T) {
	made, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	// Made by the reference implementation: argon2 somesalt -id -m 16 -t 2 -p 1 <<< password.
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, c := range []struct {
		kind          Kind
		stored, plain string
	}{{Bcrypt, string(made), "open sesame"}, {Argon2id, reference, "password"}} {
		if err := CheckStored(c.kind, c.stored); err != nil {
			t.Errorf("%s: %v", c.kind, err)
		}
		if ok, err := few().Verify(t.Context(), c.stored, []byte(c.plain)); err != nil || !ok {
			t.Errorf("%s: %v, %v", c.kind, ok, err)
		}
		if ok, err := few().Verify(t.Context(), c.stored, []byte(c.plain+"x")); err != nil || ok {
			t.Errorf("%s with a wrong password: %v, %v", c.kind, ok, err)
		}
	}
}

func TestWhatIsNoHashIsRefusedAndNobodysPassword(t *testing.T) {
	costly, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	deep := strings.Replace(string(costly), "$04$", "$15$", 1)
	for _, c := range []struct {
		kind         Kind
		stored, want string
	}{
		{Bcrypt, "secret", "is no bcrypt hash"},
		{Bcrypt, "", "is no bcrypt hash"},
		{Bcrypt, string(costly) + "x", "is no bcrypt hash"},
		{Bcrypt, deep, "cost 15"},
		{Argon2id, "secret", "is no argon2id hash"},
		{Argon2id, "$argon2i$v=19$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=16$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=19$m=8,t=1,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=19$m=8,t=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=19$m=8,t=1,p=1$c2E$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$", "is no argon2id hash"},
		{Argon2id, "$argon2id$v=19$m=1000000,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "at most m=131072"},
		{Argon2id, "$argon2id$v=19$m=8,t=11,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "t=10"},
	} {
		err := CheckStored(c.kind, c.stored)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(c.stored) > 6 && strings.Contains(err.Error(), c.stored) {
			t.Errorf("%s %q: %v, want %q", c.kind, c.stored, err, c.want)
		}
	}
	for _, stored := range []string{"", "secret", "$argon2id$v=19$m=8"} {
		if ok, err := few().Verify(t.Context(), stored, []byte("secret")); ok || err != nil {
			t.Errorf("%q: %v, %v", stored, ok, err)
		}
	}
}

func TestKindsHaveNamesInAnyCase(t *testing.T) {
	for name, want := range map[string]Kind{"bCrypt": Bcrypt, "bcrypt": Bcrypt, "ARGON2ID": Argon2id} {
		if got, err := ParseKind(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "md5", "murmur64"} {
		if _, err := ParseKind(name); err == nil || !strings.Contains(err.Error(), "must be bcrypt or argon2id") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNoMoreAreHashedAtOnceThanAreAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(1, 1, time.Second)
		if err := h.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := make(chan error)
		began := time.Now()
		go func() { waited <- h.enter(context.Background()) }()
		synctest.Wait()
		if _, err := h.Hash(t.Context(), "x"); !errors.Is(err, ErrBusy) || time.Since(began) != 0 {
			t.Errorf("one too many in the queue: %v after %v", err, time.Since(began))
		}
		if err := <-waited; !errors.Is(err, ErrBusy) || time.Since(began) != time.Second {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := h.Verify(gone, "", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("with a caller that is gone: %v", err)
		}
		go func() { waited <- h.enter(context.Background()) }()
		synctest.Wait()
		h.leave()
		if err := <-waited; err != nil {
			t.Errorf("when there was a turn: %v", err)
		}
	})
}

func FuzzStored(f *testing.F) {
	f.Add("$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	f.Add("$2a$04$abcdefghijklmnopqrstuu8z0v0YQ0m1vN2eOe0u5aVx4S3y8m6hK")
	f.Add("$argon2id$v=19$m=,t=,p=$$")
	f.Fuzz(func(t *testing.T, stored string) {
		a, err := parseArgon(stored)
		if err == nil {
			again, err := parseArgon(a.String())
			if err != nil || again.String() != a.String() {
				t.Fatalf("%q became %q: %v", stored, a, err)
			}
			if a.memory > maxMemory || a.passes > maxPasses || a.passes == 0 || a.lanes == 0 {
				t.Fatalf("%q costs too much", stored)
			}
		}
		_ = CheckStored(Bcrypt, stored)
	})
}

func BenchmarkHash(b *testing.B) {
	h := few()
	for b.Loop() {
		if _, err := h.Hash(b.Context(), "open sesame"); err != nil {
			b.Fatal(err)
		}
	}
}
