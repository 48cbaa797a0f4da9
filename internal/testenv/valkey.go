package testenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"
)

// storeWithin bounds a start, an answer and the formation of a cluster.
const storeWithin = 60 * time.Second

// A Store is a private Valkey or Redis server. Restart keeps its address, and its data
// if it is persistent.
type Store struct {
	Addr string // host:port on the loopback interface

	t      testing.TB
	binary string
	args   []string
	run    *exec.Cmd
	log    string
}

// Valkey starts a server for t, which is killed when t or its process ends.
// settings are directives as on the server's command line, such as
// "--appendonly", "yes": without persistence it loses its data
// when it ends. Without a server on the machine t is skipped, or fails under
// SLUICE_TEST_REQUIRE_SERVERS=1.
func Valkey(t testing.TB, settings ...string) *Store {
	t.Helper()
	port := freePort(t)
	s := newStore(t, port)
	if slices.Contains(settings, "--cluster-enabled") && !slices.Contains(settings, "--cluster-port") {
		// By itself a node takes the port 10000 above its own, free or not.
		settings = append([]string{"--cluster-port", strconv.Itoa(freePort(t))}, settings...)
	}
	s.args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no", "--loglevel", "notice",
	}, settings...)
	s.Restart()
	return s
}

func newStore(t testing.TB, port int) *Store {
	t.Helper()
	return &Store{t: t, binary: storeBinary(t), Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
}

func storeBinary(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	unavailable(t, fmt.Errorf("neither valkey-server nor redis-server is installed: try apt-get install redis-server"))
	return ""
}

// Restart starts the server again, after Kill, and waits until it answers.
func (s *Store) Restart() {
	s.t.Helper()
	s.start()
	s.t.Cleanup(func() { s.end() })
	s.await("an answer to PING", func() (bool, string, error) {
		answer, err := s.Try("PING")
		return err == nil || strings.Contains(err.Error(), "NOAUTH"), answer, err
	})
}

// start runs the server, which ends with this process at the latest.
func (s *Store) start() {
	s.t.Helper()
	s.run = exec.Command(s.binary, s.args...)
	s.run.SysProcAttr = ChildAttr(syscall.SIGKILL)
	s.log = filepath.Join(s.t.TempDir(), "log")
	out, err := os.Create(s.log)
	if err != nil {
		s.t.Fatalf("log of %s: %v", s.binary, err)
	}
	defer out.Close()
	s.run.Stdout, s.run.Stderr = out, out
	if err := s.run.Start(); err != nil {
		s.t.Fatalf("starting %s: %v", s.binary, err)
	}
}

// Kill ends the server as a crash would: nothing is saved.
func (s *Store) Kill() {
	s.t.Helper()
	if s.run == nil {
		s.t.Fatal("Kill of a store that does not run")
	}
	s.end()
}

func (s *Store) end() {
	if s.run == nil {
		return
	}
	_ = s.run.Process.Kill() // it may have ended by itself
	_ = s.run.Wait()
	s.run = nil
}

// Stop suspends the server: it accepts connections and does not answer.
func (s *Store) Stop() { s.signal(syscall.SIGSTOP) }

// Cont resumes a suspended server.
func (s *Store) Cont() { s.signal(syscall.SIGCONT) }

func (s *Store) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.run.Process.Signal(sig); err != nil {
		s.t.Fatalf("%s to store: %v", sig, err)
	}
}

// Do runs one command on a new connection and returns the answer, the elements of an
// array on a line each. An error fails t.
func (s *Store) Do(command ...string) string {
	s.t.Helper()
	answer, err := s.Try(command...)
	if err != nil {
		s.t.Fatalf("store %s: %q: %v", s.Addr, command, err)
	}
	return answer
}

// Try is Do with the error returned.
func (s *Store) Try(command ...string) (string, error) {
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{s.Addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
		AlwaysRESP2: true, ClientSetInfo: valkey.DisableClientSetInfo, Dialer: net.Dialer{Timeout: storeWithin}, ConnWriteTimeout: storeWithin,
	})
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), storeWithin)
	defer cancel()
	answer, err := client.Do(ctx, client.B().Arbitrary(command...).Build()).ToMessage()
	if err != nil && !valkey.IsValkeyNil(err) {
		return "", err
	}
	return text(answer), nil
}

// text returns an answer as text: nothing for a null, and the elements of an array on
// a line each.
func text(answer valkey.ValkeyMessage) string {
	if elements, err := answer.ToArray(); err == nil {
		lines := make([]string, len(elements))
		for i, element := range elements {
			lines[i] = text(element)
		}
		return strings.Join(lines, "\n")
	}
	if n, err := answer.ToInt64(); err == nil {
		return strconv.FormatInt(n, 10)
	}
	s, _ := answer.ToString() // a null is empty
	return s
}

// Await repeats a command until its answer contains want.
func (s *Store) Await(want string, command ...string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%q of %q", want, command), func() (bool, string, error) {
		answer, err := s.Try(command...)
		return err == nil && strings.Contains(answer, want), answer, err
	})
}

func (s *Store) await(what string, try func() (bool, string, error)) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var answer string
	var err error
	for end := time.Now().Add(storeWithin); time.Now().Before(end); <-tick.C {
		var ok bool
		if ok, answer, err = try(); ok {
			return
		}
	}
	said, _ := os.ReadFile(s.log) // only to explain
	s.t.Fatalf("store %s: waited for %s for %s; last answer %q, %v; its log:\n%s", s.Addr, what, storeWithin, answer, err, said)
}

// freePort returns a port below those that the kernel assigns to clients, so that
// none of them takes it while a server restarts.
func freePort(t testing.TB) int {
	t.Helper()
	port, err := anyFreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func anyFreePort() (int, error) {
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = l.Close()
			return port, nil
		}
	}
	return 0, errors.New("no free port in 10000..29999")
}
