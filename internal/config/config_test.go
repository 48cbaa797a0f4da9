package config

import (
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/secret"
	"github.com/sluicegate/sluice/internal/testenv/golden"
)

func TestALaterSourceWins(t *testing.T) {
	first := "gateway: {listen: ':1', group: first, drain_timeout: 1s, read_timeout: 1s}\n"
	second := "gateway:\n  group: second\n  drain_timeout: 2s\n  read_timeout: 2s\n"
	cfg, origins, err := load(t, Sources{
		Env:   []string{"SLUICE_GATEWAY_DRAIN_TIMEOUT=3s", "SLUICE_GATEWAY_READ_TIMEOUT=3s"},
		Flags: []Flag{{"--read", "gateway.read_timeout", "4s"}},
	}, first, second)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, got, want, origin string }{
		{"gateway.max_url", cfg.Gateway.MaxURL.String(), "8KiB", "default"},
		{"gateway.listen", cfg.Gateway.Listen, ":1", "a.yaml:1"},
		{"gateway.group", cfg.Gateway.Group, "second", "b.yaml:2"},
		{"gateway.drain_timeout", cfg.Gateway.DrainTimeout.String(), "3s", "env SLUICE_GATEWAY_DRAIN_TIMEOUT"},
		{"gateway.read_timeout", cfg.Gateway.ReadTimeout.String(), "4s", "flag --read"},
	} {
		if c.got != c.want || origins[c.key].String() != c.origin {
			t.Errorf("%s = %s from %s, want %s from %s", c.key, c.got, origins[c.key], c.want, c.origin)
		}
	}
}

func TestAMistakeInAnEarlierFileIsReportedThoughALaterOneWins(t *testing.T) {
	_, _, err := load(t, Sources{}, "gateway: {read_timeout: 15}\n", "gateway: {read_timeout: 15s}\n")
	if err == nil || !strings.Contains(err.Error(), "a.yaml:1:25") {
		t.Errorf("error %v", err)
	}
}

func TestARangeIsCheckedOnTheValueThatWins(t *testing.T) {
	cfg, _, err := load(t, Sources{}, "gateway: {read_timeout: 0s}\n", "gateway: {read_timeout: 15s}\n")
	if err != nil || cfg.Gateway.ReadTimeout != 15*time.Second {
		t.Errorf("%v, %v", cfg, err)
	}
}

func TestSecretsComeFromTextsReferencesAndFiles(t *testing.T) {
	file := "secret: plain-in-the-text\ngateway: {token: {file: token.txt}}\ntelemetry: {token: {env: ELSEWHERE}}\n"
	cfg, origins, err := load(t, Sources{Env: []string{"ELSEWHERE=from-env", "SLUICE_VALKEY_PASSWORD_FILE=token.txt", "SLUICE_VALKEY_SENTINEL_PASSWORD=verbatim"}}, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		got               secret.Value
		want, key, origin string
	}{
		{cfg.Secret, "plain-in-the-text", "secret", "a.yaml:1"},
		{cfg.Gateway.Token, "from-a-file-on-disk", "gateway.token", "a.yaml:2"},
		{cfg.Telemetry.Token, "from-env", "telemetry.token", "a.yaml:3"},
		{cfg.Valkey.Password, "from-a-file-on-disk", "valkey.password", "env SLUICE_VALKEY_PASSWORD_FILE"},
		{cfg.Valkey.SentinelPassword, "verbatim", "valkey.sentinel_password", "env SLUICE_VALKEY_SENTINEL_PASSWORD"},
	} {
		if c.got.Reveal() != c.want || origins[c.key].String() != c.origin {
			t.Errorf("%s = %q from %s, want %q from %s", c.key, c.got.Reveal(), origins[c.key], c.want, c.origin)
		}
	}
	if shown := cfg.YAML(origins) + fmt.Sprintf("%+v %v", cfg, cfg.Settings(origins)); strings.Contains(shown, "from-") || strings.Contains(shown, "verbatim") || strings.Contains(shown, "plain") {
		t.Errorf("a secret is shown:\n%s", shown)
	}
}

func TestFilesThatSayNothingChangeNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "gateway:\n  # listen: x\nkeys:\n", "null\n"} {
		cfg, origins, err := load(t, Sources{}, text)
		if err != nil || len(origins) != 0 {
			t.Errorf("%q: %v, %v", text, origins, err)
			continue
		}
		want := Default()
		want.DataDir = cfg.DataDir
		if !reflect.DeepEqual(cfg, want) {
			t.Errorf("%q: differs from the default", text)
		}
	}
}

func TestFilesOfOtherEditorsAreRead(t *testing.T) {
	cfg, origins, err := load(t, Sources{}, "\xef\xbb\xbfgateway:\r\n  group: win\r\n")
	if err != nil || cfg.Gateway.Group != "win" || origins["gateway.group"].Line != 2 {
		t.Errorf("%v, %v", origins, err)
	}
}

func TestASettingMayHaveAnotherName(t *testing.T) {
	cfg, origins, err := load(t, Sources{}, "http_server_options:\n  enable_websockets: true\n")
	if err != nil || !cfg.Gateway.Websockets || origins["gateway.websockets"].Line != 2 {
		t.Errorf("%v, %v", origins, err)
	}
}

func TestWebSocketsAreTurnedOnByThreeNames(t *testing.T) {
	for _, c := range []struct {
		file, variable string
		want           bool
	}{
		{"", "", false},
		{"gateway:\n  websockets: true\n", "", true},
		{"http_server_options:\n  enable_websockets: true\n", "", true},
		{"", "SLUICE_GATEWAY_WEBSOCKETS=true", true},
		{"http_server_options:\n  enable_websockets: true\n", "SLUICE_GATEWAY_WEBSOCKETS=false", false},
	} {
		var s Sources
		if c.variable != "" {
			s.Env = []string{c.variable}
		}
		if cfg, _, err := load(t, s, c.file); err != nil || cfg.Gateway.Websockets != c.want {
			t.Errorf("%q %q: %v, want on: %t", c.file, c.variable, err, c.want)
		}
	}
}

func TestVariablesOfContainerLinksAreNotSettings(t *testing.T) {
	_, origins, err := load(t, Sources{Env: []string{
		"SLUICE_SERVICE_HOST=10.0.0.1", "SLUICE_SERVICE_PORT=80", "SLUICE_SERVICE_PORT_HTTP=80", "SLUICE_PORT=tcp://10.0.0.1:80",
		"SLUICE_PORT_80_TCP=tcp://10.0.0.1:80", "SLUICE_PORT_80_TCP_ADDR=10.0.0.1", "SLUICE_PORT_80_TCP_PORT=80", "SLUICE_PORT_80_TCP_PROTO=tcp",
		"SLUICE_ADMIN_SERVICE_HOST=10.0.0.1", "SLUICE_GATEWAY_PORT=tcp://10.0.0.1:80", "OTHER=1",
	}})
	if err != nil || len(origins) != 0 {
		t.Errorf("%v, %v", origins, err)
	}
}

// sample is a value for f that differs from its default and is allowed.
func sample(f field) string {
	switch f.value.Type() {
	case durationType:
		if strings.HasPrefix(f.tag.Get("range"), "1s") {
			return "7s"
		}
		if strings.HasSuffix(f.tag.Get("range"), "d") {
			return "40d"
		}
		return "777ms"
	case bytesType:
		return map[bool]string{true: "2KiB", false: "3MiB"}[strings.HasPrefix(f.key, "gateway.")]
	case prefixesType:
		return "10.0.0.0/8,fd00::/8"
	}
	switch f.value.Kind() {
	case reflect.Bool:
		return fmt.Sprint(!f.value.Bool())
	case reflect.Int:
		if strings.HasPrefix(f.tag.Get("range"), "400") {
			return "418"
		}
		if strings.HasSuffix(f.tag.Get("range"), "..1") {
			return "0"
		}
		return "4"
	case reflect.Float64:
		return "0.25"
	}
	for word := range strings.FieldsSeq(f.tag.Get("oneof")) {
		if word != f.String() && word != "file" {
			return word
		}
	}
	if f.key == "admin.master_key" || f.key == "admin.former_master_key" {
		return strings.Repeat("0a", 32)
	}
	forms := map[string]string{
		"address": "127.0.0.1:0", "url": "https://a", "pairs": "x=y", "postgres": "postgres://a/b", "valkey": "redis://127.0.0.1:1",
		"guarded": "sixteen-letters!", "folder": "/run/a",
		"domain": "a.example.com", "email": "a@example.com", "directory": "https://a/dir",
	}
	if text := forms[f.tag.Get("form")]; text != "" {
		return text
	}
	return "x"
}

