package app

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/sluicegate/sluice/internal/certs"
	"github.com/sluicegate/sluice/internal/config"
)

// tlsVersion returns the version of TLS that a setting names.
func tlsVersion(text string) uint16 {
	if text == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// listenTLS opens an address that is not for traffic, over TLS if it is set up.
func listenTLS(key, address, setting string, conf *config.ListenerTLS, log *slog.Logger) (net.Listener, error) {
	if !conf.On() {
		return listen(key, address)
	}
	secure, err := certs.NewListener(certs.ListenerOptions{
		Setting: setting, Pair: certs.Pair{Cert: conf.Cert, Key: conf.Key}, ClientCA: conf.ClientCA, MinVersion: tlsVersion(conf.MinVersion), Log: log,
	})
	if err != nil {
		return nil, err
	}
	ln, err := listen(key, address)
	if err != nil {
		return nil, err
	}
	return secure.Over(ln), nil
}

// listenAdmin opens the address of the admin.
func listenAdmin(cfg *config.Config, log *slog.Logger) (net.Listener, error) {
	return listenTLS("admin.listen", cfg.Admin.Listen, "admin.tls", &cfg.Admin.TLS, log)
}

// toAdmin returns the transport of calls of the admin, nil for Go's own.
func toAdmin(g *config.Gateway, log *slog.Logger) (http.RoundTripper, error) {
	o := certs.CallerOptions{CA: g.AdminCA, Pair: certs.Pair{Cert: g.AdminCert, Key: g.AdminKey}, Log: log}
	if o.IsZero() {
		return nil, nil
	}
	caller, err := certs.NewCaller(o)
	if err != nil {
		return nil, fmt.Errorf("gateway.admin_ca and gateway.admin_cert: %w", err)
	}
	return caller.Transport(), nil
}
