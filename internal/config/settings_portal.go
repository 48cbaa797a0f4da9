package config

import (
	"fmt"
	"net/mail"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
)

// Portal holds the settings of the developers' portal.
type Portal struct {
	// Address that serves the portal's pages, the REST calls of developers and /oauth, and
	// nothing else of the admin, which then need not be public. Addresses other than
	// loopback require portal.tls, or admin.insecure. Empty: they are on admin.listen.
	Listen string `yaml:"listen" form:"address"`
	// TLS at portal.listen.
	TLS ListenerTLS `yaml:"tls"`
	// As admin.hsts, for portal.listen. On admin.listen the portal has that of the admin.
	HSTS time.Duration `yaml:"hsts" range:"0s..730d"`
	// URL at which developers reach the portal, such as
	// https://developers.example.com/portal; links in mails and pages begin with it. Empty:
	// http:// or https://, portal.listen or else admin.listen, and /portal.
	PublicURL string `yaml:"public_url" form:"url"`
	// Id of the organisation whose portal visitors see, and sign up to, unless a call names
	// another (org_id). Developers who are signed in see that of their own. Empty: the first
	// organisation.
	Organisation string `yaml:"organisation"`
	// URL at which developers reach the gateways, such as https://api.example.com; examples
	// in the portal show it. Empty: the gateway's own address in `up`, a placeholder
	// elsewhere.
	GatewayURL string `yaml:"gateway_url" form:"url"`
	// Whether webhooks of developers may call private and loopback addresses: refuse, or
	// allow, as developers choose the URLs. For webhooks of the organisation
	// events.private_targets decides. Link-local and metadata addresses are never called.
	PrivateWebhooks string `yaml:"private_webhooks" oneof:"refuse allow" required:"true"`
	// Lifetime of an access token of an OAuth client.
	TokenTTL time.Duration `yaml:"token_ttl" range:"100ms..24h"`
	// Mails to developers.
	Email Email `yaml:"email"`
}

// Email holds the settings of the mail server.
type Email struct {
	// The SMTP server, host and port, such as mail.example.com:587. Empty: mails are kept
	// in a mailbox in the database, which admins can read.
	Server string `yaml:"server" form:"address"`
	// User of the SMTP server. Empty: no authentication.
	User string `yaml:"user"`
	// Password of that user.
	Password secret.Value `yaml:"password"`
	// How the connection is secured: starttls (required before a mail is sent), tls (from
	// the first byte, as on port 465), or none, which requires a server on loopback
	// unless portal.email.insecure is set.
	TLS string `yaml:"tls" oneof:"starttls tls none" required:"true"`
	// PEM file of the authorities trusted for the server's certificate. Empty: the
	// system's.
	CAFile string `yaml:"ca_file"`
	// Allow portal.email.tls none for servers that are not on loopback.
	Insecure bool `yaml:"insecure"`
	// Default sender of mails, if mail_options has none.
	From string `yaml:"from"`
	// Time to send one mail, from connecting to the server's last response.
	Timeout time.Duration `yaml:"timeout" range:"100ms..5m"`
	// Mails in the mailbox of one organisation; the oldest are deleted, as are mails
	// older than two weeks.
	MailboxSize int `yaml:"mailbox_size" range:"1..100000"`
}

func defaultPortal() Portal {
	return Portal{TLS: ListenerTLS{MinVersion: "1.2"}, PrivateWebhooks: "refuse", TokenTTL: time.Hour, Email: Email{
		TLS: "starttls", From: "portal@localhost", Timeout: 30 * time.Second, MailboxSize: 1000,
	}}
}

// checkPortalListen checks the address of the portal's own listener.
func checkPortalListen(c *Config) (key, message string) {
	switch at := c.Portal.Listen; {
	case at == "":
	case sameAddress(at, c.Admin.Listen):
		return "portal.listen", "is the same as admin.listen; leave it empty to serve the portal there"
	case sameAddress(at, c.Gateway.Listen):
		return "portal.listen", "is the same as gateway.listen; choose another port"
	case !c.Portal.TLS.On() && !c.Admin.Insecure && !isLoopback(at):
		return "portal.listen", "goes beyond loopback with plain HTTP; name a certificate in portal.tls.cert, use 127.0.0.1 or, when something in front terminates TLS, set admin.insecure to true"
	}
	return "", ""
}

// checkHSTS reports a time for HTTPS that is never sent.
func checkHSTS(c *Config) (key, message string) {
	const never = "is never sent without %s.tls.cert, unless admin.trusted_proxies say https in X-Forwarded-Proto; set one of them"
	behind := len(c.Admin.TrustedProxies) > 0
	switch {
	case c.Admin.HSTS > 0 && !c.Admin.TLS.On() && !behind:
		return "admin.hsts", fmt.Sprintf(never, "admin")
	case c.Portal.HSTS > 0 && c.Portal.Listen == "":
		return "portal.hsts", "has no effect without portal.listen; the portal on admin.listen has admin.hsts"
	case c.Portal.HSTS > 0 && !c.Portal.TLS.On() && !behind:
		return "portal.hsts", fmt.Sprintf(never, "portal")
	}
	return "", ""
}

// checkPlainSMTP prevents mails, which hold keys, from being sent in clear text over a
// network.
func checkPlainSMTP(c *Config) (key, message string) {
	e := &c.Portal.Email
	if e.Server == "" || e.TLS != "none" || e.Insecure || isLoopback(e.Server) {
		return "", ""
	}
	return "portal.email.tls", "is none for a server beyond loopback; use starttls or tls or, when the way there cannot be read by others, set portal.email.insecure to true"
}

// checkSender checks the sender of mails and the mail server.
func checkSender(c *Config) (key, message string) {
	e := &c.Portal.Email
	if e.Server == "" {
		return "", ""
	}
	if strings.HasPrefix(e.Server, ":") {
		return "portal.email.server", "names no host; want such as mail.example.com:587"
	}
	if a, err := mail.ParseAddress(e.From); err != nil || a.Address != e.From {
		return "portal.email.from", "is " + quote(e.From) + "; want an address such as portal@example.com"
	}
	if (e.User == "") != e.Password.Empty() {
		return "portal.email.user", "and portal.email.password go together; set both or none"
	}
	return "", ""
}