// company holds what some settings need beside them.
var company = map[string]string{
	"gateway.policies_file":  "SLUICE_GATEWAY_APPS_DIR=apps",
	"gateway.max_header":     "SLUICE_GATEWAY_MAX_URL=1KiB",
	"gateway.proxy_protocol": "SLUICE_GATEWAY_TRUSTED_PROXIES=10.0.0.0/8",
	"gateway.acme.domains":   "SLUICE_GATEWAY_ACME_ACCEPT_TERMS=true SLUICE_GATEWAY_TLS_LISTEN=:8443",
	"valkey.cluster":         "SLUICE_VALKEY_URL=redis://127.0.0.1:1",
	"valkey.sentinel_master": "SLUICE_VALKEY_URL=redis://127.0.0.1:1",

	"gateway.tls.cert":         "SLUICE_GATEWAY_TLS_LISTEN=:1",
	"gateway.tls.key":          "SLUICE_GATEWAY_TLS_LISTEN=:1 SLUICE_GATEWAY_TLS_CERT=x",
	"gateway.tls.certificates": "SLUICE_GATEWAY_TLS_LISTEN=:1",
	"gateway.tls.client_ca":    "SLUICE_GATEWAY_TLS_LISTEN=:1",
	"gateway.admin_ca":         "SLUICE_GATEWAY_ADMIN_URL=https://a",
	"gateway.admin_cert":       "SLUICE_GATEWAY_ADMIN_URL=https://a",
	"gateway.admin_key":        "SLUICE_GATEWAY_ADMIN_URL=https://a SLUICE_GATEWAY_ADMIN_CERT=x",
	"admin.hsts":               "SLUICE_ADMIN_TLS_CERT=x",
	"portal.hsts":              "SLUICE_PORTAL_LISTEN=127.0.0.1:1 SLUICE_PORTAL_TLS_CERT=x",
	"admin.tls.key":            "SLUICE_ADMIN_TLS_CERT=x",
	"admin.tls.client_ca":      "SLUICE_ADMIN_TLS_CERT=x",
	"portal.tls.cert":          "SLUICE_PORTAL_LISTEN=127.0.0.1:1",
	"portal.tls.key":           "SLUICE_PORTAL_LISTEN=127.0.0.1:1 SLUICE_PORTAL_TLS_CERT=x",
	"portal.tls.client_ca":     "SLUICE_PORTAL_LISTEN=127.0.0.1:1 SLUICE_PORTAL_TLS_CERT=x",
	"telemetry.tls.key":        "SLUICE_TELEMETRY_TLS_CERT=x",
	"telemetry.tls.client_ca":  "SLUICE_TELEMETRY_TLS_CERT=x",
	"gateway.former_token":     "SLUICE_GATEWAY_TOKEN=sixteen-letters?",
	"admin.former_master_key":  "SLUICE_ADMIN_MASTER_KEY=" + strings.Repeat("0b", 32),
}

// beside returns the environment for a setting: its value and the settings that it
// requires.
func beside(f field) []string {
	return append(strings.Fields(company[f.key]), f.env()+"="+sample(f))
}

func TestEverySettingIsSetByItsVariable(t *testing.T) {
	for _, f := range fieldsOf(Default()) {
		cfg, origins, err := load(t, Sources{Env: beside(f)})
		if err != nil {
			t.Errorf("%s: %v", f.key, err)
			continue
		}
		if origins[f.key].Name != f.env() {
			t.Errorf("%s comes from %s", f.key, origins[f.key])
		}
		changed := []string{}
		was := Default()
		was.DataDir = rootDataDir
		before, after := fieldsOf(was), fieldsOf(cfg)
		for i := range after {
			if !reflect.DeepEqual(before[i].value.Interface(), after[i].value.Interface()) && !strings.Contains(company[f.key], after[i].env()+"=") {
				changed = append(changed, after[i].key)
			}
		}
		if rest := slices.DeleteFunc(changed, func(key string) bool { return key == "data_dir" && f.key != key }); len(rest) != 1 || rest[0] != f.key {
			t.Errorf("%s=%s changed %v", f.env(), sample(f), rest)
		}
	}
}

