package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicegate/sluice/internal/embedded"
)

// answerWithin bounds every statement and start here: a test should fail with a
// reason before go test gives up on all of them.
const answerWithin = 2 * time.Minute

// Postgres returns how to connect to a database of t's own, empty, which is
// dropped when t ends. The server is private to the test process, starts with
// the first call (about 0.7 s) and ends with the process. Without PostgreSQL on
// the machine t is skipped, or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func Postgres(t testing.TB) string {
	t.Helper()
	return running(t).create(t, "template1")
}

// Database is Postgres with tables in it: a copy of a database on which migrate
// has run. It runs once in the process for each templateKey, and must have closed
// its connections when it returns.
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
	remover io.Closer // its end, or the process's, makes the directory go
	names   atomic.Uint64

	mu        sync.Mutex
	templates map[string]*template
}

// shared is the one cluster of the process; nothing ends it but the process's end.
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

// startCluster uses a directory right below /tmp, because a socket's path must
// be short and the server's user must reach it.
func startCluster() (*cluster, error) {
	sweep("/tmp/" + prefix + "*")
	dir, err := os.MkdirTemp("/tmp", prefix)
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

const prefix = "sluice-test-"

// removeAtExit leaves the directory to a shell that waits for the end of its
// input. That comes when this process ends, even when it is killed; the kernel
// stops the server at the same moment, and its pid file going away says when.
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

// sweep removes directories of test processes that died together with their
// remover: nobody holds the lock. Younger than a minute, one may not have been
// locked yet.
func sweep(pattern string) {
	dirs, _ := filepath.Glob(pattern) // fails on a malformed pattern only
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err == nil && time.Since(info.ModTime()) > time.Minute && !locked(filepath.Join(dir, "sluice.lock")) {
			_ = os.RemoveAll(dir) // another user's: theirs to remove
		}
	}
}

func locked(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// create makes a database for t from a template and returns how to connect to it.
func (c *cluster) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", c.names.Add(1))
	if err := c.exec("create database " + name + " template " + template); err != nil {
		t.Fatalf("making a database for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := c.exec("drop database " + name + " with (force)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return c.dsn(name)
}

// dsn names another database than the server's own; the last word counts.
func (c *cluster) dsn(name string) string { return c.server.DSN() + " dbname=" + name }

// exec runs one statement outside of any test's database.
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

// make runs migrate with the first call. It has a context of its own: that of
// the first test would end with this test, not with the template.
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
