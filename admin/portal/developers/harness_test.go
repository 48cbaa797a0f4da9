package developers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin/portal/record"
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/password"
	"github.com/sluicegate/sluice/internal/testenv"
)

// bench is a service on a database with two organisations.
type bench struct {
	t       testing.TB
	dsn     string
	store   *store.Store
	service *Service
	routes  []rest.Route
	conf    *settings
	post    *postbox
	keys    *revoker
	clock   *clock
	log     *logged
	from    string // address of who calls
}

func migrate(ctx context.Context, dsn string) error {
	_, err := store.Migrate(ctx, dsn)
	return err
}

func start(t testing.TB, change ...func(*Deps)) *bench {
	t.Helper()
	b := &bench{
		t: t, dsn: testenv.Database(t, migrate, "developers"), conf: new(settings), post: new(postbox),
		clock: &clock{at: time.Now().UTC().Truncate(time.Second)}, log: new(logged), from: "192.0.2.1",
	}
	var err error
	if b.store, err = store.Open(t.Context(), store.Options{URL: b.dsn, MaxConns: 12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.store.Close)
	b.exec("insert into orgs (id, name, created_at) values ('one', 'one', 'epoch'), ('two', 'two', now())")
	b.keys = &revoker{store: b.store}
	d := Deps{
		Store: b.store, Configurations: b.conf, Letters: b.post, Keys: []Keys{b.keys}, KeyID: func(hash string) string { return hash },
		Passwords: password.NewHasher(4, 64, 20*time.Second), Deliver: b.keys.deliver, LoginRate: 1000, Now: b.clock.now,
		Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
	for _, c := range change {
		c(&d)
	}
	b.service = New(d)
	b.routes = b.service.Routes()
	return b
}

// settings are the configuration of both organisations.
type settings struct {
	mu   sync.Mutex
	conf record.Configuration
}

func (s *settings) Configuration(context.Context, string) (*record.Configuration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	conf := s.conf
	return &conf, nil
}

func (s *settings) set(change func(*record.Configuration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.conf)
}

// postbox keeps letters of transactions, whether these are committed or not.
type postbox struct {
	mu   sync.Mutex
	all  []record.Letter
	fail error
	none error // why no letter holds a token
}

func (p *postbox) CanHoldTokens() error { return p.none }

func (p *postbox) Put(_ context.Context, _ *store.Tx, l record.Letter) error {
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

func (b *bench) conn() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(context.Background(), b.dsn)
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

func (b *bench) exec(statement string, args ...any) {
	b.t.Helper()
	conn := b.conn()
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), statement, args...); err != nil {
		b.t.Fatalf("%s: %v", statement, err)
	}
}

func (b *bench) count(query string, args ...any) (n int) {
	b.t.Helper()
	conn := b.conn()
	defer conn.Close(context.Background())
	if err := conn.QueryRow(context.Background(), query, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// answer is what came back.
type answer struct {
	t      testing.TB
	what   string
	status int
	etag   string
	body   []byte
}

// call makes a call as a role of the first organisation, as "two:" and a role of
// the second, as a session, or with "" as nobody.
func (b *bench) call(method, path, who, body string, headers ...string) *answer {
	b.t.Helper()
	req := new(fasthttp.Request)
	req.Header.SetMethod(method)
	req.SetRequestURI(path)
	req.SetBodyString(body)
	req.Header.SetContentType("application/json")
	req.Header.SetUserAgent("a browser")
	if who != "" {
		req.Header.Set("Authorization", who)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(req, &net.TCPAddr{IP: net.ParseIP(b.from)}, nil)
	within, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.serve(within, ctx, who); err != nil {
		f, expected := rest.FaultOf(err)
		if !expected && f.Status == 500 {
			b.t.Errorf("%s %s: %v", method, path, err)
		}
		f.Write(ctx)
	}
	return &answer{b.t, method + " " + path, ctx.Response.StatusCode(), string(ctx.Response.Header.Peek("ETag")), bytes.Clone(ctx.Response.Body())}
}

func (b *bench) serve(ctx context.Context, http *fasthttp.RequestCtx, who string) error {
	for i := range b.routes {
		r := &b.routes[i]
		if r.Method != string(http.Method()) || !fits(r.Path, http) {
			continue
		}
		c := &rest.Call{HTTP: http, Route: r, PageSize: 10}
		if err := c.CheckSizes(); err != nil {
			return err
		}
		var err error
		if c.Who, err = b.identify(ctx, who); errors.Is(err, store.ErrNotFound) || err == nil && who == "" && r.Role != rest.Anyone {
			return rest.Refuse(fasthttp.StatusUnauthorized, "Not authorised")
		}
		if err != nil {
			return err
		}
		if !r.Allows(c.Who.Role) {
			return rest.Refuse(fasthttp.StatusForbidden, "access denied")
		}
		answer, err := r.Handle(ctx, c)
		if err != nil {
			return err
		}
		return c.Write(answer)
	}
	return rest.NotFound("no route")
}

// fits tells whether a path is a route's, and notes what its names stand for.
func fits(pattern string, http *fasthttp.RequestCtx) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(string(http.URI().PathOriginal()), "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if name, found := strings.CutPrefix(want[i], "{"); found {
			http.SetUserValue(strings.TrimSuffix(name, "}"), have[i])
		} else if want[i] != have[i] {
			return false
		}
	}
	return true
}

func (b *bench) identify(ctx context.Context, who string) (rest.Principal, error) {
	if who == "" || strings.HasPrefix(who, SessionPrefix) {
		if who == "" {
			return rest.Principal{}, nil
		}
		return b.service.Identify(ctx, []byte(who))
	}
	org := "one"
	if role, second := strings.CutPrefix(who, "two:"); second {
		org, who = "two", role
	}
	return rest.Principal{Org: org, ID: who, Name: who + "@" + org, Kind: "user", Role: rest.Role(who)}, nil
}

func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.body, status)
	}
	return a
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

func (a *answer) hides(parts ...string) *answer {
	a.t.Helper()
	for _, part := range parts {
		if bytes.Contains(a.body, []byte(part)) {
			a.t.Errorf("%s: %s is in %s", a.what, part, a.body)
		}
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

// make creates a developer with the password "open sesame", and returns the id.
func (b *bench) make(email string) string {
	b.t.Helper()
	return b.call("POST", "/api/portal/developers", "approver", fmt.Sprintf(`{"email":%q,"password":"open sesame"}`, email)).want(200).text("Message")
}

func (b *bench) login(email, plain string) *answer {
	b.t.Helper()
	return b.call("POST", "/api/portal/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, plain))
}

// session logs a developer in whom make made.
func (b *bench) session(email string) string {
	b.t.Helper()
	return b.login(email, "open sesame").want(200).text("access_key")
}

func (b *bench) signUp(email, plain string) *answer {
	b.t.Helper()
	return b.call("POST", "/api/portal/signup", "", fmt.Sprintf(`{"email":%q,"password":%q}`, email, plain))
}

// key gives a developer a key, as approving a request does.
func (b *bench) key(developer, hash, policy string) {
	b.t.Helper()
	by := store.Author{Org: "one", Name: "test"}
	session := &definition.Session{OrgID: "one", ApplyPolicies: []string{policy}}
	if err := b.store.CommitKey(context.Background(), by, store.KeyChange{Hash: hash, Session: session, New: true}); err != nil {
		b.t.Fatal(err)
	}
	b.exec("insert into developer_keys (key_hash, org_id, developer_id, policies) values ($1, 'one', $2, $3)", hash, developer, []string{policy})
	b.exec("insert into developer_subscriptions (developer_id, policy_id, key_hash) values ($1, $2, $3)", developer, policy, hash)
}