func TestWhatIsPrintedLoadsAgain(t *testing.T) {
	for _, f := range fieldsOf(Default()) {
		if f.isSecret() {
			continue // printed as ***, which is no valid address or key
		}
		cfg, origins, err := load(t, Sources{Env: beside(f)})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Valkey.URL = secret.Value{}
		printed := cfg.YAML(origins)
		again, _, err := load(t, Sources{Env: strings.Fields(strings.Replace(company[f.key], "_APPS_DIR", "_GROUP", 1))}, printed)
		if err != nil {
			t.Errorf("%s: %v", f.key, err)
			continue
		}
		again.Valkey.URL = secret.Value{}
		again.Gateway.Group = cfg.Gateway.Group
		again.Gateway.MaxURL = cfg.Gateway.MaxURL
		if !reflect.DeepEqual(cfg, again) {
			t.Errorf("%s is not the same after printing and loading", f.key)
		}
	}
}

func TestTheDeclarationIsSound(t *testing.T) {
	comments, err := fieldComments()
	if err != nil {
		t.Fatal(err)
	}
	envs, keys := map[string]string{}, map[string]bool{}
	fields := fieldsOf(Default())
	for _, f := range fields {
		keys[f.key] = true
		if other := envs[f.env()]; other != "" {
			t.Errorf("%s and %s have the same variable", f.key, other)
		}
		envs[f.env()] = f.key
		if serviceLink.MatchString(f.env()) || strings.HasSuffix(f.env(), "_PORT") {
			t.Errorf("%s has a variable that container links use", f.key)
		}
		if err := f.check(); err != nil {
			t.Errorf("the default of %s: %v", f.key, err)
		}
		if c := strings.TrimSpace(comments[f.owner+"."+f.name]); !strings.HasSuffix(c, ".") {
			t.Errorf("%s has no comment of whole sentences: %q", f.key, c)
		}
		checkTags(t, f)
	}
	for _, f := range fields {
		if f.isSecret() && envs[f.env()+fileSuffix] != "" {
			t.Errorf("the variable %s%s has two meanings", f.env(), fileSuffix)
		}
	}
	for _, r := range rules {
		for _, key := range r.keys {
			if !keys[key] {
				t.Errorf("a rule looks at %s, which is no key", key)
			}
		}
	}
	for _, n := range needs {
		if !keys[n.key] {
			t.Errorf("a role needs %s, which is no key", n.key)
		}
	}
}

func checkTags(t *testing.T, f field) {
	t.Helper()
	numeric := slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Float64}, f.value.Kind())
	bounds := f.tag.Get("range")
	if numeric != (bounds != "") {
		t.Errorf("%s: a number has a range, and only a number; tag %q", f.key, bounds)
	}
	if numeric {
		if _, _, err := f.bounds(bounds); err != nil {
			t.Errorf("%s: range %q: %v", f.key, bounds, err)
		}
	}
	if form := f.tag.Get("form"); form != "" && forms[form].check == nil {
		t.Errorf("%s: unknown form %s", f.key, form)
	}
}

