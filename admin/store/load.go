package store

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3/database"

	"github.com/sluicegate/sluice/internal/sleep"
)

// A DumpReader returns the parts of a copy of the database in their order, and io.EOF
// after the last one, when all were found undamaged. The data is valid until the next call.
type DumpReader interface {
	Next() (name string, data []byte, err error)
}

// A NotEmptyError reports a database that a copy cannot be restored into.
type NotEmptyError struct{ Found []string }

// Error names what the database has.
func (e *NotEmptyError) Error() string {
	shown := e.Found[:min(len(e.Found), 3)]
	return fmt.Sprintf("the database is not empty: it has %s (%d in all); restore into an empty one, so that nothing is lost",
		strings.Join(shown, ", "), len(e.Found))
}

// Load restores a copy of a database into the empty one at url, with the schema that the
// copy was made of; Migrate brings it up to date. All of it is one transaction. Before the
// commit it calls ready, once everything was read and found undamaged.
func Load(ctx context.Context, url string, from DumpReader, ready func() error) (*Dumped, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	prepareConn(config, 0) // statements take as long as they take
	conns := stdlib.OpenDB(*config)
	defer func() { _ = conns.Close() }() // undoes what was not committed
	conn, err := conns.Conn(ctx)
	if err != nil {
		return nil, unreachable(err)
	}
	l := &load{conn: conn, from: from, result: Dumped{Rows: map[string]int64{}}}
	err = l.run(ctx)
	if err == nil {
		err = ready()
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "COMMIT")
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return nil, fmt.Errorf("restoring the database: %w", translate(err))
	}
	return &l.result, nil
}

// load is a restore under way.
type load struct {
	conn     *stdsql.Conn
	from     DumpReader
	manifest Manifest
	result   Dumped
	disabled []string // tables whose triggers do not act

	name  string // of the part to be read next
	data  []byte
	ended bool
}

func (l *load) run(ctx context.Context) error {
	if _, err := l.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *pgx.Conn) error{l.begin, l.createTables} {
		if err := l.raw(ctx, step); err != nil {
			return err
		}
	}
	if err := l.noteVersions(ctx); err != nil {
		return err
	}
	return l.raw(ctx, l.fill)
}

// raw runs a step on the connection of the transaction.
func (l *load) raw(ctx context.Context, step func(context.Context, *pgx.Conn) error) error {
	return l.conn.Raw(func(driver any) error { return step(ctx, driver.(*stdlib.Conn).Conn()) })
}

// begin refuses databases and copies that do not fit, before anything is changed.
func (l *load) begin(ctx context.Context, conn *pgx.Conn) error {
	if err := lockSchema(ctx, conn); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, `
		SELECT relname FROM pg_class c
		WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
		  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		ORDER BY relkind DESC, relname`)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return &NotEmptyError{found}
	}
	return l.readManifest()
}

// How often and at which interval the lock of migrations is tried.
const (
	lockTries = 40
	lockPause = 250 * time.Millisecond
)

// lockSchema keeps others from changing the schema until the transaction ends. A restore
// that was interrupted a moment ago may still have the lock.
func lockSchema(ctx context.Context, conn *pgx.Conn) error {
	for range lockTries {
		var alone bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", migrationLock).Scan(&alone); err != nil || alone {
			return err
		}
		if err := sleep.For(ctx, lockPause); err != nil {
			return err
		}
	}
	return errors.New("an admin or another restore is changing the schema of this database: stop it")
}

var errNoManifest = errors.New("the backup holds no database")

func (l *load) readManifest() error {
	if err := l.next(); err != nil {
		return err
	}
	if l.ended || l.name != manifestPart {
		return errNoManifest
	}
	if err := json.Unmarshal(l.data, &l.manifest); err != nil {
		return fmt.Errorf("%s: %w", manifestPart, err)
	}
	if len(l.manifest.Schema) == 0 {
		return errNoManifest
	}
	if err := knownSchema(l.manifest.Schema); err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	own, err := ownTables()
	if err != nil {
		return err
	}
	for _, t := range l.manifest.Tables {
		if !own[t.Name] || len(t.Columns) == 0 {
			return fmt.Errorf("%s: %q is not a table of Sluice", manifestPart, t.Name)
		}
	}
	l.result.Schema = slices.Max(l.manifest.Schema)
	return l.next()
}

// next reads the next part.
func (l *load) next() (err error) {
	l.name, l.data, err = l.from.Next()
	if errors.Is(err, io.EOF) {
		l.ended, err = true, nil
	}
	return err
}

// Marks in migrations.
const (
	upMark   = "-- +goose Up\n"
	downMark = "-- +goose Down"
)

