package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/embedded"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/valyala/fasthttp/fasthttputil"
)

// Up runs admin, gateway and, unless database.url names another, a private
// PostgreSQL in this process, until ctx ends.
func Up(ctx context.Context, cfg *config.Config, o Options) error {
	base, err := newCommon(cfg, o, 0o711) // the database's user passes through
	if err != nil {
		return err
	}
	u := &allInOne{common: base, options: o}
	err = u.build(ctx)
	if err == nil {
		err = u.run(ctx)
	}
	return errors.Join(err, u.stopDatabase())
}

// allInOne is an admin and a gateway in one process.
type allInOne struct {
	common
	options Options

	database   *embedded.Server // nil: external
	stores     *stores
	management *management
	node       *node
	adminLn    net.Listener
	memory     *fasthttputil.InmemoryListener // of the admin, for the gateway in this process
	demo       *demo                          // nil: no demo
}

// inMemoryURL is the admin's URL on connections in memory. The host is never resolved.
const inMemoryURL = "http://admin.invalid"

func (u *allInOne) build(ctx context.Context) (err error) {
	if u.adminLn, err = listenAdmin(u.cfg, u.log); err != nil {
		return err
	}
	url, err := u.startDatabase(ctx)
	if err != nil {
		return err
	}
	waiting := databaseWait{url: url, ln: u.adminLn, log: u.log}
	if err := waiting.until(ctx); err != nil {
		return err
	}
	token, err := u.kept(u.cfg.Gateway.Token, "gateway.token")
	if err != nil {
		return err
	}
	u.sealedWith = token
	if u.stores, err = openStores(ctx, u.common, keysFromAdmin); err != nil {
		return err
	}
	control, err := u.kept(u.cfg.Secret, "gateway.secret")
	if err != nil {
		return err
	}
	u.memory = fasthttputil.NewInmemoryListener()
	usage := new(localAdmin)
	if u.node, err = newNode(nodeParts{
		common: u.common, stores: u.stores, adminURL: inMemoryURL, admin: overMemory(u.memory),
		token: token, secret: control, inUp: true, usageTo: usage,
	}); err != nil {
		return err
	}
	if err := u.node.listen(); err != nil {
		return err
	}
	u.management, err = newManagement(ctx, managementParts{
		cfg: u.cfg, origins: u.options.Origins, url: urlOf(u.adminLn), database: url, stores: u.stores, token: token, log: u.log, events: u.events, gateway: u.node.plane.gateway,
		metrics: u.node.plane.observer.Registry(), scrape: u.node.telemetry(), inUp: true, traffic: u.node.url(),
	})
	if err != nil {
		return err
	}
	usage.server.Store(u.management.server)
	if u.stores.sharedKeys == nil {
		return u.management.server.Refill(ctx)
	}
	return nil
}

// startDatabase returns the address of the database, and starts a private one if none is
// configured.
func (u *allInOne) startDatabase(ctx context.Context) (secret.Value, error) {
	if !u.cfg.Database.URL.Empty() {
		return u.cfg.Database.URL, nil
	}
	server, err := embedded.Start(ctx, embedded.Options{
		BaseDir: postgresDir(u.cfg), BinDir: u.cfg.Postgres.BinDir, Log: u.log,
		SharedBuffers: fmt.Sprintf("%dkB", u.cfg.Postgres.SharedBuffers/1024),
	})
	if err != nil {
		return secret.Value{}, exitWith(err)
	}
	u.database = server
	return secret.New(server.DSN()), nil
}

// postgresDir returns the directory of a private database.
func postgresDir(cfg *config.Config) string { return cmp.Or(cfg.Postgres.DataDir, cfg.DataDir) }

// kept returns a configured secret, or one that is kept in a file of data_dir.
func (u *allInOne) kept(configured secret.Value, file string) (secret.Value, error) {
	if !configured.Empty() {
		return configured, nil
	}
	v, _, err := secret.KeepFile(filepath.Join(u.cfg.DataDir, file), func() string {
		var random [24]byte
		_, _ = rand.Read(random[:]) // documented never to fail
		return hex.EncodeToString(random[:])
	})
	return v, err
}

