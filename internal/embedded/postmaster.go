package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// rotateAt is the size of the log, in bytes, from which a start begins a new one.
const rotateAt = 10 << 20

// postmaster is one running server process.
type postmaster struct {
	process *os.Process
	adopted bool          // not our child, but of an earlier run
	gone    chan struct{} // closed when the process has ended
	exit    error         // exit status of a child; read after gone
	abandon chan struct{} // closed to end the watch of an adopted one
	logFrom int64         // offset of this process's log
}

// spawn starts the server binary directly: with pg_ctl the server would not be our child.
func (s *Server) spawn() (*postmaster, error) {
	log, from, err := s.layout.openLog()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(s.install.dir, "postgres"), "-D", s.layout.data)
	s.account.apply(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	p := &postmaster{gone: make(chan struct{}), logFrom: from}
	started := make(chan error)
	go func() {
		// The parent-death signal follows the thread that forked, which must live as long
		// as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := errors.Join(cmd.Start(), log.Close())
		p.process = cmd.Process
		started <- err
		if p.process != nil {
			p.exit = cmd.Wait()
			close(p.gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", cmd.Path, err)
	}
	return p, nil
}

// openLog opens the log for appending and returns its size. At rotateAt it is renamed,
// replacing the file before.
func (l layout) openLog() (*os.File, int64, error) {
	if info, err := os.Stat(l.log); err == nil && info.Size() > rotateAt {
		if err := os.Rename(l.log, l.log+".1"); err != nil {
			return nil, 0, fmt.Errorf("rotating the log: %w", err)
		}
	}
	log, err := os.OpenFile(l.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the log: %w", err)
	}
	return log, l.logSize(), nil
}

func (l layout) logSize() int64 {
	info, err := os.Stat(l.log)
	if err != nil {
		return 0
	}
	return info.Size()
}

// logTail returns the last lines of the log after the offset.
func (l layout) logTail(from int64) string {
	file, err := os.Open(l.log)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	defer file.Close()
	start := max(from, l.logSize()-8192)
	text, err := io.ReadAll(io.NewSectionReader(file, start, 8192))
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	return lastLines(text)
}

// adopt supervises a server that is not our child. The handle is bound to the process and
// not to its number, which may be reused.
func (s *Server) adopt(pid int) (*postmaster, error) {
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("taking over process %d: %w", pid, err)
	}
	p := &postmaster{
		process: process, adopted: true, logFrom: s.layout.logSize(),
		gone: make(chan struct{}), abandon: make(chan struct{}),
	}
	go p.watch()
	return p, nil
}

// watch polls for the end of a process that is not a child, which cannot be waited for.
// It ends with the process or with abandon.
func (p *postmaster) watch() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for p.alive() {
		select {
		case <-p.abandon:
			return
		case <-tick.C:
		}
	}
	close(p.gone)
}

// alive reports whether the process runs and is not a zombie, which also accepts signals.
func (p *postmaster) alive() bool {
	err := p.process.Signal(syscall.Signal(0))
	return (err == nil || errors.Is(err, syscall.EPERM)) && running(p.process.Pid)
}

// stop ends the process: by a fast shutdown, then an immediate one. Never by SIGTERM,
// which waits for clients, nor SIGKILL, which leaks shared memory.
func (p *postmaster) stop() error {
	steps := []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}}
	for _, step := range steps {
		_ = p.process.Signal(step.signal) // fails if the process has ended, see gone
		select {
		case <-p.gone:
			return nil
		case <-time.After(step.wait):
		}
	}
	p.release()
	return fmt.Errorf("PostgreSQL (process %d) stopped neither on SIGINT within 10 s nor on SIGQUIT within 5 s and was left as it is", p.process.Pid)
}

// release ends the watch of an adopted process that keeps running.
func (p *postmaster) release() {
	if p.adopted {
		close(p.abandon)
	}
}
