// Package config reads, defaults and checks the configuration of a process: YAML files,
// environment variables and command-line flags, strictly. All problems are reported at
// once, each with its place and what is expected.
package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/didyoumean"
)

// Sources are where the configuration of a process comes from. A later source overrides
// an earlier one: files in order, then the environment, then flags.
type Sources struct {
	Files []string // paths of YAML files
	Env   []string // NAME=value, as os.Environ returns them
	Flags []Flag
	Role  Role // decides which settings are required
}

// A Flag is a setting given on the command line.
type Flag struct {
	Name  string // as the user wrote it, such as --listen
	Key   string // such as gateway.listen
	Value string // lists are separated by commas
}

// Role is what a process uses its configuration for.
type Role uint8

// The roles. Each but AnyRole demands the settings that it cannot do without.
const (
	AnyRole Role = iota
	UpRole
	GatewayRole
	AdminRole
	MigrateRole
)

// Load reads the configuration from its sources on top of the defaults and
// checks it. The error is a *Problems with everything that is wrong; then the
// configuration is nil.
func Load(src Sources) (*Config, Origins, error) {
	env := splitEnv(src.Env)
	lookup := func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
	cfg := Default()
	cfg.DataDir = dataDir(os.Geteuid(), lookup)
	if src.Role == UpRole {
		cfg.Gateway.DrainDelay = 0
		cfg.Streaming.ofUp()
	}
	l := newLoader(cfg, lookup)
	for _, path := range src.Files {
		l.readFile(path)
	}
	l.readEnv(env)
	for _, flag := range src.Flags {
		l.setFlag(flag)
	}
	l.check(src.Role)
	if len(l.problems) > 0 {
		return nil, nil, &Problems{List: inOrder(l.problems, src.Files), More: l.more}
	}
	return cfg, l.origins(), nil
}

// inOrder sorts problems: files line by line, then the environment, flags, and missing
// settings.
func inOrder(problems []Problem, files []string) []Problem {
	rank := map[Kind]int{FromFile: 0, FromEnv: 1, FromFlag: 2, FromDefault: 3}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(rank[a.Origin.Kind], rank[b.Origin.Kind]),
			cmp.Compare(slices.Index(files, a.Origin.Name), slices.Index(files, b.Origin.Name)),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
		)
	})
	return problems
}

// splitEnv makes a map of NAME=value pairs.
func splitEnv(pairs []string) map[string]string {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			env[name] = value
		}
	}
	return env
}

// A loader fills a Config from its sources.
type loader struct {
	cfg      *Config
	lookup   func(name string) (string, bool)
	fields   []field
	byKey    map[string]field
	groups   map[string][]string // names inside each group, by its key; "" is the top
	places   map[string]place    // where each setting that is not at its default was set
	broken   map[string]bool     // settings with a problem: no further complaints about them
	problems []Problem
	more     int // problems beyond mostProblems
}

// A place is an origin with, in a file, the text around it.
type place struct {
	origin  Origin
	src     source // the zero source outside files
	keyOnly bool   // the value after the key must not be shown
}

// mostProblems bounds a report.
const mostProblems = 50

func newLoader(cfg *Config, lookup func(string) (string, bool)) *loader {
	l := &loader{
		cfg:    cfg,
		lookup: lookup,
		fields: fieldsOf(cfg),
		byKey:  make(map[string]field),
		groups: make(map[string][]string),
		places: make(map[string]place),
		broken: make(map[string]bool),
	}
	for _, f := range l.fields {
		l.byKey[f.key] = f
		l.addToGroups(f.key)
	}
	for key := range alsoCalled {
		if group, name, nested := strings.Cut(key, "."); nested {
			l.groups[group] = append(l.groups[group], name)
		}
	}
	return l
}

// addToGroups adds each part of key to the names of its group.
func (l *loader) addToGroups(key string) {
	group, rest := "", key
	for rest != "" {
		name, after, _ := strings.Cut(rest, ".")
		names := l.groups[group]
		if len(names) == 0 || names[len(names)-1] != name { // a group's names are declared together
			l.groups[group] = append(names, name)
		}
		group, rest = join(group, name), after
	}
}

func join(group, name string) string {
	if group == "" {
		return name
	}
	return group + "." + name
}

// set records the outcome of setting f at a place.
func (l *loader) set(f field, at place, err error) {
	if err != nil {
		l.broken[f.key] = true
		l.problem(at, f.key, err.Error())
		return
	}
	l.places[f.key] = at
}

func (l *loader) problem(at place, key, message string) {
	if len(l.problems) == mostProblems {
		l.more++
		return
	}
	excerpt := at.src.excerpt(at.origin.Line, at.origin.Col, at.keyOnly)
	l.problems = append(l.problems, Problem{Origin: at.origin, Key: key, Message: message, Excerpt: excerpt})
}

