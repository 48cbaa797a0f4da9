// Package admintest is the harness of tests of the admin: a database with its tables, a
// client of its REST API, calls of routes without a connection, a log to read, and
// waiting for a condition.
package admintest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/internal/testenv"
)

// Database is a database with the admin's tables, for one test.
type Database struct {
	DSN string

	t    testing.TB
	pool *pgxpool.Pool
}

// NewDatabase makes a database that goes when t ends. Its name begins with name.
func NewDatabase(t testing.TB, name string) *Database {
	t.Helper()
	migrate := func(ctx context.Context, dsn string) error {
		_, err := store.Migrate(ctx, dsn)
		return err
	}
	d := &Database{DSN: testenv.Database(t, migrate, name), t: t}
	conf, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	conf.MaxConns = 16 // statements that wait for one another are each on one of their own
	if d.pool, err = pgxpool.NewWithConfig(context.Background(), conf); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.pool.Close) // the database goes next
	return d
}

// Open returns a store on the database that is closed when the test ends. The
// URL of o is the database's.
func (d *Database) Open(o store.Options) *store.Store {
	d.t.Helper()
	o.URL = d.DSN
	st, err := store.Open(d.t.Context(), o)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(st.Close)
	return st
}

// Exec runs a statement.
func (d *Database) Exec(statement string, args ...any) {
	d.t.Helper()
	if _, err := d.pool.Exec(context.Background(), statement, args...); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

// Count returns the one number that a query asks for.
func (d *Database) Count(query string, args ...any) int {
	d.t.Helper()
	return Scan[int](d, query, args...)
}

// Text returns the one text that a query asks for.
func (d *Database) Text(query string, args ...any) string {
	d.t.Helper()
	return Scan[string](d, query, args...)
}

// Scan returns the one value that a query asks for.
func Scan[T any](d *Database, query string, args ...any) (value T) {
	d.t.Helper()
	if err := d.pool.QueryRow(context.Background(), query, args...).Scan(&value); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return value
}
