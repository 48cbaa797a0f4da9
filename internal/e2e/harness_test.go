package e2e

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

	// The program, so that a change of it makes an earlier result of these tests
	// stale.
	_ "github.com/sluicegate/sluice/internal/cli"
)

// patience bounds whatever a test waits for: a start, a recovery, an end.
const patience = 60 * time.Second

// root is a directory of this test process below /tmp: sockets need short paths,
// and the database's user has to pass through. Its lock tells later runs that
// it is in use.
var root struct {
	dir  string
	lock *os.File
}

func TestMain(m *testing.M) {
	if err := errors.Join(makeRoot(), takePorts()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := os.RemoveAll(root.dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const rootPrefix = "/tmp/sluice-e2e-"

func makeRoot() (err error) {
	sweepRoots()
	if root.dir, err = os.MkdirTemp("/tmp", filepath.Base(rootPrefix)); err != nil {
		return err
	}
	if err := os.Chmod(root.dir, 0o711); err != nil {
		return err
	}
	if root.lock, err = os.Create(filepath.Join(root.dir, "lock")); err != nil {
		return err
	}
	return syscall.Flock(int(root.lock.Fd()), syscall.LOCK_EX)
}

// sweepRoots removes what killed test processes left: nobody holds their lock.
func sweepRoots() {
	dirs, _ := filepath.Glob(rootPrefix + "*") // fails on a malformed pattern only
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, "lock"))
		if err == nil && syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // another user's: theirs to remove
		}
		if err == nil {
			_ = lock.Close()
		}
	}
}

// dataDir returns the path of a directory of t's own, not made yet, that goes
// when t ends, once no server of a database lives in it.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(root.dir, "d")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually(t, "the database's server to end", func() error { return noServer(filepath.Join(dir, "state", "pg")) })
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "state")
}

// noServer returns an error while a PostgreSQL serves a cluster. A file that says
// so may be left over from a crash.
func noServer(cluster string) error {
	pid := firstLine(filepath.Join(cluster, "postmaster.pid"))
	if at, err := os.Readlink(filepath.Join("/proc", pid, "cwd")); pid != "" && err == nil && at == cluster {
		return fmt.Errorf("process %s serves it", pid)
	}
	return nil
}

// binary is the program, built once for the test process.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(root.dir, "sluice")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return path, nil
})

// ports is a range that this process has for itself: a program that is started
// again must find its port free. It lies between the ports that other tests take
// by chance and those that the kernel gives to clients.
var ports struct {
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

// takePorts finds a range that no other process of these tests has.
func takePorts() error {
	for first := firstPort; first+portsEach-1 <= lastPort; first += portsEach {
		lock, err := os.OpenFile(fmt.Sprintf("/tmp/sluice-e2e-ports-%d.lock", first), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			continue // another user's
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			ports.first, ports.lock = first, lock
			return nil
		}
		_ = lock.Close()
	}
	return fmt.Errorf("all ports from %d to %d are taken by other runs of these tests", firstPort, lastPort)
}

// freeAddress returns an address on the loopback interface that nobody listens
// on, and that nobody else gets before t ends.
func freeAddress(t testing.TB) string {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for range portsEach {
		i := ports.next
		ports.next = (ports.next + 1) % portsEach
		if ports.given[i] {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.first+i))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		_ = l.Close()
		ports.given[i] = true
		t.Cleanup(func() {
			ports.mu.Lock()
			defer ports.mu.Unlock()
			ports.given[i] = false
		})
		return address
	}
	t.Fatalf("no free port from %d on", ports.first)
	return ""
}

// eventually repeats try until it returns nil, and fails t with the last error
// when that takes longer than patience. It returns how long it took.
func eventually(t testing.TB, what string, try func() error) time.Duration {
	t.Helper()
	return within(t, patience, what, try)
}

// within is eventually with another bound.
func within(t testing.TB, bound time.Duration, what string, try func() error) time.Duration {
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
