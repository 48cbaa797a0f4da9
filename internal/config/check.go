package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/sluicegate/sluice/internal/secret"
)

// check reports every value that is not allowed, then values that contradict each other.
func (l *loader) check(role Role) {
	for _, f := range l.fields {
		if l.broken[f.key] {
			continue
		}
		if err := f.check(); err != nil {
			l.wrong(f.key, err.Error())
		}
	}
	for _, r := range rules {
		if slices.ContainsFunc(r.keys, func(key string) bool { return l.broken[key] }) {
			continue
		}
		if key, message := r.check(l.cfg); key != "" {
			l.wrong(key, message)
		}
	}
	for _, need := range needs {
		if slices.Contains(need.roles, role) && !l.broken[need.key] && need.missing(l.cfg) {
			l.wrong(need.key, need.message)
		}
	}
}

// wrong reports a problem where the value was set.
func (l *loader) wrong(key, message string) {
	l.broken[key] = true
	l.problem(l.places[key], key, message)
}

// check reports what the tags of f do not allow.
func (f field) check() error {
	if bounds := f.tag.Get("range"); bounds != "" {
		return f.checkRange(bounds)
	}
	if list, ok := f.value.Interface().([]string); ok {
		for _, item := range list {
			if err := f.checkText(item); err != nil {
				return err
			}
		}
		return nil
	}
	switch v := f.value.Interface().(type) {
	case string:
		return f.checkText(v)
	case secret.Value:
		return f.checkText(v.Reveal())
	}
	return nil
}

// checkRange compares the value with "least..most".
func (f field) checkRange(bounds string) error {
	least, most, err := f.bounds(bounds)
	if err != nil {
		return err
	}
	out := false
	if f.value.Kind() == reflect.Float64 {
		out = f.value.Float() < least.Float() || f.value.Float() > most.Float()
	} else {
		out = f.value.Int() < least.Int() || f.value.Int() > most.Int()
	}
	if out {
		low, high, _ := strings.Cut(bounds, "..")
		return fmt.Errorf("%s is out of range; want %s to %s", f, low, high)
	}
	return nil
}

func (f field) bounds(bounds string) (least, most reflect.Value, err error) {
	low, high, _ := strings.Cut(bounds, "..")
	bound := field{value: reflect.New(f.value.Type()).Elem()}
	if err := bound.setText(low); err != nil {
		return least, most, fmt.Errorf("lower bound: %w", err)
	}
	least = bound.value
	bound = field{value: reflect.New(f.value.Type()).Elem()}
	if err := bound.setText(high); err != nil {
		return least, most, fmt.Errorf("upper bound: %w", err)
	}
	return least, bound.value, nil
}

// checkText checks a text, which may be a secret: no message of a form that
// secrets have quotes it.
func (f field) checkText(text string) error {
	if text == "" {
		if f.tag.Get("required") == "true" {
			return fmt.Errorf("is empty; %s", f.hint())
		}
		return nil
	}
	if allowed := strings.Fields(f.tag.Get("oneof")); len(allowed) > 0 && !slices.Contains(allowed, text) {
		return notOneOf(text, allowed)
	}
	if form := f.tag.Get("form"); form != "" {
		return forms[form].check(text)
	}
	return nil
}

func notOneOf(text string, allowed []string) error {
	if near := didyoumean.Nearest(text, allowed); near != "" {
		return fmt.Errorf("%s is unknown; did you mean %s?", quote(text), near)
	}
	return fmt.Errorf("%s is unknown; want %s", quote(text), oneOf(allowed))
}

// oneOf writes a, b or c.
func oneOf(allowed []string) string {
	last := len(allowed) - 1
	if last == 0 {
		return allowed[0]
	}
	return strings.Join(allowed[:last], ", ") + " or " + allowed[last]
}

func (f field) hint() string {
	if allowed := strings.Fields(f.tag.Get("oneof")); len(allowed) > 0 {
		return "want " + oneOf(allowed)
	}
	if form := f.tag.Get("form"); form != "" {
		return "want " + forms[form].example
	}
	return "want a text"
}

