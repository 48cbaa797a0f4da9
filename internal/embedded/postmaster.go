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
	adopted bool          // not our child: an earlier run's
	gone    chan struct{} // closed when the process has ended
	exit    error         // how a child ended; read after gone
	abandon chan struct{} // closed to end the watch over an adopted one
	logFrom int64         // where this process began to log
}

// spawn starts the server binary itself: pg_ctl would come between us and the
// process that we have to watch.
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
		// The parent-death signal is about the thread that forked, so that thread
		// has to live as long as the child.
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

// openLog opens the log for appending and returns its present size. The server
// logs warnings and errors only, but over years these add up: two files of
// rotateAt are kept.
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

// logTail returns the last lines that were logged from the offset on.
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

// adopt takes over a server that is not our child. Its process handle is bound
// to the process, not the number, so that a reused number is never signalled.
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

// watch looks for the end of a process that is not a child: there is no waiting
// for those. It ends with the process or with abandon.
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

// alive knows a zombie, which still takes signals, from a running process.
func (p *postmaster) alive() bool {
	err := p.process.Signal(syscall.Signal(0))
	return (err == nil || errors.Is(err, syscall.EPERM)) && running(p.process.Pid)
}

// stop ends the process: a fast shutdown, then an immediate one. Never SIGTERM,
// which waits for clients, nor SIGKILL, which leaves shared memory behind.
func (p *postmaster) stop() error {
	steps := []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, 5 * time.Second}}
	for _, step := range steps {
		_ = p.process.Signal(step.signal) // fails when the process has ended, which gone tells
		select {
		case <-p.gone:
			return nil
		case <-time.After(step.wait):
		}
	}
	p.release()
	return fmt.Errorf("PostgreSQL (process %d) stopped neither on SIGINT within 10 s nor on SIGQUIT within 5 s and was left as it is", p.process.Pid)
}

// release ends the watch over an adopted process that lives on.
func (p *postmaster) release() {
	if p.adopted {
		close(p.abandon)
	}
}
