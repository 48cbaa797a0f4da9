// Package embedded runs a private PostgreSQL server: it finds the installed binaries,
// creates the cluster, starts and supervises the server, adopts one of an earlier run,
// and stops it.
//
// The server listens on a Unix socket only, without passwords: it uses peer
// authentication.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"time"
)

const (
	role     = "sluice" // owns everything in the cluster
	database = "sluice"
	port     = "5432" // in the socket's name only; no TCP port is opened
)

// Options are the directories and sizes of the server. The zero value is a durable server
// in DefaultDir, with the newest installed PostgreSQL.
type Options struct {
	BaseDir        string       // holds data, socket, log and lock; "" is DefaultDir
	BinDir         string       // directory of initdb and postgres; "" searches the usual places
	SharedBuffers  string       // a number and kB, MB or GB; "" is 64MB
	MaxConnections int          // at least 10; 0 is 50
	Disposable     bool         // no fsync: for tests, whose data may be lost
	Log            *slog.Logger // nil discards
}

// Server is a private PostgreSQL under supervision. Its methods are safe for
// concurrent use.
type Server struct {
	layout  layout
	account account
	install installation
	options Options
	log     *slog.Logger
	lock    *os.File
	version string // reported by the server at the start

	ready    atomic.Bool
	stop     context.CancelFunc // ends supervise
	done     chan struct{}      // closed when supervise has ended
	stopping error              // error of stopping; read after done
}

var sizePattern = regexp.MustCompile(`^[1-9][0-9]{0,8}(kB|MB|GB)$`)

// complete sets defaults, and refuses values that PostgreSQL would refuse later without
// naming our setting.
func (o Options) complete() (Options, error) {
	if o.SharedBuffers == "" {
		o.SharedBuffers = "64MB"
	}
	if o.MaxConnections == 0 {
		o.MaxConnections = 50
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if !sizePattern.MatchString(o.SharedBuffers) {
		return o, fmt.Errorf("postgres.shared_buffers %q: want a whole number and kB, MB or GB, such as 64MB", o.SharedBuffers)
	}
	if o.MaxConnections < 10 {
		return o, fmt.Errorf("postgres.max_connections %d: want at least 10", o.MaxConnections)
	}
	return o, nil
}

// Start returns once the server responds. It creates the cluster if there is none, or
// adopts the server of an earlier run. From then on the server is kept running until
// Stop. Start waits as long as crash recovery makes progress; ctx ends the wait, and has
// no effect later.
//
// Errors have the types MissingError, RunningError, VersionError, BlockedError,
// AccountError.
func Start(ctx context.Context, o Options) (*Server, error) {
	s, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	running, err := s.open(ctx)
	if err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	s.ready.Store(true)
	s.log.Info("database ready", "version", s.version, "pid", running.process.Pid,
		"adopted", running.adopted, "socket", s.layout.socketDir, "took", time.Since(began))
	lifetime, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.supervise(lifetime, running)
	return s, nil
}

// prepare finds the prerequisites and takes the lock.
func prepare(ctx context.Context, o Options) (*Server, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	base, err := baseDir(o.BaseDir)
	if err != nil {
		return nil, err
	}
	found, err := installations(ctx, o.BinDir)
	if err != nil {
		return nil, err
	}
	s := &Server{layout: newLayout(base), options: o, log: o.Log, done: make(chan struct{})}
	if s.account, err = serverAccount(s.layout.data); err != nil {
		return nil, err
	}
	if err := s.layout.makeBase(s.account); err != nil {
		return nil, err
	}
	if s.lock, err = takeLock(s.layout.base, s.layout.lock); err != nil {
		return nil, err
	}
	if err := s.furnish(found); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// furnish chooses the binaries and creates the directories, under the lock.
func (s *Server) furnish(found []installation) error {
	major, err := s.layout.dataMajor()
	if err != nil {
		return err
	}
	if s.install, err = choose(found, major, s.layout.data); err != nil {
		return err
	}
	if err := s.account.mayEnter(s.install.dir); err != nil {
		return err
	}
	return s.layout.makeSocketDir(s.account)
}

// open starts the server: cluster, process, database.
func (s *Server) open(ctx context.Context) (*postmaster, error) {
	if err := s.ensureCluster(ctx); err != nil {
		return nil, err
	}
	running, err := s.launch(ctx)
	if err != nil {
		return nil, err
	}
	if s.version, err = s.ensureDatabase(ctx); err != nil {
		return nil, errors.Join(err, running.stop())
	}
	return running, nil
}

// Attach returns the connection string of a server that another process runs in the base
// directory, or "" if none answers. It changes nothing.
func Attach(ctx context.Context, o Options) (dsn string, err error) {
	base, err := baseDir(o.BaseDir)
	if err != nil {
		return "", err
	}
	s := &Server{layout: newLayout(base), options: o}
	if _, err := os.Stat(s.layout.data); err != nil {
		return "", nil // there is no cluster
	}
	if s.account, err = serverAccount(s.layout.data); err != nil {
		return "", err
	}
	s.layout.chooseSocketDir(s.account)
	if s.check(ctx) != nil {
		return "", nil
	}
	return s.DSN(), nil
}

// HasData reports whether there is a cluster in the base directory.
func HasData(base string) (bool, error) {
	base, err := baseDir(base)
	if err != nil {
		return false, err
	}
	major, err := newLayout(base).dataMajor()
	return major > 0, err
}

// DSN returns the connection string for pgx: keywords and values, the Unix socket, the
// role that owns the database. It is constant and holds no secret.
func (s *Server) DSN() string {
	return fmt.Sprintf("host='%s' port=%s user=%s dbname=%s sslmode=disable",
		s.layout.socketDir, port, role, database)
}

// Version is the server's version as it was when Start returned, such as "15.18".
func (s *Server) Version() string { return s.version }

// Ready reports whether the server runs and responded after its start.
func (s *Server) Ready() bool { return s.ready.Load() }

// Stop ends supervision and the server: by a fast shutdown, after 10 s by an immediate
// one; after 5 s more it returns an error and leaves the server running. It never kills
// the server, because that leaks shared memory. If ctx ends earlier, Stop returns and the
// shutdown continues. Later calls wait for the first.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	select {
	case <-s.done:
		return s.stopping
	case <-ctx.Done():
		return fmt.Errorf("stopping PostgreSQL in %s: %w", s.layout.base, ctx.Err())
	}
}

// DefaultDir returns the default base directory: for root /var/lib/sluice, because other
// users cannot read root's home; for others sluice below $XDG_STATE_HOME or
// ~/.local/state.
func DefaultDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/sluice", nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "sluice"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("choosing a directory for PostgreSQL: %w; set postgres.data_dir", err)
	}
	return filepath.Join(home, ".local", "state", "sluice"), nil
}

func baseDir(given string) (string, error) {
	if given == "" {
		return DefaultDir()
	}
	base, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("postgres.data_dir %q: %w", given, err)
	}
	return base, nil
}
