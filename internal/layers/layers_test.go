package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A layer says what the packages below some paths may not import. Paths are
// prefixes below the module's path: "gateway" covers gateway and all below it.
type layer struct {
	of     []string // the packages that the rule is about
	except []string // packages among them that it is not about
	not    []string // what they may not import; "..." stands for every package of the module
	but    []string // what of that they may import all the same
	reason string
}

// everything stands for every package of the module, as of or not.
const everything = "..."

// ground is what tests and measurements are made of. The product never imports it.
var ground = []string{"internal/testenv", "internal/e2e", "bench", "loadtest"}

// layers are the rules between the packages of the module.
var layers = []layer{
	{of: []string{"gateway"}, not: []string{"admin"}, reason: "the two halves meet in internal/definition only"},
	{of: []string{"admin"}, not: []string{"gateway"}, reason: "the two halves meet in internal/definition only"},
	{
		of: []string{"internal"}, except: append([]string{"internal/app"}, ground...),
		not: []string{"gateway", "admin"}, reason: "what both halves share knows neither",
	},
	{of: []string{everything}, except: append([]string{"internal/cli"}, ground...), not: []string{"internal/app"}, reason: "the composition root is imported by the command line only"},
	{of: []string{everything}, except: append([]string{".", "internal/cli"}, ground...), not: []string{"internal/cli"}, reason: "only main imports the command line"},
	{of: []string{everything}, except: ground, not: ground, reason: "only tests and measurements may import it"},

	{of: []string{"internal/definition"}, not: []string{everything}, but: []string{"internal/definition", "internal/frozen", "internal/http1", "internal/didyoumean", "internal/mapping"}, reason: "the contract imports nothing above it"},
	{
		of: []string{"internal/graphql"}, except: []string{"internal/graphql/rules", "internal/graphql/change"},
		not: []string{everything}, but: []string{"internal/graphql", "internal/jsonscan"}, reason: "the GraphQL front end stands alone",
	},
	{of: []string{"internal/counter"}, not: []string{"internal/definition"}, reason: "counters know amounts and times, not what they are counted for"},
	{of: []string{"internal/config"}, not: []string{"internal/definition"}, reason: "settings are of the process, definitions of its users"},

	{
		of: []string{"gateway/pipeline"}, not: []string{"gateway"}, but: []string{"gateway/pipeline", "gateway/wire"},
		reason: "the vocabulary imports nothing above it",
	},
	{of: []string{"gateway/wire"}, not: []string{"gateway", "internal/definition"}, but: []string{"gateway/wire"}, reason: "the HTTP server knows no API"},
	{of: []string{"gateway/match"}, not: []string{"gateway"}, but: []string{"gateway/match"}, reason: "matching knows paths, not requests"},
	{of: []string{"gateway/stage"}, not: []string{"gateway/snapshot", "gateway/source", "gateway/control", "gateway/observe"}, reason: "stages are compiled and called; they call nothing above them"},
	{of: []string{"gateway/upstream"}, not: []string{"gateway/stage", "gateway/snapshot", "gateway/source", "gateway/control", "gateway/observe"}, reason: "the upstream side knows no stage"},
	{of: []string{"gateway/stream"}, not: []string{"gateway/stage", "gateway/snapshot", "gateway/source", "gateway/control", "gateway/observe", "gateway/upstream"}, reason: "streams know what a request is, and no stage"},
	{of: []string{"gateway/graph"}, not: []string{"gateway/stage", "gateway/snapshot", "gateway/source", "gateway/control", "gateway/observe", "gateway/stream"}, but: []string{"gateway/stage/graphql/request"}, reason: "data graphs stand in the place of an upstream, and know no stage"},
	{of: []string{"internal/mapping"}, not: []string{everything}, but: []string{"internal/mapping"}, reason: "the mapping language stands alone"},
	{of: []string{"gateway/control"}, not: []string{"gateway/stage", "gateway/snapshot"}, reason: "the gateway API reaches requests through interfaces only"},

	{of: []string{"admin/store"}, not: []string{"admin"}, but: []string{"admin/store"}, reason: "the store knows rows and definitions, not who asks for them"},
	{of: []string{everything}, except: append([]string{"admin/store"}, ground...), not: []string{"admin/store/db"}, reason: "generated queries are called by the store only"},
	{of: []string{"admin/rest"}, not: []string{"admin/portal"}, reason: "how REST is spoken does not depend on what is said"},
}