// A rule checks settings that depend on each other.
type rule struct {
	keys  []string                            // of the rule; if one is invalid, the rule is skipped
	check func(*Config) (key, message string) // the key of the problem, or ""
}

var rules = []rule{
	{[]string{"gateway.max_url", "gateway.max_header"}, checkMaxURL},
	{[]string{"gateway.apps_dir", "gateway.admin_url", "gateway.policies_file"}, checkBundleSource},
	{[]string{"gateway.proxy_protocol", "gateway.trusted_proxies"}, checkProxyProtocol},
	{[]string{"gateway.listen", "gateway.control_listen", "gateway.control_on_traffic", "gateway.tls.listen"}, checkListeners},
	{[]string{"gateway.tls.listen", "gateway.tls.cert", "gateway.tls.key", "gateway.tls.certificates", "gateway.tls.client_ca"}, checkTLS},
	{[]string{"gateway.acme.domains", "gateway.acme.accept_terms", "gateway.acme.challenges", "gateway.tls.listen", "gateway.listen", "gateway.admin_url"}, checkACME},
	{[]string{"gateway.token", "gateway.former_token"}, checkFormerToken},
	{[]string{"admin.master_key"}, checkMasterKey},
	{[]string{"admin.former_master_key"}, checkFormerMasterKey},
	{[]string{"gateway.ratelimit_headers.limit", "gateway.ratelimit_headers.remaining", "gateway.ratelimit_headers.reset"}, checkHeaderNames},
	{[]string{"overload.target_delay"}, checkTargetDelay},
	{[]string{"admin.listen", "admin.insecure", "admin.tls.cert"}, checkPlainHTTP},
	{[]string{"portal.listen", "admin.listen", "gateway.listen", "admin.insecure", "portal.tls.cert"}, checkPortalListen},
	{[]string{"admin.tls.cert", "admin.tls.key", "admin.tls.client_ca", "portal.tls.cert", "portal.tls.key", "portal.tls.client_ca", "telemetry.tls.cert", "telemetry.tls.key", "telemetry.tls.client_ca", "portal.listen", "telemetry.listen"}, checkListenerTLS},
	{[]string{"gateway.admin_url", "gateway.admin_ca", "gateway.admin_cert", "gateway.admin_key"}, checkAdminCall},
	{[]string{"admin.hsts", "admin.tls.cert", "admin.trusted_proxies", "portal.hsts", "portal.listen", "portal.tls.cert"}, checkHSTS},
	{[]string{"portal.email.server", "portal.email.tls", "portal.email.insecure"}, checkPlainSMTP},
	{[]string{"portal.email.server", "portal.email.from", "portal.email.user", "portal.email.password"}, checkSender},
	{[]string{"telemetry.otlp.endpoint", "telemetry.otlp.insecure"}, checkCollector},
	{[]string{"streaming.allow_addresses"}, checkAllowAddresses},
	{[]string{"log.access", "log.access_file"}, checkAccessFile},
	{[]string{"valkey.url", "valkey.cluster", "valkey.sentinel_master", "valkey.username", "valkey.password"}, checkValkey},
	{[]string{"valkey.url", "valkey.cluster", "valkey.sentinel_master", "valkey.username", "valkey.password", "valkey.tls", "valkey.insecure"}, checkPlainValkey},
}

func checkMaxURL(c *Config) (key, message string) {
	if c.Gateway.MaxURL <= c.Gateway.MaxHeader {
		return "", ""
	}
	return "gateway.max_url", fmt.Sprintf("%s is more than gateway.max_header (%s), which holds the request line too", c.Gateway.MaxURL, c.Gateway.MaxHeader)
}

func checkBundleSource(c *Config) (key, message string) {
	switch g := c.Gateway; {
	case g.AppsDir != "" && g.AdminURL != "":
		return "gateway.apps_dir", "excludes gateway.admin_url: the configuration comes from files or from an admin; remove one"
	case g.PoliciesFile != "" && g.AppsDir == "":
		return "gateway.policies_file", "is read beside gateway.apps_dir only, which is empty"
	}
	return "", ""
}

func checkProxyProtocol(c *Config) (key, message string) {
	if !c.Gateway.ProxyProtocol || len(c.Gateway.TrustedProxies) > 0 {
		return "", ""
	}
	return "gateway.proxy_protocol", "is read from gateway.trusted_proxies only, which is empty; list the networks of the proxies"
}