// setFlag sets the value of a flag. A flag without a setting is a bug of the program, and
// is reported.
func (l *loader) setFlag(flag Flag) {
	at := place{origin: Origin{Kind: FromFlag, Name: flag.Name}}
	f, ok := l.byKey[flag.Key]
	if !ok {
		l.problem(at, flag.Key, l.unknown("", flag.Key))
		return
	}
	l.set(f, at, f.setText(flag.Value))
}

func (l *loader) origins() Origins {
	origins := make(Origins, len(l.places))
	for key, at := range l.places {
		origins[key] = at.origin
	}
	return origins
}

// unknown reports an unknown name in a group and suggests the nearest one.
func (l *loader) unknown(group, name string) string {
	const unknown = "unknown key; "
	if _, ok := l.byKey[join(group, name)]; ok {
		return unknown + "write it nested: " + strings.ReplaceAll(name, ".", ": {") + ": …" + strings.Repeat("}", strings.Count(name, "."))
	}
	if near := didyoumean.Nearest(name, l.groups[group]); near != "" {
		return unknown + "did you mean " + join(group, near) + "?"
	}
	if now := cmp.Or(renamed[join(group, name)], renamed[group]); now != "" {
		return unknown + "it is " + now + " here"
	}
	if why := cmp.Or(dropped[join(group, name)], dropped[group]); why != "" {
		return unknown + "leave it out: " + why
	}
	if near := l.elsewhere(name); near != "" {
		return unknown + "did you mean " + near + "?"
	}
	return unknown + "known here: " + strings.Join(l.groups[group], ", ")
}

// alsoCalled holds further names of settings, in files: those of gateways that
// read the same definitions.
var alsoCalled = map[string]string{
	"http_server_options.enable_websockets": "gateway.websockets",
	"rate_limit_response_headers":           "gateway.ratelimit_headers.source",
}

// renamed holds what settings of other gateways that read the same definitions
// are called here.
var renamed = map[string]string{
	"listen_address":                "gateway.listen",
	"listen_port":                   "gateway.listen",
	"control_api_hostname":          "gateway.control_listen",
	"control_api_port":              "gateway.control_listen",
	"app_path":                      "gateway.apps_dir",
	"policies":                      "gateway.policies_file, a JSON object from policy id to policy (of a folder: jq -s 'map({(.id // ._id): .}) | add' policies/*.json > policies.json)",
	"template_path":                 "events.templates",
	"monitor.configuration":         "events.quota_webhook, with url, method, template, authorization and cooldown,",
	"use_db_app_configs":            "gateway.admin_url",
	"db_app_conf_options":           "gateway.admin_url, gateway.token and gateway.tags",
	"enable_custom_domains":         "gateway.custom_domains",
	"enable_websockets":             "gateway.websockets",
	"hide_generator_header":         "gateway.hide_generator",
	"http_server_options":           "gateway.tls, gateway.read_timeout and their neighbours",
	"hash_keys":                     "keys.hash",
	"hash_key_function":             "keys.hash",
	"enable_hashed_keys_listing":    "keys.list_hashed",
	"min_token_length":              "keys.min_length",
	"allow_master_keys":             "keys.allow_master_keys",
	"local_session_cache":           "keys.cache_ttl",
	"proxy_default_timeout":         "upstream.response_timeout",
	"max_idle_connections_per_host": "upstream.max_conns_per_host",
	"storage":                       "valkey.url",
}

// dropped holds why settings of other gateways that read the same definitions do not
// exist here.
var dropped = map[string]string{
	"enable_redis_rolling_limiter":    "rates are counted exactly, for all gateways with valkey.url",
	"enable_sentinel_rate_limiter":    "rates are counted exactly, for all gateways with valkey.url",
	"drl_threshold":                   "rates are counted exactly, for all gateways with valkey.url",
	"global_session_lifetime":         "keys expire as they say themselves, or as their policies do by key_expires_in",
	"force_global_session_lifetime":   "keys expire as they say themselves, or as their policies do by key_expires_in",
	"health_check_endpoint_name":      "it is always /hello",
	"readiness_check_endpoint_name":   "it is always /ready",
	"event_handlers":                  "events.webhook receives what belongs to no API, and the rest is set in event_handlers of each API",
	"close_connections":               "connections stay open while they are of use; upstream.idle_conn_timeout ends idle ones",
	"enforce_org_data_detail_logging": "bodies of requests are never logged",
}

// elsewhere returns the key of the whole configuration that is nearest to name, or ends
// in it.
func (l *loader) elsewhere(name string) string {
	keys := make([]string, 0, len(l.fields))
	for _, f := range l.fields {
		if strings.HasSuffix(f.key, "."+didyoumean.Plain(name)) {
			return f.key
		}
		keys = append(keys, f.key)
	}
	return didyoumean.Nearest(strings.ReplaceAll(name, "_", "."), keys)
}
