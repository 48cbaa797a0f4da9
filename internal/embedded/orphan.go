package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// pidRecord is a part of postmaster.pid.
type pidRecord struct {
	pid       int
	socketDir string // "" early in the server's start
}

// parsePidFile parses the record: line 1 is the process, line 5 the socket's directory.
func parsePidFile(text string) (pidRecord, bool) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return pidRecord{}, false
	}
	record := pidRecord{pid: pid}
	if len(lines) > 4 {
		record.socketDir = strings.TrimSpace(lines[4])
	}
	return record, true
}

// orphan returns the running server of an earlier run, or nil. One with another socket
// directory is stopped.
func (s *Server) orphan() (*postmaster, error) {
	text, err := os.ReadFile(s.layout.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for a running server: %w", err)
	}
	record, ok := parsePidFile(string(text))
	if !ok || !s.serves(record.pid) {
		return nil, nil
	}
	p, err := s.adopt(record.pid)
	if err != nil {
		return nil, err
	}
	// Checked again with the process handle: the number may have been reused before.
	if !s.serves(record.pid) {
		p.release()
		return nil, nil
	}
	if record.socketDir != "" && record.socketDir != s.layout.socketDir {
		s.log.Info("stopping a server that listens elsewhere", "pid", record.pid, "socket", record.socketDir)
		return nil, p.stop()
	}
	return p, nil
}

// survivorsWait is how long server processes may take to end after their postmaster died.
const survivorsWait = 10 * time.Second

// clearStale removes pid files that name a zombie or an unrelated process, with which
// PostgreSQL would refuse to start. First it waits until no process of the server is
// left, because one that outlived its postmaster would corrupt the data.
func (s *Server) clearStale(ctx context.Context) error {
	stale := []string{s.layout.pidFile(), s.layout.socketLock(), s.layout.socket()}
	if !anyExists(stale) {
		return nil
	}
	err := s.awaitNoProcess(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing what a dead server left: %w", err)
		}
	}
	return nil
}

func anyExists(paths []string) bool {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

func (s *Server) awaitNoProcess(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, survivorsWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		pids, err := s.serverProcesses()
		if err != nil {
			return fmt.Errorf("looking for server processes: %w", err)
		}
		if len(pids) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("server processes %v still work on %s although their postmaster is dead: end them before starting again (%w)", pids, s.layout.data, ctx.Err())
		}
	}
}
