package requests_test

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

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/portaltest"
)

// bench is a running admin with an API, policies, and people.
type bench struct {
	t      testing.TB
	dsn    string
	url    string
	client *http.Client
	keys   *keystore.Memory
	log    *portaltest.Log

	admin, approver, editor, viewer, robot string // access keys of the first organisation
	other                                  string // of another one's admin
	org                                    string // id of the first

	looking sync.Mutex
	conn    *pgx.Conn // guarded by looking
}

func migrate(ctx context.Context, dsn string) error {
	_, err := store.Migrate(ctx, dsn)
	return err
}

func keyOptions() keys.Options {
	return keys.Options{
		Hasher:    &credential.Hasher{Prefix: credential.DefaultPrefix},
		Passwords: password.NewHasher(2, 200, 20*time.Second),
	}
}

// aMasterKey is the same in all processes of the test.
func aMasterKey() secret.Key {
	key, err := secret.ParseKey(secret.New(strings.Repeat("0a", 32)))
	if err != nil {
		panic(err)
	}
	return key
}

func start(t testing.TB, change ...func(*admin.Deps)) *bench {
	t.Helper()
	b := &bench{t: t, dsn: testenv.Database(t, migrate, "requests"), log: new(portaltest.Log)}
	b.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}
	t.Cleanup(b.client.CloseIdleConnections)
	server, url := b.serve(b.dsn, change...)
	b.url, b.admin = url, admin.NewAccessKey()
	if created, err := server.Bootstrap(t.Context(), secret.New(b.admin)); err != nil || !created {
		t.Fatalf("bootstrap: %v, %v", created, err)
	}
	b.approver, b.editor, b.viewer, b.robot = b.user("approver"), b.user("editor"), b.user("viewer"), b.user("gateway")
	b.other = admin.NewAccessKey()
	b.org = b.text("select org_id from users limit 1")
	b.exec("insert into orgs (id, name) values ('second', 'second')")
	b.exec("insert into users (id, org_id, email, role, access_key_hash) values ('u2', 'second', 'two@example.com', 'admin', sha256($1))", []byte(b.other))
	b.call("POST", "/api/apis", b.editor, `{"api_id":"orders","name":"Orders","use_keyless":false,"auth":{"auth_header_name":"Authorization"},"proxy":{"listen_path":"/orders","target_url":"http://up.example"}}`).want(200)
	for _, id := range []string{"gold", "silver"} {
		b.policy(id, "")
	}
	return b
}

// serve starts an admin on a database.
func (b *bench) serve(dsn string, change ...func(*admin.Deps)) (*admin.Server, string) {
	b.t.Helper()
	st, err := store.Open(b.t.Context(), store.Options{URL: dsn, MaxConns: 10})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(st.Close)
	b.keys = keystore.NewMemory()
	deps := admin.Deps{
		Store: st, Keys: b.keys, Counters: counter.NewMemory(nil), KeyOptions: keyOptions(), MasterKey: aMasterKey(),
		LoginRate: 1000, Portal: portal.Settings{Mailbox: 10_000}, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&deps)
	}
	server, err := admin.New(deps)
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
	r := b.call("POST", "/api/users", b.admin, fmt.Sprintf(`{"email_address":"%s@example.com","role":%q}`, role, role)).want(200)
	return r.text("access_key")
}

// policy makes a policy for the API orders; more are further members of it.
func (b *bench) policy(id, more string) {
	b.t.Helper()
	b.call("POST", "/api/portal/policies", b.editor, fmt.Sprintf(
		`{"id":%q,"name":"Policy %s","state":"active","rate":10,"per":1,"quota_max":100,"quota_renewal_rate":3600,"access_rights":{"orders":{"api_id":"orders","versions":["Default"]}}%s}`, id, id, more)).want(200)
}

// entry offers a policy in the catalogue; more are members instead of being shown.
func (b *bench) entry(policy, more string) string {
	b.t.Helper()
	if more == "" {
		more = `"show":true`
	}
	r := b.call("POST", "/api/portal/catalogue/entries", b.editor, fmt.Sprintf(
		`{"name":"Entry of %s","api_id":"orders","policy_id":%q,%s}`, policy, policy, more)).want(200)
	return r.text("Message")
}

