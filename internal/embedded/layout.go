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

// layout is where everything of one server lies.
type layout struct {
	base      string // absolute
	data      string // the cluster
	fresh     string // a cluster in the making; renamed to data when whole
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

// makeBase makes the base directory and checks that the account can reach it.
// A directory that is there already keeps its mode: it may be somebody's home.
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
	return os.Chmod(base, 0o711) // whatever the umask: the server user has to pass
}

// dataMajor is the major version that made the data, or 0 when there is none.
// Data that is there but not whole is refused: starting empty in its place
// would take every API away without a word.
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

// socketPathMax is how long the socket's path may be. The address structure has
// 108 bytes on Linux and 104 elsewhere, the last of them zero.
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

// makeSocketDir makes the directory of the socket, in a short place when the
// usual one makes a path that is too long or that a connection string would
// have to quote.
func (l *layout) makeSocketDir(a account) error {
	if len(l.socket()) > socketPathMax() || strings.ContainsFunc(l.socketDir, awkward) {
		l.socketDir = l.shortSocketDir(a)
	}
	err := os.Mkdir(l.socketDir, 0o700)
	if err == nil {
		err = a.own(l.socketDir)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the socket directory: %w", err)
	}
	return l.checkSocketDir(a)
}

// awkward characters separate or quote in DSNs and in postgresql.conf.
func awkward(r rune) bool { return r < ' ' || strings.ContainsRune(`'"\,`, r) }

// shortSocketDir is the same for every run on one base directory. Root's
// runtime directory is closed to the server user, so root takes /tmp.
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

// leave removes a socket directory that is not in the base directory, unless
// something is still in it.
func (l layout) leave() {
	if filepath.Dir(l.socketDir) != l.base {
		_ = os.Remove(l.socketDir)
	}
}

// checkSocketDir refuses a directory that somebody else made: whoever owns it
// could put a socket of their own in the place of ours.
func (l layout) checkSocketDir(a account) error {
	info, err := os.Lstat(l.socketDir)
	if err != nil {
		return fmt.Errorf("looking at the socket directory: %w", err)
	}
	owner, ok := infoOwner(info)
	if ok && a.change && owner == 0 && info.IsDir() {
		// Root died between making it and giving it away.
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
