package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/observe"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/gateway/usage"
	"github.com/sluicegate/sluice/gateway/wire"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/connections"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event/webhook"
	"github.com/sluicegate/sluice/internal/keys"
	"github.com/sluicegate/sluice/internal/secret"
	"github.com/valyala/fasthttp"
)

// Gateway runs a gateway that is configured by an admin or by files until ctx ends.
func Gateway(ctx context.Context, cfg *config.Config, o Options) error {
	base, err := newCommon(cfg, o, 0o700)
	if err != nil {
		return err
	}
	home := keysInFile
	var admin atomic.Pointer[source.Admin]
	if cfg.Gateway.AdminURL != "" {
		home = keysInValkey
		base.sealedWith = cfg.Gateway.Token
		base.gateways = func() int {
			if a := admin.Load(); a != nil {
				return a.Gateways()
			}
			return 1
		}
	}
	st, err := openStores(ctx, base, home)
	if err != nil {
		return err
	}
	over, err := toAdmin(&cfg.Gateway, base.log)
	if err != nil {
		return errors.Join(err, st.close())
	}
	n, err := newNode(nodeParts{common: base, stores: st, adminURL: cfg.Gateway.AdminURL, admin: over, token: cfg.Gateway.Token, secret: cfg.Secret})
	if err != nil {
		return errors.Join(err, st.close())
	}
	admin.Store(n.live.admin)
	if err := n.listen(); err != nil {
		return errors.Join(err, st.close())
	}
	if !o.Quiet {
		n.banner(o.Stdout, st.describe(cfg))
	}
	return n.run(ctx, o.SkipDrain, st.close)
}

// nodeParts are the parts of a node.
type nodeParts struct {
	common
	stores   *stores
	adminURL string            // "" for files
	admin    http.RoundTripper // nil: over the network, with Go's own
	token    secret.Value      // bearer token for the admin
	secret   secret.Value      // of the gateway API; empty: it is not served
	inUp     bool              // telemetry is on the admin's address
	usageTo  usage.Receiver    // of the counts of calls; nil: the admin, over the network
}

// node is a gateway with its configuration source, gateway API and telemetry.
type node struct {
	nodeParts
	plane   *plane
	usage   *usage.Operations
	shipped *shippedUsage // nil: there is no admin
	source  source.Source
	keys    *source.Keys // nil: there is no admin
	live    *live
	legacy  *legacyKeys  // nil: no legacy hashes are allowed
	control *control.API // nil: no secret
	sender  *webhook.Sender
	secure  *secure
	hangup  chan os.Signal

	traffic, controlLn, telemetryLn net.Listener   // nil: none
	side                            []*wire.Server // control and telemetry
}

func newNode(p nodeParts) (*node, error) {
	n := &node{nodeParts: p, live: new(live), usage: usage.NewOperations(), shipped: newShippedUsage(&p), hangup: make(chan os.Signal, 1)}
	signal.Notify(n.hangup, syscall.SIGHUP) // a signal during the start must neither be lost nor end the process
	var err error
	if n.secure, err = newSecure(p); err != nil {
		return nil, err
	}
	if len(p.cfg.Keys.LegacyHashes) > 0 {
		n.legacy = newLegacyKeys(p.log)
	}
	backend, err := n.connect()
	if err != nil {
		return nil, err
	}
	sink, sender, err := newHandling(p.common, n.live, p.inUp)
	if err != nil {
		return nil, err
	}
	n.sender = sender
	n.events.Add(sink)
	if p.secret.Empty() {
		p.log.Warn("the gateway API is not served: set secret to turn it on")
	} else if n.control, err = n.newControl(backend); err != nil {
		return nil, err
	}
	parts := planeParts{common: p.common, stores: p.stores, origin: n.live.source, usage: n.usage, shipped: n.shipped, sender: n.sender, secure: n.secure, legacy: n.legacy}
	health := control.NewHealth(control.Deps{Live: n.live, Health: n.components(), Stopping: n.live.stopping.Load, Version: Version(), Log: n.log})
	parts.health = health.Handle
	switch {
	case n.control == nil:
	case p.cfg.Gateway.ControlAddress(p.inUp) == "":
		parts.control = n.control.Handle
	default:
		parts.control = health.Handle
	}
	if n.plane, err = newPlane(parts); err != nil {
		return nil, err
	}
	if n.control != nil {
		n.plane.observer.Registry().MustRegister(n.control.Metrics())
	}
	n.live.keys = n.keysReady
	n.live.gateway.Store(n.plane.gateway)
	return n, nil
}

