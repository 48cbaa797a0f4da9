package certs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
)

func TestAFolderStoresCertificatesEncrypted(t *testing.T) {
	dir, authority := filepath.Join(t.TempDir(), "certs"), testenv.NewAuthority(t, "a")
	log := slog.New(slog.DiscardHandler)
	one := authority.Server("one.example")
	open := func() (*Folder, *Store) {
		t.Helper()
		store := new(Store)
		f, err := OpenFolder(dir, store, log)
		if err != nil {
			t.Fatal(err)
		}
		return f, store
	}
	f, store := open()
	id, err := f.Add(t.Context(), "acme", []byte(one.CertPEM+one.KeyPEM))
	if err != nil || store.Find(id) == nil || store.Find(id).Key == nil {
		t.Fatalf("added %s, %v", id, err)
	}
	if again, err := f.Add(t.Context(), "acme", []byte(one.CertPEM)); err != nil || again != id || store.Find(id).Key == nil {
		t.Errorf("added again without its key: %s, %v, key lost %t", again, err, store.Find(id).Key == nil)
	}
	other, err := f.Add(t.Context(), "other", []byte(one.CertPEM))
	if err != nil || other == id {
		t.Errorf("of another organisation: %s, %v", other, err)
	}
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		text, _ := os.ReadFile(filepath.Join(dir, file.Name()))
		info, _ := file.Info()
		if strings.Contains(string(text), "BEGIN") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v and shows what it holds: %t", file.Name(), info.Mode(), strings.Contains(string(text), "BEGIN"))
		}
	}
	if len(files) != 2 {
		t.Errorf("%d files", len(files))
	}
	f, store = open()
	if c := store.Find(id); c == nil || c.Key == nil {
		t.Error("it is not there after a restart")
	}
	if list, err := f.List(t.Context(), "acme"); err != nil || len(list) != 1 || list[0].ID != id || !list[0].HasPrivate {
		t.Errorf("list %+v, %v", list, err)
	}
	if list, err := f.List(t.Context(), ""); err != nil || len(list) != 2 {
		t.Errorf("whole list %+v, %v", list, err)
	}
	if err := f.Delete(t.Context(), id); err != nil || store.Find(id) != nil {
		t.Errorf("deleting: %v", err)
	}
	if _, err := f.Get(t.Context(), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its deletion: %v", err)
	}
	if err := f.Delete(t.Context(), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting twice: %v", err)
	}
	if info, err := f.Get(t.Context(), other); err != nil || info.ID != other || info.HasPrivate {
		t.Errorf("the other: %+v, %v", info, err)
	}
}

func TestAFolderRefusesCertificatesBeyondItsLimits(t *testing.T) {
	f, err := OpenFolder(filepath.Join(t.TempDir(), "certs"), new(Store), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	one := testenv.NewAuthority(t, "a").Server("one.example")
	if _, err := f.Add(t.Context(), "../x", []byte(one.CertPEM)); !errors.Is(err, ErrOrg) {
		t.Errorf("an organisation that leads elsewhere: %v", err)
	}
	if _, err := f.Add(t.Context(), "acme", []byte("x")); !errors.Is(err, certs.ErrNoCertificate) {
		t.Errorf("no PEM: %v", err)
	}
	for _, id := range []string{"", "../certs.key", "acme", "acme" + strings.Repeat("0", 64)} {
		if err := f.Delete(t.Context(), id); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleting %q: %v", id, err)
		}
	}
}

