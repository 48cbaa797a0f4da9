package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/embedded"
)

// shortDir returns a base directory whose path is short enough for a socket, and which
// the server's user can reach, unlike t.TempDir.
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
	return startWith(t, options(t, dir))
}

func startWith(t *testing.T, o embedded.Options) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(t.Context(), o)
	if err != nil {
		skipIfMissing(t, err)
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func startDurable(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	o := options(t, dir)
	o.Disposable = false
	return startWith(t, o)
}

// startWithRow is startDurable and a row to be found again by wantKeptRow.
func startWithRow(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s := startDurable(t, dir)
	exec(t, s.DSN(), "create table kept (n int)")
	exec(t, s.DSN(), "insert into kept values (7)")
	return s
}

func wantKeptRow(t *testing.T, s *embedded.Server) {
	t.Helper()
	if got := number(t, s.DSN(), "select n from kept"); got != 7 {
		t.Errorf("the row holds %d, want 7", got)
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
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

// postmasterPID reads the server's process number.
func postmasterPID(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pg", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestRowsOutliveAStopAndAStart(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	first := startWithRow(t, dir)
	stop(t, first)
	if first.Ready() {
		t.Error("a stopped server says that it is ready")
	}
	second := start(t, dir)
	wantKeptRow(t, second)
	if second.DSN() != first.DSN() || second.Version() == "" {
		t.Errorf("DSN %q then %q, version %q", first.DSN(), second.DSN(), second.Version())
	}
}

func TestTheServerIsDurableAndPrivate(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startDurable(t, dir)
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for setting, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "data_checksums": "on",
		"listen_addresses": "", "unix_socket_permissions": "0700", "shared_buffers": "16MB",
		"max_connections": "20", "TimeZone": "UTC", "cluster_name": "sluice", "server_encoding": "UTF8",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "select current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", setting, got, want, err)
		}
	}
	hba, err := os.ReadFile(filepath.Join(dir, "pg", "pg_hba.conf"))
	if err != nil || string(hba) != "local all sluice peer map=sluice\n" {
		t.Errorf("pg_hba.conf: %q, %v", hba, err)
	}
	pid := postmasterPID(t, dir)
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the server is in process group %d (%v): Ctrl-C would reach it", group, err)
	}
	for path, want := range map[string]os.FileMode{"pg": 0o700, "run": 0o700, "postgres.log": 0o600, "sluice.lock": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

func TestABaseDirectoryCanBeMoved(t *testing.T) {
	t.Parallel()
	parent := shortDir(t)
	stop(t, startWithRow(t, filepath.Join(parent, "old")))
	if err := os.Rename(filepath.Join(parent, "old"), filepath.Join(parent, "new")); err != nil {
		t.Fatal(err)
	}
	wantKeptRow(t, start(t, filepath.Join(parent, "new")))
}

func TestALongBaseDirectoryGetsAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), strings.Repeat("long/", 30))
	s := startWithRow(t, dir)
	wantKeptRow(t, s)
	socketDir, _, _ := strings.Cut(strings.TrimPrefix(s.DSN(), "host='"), "'")
	if strings.HasPrefix(socketDir, dir) || len(socketDir) > 93 {
		t.Errorf("socket directory %s", socketDir)
	}
	stop(t, s)
	again := start(t, dir)
	wantKeptRow(t, again)
	if again.DSN() != s.DSN() {
		t.Errorf("DSN %q, then %q", s.DSN(), again.DSN())
	}
}

func TestAnAwkwardBaseDirectoryWorks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), `it's a "base", really`)
	s := start(t, dir)
	if got := number(t, s.DSN(), "select 7"); got != 7 {
		t.Errorf("got %d", got)
	}
	stop(t, s)
	socketDir, _, _ := strings.Cut(strings.TrimPrefix(s.DSN(), "host='"), "'")
	if _, err := os.Stat(socketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the short socket directory %s was left behind: %v", socketDir, err)
	}
}

func TestASecondStartNamesTheProcessThatRuns(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	start(t, dir)
	_, err := embedded.Start(t.Context(), options(t, dir))
	running, ok := errors.AsType[*embedded.RunningError](err)
	if !ok || running.PID != os.Getpid() || running.Dir != dir {
		t.Errorf("got %v, want a RunningError with process %d", err, os.Getpid())
	}
}

