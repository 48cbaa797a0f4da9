package sdl_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/testenv"
)

// problems returns what is wrong with a schema.
func problems(t testing.TB, text string) []*sdl.Problem {
	t.Helper()
	_, err := sdl.Parse(text)
	found, ok := errors.AsType[*sdl.Errors](err)
	if err != nil && !ok {
		t.Fatalf("the error is %T", err)
	}
	if !ok {
		return nil
	}
	return found.Problems
}

const inputTypes = `
scalar Any
enum E { A B }
input In { a: Int b: E! c: [In!] d: String! = "x" one: One any: Any }
input One @oneOf { a: Int b: [Int] }
`

func TestDefaultValuesAreJudgedLikeThoseOfVariables(t *testing.T) {
	js := testenv.GraphQLJS(t)
	types := []string{"Int", "Int!", "Float", "String!", "Boolean", "ID", "[ID!]", "Any", "E", "E!", "[E!]!", "[[Int]]", "In", "[In!]", "One", "[One]"}
	r := rand.New(rand.NewPCG(3, 2))
	wrong := 0
	for range 1000 {
		ref, value := types[r.IntN(len(types))], literal(r, 3)
		schema := inputTypes + fmt.Sprintf("type Query { f(v: %s): Int }", ref)
		want := map[string]bool{}
		answer := js.Ask(t, testenv.Question{
			Op: "validate", Schema: schema, NoSuggestions: true,
			Source: fmt.Sprintf("query ($v: %s = %s) { f(v: $v) }", ref, value),
		})
		for _, e := range answer.Errors {
			want[e.Message] = true
		}
		got := map[string]bool{}
		for _, p := range problems(t, inputTypes+fmt.Sprintf("type Query { f(v: %s = %s): Int }", ref, value)) {
			got[strings.TrimPrefix(p.Message, "Query.f(v:) has an invalid default value: ")] = true
		}
		for m := range want {
			wrong++
			if !got[m] {
				t.Errorf("%s = %s: only graphql-js: %s (here %v)", ref, value, m, got)
			}
		}
		for m := range got {
			if !want[m] {
				t.Errorf("%s = %s: only here: %s", ref, value, m)
			}
		}
	}
	t.Logf("1000 default values, %d problems agreed on", wrong)
}

// literal returns a random value.
func literal(r *rand.Rand, depth int) string {
	kinds := 10
	if depth > 0 {
		kinds = 16
	}
	simple := []string{"0", "-3", "2147483648", "1.5", "1e300", `"x"`, "true", "null", "A", "C"}
	n := r.IntN(kinds)
	if n < len(simple) {
		return simple[n]
	}
	if n < 12 {
		items := make([]string, r.IntN(3))
		for i := range items {
			items[i] = literal(r, depth-1)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	names := []string{"a", "b", "c", "d", "one", "any", "zz"}
	var fields []string
	for _, name := range names {
		if r.IntN(3) == 0 {
			fields = append(fields, name+": "+literal(r, depth-1))
		}
	}
	if r.IntN(2) == 0 && !slices.ContainsFunc(fields, func(f string) bool { return f[0] == 'b' }) {
		fields = append(fields, "b: B")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