// owners says which packages may import a module that is not ours. A module without
// an entry may be imported by every package.
var owners = map[string][]string{
	"github.com/jackc/pgx/v5":                 {"admin/store", "internal/embedded"},
	"github.com/pressly/goose/v3":             {"admin/store"},
	"github.com/valkey-io/valkey-go":          {"internal/keystore", "internal/counter", "internal/doctor"},
	"github.com/spf13/cobra":                  {"internal/cli"},
	"github.com/fasthttp/router":              {"admin", "gateway/control"},
	"github.com/go-jose/go-jose/v4":           {"gateway/stage/auth"},
	"github.com/go-oauth2/oauth2/v4":          {"admin/portal"},
	"github.com/danielgtaylor/huma/v2":        {"admin"},
	"github.com/microcosm-cc/bluemonday":      {"admin/portal"},
	"github.com/yuin/goldmark":                {"admin/portal"},
	"github.com/wneessen/go-mail":             {"admin"},
	"golang.org/x/image":                      {"admin/portal"},
	"github.com/goccy/go-yaml":                {"internal/config", "internal/declarative", "internal/cli"},
	"github.com/wundergraph/graphql-go-tools": {"gateway/graph"},
	"github.com/wundergraph/astjson":          {"gateway/graph"},
	"github.com/rabbitmq/amqp091-go":          {"gateway/stream"},
	"github.com/twmb/franz-go":                {"gateway/stream"},
	"github.com/redpanda-data/benthos/v4":     {"internal/mapping"},
	"go.opentelemetry.io/otel":                {"gateway/traces", "gateway/observe"},
}

const where = "internal/layers/layers_test.go"

// broken lists every import of a package that a rule forbids.
func broken(path string, imports []string) (problems []string) {
	for _, imported := range imports {
		if reason := forbidden(path, imported); reason != "" {
			problems = append(problems, fmt.Sprintf("%s imports %s: %s; move the code, or change the rule in %s and say why in the commit", path, imported, reason, where))
		}
	}
	return problems
}

// forbidden returns why a package may not import another, or "" if it may.
func forbidden(path, imported string) string {
	below, ours := strings.CutPrefix(imported, module+"/")
	if imported == module {
		below, ours = ".", true
	}
	if !ours {
		return forbiddenOther(path, imported)
	}
	for _, l := range layers {
		if covers(l.of, path) && !covers(l.except, path) && covers(l.not, below) && !covers(l.but, below) {
			return l.reason
		}
	}
	if stage := stageOf(path); stage != "" && stageOf(below) != "" && stageOf(below) != stage && !neighbours[stage+" "+stageOf(below)] {
		return "a stage knows no other stage"
	}
	return ""
}

// neighbours are the stages that may import another one.
var neighbours = map[string]bool{
	"persisted graphql": true, // stored operations become GraphQL requests
}