// backend is how the gateway API changes objects.
type backend struct {
	definitions control.Definitions
	keys        control.Keys
	reloader    control.Reloader
	group       control.GroupReloader
}

// connect creates the source and its backend.
func (n *node) connect() (b backend, err error) {
	if n.adminURL == "" {
		return n.connectFiles()
	}
	src, err := source.NewAdmin(source.AdminOptions{
		URL: n.adminURL, Token: n.token, Former: n.cfg.Gateway.FormerToken, Transport: n.admin, Gateway: gatewayName(&n.nodeParts),
		Group: n.cfg.Gateway.Group, Version: Version(), Tags: segments(n.cfg), StateDir: n.cfg.DataDir, CPU: n.cfg.Gateway.ReloadCPU, Log: n.log,
		Refusal: n.live.refusal, Answer: n.answers(gatewayName(&n.nodeParts)),
	})
	if err != nil {
		return b, err
	}
	n.source, n.live.admin = src, src
	n.keys, err = source.NewKeys(source.KeysOptions{
		URL: n.adminURL, Token: n.token, Transport: n.admin, Gateway: gatewayName(&n.nodeParts),
		StateDir: n.cfg.DataDir, Seal: n.stores.seal, Log: n.log,
	})
	if err != nil {
		return b, err
	}
	n.stores.asked.Store(n.keys)
	a, err := control.NewAdmin(control.AdminOptions{URL: n.adminURL, Token: n.token, Transport: n.admin, Live: n.live, ClearKeys: n.cfg.Keys.Hash == "none"})
	if err != nil {
		return b, err
	}
	n.secure.manage = a.Certificates()
	if n.legacy != nil {
		n.legacy.strengthen = a.Strengthen
	}
	return backend{a, a, a, a}, nil
}

// segments returns the tags of the gateway, not nil without any: then it serves the APIs
// without tags alone.
func segments(cfg *config.Config) []string { return append([]string{}, cfg.Gateway.Tags...) }

func (n *node) connectFiles() (b backend, err error) {
	g := n.cfg.Gateway
	src := source.NewFiles(source.FilesOptions{AppsDir: g.AppsDir, PoliciesFile: g.PoliciesFile, Tags: segments(n.cfg), Watch: g.Watch, CPU: g.ReloadCPU, Log: n.log})
	n.source = src
	files, err := control.NewFiles(control.FilesOptions{AppsDir: g.AppsDir, PoliciesFile: g.PoliciesFile, Live: n.live})
	if err != nil {
		return b, err
	}
	hasher, err := newHasher(n.cfg.Keys)
	if err != nil {
		return b, err
	}
	service := &keys.Service{
		Store: keys.Direct{Keys: n.stores.keys, Counters: n.stores.counters}, Counter: n.stores.counters, Naming: n.stores.naming,
		Policies: n.live.Policies, Orgs: n.live.orgs, Options: keyOptions(n.cfg, hasher), Now: time.Now,
		API: func(id string) *definition.API { // keys may be made before the reload
			if api := n.live.API(id); api != nil {
				return api
			}
			return files.Saved(id)
		},
	}
	if n.legacy != nil {
		n.legacy.strengthen = service.Strengthen
	}
	b = backend{definitions: files, keys: control.LocalKeys{Service: service}, reloader: src}
	if n.stores.sharedKeys != nil {
		b.group = n.stores.sharedKeys.Group(g.Group)
	}
	return b, nil
}

// components returns the parts of the gateway whose health is reported.
func (n *node) components() []control.Component {
	cached := func() bool { return n.plane.sessions.Stats().Entries > 0 }
	keyStore := control.KeyStore(n.stores.keys, cached)
	if n.stores.backed != nil {
		keyStore = control.SharedKeys(n.stores.backed.State, cached)
	}
	health := []control.Component{
		keyStore,
		control.Load(func() bool { return n.plane.overload.Stats().Shedding }),
		n.upstreamHealth(),
	}
	if n.secure.acme != nil {
		health = append(health, control.ACME(n.secure.acme.Status))
	}
	if n.stores.sharedCounts != nil {
		health = append(health, control.CounterStore(n.stores.sharedCounts.State))
	}
	return health
}

