package config

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// letsEncrypt is the directory of the authority that is used by default.
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// maxACMEDomains bounds gateway.acme.domains.
const maxACMEDomains = 100

// domainForm is the form of names that an authority validates.
var domainForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

func checkDomain(text string) error {
	switch {
	case strings.HasPrefix(text, "*."):
		return fmt.Errorf("%s is a wildcard, which cannot be validated over TLS or HTTP; list the domains one by one", quote(text))
	case !domainForm.MatchString(text) || len(text) > 253:
		return fmt.Errorf("%s is not a domain; want one such as api.example.com, in lower case, with xn-- in place of other letters", quote(text))
	}
	return nil
}

func checkEmail(text string) error {
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		return fmt.Errorf("%s is not an address; want one such as admin@example.com", quote(text))
	}
	return nil
}

func checkDirectory(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s is not a directory of ACME; want such as %s", quoteURL(text), letsEncrypt)
	case u.User != nil:
		return errors.New("has a user or password in it, which ACME does not use")
	}
	return nil
}

// On reports whether certificates are obtained by ACME.
func (a *ACME) On() bool { return len(a.Domains) > 0 }

func checkACME(c *Config) (key, message string) {
	a, g := &c.Gateway.ACME, &c.Gateway
	sorted := slices.Sorted(slices.Values(a.Domains))
	switch {
	case !a.On():
		return "", ""
	case len(a.Domains) > maxACMEDomains:
		return "gateway.acme.domains", fmt.Sprintf("has %d domains; want at most %d", len(a.Domains), maxACMEDomains)
	case len(slices.Compact(sorted)) < len(a.Domains):
		return "gateway.acme.domains", "lists a domain twice"
	case !a.AcceptTerms:
		return "gateway.acme.accept_terms", "is not true; an authority issues certificates only to those who agree to its terms of service"
	case g.TLS.Listen == "":
		return "gateway.acme.domains", "has no effect without gateway.tls.listen; give an address such as :8443"
	case len(a.Challenges) == 0:
		return "gateway.acme.challenges", "is empty; want tls-alpn-01, http-01 or both"
	case g.Listen == "" && slices.Equal(a.Challenges, []string{"http-01"}):
		return "gateway.acme.challenges", "has http-01 alone, which is answered at gateway.listen, which is empty"
	case g.AdminURL == "" || strings.HasPrefix(g.AdminURL, "https://"):
		return "", ""
	}
	if u, err := url.Parse(g.AdminURL); err != nil || !isLoopback(u.Host) && !isLoopback(u.Host+":80") {
		return "gateway.acme.domains", "needs https in gateway.admin_url, since private keys go there"
	}
	return "", ""
}
