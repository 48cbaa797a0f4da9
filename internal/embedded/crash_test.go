package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicegate/sluice/internal/embedded"
	"github.com/sluicegate/sluice/internal/testenv/wait"
)

// TestMain lets the test binary act as the supervising process, so that tests can kill it
// or run it as another user.
func TestMain(m *testing.M) {
	if dir := os.Getenv("EMBEDDED_SUPERVISE"); dir != "" {
		superviseUntilInputEnds(dir)
		return
	}
	os.Exit(m.Run())
}

func superviseUntilInputEnds(dir string) {
	s, err := embedded.Start(context.Background(), embedded.Options{
		BaseDir: dir, SharedBuffers: "16MB", MaxConnections: 20, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Printf("error %T %q\n", err, err.Error())
		return
	}
	fmt.Println("ready " + s.DSN())
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Println("stopped", s.Stop(context.Background()))
}

// supervisor is such a process.
type supervisor struct {
	cmd   *osexec.Cmd
	input io.Closer
	lines *bufio.Scanner
	first string // its output after the start
}

func startSupervisor(t *testing.T, cmd *osexec.Cmd, dir string) *supervisor {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "EMBEDDED_SUPERVISE="+dir)
	cmd.Stderr = t.Output()
	input, errIn := cmd.StdinPipe()
	output, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s := &supervisor{cmd: cmd, input: input, lines: bufio.NewScanner(output)}
	if s.lines.Scan() {
		s.first = s.lines.Text()
	}
	return s
}

// finish stops the process and returns its last output.
func (s *supervisor) finish() string {
	_ = s.input.Close()
	last := s.first
	for s.lines.Scan() {
		last = s.lines.Text()
	}
	_ = s.cmd.Wait() // what it printed tells more
	return last
}

func TestAKilledServerComesBackWithItsRows(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startWithRow(t, dir)
	for range 2 {
		pid := postmasterPID(t, dir)
		kill(t, pid)
		wait.Until(t, "the server is back", func() bool { return s.Ready() && postmasterPID(t, dir) != pid })
		wantKeptRow(t, s)
	}
}

func TestAServerWhoseEveryProcessWasKilledComesBack(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startWithRow(t, dir)
	pid := postmasterPID(t, dir)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // may have ended with the one before
		}
	}
	kill(t, pid)
	wait.Until(t, "the server is back", func() bool { return s.Ready() && postmasterPID(t, dir) != pid })
	wantKeptRow(t, s)
}

// A busy backend does not notice that its postmaster died. No new server may start
// meanwhile.
func TestNoServerStartsBesideASurvivor(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := startWithRow(t, dir)
	busy := make(chan error, 1)
	go func() {
		_, err := tryNumber(context.Background(), s.DSN(), "select count(*) from generate_series(1, 8000000) /* busy */")
		busy <- err
	}()
	const whoIsBusy = "select coalesce(max(pid), 0) from pg_stat_activity where state = 'active' and query like '%/* busy */' and pid <> pg_backend_pid()"
	survivor := 0
	wait.Until(t, "the backend is busy", func() bool {
		survivor = number(t, s.DSN(), whoIsBusy)
		return survivor != 0
	})
	pid := postmasterPID(t, dir)
	kill(t, pid)
	outlived := false
	wait.Until(t, "the server is back", func() bool {
		alive := syscall.Kill(survivor, 0) == nil && state(survivor) != "Z"
		now, err := os.ReadFile(filepath.Join(dir, "pg", "postmaster.pid"))
		fresh := err == nil && !strings.HasPrefix(string(now), strconv.Itoa(pid)+"\n")
		outlived = outlived || alive && !fresh
		if alive && fresh {
			t.Fatal("a new server runs while a backend of the old one lives")
		}
		return s.Ready() && fresh
	})
	if <-busy; !outlived {
		t.Error("the backend never outlived its postmaster, so this test showed nothing")
	}
	wantKeptRow(t, s)
}

// state is the letter in /proc/<pid>/stat, or "".
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}

func TestAStopWhileTheServerIsAwayLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	s := start(t, dir)
	kill(t, postmasterPID(t, dir))
	stop(t, s)
	stop(t, start(t, dir))
}

func TestAKilledSupervisorIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, startWithRow(t, dir))
	for range 2 {
		s := startSupervisor(t, osexec.Command(os.Args[0]), dir)
		if !strings.HasPrefix(s.first, "ready ") {
			t.Fatalf("the supervisor said %q", s.first)
		}
		if err := s.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Wait() // killed, which is not news
		next := start(t, dir)
		wantKeptRow(t, next)
		stop(t, next)
	}
}

func TestAKilledSupervisorTakesItsServerAlong(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	s := startSupervisor(t, osexec.Command(os.Args[0]), dir)
	pid := postmasterPID(t, dir)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // killed, which is not news
	wait.Until(t, "the server has gone", func() bool { st := state(pid); return st == "" || st == "Z" })
}

// asOwner makes cmd run as the user that owns the data below dir.
func asOwner(t *testing.T, dir string, cmd *osexec.Cmd) *osexec.Cmd {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "pg"))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	return cmd
}

// startOrphan runs the server as an earlier run would have left it: not a child, and
// without the parent-death signal.
func startOrphan(t *testing.T, dir, socketDir string) *osexec.Cmd {
	t.Helper()
	reap := make(chan struct{})
	close(reap)
	return startUnreaped(t, dir, socketDir, reap)
}

// startUnreaped is startOrphan for one that stays a zombie until reap is closed.
func startUnreaped(t *testing.T, dir, socketDir string, reap <-chan struct{}) *osexec.Cmd {
	t.Helper()
	binaries, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(binaries) == 0 {
		t.Fatalf("no server binary: %v", err)
	}
	cmd := asOwner(t, dir, osexec.Command(binaries[len(binaries)-1], "-D", filepath.Join(dir, "pg"), "-k", socketDir))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-reap
		_ = cmd.Wait() // how it ended is for the tests to see
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // ended already, unless the test failed
		<-ended
	})
	return cmd
}

func TestAnOrphanIsTakenOverWatchedAndStopped(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, startWithRow(t, dir))
	reap := make(chan struct{})
	orphan := startUnreaped(t, dir, filepath.Join(dir, "run"), reap) // killed, it still takes signals
	defer close(reap)
	awaitSocket(t, filepath.Join(dir, "run"))
	s := start(t, dir)
	if pid := postmasterPID(t, dir); pid != orphan.Process.Pid {
		t.Fatalf("process %d serves, want the orphan %d", pid, orphan.Process.Pid)
	}
	wantKeptRow(t, s)
	kill(t, orphan.Process.Pid)
	wait.Until(t, "a server of our own", func() bool { return s.Ready() && postmasterPID(t, dir) != orphan.Process.Pid })
	wantKeptRow(t, s)
}

// The first process of many containers reaps nobody.
func TestAKilledOrphanThatNobodyReapsIsReplaced(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, startWithRow(t, dir))
	reap := make(chan struct{})
	orphan := startUnreaped(t, dir, filepath.Join(dir, "run"), reap)
	defer close(reap)
	awaitSocket(t, filepath.Join(dir, "run"))
	kill(t, orphan.Process.Pid)
	wait.Until(t, "the orphan is a zombie", func() bool { return state(orphan.Process.Pid) == "Z" })
	wantKeptRow(t, start(t, dir))
}

func awaitSocket(t *testing.T, dir string) {
	t.Helper()
	wait.Until(t, "there is a socket in "+dir, func() bool {
		_, err := os.Stat(filepath.Join(dir, ".s.PGSQL.5432"))
		return err == nil
	})
}

func TestAnOrphanIsStoppedWithUs(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, start(t, dir))
	orphan := startOrphan(t, dir, filepath.Join(dir, "run"))
	awaitSocket(t, filepath.Join(dir, "run"))
	stop(t, start(t, dir))
	if st := state(orphan.Process.Pid); st != "" && st != "Z" {
		t.Errorf("the orphan is in state %s after Stop", st)
	}
}