func (n *node) newControl(b backend) (*control.API, error) {
	return control.New(control.Deps{
		Secret: n.secret, LoginRate: n.cfg.Gateway.ControlLoginRate, Live: n.live, Definitions: b.definitions, Keys: b.keys, Reloader: b.reloader, Group: b.group, OrgLimits: n.cfg.EnforceOrgQuotas,
		ListKeys: n.cfg.Keys.ListHashed || n.cfg.Keys.Hash == "none", Certificates: n.secure.manage, Usage: n.usage, Answers: responseCache{n}, Explain: liveExplainer{n.live}, Connections: connections.Desk{Source: openConnections{n.live}}, Streams: n.controlledStreams(), Events: n.events, Health: n.components(), Stopping: n.live.stopping.Load, Version: Version(), Log: n.log,
	})
}

// telemetry returns the handler of metrics and health.
func (n *node) telemetry() fasthttp.RequestHandler {
	return n.plane.observer.Handler(observe.HandlerOptions{
		Metrics: n.cfg.Telemetry.Metrics, Token: n.cfg.Telemetry.Token.Reveal(), Ready: n.live.ready,
	})
}

// listen opens every address before anything else happens, so that a port in use is
// reported at once.
func (n *node) listen() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, n.unlisten())
		}
	}()
	if n.cfg.Gateway.Listen != "" {
		if n.traffic, err = listen("gateway.listen", n.cfg.Gateway.Listen); err != nil {
			return err
		}
	}
	if err = n.secure.listen(); err != nil {
		return err
	}
	if address := n.cfg.Gateway.ControlAddress(n.inUp); n.control != nil && address != "" {
		if n.controlLn, err = listen("gateway.control_listen", address); err != nil {
			return err
		}
	}
	if !n.inUp && n.cfg.Telemetry.Listen != "" {
		n.telemetryLn, err = listenTLS("telemetry.listen", n.cfg.Telemetry.Listen, "telemetry.tls", &n.cfg.Telemetry.TLS, n.log)
	}
	return err
}

// unlisten closes what listen opened.
func (n *node) unlisten() error {
	errs := []error{n.secure.close()}
	for _, ln := range []net.Listener{n.traffic, n.controlLn, n.telemetryLn} {
		if ln != nil {
			errs = append(errs, ln.Close())
		}
	}
	return errors.Join(errs...)
}

// url returns the address of traffic, over TLS if there is no other.
func (n *node) url() string {
	if n.traffic != nil {
		return urlOf(n.traffic)
	}
	return n.secure.url()
}

func listen(key, address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return ln, nil
}

// run serves until ctx ends, and then stops in order: first traffic, then what traffic
// needs.
func (n *node) run(ctx context.Context, skipDrain <-chan struct{}, closeStores func() error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	background := &tasks{fail: fail}
	n.startWork(work, background)
	serving := &tasks{fail: fail}
	if n.traffic != nil {
		serving.start("traffic", func() error { return n.plane.serve(n.traffic) })
	}
	if n.secure.ln != nil {
		serving.start("traffic over TLS", func() error { return n.secure.serve(n.plane.gateway) })
	}
	n.serveSide(serving)

	<-ctx.Done()
	n.log.Info("stopping", "cause", context.Cause(ctx))
	n.drain(ctx, skipDrain)
	serving.wait()
	endWork()
	background.wait()
	n.sayGoodbye()
	n.shipped.finish()
	n.plane.pools.Close()
	n.plane.graphs.Close()
	err := closeStores()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return errors.Join(cause, err)
	}
	return err
}

func (n *node) startWork(ctx context.Context, t *tasks) {
	n.secure.run(ctx, t)
	n.plane.run(ctx, t, n.secure.before(n.withSecrets(source.OfOrgs(n.source, n.cfg.Gateway.Organisations))))
	t.start("events", func() error { n.deliverEvents(ctx); return nil })
	t.start("expiring certificates", func() error { n.secure.watch(ctx, n.live.APIs, n.events.Raise); return nil })
	n.startKeys(ctx, t)
	if n.control != nil {
		t.start("gateway API", func() error { n.control.Run(ctx); return nil })
	}
	if n.stores.saver != nil {
		t.start("counters", func() error { return n.stores.saver.Run(ctx) })
	}
	if n.shipped != nil {
		t.start("usage", func() error { n.shipped.sender.Run(ctx); return nil })
	}
	if n.legacy != nil {
		t.start("legacy hashes", func() error { n.legacy.run(ctx); return nil })
	}
	t.start("signals", func() error { n.onHangup(ctx); return nil })
}

