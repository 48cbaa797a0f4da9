package store

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/sluicegate/sluice/sql"
)

// migrationLock is the advisory lock under which one process at a time migrates.
const migrationLock = 7209770

// Migration is the state of one migration.
type Migration struct {
	Version int64
	Name    string    // file name
	Applied time.Time // zero: not yet
}

// Migrate migrates the database at url to the tables of this program and returns the
// number of applied migrations. Concurrent migrations wait for the first one, up to five
// minutes. A database of a newer program is refused: what that wrote might be lost.
func Migrate(ctx context.Context, url string) (applied int, err error) {
	err = withMigrations(ctx, url, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		applied = len(results)
		if err != nil {
			return err
		}
		has, knows, err := p.GetVersions(ctx)
		if err == nil && has > knows {
			err = fmt.Errorf("it has migration %d, and this program knows those up to %d: it was migrated by a newer release; install that, or restore the backup from before the upgrade", has, knows)
		}
		return err
	})
	return applied, err
}

// Migrations lists all migrations, oldest first, and when each was applied.
func Migrations(ctx context.Context, url string) ([]Migration, error) {
	var list []Migration
	err := withMigrations(ctx, url, func(p *goose.Provider) error {
		states, err := p.Status(ctx)
		for _, s := range states {
			list = append(list, Migration{Version: s.Source.Version, Name: s.Source.Path, Applied: s.AppliedAt})
		}
		return err
	})
	return list, err
}

// withMigrations runs work on connections without a statement timeout.
func withMigrations(ctx context.Context, url string, work func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("reading the database address: %w", err)
	}
	conns := stdlib.OpenDB(*config)
	provider, err := migrations(conns)
	if err == nil {
		err = work(provider)
	}
	if err = errors.Join(err, conns.Close()); err != nil {
		return fmt.Errorf("migrating the database: %w", translate(err))
	}
	return nil
}

func migrations(conns *stdsql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(sql.Migrations, "migrations")
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLock), lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, conns, files,
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
}

// Reach connects to the database at url once. The error wraps ErrUnavailable if the
// database may answer later: it does not if it refuses the user or does not exist.
func Reach(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("reading the database address: %w", err)
	}
	prepareConn(config, connectWithin)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return unreachable(err)
	}
	defer hangUp(conn)
	var standby bool
	if err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby); err != nil {
		return translate(err)
	}
	if standby {
		return fmt.Errorf("%w: the server is a standby, which cannot be written to", ErrUnavailable)
	}
	return nil
}

// unreachable returns the error of an attempt to connect.
func unreachable(err error) error {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch answer.Code[:2] {
		case "28", "3D": // authorisation, no such database
			return fmt.Errorf("connecting to the database: %w", err)
		}
	}
	return translate(err)
}