// overMemory is a transport whose every connection leads to ln.
func overMemory(ln *fasthttputil.InmemoryListener) http.RoundTripper {
	return &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return ln.Dial() },
		IdleConnTimeout: time.Minute,
	}
}

// run serves until ctx ends. The admin stops first; the gateway drains after it and adds
// its last counts of calls to the database.
func (u *allInOne) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t := &tasks{fail: fail}
	t.start("admin", func() error { return u.management.server.Serve(u.adminLn) })
	u.management.servePortal(t)
	u.management.serveBeside(t, u.memory)
	if u.options.Demo {
		if err := u.seed(ctx); err != nil {
			fail(fmt.Errorf("demo: %w", err))
		}
	}
	t.start("banner", func() error { u.announce(ctx); return nil })
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		stopped <- u.management.shutDown(u.cfg.Gateway.DrainTimeout)
	}()
	err := u.node.run(ctx, u.options.SkipDrain, u.stores.close)
	fail(nil)
	err = errors.Join(err, <-stopped)
	u.management.store.Close()
	t.wait()
	if u.demo != nil {
		u.demo.upstream.stop()
	}
	return err
}

func (u *allInOne) stopDatabase() error {
	if u.database == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return u.database.Stop(ctx)
}

// announce prints the banner once everything is served.
func (u *allInOne) announce(ctx context.Context) {
	if u.options.Quiet {
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !u.isServing() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	var all strings.Builder // printed at once: its end needs the database, and readers wait for its beginning
	u.banner(ctx, &all)
	say(u.options.Stdout, "%s", all.String())
}

// isServing reports whether the gateway serves the admin's configuration.
func (u *allInOne) isServing() bool {
	live := u.node.live
	return live.snapshot() != nil && (u.demo == nil ||
		live.API(demoKeyed) != nil && live.API(demoGraph) != nil && live.API(demoEvents) != nil && live.Policies().Get(demoPolicy) != nil && live.Policies().Get(demoFull) != nil)
}

func (u *allInOne) banner(ctx context.Context, w io.Writer) {
	database := "external"
	if u.database != nil {
		database = "embedded PostgreSQL " + u.database.Version() + ", " + filepath.Join(u.cfg.DataDir, "pg") + " (unix socket, no TCP port)"
	}
	say(w, "database       %s\ncounters       %s\n", database, u.stores.describe(u.cfg))
	say(w, "gateway        %s\nadmin          %s\n", u.node.url(), urlOf(u.adminLn))
	u.management.printPortal(w, u.cfg, u.adminLn)
	if u.node.secure.ln != nil && u.node.traffic != nil {
		say(w, "gateway, TLS   %s\n", u.node.secure.url())
	}
	u.management.printKey(w)
	u.management.printLink(ctx, w, urlOf(u.adminLn))
	if u.stores.saver != nil {
		say(w, "limits         one process; counters are kept in memory and saved every second (a crash forgets\n"+
			"               at most that second); a second gateway would count separately: set valkey.url to share them\n")
	}
	if u.demo != nil {
		u.demo.print(w, u.node.url(), urlOf(u.adminLn), u.cfg.DataDir)
	}
}

// exit is an error with the exit code of the process.
type exit struct {
	error
	code int
}

// ExitCode returns the exit code of the error.
func (e exit) ExitCode() int { return e.code }

// Unwrap returns the error itself.
func (e exit) Unwrap() error { return e.error }

// Exit codes that scripts branch on.
const (
	exitMissing = 3
	exitRunning = 4
)

// exitWith adds the exit code to errors of the private database.
func exitWith(err error) error {
	if _, ok := errors.AsType[*embedded.MissingError](err); ok {
		return exit{err, exitMissing}
	}
	if _, ok := errors.AsType[*embedded.RunningError](err); ok {
		return exit{err, exitRunning}
	}
	return err
}
