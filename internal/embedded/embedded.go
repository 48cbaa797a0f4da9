// Package embedded runs a private PostgreSQL server beside the process: it
// finds the installed binaries, makes the cluster, starts and supervises the
// server, takes over one that an earlier run left behind, and stops it.
//
// The server listens on a unix socket only and knows no password: the kernel
// tells it who connects (peer authentication).
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
	port     = "5432" // part of the socket's name; no TCP port is opened
)

// Options say where the server lives and how big it is. The zero value is a
// durable server in DefaultDir, run by the newest PostgreSQL that is installed.
type Options struct {
	BaseDir        string       // holds data, socket, log and lock; "" is DefaultDir
	BinDir         string       // directory of initdb and postgres; "" looks in the usual places
	SharedBuffers  string       // a number and kB, MB or GB; "" is 64MB
	MaxConnections int          // at least 10; 0 is 50
	Disposable     bool         // nothing is synced to disk: for tests, whose data may be lost with the machine
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
	version string // as the server tells it when it first answers

	ready    atomic.Bool
	stop     context.CancelFunc // asks supervise to end
	done     chan struct{}      // closed when supervise has ended
	stopping error              // what went wrong while stopping; read after done
}

var sizePattern = regexp.MustCompile(`^[1-9][0-9]{0,8}(kB|MB|GB)$`)

// complete fills in the defaults and refuses what PostgreSQL would refuse later
// in words that do not name our option.
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

// Start returns once the server answers, having made the cluster if there is
// none, or taken over a server that an earlier run left behind. From then on the
// server is kept running until Stop. Start waits as long as crash recovery
// makes progress; ctx ends the wait, and has no effect after that.
//
// Errors worth branching on: MissingError, RunningError, VersionError,
// BlockedError, AccountError.
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

// prepare finds everything that is needed and takes the lock.
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

// furnish decides on the binaries and makes the directories; the lock is held.
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

// open brings the server up: cluster, process, database.
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

// DSN is how pgx connects: keywords and values, over the unix socket, as the
// role that owns the database. It stays the same for the Server's life and
// holds no secret.
func (s *Server) DSN() string {
	return fmt.Sprintf("host='%s' port=%s user=%s dbname=%s sslmode=disable",
		s.layout.socketDir, port, role, database)
}

// Version is the server's version as it was when Start returned, such as "15.18".
func (s *Server) Version() string { return s.version }

// Ready reports whether the server answered when last looked at. It is false
// from the moment the server is seen to have ended until it answers again.
func (s *Server) Ready() bool { return s.ready.Load() }

// Stop ends supervision and the server: a fast shutdown first, after 10 s
// an immediate one, and after 5 s more an error, the server left as it is. It
// never kills, because that leaves shared memory behind. When ctx ends before
// that, Stop returns and the shutdown goes on. Later calls wait for the first.
func (s *Server) Stop(ctx context.Context) error {
	s.stop()
	select {
	case <-s.done:
		return s.stopping
	case <-ctx.Done():
		return fmt.Errorf("stopping PostgreSQL in %s: %w", s.layout.base, ctx.Err())
	}
}

// DefaultDir is where the server lives when nothing else is said: for root
// /var/lib/sluice, because no other user may look into root's home; for others
// sluice below $XDG_STATE_HOME or ~/.local/state.
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
