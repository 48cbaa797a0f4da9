package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/secret"
)

// A ValkeyTarget combines valkey.url with the settings of its user, password and TLS.
type ValkeyTarget struct {
	Addresses []string // host:port each, or the path of one socket
	Unix      bool     // Addresses holds the path of a socket
	Username  string
	Password  secret.Value
	DB        int
	TLS       bool
}

// Target returns where and how to reach the store. It is the zero ValkeyTarget
// when valkey.url is empty. Load has checked that there is no error.
func (v Valkey) Target() (ValkeyTarget, error) {
	if v.URL.Empty() {
		return ValkeyTarget{}, nil
	}
	t, err := parseValkeyURL(v.URL.Reveal())
	if err != nil {
		return ValkeyTarget{}, fmt.Errorf("valkey.url: %w", err)
	}
	t.TLS = t.TLS || v.TLS
	if v.Username != "" {
		t.Username = v.Username
	}
	if !v.Password.Empty() {
		t.Password = v.Password
	}
	return t, nil
}

// parseValkeyURL reads redis://user:password@host:port,host:port/db, rediss://
// and unix://path. Its errors do not quote the address, which is a secret.
func parseValkeyURL(text string) (ValkeyTarget, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return ValkeyTarget{}, errors.New("has no scheme; want such as redis://127.0.0.1:6379, rediss://host:6379 or unix:///path/to/socket")
	}
	switch scheme {
	case "redis", "rediss":
		return parseServers(rest, scheme == "rediss")
	case "unix":
		if !strings.HasPrefix(rest, "/") {
			return ValkeyTarget{}, errors.New("has no absolute path; want unix:///path/to/socket, with three slashes")
		}
		return ValkeyTarget{Addresses: []string{rest}, Unix: true}, nil
	}
	return ValkeyTarget{}, fmt.Errorf("has the unknown scheme %s; want redis, rediss or unix", quote(scheme))
}

func parseServers(rest string, tls bool) (ValkeyTarget, error) {
	t := ValkeyTarget{TLS: tls}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if err := t.setUser(rest[:at]); err != nil {
			return ValkeyTarget{}, err
		}
		rest = rest[at+1:]
	}
	servers, db, hasDB := strings.Cut(rest, "/")
	if hasDB && db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return ValkeyTarget{}, errors.New("has something else than the number of a database behind its last /")
		}
		t.DB = int(n)
	}
	for server := range strings.SplitSeq(servers, ",") {
		address, err := withPort(strings.TrimSpace(server))
		if err != nil {
			return ValkeyTarget{}, err
		}
		t.Addresses = append(t.Addresses, address)
	}
	return t, nil
}

// setUser reads user:password or :password, percent-encoded.
func (t *ValkeyTarget) setUser(info string) error {
	user, password, _ := strings.Cut(info, ":")
	name, err := url.PathUnescape(user)
	if err != nil {
		return errors.New("has a user with a broken percent encoding")
	}
	word, err := url.PathUnescape(password)
	if err != nil {
		return errors.New("has a password with a broken percent encoding")
	}
	t.Username, t.Password = name, secret.New(word)
	return nil
}

// withPort adds the store's usual port when there is none.
func withPort(server string) (string, error) {
	if server == "" {
		return "", errors.New("names no server; want such as redis://127.0.0.1:6379")
	}
	if !strings.Contains(server, ":") || strings.HasSuffix(server, "]") {
		server += ":6379"
	}
	if checkAddress(server) != nil || strings.HasPrefix(server, ":") {
		return "", errors.New("has a server that is not host:port; several are separated by commas, as in redis://one:6379,two:6379")
	}
	return server, nil
}

// checkPlainValkey refuses a store beyond loopback that anybody in the network could
// write to, or whose password could be read there.
func checkPlainValkey(c *Config) (key, message string) {
	target, err := c.Valkey.Target()
	if err != nil || c.Valkey.Insecure || target.Unix {
		return "", ""
	}
	for _, address := range target.Addresses {
		switch {
		case isLoopback(address):
		case target.Password.Empty():
			return "valkey.url", "goes beyond loopback without a password; set valkey.password, or valkey.insecure to true where only Sluice can reach the store"
		case !target.TLS:
			return "valkey.url", "goes beyond loopback without TLS; use rediss://, or set valkey.insecure to true where nobody else can read the network"
		}
	}
	return "", ""
}

// checkValkey reports settings of the store that do not go together.
func checkValkey(c *Config) (key, message string) {
	v := c.Valkey
	if v.URL.Empty() {
		if v.Cluster || v.SentinelMaster != "" {
			return "valkey.url", "is empty, but valkey.cluster or valkey.sentinel_master is set"
		}
		return "", ""
	}
	inURL, err := parseValkeyURL(v.URL.Reveal())
	if err != nil {
		return "", "" // reported by the form
	}
	switch {
	case v.Cluster && v.SentinelMaster != "":
		return "valkey.cluster", "excludes valkey.sentinel_master: a store is a cluster or watched by Sentinel"
	case v.Cluster && inURL.DB != 0:
		return "valkey.url", "names a database, but a cluster has only database 0"
	case inURL.Unix && (v.Cluster || v.SentinelMaster != ""):
		return "valkey.url", "is a socket, which reaches neither a cluster nor Sentinel"
	case len(inURL.Addresses) > 1 && !v.Cluster && v.SentinelMaster == "":
		return "valkey.url", "names several servers; set valkey.cluster or valkey.sentinel_master, or keep one"
	case inURL.Username != "" && v.Username != "":
		return "valkey.username", "is given in valkey.url too; keep one"
	case !inURL.Password.Empty() && !v.Password.Empty():
		return "valkey.password", "is given in valkey.url too; keep one"
	}
	return "", ""
}
