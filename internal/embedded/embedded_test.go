package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/embedded"
)

// shortDir is a base directory whose path is short enough for a socket, and
// which the server user can reach: t.TempDir is neither.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "sluice-embedded-")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start runs a server on dir until t ends.
func start(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), options(t, dir))
	if err != nil {
		skipIfMissing(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func options(t *testing.T, dir string) embedded.Options {
	return embedded.Options{
		BaseDir: dir, SharedBuffers: "16MB", MaxConnections: 20, Disposable: true,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func skipIfMissing(t *testing.T, err error) {
	t.Helper()
	if _, missing := errors.AsType[*embedded.MissingError](err); missing && os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
}

func stop(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// exec runs one statement on a connection of its own.
func exec(t *testing.T, dsn, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// number runs one query that returns one number.
func number(t *testing.T, dsn, sql string) int {
	t.Helper()
	n, err := tryNumber(t.Context(), dsn, sql)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func tryNumber(ctx context.Context, dsn, sql string) (n int, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.Background())
	return n, conn.QueryRow(ctx, sql).Scan(&n)
}

func TestRowsOutliveAStopAndAStart(t *testing.T) {
	dir := shortDir(t)
	first := start(t, dir)
	exec(t, first.DSN(), "create table kept (n int)")
	exec(t, first.DSN(), "insert into kept values (7)")
	stop(t, first)
	if first.Ready() {
		t.Error("a stopped server says that it is ready")
	}
	second := start(t, dir)
	if got := number(t, second.DSN(), "select n from kept"); got != 7 {
		t.Errorf("after a restart the row holds %d, want 7", got)
	}
	if second.DSN() != first.DSN() || second.Version() == "" {
		t.Errorf("DSN %q then %q, version %q", first.DSN(), second.DSN(), second.Version())
	}
}
