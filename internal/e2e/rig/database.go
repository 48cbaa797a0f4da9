package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sluicegate/sluice/internal/embedded"
	"github.com/sluicegate/sluice/internal/testenv"
)

// A Database is a PostgreSQL server that a test can kill and restart.
type Database struct {
	t    *testing.T
	dir  string // the cluster
	Dsn  string
	bin  string
	user *syscall.Credential // nil: as this process
	cmd  *exec.Cmd
}

// NewDatabase creates a cluster and starts its server. Without PostgreSQL on the
// machine t is skipped, or fails under SLUICE_TEST_REQUIRE_SERVERS=1.
func NewDatabase(t *testing.T) *Database {
	t.Helper()
	base := DataDir(t)
	made, err := embedded.Start(t.Context(), embedded.Options{BaseDir: base})
	if missing, ok := errors.AsType[*embedded.MissingError](err); ok {
		if os.Getenv("SLUICE_TEST_REQUIRE_SERVERS") == "1" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &Database{t: t, dir: filepath.Join(base, "pg"), Dsn: made.DSN()}
	if d.bin, err = os.Readlink(fmt.Sprintf("/proc/%s/exe", FirstLine(filepath.Join(d.dir, "postmaster.pid")))); err != nil {
		t.Fatal(err)
	}
	if err := made.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		d.user = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	t.Cleanup(d.Kill)
	d.Start()
	return d
}

// Start runs the server and waits until it answers. After a crash it may have to
// wait until processes of the last server have ended.
func (d *Database) Start() {
	d.t.Helper()
	Eventually(d.t, "the database's server", func() error {
		if d.cmd == nil {
			d.cmd = exec.Command(d.bin, "-D", d.dir)
			d.cmd.Dir, d.cmd.Env = "/", []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
			d.cmd.SysProcAttr = testenv.ChildAttr(syscall.SIGINT)
			d.cmd.SysProcAttr.Credential = d.user
			if err := d.cmd.Start(); err != nil {
				return err
			}
		}
		conn, err := pgx.Connect(d.t.Context(), d.Dsn)
		if err != nil {
			if ended := d.cmd.Process.Signal(syscall.Signal(0)); ended != nil || isZombie(d.cmd.Process.Pid) {
				_ = d.cmd.Wait()
				d.cmd = nil
			}
			return err
		}
		return conn.Close(d.t.Context())
	})
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	var name string
	var state rune
	if err == nil {
		_, err = fmt.Sscanf(string(stat), "%d %s %c", &pid, &name, &state)
	}
	return err == nil && state == 'Z'
}

// Kill ends the server as a crash does and removes its pid file.
func (d *Database) Kill() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may have ended by itself
	_ = d.cmd.Wait()
	d.cmd = nil
	_ = os.Remove(filepath.Join(d.dir, "postmaster.pid")) // a number that another process may get
}

// FirstLine returns the first line of a file, "" if it cannot be read.
func FirstLine(path string) string {
	data, _ := os.ReadFile(path) // "" shows in what is made of it
	for i, c := range data {
		if c == '\n' {
			return string(data[:i])
		}
	}
	return string(data)
}
