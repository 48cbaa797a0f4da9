package credentials_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

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
	"github.com/sluicegate/sluice/internal/testenv/admintest"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// bench is a running admin with an API, policies, and people.
type bench struct {
	*admintest.Database
	*admintest.Client
	t    testing.TB
	keys *keystore.Memory
	log  *testenv.Log

	admin, approver, editor, viewer, robot string // access keys of the first organisation
	other                                  string // of another one's admin
	org                                    string // id of the first
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
	b := &bench{t: t, Database: admintest.NewDatabase(t, "requests"), log: new(testenv.Log)}
	server, url := b.serve(change...)
	b.Client, b.admin = admintest.NewClient(t, url), admin.NewAccessKey()
	if created, err := server.Bootstrap(t.Context(), secret.New(b.admin)); err != nil || !created {
		t.Fatalf("bootstrap: %v, %v", created, err)
	}
	b.approver, b.editor, b.viewer, b.robot = b.user("approver"), b.user("editor"), b.user("viewer"), b.user("gateway")
	b.other = admin.NewAccessKey()
	b.org = b.Text("select org_id from users limit 1")
	b.Exec("insert into orgs (id, name) values ('second', 'second')")
	b.Exec("insert into users (id, org_id, email, role, access_key_hash) values ('u2', 'second', 'two@example.com', 'admin', sha256($1))", []byte(b.other))
	b.Call("POST", "/api/apis", b.editor, `{"api_id":"orders","name":"Orders","use_keyless":false,"auth":{"auth_header_name":"Authorization"},"proxy":{"listen_path":"/orders","target_url":"http://up.example"}}`).Want(200)
	for _, id := range []string{"gold", "silver"} {
		b.policy(id, "")
	}
	return b
}

// serve starts an admin on the database.
func (b *bench) serve(change ...func(*admin.Deps)) (*admin.Server, string) {
	b.t.Helper()
	st := b.Open(store.Options{MaxConns: 10})
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
	return server, admintest.Serve(b.t, server)
}

func (b *bench) user(role string) string {
	b.t.Helper()
	r := b.Call("POST", "/api/users", b.admin, fmt.Sprintf(`{"email_address":"%s@example.com","role":%q}`, role, role)).Want(200)
	return r.Text("access_key")
}

// policy makes a policy for the API orders; more are further members of it.
func (b *bench) policy(id, more string) {
	b.t.Helper()
	b.Call("POST", "/api/portal/policies", b.editor, fmt.Sprintf(
		`{"id":%q,"name":"Policy %s","state":"active","rate":10,"per":1,"quota_max":100,"quota_renewal_rate":3600,"access_rights":{"orders":{"api_id":"orders","versions":["Default"]}}%s}`, id, id, more)).Want(200)
}

// entry offers a policy in the catalogue; more are members instead of being shown.
func (b *bench) entry(policy, more string) string {
	b.t.Helper()
	if more == "" {
		more = `"show":true`
	}
	r := b.Call("POST", "/api/portal/catalogue/entries", b.editor, fmt.Sprintf(
		`{"name":"Entry of %s","api_id":"orders","policy_id":%q,%s}`, policy, policy, more)).Want(201)
	return r.Text("Message")
}

// configure replaces the configuration of the portal.
func (b *bench) configure(members string) {
	b.t.Helper()
	r := b.Call("POST", "/api/portal/configuration", b.editor, "{"+members+"}")
	if r.Status == 409 {
		id := b.Call("GET", "/api/portal/configuration", b.editor, "").Want(200).Text("id")
		r = b.Call("PUT", "/api/portal/configuration", b.editor, fmt.Sprintf(`{"id":%q,%s}`, id, members))
	}
	r.Want(200)
}

// developer makes a developer, who has no password, and returns the id.
func (b *bench) developer(name string) string {
	b.t.Helper()
	return b.Call("POST", "/api/portal/developers", b.approver, fmt.Sprintf(`{"email":"%s@dev.example"}`, name)).Want(200).Text("Message")
}

// login returns a session of a developer.
func (b *bench) login(name string) string {
	b.t.Helper()
	session := "slp_" + strings.Repeat("0", 43-len(name)) + name
	b.Exec(`insert into developer_tokens (token_hash, developer_id, purpose, expires_at)
		select sha256($1), id, 'session', now() + interval '1 hour' from developers where email = $2`, []byte(session), name+"@dev.example")
	return session
}

// request asks for a policy as an operator and returns the request's id.
func (b *bench) request(developer, policy string) string {
	b.t.Helper()
	r := b.Call("POST", "/api/portal/requests", b.approver, fmt.Sprintf(`{"by_user":%q,"for_plan":%q,"version":"v2"}`, developer, policy)).Want(200)
	if r.Text("Message") == "" || !bytes.Contains(r.Body, []byte(`"Meta":null`)) {
		b.t.Errorf("created: %s", r.Body)
	}
	return r.Text("Message")
}

// approve approves a request and returns the key.
func (b *bench) approve(id string) string {
	b.t.Helper()
	r := b.Call("PUT", "/api/portal/requests/approve/"+id, b.approver, "").Want(200)
	if r.Text("RawKey") == "" {
		b.t.Fatalf("approved: %s", r.Body)
	}
	return r.Text("RawKey")
}

// hashOf is how a key is stored.
func hashOf(key string) string { return keyOptions().Hasher.Hash(key) }

// session waits for a key at the gateways' key store and returns what is there.
func (b *bench) session(key string) *definition.Session {
	b.t.Helper()
	var s *definition.Session
	wait.Until(b.t, "the gateways have the key", func() bool {
		var err error
		s, err = b.keys.Get(b.t.Context(), hashOf(key))
		return err == nil
	})
	return s
}
