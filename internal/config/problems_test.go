package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/testenv/golden"
)

// load loads files with the given texts, named a.yaml, b.yaml, …
func load(t *testing.T, src Sources, texts ...string) (*Config, Origins, error) {
	t.Helper()
	if !hasEnv(src.Env, "HOME") {
		src.Env = append(src.Env, "HOME=/home/x")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chdir(dir); err != nil { // so that messages hold bare names
		t.Fatal(err)
	}
	defer os.Chdir(here)
	for i, text := range texts {
		name := string(rune('a'+i)) + ".yaml"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		src.Files = append(src.Files, name)
	}
	if err := os.WriteFile("token.txt", []byte("from-a-file-on-disk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("empty.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(src)
}

func hasEnv(env []string, name string) bool {
	for _, pair := range env {
		if strings.HasPrefix(pair, name+"=") {
			return true
		}
	}
	return false
}

var problemCases = []struct {
	name  string
	files []string
	env   []string
	flags []Flag
	role  Role
	more  []string // further paths of files
}{
	{name: "unknown keys and the nearest", files: []string{`gatway: {listen: ":1"}
gateway:
  listn: ":1"
  Listen: ":1"
  read-timeout: 1s
  max_conns: 3
  zzz: 1
  ratelimit_headers:
    remainin: X
cache_ttl: 5s
`}},
	{name: "names of other gateways", files: []string{"listen_port: 8080\nhash_keys: true\nstorage: {type: redis}\n"}},
	{name: "dotted keys", files: []string{"gateway.listen: ':1'\ngateway: {ratelimit_headers.limit: X}\n"}},
	{name: "keys that are no names", files: []string{"1: a\ntrue: b\n\"\": c\n<<: {a: b}\n", "? [a]\n: d\n", "? a\n: b\n", "[a, b]: c\n", "*x : y\n", "&x a: y\n", "!!str a: y\n"}},
	{name: "duplicate keys", files: []string{"quota:\n  on_store_error: open\n  on_store_error: closed\nquota: {}\n"}},
	{name: "wrong types", files: []string{`gateway:
  listen: 8080
  group: true
  watch: yes
  custom_domains: 1
  read_timeout: [1s]
  max_header: true
  max_connections: many
  max_connections_per_ip: 1.5
  ratelimit_headers: none
  trusted_proxies: 10.0.0.0/8
upstream: [1]
keys: 5
quota: text
rate: null
log:
  sample_ok: half
  level:
    debug: true
  access:
admin: {page_size: 99999999999999999999, login_rate: }
`}},
	{name: "durations", files: []string{`gateway:
  drain_timeout: 15
  read_timeout: "15"
  write_timeout: 1d
  idle_timeout: -5s
upstream:
  dial_timeout: ""
  response_timeout: 1.5
  max_conn_wait: 0
  idle_conn_timeout: 1 s
`}},
	{name: "sizes", files: []string{`gateway:
  max_request_body: 4194304
  max_header: 16kb
  max_url: 8 KiB
postgres:
  shared_buffers: 64MB
`, "gateway: {max_request_body: 1.5MiB, max_header: '', max_url: KiB}\npostgres: {shared_buffers: 99999999999TiB}\n"}},
	{name: "out of range", files: []string{`gateway:
  read_timeout: 0s
  write_timeout: 0s
  idle_timeout: 2h
  max_request_body: 100GiB
  max_header: 0B
  max_connections: -1
upstream: {max_conns_per_host: 0, retries: 6}
keys: {negative_ttl: 61s, cache_size: 0}
log: {sample_ok: 1.01}
`}},
	{name: "texts of a form", files: []string{`gateway:
  listen: "8080"
  control_listen: localhost
  admin_url: admin:8081
  group: a b
  ratelimit_headers: {limit: "X Limit", remaining: "", reset: "X:"}
  error_detail: verbose
  trusted_proxies: [10.0.0.1, "::1", 10.0.0.0/33, 10.1.0.0/8, x, 5]
keys: {hash: sha1, legacy_hashes: [murmur23, md5, murmur32], prefix: "slk "}
quota: {on_store_error: opne}
log: {level: verbose}
`}},
	{name: "addresses", files: []string{`gateway: {listen: "", control_listen: "300.1.2.3:80"}
admin: {listen: "127.0.0.1:http"}
telemetry: {listen: "127.0.0.1:70000"}
`, `gateway: {listen: "[::1", control_listen: "a_b:1", admin_url: "https://u:pass@host"}
telemetry: {listen: "::1:80"}
`, `gateway: {admin_url: "https://host/?a=b"}`}},
	{
		name: "secrets stay secret", files: []string{`secret: 123456789
gateway:
  token: [hunter2]
database:
  url: hunter2://u:hunter2@host
valkey: {password: 5.5, url: hunter2}
telemetry:
  token:
    env: UNSET
  tokn: |
    hunter2
secrett: hunter2
`, "gateway: {token: {value: hunter2}, listn: hunter2}\nvalkey: {password: {env: UNSET}}\ntelemetry: {token: {file: missing.txt}}\nsecret: {file: empty.txt}\n"},
		env: []string{"SLUICE_DATABASE_URL=hunter2", "SLUICE_VALKEY_URL=hunter2"}, flags: []Flag{{"--token", "gateway.tken", "hunter2"}},
	},
	{name: "secrets that can be guessed", files: []string{"secret: fifteen-letters\ngateway: {token: short}\n"}},
	{name: "syntax around a secret", files: []string{"gateway:\n  token: \"hunter2\n"}},
	{name: "syntax inside a secret", files: []string{"telemetry:\n  token:\n    hunter2\n   hunter2: [\n"}},
	{name: "syntax", files: []string{"gateway:\n  listen: [\n", "gateway:\n\tlisten: x\n", "a: b: c\n", "gateway: {listen: \":1\"\n", "- a\n- b\n", "just text", "\x00\x01"}},
	{name: "anchors, aliases, tags and documents", files: []string{"gateway: &g\n  listen: ':1'\nadmin: *g\nlog: {level: !!str info, format: &f text, access: *f}\n---\nlog: {level: info}\n"}},
	{name: "files that cannot be read", more: []string{"missing.yaml", "."}, files: []string{strings.Repeat("# large\n", maxFile/8+1)}},
	{name: "environment", env: []string{
		"SLUICE_GATEWAY_READ_TIMEOUT=15", "SLUICE_GATEWAY_WATCH=1", "SLUICE_GATEWAY_MAX_HEADER=", "SLUICE_KEYS_CACHE_SIZE=many",
		"SLUICE_LOG_SAMPLE_OK=NaN", "SLUICE_GATEWAY_TRUSTED_PROXIES=10.0.0.0/8,10.0.0.1", "SLUICE_GATEWAY_LISTN=:1", "SLUICE_NOTHING_LIKE_IT=1",
		"SLUICE_LOG_LEVEL_FILE=x", "SLUICE_SECRET=a", "SLUICE_SECRET_FILE=token.txt", "SLUICE_VALKEY_PASSWORD_FILE=missing.txt", "SLUICE_VALKEY_URL_FILE=empty.txt",
		"SLUICE_TELEMETRY_TOKN_FILE=x", "SLUICE_KEYS_HASH=md5", "SLUICE_KEYS_LEGACY_HASHES=md5",
	}},
	{name: "flags", flags: []Flag{{"--listen", "gateway.listen", "8080"}, {"--log-level", "log.level", "inof"}, {"--x", "gateway.listne", "1"}}},
	{name: "what does not go together", files: []string{`gateway:
  admin_url: https://admin:8081
  apps_dir: apps
  control_listen: ":8080"
  max_url: 32KiB
  ratelimit_headers: {limit: X, remaining: x}
admin: {listen: ":8081"}
log: {access: file}
valkey: {cluster: true}
`}},
	{name: "third header, policies without apps", files: []string{"gateway: {policies_file: p.json, ratelimit_headers: {reset: x-ratelimit-limit}}\nadmin: {listen: 'admin.internal:8081'}\n"}},
	{name: "other names", files: []string{
		"http_server_options: {enable_websockets: maybe, read_timeout: 5}\n",
		"gateway: {websockets: true}\nhttp_server_options: {enable_websockets: false}\n",
	}},
	{name: "collectors", files: []string{
		"telemetry: {otlp: {endpoint: 'http://collector:4318'}}\n", "telemetry: {otlp: {endpoint: 'collector:4318', headers: 'hunter2'}}\n",
		"telemetry: {otlp: {endpoint: 'http://127.0.0.1:4318', headers: 'a b=hunter2', sample: 2}}\n",
	}},
	{name: "master keys", env: []string{"SLUICE_ADMIN_MASTER_KEY=short"}},
	{name: "a former token alone", env: []string{"SLUICE_GATEWAY_FORMER_TOKEN=a-token-that-was-used-before"}},
	{name: "one token twice", env: []string{"SLUICE_GATEWAY_TOKEN=a-token-that-was-used-before", "SLUICE_GATEWAY_FORMER_TOKEN=a-token-that-was-used-before"}},
	{name: "a former master key alone", env: []string{"SLUICE_ADMIN_FORMER_MASTER_KEY=" + strings.Repeat("0a", 32)}},
	{name: "one master key twice", env: []string{"SLUICE_ADMIN_MASTER_KEY=" + strings.Repeat("0a", 32), "SLUICE_ADMIN_FORMER_MASTER_KEY=" + strings.Repeat("0a", 32)}},
	{name: "a former master key that is none", env: []string{"SLUICE_ADMIN_MASTER_KEY=" + strings.Repeat("0a", 32), "SLUICE_ADMIN_FORMER_MASTER_KEY=x"}},
	{name: "valkey cluster and sentinel", files: []string{"valkey: {url: 'redis://a:1', cluster: true, sentinel_master: m}\n"}},
	{name: "valkey cluster database", files: []string{"valkey: {url: 'redis://a:1/2', cluster: true}\n"}},
	{name: "valkey socket cluster", files: []string{"valkey: {url: 'unix:///run/x', cluster: true}\n"}},
	{name: "valkey servers", files: []string{"valkey: {url: 'redis://a,b'}\n"}},
	{name: "valkey user twice", files: []string{"valkey: {url: 'redis://u:hunter2@a', username: v}\n"}},
	{name: "valkey password twice", files: []string{"valkey: {url: 'redis://u:hunter2@a', password: hunter2}\n"}},
	{name: "valkey without a password", files: []string{"valkey: {url: 'redis://store:6379'}\n"}},
	{name: "valkey without TLS", files: []string{"valkey: {url: 'redis://store:6379', password: hunter2}\n"}},
	{name: "keys on_store_error", files: []string{"keys: {on_store_error: refused}\n"}},
	{name: "valkey url", files: []string{"valkey: {url: 'http://a'}", "valkey: {url: 'redis://a/x'}", "valkey: {url: 'redis://'}", "valkey: {url: 'redis://%zz@a'}", "valkey: {url: 'redis://u:%zz@a'}", "valkey: {url: 'redis://a:b'}", "valkey: {url: 'unix://run'}"}},
	{name: "PROXY protocol of nobody", files: []string{"gateway: {proxy_protocol: true}"}},
	{name: "gateway without a source", role: GatewayRole},
	{name: "gateway without a token", role: GatewayRole, files: []string{"gateway: {admin_url: 'https://admin:8081'}"}},
	{name: "admin without a database", role: AdminRole},
	{name: "migrate without a database", role: MigrateRole},
	{name: "up without a place for its data", role: UpRole, files: []string{"data_dir: ''"}},
}

func TestProblemsNameTheirPlaceAndWhatWouldBeRight(t *testing.T) {
	var all strings.Builder
	for _, c := range problemCases {
		fmt.Fprintf(&all, "== %s ==\n", c.name)
		for _, group := range groupsOf(c.files) {
			cfg, origins, err := load(t, Sources{Files: c.more, Env: c.env, Flags: c.flags, Role: c.role}, group...)
			var problems *Problems
			if !errors.As(err, &problems) || cfg != nil || origins != nil {
				t.Errorf("%s: %v, %v, %v", c.name, cfg, origins, err)
				continue
			}
			if problems.ExitCode() != 2 {
				t.Errorf("exit code %d", problems.ExitCode())
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "123456789") {
				t.Errorf("%s: a secret is in the message", c.name)
			}
			fmt.Fprintf(&all, "%s\n\n", err)
		}
	}
	golden.Equal(t, "problems.golden", all.String())
}

// groupsOf loads files one by one, since values that are set in a later file
// hide what is wrong in an earlier one.
func groupsOf(files []string) [][]string {
	if len(files) == 0 {
		return [][]string{nil}
	}
	var groups [][]string
	for _, f := range files {
		groups = append(groups, []string{f})
	}
	return groups
}

func TestATimeForHTTPSThatIsNeverSentIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"admin: {hsts: 365d}":                                         "admin.hsts: is never sent without admin.tls.cert",
		"admin: {hsts: 365d, trusted_proxies: [10.0.0.0/8]}":          "",
		"admin: {hsts: 365d, tls: {cert: x}}\nportal: {hsts: 365d}":   "portal.hsts: has no effect without portal.listen",
		"portal: {hsts: 365d, listen: '127.0.0.1:1'}":                 "portal.hsts: is never sent without portal.tls.cert",
		"portal: {hsts: 365d, listen: '127.0.0.1:1', tls: {cert: x}}": "",
		"admin: {hsts: 1000d}":                                        "admin.hsts: 1000d is out of range",
	} {
		_, _, err := load(t, Sources{}, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A token is sent in a header, and so has no line break or control character in it.
func TestSecretsThatAreSentFitIntoHeaders(t *testing.T) {
	checked := 0
	for _, f := range fieldsOf(Default()) {
		if form := f.tag.Get("form"); form != "sent" && form != "guarded" {
			continue
		}
		checked++
		for _, c := range []struct{ value, want string }{
			{"sixteen-letters!\nmore", "has a line break"},
			{"sixteen-letters!\r\n", "has a line break"},
			{"sixteen-letters!\x00", "has a line break or another control character"},
			{" sixteen-letters!", "begins or ends with a space"},
		} {
			env := append(strings.Fields(company[f.key]), f.env()+"="+c.value)
			_, _, err := load(t, Sources{Env: env})
			if err == nil || !strings.Contains(err.Error(), f.key+": "+c.want) || strings.Contains(err.Error(), "letters!") {
				t.Errorf("%s=%q: %v, want %s", f.env(), c.value, err, c.want)
			}
		}
	}
	if checked < 6 {
		t.Errorf("%d settings are sent in headers, want secret, two tokens, that of metrics and two authorizations", checked)
	}
	file := filepath.Join(t.TempDir(), "token")
	for content, fits := range map[string]bool{"sixteen-letters!\n": true, "sixteen-letters!\r\n": true, "sixteen-letters!\n\n": false} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := load(t, Sources{Env: []string{"SLUICE_GATEWAY_TOKEN_FILE=" + file}})
		if fits != (err == nil) || !fits && !strings.Contains(err.Error(), "gateway.token: has a line break") {
			t.Errorf("a file with %q: %v", content, err)
		}
	}
}
