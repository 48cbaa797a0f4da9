package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/sluicegate/sluice/gateway"
	"github.com/sluicegate/sluice/gateway/acme"
	"github.com/sluicegate/sluice/gateway/certs"
	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/gateway/wire"
	shown "github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/event"
	"github.com/valyala/fasthttp"
)

// secure is traffic over TLS, and the certificates that definitions refer to.
type secure struct {
	conf   config.TLS
	store  *certs.Store
	manage control.Certificates // nil: the admin's
	remote *certs.Remote        // nil: there is no admin
	server *certs.Server        // nil: TLS is not spoken
	ln     net.Listener         // nil likewise
	acme   *acme.Manager        // nil: ACME is off
}

func newSecure(p nodeParts) (s *secure, err error) {
	s = &secure{conf: p.cfg.Gateway.TLS, store: new(certs.Store)}
	if p.adminURL != "" {
		s.remote, err = certs.NewRemote(certs.RemoteOptions{
			URL: p.adminURL, Token: p.token, Former: p.cfg.Gateway.FormerToken, Transport: p.admin, StateDir: p.cfg.DataDir, Store: s.store, Log: p.log,
		})
	} else {
		var folder *certs.Folder
		folder, err = certs.OpenFolder(filepath.Join(p.cfg.DataDir, "certs"), s.store, p.log)
		s.manage = inFolder{folder}
	}
	if err != nil || s.conf.Listen == "" {
		return s, err
	}
	o := certs.ServerOptions{
		ClientCA: s.conf.ClientCA, AlwaysAsk: s.conf.AskClients == "always", Domains: p.cfg.Gateway.CustomDomains,
		MinVersion: tlsVersion(s.conf.MinVersion), Store: s.store, Log: p.log,
	}
	if p.cfg.Gateway.ACME.On() {
		o.Issued = new(certs.Store)
		if s.acme, err = newACME(&p, o.Issued); err != nil {
			return nil, err
		}
		o.Challenge = s.acme.Handshake
	}
	if s.conf.Cert != "" {
		o.Files = append(o.Files, shown.Pair{Cert: s.conf.Cert, Key: s.conf.Key})
	}
	for _, text := range s.conf.Certificates {
		pair, err := shown.ParsePair(text)
		if err != nil {
			return nil, fmt.Errorf("gateway.tls.certificates: %w", err)
		}
		o.Files = append(o.Files, pair)
	}
	if s.server, err = certs.NewServer(o); err != nil {
		return nil, fmt.Errorf("gateway.tls: %w", err)
	}
	return s, nil
}

// listen opens the address for TLS, if there is one.
func (s *secure) listen() (err error) {
	if s.server != nil {
		s.ln, err = listen("gateway.tls.listen", s.conf.Listen)
	}
	return err
}

// close closes what listen opened.
func (s *secure) close() error {
	if s.ln == nil {
		return nil
	}
	return s.ln.Close()
}

// url is where traffic over TLS goes.
func (s *secure) url() string { return "https" + strings.TrimPrefix(urlOf(s.ln), "http") }

// serve accepts traffic over TLS until the listener fails or g is shut down.
func (s *secure) serve(g *gateway.Gateway) error {
	err := g.ServeTLS(s.ln, &wire.Secure{
		Config: s.server.Config, Timeout: s.conf.HandshakeTimeout, Pending: s.conf.MaxHandshakes, Failed: s.server.Failed,
	})
	if errors.Is(err, wire.ErrStopped) {
		return nil
	}
	return err
}

// before returns a source that updates the certificates before each bundle.
func (s *secure) before(src source.Source) source.Source {
	if s.remote == nil {
		return src
	}
	return s.remote.Before(src)
}

// run keeps certificates up to date until ctx ends.
func (s *secure) run(ctx context.Context, t *tasks) {
	if s.remote != nil {
		t.start("certificates", func() error { s.remote.Run(ctx); return nil })
	}
	if s.acme != nil {
		t.start("certificates by ACME", func() error { s.acme.Run(ctx); return nil })
	}
	if s.server != nil {
		t.start("certificates of TLS", func() error { s.server.Run(ctx); return nil })
	}
}

// watch raises events about certificates that expire, until ctx ends.
func (s *secure) watch(ctx context.Context, apis func() []*definition.API, raise func(event.Event)) {
	e := certs.Expiries{Server: s.server, Store: s.store, APIs: apis, Raise: raise}
	e.Run(ctx)
}

// reload reads certificates of files again.
func (s *secure) reload() error {
	if s.server == nil {
		return nil
	}
	return s.server.Reload()
}

// stages passes the certificates to the stages. s may be nil.
func (s *secure) stages(to *snapshot.Stages) {
	if s == nil {
		return
	}
	to.Certificates = s.store
}

// handshakes returns what configures TLS handshakes, or nil. s may be nil.
func (s *secure) handshakes() gateway.Handshakes {
	if s == nil || s.server == nil {
		return nil
	}
	return s.server
}

// challenges returns what answers challenges of ACME, or nil. s may be nil.
func (s *secure) challenges() gateway.Challenges {
	if s == nil || s.acme == nil {
		return nil
	}
	return s.acme
}

// inFolder converts the errors of a folder of certificates to those of the gateway API.
type inFolder struct{ *certs.Folder }

// Add implements control.Certificates.
func (f inFolder) Add(ctx context.Context, org string, text []byte) (id string, err error) {
	id, err = f.Folder.Add(ctx, org, text)
	_, taken := errors.AsType[*shown.TakenError](err)
	_, full := errors.AsType[*shown.FullError](err)
	switch {
	case taken || full:
		return "", &control.Error{Status: fasthttp.StatusConflict, Message: "The certificate " + err.Error()}
	case errors.Is(err, certs.ErrOrg):
		return "", &control.Error{Status: fasthttp.StatusBadRequest, Message: err.Error()}
	}
	return id, err
}

// Get implements control.Certificates.
func (f inFolder) Get(ctx context.Context, id string) (shown.Info, error) {
	info, err := f.Folder.Get(ctx, id)
	return info, known(err)
}

// Delete implements control.Certificates.
func (f inFolder) Delete(ctx context.Context, id string) error {
	return known(f.Folder.Delete(ctx, id))
}

func known(err error) error {
	if errors.Is(err, certs.ErrNotFound) {
		return control.ErrNotFound
	}
	return err
}
