package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/embedded"
)

// answerWithin bounds every statement and start, so that a test fails with a reason
// before the timeout of go test.
const answerWithin = 2 * time.Minute

// Postgres returns the connection string of a new empty database, which is dropped
// when t ends. The server is private to the test process, starts with
// the first call (about 0.7 s) and ends with the process. Without PostgreSQL on
// the machine t is skipped, or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func Postgres(t testing.TB) string {
	t.Helper()
	return running(t).create(t, "template1")
}

// Database is Postgres with tables: a copy of a database on which migrate has run.
// migrate runs once in a process for each templateKey and must close its
// connections.
func Database(t testing.TB, migrate func(ctx context.Context, dsn string) error, templateKey string) string {
	t.Helper()
	c := running(t)
	name, err := c.template(templateKey).make(c, migrate)
	if err != nil {
		t.Fatalf("making template database %q: %v", templateKey, err)
	}
	return c.create(t, name)
}

// cluster is the test process's PostgreSQL.
type cluster struct {
	server  *embedded.Server
	remover io.Closer // closing it, or the end of the process, removes the directory
	names   atomic.Uint64

	mu        sync.Mutex
	templates map[string]*template
}

// shared is the cluster of the process and ends with it.
var shared = sync.OnceValues(startCluster)

func running(t testing.TB) *cluster {
	t.Helper()
	c, err := shared()
	if missing, ok := errors.AsType[*embedded.MissingError](err); ok {
		unavailable(t, missing)
	}
	if err != nil {
		t.Fatalf("starting PostgreSQL for tests: %v", err)
	}
	return c
}

func startCluster() (*cluster, error) {
	dir, err := makeDir("sluice-test-")
	if err != nil {
		return nil, err
	}
	remover, err := removeAtExit(dir)
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	server, err := embedded.Start(ctx, embedded.Options{BaseDir: dir, MaxConnections: 200, Disposable: true})
	if err != nil {
		return nil, errors.Join(err, remover.Close())
	}
	return &cluster{server: server, remover: remover, templates: make(map[string]*template)}, nil
}

// removeAtExit starts a shell that waits for the end of its input, which comes when
// this process ends, even if it is killed. The kernel stops the server at the same
// moment; the shell waits until its pid file is gone and removes the directory.
func removeAtExit(dir string) (io.Closer, error) {
	const script = `cat
i=0; while [ -e "$1/pg/postmaster.pid" ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done
rm -rf "$1"`
	cmd := exec.Command("/bin/sh", "-c", script, "sh", dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return input, cmd.Start()
}

func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// create creates a database for t from a template and returns its connection string.
func (c *cluster) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", c.names.Add(1))
	// Without the copy in the write-ahead log, which is twice as fast.
	if err := c.exec("create database " + name + " template " + template + " strategy file_copy"); err != nil {
		t.Fatalf("making a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := c.exec("drop database " + name + " with (force)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return c.dsn(name)
}

// dsn returns the connection string of a database; the last dbname applies.
func (c *cluster) dsn(name string) string { return c.server.DSN() + " dbname=" + name }

// exec runs one statement in the server's own database.
func (c *cluster) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.server.DSN())
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// template is a database to copy.
type template struct {
	once sync.Once
	name string
	err  error
}

func (c *cluster) template(key string) *template {
	c.mu.Lock()
	defer c.mu.Unlock()
	tpl := c.templates[key]
	if tpl == nil {
		tpl = new(template)
		c.templates[key] = tpl
	}
	return tpl
}

// make runs migrate on the first call. It does not use the context of the test,
// which ends before the template.
func (tpl *template) make(c *cluster, migrate func(context.Context, string) error) (string, error) {
	tpl.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
		defer cancel()
		tpl.name = fmt.Sprintf("template_%d", c.names.Add(1))
		if tpl.err = c.exec("create database " + tpl.name); tpl.err != nil {
			return
		}
		if tpl.err = migrate(ctx, c.dsn(tpl.name)); tpl.err != nil {
			return
		}
		// A connection to it would make every copy fail.
		tpl.err = c.exec("alter database " + tpl.name + " allow_connections false")
	})
	return tpl.name, tpl.err
}