// startKeys follows the state of the shared key store, and what the admin reports about
// keys.
func (n *node) startKeys(ctx context.Context, t *tasks) {
	changed := func(string) {} // the admin in this process writes to the store itself
	if n.stores.backed != nil {
		changed = n.stores.backed.Changed
		t.start("key store", func() error { n.stores.backed.Run(ctx); return nil })
	}
	if n.keys != nil {
		t.start("changes of keys", func() error { n.keys.Follow(ctx, changed); return nil })
	}
}

// withSecrets returns a source that replaces references to secrets.
func (n *node) withSecrets(src source.Source) source.Source {
	return source.NewSecrets(src, source.SecretsOptions{Folders: n.cfg.Gateway.SecretFiles, Env: os.LookupEnv})
}

// keysReady reports whether the gateway can decide on keys, and what it does without.
func (n *node) keysReady() (ready bool, detail string) {
	if n.stores.backed == nil {
		return true, ""
	}
	switch now := n.stores.backed.State(); {
	case !now.Away:
		return true, ""
	case now.Admin:
		return true, "the key store does not answer; keys in memory are served, others are asked of the admin"
	case n.plane.sessions.Stats().Entries > 0:
		return true, "the key store does not answer; keys in memory are served, others get 503"
	case !n.live.hasKeys():
		return true, "the key store does not answer; no API asks for keys"
	}
	return false, "the key store does not answer, no key is in memory, and there is no answer of an admin"
}

// deliverEvents delivers events until ctx ends, and then those that are left before the
// webhooks stop.
func (n *node) deliverEvents(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	done := make(chan struct{})
	go func() { n.sender.Run(sending); close(done) }()
	n.events.Run(ctx)
	stop()
	<-done
}

// onHangup reloads files and certificates and reopens the access log at SIGHUP.
func (n *node) onHangup(ctx context.Context) {
	defer signal.Stop(n.hangup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.hangup:
		}
		if n.plane.access != nil {
			n.plane.access.Reopen()
		}
		if err := n.secure.reload(); err != nil {
			n.log.Error("certificates at SIGHUP; those there were stay in use", "err", err)
		}
		if files, ok := n.source.(*source.Files); ok {
			if err := files.Reload(ctx); err != nil {
				n.log.Error("reload at SIGHUP", "err", err)
			}
		}
	}
}

// drain lets balancers notice the stop, and then waits for requests in flight, each up to
// the configured time.
func (n *node) drain(stopped context.Context, skip <-chan struct{}) {
	n.live.stopping.Store(true)
	if errors.Is(context.Cause(stopped), context.Canceled) { // a gateway that failed may not accept any more
		n.leave(skip)
	}
	n.plane.limits.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Gateway.DrainTimeout)
	defer cancel()
	go func() {
		select {
		case <-skip:
			cancel()
		case <-ctx.Done():
		}
	}()
	if err := n.plane.gateway.Shutdown(ctx); err != nil {
		n.log.Warn("calls were cut off by the stop", "err", err)
	}
	for _, s := range n.side {
		if err := s.Shutdown(ctx); err != nil {
			n.log.Warn("stopping", "err", err)
		}
	}
}

// leave goes on accepting connections for gateway.drain_delay while the gateway is not
// ready. Each connection ends with its next answer.
func (n *node) leave(skip <-chan struct{}) {
	delay := n.cfg.Gateway.DrainDelay
	if delay == 0 {
		return
	}
	n.log.Info("not ready any more; connections are accepted for gateway.drain_delay yet", "drain_delay", delay)
	n.plane.gateway.Leave()
	over := time.NewTimer(delay)
	defer over.Stop()
	select {
	case <-over.C:
	case <-skip:
	}
}

// goodbyeTimeout bounds how long a stop waits for the admin.
const goodbyeTimeout = 2 * time.Second

// sayGoodbye tells the admin that the gateway serves no longer, unless the admin is in
// this process and stops as well.
func (n *node) sayGoodbye() {
	if n.live.admin == nil || n.inUp {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
	defer cancel()
	if err := n.live.admin.Goodbye(ctx); err != nil {
		n.log.Warn("the admin was not told of the stop and counts this gateway until it is silent for a while", "err", err)
	}
}