func TestANameBelongsToTheFirstOrganisation(t *testing.T) {
	f, err := OpenFolder(filepath.Join(t.TempDir(), "certs"), new(Store), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := testenv.NewAuthority(t, "a")
	add := func(org string, i *testenv.Identity, key bool) (string, error) {
		text := i.CertPEM
		if key {
			text += i.KeyPEM
		}
		return f.Add(t.Context(), org, []byte(text))
	}
	first, err := add("acme", a.Server("one.example", "*.one.example"), true)
	if err != nil {
		t.Fatal(err)
	}
	theirs := a.Server("new.example", "www.one.example")
	_, err = add("other", theirs, true)
	if taken, ok := errors.AsType[*certs.TakenError](err); !ok || taken.Name != "www.one.example" || strings.Contains(err.Error(), "acme") {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, c := range []struct {
		org string
		i   *testenv.Identity
		key bool
	}{{"other", theirs, false}, {"other", a.Client("one.example"), true}, {"acme", a.Server("one.example"), true}, {"other", a.Server("two.example"), true}} {
		if _, err := add(c.org, c.i, c.key); err != nil {
			t.Errorf("%s: %v", c.org, err)
		}
	}
	if _, err := add("other", theirs, true); err == nil {
		t.Error("its key makes no difference")
	}
	if err := f.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := add("other", theirs, true); err != nil {
		t.Errorf("once the name is free: %v", err)
	}
}

func TestADamagedFileIsLeftOut(t *testing.T) {
	dir, authority, said := filepath.Join(t.TempDir(), "certs"), testenv.NewAuthority(t, "a"), new(testenv.Log)
	f, err := OpenFolder(dir, new(Store), said.Logger())
	if err != nil {
		t.Fatal(err)
	}
	good, err := f.Add(t.Context(), "", []byte(authority.Server("good.example").CertPEM))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := f.Add(t.Context(), "", []byte(authority.Server("bad.example").CertPEM))
	if err != nil {
		t.Fatal(err)
	}
	sealed, _ := os.ReadFile(f.path(good))
	write(t, f.path(bad), string(sealed)) // sealed for another id
	store := new(Store)
	if _, err := OpenFolder(dir, store, said.Logger()); err != nil {
		t.Fatal(err)
	}
	if store.Find(good) == nil || store.Find(bad) != nil || !strings.Contains(said.String(), "left out") {
		t.Errorf("good %t, bad %t, said %s", store.Find(good) != nil, store.Find(bad) != nil, said)
	}
}

// fakeAdmin hands out certificates as the admin does.
type fakeAdmin struct {
	etag   atomic.Pointer[string]
	body   atomic.Pointer[[]byte]
	status atomic.Int32
	asked  atomic.Int32
	query  atomic.Pointer[string]
}

func (a *fakeAdmin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.asked.Add(1)
	query := r.URL.RawQuery
	a.query.Store(&query)
	switch etag := a.etag.Load(); {
	case r.Header.Get("Authorization") != "Bearer gateway-token":
		w.WriteHeader(401)
	case a.status.Load() != 0:
		w.WriteHeader(int(a.status.Load()))
	case r.Header.Get("If-None-Match") == *etag:
		w.WriteHeader(304)
	default:
		w.Header().Set("ETag", *etag)
		_, _ = w.Write(*a.body.Load())
	}
}

func (a *fakeAdmin) set(etag string, all ...certs.Delivered) {
	body, _ := json.Marshal(certs.Delivery{Certificates: all})
	a.etag.Store(&etag)
	a.body.Store(&body)
}

// bundles is a source with one bundle after the other.
type bundles struct{ n int }

func (b *bundles) Next(context.Context, string) (*definition.Bundle, error) {
	b.n++
	return &definition.Bundle{Revision: string(rune('0' + b.n))}, nil
}

func (*bundles) Applied(*definition.Bundle, map[string]error) {}

func TestCertificatesAreUpdatedBeforeTheBundle(t *testing.T) {
	authority, admin, said, dir := testenv.NewAuthority(t, "a"), &fakeAdmin{}, new(testenv.Log), t.TempDir()
	web := httptest.NewServer(admin)
	defer web.Close()
	newRemote := func(store *Store) (*Remote, source.Source) {
		t.Helper()
		r, err := NewRemote(RemoteOptions{URL: web.URL, Token: secret.New("gateway-token"), StateDir: dir, Store: store, Log: said.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		return r, r.Before(&bundles{})
	}
	one, two := authority.Server("one.example"), authority.Client("two")
	idOf := func(i *testenv.Identity) string { return parsed(t, i, false).ID("acme") }
	store := new(Store)
	r, src := newRemote(store)
	admin.set("e1", certs.Delivered{ID: idOf(one), PEM: one.CertPEM, Key: one.KeyPEM})
	next := func() {
		t.Helper()
		if b, err := src.Next(t.Context(), ""); err != nil || b == nil {
			t.Fatal(b, err)
		}
	}
	next()
	if c := store.Find(idOf(one)); c == nil || c.Key == nil {
		t.Fatalf("not there with the bundle; said %s", said)
	}
	before := store.Generation()
	next()
	if store.Generation() != before {
		t.Error("the same again changed the store")
	}
	kept := store.Find(idOf(one))
	admin.set("e2", certs.Delivered{ID: idOf(one), PEM: one.CertPEM, Key: one.KeyPEM}, certs.Delivered{ID: idOf(two), PEM: two.CertPEM},
		certs.Delivered{ID: "acme" + strings.Repeat("0", 64), PEM: one.CertPEM}, certs.Delivered{ID: idOf(two), PEM: "junk"})
	next()
	if store.Find(idOf(two)) == nil || store.Find(idOf(one)) != kept || len(store.All()) != 2 {
		t.Errorf("%d certificates", len(store.All()))
	}
	if !strings.Contains(said.String(), "is another one") {
		t.Errorf("said %s", said)
	}
	if got := *admin.query.Load(); got != "keys=true" {
		t.Errorf("over loopback the gateway asks with %q", got)
	}
	admin.status.Store(503)
	next()
	next()
	if n := strings.Count(said.String(), "were not taken"); n != 1 || len(store.All()) != 2 {
		t.Errorf("an admin that is away: said %d times, %d certificates", n, len(store.All()))
	}
	admin.set("e3")
	admin.status.Store(0)
	r.refresh(t.Context())
	if len(store.All()) != 0 || !strings.Contains(said.String(), "again") {
		t.Errorf("back: %d certificates", len(store.All()))
	}
}

func TestWithoutTheAdminTheCopyOnDiskIsUsed(t *testing.T) {
	authority, admin, said, dir := testenv.NewAuthority(t, "a"), &fakeAdmin{}, new(testenv.Log), t.TempDir()
	web := httptest.NewServer(admin)
	defer web.Close()
	one := authority.Server("one.example")
	id := parsed(t, one, false).ID("acme")
	admin.set("e1", certs.Delivered{ID: id, PEM: one.CertPEM, Key: one.KeyPEM})
	start := func(token string) *Store {
		t.Helper()
		store := new(Store)
		r, err := NewRemote(RemoteOptions{URL: web.URL, Token: secret.New(token), StateDir: dir, Store: store, Log: said.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		r.refresh(t.Context())
		return store
	}
	start("gateway-token")
	if text, err := os.ReadFile(filepath.Join(dir, "certs.sealed")); err != nil || strings.Contains(string(text), "BEGIN") {
		t.Errorf("the copy: %v, in clear %t", err, strings.Contains(string(text), "BEGIN"))
	}
	admin.status.Store(500)
	if c := start("gateway-token").Find(id); c == nil || c.Key == nil {
		t.Errorf("not from disk; said %s", said)
	}
	if c := start("other-token-entirely").Find(id); c != nil || !strings.Contains(said.String(), "cannot be used") {
		t.Error("opened with another token")
	}
	admin.status.Store(404)
	if c := start("gateway-token").Find(id); c != nil {
		t.Error("an admin that knows no certificates has one")
	}
}

func TestPrivateKeysAreNotRequestedOverPlainHTTP(t *testing.T) {
	for address, keys := range map[string]bool{
		"http://admin.example:8081": false, "http://10.0.0.1": false, "http://127.0.0.1.evil.example": false,
		"https://admin.example": true, "http://127.0.0.1:8081": true, "http://localhost:1": true, "http://[::1]:1": true,
	} {
		r, err := NewRemote(RemoteOptions{URL: address, Store: new(Store), Log: slog.New(slog.DiscardHandler)})
		if err != nil || strings.HasSuffix(r.address, "?keys=true") != keys {
			t.Errorf("%s: %v, %v", address, r, err)
		}
	}
}

func TestRequestsForPrivateKeysFollowNoRedirect(t *testing.T) {
	authority, elsewhere, said := testenv.NewAuthority(t, "a"), &fakeAdmin{}, new(testenv.Log)
	one := authority.Server("one.example")
	id := certs.SumOf(one.Leaf.Raw)
	elsewhere.set(`"1"`, certs.Delivered{ID: id, PEM: one.CertPEM, Key: one.KeyPEM})
	plain := httptest.NewServer(elsewhere)
	defer plain.Close()
	admin := httptest.NewServer(http.RedirectHandler(plain.URL+"/api/gateway/certs", http.StatusTemporaryRedirect))
	defer admin.Close()
	store := new(Store)
	r, err := NewRemote(RemoteOptions{URL: admin.URL, Token: secret.New("gateway-token"), Store: store, Log: said.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	r.refresh(t.Context())
	if n := elsewhere.asked.Load(); n > 0 || store.Find(id) != nil || !strings.Contains(said.String(), "307") {
		t.Errorf("asked elsewhere %d times, taken %t, said %s", n, store.Find(id) != nil, said)
	}
}

func TestALostKeyOfAFolderIsLoggedAndCertificatesCanBeAddedAgain(t *testing.T) {
	dir, said := filepath.Join(t.TempDir(), "certs"), new(testenv.Log)
	one := testenv.NewAuthority(t, "a").Server("one.example")
	text := []byte(one.CertPEM + one.KeyPEM)
	open := func() (*Folder, *Store) {
		t.Helper()
		store := new(Store)
		f, err := OpenFolder(dir, store, said.Logger())
		if err != nil {
			t.Fatal(err)
		}
		return f, store
	}
	f, _ := open()
	id, err := f.Add(t.Context(), "acme", text)
	if err != nil || said.String() != "" {
		t.Fatalf("%v, said %s", err, said)
	}
	if err := os.Remove(dir + ".key"); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{"first", "second"} {
		before := len(said.String())
		f, store := open()
		if got := said.String()[before:]; store.Find(id) != nil || !strings.Contains(got, dir+".key") || !strings.Contains(got, "add them again") {
			t.Errorf("%s start without the key: there %t, said %s", start, store.Find(id) != nil, got)
		}
		if start == "second" {
			if again, err := f.Add(t.Context(), "acme", text); err != nil || again != id || store.Find(id) == nil {
				t.Errorf("adding it again: %s, %v", again, err)
			}
		}
	}
	if _, store := open(); store.Find(id) == nil || store.Find(id).Key == nil {
		t.Error("added again, it is not there after a restart")
	}
}
