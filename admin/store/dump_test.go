package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/testenv"
)

// parts is a copy of a database in memory.
type parts struct {
	names []string
	data  [][]byte
	next  int
}

func (p *parts) Add(name string, data []byte) error {
	p.names, p.data = append(p.names, name), append(p.data, bytes.Clone(data))
	return nil
}

// Stream cuts streams into small pieces.
func (p *parts) Stream(name string) io.WriteCloser { return &cutter{to: p, name: name} }

type cutter struct {
	to   *parts
	name string
	n    int
}

func (c *cutter) Write(b []byte) (int, error) {
	for piece := range slices.Chunk(b, 7) {
		c.n++
		_ = c.to.Add(fmt.Sprintf("%s/%d", c.name, c.n), piece)
	}
	return len(b), nil
}

func (c *cutter) Close() error { return nil }

func (p *parts) Next() (string, []byte, error) {
	if p.next == len(p.names) {
		return "", nil, io.EOF
	}
	p.next++
	return p.names[p.next-1], p.data[p.next-1], nil
}

func (p *parts) again() *parts { return &parts{names: p.names, data: p.data} }

func nothing() error { return nil }

// filled is a database with rows, among them some that COPY has to quote, numbers of rows
// with gaps, and usage of months and days that have no partition at a start.
func filled(t *testing.T) string {
	t.Helper()
	url := testenv.Postgres(t)
	if _, err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	exec(t, url, `
		INSERT INTO orgs (id, name) VALUES ('one', E'tab\t, line\n and \\ and \\N');
		INSERT INTO apis (id, org_id, name, domain, listen_path, routed, definition) VALUES ('a', 'one', 'A', '', '/a', true, '{"x": 1.50,  "é": "\u00e9"}');
		SELECT bump_revision();
		INSERT INTO config_revisions (revision, org_id, author, source, summary) VALUES (1, 'one', 'me', 'api', '[]');
		INSERT INTO config_history (org_id, kind, id, revision, body) VALUES ('one', 'api', 'a', 1, '{}');
		INSERT INTO certificates (org_id, sum, pem, sealed_key) VALUES ('one', 's', 'p', '\x0001fe5c');
		INSERT INTO audit_log (org_id, actor, actor_kind, action, object_kind, object_id) SELECT 'one', 'me', 'user', 'a', 'b', n::text FROM generate_series(1, 9) n;
		SELECT usage_partition('usage_hour', '2025-03-01+00', '2025-04-01+00');
		INSERT INTO usage_due (org_id, hours, bucket) VALUES ('one', 1, '2025-03-05T10:00Z'), ('one', 24, '2001-01-01T00:00Z');
		CREATE TABLE of_somebody_else (id text)`)
	return url
}

