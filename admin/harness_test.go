package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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
)

const gatewayToken = "token-of-the-gateways"

// bench is a running admin with two organisations.
type bench struct {
	t        testing.TB
	dsn      string
	store    *store.Store
	server   *Server
	keys     *shelfOfKeys
	counters *counter.Memory
	url      string
	client   *http.Client
	admin    string // access keys of the first organisation
	editor   string
	viewer   string
	robot    string // role gateway
	other    string // admin of the second organisation
	log      *logged
}

func migrate(ctx context.Context, dsn string) error {
	_, err := store.Migrate(ctx, dsn)
	return err
}

func start(t testing.TB, change ...func(*Deps)) *bench {
	t.Helper()
	b := &bench{t: t, dsn: testenv.Database(t, migrate, "admin"), keys: newShelfOfKeys(), counters: counter.NewMemory(nil), log: new(logged)}
	b.store = openStore(t, b.dsn)
	b.server, b.url = b.serve(b.store, change...)
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	t.Cleanup(b.client.CloseIdleConnections)
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

func openStore(t testing.TB, dsn string) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{URL: dsn, MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// serve starts an admin on a store.
func (b *bench) serve(st *store.Store, change ...func(*Deps)) (*Server, string) {
	b.t.Helper()
	deps := Deps{
		Store: st, Keys: b.keys, Counters: b.counters, KeyOptions: keyOptions(), GatewayToken: secret.New(gatewayToken), Version: "test",
		LoginRate: 1000, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&deps)
	}
	server, err := New(deps)
	if err != nil {
		b.t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	b.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := errors.Join(server.Shutdown(ctx), <-served); err != nil {
			b.t.Error(err)
		}
	})
	return server, "http://" + ln.Addr().String()
}

func (b *bench) user(role string) string {
	b.t.Helper()
	r := b.call("POST", "/api/users", b.admin, fmt.Sprintf(`{"email_address":"%s@example.com","role":%q}`, role, role))
	r.want(200)
	return r.text("access_key")
}

// secondOrg makes another organisation, for which there is no route yet.
func (b *bench) secondOrg() string {
	b.t.Helper()
	key := NewAccessKey()
	sqlExec(b.t, b.dsn, "insert into orgs (id, name) values ('second', 'second')")
	sqlExec(b.t, b.dsn, "insert into users (id, org_id, email, role, access_key_hash) values ('u2', 'second', 'two@example.com', 'admin', $1)", rest.HashOf([]byte(key)))
	return key
}

// answer is what came back, read to the end.
type answer struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

func (b *bench) call(method, path, key, body string, headers ...string) *answer {
	b.t.Helper()
	r, err := b.try(method, path, key, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) try(method, path, key, body string, headers ...string) (*answer, error) {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, b.url+path, sent)
	if err != nil {
		return nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	return &answer{b.t, method + " " + path, resp.StatusCode, resp.Header, read}, err
}

// want checks the status, and that a failure has the envelope.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	if status >= 400 && !strings.Contains(a.what, "HEAD") {
		if a.text("Status") != "Error" || a.text("Message") == "" || !strings.Contains(string(a.body), `"Meta":null`) {
			a.t.Errorf("%s: %d without the envelope: %s", a.what, a.status, a.body)
		}
	}
	if kind := a.header.Get("Content-Type"); status != 304 && kind != "application/json" && (status != 200 || kind != "text/plain; charset=utf-8") {
		a.t.Errorf("%s: content type %q", a.what, kind)
	}
	return a
}

func (a *answer) object() map[string]any {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return m
}

func (a *answer) text(member string) string {
	a.t.Helper()
	text, _ := a.object()[member].(string)
	return text
}

func (a *answer) says(parts ...string) *answer {
	a.t.Helper()
	for _, part := range parts {
		if !bytes.Contains(a.body, []byte(part)) {
			a.t.Errorf("%s: %s is not in %s", a.what, part, a.body)
		}
	}
	return a
}

func anAPI(id, path string) string {
	return fmt.Sprintf(`{"api_id":%q,"name":"API %s","use_keyless":true,"later":{"kept":1.50},"proxy":{"listen_path":%q,"target_url":"http://up.example"}}`, id, id, path)
}

func (b *bench) createAPI(key, id, path string) {
	b.t.Helper()
	b.call("POST", "/api/apis", key, anAPI(id, path)).want(200)
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not true: %s", what)
		}
	}
}

// shelfOfKeys is a key store whose failures tests control.
type shelfOfKeys struct {
	mu       sync.Mutex
	sessions map[string]*definition.Session
	puts     int
	broken   error
}

func newShelfOfKeys() *shelfOfKeys {
	return &shelfOfKeys{sessions: make(map[string]*definition.Session)}
}

func (k *shelfOfKeys) breakWith(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.broken = err
}

func (k *shelfOfKeys) Get(_ context.Context, hash string) (*definition.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sessions[hash]; s != nil {
		return s, k.broken
	}
	return nil, keystore.ErrNotFound
}

func (k *shelfOfKeys) Put(_ context.Context, hash string, s *definition.Session) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken == nil {
		k.sessions[hash] = s
		k.puts++
	}
	return k.broken
}

func (k *shelfOfKeys) Delete(_ context.Context, hash string) error {
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

func (k *shelfOfKeys) List(context.Context, string, int) ([]string, string, error) {
	return nil, "", errors.New("not used by the admin")
}

func (k *shelfOfKeys) Watch(context.Context, func(string)) error {
	return errors.New("not used by the admin")
}

func (k *shelfOfKeys) len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.sessions)
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
