package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicegate/sluice/sql"
)

// Names of the parts of a copy of the database. Those of a table are tablesPart, its name
// and what the sink adds for the pieces of a stream.
const (
	manifestPart = "database/manifest.json"
	tablesPart   = "database/tables/"
	rowsPart     = "database/rows.json"
)

// A Sink takes a copy of the database, part by part.
type Sink interface {
	Add(name string, data []byte) error
	Stream(name string) io.WriteCloser // to be closed before the next part
}

// A Manifest describes a copy of a database. It comes first.
type Manifest struct {
	Schema     []int64     `json:"schema"` // versions of the migrations
	Tables     []DumpTable `json:"tables"` // those that others refer to come first
	Counters   []dumpCount `json:"counters"`
	Partitions []dumpRange `json:"partitions"`
}

// A DumpTable is a table in a copy.
type DumpTable struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`

	size int64 // bytes on disk
}

// A dumpCount is the state of a column that numbers its rows.
type dumpCount struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	Value  int64  `json:"value"`
	Used   bool   `json:"used"` // the value was given to a row
}

// A dumpRange is a partition by time.
type dumpRange struct {
	Table string `json:"table"`
	Since string `json:"since"`
	Until string `json:"until"`
}

// Dumped says what a copy of a database holds.
type Dumped struct {
	Schema  int64            // version
	Rows    map[string]int64 // by table
	LeftOut []string         // tables in the database that are not Sluice's
}

// Dump copies the database at url, all tables as of one moment. The database may be in
// use meanwhile. progress is called with bytes of tables that were copied, and of all.
func Dump(ctx context.Context, url string, to Sink, progress func(done, total int64)) (*Dumped, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	prepareConn(config, 0) // statements take as long as they take
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, unreachable(err)
	}
	defer hangUp(conn)
	d := &dump{conn: conn, to: to, progress: progress, result: Dumped{Rows: map[string]int64{}}}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	if err := pgx.BeginTxFunc(ctx, conn, snapshot, func(pgx.Tx) error { return d.run(ctx) }); err != nil {
		return nil, fmt.Errorf("copying the database: %w", translate(err))
	}
	return &d.result, nil
}

// dump is a copy under way.
type dump struct {
	conn     *pgx.Conn
	to       Sink
	progress func(done, total int64)
	result   Dumped

	done, total int64 // bytes of tables
}

func (d *dump) run(ctx context.Context) error {
	m, err := d.manifest(ctx)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = d.to.Add(manifestPart, text)
	}
	if err != nil {
		return err
	}
	for _, t := range m.Tables {
		d.total += t.size
	}
	for i := range m.Tables {
		if err := d.table(ctx, &m.Tables[i]); err != nil {
			return fmt.Errorf("table %s: %w", m.Tables[i].Name, err)
		}
	}
	if text, err = json.Marshal(d.result.Rows); err != nil {
		return err
	}
	return d.to.Add(rowsPart, text)
}

// manifest describes the database.
func (d *dump) manifest(ctx context.Context) (*Manifest, error) {
	var m Manifest
	var err error
	if m.Schema, err = schemaOf(ctx, d.conn); err != nil {
		return nil, err
	}
	d.result.Schema = slices.Max(m.Schema)
	if err := knownSchema(m.Schema); err != nil {
		return nil, err
	}
	if m.Tables, err = d.tables(ctx); err != nil {
		return nil, err
	}
	if m.Counters, err = d.counters(ctx); err != nil {
		return nil, err
	}
	m.Partitions, err = d.partitions(ctx)
	return &m, err
}

// errNoSchema means that a database has no tables of Sluice.
var errNoSchema = errors.New("there are no tables of Sluice in this database")

// schemaOf returns the versions of the migrations that a database has had.
func schemaOf(ctx context.Context, conn *pgx.Conn) ([]int64, error) {
	rows, err := conn.Query(ctx, "SELECT DISTINCT version_id FROM goose_db_version WHERE is_applied AND version_id > 0 ORDER BY version_id")
	var versions []int64
	if err == nil {
		versions, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && answer.Code == "42P01" || err == nil && len(versions) == 0 {
		return nil, errNoSchema
	}
	return versions, err
}

// A NewerSchemaError reports migrations that this program does not have.
type NewerSchemaError struct{ Unknown, Newest int64 }

// Error says what to do.
func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("its schema has version %d, and this program knows versions up to %d: use the program that made it, or a newer one", e.Unknown, e.Newest)
}

// knownSchema refuses versions that this program does not have.
func knownSchema(versions []int64) error {
	own, err := ownMigrations()
	if err != nil {
		return err
	}
	for _, v := range versions {
		if _, known := own[v]; !known {
			newest := int64(0)
			for version := range own {
				newest = max(newest, version)
			}
			return &NewerSchemaError{Unknown: v, Newest: newest}
		}
	}
	return nil
}

// ownMigrations returns the text of each migration of this program by its version.
func ownMigrations() (map[int64]string, error) {
	names, err := fs.Glob(sql.Migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	all := make(map[int64]string, len(names))
	for _, name := range names {
		var version int64
		if _, err := fmt.Sscanf(name, "migrations/%d_", &version); err != nil {
			return nil, fmt.Errorf("migration %s has no version: %w", name, err)
		}
		text, err := fs.ReadFile(sql.Migrations, name)
		if err != nil {
			return nil, err
		}
		all[version] = string(text)
	}
	return all, nil
}

var createTable = regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)

// ownTables returns the names of the tables that migrations create.
func ownTables() (map[string]bool, error) {
	migrations, err := ownMigrations()
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, text := range migrations {
		for _, m := range createTable.FindAllStringSubmatch(text, -1) {
			names[m[1]] = true
		}
	}
	return names, nil
}

// tables returns the tables of Sluice in the order in which they can be filled.
func (d *dump) tables(ctx context.Context) ([]DumpTable, error) {
	own, err := ownTables()
	if err != nil {
		return nil, err
	}
	rows, err := d.conn.Query(ctx, `
		SELECT c.relname,
		       (SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
		        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
		       pg_table_size(c.oid) + (SELECT coalesce(sum(pg_table_size(inhrelid)), 0)::bigint FROM pg_inherits WHERE inhparent = c.oid)
		FROM pg_class c
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
		  AND c.relname <> 'goose_db_version'
		ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t DumpTable, err error) {
		return t, row.Scan(&t.Name, &t.Columns, &t.size)
	})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(t DumpTable) bool {
		if !own[t.Name] {
			d.result.LeftOut = append(d.result.LeftOut, t.Name)
		}
		return !own[t.Name]
	})
	return d.inOrder(ctx, found)
}

