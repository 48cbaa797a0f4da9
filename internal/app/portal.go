package app

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/sluicegate/sluice/admin/mail"
	"github.com/sluicegate/sluice/admin/portal"
	"github.com/sluicegate/sluice/internal/config"
)

// portalOf returns where developers reach the portal, and how letters leave it.
func portalOf(cfg *config.Config) (url string, letters portal.LetterOptions, err error) {
	url = cfg.Portal.PublicURL
	if url == "" {
		url = "http://" + cfg.Admin.Listen + "/portal"
	}
	letters.Mailbox = cfg.Portal.Email.MailboxSize
	if cfg.Portal.Email.Server != "" {
		letters.Server, err = mailServer(&cfg.Portal.Email)
	}
	return url, letters, err
}

func mailServer(cfg *config.Email) (*mail.Server, error) {
	host, port, err := net.SplitHostPort(cfg.Server)
	if err != nil {
		return nil, fmt.Errorf("portal.email.server: %w", err)
	}
	server := &mail.Server{Host: host, TLS: cfg.TLS, User: cfg.User, Password: cfg.Password, From: cfg.From, Timeout: cfg.Timeout}
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
