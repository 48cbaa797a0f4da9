package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// runHere runs cmd and returns its output. The thread is locked because the kernel's
// parent-death signal follows the thread that forked.
func runHere(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}

// ensureCluster creates the cluster if there is none: in a temporary directory that is
// renamed when complete, so that a crash leaves no partial cluster.
func (s *Server) ensureCluster(ctx context.Context) error {
	if major, err := s.layout.dataMajor(); err != nil || major != 0 {
		return err
	}
	if err := s.setAside(); err != nil {
		return err
	}
	err := os.Mkdir(s.layout.fresh, 0o700)
	if err == nil {
		err = s.account.own(s.layout.fresh)
	}
	if err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	s.log.Info("making a PostgreSQL cluster", "major", s.install.major, "dir", s.layout.data, "user", s.account.name)
	if err := s.initdb(ctx); err != nil {
		return errors.Join(err, s.setAside())
	}
	return s.layout.moveIn()
}

func (s *Server) initdb(ctx context.Context) error {
	args := []string{
		"-D", s.layout.fresh, "-U", role, "-A", "peer", "-E", "UTF8",
		"--locale=C", "--no-instructions", "-k",
	}
	if s.options.Disposable {
		args = append(args, "--no-sync", "--wal-segsize=1")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.install.dir, "initdb"), args...)
	s.account.apply(cmd)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := runHere(cmd)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("making the cluster: %w", ctx.Err())
	}
	if bytes.Contains(out, []byte("could not look up effective user ID")) {
		return &AccountError{UID: s.account.uid}
	}
	return fmt.Errorf("making the cluster with %s: %w:\n%s", cmd.Path, err, lastLines(out))
}

// setAside renames the directory of an interrupted initdb. It is kept for diagnosis.
func (s *Server) setAside() error {
	entries, err := os.ReadDir(s.layout.fresh)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) == 0 {
		err = os.Remove(s.layout.fresh)
	} else if err == nil {
		failed := s.layout.data + ".failed-" + time.Now().UTC().Format("20060102T150405.000")
		s.log.Warn("setting a half-made cluster aside", "dir", failed)
		err = os.Rename(s.layout.fresh, failed)
	}
	if err != nil {
		return fmt.Errorf("setting a half-made cluster aside: %w", err)
	}
	return nil
}

// moveIn moves the complete cluster to its place.
func (l layout) moveIn() error {
	err := os.Remove(l.data) // at most an empty directory, see dataMajor
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (a volume belongs at %s, not below it)", err, l.base)
	}
	if err := os.Rename(l.fresh, l.data); err != nil {
		return fmt.Errorf("putting the cluster in its place: %w", err)
	}
	base, err := os.Open(l.base)
	if err != nil {
		return fmt.Errorf("putting the cluster in its place: %w", err)
	}
	return errors.Join(base.Sync(), base.Close())
}

// ensureDatabase returns the server's version, and creates our database in a new cluster.
func (s *Server) ensureDatabase(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return "", fmt.Errorf("connecting to the new server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing depends on it
	rows, err := query(ctx, conn, "show server_version")
	if err != nil || len(rows) != 1 {
		return "", fmt.Errorf("asking the server's version: %w", errors.Join(err, ctx.Err()))
	}
	version, _, _ = strings.Cut(rows[0], " ") // "15.18 (Debian 15.18-0+deb12u1)"
	rows, err = query(ctx, conn, "select 1 from pg_database where datname = '"+database+"'")
	if err == nil && len(rows) == 0 {
		_, err = query(ctx, conn, "create database "+database)
	}
	if err != nil {
		return "", fmt.Errorf("making the database: %w", err)
	}
	return version, nil
}

// lastLines returns the last 20 lines of text, at most 4 KiB.
func lastLines(text []byte) string {
	text = bytes.TrimSpace(text)
	if len(text) > 4096 {
		text = text[len(text)-4096:]
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