// inOrder sorts tables so that each comes after those that it refers to.
func (d *dump) inOrder(ctx context.Context, tables []DumpTable) (sorted []DumpTable, err error) {
	rows, err := d.conn.Query(ctx, `
		SELECT r.relname, f.relname FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid JOIN pg_class f ON f.oid = c.confrelid
		WHERE c.contype = 'f' AND c.conrelid <> c.confrelid AND r.relnamespace = current_schema()::regnamespace`)
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	var from, to string
	if _, err := pgx.ForEachRow(rows, []any{&from, &to}, func() error { needs[from] = append(needs[from], to); return nil }); err != nil {
		return nil, err
	}
	placed := map[string]bool{}
	for len(tables) > 0 {
		before := len(tables)
		tables = slices.DeleteFunc(tables, func(t DumpTable) bool {
			if slices.ContainsFunc(needs[t.Name], func(name string) bool { return !placed[name] }) {
				return false
			}
			sorted, placed[t.Name] = append(sorted, t), true
			return true
		})
		if len(tables) == before {
			return nil, fmt.Errorf("tables refer to each other: %s and others", tables[0].Name)
		}
	}
	return sorted, nil
}

// counters returns the states of the columns that number their rows.
func (d *dump) counters(ctx context.Context) ([]dumpCount, error) {
	rows, err := d.conn.Query(ctx, `
		SELECT c.relname, a.attname, pg_get_serial_sequence(quote_ident(c.relname), a.attname)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.attidentity <> '' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
		ORDER BY c.relname, a.attname`)
	if err != nil {
		return nil, err
	}
	type column struct {
		dumpCount
		sequence string
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		return c, row.Scan(&c.Table, &c.Column, &c.sequence)
	})
	if err != nil {
		return nil, err
	}
	own, err := ownTables()
	if err != nil {
		return nil, err
	}
	var all []dumpCount
	for _, c := range columns {
		if !own[c.Table] {
			continue
		}
		// The name is quoted by the database.
		if err := d.conn.QueryRow(ctx, "SELECT last_value, is_called FROM "+c.sequence).Scan(&c.Value, &c.Used); err != nil {
			return nil, err
		}
		all = append(all, c.dumpCount)
	}
	return all, nil
}

var rangeBounds = regexp.MustCompile(`^FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)$`)

// partitions returns the partitions of tables that are divided by time.
func (d *dump) partitions(ctx context.Context) ([]dumpRange, error) {
	rows, err := d.conn.Query(ctx, `
		SELECT p.relname, pg_get_expr(c.relpartbound, c.oid)
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
		WHERE p.relkind = 'p' AND p.relnamespace = current_schema()::regnamespace AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
		ORDER BY p.relname, c.relname`)
	if err != nil {
		return nil, err
	}
	own, err := ownTables()
	if err != nil {
		return nil, err
	}
	all := []dumpRange{}
	var table, bounds string
	_, err = pgx.ForEachRow(rows, []any{&table, &bounds}, func() error {
		m := rangeBounds.FindStringSubmatch(bounds)
		switch {
		case !own[table]:
		case m == nil:
			return fmt.Errorf("partition of %s: %s is not a range of times", table, bounds)
		default:
			all = append(all, dumpRange{table, m[1], m[2]})
		}
		return nil
	})
	return all, err
}

// columnList returns the columns for SQL.
func (t *DumpTable) columnList() string {
	var text strings.Builder
	for i, name := range t.Columns {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(pgx.Identifier{name}.Sanitize())
	}
	return text.String()
}

// table copies one table.
func (d *dump) table(ctx context.Context, t *DumpTable) error {
	part := d.to.Stream(tablesPart + t.Name)
	watched := &watchedWriter{to: part, wrote: func(n int64) { d.report(d.done + min(n, t.size)) }}
	// A table with partitions cannot be named itself.
	query := "COPY (SELECT " + t.columnList() + " FROM " + pgx.Identifier{t.Name}.Sanitize() + ") TO STDOUT"
	tag, err := d.conn.PgConn().CopyTo(ctx, watched, query)
	if err := errors.Join(err, part.Close()); err != nil {
		return err
	}
	d.result.Rows[t.Name] = tag.RowsAffected()
	d.done += t.size
	d.report(d.done)
	return nil
}

func (d *dump) report(done int64) {
	if d.progress != nil {
		d.progress(done, d.total)
	}
}

// watchedWriter reports how many bytes were written.
type watchedWriter struct {
	to    io.Writer
	n     int64
	wrote func(n int64)
}

// Write implements io.Writer.
func (w *watchedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	w.wrote(w.n)
	return n, err
}
