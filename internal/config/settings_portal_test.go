package config

import (
	"strings"
	"testing"
)

func TestThePortalsListenerIsItsOwn(t *testing.T) {
	for _, c := range []struct {
		at       string
		insecure bool
		says     string
	}{
		{"", false, ""},
		{"127.0.0.1:8082", false, ""},
		{":8082", true, ""},
		{":8082", false, "goes beyond loopback"},
		{"127.0.0.1:8081", false, "the same as admin.listen"},
		{":8080", true, "the same as gateway.listen"},
	} {
		config := Default()
		config.Admin.Listen, config.Gateway.Listen, config.Admin.Insecure, config.Portal.Listen = "127.0.0.1:8081", ":8080", c.insecure, c.at
		key, message := checkPortalListen(config)
		if (key == "") != (c.says == "") || !strings.Contains(message, c.says) {
			t.Errorf("%q: %s %s, want %q", c.at, key, message, c.says)
		}
	}
}

func TestLettersLeaveByAServerThatCanBeTrusted(t *testing.T) {
	for _, c := range []struct {
		change func(*Email)
		key    string
	}{
		{func(*Email) {}, ""},
		{func(e *Email) { e.Server = "mail.example.com:587" }, ""},
		{func(e *Email) { e.Server, e.TLS = "127.0.0.1:25", "none" }, ""},
		{func(e *Email) { e.Server, e.TLS = "mail.example.com:25", "none" }, "portal.email.tls"},
		{func(e *Email) { e.Server, e.TLS, e.Insecure = "mail.example.com:25", "none", true }, ""},
		{func(e *Email) { e.Server = ":25" }, "portal.email.server"},
		{func(e *Email) { e.Server, e.From = "mail.example.com:587", "Ann <ann@example.com>" }, "portal.email.from"},
		{func(e *Email) { e.Server, e.User = "mail.example.com:587", "ann" }, "portal.email.user"},
	} {
		config := Default()
		c.change(&config.Portal.Email)
		key, message := checkPlainSMTP(config)
		if key == "" {
			key, message = checkSender(config)
		}
		if key != c.key || (key != "") != (strings.Contains(message, "want") || strings.Contains(message, "use") || strings.Contains(message, "set")) {
			t.Errorf("%+v: %s %s, want %s", config.Portal.Email, key, message, c.key)
		}
	}
}
