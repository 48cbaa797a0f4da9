package app

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/sluicegate/sluice/admin/delivery"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/gateway/stage/playground"
	"github.com/sluicegate/sluice/internal/config"
	"github.com/sluicegate/sluice/internal/dialguard"
)

// portalSettings returns the settings of the portal. inUp: admin and gateway are in one
// process.
func portalSettings(cfg *config.Config, inUp bool) (portal.Settings, error) {
	settings := portal.Settings{Outbound: webhookTargets(&cfg.Events, inUp), Developer: dialguard.Policy{Private: cfg.Portal.PrivateWebhooks == "allow"}, PublicURL: cfg.Portal.PublicURL, Organisation: cfg.Portal.Organisation, Mailbox: cfg.Portal.Email.MailboxSize, TokenTTL: cfg.Portal.TokenTTL}
	if settings.PublicURL == "" {
		at, tls := cfg.Portal.Listen, &cfg.Portal.TLS
		if at == "" {
			at, tls = cfg.Admin.Listen, &cfg.Admin.TLS
		}
		settings.PublicURL = tls.Scheme() + "://" + at + "/portal"
	}
	settings.Apart, settings.HSTS = cfg.Portal.Listen != "", cfg.Portal.HSTS
	settings.Playground = playground.Script()
	settings.Gateway = func() string { return cfg.Portal.GatewayURL }
	if cfg.Portal.Email.Server == "" {
		return settings, nil
	}
	server, err := mailServer(&cfg.Portal.Email)
	settings.Server = server
	return settings, err
}

func mailServer(cfg *config.Email) (*delivery.MailServer, error) {
	host, port, err := net.SplitHostPort(cfg.Server)
	if err != nil {
		return nil, fmt.Errorf("portal.email.server: %w", err)
	}
	server := &delivery.MailServer{Host: host, TLS: cfg.TLS, User: cfg.User, Password: cfg.Password, From: cfg.From, Timeout: cfg.Timeout}
	if server.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("portal.email.server: %w", err)
	}
	if cfg.CAFile == "" {
		return server, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("portal.email.ca_file: %w", err)
	}
	server.Roots = x509.NewCertPool()
	if !server.Roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("portal.email.ca_file: %s holds no certificate in PEM", cfg.CAFile)
	}
	return server, nil
}
