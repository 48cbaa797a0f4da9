package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/testenv"
)

// fresh returns a store on a migrated database of t's own with organisations
// "one" and "two".
func fresh(t testing.TB) (*Store, string) {
	t.Helper()
	url := testenv.Database(t, func(ctx context.Context, url string) error {
		_, err := Migrate(ctx, url)
		return err
	}, "admin")
	s := open(t, url)
	for _, org := range []string{"one", "two"} {
		sqlExec(t, url, "insert into orgs (id, name) values ($1, $1)", org)
	}
	return s, url
}

func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{URL: url, MaxConns: 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func sqlExec(t testing.TB, url, statement string, args ...any) {
	t.Helper()
	if err := tryExec(t, url, statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func tryExec(t testing.TB, url, statement string, args ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), statement, args...)
	return err
}

func one[T any](t testing.TB, url, query string, args ...any) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var v T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func tick(t testing.TB) {
	select {
	case <-t.Context().Done():
	case <-time.After(5 * time.Millisecond):
	}
}

func by(org string) Author { return Author{Org: org, Name: "ann@" + org, Kind: "user", Source: "api"} }

func parseAPI(t testing.TB, text string) *definition.API {
	t.Helper()
	a, err := definition.ParseAPI([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func simple(t testing.TB, id, path string) *definition.API {
	return parseAPI(t, fmt.Sprintf(`{"api_id":%q,"name":"API %s","use_keyless":true,"proxy":{"listen_path":%q,"target_url":"http://up.example"}}`, id, id, path))
}

func parsePolicy(t testing.TB, text string) *definition.Policy {
	t.Helper()
	p, err := definition.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func create(t testing.TB, s *Store, org string, apis ...*definition.API) int64 {
	t.Helper()
	revision, err := s.Publish(t.Context(), by(org), func(ctx context.Context, c *Change) error {
		for _, a := range apis {
			if err := c.CreateAPI(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

func conflict(t testing.TB, err error, kind ConflictKind) *ConflictError {
	t.Helper()
	c, ok := errors.AsType[*ConflictError](err)
	if !ok || c.Kind != kind {
		t.Fatalf("error %v, want conflict %q", err, kind)
	}
	return c
}

func TestMigrationsGoUpDownAndUpAgainOnData(t *testing.T) {
	url := testenv.Postgres(t)
	ctx := t.Context()
	applied, err := Migrate(ctx, url)
	if err != nil || applied < 4 {
		t.Fatalf("applied %d: %v", applied, err)
	}
	s := open(t, url)
	sqlExec(t, url, "insert into orgs (id, name) values ('one', 'One')")
	create(t, s, "one", simple(t, "a", "/a"))
	newKey(t, s, "one", "h1")
	list, err := Migrations(ctx, url)
	if err != nil || len(list) != applied {
		t.Fatalf("listed %v: %v", list, err)
	}
	for v := int64(applied) - 1; v >= 0; v-- {
		if err := migrateTo(ctx, url, v); err != nil {
			t.Fatalf("down to %d: %v", v, err)
		}
	}
	if n := one[int](t, url, "select count(*) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'goose_db_version'"); n != 0 {
		t.Errorf("%d tables are left below the first migration", n)
	}
	if n, err := Migrate(ctx, url); err != nil || n != applied {
		t.Fatalf("up again applied %d: %v", n, err)
	}
	if n, err := Migrate(ctx, url); err != nil || n != 0 {
		t.Fatalf("migrating twice applied %d: %v", n, err)
	}
}

// Ranks of usage are made of hours by key, which no migration touches: both directions
// note that all of them are to be made.
func TestRanksOfUsageAreMadeAnewAfterTheirMigration(t *testing.T) {
	url := testenv.Postgres(t)
	ctx := t.Context()
	if err := migrateTo(ctx, url, 18); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`insert into usage_hour select 'one', date_trunc('hour', now(), 'UTC') - interval '40 days', 'a', 'k', 200, '', 7, 0, 0, 0`,
		`insert into usage_api_hour select org_id, bucket, v.api, status, reason, hits, 0, 0, 0 from usage_hour, (values ('a'), ('')) v (api)`,
	} {
		sqlExec(t, url, statement)
	}
	for range 2 {
		if err := migrateTo(ctx, url, 19); err != nil {
			t.Fatal(err)
		}
		if got := one[string](t, url, `select string_agg(org_id || hours || (bucket = date_trunc(case hours when 1 then 'hour' else 'day' end, now() - interval '40 days', 'UTC')), ' ' order by hours) from usage_due`); got != "one1true one24true" {
			t.Errorf("up: %s is due", got)
		}
		if !one[bool](t, url, `select to_regclass('usage_key_rank_' || to_char(now() at time zone 'UTC' - interval '40 days', 'YYYYMM"01"')) is not null`) {
			t.Error("ranks of an earlier month have no partition")
		}
		if err := migrateTo(ctx, url, 18); err != nil {
			t.Fatal(err)
		}
		if got := one[string](t, url, `select string_agg(org_id || api_id || hours, ' ' order by hours, api_id) from usage_due`); got != "one1 one24 onea24" {
			t.Errorf("down: %s is due", got)
		}
	}
	if got := one[int64](t, url, `select sum(hits)::bigint from usage_hour`); got != 7 {
		t.Errorf("%d calls are left of 7", got)
	}
}

// APIs that were stored before events had a column have those that saving them would set.
func TestEventsOfStoredStreamsAreFilledIn(t *testing.T) {
	url := testenv.Postgres(t)
	ctx := t.Context()
	if _, err := Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	s := open(t, url)
	sqlExec(t, url, "insert into orgs (id, name) values ('one', 'One')")
	hook := func(event string) string {
		return `{"portal_webhook":{"event_type":"` + event + `","portal_url":"https://portal.example/events","secret":"the secret of a connector"}}`
	}
	create(t, s, "one", parseAPI(t, `{"api_id":"a","name":"A","proxy":{"listen_path":"/a/"},"later":["\u0000","portal_webhook"],"x-svc-streaming":{"streams":{
		"b":{"input":{"http_server":{"path":"/b"}},"output":`+hook("order.created")+`},
		"c":{"input":{"http_server":{"path":"/c"}},"output":{"broker":{"outputs":[`+hook("order.created")+`,{"broker":{"outputs":[`+hook("order-gone")+`]}}]}},"dead_letter":`+hook("a_1")+`}}}}`))
	create(t, s, "one", simple(t, "plain", "/plain"))
	const events = "select events::text from apis where id = 'a'"
	saved := one[string](t, url, events)
	for range 2 {
		if err := migrateTo(ctx, url, 38); err != nil {
			t.Fatal(err)
		}
		sqlExec(t, url, "update apis set events = '{}'")
		if err := migrateTo(ctx, url, 39); err != nil {
			t.Fatal(err)
		}
		if got := one[string](t, url, events); got != saved || got != "{a_1,order-gone,order.created}" {
			t.Errorf("filled in %s; saving sets %s", got, saved)
		}
	}
	if n := one[int](t, url, "select count(*) from apis where events <> '{}'"); n != 1 {
		t.Errorf("%d APIs have events", n)
	}
}

func TestMigrationsRunOnceWhenSeveralStartTogether(t *testing.T) {
	url := testenv.Postgres(t)
	var all sync.WaitGroup
	total := make(chan int, 4)
	for range 4 {
		all.Go(func() {
			n, err := Migrate(t.Context(), url)
			if err != nil {
				t.Error(err)
			}
			total <- n
		})
	}
	all.Wait()
	close(total)
	sum := 0
	for n := range total {
		sum += n
	}
	if list, err := Migrations(t.Context(), url); err != nil || sum != len(list) {
		t.Errorf("%d migrations applied in all, of %d: %v", sum, len(list), err)
	}
}

func TestDefinitionComesBackAsItWasWritten(t *testing.T) {
	s, _ := fresh(t)
	text := `{"api_id":"a","name":"Ünïcode <&> \u2028","future":{"number":1.50,"big":12345678901234567890123,"list":[1,null,"\u0000"]},` +
		`"use_keyless":true,"proxy":{"listen_path":"/a/","target_url":"http://up.example","later":true}}`
	create(t, s, "one", parseAPI(t, text))
	row, err := s.APIByID(t.Context(), "one", "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"number":1.50`, `"big":12345678901234567890123`, `[1,null,"\u0000"]`, `"later":true`, `"org_id":"one"`, `<&>`} {
		if !strings.Contains(string(row.Definition), part) {
			t.Errorf("%s is missing in %s", part, row.Definition)
		}
	}
	if row.ListenPath != "/a" || row.Version != 1 || !row.Routed {
		t.Errorf("columns %+v", row)
	}
}

func TestChangesOfOneTransactionHappenTogetherOrNotAtAll(t *testing.T) {
	s, url := fresh(t)
	_, err := s.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error {
		if err := c.CreateAPI(ctx, simple(t, "a", "/a")); err != nil {
			return err
		}
		return c.CreatePolicy(ctx, parsePolicy(t, `{"id":"p","name":"p","access_rights":{"a":{"api_id":"a"},"zz":{"api_id":"zz"},"yy":{"api_id":"yy"}}}`))
	})
	unknown, ok := errors.AsType[*UnknownAPIsError](err)
	if !ok || fmt.Sprint(unknown.IDs) != "[yy zz]" {
		t.Fatalf("error %v, want the unknown APIs", err)
	}
	for _, table := range []string{"apis", "policies", "config_revisions", "config_history", "audit_log"} {
		if n := one[int](t, url, "select count(*) from "+table); n != 0 {
			t.Errorf("%d rows in %s", n, table)
		}
	}
	if state, _ := s.State(t.Context()); state.Revision != 0 {
		t.Errorf("revision %d after a change that failed", state.Revision)
	}
}

func TestConflictsAreTold(t *testing.T) {
	s, _ := fresh(t)
	ctx := t.Context()
	create(t, s, "one", simple(t, "a", "/a"))
	off := parseAPI(t, `{"api_id":"off","name":"off","active":false,"use_keyless":true,"proxy":{"listen_path":"/a","target_url":"http://up.example"}}`)
	create(t, s, "one", off) // out of service: takes no route
	try := func(org string, change func(context.Context, *Change) error) error {
		_, err := s.Publish(ctx, by(org), change)
		return err
	}
	createOne := func(a *definition.API) func(context.Context, *Change) error {
		return func(ctx context.Context, c *Change) error { return c.CreateAPI(ctx, a) }
	}
	if c := conflict(t, try("one", createOne(simple(t, "a", "/b"))), TakenID); fmt.Sprint(c.With) != "[a]" {
		t.Errorf("with %v", c.With)
	}
	if c := conflict(t, try("one", createOne(simple(t, "b", "/a/"))), TakenRoute); fmt.Sprint(c.With) != "[a]" {
		t.Errorf("with %v", c.With)
	}
	if c := conflict(t, try("two", createOne(simple(t, "b", "/a"))), TakenRoute); c.With != nil {
		t.Errorf("another organisation learns %v", c.With)
	}
	conflict(t, try("one", func(ctx context.Context, c *Change) error {
		_, err := c.UpdateAPI(ctx, simple(t, "off", "/a"), 0)
		return err
	}), TakenRoute)
	if c := conflict(t, try("one", func(ctx context.Context, c *Change) error {
		_, err := c.UpdateAPI(ctx, simple(t, "a", "/a"), 7)
		return err
	}), Stale); c.Current != 1 {
		t.Errorf("current version %d", c.Current)
	}
	if err := try("two", func(ctx context.Context, c *Change) error { return c.DeleteAPI(ctx, "a", 0, true) }); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleting another organisation's API: %v", err)
	}
	if err := try("one", func(ctx context.Context, c *Change) error {
		return c.CreatePolicy(ctx, parsePolicy(t, `{"id":"p","name":"gold","access_rights":{"a":{"api_id":"a"}}}`))
	}); err != nil {
		t.Fatal(err)
	}
	conflict(t, try("one", func(ctx context.Context, c *Change) error {
		return c.CreatePolicy(ctx, parsePolicy(t, `{"id":"q","name":"gold"}`))
	}), TakenName)
	if c := conflict(t, try("one", func(ctx context.Context, c *Change) error { return c.DeleteAPI(ctx, "a", 0, false) }), InUse); fmt.Sprint(c.With) != "[p]" {
		t.Errorf("in use by %v", c.With)
	}
	if err := try("one", func(ctx context.Context, c *Change) error { return c.DeleteAPI(ctx, "a", 1, true) }); err != nil {
		t.Error(err)
	}
}

func TestParallelWritersLoseNothingAndRevisionsHaveNoGaps(t *testing.T) {
	s, url := fresh(t)
	other := open(t, url)
	create(t, s, "one", simple(t, "shared", "/shared"))
	const writers = 200
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			on := s
			if i%2 == 1 {
				on = other
			}
			if err := addTag(t.Context(), on, fmt.Sprintf("tag-%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	row, err := s.APIByID(t.Context(), "one", "shared")
	if err != nil {
		t.Fatal(err)
	}
	if tags := parseAPI(t, string(row.Definition)).Tags; len(tags) != writers {
		t.Errorf("%d of %d changes are left", len(tags), writers)
	}
	if n := one[int64](t, url, "select count(*) from config_revisions"); n != writers+1 {
		t.Errorf("%d revisions, want %d", n, writers+1)
	}
	if last := one[int64](t, url, "select max(revision) from config_revisions"); last != writers+1 {
		t.Errorf("the last revision is %d: there are gaps", last)
	}
	if row.Version != writers+1 {
		t.Errorf("version %d", row.Version)
	}
}

// addTag changes the shared API as a client does that reads, changes and writes
// with the version it read.
func addTag(ctx context.Context, s *Store, tag string) error {
	for {
		row, err := s.APIByID(ctx, "one", "shared")
		if err != nil {
			return err
		}
		api, err := definition.ParseAPI(row.Definition)
		if err != nil {
			return err
		}
		api.Tags = append(api.Tags, tag)
		_, err = s.Publish(ctx, by("one"), func(ctx context.Context, c *Change) error {
			_, err := c.UpdateAPI(ctx, api, row.Version)
			return err
		})
		if c, ok := errors.AsType[*ConflictError](err); ok && c.Kind == Stale {
			continue
		}
		return err
	}
}

func TestAuditLogIsOnlyAddedTo(t *testing.T) {
	s, url := fresh(t)
	text := `{"api_id":"a","name":"a","use_keyless":true,"graphql":{"proxy":{"auth_headers":{"X":"hush"}}},"x":{"Password":"hush","headers":{"Authorization":"hush"}},` +
		`"event_handlers":{"events":{"AuthFailure":[{"handler_name":"eh_web_hook_handler","handler_meta":{"target_path":"https://hooks.example/a","header_map":{"X-Hook-Sign":"hush"}}}]}},` +
		`"proxy":{"listen_path":"/a","target_url":"http://up.example"}}`
	create(t, s, "one", parseAPI(t, text))
	for _, statement := range []string{"update audit_log set actor = 'x'", "delete from audit_log", "truncate audit_log"} {
		if err := tryExec(t, url, statement); err == nil || !strings.Contains(err.Error(), "only ever added") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	rows, total, err := s.ListAudit(t.Context(), "one", AuditFilter{Kind: "api"}, Page{Max: 10})
	if err != nil || total != 1 {
		t.Fatalf("%d rows: %v", total, err)
	}
	if strings.Contains(string(rows[0].After), "hush") || rows[0].Actor != "ann@one" || *rows[0].Revision != 1 {
		t.Errorf("audit row %+v: %s", rows[0], rows[0].After)
	}
	if _, total, _ := s.ListAudit(t.Context(), "two", AuditFilter{}, Page{}); total != 0 {
		t.Errorf("another organisation sees %d rows", total)
	}
}

func TestOldEntriesOfTheAuditLogAreForgotten(t *testing.T) {
	s, url := fresh(t)
	const insert = "insert into audit_log (org_id, at, actor, actor_kind, action, object_kind, object_id) select 'one', now() - interval '%d days', 'ann', 'user', 'updated', 'api', 'a' from generate_series(1, %d)"
	for _, rows := range [][2]int{{100, forgotAtOnce + 10}, {10, 3}} {
		if err := tryExec(t, url, fmt.Sprintf(insert, rows[0], rows[1])); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := s.ForgetAudit(t.Context(), time.Now().AddDate(0, 0, -30)); err != nil {
			t.Fatal(err)
		}
		if _, total, err := s.ListAudit(t.Context(), "one", AuditFilter{}, Page{}); err != nil || total != 3 {
			t.Errorf("%d entries are left: %v", total, err)
		}
	}
	if err := tryExec(t, url, "delete from audit_log"); err == nil {
		t.Error("entries can be deleted")
	}
}

func TestDevelopersHaveABudgetInTheAuditLog(t *testing.T) {
	s, url := fresh(t)
	entry := func(kind, name string) error {
		return s.InTx(t.Context(), func(tx *Tx) error {
			return tx.Audit(t.Context(), Author{Org: "one", Name: name, Kind: kind}, AuditEntry{Action: "updated", Kind: "developer", ID: "d"})
		})
	}
	const insert = "insert into audit_log (org_id, at, actor, actor_kind, action, object_kind, object_id) select 'one', now() - interval '%d hours', '%s', 'developer', 'updated', 'developer', 'd' from generate_series(1, %d)"
	for _, rows := range []struct {
		hours int
		actor string
		count int
	}{{25, "dev", 5000}, {1, "dev", maxDeveloperEntries - 1}, {25, "other", 5000}} {
		if err := tryExec(t, url, fmt.Sprintf(insert, rows.hours, rows.actor, rows.count)); err != nil {
			t.Fatal(err)
		}
	}
	if err := entry("developer", "dev"); err != nil {
		t.Errorf("the last entry of the budget: %v", err)
	}
	if err := entry("developer", "dev"); !errors.Is(err, ErrAuditSpent) {
		t.Errorf("one entry more: %v", err)
	}
	for kind, name := range map[string]string{"developer": "other", "user": "dev"} {
		if err := entry(kind, name); err != nil {
			t.Errorf("%s %s: %v", kind, name, err)
		}
	}
}

func TestRollbackRestoresExactlyThatRevision(t *testing.T) {
	s, _ := fresh(t)
	ctx := t.Context()
	create(t, s, "two", simple(t, "foreign", "/foreign"))
	create(t, s, "one", simple(t, "a", "/a"))
	good := create(t, s, "one", simple(t, "b", "/b"))
	if _, err := s.Publish(ctx, by("one"), func(ctx context.Context, c *Change) error {
		// a and b exchange their paths; c is new and d comes and goes.
		if err := c.DeleteAPI(ctx, "a", 0, false); err != nil {
			return err
		}
		if _, err := c.UpdateAPI(ctx, simple(t, "b", "/a"), 0); err != nil {
			return err
		}
		if err := c.CreateAPI(ctx, simple(t, "a", "/b")); err != nil {
			return err
		}
		if err := c.CreateAPI(ctx, simple(t, "c", "/c")); err != nil {
			return err
		}
		return c.CreatePolicy(ctx, parsePolicy(t, `{"id":"p","name":"gold","access_rights":{"a":{"api_id":"a"}}}`))
	}); err != nil {
		t.Fatal(err)
	}
	changed, err := s.Differences(ctx, "one", good, good+1)
	if err != nil || len(changed) != 4 {
		t.Fatalf("%d differences: %v", len(changed), err)
	}
	wanted, err := s.ObjectsAt(ctx, "one", good)
	if err != nil {
		t.Fatal(err)
	}
	rolled, err := s.Publish(ctx, by("one"), func(ctx context.Context, c *Change) error { return c.Rollback(ctx, good) })
	if err != nil || rolled != good+2 {
		t.Fatalf("rolled back at revision %d: %v", rolled, err)
	}
	got, err := s.ObjectsAt(ctx, "one", rolled)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("after: %v, want %v: %v", got, wanted, err)
	}
	for id, path := range map[string]string{"a": "/a", "b": "/b"} {
		row, err := s.APIByID(ctx, "one", id)
		if err != nil || row.ListenPath != path {
			t.Errorf("%s: %+v: %v", id, row, err)
		}
	}
	if _, err := s.APIByID(ctx, "one", "c"); !errors.Is(err, ErrNotFound) {
		t.Errorf("c is still there: %v", err)
	}
	if _, err := s.APIByID(ctx, "two", "foreign"); err != nil {
		t.Errorf("another organisation's API: %v", err)
	}
	_, err = s.Publish(ctx, by("two"), func(ctx context.Context, c *Change) error { return c.Rollback(ctx, good) })
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("rolling back to another organisation's revision: %v", err)
	}
}

func TestUsersKeepOneAdmin(t *testing.T) {
	s, _ := fresh(t)
	ctx := t.Context()
	done, err := s.Bootstrap(ctx, "x", User{OrgID: "three", ID: "u0", Email: "x@example.com", Role: "admin", Active: true, AccessKeyHash: []byte("0")})
	if done || err != nil {
		t.Fatalf("bootstrap on a database in use: %v, %v", done, err)
	}
	add := func(id, role string) {
		t.Helper()
		if err := s.CreateUser(ctx, by("one"), &User{ID: id, Email: id + "@Example.com", Role: role, Active: true, AccessKeyHash: []byte(id)}); err != nil {
			t.Fatal(err)
		}
	}
	add("ann", "admin")
	add("bob", "admin")
	add("eve", "viewer")
	conflict(t, s.CreateUser(ctx, by("one"), &User{ID: "z", Email: "ANN@example.com", Role: "viewer", AccessKeyHash: []byte("z")}), TakenName)
	var all sync.WaitGroup
	results := make(chan error, 2)
	for _, id := range []string{"ann", "bob"} {
		all.Go(func() { results <- s.DeleteUser(ctx, by("one"), id) })
	}
	all.Wait()
	if first, second := <-results, <-results; (first == nil) == (second == nil) {
		t.Errorf("both admins deleted each other: %v, %v", first, second)
	}
	users, total, err := s.ListUsers(ctx, "one", "EVE", Page{})
	if err != nil || total != 1 || users[0].ID != "eve" {
		t.Errorf("found %v: %v", users, err)
	}
	if _, err := s.UserByKey(ctx, []byte("eve")); err != nil {
		t.Error(err)
	}
	users[0].Active = false
	if err := s.UpdateUser(ctx, by("one"), &users[0], 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UserByKey(ctx, []byte("eve")); !errors.Is(err, ErrNotFound) {
		t.Errorf("an inactive user is let in: %v", err)
	}
}

func TestErrorsAreTranslated(t *testing.T) {
	s, err := Open(t.Context(), Options{URL: "host=/tmp/no-such-directory dbname=x user=x"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	empty := open(t, testenv.Postgres(t))
	if err := empty.Ping(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no tables: %v", err)
	}
	full, _ := fresh(t)
	_, err = full.Publish(t.Context(), by("one"), func(ctx context.Context, c *Change) error {
		a := simple(t, "a", "/a")
		a.Name = "a\x00b"
		return c.CreateAPI(ctx, a)
	})
	if !errors.Is(err, ErrUnstorable) {
		t.Errorf("a zero character: %v", err)
	}
	if _, err := full.APIByID(t.Context(), "one", "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no row: %v", err)
	}
}

// migrateTo moves the database up or down to a version; 0 removes every table
// with all its data.
func migrateTo(ctx context.Context, url string, version int64) error {
	return withMigrations(ctx, url, func(p *goose.Provider) error {
		current, err := p.GetDBVersion(ctx)
		if err != nil {
			return err
		}
		if current < version {
			_, err = p.UpTo(ctx, version)
		} else {
			_, err = p.DownTo(ctx, version)
		}
		return err
	})
}
