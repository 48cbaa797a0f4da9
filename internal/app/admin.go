package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/sluicegate/sluice/admin"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/guard"
	"github.com/sluicegate/sluice/internal/secret"
)

// Admin runs the management server on a PostgreSQL, until ctx ends.
func Admin(ctx context.Context, cfg *config.Config, o Options) error {
	base, err := newCommon(cfg, o, 0o700)
	if err != nil {
		return err
	}
	ln, err := listen("admin.listen", cfg.Admin.Listen)
	if err != nil {
		return err
	}
	st, err := openStores(ctx, base, keysInValkey)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	watch := observe.New(observe.Options{Version: Version(), Log: base.log, Sources: observe.Sources{Counters: st.counterState, DroppedEvents: base.events.Dropped}})
	m, err := newManagement(ctx, managementParts{
		cfg: cfg, database: cfg.Database.URL, stores: st, token: cfg.Gateway.Token, log: base.log, events: base.events,
		metrics: watch.Registry(), scrape: watch.Handler(observe.HandlerOptions{Metrics: cfg.Telemetry.Metrics, Token: cfg.Telemetry.Token.Reveal()}),
	})
	if err != nil {
		return errors.Join(err, ln.Close(), st.close())
	}
	if !o.Quiet {
		say(o.Stdout, "counters       %s\nadmin          %s\n", st.describe(cfg), urlOf(ln))
		m.tellKey(o.Stdout)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t := &tasks{fail: fail}
	t.start("admin", func() error { return m.server.Serve(ln) })
	t.start("events", func() error { base.events.Run(ctx); return nil })
	<-ctx.Done()
	base.log.Info("stopping", "cause", context.Cause(ctx))
	err = m.stop(cfg.Gateway.DrainTimeout)
	t.wait()
	err = errors.Join(err, st.close())
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

// managementParts is what the admin is made of.
type managementParts struct {
	cfg      *config.Config
	database secret.Value
	stores   *stores
	token    secret.Value // of the gateways
	log      *slog.Logger
	metrics  prometheus.Registerer
	scrape   fasthttp.RequestHandler
	inUp     bool // the gateway is in this process
	events   *event.Bus
	gateway  *gateway.Gateway // in this process; nil: there is none
}

// schemaOptions say which upstreams may be asked for their schemas.
func (p *managementParts) schemaOptions() schemas.Options {
	private := p.cfg.Admin.PrivateUpstreams
	return schemas.Options{
		Addresses: guard.Policy{Private: private == "allow" || private == "auto" && p.inUp},
		CAFile:    p.cfg.Upstream.CAFile,
	}
}

// management is the admin with its database.
type management struct {
	server *admin.Server
	store  *store.Store

	key     secret.Value // of the first admin
	keyFile string
	created bool // by this start
}

// newManagement brings the database up to date and makes the first admin where
// there is none.
func newManagement(ctx context.Context, p managementParts) (m *management, err error) {
	if _, err := store.Migrate(ctx, p.database.Reveal()); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	m = &management{keyFile: filepath.Join(p.cfg.DataDir, "admin.key")}
	m.store, err = store.Open(ctx, store.Options{
		URL: p.database.Reveal(), MaxConns: p.cfg.Database.MaxConns, StatementTimeout: p.cfg.Database.StatementTimeout, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	deps := admin.Deps{
		Store: m.store, Keys: p.stores.keys, Counters: p.stores.counters, Naming: p.stores.naming, GatewayToken: p.token,
		Schemas: p.schemaOptions(), PageSize: p.cfg.Admin.PageSize, LoginRate: p.cfg.Admin.LoginRate, Trusted: p.cfg.Admin.TrustedProxies, Version: Version(),
		Metrics: p.metrics, Scrape: p.scrape, Log: p.log,
		Retention: usage.Retention{Minutes: p.cfg.Usage.RetentionMinute, Hours: p.cfg.Usage.RetentionHour},
	}
	explainer, err := m.newExplainer(p)
	if err != nil {
		return nil, err
	}
	deps.Explain = explainer
	if deps.MasterKey, err = masterKey(p.cfg, p.log); err != nil {
		return nil, err
	}
	if deps.Portal, err = portalSettings(p.cfg, p.inUp); err != nil {
		return nil, err
	}
	hasher, err := newHasher(p.cfg.Keys)
	if err != nil {
		return nil, err
	}
	deps.KeyOptions = keyOptions(p.cfg, hasher)
	if p.stores.sharedKeys != nil {
		deps.Shared = p.stores.sharedKeys
	}
	if m.server, err = admin.New(deps); err != nil {
		m.store.Close()
		return nil, err
	}
	if err := m.bootstrap(ctx); err != nil {
		return nil, errors.Join(err, m.stop(time.Second))
	}
	return m, nil
}

// masterKey returns the key that seals secrets in the database: the configured
// one, or one of its own that the admin keeps.
func masterKey(cfg *config.Config, log *slog.Logger) (secret.Key, error) {
	if !cfg.Admin.MasterKey.Empty() {
		return configuredKeys(cfg)
	}
	key, _, err := secret.KeepKey(filepath.Join(cfg.DataDir, masterKeyFile))
	if err != nil {
		return secret.Key{}, fmt.Errorf("admin.master_key: %w", err)
	}
	// A rotation that was ended in the middle has sealed some with the next key.
	next, err := keptKey(filepath.Join(cfg.DataDir, nextKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return key, nil
	}
	if err != nil {
		return secret.Key{}, fmt.Errorf("admin.master_key: %w", err)
	}
	log.Warn("a change of the master key was not completed: stop this server and run sluice secrets rotate", "former", key.ID(), "next", next.ID())
	return key.After(next), nil
}

// configuredKeys returns the master key of the configuration, which also opens
// what the former one sealed.
func configuredKeys(cfg *config.Config) (secret.Key, error) {
	key, err := secret.ParseKey(cfg.Admin.MasterKey)
	if err != nil || cfg.Admin.FormerMasterKey.Empty() {
		return key, err
	}
	former, err := secret.ParseKey(cfg.Admin.FormerMasterKey)
	return key.After(former), err
}

// bootstrap makes the first admin. The key is on disk before the database knows
// it: a crash in between leaves no admin whose key nobody has.
func (m *management) bootstrap(ctx context.Context) (err error) {
	empty, err := m.store.IsEmpty(ctx)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if !empty {
		m.key, err = secret.ReadFile(m.keyFile)
		if errors.Is(err, os.ErrNotExist) {
			return nil // its holder took it away, as is good practice
		}
		return err
	}
	if m.key, _, err = secret.KeepFile(m.keyFile, admin.NewAccessKey); err != nil {
		return err
	}
	m.created, err = m.server.Bootstrap(ctx, m.key)
	return err
}

// tellKey shows the first admin's key, once.
func (m *management) tellKey(w io.Writer) {
	if m.created {
		say(w, "admin key      %s   (shown once; also in %s, mode 0600)\n", m.key.Reveal(), m.keyFile)
	}
}

func (m *management) stop(within time.Duration) error {
	err := m.shutDown(within)
	m.store.Close()
	return err
}

// shutDown stops the admin and leaves it its store, for who hands something over.
func (m *management) shutDown(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return m.server.Shutdown(ctx)
}

// serveBeside serves the admin to this process too, on connections in memory.
func (m *management) serveBeside(t *tasks, ln net.Listener) {
	t.start("admin in memory", func() error { return m.server.Serve(ln) })
}
