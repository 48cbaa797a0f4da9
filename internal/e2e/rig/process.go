package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/testenv"
)

// Settings are the configuration of a process by the names of the reference, such
// as "gateway.listen". They are passed in the environment. A name in capitals is
// an environment variable.
type Settings map[string]string

// A Process is one program with all its runs.
type Process struct {
	T        testing.TB
	args     []string
	Settings Settings
	Run      *run
	runs     []*run
}

// A run is a program from its start to its end.
type run struct {
	cmd            *exec.Cmd
	Stdout, Stderr capture
	Ended          chan struct{} // closed once err is set
	Err            error
}

// A capture holds the output of a process.
type capture struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

// String returns what was written so far.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// NewProcess describes a program that Start runs. When t ends, the program is
// killed and its output is searched for secrets and panics.
func NewProcess(t testing.TB, with Settings, args ...string) *Process {
	t.Helper()
	p := &Process{T: t, args: args, Settings: with}
	for key, value := range with {
		if isSecret(key) {
			Plant(value)
		}
	}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		p.checkOutput()
		if t.Failed() {
			p.explain()
		}
	})
	return p
}

// Start runs the program. It ends with the test process at the latest.
func (p *Process) Start() {
	p.T.Helper()
	r := &run{cmd: exec.Command(Binary(p.T), p.args...), Ended: make(chan struct{})}
	r.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"}
	for key, value := range p.Settings {
		if name := strings.ToUpper(key); name != key {
			key = "SLUICE_" + strings.ReplaceAll(name, ".", "_")
		}
		r.cmd.Env = append(r.cmd.Env, key+"="+value)
	}
	r.cmd.Dir = "/"
	r.cmd.Stdout, r.cmd.Stderr = &r.Stdout, &r.Stderr
	r.cmd.WaitDelay = 5 * time.Second // a child of it may hold the output open
	r.cmd.SysProcAttr = testenv.ChildAttr(syscall.SIGKILL)
	if err := r.cmd.Start(); err != nil {
		p.T.Fatalf("starting %s: %v", p, err)
	}
	go func() {
		r.Err = r.cmd.Wait()
		close(r.Ended)
	}()
	p.Run, p.runs = r, append(p.runs, r)
}

// String returns the command line.
func (p *Process) String() string { return "sluice " + strings.Join(p.args, " ") }

// PID returns the process ID of the current run.
func (p *Process) PID() int { return p.Run.cmd.Process.Pid }

// Kill ends the program with SIGKILL, as a crash does.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the program with SIGINT, as Ctrl-C does, and returns its exit code.
func (p *Process) Stop() int {
	p.T.Helper()
	if err := p.end(syscall.SIGINT); err != nil {
		p.T.Fatal(err)
	}
	return p.exitCode()
}

// Signal sends a signal to the program.
func (p *Process) Signal(s syscall.Signal) {
	p.T.Helper()
	if err := p.Run.cmd.Process.Signal(s); err != nil {
		p.T.Fatalf("%s to %s: %v", s, p, err)
	}
}

// end sends a signal and waits until the program has ended.
func (p *Process) end(s syscall.Signal) error {
	if p.Run == nil || p.HasEnded() {
		return nil
	}
	_ = p.Run.cmd.Process.Signal(s) // it may end by itself meanwhile
	select {
	case <-p.Run.Ended:
		return nil
	case <-time.After(Patience):
		_ = p.Run.cmd.Process.Signal(syscall.SIGQUIT) // prints where every goroutine is
		select {
		case <-p.Run.Ended:
		case <-time.After(5 * time.Second):
			_ = p.Run.cmd.Process.Kill()
			<-p.Run.Ended
		}
		return fmt.Errorf("%s did not end within %s of %s", p, Patience, s)
	}
}

// HasEnded reports whether the current run has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Run.Ended:
		return true
	default:
		return false
	}
}

// Wait waits until the program ends by itself and returns its exit code.
func (p *Process) Wait() int {
	p.T.Helper()
	select {
	case <-p.Run.Ended:
	case <-time.After(Patience):
		p.T.Fatalf("%s has not ended within %s", p, Patience)
	}
	return p.exitCode()
}

// exitCode returns -1 after a signal.
func (p *Process) exitCode() int { return p.Run.cmd.ProcessState.ExitCode() }

// Await repeats try until it returns nil and returns how long that took. It fails
// the test if the program ends first.
func (p *Process) Await(what string, try func() error) time.Duration {
	p.T.Helper()
	return Eventually(p.T, what, func() error {
		p.T.Helper()
		if p.HasEnded() {
			p.T.Fatalf("%s ended with %v before %s; it says:\n%s", p, p.Run.Err, what, Tail(p.Run.Stderr.String()))
		}
		return try()
	})
}

// awaitStdout waits for a text on the standard output of the current run.
func (p *Process) awaitStdout(text string) time.Duration {
	p.T.Helper()
	return p.Await(fmt.Sprintf("%q on its standard output", text), func() error { return Lacks(p.Run.Stdout.String(), text) })
}

// AwaitLog waits for a text on the standard error of the current run.
func (p *Process) AwaitLog(text string) time.Duration {
	p.T.Helper()
	return p.Await(fmt.Sprintf("%q in its log", text), func() error { return Lacks(p.Run.Stderr.String(), text) })
}

// Lacks returns an error unless text is part of have.
func Lacks(have, text string) error {
	if strings.Contains(have, text) {
		return nil
	}
	return errors.New("it is not there")
}

// explain logs the end of every run's standard error.
func (p *Process) explain() {
	for i, r := range p.runs {
		p.T.Logf("%s, run %d of %d, ended with %v:\n%s", p, i+1, len(p.runs), r.Err, Tail(r.Stderr.String()))
	}
}

// Tail returns the last 30 lines of a text.
func Tail(text string) string {
	const most = 30
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// secrets are values that no process may write.
type secrets struct {
	mu     sync.Mutex
	values []string
}

func (s *secrets) add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) >= 8 && !slices.Contains(s.values, value) {
		s.values = append(s.values, value)
	}
}

func (s *secrets) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.values)
}

// planted is every secret that a test knows.
var planted secrets

// Plant fails the tests of processes that write a secret from now on. It returns
// the secret.
func Plant(value string) string {
	planted.add(value)
	return value
}

// isSecret reports whether the whole value of a setting is a secret.
func isSecret(key string) bool {
	return key == "secret" || strings.HasSuffix(key, "token") || strings.HasSuffix(key, "password")
}

// checkOutput fails the test for a secret in what the program wrote, the banner's
// keys excepted, and for a panic.
func (p *Process) checkOutput() {
	secrets := planted.all()
	for _, r := range p.runs {
		written := r.Stderr.String() + withoutBanner(r.Stdout.String())
		for _, value := range secrets {
			if i := strings.Index(written, value); i >= 0 {
				p.T.Errorf("%s writes a secret: %s", p, written[max(0, i-200):i+len(value)])
			}
		}
		if i := strings.Index(r.Stderr.String(), "panic"); i >= 0 {
			p.T.Errorf("%s panics: %s", p, r.Stderr.String()[i:min(i+2000, r.Stderr.text.Len())])
		}
	}
}

// withoutBanner removes the lines that show a key once.
func withoutBanner(stdout string) string {
	var b strings.Builder
	for line := range strings.Lines(stdout) {
		if !strings.HasPrefix(line, "admin key ") && !strings.HasPrefix(line, "  curl -i ") && !strings.HasPrefix(line, "  for i in ") && !strings.HasPrefix(line, "  sluice explain ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
