package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

const gatewayToken = "token-of-the-gateways"

// bench is a running admin with two organisations.
type bench struct {
	*admintest.Database
	*admintest.Client
	t        testing.TB
	store    *store.Store
	server   *Server
	keys     *keyStore
	counters *counter.Memory
	admin    string // access keys of the first organisation
	editor   string
	viewer   string
	robot    string // role gateway
	other    string // admin of the second organisation
	log      *testenv.Log
}

func start(t testing.TB, change ...func(*Deps)) *bench {
	t.Helper()
	b := &bench{t: t, Database: admintest.NewDatabase(t, "admin"), keys: newKeyStore(), counters: counter.NewMemory(nil), log: new(testenv.Log)}
	b.store = b.Open(store.Options{MaxConns: 10})
	var url string
	b.server, url = b.serve(b.store, change...)
	b.Client = admintest.NewClient(t, url)
	b.admin = NewAccessKey()
	for _, first := range []bool{true, false} {
		created, err := b.server.Bootstrap(t.Context(), secret.New(b.admin))
		if err != nil || created != first {
			t.Fatalf("bootstrap: %v, %v", created, err)
		}
	}
	b.editor, b.viewer, b.robot = b.user("editor"), b.user("viewer"), b.user("gateway")
	b.other = b.secondOrg()
	return b
}

func keyOptions() keys.Options {
	return keys.Options{Hasher: &credential.Hasher{Prefix: credential.DefaultPrefix}}
}

// serve starts an admin on a store.
func (b *bench) serve(st *store.Store, change ...func(*Deps)) (*Server, string) {
	b.t.Helper()
	deps := Deps{
		Store: st, Keys: b.keys, Counters: b.counters, KeyOptions: keyOptions(), GatewayToken: secret.New(gatewayToken), Version: "test",
		LoginRate: 1000, Streaming: true, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&deps)
	}
	server, err := New(deps)
	if err != nil {
		b.t.Fatal(err)
	}
	return server, admintest.Serve(b.t, server)
}

func (b *bench) user(role string) string {
	b.t.Helper()
	r := b.Call("POST", "/api/users", b.admin, fmt.Sprintf(`{"email_address":"%s@example.com","role":%q}`, role, role))
	r.Want(200)
	return r.Text("access_key")
}

// secondOrg makes another organisation, for which there is no route yet.
func (b *bench) secondOrg() string {
	b.t.Helper()
	key := NewAccessKey()
	b.Exec("insert into orgs (id, name) values ('second', 'second')")
	b.Exec("insert into users (id, org_id, email, role, access_key_hash) values ('u2', 'second', 'two@example.com', 'admin', $1)", rest.HashOf([]byte(key)))
	return key
}

func anAPI(id, path string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":"API %s","use_keyless":true,"later":{"kept":1.50},"proxy":{"listen_path":%q,"target_url":"http://up.example"}}`, id, id, path)
}

func (b *bench) createAPI(key, id, path string) {
	b.t.Helper()
	b.Call("POST", "/api/apis", key, anAPI(id, path)).Want(200)
}

// keyStore is a key store whose failures tests control.
type keyStore struct {
	mu       sync.Mutex
	sessions map[string]*definition.Session
	puts     int
	broken   error
}

func newKeyStore() *keyStore {
	return &keyStore{sessions: make(map[string]*definition.Session)}
}

func (k *keyStore) breakWith(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = err
}

func (k *keyStore) Get(_ context.Context, hash string) (*definition.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sessions[hash]; s != nil {
		return s, k.broken
	}
	return nil, keystore.ErrNotFound
}

func (k *keyStore) Put(_ context.Context, hash string, s *definition.Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken == nil {
		k.sessions[hash] = s
		k.puts++
	}
	return k.broken
}

func (k *keyStore) Delete(_ context.Context, hash string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken != nil {
		return k.broken
	}
	if k.sessions[hash] == nil {
		return keystore.ErrNotFound
	}
	delete(k.sessions, hash)
	return nil
}

func (k *keyStore) List(context.Context, string, int) ([]string, string, error) {
	return nil, "", errors.New("not used by the admin")
}

func (k *keyStore) Watch(context.Context, func(string)) error {
	return errors.New("not used by the admin")
}

func (k *keyStore) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.sessions)
}