// stageOf returns the name of the stage that a package belongs to, "" for none.
func stageOf(path string) string {
	below, ok := strings.CutPrefix(path, "gateway/stage/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(below, "/")
	return name
}

func forbiddenOther(path, imported string) string {
	if covers(ground, path) {
		return ""
	}
	for other, allowed := range owners {
		if under(other, imported) && !covers(allowed, path) {
			return "only " + strings.Join(allowed, ", ") + " may import that module"
		}
	}
	return ""
}

// under reports whether path is tree or lies in it.
func under(tree, path string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// covers reports whether path lies in one of the trees.
func covers(trees []string, path string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool { return tree == everything || under(tree, path) })
}

func TestImportsFollowTheLayers(t *testing.T) {
	for _, f := range source(t) {
		for _, problem := range broken(f.path, f.imports()) {
			t.Error(problem)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, c := range []struct{ path, imported, want string }{
		{"gateway/match", "bytes", ""},
		{"gateway/match", module + "/gateway/wire", "matching knows paths"},
		{"gateway/stage/limit", module + "/internal/counter", ""},
		{"gateway/stage/limit", module + "/gateway/stage/auth", "knows no other stage"},
		{"gateway/stage/auth", module + "/gateway/stage/auth/jwt", ""},
		{"gateway/stage/limit", module + "/admin", "two halves"},
		{"admin/store", module + "/gateway/match", "two halves"},
		{"internal/keys", module + "/gateway/match", "knows neither"},
		{"internal/definition", module + "/internal/counter", "the contract"},
		{"gateway/pipeline", module + "/gateway/stage/auth", "the vocabulary"},
		{"admin", "github.com/jackc/pgx/v5", "only admin/store"},
		{"internal/app", "github.com/jackc/pgx/v5/pgxpool", "only admin/store"},
		{"admin/store", "github.com/jackc/pgx/v5/pgxpool", ""},
		{"internal/testenv", "github.com/jackc/pgx/v5", ""},
		{"admin", module + "/admin/store/db", "by the store only"},
		{"internal/app", module + "/admin", ""},
		{"internal/app", module + "/gateway", ""},
		{"internal/app", module + "/internal/testenv", "only tests"},
		{"internal/e2e", module + "/internal/testenv", ""},
		{"loadtest/origin", module + "/gateway", ""},
		{".", module + "/internal/cli", ""},
		{"internal/cli", module + "/internal/app", ""},
		{"gateway", module + "/internal/app", "composition root"},
	} {
		got := strings.Join(broken(c.path, []string{c.imported}), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s importing %s: %q, want %q", c.path, c.imported, got, c.want)
		}
	}
}

// A rule about a path that does not exist guards nothing. Paths of what is still to
// be built are named here.
func TestLayersNamePackagesThatExist(t *testing.T) {
	planned := []string{everything, "gateway/stream"}
	folders := source(t)
	exists := func(tree string) bool {
		return slices.Contains(planned, tree) || slices.ContainsFunc(folders, func(f folder) bool { return under(tree, f.path) })
	}
	check := func(trees []string) {
		for _, tree := range trees {
			if !exists(tree) {
				t.Errorf("no package lies below %s: correct the rule in %s", tree, where)
			}
		}
	}
	for _, l := range layers {
		check(slices.Concat(l.of, l.except, l.not, l.but))
	}
	for _, allowed := range owners {
		check(allowed)
	}
}

// mostImports is how many packages of the module one package may import. One that
// needs more does several jobs.
const mostImports = 12

// manyImports are the packages that may import more, with the reason.
var manyImports = map[string]string{
	"internal/app":          "the composition root puts everything together",
	"admin":                 "puts the admin's parts together and has the resources of the management server",
	"admin/portal":          "puts the portal's parts together",
	"gateway":               "follows requests to whatever answers them: stages, connections that leave HTTP, calls of the playground",
	"internal/cli":          "has the commands of all parts",
	"gateway/snapshot":      "the stage table names every stage",
	"gateway/stage/auth":    "every auth mode has its own source of credentials",
	"gateway/stage/graphql": "connects the GraphQL front end, of seven packages, with requests",
}

// fewLines is how long a package with a single importer is at least: a shorter one
// belongs into its importer. Stages are excepted: each is a package.
const fewLines = 150

// smallPackages are the packages that may be shorter, with the reason.
var smallPackages = map[string]string{
	"internal": "embeds declarations, which lie in folders below it",
	"sql":      "embeds the migrations, which lie in its folder",
}

func TestPackagesImportFewOthers(t *testing.T) {
	excused := make(map[string]bool)
	for _, f := range source(t) {
		ours := make(map[string]bool)
		for _, imported := range f.imports() {
			if strings.HasPrefix(imported, module+"/") {
				ours[imported] = true
			}
		}
		if len(ours) <= mostImports || covers(ground, f.path) {
			continue
		}
		if excused[f.path] = true; manyImports[f.path] == "" {
			t.Errorf("%s imports %d packages of ours, at most %d: it does several jobs; or name the reason in manyImports", f.path, len(ours), mostImports)
		}
	}
	for path := range manyImports {
		if !excused[path] {
			t.Errorf("%s imports no more than %d packages: take it out of manyImports", path, mostImports)
		}
	}
}

func TestSmallPackagesHaveAReason(t *testing.T) {
	folders := source(t)
	importers := make(map[string]int)
	for _, f := range folders {
		seen := make(map[string]bool)
		for _, imported := range f.imports() {
			if below, ok := strings.CutPrefix(imported, module+"/"); ok && !seen[below] {
				seen[below] = true
				importers[below]++
			}
		}
	}
	excused := make(map[string]bool)
	for _, f := range folders {
		lines := 0
		for _, file := range f.files {
			lines += f.fset.File(file.FileStart).LineCount()
		}
		if importers[f.path] != 1 || lines >= fewLines || covers(ground, f.path) || stageOf(f.path) != "" {
			continue
		}
		if excused[f.path] = true; smallPackages[f.path] == "" {
			t.Errorf("%s has %d lines and one importer: merge them, or name the reason in smallPackages", f.path, lines)
		}
	}
	for path := range smallPackages {
		if !excused[path] {
			t.Errorf("%s is not small any more, or has other importers: take it out of smallPackages", path)
		}
	}
}
