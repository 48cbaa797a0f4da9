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
	if dir == "" {
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
// compose.
var (
	oursOnly   = []compose.Code{compose.ExtensionWithoutKey, compose.SharedTypeExtended, compose.FieldUnreachable}
	theirsOnly = []string{"EXTERNAL_UNUSED", "KEY_FIELDS_MISSING_EXTERNAL"}
)

func TestTheReferenceHasTheSameVerdictsOfGeneratedSubgraphs(t *testing.T) {
	seed := rand.Uint64()
	if given := os.Getenv("SLUICE_TEST_SEED"); given != "" {
		if _, err := fmt.Sscan(given, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([][]string, 2000)
	for i := range all {
		all[i] = generated(r)
	}
	composed, refused := 0, 0
	for i, v := range reference(t, all) {
		c := composition{subgraphs: all[i]}
		made, found := compose.Compose(c.named())
		v.Codes = slices.DeleteFunc(v.Codes, func(code string) bool { return slices.Contains(theirsOnly, code) })
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

// generated returns subgraphs with entities and shared types, often with one fault.
func generated(r *rand.Rand) []string {
	subgraphs := make([]strings.Builder, 2+r.IntN(2))
	chance := func(n int) bool { return r.IntN(n) == 0 }
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	faults := 12 + r.IntN(100)
	for i := range subgraphs {
		fmt.Fprintf(&subgraphs[i], "extend type Query { q%d: E0 }\n", i)
	}
	for n := range 1 + r.IntN(3) {
		base := r.IntN(len(subgraphs))
		for i := range subgraphs {
			b := &subgraphs[i]
			if i == base {
				fmt.Fprintf(b, "type E%d%s { id: ID! org: Org code: %s name: String own%d: [E0] }\n",
					n, pick(append(slices.Repeat([]string{` @key(fields: "id") @key(fields: "org { id }") @key(fields: "org { id } code")`}, faults), "")...), pick("Int", "Int", "String"), n)
				continue
			}
			keys := ` @key(fields: "id")` + pick("", ` @key(fields: "org { id }")`, ` @key(fields: "org { id } code")`)
			if chance(faults) {
				keys = pick("", ` @key(fields: "name")`, ` @key(fields: "nope")`)
			}
			external := " @external"
			if chance(faults) {
				external = ""
			}
			begin, end := "extend type", ""
			if chance(2) {
				begin, end = "type", " @extends"
			}
			fmt.Fprintf(b, "%s E%d%s { id: ID!%s org: Org @external code: Int @external name: %s%s\n", begin, n, end+keys, external, pick("String", "String", "String", "String", "ID"), pick(" @external", " @external", " @external", ""))
			fmt.Fprintf(b, " more%d_%d(a: Int): Int @requires(fields: %q)\n", i, n, pick("name", "name", "name code", "org { id }", "nope"))
			fmt.Fprintf(b, " give%d_%d: [E%d] %s\n}\n", i, n, n, pick("", `@provides(fields: "name")`, `@provides(fields: "code name")`, `@provides(fields: "nope")`))
		}
	}
	for i := range subgraphs {
		b := &subgraphs[i]
		fmt.Fprintf(b, "type Org { id: ID!%s }\nenum Shared { %s }\n", map[bool]string{true: " x: Int"}[chance(faults)], map[bool]string{true: "A C", false: pick("A B", "B A")}[chance(faults)])
		if chance(faults) {
			fmt.Fprint(b, pick("extend type Nope { a: Int }\n", "extend enum Shared { D }\n", "scalar Org\n", "extend type Query { q0: E0 }\n", "type E0 { id: ID! }\n", "union U = Org\n"))
		}
	}
	texts := make([]string, len(subgraphs))
	for i := range subgraphs {
		texts[i] = subgraphs[i].String()
	}
	return texts
}
