package keys_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/password"
)

// openUsers is open where users may be made.
func openUsers(t *testing.T) *desk {
	d := open(t)
	d.Options.Passwords = password.NewHasher(2, 8, time.Minute)
	return d
}

func user(password string) string {
	return `{"org_id": "o", "access_rights": {"a": {}}, "basic_auth_data": ` + password + `}`
}

// opens tells whether a password is the one of which the hash is stored.
func (d *desk) opens(hash, plain string) bool {
	d.t.Helper()
	s, err := d.store.Get(d.t.Context(), hash)
	if err != nil {
		d.t.Fatal(err)
	}
	ok, err := password.NewHasher(1, 1, time.Minute).Verify(d.t.Context(), s.BasicAuth.Password, []byte(plain))
	if err != nil {
		d.t.Fatal(err)
	}
	return ok
}

func TestAPasswordIsStoredHashedAndKeptUntilAnotherComes(t *testing.T) {
	d := openUsers(t)
	issued := d.create("bob", user(`{"password": "open sesame"}`))
	if issued.Key != "obob" {
		t.Errorf("issued %+v", issued)
	}
	stored, err := d.store.Get(t.Context(), issued.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if b := stored.BasicAuth; strings.Contains(b.Password, "sesame") || b.HashType != "argon2id" || !d.opens(issued.Hash, "open sesame") {
		t.Errorf("stored %+v", b)
	}
	if got := d.get("obob").BasicAuth; got.Password != "" {
		t.Errorf("shown: %+v", got)
	}
	for _, body := range []string{quotaOf10, user(`{"password": ""}`), user(`{"password": "", "hash_type": "argon2id"}`)} {
		d.update("obob", body, false)
		if !d.opens(issued.Hash, "open sesame") {
			t.Errorf("lost by %s", body)
		}
	}
	if _, err := d.SetPolicies(t.Context(), keys.Ref{ID: "bob", Org: "o"}, nil); err != nil || !d.opens(issued.Hash, "open sesame") {
		t.Errorf("lost by new policies: %v", err)
	}
	d.update("obob", user(`{"password": "new"}`), false)
	if !d.opens(issued.Hash, "new") || d.opens(issued.Hash, "open sesame") {
		t.Error("the old one is still the user's")
	}
	preview, err := d.Preview(parse[definition.Session](t, user(`{"password": "plain"}`)))
	if err != nil || preview.BasicAuth.Password != "" {
		t.Errorf("a preview shows %+v, %v", preview.BasicAuth, err)
	}
}

func TestImportedPasswordsAreStoredAsTheyAre(t *testing.T) {
	d := openUsers(t)
	made, err := bcrypt.GenerateFromPassword([]byte("open sesame"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	issued := d.create("bob", user(`{"password": "`+string(made)+`", "hash_type": "bCrypt"}`))
	stored, _ := d.store.Get(t.Context(), issued.Hash)
	if stored.BasicAuth.Password != string(made) || stored.BasicAuth.HashType != "bcrypt" {
		t.Errorf("stored %+v", stored.BasicAuth)
	}
}

func TestPasswordsThatNobodyCouldUseAreRefused(t *testing.T) {
	d := openUsers(t)
	for _, c := range []struct{ id, password, path, want string }{
		{"", `{"password": "x"}`, "basic_auth_data.password", "has no name"},
		{"bob", `{"password": "x", "hash_type": "md5"}`, "basic_auth_data.hash_type", "must be bcrypt or argon2id"},
		{"bob", `{"password": "x", "hash_type": "bcrypt"}`, "basic_auth_data.password", "leave hash_type out"},
		{"bob", `{"password": "a:b"}`, "basic_auth_data.password", "must not hold a colon"},
		{"bob", `{"password": "a\nb"}`, "basic_auth_data.password", "control characters"},
		{"bob", `{"password": "` + strings.Repeat("x", 1025) + `"}`, "basic_auth_data.password", "1024 bytes"},
		{"b:b", `{"password": "x"}`, "", "must not hold a colon"},
	} {
		_, err := d.Create(t.Context(), c.id, parse[definition.Session](t, user(c.password)), false)
		problems, ok := errors.AsType[*definition.Problems](err)
		if err == nil || !strings.Contains(err.Error(), c.want) || c.path != "" && (!ok || (*problems)[0].Path != c.path) {
			t.Errorf("%s: %v, want %s: %s", c.password, err, c.path, c.want)
		}
	}
	key := d.create("", quotaOf10)
	if _, err := d.Update(t.Context(), keys.Ref{ID: key.Key}, parse[definition.Session](t, user(`{"password": "x"}`)), false); err == nil || !strings.Contains(err.Error(), "has no name") {
		t.Errorf("a password for a generated key: %v", err)
	}
	d.Options.Passwords = nil
	if _, err := d.Create(t.Context(), "bob", parse[definition.Session](t, user(`{"password": "x"}`)), false); err == nil || !strings.Contains(err.Error(), "no users") {
		t.Errorf("where no users are made: %v", err)
	}
}

func TestUsersAreFoundByTheirNameBehindTheirOrganisationAlone(t *testing.T) {
	d := openUsers(t)
	d.Options.Hasher.Legacy = []credential.Algorithm{credential.Murmur64}
	issued := d.create("bob", user(`{"password": "x"}`))
	older := parse[definition.Session](t, user(`{"password": "hash"}`))
	if err := d.store.Put(t.Context(), (&credential.Hasher{Algorithm: credential.Murmur64}).Hash("oann"), older); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ref  keys.Ref
		want bool
	}{
		{keys.Ref{ID: "bob", User: true, Org: "o"}, true},
		{keys.Ref{ID: "ann", User: true, Org: "o"}, true},
		{keys.Ref{ID: "obob", User: true, Org: "o"}, false},
		{keys.Ref{ID: "bob", User: true, Org: "p"}, false},
		{keys.Ref{ID: "obob", User: true, Org: "p"}, false},
	} {
		_, hash, err := d.Get(t.Context(), c.ref)
		if (err == nil) != c.want || c.ref.ID == "bob" && c.want && hash != issued.Hash {
			t.Errorf("%+v: %s, %v", c.ref, hash, err)
		}
	}
}
