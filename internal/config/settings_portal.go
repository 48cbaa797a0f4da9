package config

import (
	"net/mail"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/quantity"
	"github.com/sluicegate/sluice/internal/secret"
)

// Portal holds the settings of the developers' portal.
type Portal struct {
	// Address under which developers reach the portal, such as
	// https://developers.example.com/portal: the links in letters begin with it.
	// Empty: http://, admin.listen and /portal.
	PublicURL string `yaml:"public_url" form:"url"`
	// How long an access token of an OAuth client is in force.
	TokenTTL time.Duration `yaml:"token_ttl" range:"100ms..24h"`
	// The letters that developers get.
	Email Email `yaml:"email"`
}

// Email holds the settings of the server that sends letters.
type Email struct {
	// The SMTP server, host and port, such as mail.example.com:587. Empty: letters
	// are kept in a mailbox in the database, which admins can read.
	Server string `yaml:"server" form:"address"`
	// User there. Empty: nobody logs in.
	User string `yaml:"user"`
	// Password of that user.
	Password secret.Value `yaml:"password"`
	// How the connection is secured: starttls (letters go only once it is), tls
	// (from the first byte, as on port 465), or none, which needs a server on
	// loopback unless portal.email.insecure is set.
	TLS string `yaml:"tls" oneof:"starttls tls none" required:"true"`
	// PEM file of the authorities that the server's certificate is held against.
	// Empty: the system's.
	CAFile string `yaml:"ca_file"`
	// Permit portal.email.tls none beyond loopback.
	Insecure bool `yaml:"insecure"`
	// Whom letters are from when mail_options do not say.
	From string `yaml:"from"`
	// Time for one letter, from connecting to the server's last word.
	Timeout time.Duration `yaml:"timeout" range:"100ms..5m"`
	// Letters in the mailbox of one organisation; the oldest go, and so does what
	// is older than two weeks.
	MailboxSize int `yaml:"mailbox_size" range:"1..100000"`
}

func defaultPortal() Portal {
	return Portal{TokenTTL: time.Hour, Email: Email{
		TLS: "starttls", From: "portal@localhost", Timeout: 30 * time.Second, MailboxSize: 1000,
	}}
}

// checkPlainSMTP keeps letters, which hold keys, off networks that can be read.
func checkPlainSMTP(c *Config) (key, message string) {
	e := &c.Portal.Email
	if e.Server == "" || e.TLS != "none" || e.Insecure || isLoopback(e.Server) {
		return "", ""
	}
	return "portal.email.tls", "is none for a server beyond loopback; use starttls or tls or, when the way there cannot be read by others, set portal.email.insecure to true"
}

// checkSender checks who letters are from, and who sends them.
func checkSender(c *Config) (key, message string) {
	e := &c.Portal.Email
	if e.Server == "" {
		return "", ""
	}
	if strings.HasPrefix(e.Server, ":") {
		return "portal.email.server", "names no host; want such as mail.example.com:587"
	}
	if a, err := mail.ParseAddress(e.From); err != nil || a.Address != e.From {
		return "portal.email.from", "is " + quantity.Quote(e.From) + "; want an address such as portal@example.com"
	}
	if (e.User == "") != e.Password.Empty() {
		return "portal.email.user", "and portal.email.password go together; set both or none"
	}
	return "", ""
}
