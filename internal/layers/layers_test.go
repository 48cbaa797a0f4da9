package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What others wrote, by the names that the table uses.
const (
	amqp       = "github.com/rabbitmq/amqp091-go"
	bluemonday = "github.com/microcosm-cc/bluemonday"
	cobra      = "github.com/spf13/cobra"
	crypto     = "golang.org/x/crypto"
	sys        = "golang.org/x/sys"
	fasthttp   = "github.com/valyala/fasthttp"
	fasthttpWS = "github.com/fasthttp/websocket"
	goldmark   = "github.com/yuin/goldmark"
	goose      = "github.com/pressly/goose/v3"
	graphql    = "github.com/wundergraph/graphql-go-tools"
	huma       = "github.com/danielgtaylor/huma/v2"
	jose       = "github.com/go-jose/go-jose/v4"
	oauth      = "github.com/go-oauth2/oauth2/v4"
	otel       = "go.opentelemetry.io/otel"
	gomail     = "github.com/wneessen/go-mail"
	kafka      = "github.com/twmb/franz-go"
	memlimit   = "github.com/KimMachineGun/automemlimit"
	mapping    = "github.com/redpanda-data/benthos/v4"
	pgx        = "github.com/jackc/pgx/v5"
	prometheus = "github.com/prometheus/client_golang"
	router     = "github.com/fasthttp/router"
	valkey     = "github.com/valkey-io/valkey-go"
	yaml       = "github.com/goccy/go-yaml"
	yamlTree   = "go.yaml.in/yaml/v3"
)

// A room is a package: what it may import of ours, by path below the module, and
// of others. "x/..." stands for x and all below it, "..." for everything. The
// standard library is always allowed.
type room struct {
	path   string
	ours   []string
	others []string
}

// kit is what every stage of the gateway may use.
var kit = []string{
	"gateway/wire", "gateway/pipeline", "gateway/query", "gateway/vars", "gateway/match", "gateway/upstream",
	"internal/definition", "internal/definition/...", "internal/event",
}

