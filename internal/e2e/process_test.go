package e2e

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
)

// settings are the configuration of a process by the names that the reference
// has, such as "gateway.listen". They are given in the environment; a name in
// capitals is one of the environment's own.
type settings map[string]string

// process is one program, over all its runs.
type process struct {
	t        testing.TB
	args     []string
	settings settings
	run      *run
	runs     []*run
}

// run is one start of a program until its end.
type run struct {
	cmd            *exec.Cmd
	stdout, stderr capture
	ended          chan struct{} // closed once err is set
	err            error
}

// capture keeps what a process writes.
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

// newProcess describes a program that start runs. When t ends it is killed, and
// what it wrote is searched for secrets and panics.
func newProcess(t testing.TB, with settings, args ...string) *process {
	t.Helper()
	p := &process{t: t, args: args, settings: with}
	for key, value := range with {
		if isSecret(key) {
			plant(value)
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

// start runs the program. It dies with the test process.
func (p *process) start() {
	p.t.Helper()
	path, err := binary()
	if err != nil {
		p.t.Fatal(err)
	}
	r := &run{cmd: exec.Command(path, p.args...), ended: make(chan struct{})}
	r.cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/nonexistent"}
	for key, value := range p.settings {
		if name := strings.ToUpper(key); name != key {
			key = "SLUICE_" + strings.ReplaceAll(name, ".", "_")
		}
		r.cmd.Env = append(r.cmd.Env, key+"="+value)
	}
	r.cmd.Dir = "/"
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	r.cmd.WaitDelay = 5 * time.Second // a child of it may hold the output open
	r.cmd.SysProcAttr = child(syscall.SIGKILL)
	if err := r.cmd.Start(); err != nil {
		p.t.Fatalf("starting %s: %v", p, err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	p.run, p.runs = r, append(p.runs, r)
}

func (p *process) String() string { return "sluice " + strings.Join(p.args, " ") }

// pid is the process of the present run.
func (p *process) pid() int { return p.run.cmd.Process.Pid }

// kill ends the program as a crash does.
func (p *process) kill() { p.end(syscall.SIGKILL) }

// stop ends the program as Ctrl-C does and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.end(syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	return p.exitCode()
}

// signal sends a signal to the program.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.run.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s to %s: %v", s, p, err)
	}
}

// end sends a signal and waits until the program has ended.
func (p *process) end(s syscall.Signal) error {
	if p.run == nil || p.hasEnded() {
		return nil
	}
	_ = p.run.cmd.Process.Signal(s) // it may end by itself meanwhile
	select {
	case <-p.run.ended:
		return nil
	case <-time.After(patience):
		_ = p.run.cmd.Process.Kill()
		<-p.run.ended
		return fmt.Errorf("%s did not end within %s of %s", p, patience, s)
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.run.ended:
		return true
	default:
		return false
	}
}

// wait waits until the program ends by itself and returns its exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.run.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended within %s", p, patience)
	}
	return p.exitCode()
}

// exitCode is -1 after a signal.
func (p *process) exitCode() int { return p.run.cmd.ProcessState.ExitCode() }

// await repeats try until it returns nil, while the program runs. It returns how
// long that took.
func (p *process) await(what string, try func() error) time.Duration {
	p.t.Helper()
	return eventually(p.t, what, func() error {
		p.t.Helper()
		if p.hasEnded() {
			p.t.Fatalf("%s ended with %v before %s; it says:\n%s", p, p.run.err, what, tail(p.run.stderr.String()))
		}
		return try()
	})
}

// awaitStdout waits for a text on the standard output of the present run.
func (p *process) awaitStdout(text string) time.Duration {
	p.t.Helper()
	return p.await(fmt.Sprintf("%q on its standard output", text), func() error { return lacks(p.run.stdout.String(), text) })
}

// awaitLog waits for a text on the standard error of the present run.
func (p *process) awaitLog(text string) time.Duration {
	p.t.Helper()
	return p.await(fmt.Sprintf("%q in its log", text), func() error { return lacks(p.run.stderr.String(), text) })
}

func lacks(have, text string) error {
	if strings.Contains(have, text) {
		return nil
	}
	return errors.New("it is not there")
}

// explain shows the end of every run's log.
func (p *process) explain() {
	for i, r := range p.runs {
		p.t.Logf("%s, run %d of %d, ended with %v:\n%s", p, i+1, len(p.runs), r.err, tail(r.stderr.String()))
	}
}

// tail is the last lines of a text.
func tail(text string) string {
	const most = 30
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// planted is every secret that a test knows: no process may write one.
var planted struct {
	mu     sync.Mutex
	values []string
}

// plant has every process's output searched for a secret.
func plant(value string) string {
	planted.mu.Lock()
	defer planted.mu.Unlock()
	if len(value) >= 8 && !slices.Contains(planted.values, value) {
		planted.values = append(planted.values, value)
	}
	return value
}

// isSecret tells settings whose value is a secret as a whole.
func isSecret(key string) bool {
	return key == "secret" || strings.HasSuffix(key, "token") || strings.HasSuffix(key, "password")
}

// checkOutput fails the test for a secret in what the program wrote, the banner's
// keys excepted, and for a panic.
func (p *process) checkOutput() {
	planted.mu.Lock()
	secrets := slices.Clone(planted.values)
	planted.mu.Unlock()
	for _, r := range p.runs {
		written := r.stderr.String() + withoutBanner(r.stdout.String())
		for _, value := range secrets {
			if i := strings.Index(written, value); i >= 0 {
				p.t.Errorf("%s writes a secret: %s", p, written[max(0, i-200):i+len(value)])
			}
		}
		if i := strings.Index(r.stderr.String(), "panic"); i >= 0 {
			p.t.Errorf("%s panics: %s", p, r.stderr.String()[i:min(i+2000, r.stderr.text.Len())])
		}
	}
}

// withoutBanner leaves out the lines that show a key once.
func withoutBanner(stdout string) string {
	var b strings.Builder
	for line := range strings.Lines(stdout) {
		if !strings.HasPrefix(line, "admin key ") && !strings.HasPrefix(line, "  curl -i ") && !strings.HasPrefix(line, "  for i in ") && !strings.HasPrefix(line, "  sluice explain ") {
			b.WriteString(line)
		}
	}
	return b.String()
}