// createTables runs the migrations of the copy. The migrator would commit each of them.
func (l *load) createTables(ctx context.Context, conn *pgx.Conn) error {
	migrations, err := ownMigrations()
	if err != nil {
		return err
	}
	for _, version := range l.manifest.Schema {
		_, up, found := strings.Cut(migrations[version], upMark)
		if !found || strings.Contains(up, "+goose NO TRANSACTION") {
			return fmt.Errorf("migration %d cannot be part of a transaction", version)
		}
		up, _, _ = strings.Cut(up, downMark)
		if _, err := conn.PgConn().Exec(ctx, up).ReadAll(); err != nil {
			return fmt.Errorf("migration %d: %w", version, err)
		}
	}
	for _, p := range l.manifest.Partitions {
		if _, err := conn.Exec(ctx, "SELECT usage_partition($1, $2::text::timestamptz, $3::text::timestamptz)", p.Table, p.Since, p.Until); err != nil {
			return fmt.Errorf("partition of %s: %w", p.Table, err)
		}
	}
	return nil
}

// noteVersions writes down which migrations the database has had, as the migrator does.
func (l *load) noteVersions(ctx context.Context) error {
	versions, err := database.NewStore(database.DialectPostgres, "goose_db_version")
	if err != nil {
		return err
	}
	if err := versions.CreateVersionTable(ctx, l.conn); err != nil {
		return err
	}
	for _, version := range append([]int64{0}, l.manifest.Schema...) {
		if err := versions.Insert(ctx, l.conn, database.InsertRequest{Version: version}); err != nil {
			return err
		}
	}
	return nil
}

// fill copies the rows, and checks that all are there.
func (l *load) fill(ctx context.Context, conn *pgx.Conn) error {
	for i := range l.manifest.Tables {
		t := &l.manifest.Tables[i]
		if err := l.fillTable(ctx, conn, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	if err := l.enableTriggers(ctx, conn); err != nil {
		return err
	}
	if l.ended || l.name != rowsPart {
		return fmt.Errorf("the backup has %q where %s should be", l.name, rowsPart)
	}
	var rows map[string]int64
	if err := json.Unmarshal(l.data, &rows); err != nil {
		return fmt.Errorf("%s: %w", rowsPart, err)
	}
	if !maps.Equal(rows, l.result.Rows) {
		return fmt.Errorf("the backup has %v rows by table, of which these were restored: %v", rows, l.result.Rows)
	}
	for _, c := range l.manifest.Counters {
		if _, err := conn.Exec(ctx, "SELECT setval(pg_get_serial_sequence(quote_ident($1), $2), $3, $4)", c.Table, c.Column, c.Value, c.Used); err != nil {
			return fmt.Errorf("numbers of table %s: %w", c.Table, err)
		}
	}
	if err := l.next(); err != nil {
		return err
	}
	if !l.ended {
		return fmt.Errorf("the backup has a part %q after its end", l.name)
	}
	return nil
}

// fillTable replaces the rows of a table, which are those that migrations added.
func (l *load) fillTable(ctx context.Context, conn *pgx.Conn, t *DumpTable) error {
	name := pgx.Identifier{t.Name}.Sanitize()
	var has bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+name+")").Scan(&has); err != nil {
		return err
	}
	if has {
		if _, err := conn.Exec(ctx, "DELETE FROM "+name); err != nil {
			return err
		}
	}
	if err := l.disableTriggers(ctx, conn, name); err != nil {
		return err
	}
	rows := &tableReader{from: l, prefix: tablesPart + t.Name + "/"}
	tag, err := conn.PgConn().CopyFrom(ctx, rows, "COPY "+name+" ("+t.columnList()+") FROM STDIN")
	if failed := rows.failed.Load(); failed != nil {
		return *failed
	}
	l.result.Rows[t.Name] = tag.RowsAffected()
	return err
}

// disableTriggers keeps the triggers of a table from acting on rows that are as they were.
// Constraints are checked.
func (l *load) disableTriggers(ctx context.Context, conn *pgx.Conn, name string) error {
	var has bool
	err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = $1::text::regclass AND NOT tgisinternal)", name).Scan(&has)
	if err != nil || !has {
		return err
	}
	l.disabled = append(l.disabled, name)
	_, err = conn.Exec(ctx, "ALTER TABLE "+name+" DISABLE TRIGGER USER")
	return err
}

// enableTriggers undoes disableTriggers for all tables.
func (l *load) enableTriggers(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil { // a table that awaits a check cannot be altered
		return err
	}
	for _, name := range l.disabled {
		if _, err := conn.Exec(ctx, "ALTER TABLE "+name+" ENABLE TRIGGER USER"); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// tableReader reads the parts of one table.
type tableReader struct {
	from   *load
	prefix string
	piece  bytes.Reader
	failed atomic.Pointer[error] // of the copy; CopyFrom may return before it has read for the last time
}

// Read implements io.Reader.
func (r *tableReader) Read(p []byte) (int, error) {
	for r.piece.Len() == 0 {
		if r.from.ended || !strings.HasPrefix(r.from.name, r.prefix) {
			return 0, io.EOF
		}
		r.piece.Reset(bytes.Clone(r.from.data)) // the next part replaces it
		if err := r.from.next(); err != nil {
			r.failed.Store(&err)
			return 0, err
		}
	}
	return r.piece.Read(p)
}