// configure replaces the configuration of the portal.
func (b *bench) configure(members string) {
	b.t.Helper()
	r := b.call("POST", "/api/portal/configuration", b.editor, "{"+members+"}")
	if r.status == 409 {
		id := b.call("GET", "/api/portal/configuration", b.editor, "").want(200).text("id")
		r = b.call("PUT", "/api/portal/configuration", b.editor, fmt.Sprintf(`{"id":%q,%s}`, id, members))
	}
	r.want(200)
}

// developer makes a developer, who has no password, and returns the id.
func (b *bench) developer(name string) string {
	b.t.Helper()
	return b.call("POST", "/api/portal/developers", b.approver, fmt.Sprintf(`{"email":"%s@dev.example"}`, name)).want(200).text("Message")
}

// login returns a session of a developer.
func (b *bench) login(name string) string {
	b.t.Helper()
	session := "slp_" + strings.Repeat("0", 43-len(name)) + name
	b.exec(`insert into developer_tokens (token_hash, developer_id, purpose, expires_at)
		select sha256($1), id, 'session', now() + interval '1 hour' from developers where email = $2`, []byte(session), name+"@dev.example")
	return session
}

// request asks for a policy as an operator and returns the request's id.
func (b *bench) request(developer, policy string) string {
	b.t.Helper()
	r := b.call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":%q,"version":"v2"}`, developer, policy)).want(200)
	if r.text("Message") == "" || !bytes.Contains(r.body, []byte(`"Meta":null`)) {
		b.t.Errorf("created: %s", r.body)
	}
	return r.text("Message")
}

// approve approves a request and returns the key.
func (b *bench) approve(id string) string {
	b.t.Helper()
	r := b.call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").want(200)
	if r.text("RawKey") == "" {
		b.t.Fatalf("approved: %s", r.body)
	}
	return r.text("RawKey")
}

// hashOf is how a key is stored.
func hashOf(key string) string { return keyOptions().Hasher.Hash(key) }

// session waits for a key at the gateways' key store and returns what is there.
func (b *bench) session(key string) *definition.Session {
	b.t.Helper()
	var s *definition.Session
	portaltest.Eventually(b.t, "the gateways have the key", func() bool {
		var err error
		s, err = b.keys.Get(b.t.Context(), hashOf(key))
		return err == nil
	})
	return s
}

// sql runs statements over the one connection that tests look at the database by.
func (b *bench) sql(run func(conn *pgx.Conn) error) error {
	b.looking.Lock()
	defer b.looking.Unlock()
	if b.conn == nil {
		conn, err := pgx.Connect(b.t.Context(), b.dsn)
		if err != nil {
			return err
		}
		b.conn = conn
		b.t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the database goes next
	}
	return run(b.conn)
}

func (b *bench) exec(statement string, args ...any) {
	b.t.Helper()
	err := b.sql(func(conn *pgx.Conn) error {
		_, err := conn.Exec(b.t.Context(), statement, args...)
		return err
	})
	if err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

func scan[T any](b *bench, query string, args ...any) (value T) {
	b.t.Helper()
	err := b.sql(func(conn *pgx.Conn) error { return conn.QueryRow(b.t.Context(), query, args...).Scan(&value) })
	if err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return value
}

func (b *bench) count(query string, args ...any) int {
	b.t.Helper()
	return scan[int](b, query, args...)
}

func (b *bench) text(query string, args ...any) string {
	b.t.Helper()
	return scan[string](b, query, args...)
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
	return b.tryAt(b.url, method, path, key, body, headers...)
}

func (b *bench) tryAt(url, method, path, key, body string, headers ...string) (*answer, error) {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, url+path, sent)
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

// want checks the status, and that a failure has the envelope; to OAuth clients it
// is told as their standard has it.
func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	if status >= 400 && !strings.Contains(a.what, "/oauth/") && (a.text("Status") != "Error" || a.text("Message") == "" || !bytes.Contains(a.body, []byte(`"Meta":null`))) {
		a.t.Errorf("%s: %d without the envelope: %s", a.what, a.status, a.body)
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

// data is the list in an answer.
func (a *answer) data() []map[string]any {
	a.t.Helper()
	var list struct{ Data []map[string]any }
	if err := json.Unmarshal(a.body, &list); err != nil {
		a.t.Fatalf("%s: %v in %s", a.what, err, a.body)
	}
	return list.Data
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
