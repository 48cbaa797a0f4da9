package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// layout has the paths of one server.
type layout struct {
	base      string // absolute
	data      string // the cluster
	fresh     string // a cluster being created; renamed to data when complete
	log       string
	lock      string
	socketDir string
}

func newLayout(base string) layout {
	return layout{
		base:      base,
		data:      filepath.Join(base, "pg"),
		fresh:     filepath.Join(base, "pg.new"),
		log:       filepath.Join(base, "postgres.log"),
		lock:      filepath.Join(base, "sluice.lock"),
		socketDir: filepath.Join(base, "run"),
	}
}

// makeBase creates the base directory and checks that the account can reach it. An
// existing directory keeps its mode: it may be a home directory.
func (l layout) makeBase(a account) error {
	_, err := os.Stat(l.base)
	if errors.Is(err, fs.ErrNotExist) {
		err = createBase(l.base)
	}
	if errors.Is(err, fs.ErrPermission) {
		if parent := a.blockedAt(l.base); parent != "" {
			return &BlockedError{Dir: l.base, Parent: parent, User: a.name}
		}
	}
	if err != nil {
		return fmt.Errorf("postgres.data_dir %s: %w", l.base, err)
	}
	return a.mayEnter(l.base)
}

func createBase(base string) error {
	if err := os.MkdirAll(base, 0o711); err != nil {
		return err
	}
	return os.Chmod(base, 0o711) // regardless of the umask: the server's user must reach it
}

// dataMajor returns the major version of the data, or 0 if there is none. Incomplete data
// is refused: starting with an empty cluster would silently delete every API.
func (l layout) dataMajor() (int, error) {
	entries, err := os.ReadDir(l.data)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking at the data directory: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(l.data, "PG_VERSION"))
	if err == nil {
		_, err = os.Stat(filepath.Join(l.data, "global", "pg_control"))
	}
	if err != nil {
		return 0, fmt.Errorf("%s is not empty and not a whole PostgreSQL cluster (%w): put it back from a backup, or move it away to start with an empty one", l.data, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s holds %q, want a major version such as 15", filepath.Join(l.data, "PG_VERSION"), text)
	}
	return major, nil
}

// socketPathMax is the longest path of a socket: sun_path has 108 bytes on Linux and 104
// elsewhere, including the zero byte.
func socketPathMax() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

const socketName = ".s.PGSQL." + port

func (l layout) socket() string     { return filepath.Join(l.socketDir, socketName) }
func (l layout) socketLock() string { return l.socket() + ".lock" }
func (l layout) pidFile() string    { return filepath.Join(l.data, "postmaster.pid") }

// makeSocketDir creates the directory of the socket: a short one if the path would be too
// long or would need quotes in a connection string.
func (l *layout) makeSocketDir(a account) error {
	l.chooseSocketDir(a)
	err := os.Mkdir(l.socketDir, 0o700)
	if err == nil {
		err = a.own(l.socketDir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the socket directory: %w", err)
	}
	return l.checkSocketDir(a)
}

// chooseSocketDir chooses the short directory where it is needed.
func (l *layout) chooseSocketDir(a account) {
	if len(l.socket()) > socketPathMax() || strings.ContainsFunc(l.socketDir, awkward) {
		l.socketDir = l.shortSocketDir(a)
	}
}

// awkward reports characters that need quotes in DSNs or in postgresql.conf.
func awkward(r rune) bool { return r < ' ' || strings.ContainsRune(`'"\,`, r) }

// shortSocketDir is the same for every run on one base directory. The server's user
// cannot read root's runtime directory, so root uses /tmp.
func (l layout) shortSocketDir(a account) string {
	sum := sha256.Sum256([]byte(l.base))
	name := "sluice-" + hex.EncodeToString(sum[:4])
	runtimeDir := os.Getenv("XDG_RUNTIME_DIR")
	short := filepath.Join(runtimeDir, name)
	usable := filepath.IsAbs(runtimeDir) && !strings.ContainsFunc(runtimeDir, awkward) &&
		len(filepath.Join(short, socketName)) <= socketPathMax()
	if usable && !a.change {
		return short
	}
	return filepath.Join("/tmp", name)
}

// leave removes a socket directory outside the base directory, if it is empty.
func (l layout) leave() {
	if filepath.Dir(l.socketDir) != l.base {
		_ = os.Remove(l.socketDir)
	}
}

// checkSocketDir refuses a directory of another user, who could replace our socket.
func (l layout) checkSocketDir(a account) error {
	info, err := os.Lstat(l.socketDir)
	if err != nil {
		return fmt.Errorf("looking at the socket directory: %w", err)
	}
	owner, ok := infoOwner(info)
	if ok && a.change && owner == 0 && info.IsDir() {
		// A root process ended between creating it and changing its owner.
		owner, err = a.uid, a.own(l.socketDir)
	}
	if err != nil {
		return fmt.Errorf("giving the socket directory to %s: %w", a.name, err)
	}
	if !info.IsDir() || !ok || owner != a.uid {
		return fmt.Errorf("socket directory %s is not a directory of user %s: remove it", l.socketDir, a.name)
	}
	return os.Chmod(l.socketDir, 0o700)
}
