package testenv_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sluicegate/sluice/internal/testenv"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

func run(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

func TestEachTestHasAnEmptyDatabaseOfItsOwn(t *testing.T) {
	first, second := testenv.Postgres(t), testenv.Postgres(t)
	for _, dsn := range []string{first, second} {
		if err := run(t.Context(), dsn, "create table mine (n int)"); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestADatabaseGoesWithItsTestEvenWhileConnected(t *testing.T) {
	var dsn string
	t.Run("owner", func(t *testing.T) {
		dsn = testenv.Postgres(t)
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	})
	if err := run(t.Context(), dsn, "select 1"); err == nil {
		t.Error("the database is still there")
	}
}

func TestATemplateIsMigratedOnceAndCopied(t *testing.T) {
	var migrated atomic.Int32
	migrate := func(ctx context.Context, dsn string) error {
		migrated.Add(1)
		return run(ctx, dsn, "create table made (n int)")
	}
	for range 3 {
		t.Run("copy", func(t *testing.T) {
			dsn := testenv.Database(t, migrate, "made")
			for _, sql := range []string{"insert into made values (1)", "create table mine (n int)"} {
				if err := run(t.Context(), dsn, sql); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if n := migrated.Load(); n != 1 {
		t.Errorf("migrated %d times, want once", n)
	}
}

func TestTestsInParallelCopyOneTemplate(t *testing.T) {
	migrate := func(ctx context.Context, dsn string) error { return run(ctx, dsn, "create table made (n int)") }
	for range 6 {
		t.Run("copy", func(t *testing.T) {
			t.Parallel()
			if err := run(t.Context(), testenv.Database(t, migrate, "parallel"), "insert into made values (1)"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHelperOwner is not a test: it is the process that the next test kills.
func TestHelperOwner(t *testing.T) {
	if os.Getenv("TESTENV_OWNER") != "1" {
		return
	}
	config, err := pgx.ParseConfig(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nsocket %s\n", config.Host)
	select {}
}

func TestAKilledTestProcessLeavesNothingBehind(t *testing.T) {
	testenv.Postgres(t) // skips where there is no server
	owner := exec.Command(os.Args[0], "-test.run=^TestHelperOwner$", "-test.v")
	owner.Env = append(os.Environ(), "TESTENV_OWNER=1")
	out, err := owner.StdoutPipe()
	if err == nil {
		err = owner.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		if socket, ok := strings.CutPrefix(lines.Text(), "socket "); ok {
			dir = filepath.Dir(socket)
		}
	}
	err = owner.Process.Kill()
	_ = owner.Wait() // killed, which is not news
	if dir == "" || err != nil {
		t.Fatalf("the owner said no socket (%v)", err)
	}
	wait.Until(t, dir+" is removed", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}
