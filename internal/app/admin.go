package app

import (
	"bytes"
	"cmp"
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
	"github.com/sluicegate/sluice/admin/rest"
	"github.com/sluicegate/sluice/admin/rotatemaster"
	"github.com/sluicegate/sluice/admin/schemas"
	"github.com/sluicegate/sluice/admin/store"
	"github.com/sluicegate/sluice/admin/ui"
	"github.com/sluicegate/sluice/admin/usage"
	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/dialguard"
	"github.com/sluicegate/sluice/internal/disk"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/sluicegate/sluice/internal/secret"
)

// Admin runs the admin on a PostgreSQL until ctx ends.
func Admin(ctx context.Context, cfg *config.Config, o Options) error {
	base, err := newCommon(cfg, o, 0o700)
	if err != nil {
		return err
	}
	if base.sealedWith, err = sealSecret(cfg); err != nil {
		return err
	}
	ln, err := listenAdmin(cfg, base.log)
	if err != nil {
		return err
	}
	st, err := openStores(ctx, base, keysToValkey)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	watch := watchAdmin(base, st)
	scrape := watch.Handler(observe.HandlerOptions{Metrics: cfg.Telemetry.Metrics, Token: cfg.Telemetry.Token.Reveal()})
	waiting := databaseWait{url: cfg.Database.URL, ln: ln, scrape: scrape, log: base.log}
	if err := waiting.until(ctx); err != nil {
		return errors.Join(err, ln.Close(), st.close())
	}
	m, err := newManagement(ctx, managementParts{
		cfg: cfg, origins: o.Origins, url: urlOf(ln), database: cfg.Database.URL, stores: st, token: cfg.Gateway.Token, log: base.log, events: base.events,
		metrics: watch.Registry(), scrape: scrape,
	})
	if err != nil {
		return errors.Join(err, ln.Close(), st.close())
	}
	if !o.Quiet {
		say(o.Stdout, "counters       %s\nadmin          %s\n", st.describe(cfg), urlOf(ln))
		m.printPortal(o.Stdout, cfg, ln)
		m.printKey(o.Stdout)
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	t := &tasks{fail: fail}
	t.start("admin", func() error { return m.server.Serve(ln) })
	m.servePortal(t)
	t.start("events", func() error { base.events.Run(ctx); return nil })
	t.start("key store", func() error { st.backed.Run(ctx); return nil })
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

// watchAdmin returns the metrics of a process without a gateway.
func watchAdmin(base common, st *stores) *observe.Observer {
	watch := observe.New(observe.Options{Version: Version(), Log: base.log})
	watch.Registry().MustRegister(st.metrics(), base.events.Metrics())
	return watch
}

// managementParts are the parts of the admin.
type managementParts struct {
	cfg      *config.Config
	origins  config.Origins
	url      string // of the admin, on this machine
	database secret.Value
	stores   *stores
	token    secret.Value // of the gateways
	log      *slog.Logger
	metrics  prometheus.Registerer
	scrape   fasthttp.RequestHandler
	inUp     bool // the gateway is in this process
	events   *event.Bus
	gateway  *gateway.Gateway // in this process; nil: there is none
	traffic  string           // URL of that gateway
}

// schemaOptions returns which upstreams may be introspected.
func (p *managementParts) schemaOptions() schemas.Options {
	private := p.cfg.Admin.PrivateUpstreams
	return schemas.Options{
		Addresses: dialguard.Policy{Private: private == "allow" || private == "auto" && p.inUp},
		CAFile:    p.cfg.Upstream.CAFile,
	}
}

// management is the admin with its database.
type management struct {
	server *admin.Server
	store  *store.Store

	portalLn net.Listener // of the portal alone; nil: it is served with the admin

	key     secret.Value // of the first admin
	keyFile string
	created bool // by this start
	log     *slog.Logger
}

// newManagement migrates the database and creates the first admin user if there is none.
func newManagement(ctx context.Context, p managementParts) (m *management, err error) {
	if _, err := store.Migrate(ctx, p.database.Reveal()); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	if p.cfg.Admin.Insecure && len(p.cfg.Admin.TrustedProxies) == 0 {
		p.log.Warn("admin.insecure is for an admin behind a proxy, and admin.trusted_proxies names none: all callers share the proxy's address in admin.login_rate and in the audit log")
	}
	m = &management{keyFile: filepath.Join(p.cfg.DataDir, "admin.key"), log: p.log}
	m.store, err = store.Open(ctx, store.Options{
		URL: p.database.Reveal(), MaxConns: p.cfg.Database.MaxConns, StatementTimeout: p.cfg.Database.StatementTimeout, Log: p.log,
	})
	if err != nil {
		return nil, err
	}
	deps := admin.Deps{
		Store: m.store, Keys: p.stores.keys, Counters: p.stores.counters, Naming: p.stores.naming, GatewayToken: p.token, FormerGatewayToken: p.cfg.Gateway.FormerToken,
		Schemas: p.schemaOptions(), PageSize: p.cfg.Admin.PageSize, LoginRate: p.cfg.Admin.LoginRate, Trusted: p.cfg.Admin.TrustedProxies, Version: Version(),
		Metrics: p.metrics, Scrape: p.scrape, Log: p.log,
		AuditRetention: p.cfg.Admin.AuditRetention, Streaming: p.cfg.Streaming.Enabled,
		Retention: usage.Retention{
			Minutes: p.cfg.Usage.RetentionMinute, Hours: p.cfg.Usage.RetentionHour, Refusals: p.cfg.Usage.RetentionRefusals,
			Samples: p.cfg.Usage.RetentionSamples, MostSamples: p.cfg.Usage.SamplesKept,
		},
	}
	deps.AccessKeyChanged, deps.PublicURL, deps.HSTS = m.followKey, p.cfg.Admin.PublicURL, p.cfg.Admin.HSTS
	deps.Settings, deps.Examine = p.settings, p.examine
	if deps.UI, err = ui.New(ui.Options{Base: ui.BasePath(p.cfg.Admin.PublicURL), Version: Version()}); err != nil {
		return nil, err
	}
	explainer, err := m.newExplainer(p)
	if err != nil {
		return nil, err
	}
	deps.Explain, deps.Play, deps.Try = explainer, newPlayer(explainer), newPlayer(explainer)
	deps.Compare, deps.TryStream = replayer{explainer}, streamTrier{explainer, p.cfg.Streaming}
	if deps.MasterKey, err = m.masterKey(ctx, p); err != nil {
		m.store.Close()
		return nil, err
	}
	if deps.Portal, err = portalSettings(p.cfg, p.inUp); err != nil {
		return nil, err
	}
	if p.cfg.Portal.GatewayURL == "" && p.traffic != "" {
		deps.Portal.Gateway = func() string { return p.traffic }
	}
	hasher, err := newHasher(p.cfg.Keys)
	if err != nil {
		return nil, err
	}
	deps.KeyOptions, deps.OrgLimits = keyOptions(p.cfg, hasher), p.cfg.EnforceOrgQuotas
	if p.stores.sharedKeys != nil {
		deps.Shared, deps.Seal = p.stores.sharedKeys, p.stores.seal
	}
	if m.server, err = admin.New(deps); err != nil {
		m.store.Close()
		return nil, err
	}
	if err = m.bootstrap(ctx); err == nil && deps.Portal.Apart {
		m.portalLn, err = listenTLS("portal.listen", p.cfg.Portal.Listen, "portal.tls", &p.cfg.Portal.TLS, p.log)
	}
	if err != nil {
		return nil, errors.Join(err, m.stop(time.Second))
	}
	return m, nil
}

// sealSecret returns the secret that sessions in the shared store are sealed with:
// gateway.token, or without one admin.master_key or a secret in data_dir. Gateways are
// told the key that is derived from it.
func sealSecret(cfg *config.Config) (secret.Value, error) {
	switch {
	case !cfg.Gateway.Token.Empty():
		return cfg.Gateway.Token, nil
	case !cfg.Admin.MasterKey.Empty():
		return cfg.Admin.MasterKey, nil
	}
	kept, _, err := secret.KeepFile(filepath.Join(cfg.DataDir, "sessions.seal"), admin.NewAccessKey)
	return kept, err
}

// masterKey returns the key that encrypts secrets in the database: the configured one,
// or one that the admin keeps in data_dir. Another key than that of the database is
// refused.
func (m *management) masterKey(ctx context.Context, p managementParts) (secret.Key, error) {
	key, made, err := masterKey(p.cfg, p.log)
	if err != nil {
		return secret.Key{}, err
	}
	err = rotatemaster.Check(ctx, m.store, key)
	wrong, refused := errors.AsType[*rotatemaster.WrongKeyError](err)
	if !refused {
		return key, err
	}
	path := filepath.Join(p.cfg.DataDir, masterKeyFile)
	text := "set admin.master_key to the key that the other admins of this database have"
	switch {
	case made:
		text = "no key is configured, and " + path + " did not exist: " + text + ", or copy that file from one of them"
		err = os.Remove(path) // a key of this start that nothing is sealed with
	case p.cfg.Admin.MasterKey.Empty():
		text = "the key is that of " + path + ": " + text + ", or copy that file from one of them"
		err = nil
	default:
		err = nil
	}
	return secret.Key{}, errors.Join(fmt.Errorf("admin.master_key: %w; %s", wrong, text), err)
}

// masterKey returns the configured key, or the one in data_dir; made reports that it is a
// new one.
func masterKey(cfg *config.Config, log *slog.Logger) (key secret.Key, made bool, err error) {
	if !cfg.Admin.MasterKey.Empty() {
		key, err = configuredKeys(cfg)
		return key, false, err
	}
	key, made, err = secret.KeepKey(filepath.Join(cfg.DataDir, masterKeyFile))
	if err != nil {
		return secret.Key{}, false, fmt.Errorf("admin.master_key: %w", err)
	}
	// An interrupted rotation has encrypted some values with the next key.
	next, err := keptKey(filepath.Join(cfg.DataDir, nextKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return key, made, nil
	}
	if err != nil {
		return secret.Key{}, false, fmt.Errorf("admin.master_key: %w", err)
	}
	log.Warn("a change of the master key was not completed: stop this server and run sluice secrets rotate", "former", key.ID(), "next", next.ID())
	return key.After(next), made, nil
}

// configuredKeys returns the master key of the configuration, which can also decrypt
// with the former one.
func configuredKeys(cfg *config.Config) (secret.Key, error) {
	key, err := secret.ParseKey(cfg.Admin.MasterKey)
	if err != nil || cfg.Admin.FormerMasterKey.Empty() {
		return key, err
	}
	former, err := secret.ParseKey(cfg.Admin.FormerMasterKey)
	return key.After(former), err
}

// bootstrap creates the first admin user. Its key is on disk before the database has it,
// so that a crash cannot lose it.
func (m *management) bootstrap(ctx context.Context) (err error) {
	empty, err := m.store.IsEmpty(ctx)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	if !empty {
		m.key, err = secret.ReadFile(m.keyFile)
		if errors.Is(err, os.ErrNotExist) {
			return nil // moved away by its holder, as is good practice
		}
		if err == nil {
			err = m.checkKey(ctx)
		}
		return err
	}
	if m.key, _, err = secret.KeepFile(m.keyFile, admin.NewAccessKey); err != nil {
		return err
	}
	m.created, err = m.server.Bootstrap(ctx, m.key)
	return err
}

// checkKey warns of a file with a key that no user has any more.
func (m *management) checkKey(ctx context.Context) error {
	_, err := m.store.UserByKey(ctx, rest.HashOf([]byte(m.key.Reveal())))
	if errors.Is(err, store.ErrNotFound) {
		m.log.Warn("no user has the access key in this file: it was reset elsewhere, or its user was deleted or is inactive; replace the key in it, or remove the file", "file", m.keyFile)
		return nil
	}
	return err
}

// followKey keeps the file with the first admin's key up to date when that key changes.
func (m *management) followKey(former []byte, now secret.Value) {
	held, err := secret.ReadFile(m.keyFile)
	if err != nil || !bytes.Equal(rest.HashOf([]byte(held.Reveal())), former) {
		return // moved away by its holder, or the key of another user
	}
	what := "the file follows the access key of its user, which was reset"
	if now.Empty() {
		what, err = "the file was removed with the user whose access key it held", os.Remove(m.keyFile)
	} else {
		err = disk.WriteFile(m.keyFile, []byte(now.Reveal()+"\n"), 0o600)
	}
	if err != nil {
		m.log.Error("the file holds an access key that has ended: remove it", "file", m.keyFile, "err", err)
		return
	}
	m.log.Info(what, "file", m.keyFile)
}

// printKey prints the first admin user's key if it was created by this start.
func (m *management) printKey(w io.Writer) {
	if m.created {
		say(w, "admin key      %s   (shown once; also in %s, mode 0600)\n", m.key.Reveal(), m.keyFile)
	}
}

// printLink prints a link that signs the first admin user in, at the admin's URL.
func (m *management) printLink(ctx context.Context, w io.Writer, url string) {
	link, err := m.server.EnterLink(ctx, m.key, url)
	if err != nil {
		m.log.Warn("no link to sign in could be made; sluice user enter makes one", "err", err)
		return
	}
	say(w, "sign in        %s\n               (works once, within 10 minutes; sluice user enter prints another)\n", link)
}

func (m *management) stop(within time.Duration) error {
	err := m.shutDown(within)
	m.store.Close()
	return err
}

// shutDown stops the admin and leaves the store open.
func (m *management) shutDown(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return m.server.Shutdown(ctx)
}

// servePortal serves the portal on its own listener, if it has one.
func (m *management) servePortal(t *tasks) {
	if m.portalLn != nil {
		t.start("portal", func() error { return m.server.ServePortal(m.portalLn) })
	}
}

// printPortal prints where the portal is. adminLn has it unless it has a listener of its
// own.
func (m *management) printPortal(w io.Writer, cfg *config.Config, adminLn net.Listener) {
	at := adminLn
	if m.portalLn != nil {
		at = m.portalLn
	}
	say(w, "portal         %s\n", cmp.Or(cfg.Portal.PublicURL, urlOf(at)+"/portal")+"/")
}

// serveBeside also serves the admin on connections in memory.
func (m *management) serveBeside(t *tasks, ln net.Listener) {
	t.start("admin in memory", func() error { return m.server.Serve(ln) })
}