// rooms is the table. Its order is that of the house: contract, shared rooms,
// gateway, admin, wiring, tests.
var rooms = []room{
	{"internal/definition/object", nil, nil},
	{"internal/definition/pattern", nil, nil},
	{"internal/definition/upstreams", []string{"internal/definition/handover", "internal/definition/object", "internal/definition/pattern"}, nil},
	{"internal/definition/caching", []string{"internal/definition/object", "internal/definition/pattern"}, nil},
	{"internal/definition/paths", []string{"internal/definition/object", "internal/definition/pattern"}, nil},
	{"internal/definition/handlers", []string{"internal/definition/object"}, nil},
	{"internal/definition/origin", []string{"internal/definition/object"}, nil},
	{"internal/definition/rates", []string{"internal/definition/object", "internal/definition/pattern"}, nil},
	{"internal/definition/renewal", []string{"internal/definition/object"}, nil},
	{"internal/definition/handover", []string{"internal/definition/object"}, nil},
	{"internal/definition/transform", []string{"internal/definition/handover", "internal/definition/upstreams", "internal/definition/object", "internal/definition/pattern"}, nil},
	{"internal/definition/usage", nil, nil},
	{"internal/frozen", nil, nil},
	{"internal/redact", nil, nil},
	{"internal/slab", nil, nil},
	{"internal/definition", []string{"internal/definition/...", "internal/frozen"}, nil},
	{"internal/credential", nil, nil},
	{"internal/password", nil, []string{crypto}},
	{"internal/rights", []string{"internal/definition", "internal/definition/renewal", "internal/counter"}, nil},
	{"internal/secret", nil, nil},
	{"internal/guard", nil, nil},
	{"internal/definition/certificate", nil, nil},
	{"internal/certs", []string{"internal/definition/certificate"}, nil},
	{"internal/nearest", nil, nil},
	{"internal/quantity", nil, nil},
	{"internal/config", []string{"internal/quantity", "internal/nearest", "internal/secret"}, []string{yaml}},
	{"internal/event", []string{"internal/definition"}, []string{fasthttp}},
	{"internal/event/webhook", []string{"internal/event", "internal/guard"}, nil},
	{"internal/event/handling", []string{"internal/event", "internal/event/webhook", "internal/definition", "internal/definition/handlers"}, nil},
	{"internal/keystore", []string{"internal/definition", "internal/disk", "internal/slab"}, []string{valkey}},
	{"internal/counter", []string{"internal/counter/...", "internal/disk", "internal/pace", "internal/slab", "internal/rawio"}, []string{valkey}},
	{"internal/counter/exchange", []string{"internal/rawio"}, nil},
	{"internal/counter/frames", nil, nil},
	{"internal/counter/deadline", nil, nil},
	{"internal/counter/recall", nil, nil},
	{"internal/counter/rings", nil, nil},
	{"internal/counter/slots", nil, nil},
	{"internal/counter/script", []string{"internal/counter/exchange"}, []string{valkey}},
	{"internal/counter/tempo", nil, nil},
	{"internal/counter/texts", nil, nil},
	{"internal/keys", []string{"internal/definition", "internal/definition/renewal", "internal/credential", "internal/password", "internal/rights", "internal/keystore", "internal/counter"}, nil},
	{"internal/jsonscan", nil, nil},
	{"internal/graphql/syntax", nil, nil},
	{"internal/graphql/sdl", []string{"internal/graphql/syntax"}, nil},
	{"internal/graphql/schema", []string{"internal/graphql/syntax", "internal/graphql/sdl"}, nil},
	{"internal/graphql/names", []string{"internal/graphql/syntax"}, nil},
	{"internal/graphql/suggest", nil, nil},
	{"internal/graphql/merging", []string{"internal/graphql/syntax", "internal/graphql/schema", "internal/graphql/names"}, nil},
	{"internal/graphql/validate", []string{"internal/graphql/syntax", "internal/graphql/schema", "internal/graphql/names", "internal/graphql/suggest", "internal/graphql/merging"}, nil},
	{"internal/graphql/values", []string{"internal/jsonscan", "internal/graphql/syntax", "internal/graphql/schema", "internal/graphql/validate"}, nil},
	{"internal/graphql/rules", []string{"internal/definition", "internal/rights", "internal/graphql/schema", "internal/graphql/validate"}, nil},
	{"internal/graphql/change", []string{"internal/definition", "internal/graphql/syntax", "internal/graphql/sdl", "internal/graphql/schema", "internal/graphql/validate"}, nil},
	{"internal/introspect", []string{"internal/graphql/sdl", "internal/definition", "internal/guard"}, nil},
	{"internal/federation", []string{"internal/graphql/...", "internal/definition"}, []string{graphql}},
	{"internal/playground", nil, nil},
	{"internal/sample", []string{"internal/graphql/..."}, nil},
	{"internal/embedded", nil, nil},
	{"internal/proxies", nil, nil},

	{"internal/rawio", nil, nil},
	{"internal/disk", nil, []string{sys}},
	{"gateway/garbage", nil, []string{memlimit, sys}},
	{"gateway/wire/gate", nil, nil},
	{"gateway/wire", []string{"gateway/wire/gate", "internal/rawio"}, []string{fasthttp}},
	{"gateway/match", []string{"internal/frozen", "internal/definition/pattern"}, nil},
	{"internal/pace", nil, nil},
	{"gateway/pipeline", []string{"gateway/observe/rollup", "gateway/upstream/field", "gateway/wire", "internal/definition", "internal/definition/renewal", "internal/counter", "internal/event", "internal/graphql/rules", "internal/graphql/schema", "internal/graphql/validate"}, []string{fasthttp}},
	{"gateway/query", nil, nil},
	{"gateway/vars", []string{"gateway/wire", "gateway/pipeline", "gateway/query", "internal/definition", "internal/jsonscan"}, nil},
	{"gateway/handover", []string{"gateway/pipeline", "gateway/match", "internal/definition", "internal/definition/handover"}, nil},
	{"gateway/upstream/identity", []string{"gateway/match", "internal/certs", "internal/definition"}, nil},
	{"gateway/upstream/tunnel", nil, nil},
	{"gateway/upstream/field", nil, nil},
	{"gateway/upstream/chunked", []string{"gateway/upstream/field"}, nil},
	{"gateway/upstream", []string{"gateway/handover", "internal/pace", "gateway/upstream/...", "internal/rawio", "internal/guard", "internal/proxies", "gateway/wire", "gateway/pipeline", "gateway/vars", "gateway/match", "internal/definition", "internal/secret"}, []string{fasthttp, fasthttpWS}},
	{"gateway/upstream/health", []string{"gateway/match", "gateway/upstream/identity", "internal/definition", "internal/definition/upstreams", "internal/event", "internal/guard"}, nil},
	{"gateway/upstream/breaker", with(kit), nil},
	{"gateway/upstream/balance", with(kit, "gateway/upstream/health"), nil},
	{"gateway/upstream/calls", with(kit, "gateway/upstream/...", "internal/guard"), nil},
	{"gateway/cache", with(kit, "gateway/graphql/cache", "gateway/upstream/field"), nil},
	{"gateway/certs", []string{"gateway/wire", "gateway/pipeline", "gateway/source", "internal/certs", "internal/definition", "internal/secret"}, nil},
	{"gateway/mutual", with(kit, "internal/certs"), nil},
	{"gateway/subscription", nil, nil},
	{"gateway/explain", []string{"gateway/wire", "gateway/pipeline", "internal/certs", "internal/definition", "internal/counter"}, nil},
	{"gateway/version", with(kit, "gateway/handover"), []string{fasthttp}},
	{"gateway/auth", with(kit, "gateway/auth/...", "internal/pace", "internal/slab", "internal/keystore", "internal/credential", "internal/secret"), []string{fasthttp}},
	{"gateway/auth/basic", []string{"internal/password"}, nil},
	{"internal/definition/jwt", []string{"internal/definition/object"}, nil},
	{"internal/definition/basic", []string{"internal/definition/object"}, nil},
	{"internal/definition/monitor", []string{"internal/definition/object"}, nil},
	{"gateway/auth/jwks", []string{"internal/definition/jwt", "internal/guard"}, []string{jose}},
	{"gateway/auth/jwt", []string{"gateway/auth/jwks", "gateway/pipeline", "internal/definition", "internal/definition/jwt", "internal/event"}, []string{jose}},
	{"gateway/access", with(kit, "internal/counter", "internal/counter/texts", "internal/rights"), []string{fasthttp}},
	{"gateway/limit", with(kit, "internal/counter", "internal/credential", "internal/keystore", "internal/rights"), []string{fasthttp}},
	{"gateway/overload", kit, nil},
	{"gateway/transform", kit, nil},
	{"gateway/tunnels", []string{"gateway/pipeline", "gateway/upstream/field", "gateway/wire", "internal/definition"}, nil},
	{"gateway/traces", []string{"gateway/wire", "gateway/pipeline"}, []string{otel}},
	{"gateway/origin", kit, nil},
	{"gateway/graphql", with(kit, "gateway/graphql/...", "internal/jsonscan", "internal/rights", "internal/graphql/..."), []string{fasthttp}},
	{"gateway/graphql/request", []string{"gateway/pipeline", "gateway/wire", "internal/jsonscan", "internal/graphql/syntax"}, nil},
	{"gateway/graphql/cache", nil, nil},
	{"gateway/persisted", with(kit, "gateway/graphql/...", "internal/jsonscan", "internal/rights", "internal/graphql/..."), []string{fasthttp}},
	{"gateway/stream/mapping", nil, []string{mapping}},
	{"gateway/stream", with(kit, "gateway/stream/mapping", "internal/secret"), []string{fasthttp, fasthttpWS, amqp, kafka}},
	{"gateway/observe/usage", []string{"internal/graphql/syntax", "internal/graphql/schema", "internal/graphql/validate"}, nil},
	{"gateway/observe/rollup", []string{"internal/definition/usage"}, nil},
	{"gateway/tally", []string{"gateway/observe/rollup", "internal/definition/usage", "internal/secret"}, nil},
	{"gateway/observe", []string{"gateway/wire", "gateway/pipeline", "gateway/observe/rollup", "gateway/observe/usage", "internal/definition", "internal/definition/usage", "internal/event", "internal/graphql/..."}, []string{fasthttp, prometheus}},
	{"gateway/control", []string{"gateway/observe/usage", "internal/certs", "internal/definition", "internal/keystore", "internal/counter", "internal/event", "internal/rights", "internal/keys", "internal/credential", "internal/secret"}, []string{fasthttp, router}},
	{"gateway/source", []string{"internal/pace", "internal/definition", "internal/disk", "internal/frozen", "internal/secret"}, []string{fasthttp}},
	{"gateway", with(kit, "gateway/...", "internal/pace", "internal/frozen", "internal/keystore", "internal/counter", "internal/secret", "internal/rights", "internal/credential"), []string{fasthttp}},

	{"sql", nil, nil},
	{"admin/store/db", nil, []string{pgx}},
	{"admin/store/clients", []string{"admin/store", "admin/store/db", "internal/definition"}, nil},
	{"admin/store/letters", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/store", []string{"internal/definition", "admin/store/db", "sql", "internal/redact"}, []string{pgx, goose}},
	{"admin/store/usage", []string{"admin/store", "admin/store/db", "internal/definition/usage"}, nil},
	{"admin/usage", []string{"admin/rest", "admin/store", "admin/store/usage", "internal/definition", "internal/definition/usage"}, []string{fasthttp, prometheus}},
	{"admin/supply", []string{"admin/store", "internal/definition", "internal/keystore", "internal/counter", "internal/secret"}, []string{fasthttp, prometheus}},
	{"admin/store/accounts", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/portal/developers", []string{"admin/attempts", "admin/portal/record", "admin/rest", "admin/store", "admin/store/accounts", "admin/store/db", "internal/definition", "internal/password"}, []string{fasthttp}},
	{"admin/store/catalogue", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/portal/catalogue", []string{"admin/portal/documents", "admin/portal/record", "admin/rest", "admin/store", "admin/store/catalogue", "internal/definition", "internal/definition/..."}, []string{fasthttp}},
	{"admin/portal/documents/clean", []string{"internal/definition/object", "internal/graphql/sdl", "internal/graphql/syntax"}, []string{goldmark, bluemonday, yamlTree}},
	{"admin/portal/documents", []string{"admin/portal/documents/clean", "admin/rest", "admin/store", "admin/store/catalogue"}, []string{fasthttp}},
	{"admin/store/requests", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/portal/credentials", []string{"admin/portal/record", "admin/rest", "admin/store", "admin/store/requests", "internal/counter", "internal/credential", "internal/definition", "internal/definition/jwt", "internal/keys", "internal/password", "internal/rights"}, []string{fasthttp}},
	{"admin/portal/requests", []string{"admin/portal/credentials", "admin/portal/record", "admin/rest", "admin/store", "admin/store/requests", "internal/certs", "internal/definition", "internal/definition/jwt", "internal/definition/object", "internal/secret"}, []string{fasthttp}},
	{"admin/store/deliveries", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/store/webhooks", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/delivery", []string{"admin/rest", "admin/store", "admin/store/deliveries", "internal/secret"}, []string{fasthttp, prometheus}},
	{"admin/mail", []string{"admin/delivery", "admin/portal/record", "admin/rest", "admin/store", "admin/store/letters", "internal/secret"}, []string{gomail}},
	{"admin/portal/webhooks", []string{"admin/delivery", "admin/portal/record", "admin/rest", "admin/store", "admin/store/deliveries", "admin/store/webhooks", "internal/guard", "internal/secret"}, []string{fasthttp}},
	{"admin/portal/record", []string{"internal/definition", "internal/definition/object"}, nil},
	{"admin/portal/clients", []string{"admin/portal/credentials", "admin/portal/record", "admin/portal/requests", "admin/rest", "admin/store", "admin/store/clients", "admin/store/requests", "internal/credential"}, []string{fasthttp, oauth}},
	{"admin/portal", []string{"admin/attempts", "admin/portal/...", "admin/delivery", "admin/mail", "admin/rest", "admin/store", "admin/store/...", "internal/counter", "internal/definition", "internal/guard", "internal/keys", "internal/password", "internal/secret"}, []string{fasthttp, prometheus}},
	{"admin/rest", []string{"admin/openapi", "admin/store", "internal/definition"}, []string{fasthttp}},
	{"admin/ui", nil, nil},
	{"admin/schemas", []string{"admin/store", "internal/definition", "internal/guard", "internal/introspect", "internal/graphql/..."}, nil},
	{"admin/openapi", nil, []string{huma}},
	{"admin/store/sealed", []string{"admin/store", "admin/store/db"}, nil},
	{"admin/reseal", []string{"admin/store", "admin/store/sealed", "internal/secret"}, nil},
	{"admin/diff", nil, nil},
	{"admin/shown", []string{"admin/diff", "admin/store", "internal/definition"}, nil},
	{"admin/apply", []string{"admin/schemas", "admin/shown", "admin/store", "internal/definition", "internal/keys"}, nil},
	{"admin/meters", nil, []string{prometheus}},
	{"admin/certs", []string{"admin/store", "internal/certs", "internal/secret"}, nil},
	{"admin/attempts", nil, nil},
	{"admin", []string{
		"internal/proxies", "admin/rest", "admin/store", "admin/supply", "admin/apply", "admin/attempts", "admin/shown", "admin/certs", "admin/meters", "admin/portal", "admin/ui", "admin/usage",
		"internal/definition", "internal/definition/usage", "internal/rights", "internal/keys", "internal/credential", "internal/keystore", "internal/counter", "internal/graphql/...", "admin/schemas",
		"internal/federation", "internal/introspect", "internal/event", "internal/secret", "internal/playground",
	}, []string{fasthttp, router, crypto, prometheus}},

	{".", []string{"internal/cli"}, nil},
	{"internal/cli/client", nil, nil},
	{"internal/cli/profile", nil, nil},
	{"internal/cli/shell", []string{"internal/nearest", "internal/cli/client", "internal/cli/profile", "internal/cli/yamltext", "internal/config"}, []string{cobra}},
	{"internal/cli/secrets", []string{"internal/cli/progress", "internal/cli/shell", "internal/config"}, []string{cobra}},
	{"internal/cli/portal", []string{"internal/cli/shell"}, []string{cobra}},
	{"internal/cli/access", []string{"internal/cli/client", "internal/cli/profile", "internal/cli/shell"}, []string{cobra}},
	{"internal/cli/progress", nil, nil},
	{"internal/cli/yamltext", nil, nil},
	{"internal/cli/checks", []string{"internal/nearest", "internal/config", "internal/definition", "internal/desired", "internal/graphql/...", "internal/unknown"}, nil},
	{"internal/desired", []string{"admin/diff", "internal/definition", "internal/redact", "internal/secret"}, []string{yaml}},
	{"internal/unknown", nil, nil},
	{"internal/doctor", []string{"internal/config", "internal/redact"}, nil},
	{"internal/top", nil, nil},
	{"internal/classic", []string{"internal/definition", "internal/desired", "internal/unknown"}, nil},
	{"internal/cli", []string{"internal/nearest", "internal/cli/...", "internal/desired", "internal/classic", "internal/doctor", "internal/top", "internal/app", "internal/config", "internal/definition"}, []string{cobra}},
	{"internal/app", []string{"..."}, []string{"..."}},

	{"internal/layers", nil, nil},
	{"internal/testenv", []string{"..."}, []string{"..."}},
	{"internal/testenv/portaltest", []string{"admin/rest", "admin/store", "internal/testenv"}, []string{fasthttp, pgx}},
	{"internal/e2e", []string{"..."}, []string{"..."}},
	{"bench", []string{"..."}, []string{"..."}},
	{"bench/check", nil, nil},
	{"bench/sizing", nil, nil},
	{"loadtest/...", []string{"..."}, []string{"..."}},
}

func with(some []string, more ...string) []string { return slices.Concat(some, more) }

const where = "internal/layers/layers_test.go"

// broken lists every import of a package that the table does not allow.
func broken(path string, imports []string) []string {
	i := slices.IndexFunc(rooms, func(r room) bool { return covers(r.path, path) })
	if i < 0 {
		return []string{fmt.Sprintf("package %s has no row: add one to rooms in %s, with what it may import", path, where)}
	}
	var problems []string
	for _, imported := range imports {
		if reason := forbidden(rooms[i], path, imported); reason != "" {
			problems = append(problems, fmt.Sprintf("%s imports %s: %s", path, imported, reason))
		}
	}
	return problems
}

// forbidden says why a room may not import a package, or "" if it may.
func forbidden(r room, path, imported string) string {
	inside := imported == module || strings.HasPrefix(imported, module+"/")
	if !inside {
		return forbiddenOther(r, imported)
	}
	below := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
	if isTestRoom(below) && !isTestRoom(path) {
		return "only tests may import it"
	}
	if gateway, admin := under("gateway", path), under("admin", path); gateway && under("admin", below) || admin && under("gateway", below) {
		return "the gateway and the admin meet in internal/definition only"
	}
	if !slices.ContainsFunc(r.ours, func(allowed string) bool { return covers(allowed, below) }) {
		return "its row in " + where + " does not allow that; move the code, or widen the row and say why in the commit"
	}
	return ""
}

func forbiddenOther(r room, imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return "" // standard library
	}
	if under(pgx, imported) && r.path != "admin/store" && r.path != "admin/store/db" && !under("internal/testenv", r.path) {
		return "SQL lives in admin/store alone"
	}
	if !slices.ContainsFunc(r.others, func(allowed string) bool { return allowed == "..." || under(allowed, imported) }) {
		return "its row in " + where + " does not name that module; use what the room has, or widen the row and say why in the commit"
	}
	return ""
}

// isTestRoom reports whether a package exists for tests and measurements.
func isTestRoom(path string) bool {
	return slices.ContainsFunc([]string{"internal/testenv", "internal/e2e", "bench", "loadtest"}, func(r string) bool { return under(r, path) })
}

// under reports whether path is tree or lies in it.
func under(tree, path string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// covers reports whether path is what an entry of the table stands for.
func covers(entry, path string) bool {
	if tree, ok := strings.CutSuffix(entry, "/..."); ok {
		return under(tree, path)
	}
	return entry == path || entry == "..."
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, f := range source(t) {
		for _, problem := range broken(f.path, f.imports()) {
			t.Error(problem)
		}
	}
}

func TestOnlyAppKnowsBothHalves(t *testing.T) {
	for _, r := range rooms {
		knows := func(half string) bool {
			return slices.ContainsFunc(r.ours, func(allowed string) bool { return allowed == "..." || under(half, strings.TrimSuffix(allowed, "/...")) })
		}
		if knows("gateway") && knows("admin") && r.path != "internal/app" && !isTestRoom(strings.TrimSuffix(r.path, "/...")) {
			t.Errorf("the row of %s lets it import both the gateway and the admin", r.path)
		}
	}
}

func TestTableNamesEachRoomOnce(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range rooms {
		if seen[r.path] {
			t.Errorf("%s has two rows", r.path)
		}
		seen[r.path] = true
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, c := range []struct{ path, imported, want string }{
		{"gateway/match", "bytes", ""},
		{"gateway/match", "net/http", ""},
		{"gateway/match", fasthttp, "does not name that module"},
		{"gateway/pipeline", fasthttp, ""},
		{"gateway/pipeline", fasthttp + "/fasthttputil", ""},
		{"gateway/pipeline", fasthttp + "x", "does not name that module"},
		{"gateway/limit", module + "/internal/counter", ""},
		{"gateway/limit", module + "/gateway/auth", "does not allow"},
		{"gateway/limit", module + "/admin", "meet in internal/definition"},
		{"admin/store", module + "/gateway/match", "meet in internal/definition"},
		{"admin", pgx, "SQL lives in"},
		{"internal/app", pgx + "/pgxpool", "SQL lives in"},
		{"admin/store", pgx + "/pgxpool", ""},
		{"internal/app", module + "/admin", ""},
		{"internal/app", module + "/gateway", ""},
		{"internal/app", module + "/internal/testenv", "only tests"},
		{"internal/e2e", module + "/internal/testenv", ""},
		{"gateway", module + "/gateway/auth", ""},
		{"gateway", module + "/internal/config", "does not allow"},
		{"loadtest/origin", module + "/gateway", ""},
		{"gateway/nowhere", "bytes", "has no row"},
		{".", module + "/internal/cli", ""},
		{"internal/cli", module, "does not allow"},
	} {
		got := strings.Join(broken(c.path, []string{c.imported}), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s importing %s: %q, want %q", c.path, c.imported, got, c.want)
		}
	}
}
