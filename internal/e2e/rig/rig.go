// Package rig runs whole processes for end-to-end tests: the program as it is
// built, with real databases and stores. Package traffic tests a gateway on files
// with it, package system the whole product.
package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	// The program, so that a change of it makes earlier results of these tests stale.
	_ "github.com/sluicegate/sluice/internal/cli"
)

// Patience bounds every wait of a test: for a start, a recovery, an end.
const Patience = 60 * time.Second

// Main runs the tests of a package and returns the exit code for its TestMain.
func Main(m *testing.M) int {
	_, err := root()
	if _, noPorts := ports(); err != nil || noPorts != nil {
		fmt.Fprintln(os.Stderr, "e2e:", errors.Join(err, noPorts))
		return 1
	}
	code := m.Run()
	if dir, err := root(); err == nil {
		if err := os.RemoveAll(dir.path); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = max(code, 1)
		}
	}
	return code
}

// A directory belongs to this test process. It is below /tmp, because sockets need
// short paths and the database's user needs access. Its lock shows later runs that
// it is in use.
type directory struct {
	path string
	lock *os.File
}

const rootPrefix = "/tmp/sluice-e2e-"

// root is the directory of this test process.
var root = sync.OnceValues(func() (*directory, error) {
	sweepRoots()
	path, err := os.MkdirTemp("/tmp", filepath.Base(rootPrefix))
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join(path, "lock"))
	if err != nil {
		return nil, err
	}
	return &directory{path, lock}, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
})

// sweepRoots removes the directories of killed test processes, whose locks are free.
func sweepRoots() {
	dirs, _ := filepath.Glob(rootPrefix + "*") // fails on a malformed pattern only
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, "lock"))
		if err == nil && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // fails on another user's
		}
		if err == nil {
			_ = lock.Close()
		}
	}
}

// DataDir returns the path of a data directory that does not exist yet. It is
// removed when t ends, once no database server runs in it.
func DataDir(t testing.TB) string {
	t.Helper()
	top, err := root()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(top.path, "d")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Eventually(t, "the database's server to end", func() error { return noServer(filepath.Join(dir, "state", "pg")) })
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "state")
}

// noServer returns an error while a PostgreSQL server runs in a cluster. The pid
// file alone may be left over from a crash.
func noServer(cluster string) error {
	pid := FirstLine(filepath.Join(cluster, "postmaster.pid"))
	if at, err := os.Readlink(filepath.Join("/proc", pid, "cwd")); pid != "" && err == nil && at == cluster {
		return fmt.Errorf("process %s serves it", pid)
	}
	return nil
}

// Binary returns the path of the program.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ModuleRoot returns the directory of go.mod. Tests run in the directory of their package.
func ModuleRoot() string {
	dir := "."
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || len(dir) > 100 {
			return dir
		}
		dir = filepath.Join(dir, "..")
	}
}

// binary is the program, built once for each test process.
var binary = sync.OnceValues(func() (string, error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(top.path, "sluice")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = ModuleRoot()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

// A portRange belongs to this process: a program that is started again must find
// its port free. It lies between the ports that other tests take at random and
// those that the kernel assigns to clients.
type portRange struct {
	mu    sync.Mutex
	first int
	lock  *os.File
	given [portsEach]bool
	next  int
}

const (
	firstPort = 30_000
	lastPort  = 32_699
	portsEach = 300
)

// ports is a range that no other process of these tests has.
var ports = sync.OnceValues(func() (*portRange, error) {
	for first := firstPort; first+portsEach-1 <= lastPort; first += portsEach {
		lock, err := os.OpenFile(fmt.Sprintf("/tmp/sluice-e2e-ports-%d.lock", first), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			continue // another user's
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return &portRange{first: first, lock: lock}, nil
		}
		_ = lock.Close()
	}
	return nil, fmt.Errorf("all ports from %d to %d are taken by other runs of these tests", firstPort, lastPort)
})

// FreeAddress returns an address on the loopback interface on which no process
// listens. No other test gets it before t ends.
func FreeAddress(t testing.TB) string {
	t.Helper()
	p, err := ports()
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for range portsEach {
		i := p.next
		p.next = (p.next + 1) % portsEach
		if p.given[i] {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.first+i))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		p.given[i] = true
		t.Cleanup(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.given[i] = false
		})
		return address
	}
	t.Fatalf("no free port from %d on", p.first)
	return ""
}

// Eventually repeats try until it returns nil, and fails t with the last error
// after Patience. It returns how long it took.
func Eventually(t testing.TB, what string, try func() error) time.Duration {
	t.Helper()
	return Within(t, Patience, what, try)
}

// Within is Eventually with another bound.
func Within(t testing.TB, bound time.Duration, what string, try func() error) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		took := time.Since(began)
		if err == nil {
			return took
		}
		if took > bound {
			t.Fatalf("waited %s for %s: %v", took.Round(time.Millisecond), what, err)
		}
		<-tick.C
	}
}