func TestAnOrphanOnAnotherSocketIsReplaced(t *testing.T) {
	t.Parallel()
	dir, elsewhere := shortDir(t), shortDir(t)
	stop(t, startWithRow(t, dir))
	if err := os.Chmod(elsewhere, 0o777); err != nil {
		t.Fatal(err)
	}
	orphan := startOrphan(t, dir, elsewhere)
	awaitSocket(t, elsewhere)
	wantKeptRow(t, start(t, dir))
	if pid := postmasterPID(t, dir); pid == orphan.Process.Pid {
		t.Error("the orphan still serves")
	}
}

// PostgreSQL itself refuses to start while the process that its files name
// exists, though it be a zombie or somebody else's.
func TestStaleFilesThatNameAnotherProcessDoNotPreventAStart(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	stop(t, startWithRow(t, dir))
	// As the server's user: of other users' processes PostgreSQL knows that they are not its own.
	zombie := asOwner(t, dir, osexec.Command("/bin/true"))
	stranger := asOwner(t, dir, osexec.Command("/bin/cat"))
	input, err := stranger.StdinPipe()
	if err := errors.Join(err, zombie.Start(), stranger.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(zombie.Wait(), input.Close(), stranger.Wait()) })
	wait.Until(t, "the zombie is one", func() bool { return state(zombie.Process.Pid) == "Z" })
	for name, pid := range map[string]int{"zombie": zombie.Process.Pid, "stranger": stranger.Process.Pid, "ourselves": os.Getpid()} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("%d\n%s/pg\n1700000000\n5432\n%s/run\n\n  5432001   5\nready   \n", pid, dir, dir)
			for _, path := range []string{"pg/postmaster.pid", "run/.s.PGSQL.5432.lock"} {
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s := start(t, dir)
			wantKeptRow(t, s)
			stop(t, s)
		})
	}
}

func TestAnInterruptedStartLeavesAUsableDirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	made := make(chan error, 1)
	go func() {
		s, err := embedded.Start(ctx, options(t, dir))
		if err == nil {
			err = s.Stop(context.Background())
		}
		made <- err
	}()
	wait.Until(t, "initdb runs", func() bool {
		_, err := os.Stat(filepath.Join(dir, "pg.new", "PG_VERSION"))
		return err == nil
	})
	cancel()
	if err := <-made; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted start returned %v", err)
	}
	s := start(t, dir)
	if got := number(t, s.DSN(), "select 7"); got != 7 {
		t.Errorf("got %d", got)
	}
}

// asUser is the test binary as another user, from where that user can read it.
func asUser(t *testing.T, uid, gid uint32, env ...string) *osexec.Cmd {
	t.Helper()
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shortDir(t), "supervise")
	// A process that another test starts meanwhile would hold the file open for
	// writing until it runs its own program: what is open so cannot be run.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, binary, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(path)
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

func TestAnOrdinaryUserRunsAServerOfTheirOwn(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // every other test here shows it
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, errUID := strconv.Atoi(nobody.Uid)
	gid, errGID := strconv.Atoi(nobody.Gid)
	dir := shortDir(t)
	if err := errors.Join(errUID, errGID, os.Chown(dir, uid, gid)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a new cluster, then one that is there
		s := startSupervisor(t, asUser(t, uint32(uid), uint32(gid)), dir)
		if last := s.finish(); !strings.HasPrefix(s.first, "ready ") || last != "stopped <nil>" {
			t.Errorf("as %s: %q, then %q", nobody.Username, s.first, last)
		}
	}
	// Root carries on with the same data, as its owner.
	s := start(t, dir)
	if info, err := os.Stat(filepath.Join(dir, "pg")); err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
		t.Errorf("the data changed hands (%v)", err)
	}
	stop(t, s)
}

func TestAUserWithoutANameIsToldSo(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // only root can become such a user
	}
	const nameless = 54321
	for _, env := range [][]string{nil, {"USER=ghost", "HOME=/nonexistent"}} {
		dir := shortDir(t)
		if err := os.Chown(dir, nameless, nameless); err != nil {
			t.Fatal(err)
		}
		s := startSupervisor(t, asUser(t, nameless, nameless, env...), dir)
		s.finish()
		if !strings.Contains(s.first, "AccountError") && !strings.Contains(s.first, "user id 54321 has no entry") || !strings.Contains(s.first, "database.url") {
			t.Errorf("with %v: %q", env, s.first)
		}
	}
}
