package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/didyoumean"
	"github.com/sluicegate/sluice/internal/secret"
)

// fileSuffix ends the name of a variable with the path of a file that holds a secret.
const fileSuffix = "_FILE"

// serviceLink matches what Kubernetes and container links put into the environment of
// every process beside a service whose name begins with "sluice". They are not settings.
var serviceLink = regexp.MustCompile(`^SLUICE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)$`)

// ofCommands reports variables that are read by commands that call a server.
func ofCommands(name string) bool {
	switch name {
	case "SLUICE_SERVER", "SLUICE_TOKEN", "SLUICE_PROFILE", "SLUICE_CA", "SLUICE_CLIENT_CERT", "SLUICE_CLIENT_KEY":
		return true
	}
	return false
}

// ofDefinitions reports variables that definitions can refer to as secrets.
func ofDefinitions(name string) bool {
	return strings.HasPrefix(name, "SLUICE_SECRET_") && name != "SLUICE_SECRET"+fileSuffix
}

// readEnv applies the environment, in the order of names.
func (l *loader) readEnv(env map[string]string) {
	byEnv := make(map[string]field, len(l.fields))
	for _, f := range l.fields {
		byEnv[f.env()] = f
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, envPrefix) && !isServiceLink(name, env[name]) && !ofCommands(name) && !ofDefinitions(name) {
			l.setEnv(byEnv, env, name)
		}
	}
}

func isServiceLink(name, value string) bool {
	if strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
		return true
	}
	return serviceLink.MatchString(name)
}

func (l *loader) setEnv(byEnv map[string]field, env map[string]string, name string) {
	at := place{origin: Origin{Kind: FromEnv, Name: name}}
	if f, ok := byEnv[name]; ok {
		l.set(f, at, f.setText(env[name]))
		return
	}
	plain := strings.TrimSuffix(name, fileSuffix)
	f, ok := byEnv[plain]
	switch {
	case !ok || plain == name:
		l.problem(at, "", unknownVariable(name, byEnv))
	case !f.isSecret():
		l.problem(at, f.key, "only secrets are read from files named in the environment; set "+plain)
	case hasKey(env, plain):
		l.problem(at, f.key, "both "+plain+" and "+name+" are set; keep one")
	default:
		l.set(f, at, f.setFromFile(env[name]))
	}
}

func (f field) setFromFile(path string) error {
	v, err := secret.ReadFile(path)
	if err != nil {
		return err
	}
	return f.setText(v.Reveal())
}

func hasKey(env map[string]string, name string) bool {
	_, ok := env[name]
	return ok
}

func unknownVariable(name string, byEnv map[string]field) string {
	names := slices.Sorted(maps.Keys(byEnv))
	for _, n := range names {
		if byEnv[n].isSecret() {
			names = append(names, n+fileSuffix)
		}
	}
	if near := didyoumean.Nearest(name, names); near != "" {
		return "unknown variable; did you mean " + near + "?"
	}
	return "unknown variable; sluice config reference lists those there are"
}