func exec(t *testing.T, url, statements string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(t.Context(), statements).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// query returns rows as text.
func query(t *testing.T, url, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(t.Context(), statement).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	var text strings.Builder
	for _, row := range results[0].Rows {
		fmt.Fprintf(&text, "%s\n", bytes.Join(row, []byte(" | ")))
	}
	return text.String()
}

// schemaQueries describe all tables, columns, indexes, constraints, functions, triggers
// and partitions, and the states of numbered columns.
var schemaQueries = []string{
	`SELECT table_name, column_name, data_type, column_default, is_nullable, is_identity FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`,
	`SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2`,
	`SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY conrelid::regclass::text, 2`,
	`SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1`,
	`SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY tgrelid::regclass::text, 2`,
	`SELECT oid::regclass, relkind, reloptions, pg_get_expr(relpartbound, oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY oid::regclass::text`,
	`SELECT sequencename, last_value FROM pg_sequences WHERE sequencename <> 'goose_db_version_id_seq' ORDER BY 1`,
	`SELECT version_id, is_applied FROM goose_db_version ORDER BY id`,
}

// contents returns all rows of all tables, sorted.
func contents(t *testing.T, url string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for table := range strings.FieldsSeq(query(t, url, `SELECT oid::regclass FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'goose_db_version'`)) {
		all[table] = query(t, url, `SELECT t::text FROM `+table+` t ORDER BY 1`)
	}
	return all
}

func TestARestoredDatabaseEqualsTheOneThatWasCopied(t *testing.T) {
	url := filled(t)
	var copied parts
	var done, total int64
	dumped, err := store.Dump(t.Context(), url, &copied, func(d, of int64) {
		if d < done || d > of {
			t.Errorf("progress went from %d to %d of %d", done, d, of)
		}
		done, total = d, of
	})
	if err != nil {
		t.Fatal(err)
	}
	if done == 0 || done != total || !slices.Equal(dumped.LeftOut, []string{"of_somebody_else"}) || dumped.Rows["audit_log"] != 9 {
		t.Errorf("%d of %d, %+v", done, total, dumped)
	}
	exec(t, url, "DROP TABLE of_somebody_else")
	target, asked := testenv.Postgres(t), 0
	loaded, err := store.Load(t.Context(), target, &copied, func() error {
		asked++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || loaded.Schema != dumped.Schema || len(loaded.Rows) != len(dumped.Rows) {
		t.Errorf("asked %d times, %+v", asked, loaded)
	}
	for _, statement := range schemaQueries {
		if want, got := query(t, url, statement), query(t, target, statement); want != got || got == "" {
			t.Errorf("%s: was\n%s\nis\n%s", statement, want, got)
		}
	}
	want, got := contents(t, url), contents(t, target)
	for table := range want {
		if want[table] != got[table] {
			t.Errorf("%s: was\n%s\nis\n%s", table, want[table], got[table])
		}
	}
	if applied, err := store.Migrate(t.Context(), target); applied != 0 || err != nil {
		t.Errorf("the migrator applies %d migrations, %v", applied, err)
	}
	exec(t, target, "INSERT INTO audit_log (org_id, actor, actor_kind, action, object_kind, object_id) VALUES ('one', 'me', 'user', 'a', 'b', 'next')")
	if id := query(t, target, "SELECT max(id) FROM audit_log"); id != "10\n" {
		t.Errorf("the next row has number %s", id)
	}
}

// A copy has everything as of one moment, also while the database is written to.
func TestACopyIsOfOneMoment(t *testing.T) {
	url := filled(t)
	var copied parts
	once := false
	_, err := store.Dump(t.Context(), url, &copied, func(int64, int64) {
		if !once {
			once = true
			exec(t, url, `INSERT INTO orgs (id, name) VALUES ('late', 'late'); INSERT INTO audit_log (org_id, actor, actor_kind, action, object_kind, object_id) VALUES ('late', 'me', 'user', 'a', 'b', 'late');
				INSERT INTO apis (id, org_id, name, domain, listen_path, routed, definition) VALUES ('late', 'late', 'A', '', '/late', true, '{}')`)
		}
	})
	if err != nil || !once {
		t.Fatal(once, err)
	}
	target := testenv.Postgres(t)
	if _, err := store.Load(t.Context(), target, &copied, nothing); err != nil {
		t.Fatal(err)
	}
	if n := query(t, target, `SELECT (SELECT count(*) FROM orgs WHERE id = 'late') + (SELECT count(*) FROM apis WHERE id = 'late') + (SELECT count(*) FROM audit_log WHERE org_id = 'late')`); n != "0\n" {
		t.Errorf("%s late rows", n)
	}
}

func TestARestoreIsAllOrNothing(t *testing.T) {
	var copied parts
	if _, err := store.Dump(t.Context(), filled(t), &copied, nil); err != nil {
		t.Fatal(err)
	}
	target := testenv.Postgres(t)
	for what, from := range map[string]func() (store.DumpReader, func() error, context.Context){
		"a damaged end": func() (store.DumpReader, func() error, context.Context) {
			return &failing{parts: copied.again(), after: len(copied.names) - 1}, nothing, t.Context()
		},
		"a damaged middle": func() (store.DumpReader, func() error, context.Context) {
			return &failing{parts: copied.again(), after: len(copied.names) / 2}, nothing, t.Context()
		},
		"an interruption": func() (store.DumpReader, func() error, context.Context) {
			ctx, cancel := context.WithCancel(t.Context())
			return &failing{parts: copied.again(), after: len(copied.names) / 2, cancel: cancel}, nothing, ctx
		},
		"a failure before the commit": func() (store.DumpReader, func() error, context.Context) {
			return copied.again(), func() error { return errBroken }, t.Context()
		},
		"a part that is missing": func() (store.DumpReader, func() error, context.Context) {
			p := copied.again()
			i := slices.IndexFunc(p.names, func(n string) bool { return strings.HasPrefix(n, "database/tables/audit_log") })
			p.names, p.data = slices.Concat(p.names[:i], p.names[i+1:]), slices.Concat(p.data[:i], p.data[i+1:])
			return p, nothing, t.Context()
		},
	} {
		reader, ready, ctx := from()
		if _, err := store.Load(ctx, target, reader, ready); err == nil {
			t.Errorf("%s: restored", what)
		}
		if left := query(t, target, "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"); left != "0\n" {
			t.Fatalf("%s: %s tables and indexes are left", what, left)
		}
	}
	if _, err := store.Load(t.Context(), target, copied.again(), nothing); err != nil {
		t.Errorf("the whole copy afterwards: %v", err)
	}
}

var errBroken = errors.New("broken")

// failing is a copy that cannot be read to its end, or that is interrupted there.
type failing struct {
	*parts
	after  int
	cancel func()
}

func (f *failing) Next() (string, []byte, error) {
	if f.next == f.after {
		if f.cancel == nil {
			return "", nil, errBroken
		}
		f.cancel()
	}
	return f.parts.Next()
}

func TestARestoreRefusesWhatDoesNotFit(t *testing.T) {
	url := filled(t)
	var copied parts
	if _, err := store.Dump(t.Context(), url, &copied, nil); err != nil {
		t.Fatal(err)
	}
	before := contents(t, url)
	_, err := store.Load(t.Context(), url, copied.again(), nothing)
	if _, refused := errors.AsType[*store.NotEmptyError](err); !refused || !strings.Contains(err.Error(), "the database is not empty: it has ") {
		t.Errorf("into a database in use: %v", err)
	}
	for table, rows := range contents(t, url) {
		if rows != before[table] {
			t.Errorf("%s has changed", table)
		}
	}
	newer := copied.again()
	newer.data = slices.Clone(newer.data)
	newer.data[0] = bytes.Replace(newer.data[0], []byte(`"schema": [`), []byte(`"schema": [99998, `), 1)
	_, err = store.Load(t.Context(), testenv.Postgres(t), newer, nothing)
	if schema, refused := errors.AsType[*store.NewerSchemaError](err); !refused || schema.Unknown != 99998 {
		t.Errorf("a newer schema: %v", err)
	}
	if _, err := store.Load(t.Context(), testenv.Postgres(t), new(parts), nothing); err == nil || !strings.Contains(err.Error(), "the backup holds no database") {
		t.Errorf("an empty backup: %v", err)
	}
	if _, err := store.Dump(t.Context(), testenv.Postgres(t), new(parts), nil); err == nil || !strings.Contains(err.Error(), "no tables of Sluice") {
		t.Errorf("a copy of an empty database: %v", err)
	}
	exec(t, url, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)")
	if _, err := store.Dump(t.Context(), url, new(parts), nil); err == nil || !strings.Contains(err.Error(), "version 99999") {
		t.Errorf("a copy of a newer schema: %v", err)
	}
}