func TestAParentThatBlocksTheServerIsNamed(t *testing.T) {
	t.Parallel()
	parent := shortDir(t)
	blocked := filepath.Join(parent, "closed")
	if err := os.Mkdir(blocked, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), options(t, filepath.Join(blocked, "base")))
	skipIfMissing(t, err)
	if block, ok := errors.AsType[*embedded.BlockedError](err); !ok || block.Parent != blocked {
		t.Errorf("got %v, want a BlockedError for %s", err, blocked)
	}
}

func TestAHalfMadeClusterIsSetAsideAndAWholeOneMade(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	half := filepath.Join(dir, "pg.new")
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir)
	if got := number(t, s.DSN(), "select 7"); got != 7 {
		t.Errorf("got %d", got)
	}
	failed, err := filepath.Glob(filepath.Join(dir, "pg.failed-*", "PG_VERSION"))
	if err != nil || len(failed) != 1 {
		t.Errorf("set aside: %v, %v", failed, err)
	}
}

func TestDamagedDataIsNeverReplacedByAnEmptyCluster(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	control := filepath.Join(dir, "pg", "global", "pg_control")
	if err := os.Rename(control, control+".lost"); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), options(t, dir))
	if err == nil || !strings.Contains(err.Error(), "not a whole PostgreSQL cluster") {
		t.Errorf("got %v", err)
	}
}

func TestDataOfAnotherMajorIsRefused(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	if err := os.WriteFile(filepath.Join(dir, "pg", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), options(t, dir))
	if version, ok := errors.AsType[*embedded.VersionError](err); !ok || version.Major != 9 || len(version.Found) == 0 {
		t.Errorf("got %v, want a VersionError about 9", err)
	}
}

func TestWithoutPostgreSQLTheErrorNamesThreeWaysOut(t *testing.T) {
	t.Parallel()
	old := shortDir(t)
	for name, script := range map[string]string{"initdb": "#!/bin/sh\n", "postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 12.22'\n"} {
		if err := os.WriteFile(filepath.Join(old, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, binDir := range []string{shortDir(t), old} {
		o := options(t, shortDir(t))
		o.BinDir = binDir
		_, err := embedded.Start(t.Context(), o)
		if _, ok := errors.AsType[*embedded.MissingError](err); !ok {
			t.Errorf("%s: got %v, want a MissingError", binDir, err)
			continue
		}
		for _, way := range []string{"apt-get install -y postgresql", "database.url", "postgres.bin_dir"} {
			if !strings.Contains(err.Error(), way) {
				t.Errorf("%q does not name %s", err, way)
			}
		}
	}
}

func TestOptionsThatPostgreSQLWouldRefuseAreRefusedByName(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*embedded.Options){
		"postgres.shared_buffers":  func(o *embedded.Options) { o.SharedBuffers = "lots'" },
		"postgres.max_connections": func(o *embedded.Options) { o.MaxConnections = 2 },
	} {
		o := options(t, shortDir(t))
		change(&o)
		if _, err := embedded.Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}

func TestAServerThatCannotStartSaysWhatItLogged(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	auto := filepath.Join(dir, "pg", "postgresql.auto.conf")
	if err := os.WriteFile(auto, []byte("work_mem = 'nonsense'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := embedded.Start(t.Context(), options(t, dir))
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "work_mem"`) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(auto, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir) // neither the lock nor a process was left
}

func TestALinkInTheDataDirectoryLeadsNobodyOut(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	outside := filepath.Join(dir, "outside")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "pg", "pg_ident.conf")
	if err := errors.Join(os.Remove(link), os.Symlink(outside, link)); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("outside holds %q, %v", text, err)
	}
}

func TestALogThatHasGrownLargeIsPutAside(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	log := filepath.Join(dir, "postgres.log")
	if err := errors.Join(os.WriteFile(log, nil, 0o600), os.Truncate(log, 11<<20)); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	old, errOld := os.Stat(log + ".1")
	now, errNow := os.Stat(log)
	if err := errors.Join(errOld, errNow); err != nil || old.Size() != 11<<20 || now.Size() > 1<<20 {
		t.Errorf("old %v, new %v (%v)", old, now, err)
	}
}

func TestAStopThatMayNotWaitSaysSoAndGoesOn(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := start(t, dir)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	stop(t, s)
	stop(t, start(t, dir))
}
