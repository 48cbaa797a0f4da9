package compose_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/compose"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A verdict is what the reference says about a composition.
type verdict struct {
	Codes []string
	SDL   string
}

// reference asks @apollo/federation 0.38.1, which the directory in
// SLUICE_TEST_FEDERATION has:
//
//	npm install --ignore-scripts @apollo/federation@0.38.1 graphql@15
func reference(t *testing.T, compositions [][]string) []verdict {
	t.Helper()
	dir := os.Getenv("SLUICE_TEST_FEDERATION")
	if _, err := os.Stat(filepath.Join(dir, "node_modules/@apollo/federation")); dir == "" || err != nil {
		t.Skip("SLUICE_TEST_FEDERATION names no directory with the npm packages @apollo/federation and graphql")
	}
	script, err := filepath.Abs("testdata/reference.cjs")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(compositions)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.Command("node", script)
	node.Dir, node.Stdin, node.Stderr = dir, bytes.NewReader(asked), os.Stderr
	answer, err := node.Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []verdict
	if err := json.Unmarshal(answer, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// same holds that two schemas are the same to clients. The reference adds what it plans with.
func same(t *testing.T, ours, theirs string) {
	t.Helper()
	a, err := schema.Load(ours)
	if err != nil {
		t.Fatal(err)
	}
	b, err := schema.Load(theirs)
	if err != nil {
		t.Fatalf("%v:\n%s", err, theirs)
	}
	for _, c := range change.Compare(a, b) {
		if c.Kind != change.DirectiveAdded && !strings.HasPrefix(c.Place, "core__") && !strings.HasPrefix(c.Place, "join__") {
			t.Errorf("%+v\n%s\nreference:\n%s", c, ours, theirs)
		}
	}
}

func TestTheReferenceHasTheSameVerdicts(t *testing.T) {
	var all [][]string
	for _, c := range compositions {
		all = append(all, append([]string{}, c.subgraphs...))
	}
	for i, v := range reference(t, all) {
		c := &compositions[i]
		made, found := compose.Compose(c.named())
		if agree := (made != nil) == (len(v.Codes) == 0); agree != (c.different == "") {
			t.Errorf("%s: we have %q, the reference %q, different: %q", c.name, problems(found), v.Codes, c.different)
		}
		if made != nil && v.SDL != "" {
			same(t, made.SDL, v.SDL)
		}
	}
}

// Codes of ours for what the reference composes, and codes of the reference for what we
// compose. It does not look at what is provided with lists, and has one key for each
// extension.
var (
	oursOnly   = []compose.Code{compose.ExtensionWithoutKey, compose.SharedTypeExtended, compose.FieldUnreachable, compose.ProvidesUnknownField}
	theirsOnly = []string{"EXTERNAL_UNUSED", "KEY_FIELDS_MISSING_EXTERNAL", "MULTIPLE_KEYS_ON_EXTENSION"}
)

// missingExternal is in what the reference says about the field of a key that is not
// external; more problems come of it.
const missingExternal = `.id" already exists in the schema. It cannot also be defined in this type extension`

func TestTheReferenceHasTheSameVerdictsOfGeneratedSubgraphs(t *testing.T) {
	seed := rand.Uint64()
	if given := os.Getenv("SLUICE_TEST_SEED"); given != "" {
		if _, err := fmt.Sscan(given, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([][]string, 500)
	for i := range all {
		all[i] = generated(r)
	}
	composed, refused := 0, 0
	for i, v := range reference(t, all) {
		c := composition{subgraphs: all[i]}
		made, found := compose.Compose(c.named())
		v.Codes = slices.DeleteFunc(v.Codes, func(code string) bool { return slices.Contains(theirsOnly, code) })
		if made != nil && slices.ContainsFunc(v.Codes, func(code string) bool { return strings.Contains(code, missingExternal) }) {
			v.Codes = nil
		}
		different := !slices.ContainsFunc(found, func(p compose.Problem) bool { return !slices.Contains(oursOnly, p.Code) })
		switch {
		case made != nil && len(v.Codes) == 0:
			composed++
			if v.SDL != "" {
				same(t, made.SDL, v.SDL)
			}
		case made == nil && (len(v.Codes) > 0 || different):
			refused++
		default:
			t.Errorf("we have %q, the reference %q:\n%s", problems(found), v.Codes, strings.Join(all[i], "\n----\n"))
		}
	}
	t.Logf("%d composed, %d refused", composed, refused)
}

// generated returns subgraphs with entities and shared types, often with some faults.
func generated(r *rand.Rand) []string {
	g := &generator{r: r, faults: 20 + r.IntN(300), texts: make([]strings.Builder, 2+r.IntN(2))}
	for i := range g.texts {
		g.writef(i, "extend type Query { q%d: E0 }\n", i)
	}
	for n := range 1 + r.IntN(3) {
		base := r.IntN(len(g.texts))
		for i := range g.texts {
			if i == base {
				g.base(i, n)
			} else {
				g.extension(i, n)
			}
		}
	}
	var texts []string
	for i := range g.texts {
		g.writef(i, "type Org { id: ID!%s }\nenum Shared { %s }\n%s", g.odd(" x: Int", ""), g.odd("A C", g.pick("A B", "B A")),
			g.odd(g.pick("extend type Nope { a: Int }", "extend enum Shared { D }", "scalar Org", "extend type Query { q0: E0 }", "type E0 { id: ID! }", "union U = Org"), ""))
		texts = append(texts, g.texts[i].String())
	}
	return texts
}

type generator struct {
	r      *rand.Rand
	faults int // one in so many places has one
	texts  []strings.Builder
}

func (g *generator) writef(to int, format string, args ...any) {
	fmt.Fprintf(&g.texts[to], format, args...)
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) odd(fault, good string) string {
	if g.r.IntN(g.faults) == 0 {
		return fault
	}
	return good
}

func (g *generator) base(i, n int) {
	keys := g.odd("", `@key(fields: "id") @key(fields: "org { id }") @key(fields: "org { id } code")`)
	g.writef(i, "type E%d %s { id: ID! org: Org code: %s name: String own%d: [E0] }\n", n, keys, g.odd("String", "Int"), n)
}

func (g *generator) extension(i, n int) {
	begin := g.pick("extend type E%d %s {", "type E%d @extends %s {")
	keys := g.pick(`@key(fields: "id")`, `@key(fields: "id") @key(fields: "org { id }")`, `@key(fields: "org { id } code")`)
	g.writef(i, begin, n, g.odd(g.pick("", `@key(fields: "name")`, `@key(fields: "nope")`), keys))
	g.writef(i, " id: ID!%s org: Org @external code: Int @external name: %s%s\n", g.odd("", " @external"), g.odd("ID", "String"), g.odd("", " @external"))
	g.writef(i, " more%d_%d(a: Int): Int @requires(fields: %q)\n", i, n, g.odd("nope", g.pick("name", "name code", "name org { id }")))
	g.writef(i, " give%d_%d: [E%d] %s\n}\n", i, n, n, g.odd(`@provides(fields: "nope")`, g.pick("", `@provides(fields: "name")`, `@provides(fields: "code name")`)))
}
