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

// liveWithin is how long a server of this machine may take to say that it lives.
const liveWithin = 3 * time.Second

// checkLive reports whether the server of this machine answers: the gateway where one is
// configured by an admin or by files, else the admin.
func (s *session) checkLive(cmd *cobra.Command) error {
	cfg, _, err := s.Load(cmd, config.AnyRole)
	if err != nil {
		return err
	}
	url := liveURL(cfg)
	if err := live(cmd.Context(), url); err != nil {
		return shell.Exit(shell.ExitFailed, fmt.Sprintf("%s: %v", url, shell.BareCause(err)))
	}
	return s.Remark("%s answers", url)
}

// liveURL returns where the server of this machine says that it lives.
func liveURL(cfg *config.Config) string {
	switch t := &cfg.Telemetry; {
	case !cfg.Gateway.Alone():
		return shell.URLOf(cfg.Admin.Listen, cfg.Admin.TLS.On()) + "/live"
	case t.Listen != "":
		return shell.URLOf(t.Listen, t.TLS.On()) + "/live"
	case cfg.Gateway.Listen != "":
		return shell.URLOf(cfg.Gateway.Listen, false) + "/live"
	}
	return shell.URLOf(cfg.Gateway.TLS.Listen, true) + "/live"
}

// live calls a server, without a credential: its certificate is not looked at, because it
// names the server as others call it. One that wants a certificate from its clients lives.
func live(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, liveWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Do(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
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