func checkListeners(c *Config) (key, message string) {
	switch g := c.Gateway; {
	case g.Listen == "" && g.TLS.Listen == "":
		return "gateway.listen", "is empty, and so is gateway.tls.listen; want an address such as :8080"
	case sameAddress(g.Listen, g.ControlListen):
		return "gateway.control_listen", "is the same as gateway.listen; to serve both there, leave it empty and set gateway.control_on_traffic"
	case sameAddress(g.TLS.Listen, g.ControlListen):
		return "gateway.control_listen", "is the same as gateway.tls.listen; to serve both there, leave it empty and set gateway.control_on_traffic"
	case g.ControlOnTraffic && g.ControlListen != "":
		return "gateway.control_on_traffic", "excludes gateway.control_listen: the gateway API is served at one of them; remove the other"
	case sameAddress(g.Listen, g.TLS.Listen):
		return "gateway.tls.listen", "is the same as gateway.listen; leave that empty to serve TLS alone"
	}
	return "", ""
}

// checkTLS reports settings without effect, because a user may rely on them.
func checkTLS(c *Config) (key, message string) {
	t := c.Gateway.TLS
	switch {
	case t.Key != "" && t.Cert == "":
		return "gateway.tls.key", "is the key of gateway.tls.cert, which is empty"
	case t.Listen != "":
	case t.Cert != "":
		return "gateway.tls.cert", "has no effect without gateway.tls.listen; give an address such as :8443"
	case len(t.Certificates) > 0:
		return "gateway.tls.certificates", "has no effect without gateway.tls.listen; give an address such as :8443"
	case t.ClientCA != "":
		return "gateway.tls.client_ca", "has no effect without gateway.tls.listen; give an address such as :8443"
	}
	return "", ""
}

func checkFormerToken(c *Config) (key, message string) {
	switch former := c.Gateway.FormerToken; {
	case former.Empty():
		return "", ""
	case c.Gateway.Token.Empty():
		return "gateway.former_token", "needs the token that takes its place: set gateway.token too"
	case former.Reveal() == c.Gateway.Token.Reveal():
		return "gateway.former_token", "is the same as gateway.token: leave it out"
	}
	return "", ""
}

func checkMasterKey(c *Config) (key, message string) {
	return wrongKey("admin.master_key", c.Admin.MasterKey)
}

func checkFormerMasterKey(c *Config) (key, message string) {
	switch former := c.Admin.FormerMasterKey; {
	case former.Empty():
		return "", ""
	case c.Admin.MasterKey.Empty():
		return "admin.former_master_key", "needs the key that takes its place: set admin.master_key too"
	case former.Reveal() == c.Admin.MasterKey.Reveal():
		return "admin.former_master_key", "is the same as admin.master_key: leave it out"
	}
	return wrongKey("admin.former_master_key", c.Admin.FormerMasterKey)
}

// wrongKey reports a master key of the wrong form.
func wrongKey(setting string, text secret.Value) (key, message string) {
	if _, err := secret.ParseKey(text); err != nil && !text.Empty() {
		return setting, "is no key: want 64 hexadecimal digits, as openssl rand -hex 32 prints them"
	}
	return "", ""
}

func checkHeaderNames(c *Config) (key, message string) {
	names := c.Gateway.RatelimitHeaders
	switch {
	case sameName(names.Limit, names.Remaining), sameName(names.Remaining, names.Reset):
		return "gateway.ratelimit_headers.remaining", "is the name of another of the three headers"
	case sameName(names.Limit, names.Reset):
		return "gateway.ratelimit_headers.reset", "is the name of another of the three headers"
	}
	return "", ""
}

func checkTargetDelay(c *Config) (key, message string) {
	if d := c.Overload.TargetDelay; d == 0 || d >= time.Millisecond {
		return "", ""
	}
	return "overload.target_delay", fmt.Sprintf("%s is shorter than what a gateway with little to do needs; use 1ms or more, or 0s to refuse nothing", c.Overload.TargetDelay)
}

