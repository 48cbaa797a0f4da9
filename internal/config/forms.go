package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/secret"
)

// A form is a format of text, named in the form tag.
type form struct {
	example string
	check   func(text string) error
}

// forms holds every form by name. The checks of sent, guarded, pairs, postgres and valkey handle
// secrets and never quote them.
var forms = map[string]form{
	"address":   {"an address such as :8080 or 127.0.0.1:8080", checkAddress},
	"url":       {"an address such as https://admin.internal:8081", checkURL},
	"header":    {"a header name such as X-RateLimit-Limit", checkHeader},
	"name":      {"a name of letters, digits, ., _ and -", checkName},
	"domain":    {"a domain such as api.example.com", checkDomain},
	"email":     {"an address such as admin@example.com", checkEmail},
	"directory": {"an address such as https://acme.example.com/directory", checkDirectory},
	"folder":    {"an absolute path such as /run/secrets", checkFolder},
	"token":     {"up to 32 letters, digits, _ and -", checkToken},
	"postgres":  {"an address such as postgres://sluice@127.0.0.1/sluice", checkPostgres},
	"sent":      {"one line of text", secret.CheckHeader},
	"guarded":   {"at least 16 characters, such as openssl rand -hex 24 prints", checkGuarded},
	"pairs":     {"name=value, with commas between", checkPairs},
	"valkey":    {"an address such as redis://127.0.0.1:6379", checkValkeyURL},
}

var (
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$") // RFC 9110, section 5.6.2
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	tokenForm  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	hostForm   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
)

// checkAddress checks the address of a listener: a host, which may be empty, and a port.
func checkAddress(text string) error {
	if strings.Trim(text, "0123456789") == "" {
		return fmt.Errorf("%s is not an address; did you mean :%s?", quote(text), text)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%s is not an address; want host and port, such as :8080, 127.0.0.1:8080 or [::1]:8080", quote(text))
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil && !isHostname(host) {
		return fmt.Errorf("%s has the host %s, which is neither an IP address nor a host name", quote(text), quote(host))
	}
	return checkPort(text, port)
}

func checkPort(text, port string) error {
	if n, err := strconv.ParseUint(port, 10, 32); err != nil || n > 65535 {
		return fmt.Errorf("%s has the port %s; want a number from 0 to 65535", quote(text), quote(port))
	}
	return nil
}

// isHostname reports whether host is a host name. Digits and dots only are taken for a
// mistyped IP address.
func isHostname(host string) bool {
	return hostForm.MatchString(host) && strings.Trim(host, "0123456789.") != ""
}

// checkURL checks the base URL of another Sluice. A user or password in it is refused,
// because such URLs are logged.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%s is not a web address; want such as https://admin.internal:8081", quoteURL(text))
	case u.User != nil:
		return errors.New("has a user or password in it; use gateway.token instead")
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s has a query or fragment; want only scheme, host and perhaps a path", quote(text))
	}
	return nil
}

// quoteURL quotes an address unless it might hold a password.
func quoteURL(text string) string {
	if strings.Contains(text, "@") {
		return "the address"
	}
	return quote(text)
}

func checkHeader(text string) error {
	if !headerForm.MatchString(text) {
		return fmt.Errorf("%s is not a header name; want letters, digits and -, such as X-RateLimit-Limit", quote(text))
	}
	return nil
}

func checkName(text string) error {
	if !nameForm.MatchString(text) {
		return fmt.Errorf("%s is not a name; want up to 128 letters, digits, ., _ and -", quote(text))
	}
	return nil
}

func checkFolder(text string) error {
	if !filepath.IsAbs(text) || filepath.Clean(text) == "/" {
		return fmt.Errorf("%s is not an absolute path, or is that of everything; want one such as /run/secrets", quote(text))
	}
	return nil
}

func checkToken(text string) error {
	if !tokenForm.MatchString(text) {
		return fmt.Errorf("%s has other characters or is too long; want up to 32 letters, digits, _ and -", quote(text))
	}
	return nil
}

// leastSecret is how many characters a secret has at least that is compared with what
// callers send.
const leastSecret = 16

// checkGuarded checks a secret that callers send in a header, and could guess.
func checkGuarded(text string) error {
	if utf8.RuneCountInString(text) < leastSecret {
		return fmt.Errorf("is too short, as it could be guessed; want at least %d characters, such as openssl rand -hex 24 prints", leastSecret)
	}
	return secret.CheckHeader(text)
}

// checkPairs checks headers, whose values may be secrets.
func checkPairs(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || !headerForm.MatchString(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return errors.New("is no list of headers; want name=value, with commas between")
		}
	}
	return nil
}

// checkPostgres rejects obvious mistakes; the driver checks the rest.
func checkPostgres(text string) error {
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		if rest != "" && (scheme == "postgres" || scheme == "postgresql") {
			return nil
		}
	} else if strings.Contains(text, "=") { // host=… dbname=…
		return nil
	}
	return errors.New("is not the address of a PostgreSQL; want such as postgres://sluice@127.0.0.1/sluice")
}

func checkValkeyURL(text string) error {
	_, err := parseValkeyURL(text)
	return err
}
