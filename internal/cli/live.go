package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sluicegate/sluice/internal/cli/shell"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/spf13/cobra"
)

// probeWithin is how long a server of this machine may take to answer a probe.
const probeWithin = 3 * time.Second

// The paths of probes.
const (
	livePath  = "/live"
	readyPath = "/ready"
)

// probe reports what the server of this machine answers at the path of a probe: the gateway
// where one is configured by an admin or by files, else the admin.
func (s *session) probe(cmd *cobra.Command, t *shell.Target, path string) error {
	cfg, _, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	s.Trusted(&t.TLS)
	own, err := t.TLS.Own()
	if err != nil {
		return err
	}
	url := probedURL(cfg) + path
	if err := answers(cmd.Context(), url, own); err != nil {
		return shell.Exit(shell.ExitFailed, fmt.Sprintf("%s: %v", url, shell.BareCause(err)))
	}
	return s.Remark("%s answers", url)
}

// probedURL returns where the server of this machine answers probes.
func probedURL(cfg *config.Config) string {
	switch t := &cfg.Telemetry; {
	case !cfg.Gateway.Alone():
		return shell.URLOf(cfg.Admin.Listen, cfg.Admin.TLS.On())
	case t.Listen != "":
		return shell.URLOf(t.Listen, t.TLS.On())
	}
	return trafficURL(cfg)
}

// trafficURL returns where the gateway of this machine takes calls, "" if nowhere.
func trafficURL(cfg *config.Config) string {
	switch g := &cfg.Gateway; {
	case g.Listen != "":
		return shell.URLOf(g.Listen, false)
	case g.TLS.Listen != "":
		return shell.URLOf(g.TLS.Listen, true)
	}
	return ""
}

// ownTransport calls a server of this machine with the client certificate, which may be nil.
// The server's certificate is not looked at, because it names the server as others call it:
// no secret may be sent this way.
func ownTransport(own *tls.Certificate) *http.Transport {
	conf := &tls.Config{InsecureSkipVerify: true}
	if own != nil {
		conf.Certificates = []tls.Certificate{*own}
	}
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: conf}
}

// answers calls a server with the client certificate, which may be nil. One that refuses the
// client's certificate, or the lack of it, lives.
func answers(ctx context.Context, url string, own *tls.Certificate) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: ownTransport(own)}
	resp, err := client.Do(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && req.URL.Path == livePath {
		return nil
	}
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // the status is enough
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