func checkPlainHTTP(c *Config) (key, message string) {
	if c.Admin.TLS.On() || c.Admin.Insecure || isLoopback(c.Admin.Listen) {
		return "", ""
	}
	return "admin.listen", "goes beyond loopback with plain HTTP; name a certificate in admin.tls.cert, use 127.0.0.1 or, when something in front terminates TLS, set admin.insecure to true"
}

// checkListenerTLS reports settings without effect.
func checkListenerTLS(c *Config) (key, message string) {
	for _, one := range []struct {
		key, listen, address string
		tls                  *ListenerTLS
	}{
		{"admin.tls", "admin.listen", c.Admin.Listen, &c.Admin.TLS},
		{"portal.tls", "portal.listen", c.Portal.Listen, &c.Portal.TLS},
		{"telemetry.tls", "telemetry.listen", c.Telemetry.Listen, &c.Telemetry.TLS},
	} {
		switch t := one.tls; {
		case t.Key != "" && !t.On():
			return one.key + ".key", "is the key of " + one.key + ".cert, which is empty"
		case t.ClientCA != "" && !t.On():
			return one.key + ".client_ca", "has no effect without " + one.key + ".cert"
		case t.On() && one.address == "":
			return one.key + ".cert", "has no effect without " + one.listen
		}
	}
	return "", ""
}

// checkAdminCall reports settings of the calls of the admin that have no effect.
func checkAdminCall(c *Config) (key, message string) {
	switch g, secure := c.Gateway, strings.HasPrefix(c.Gateway.AdminURL, "https://"); {
	case g.AdminKey != "" && g.AdminCert == "":
		return "gateway.admin_key", "is the key of gateway.admin_cert, which is empty"
	case g.AdminCA != "" && !secure:
		return "gateway.admin_ca", "has no effect unless gateway.admin_url begins with https://"
	case g.AdminCert != "" && !secure:
		return "gateway.admin_cert", "has no effect unless gateway.admin_url begins with https://"
	}
	return "", ""
}

func checkAccessFile(c *Config) (key, message string) {
	if c.Log.Access != "file" || c.Log.AccessFile != "" {
		return "", ""
	}
	return "log.access_file", "is empty; with log.access file, say which file"
}

func sameName(a, b string) bool { return a != "" && strings.EqualFold(a, b) }

// sameAddress reports whether two listeners would collide. Port 0 never does.
func sameAddress(a, b string) bool {
	return a == b && a != "" && !strings.HasSuffix(a, ":0")
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// A need is a setting that some roles require.
type need struct {
	roles   []Role
	key     string
	missing func(*Config) bool
	message string
}

var needs = []need{
	{
		[]Role{GatewayRole},
		"gateway.apps_dir",
		func(c *Config) bool { return c.Gateway.AppsDir == "" && c.Gateway.AdminURL == "" },
		"is empty, and so is gateway.admin_url; say where the configuration comes from: a folder (--apps) or an admin (--admin-url)",
	},
	{
		[]Role{GatewayRole},
		"gateway.token",
		func(c *Config) bool { return c.Gateway.AdminURL != "" && c.Gateway.Token.Empty() },
		"is empty; with gateway.admin_url, give the token that the admin has as its gateway.token",
	},
	{
		[]Role{AdminRole, MigrateRole},
		"database.url",
		func(c *Config) bool { return c.Database.URL.Empty() },
		"is empty; give the PostgreSQL to use, such as postgres://sluice@127.0.0.1/sluice",
	},
	{
		[]Role{UpRole, GatewayRole, AdminRole},
		"data_dir",
		func(c *Config) bool { return c.DataDir == "" },
		"is empty, and this user has no home directory; give a directory for state",
	},
}

// checkCollector prevents credentials in headers from being sent in clear text over a
// network.
func checkCollector(c *Config) (key, message string) {
	o := c.Telemetry.OTLP
	if o.Endpoint == "" || o.Insecure {
		return "", ""
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme == "https" || isLoopback(net.JoinHostPort(u.Hostname(), "0")) {
		return "", ""
	}
	return "telemetry.otlp.endpoint", "goes beyond loopback with plain HTTP; use https or set telemetry.otlp.insecure to true"
}