func TestStateGoesWhereTheUserMayWrite(t *testing.T) {
	for _, c := range []struct {
		name string
		uid  int
		env  map[string]string
		want string
	}{
		{"root", 0, map[string]string{"HOME": "/root", "XDG_STATE_HOME": "/x"}, "/var/lib/sluice"},
		{"user", 1000, map[string]string{"HOME": "/home/a"}, "/home/a/.local/state/sluice"},
		{"user with a state directory", 1000, map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "/state"}, "/state/sluice"},
		{"user with a relative state directory", 1000, map[string]string{"HOME": "/home/a", "XDG_STATE_HOME": "state"}, "/home/a/.local/state/sluice"},
		{"user without a home", 1000, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := dataDir(c.uid, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTrustedProxiesAreNetworks(t *testing.T) {
	cfg, _, err := load(t, Sources{}, "gateway: {trusted_proxies: [10.0.0.0/8, 'fd00::/8']}\nkeys: {legacy_hashes: [murmur32, murmur128]}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	if !slices.Equal(cfg.Gateway.TrustedProxies, want) || !slices.Equal(cfg.Keys.LegacyHashes, []string{"murmur32", "murmur128"}) {
		t.Errorf("%v, %v", cfg.Gateway.TrustedProxies, cfg.Keys.LegacyHashes)
	}
}

// A gateway lets balancers notice its stop; up has no second gateway and stops at once.
func TestTheDelayOfAStopIsThatOfGateways(t *testing.T) {
	for _, c := range []struct {
		role Role
		text string
		want time.Duration
	}{{GatewayRole, "", 5 * time.Second}, {UpRole, "", 0}, {UpRole, "gateway: {drain_delay: 3s}", 3 * time.Second}} {
		text := c.text
		if c.role == GatewayRole {
			text = "gateway: {apps_dir: /x}"
		}
		cfg, _, err := load(t, Sources{Role: c.role}, text)
		if err != nil || cfg.Gateway.DrainDelay != c.want {
			t.Errorf("%+v: %v, %v", c, cfg, err)
		}
	}
}

func TestValkeyTargets(t *testing.T) {
	type target struct {
		addresses, user, password string
		db                        int
		tls, unix                 bool
	}
	for _, c := range []struct {
		valkey Valkey
		want   target
	}{
		{Valkey{}, target{}},
		{Valkey{URL: secret.New("redis://a")}, target{addresses: "a:6379"}},
		{Valkey{URL: secret.New("redis://a:1,b:2/"), Cluster: true}, target{addresses: "a:1 b:2"}},
		{Valkey{URL: secret.New("redis://u:p%40%2F@a:1/7")}, target{addresses: "a:1", user: "u", password: "p@/", db: 7}},
		{Valkey{URL: secret.New("rediss://:p/q@[::1]")}, target{addresses: "[::1]:6379", password: "p/q", tls: true}},
		{Valkey{URL: secret.New("redis://[::1]:7"), TLS: true, Username: "u", Password: secret.New("p")}, target{addresses: "[::1]:7", user: "u", password: "p", tls: true}},
		{Valkey{URL: secret.New("unix:///run/valkey.sock")}, target{addresses: "/run/valkey.sock", unix: true}},
	} {
		got, err := c.valkey.Target()
		flat := target{strings.Join(got.Addresses, " "), got.Username, got.Password.Reveal(), got.DB, got.TLS, got.Unix}
		if err != nil || flat != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.valkey.URL.Reveal(), flat, err, c.want)
		}
	}
	if _, err := (Valkey{URL: secret.New("a")}).Target(); err == nil || !strings.HasPrefix(err.Error(), "valkey.url: ") {
		t.Errorf("a broken address: %v", err)
	}
}

func TestTheReferenceListsEverything(t *testing.T) {
	text, err := Reference()
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "reference.golden", text)
}

func TestSettingsShowValueAndOrigin(t *testing.T) {
	cfg, origins, err := load(t, Sources{Env: []string{"SLUICE_SECRET=known-to-nobody-else"}}, "gateway: {trusted_proxies: [10.0.0.0/8]}\nlog: {sample_ok: 0.5}\n")
	if err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = "/data"
	var all strings.Builder
	for _, s := range cfg.Settings(origins) {
		fmt.Fprintf(&all, "%s|%s|%s\n", s.Key, s.Value, s.Origin)
	}
	golden.Equal(t, "settings.golden", all.String())
	golden.Equal(t, "effective.golden", cfg.YAML(origins))
}

func TestTheStateDirectoryOfLoadIsTheUsersOwn(t *testing.T) {
	cfg, _, err := load(t, Sources{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[bool]string{true: rootDataDir, false: "/home/x/.local/state/sluice"}[os.Geteuid() == 0]
	if cfg.DataDir != want {
		t.Errorf("data_dir %s, want %s", cfg.DataDir, want)
	}
}

func TestWhereTheGatewayAPIIs(t *testing.T) {
	for _, c := range []struct {
		gateway Gateway
		up      bool
		want    string
	}{
		{Gateway{}, false, "127.0.0.1:8083"},
		{Gateway{}, true, ""},
		{Gateway{ControlOnTraffic: true}, false, ""},
		{Gateway{ControlListen: ":9"}, false, ":9"},
		{Gateway{ControlListen: ":9"}, true, ":9"},
	} {
		if got := c.gateway.ControlAddress(c.up); got != c.want {
			t.Errorf("%+v, up %t: %q, want %q", c.gateway, c.up, got, c.want)
		}
	}
}
