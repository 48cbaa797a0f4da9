package developers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/model"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/admintest"
)

// bench is a service on a database with two organisations.
type bench struct {
	*admintest.Database
	admintest.Front
	t       testing.TB
	store   *store.Store
	service *Service
	conf    *settings
	post    *postbox
	keys    *revoker
	clock   *clock
	log     *testenv.Log
}

func start(t testing.TB, change ...func(*Deps)) *bench {
	t.Helper()
	b := &bench{
		t: t, Database: admintest.NewDatabase(t, "developers"), conf: new(settings), post: new(postbox),
		clock: &clock{at: time.Now().UTC().Truncate(time.Second)}, log: new(testenv.Log),
	}
	b.store = b.Open(store.Options{MaxConns: 12})
	b.conf.store = b.store
	b.Exec("insert into orgs (id, name, created_at) values ('one', 'one', 'epoch'), ('two', 'two', now())")
	b.keys = &revoker{store: b.store}
	d := Deps{
		Store: b.store, Configurations: b.conf, Letters: b.post, Keys: b.keys, KeyID: func(hash string) string { return hash },
		Passwords: password.NewHasher(4, 64, 20*time.Second), Deliver: b.keys.deliver, LoginRate: 1000, Now: b.clock.now,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&d)
	}
	b.service = New(d)
	b.Front = admintest.Front{T: t, Routes: b.service.Routes(), From: "192.0.2.1", Identify: b.identify}
	return b
}

func (b *bench) identify(ctx context.Context, session string) (rest.Principal, error) {
	who, err := b.service.Identify(ctx, []byte(session))
	if errors.Is(err, store.ErrNotFound) {
		err = rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
	}
	return who, err
}

// settings are the configuration of both organisations.
type settings struct {
	mu   sync.Mutex
	conf model.Configuration

	store *store.Store
}

func (s *settings) Configuration(context.Context, string) (*model.Configuration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conf := s.conf
	return &conf, nil
}

func (s *settings) Home(ctx context.Context) (string, error) { return s.store.FirstOrg(ctx) }

func (s *settings) set(change func(*model.Configuration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.conf)
}

// postbox keeps letters of transactions, whether these are committed or not.
type postbox struct {
	mu   sync.Mutex
	all  []model.Letter
	fail error
	none error // why no letter holds a token
}

func (p *postbox) CanHoldTokens() error { return p.none }

func (p *postbox) Put(_ context.Context, _ *store.Tx, l model.Letter) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, l)
	return p.fail
}

// take returns the letters so far as "kind to", and forgets them; token is of the
// last one that has one.
func (p *postbox) take() (letters []string, token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.all {
		letters = append(letters, string(l.Kind)+" "+l.To)
		if l.Token != "" {
			token = l.Token
		}
	}
	p.all = nil
	return letters, token
}

// revoker deletes a developer's keys by the store's own means.
type revoker struct {
	store *store.Store
	fail  error

	mu        sync.Mutex
	delivered []string
}

func (r *revoker) RevokeAll(ctx context.Context, tx *store.Tx, by store.Author, developer string) ([]string, error) {
	rows, err := tx.KeysOfDevelopers(ctx, []string{developer})
	if err != nil {
		return nil, err
	}
	var hashes []string
	for _, row := range rows {
		if err := tx.CommitKey(ctx, by, &store.KeyChange{Hash: row.KeyHash}); err != nil {
			return nil, err
		}
		hashes = append(hashes, row.KeyHash)
	}
	return hashes, r.fail
}

func (r *revoker) deliver(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivered = append(r.delivered, hash)
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// make creates a developer with the password "open sesame", and returns the id.
func (b *bench) make(email string) string {
	b.t.Helper()
	return b.Call("POST", "/api/portal/developers", "approver", fmt.Sprintf(`{"email":%q,"password":"open sesame"}`, email)).Want(200).Text("Message")
}

func (b *bench) login(email, plain string) *admintest.Answer {
	b.t.Helper()
	return b.Call("POST", "/api/portal/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, plain))
}

// session logs a developer in whom make made.
func (b *bench) session(email string) string {
	b.t.Helper()
	return b.login(email, "open sesame").Want(200).Text("access_key")
}

func (b *bench) signUp(email, plain string) *admintest.Answer {
	b.t.Helper()
	return b.Call("POST", "/api/portal/signup", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, plain))
}

// key gives a developer a key, as approving a request does.
func (b *bench) key(developer, hash, policy string) {
	b.t.Helper()
	by := store.Author{Org: "one", Name: "test"}
	session := &definition.Session{OrgID: "one", ApplyPolicies: []string{policy}}
	if err := b.store.CommitKey(context.Background(), by, store.KeyChange{Hash: hash, Session: session, New: true}); err != nil {
		b.t.Fatal(err)
	}
	b.Exec("insert into developer_keys (key_hash, org_id, developer_id, policies) values ($1, 'one', $2, $3)", hash, developer, []string{policy})
	b.Exec("insert into developer_subscriptions (developer_id, policy_id, key_hash) values ($1, $2, $3)", developer, policy, hash)
}
