package values

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/testenv"
)

// disagreements are where this package differs from the reference implementation
// on purpose, each with how to tell it from a mistake. Generated values are such
// that nothing else differs.
var disagreements = []struct {
	reason string
	is     func(got, want []string) bool
}{
	{
		reason: "A value that is repeated to the client is cut off at 200 bytes; the reference repeats all of it.",
		is: func(got, want []string) bool {
			return len(got) == len(want) && same(got, want, func(a, b string) bool { return a == b || alikeWhenCut(a, b) })
		},
	},
	{
		reason: "Of more than 19 errors, those that are told are the first in the order of the text, not of the types.",
		is: func(got, want []string) bool {
			return len(got) == MaxErrors && len(want) == MaxErrors && got[MaxErrors-1] == want[MaxErrors-1]
		},
	},
	{
		reason: "A member that is given more than once is refused; the reference takes the last.",
		is: func(got, _ []string) bool {
			return strings.Contains(strings.Join(got, "\n"), "is given more than once.")
		},
	},
}

func same(a, b []string, equal func(a, b string) bool) bool {
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// alikeWhenCut reports whether a is b with values cut off.
func alikeWhenCut(a, b string) bool {
	pieces := strings.Split(a, ellipsis)
	for i, piece := range pieces {
		piece = strings.Trim(piece, ".") // the cut may go through an ellipsis of the value
		at := strings.Index(b, piece)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		b = b[at+len(piece):]
	}
	return len(pieces) > 1
}

func TestAnswersAreThoseOfTheReferenceImplementation(t *testing.T) {
	oracle := testenv.GraphQLJS(t)
	counts := map[string]int{}
	for n := range 60 {
		g := &generator{Rand: rand.New(rand.NewPCG(11, uint64(n)))}
		text := g.schema()
		s := load(t, text)
		for range 50 {
			pairs, json := g.variables()
			vars, source := operation(t, g, pairs)
			for i := range vars {
				vars[i].Type = reference(t, s, pairs[i].typ)
			}
			answer := oracle.Ask(t, testenv.Question{
				Op: "coerce", Schema: text, Source: source, Variables: rawJSON(json), MaxErrors: MaxErrors - 1, NoSuggestions: true,
			})
			var c Checker
			counts[compare(t, c.Check(s, vars, []byte(json), make([]int64, len(vars)), Options{}), answer.Errors, source+"\n"+json)]++
		}
	}
	for what, n := range counts {
		t.Logf("%5d %s", n, what)
	}
	if counts["valid"] < 500 || counts["invalid"] < 500 {
		t.Error("the generated variables are too one-sided")
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// compare fails t unless both say the same, and tells what they say.
func compare(t *testing.T, ours []*syntax.Error, theirs []testenv.OracleError, about string) string {
	t.Helper()
	got, want := []string{}, []string{}
	for _, e := range ours {
		got = append(got, e.Message)
	}
	for _, e := range theirs {
		want = append(want, e.Message)
	}
	if reflect.DeepEqual(got, want) {
		if where := differentPlace(ours, theirs); where != "" {
			t.Errorf("%s\n%s", about, where)
		}
		if len(got) == 0 {
			return "valid"
		}
		return "invalid"
	}
	for _, d := range disagreements {
		if d.is(got, want) {
			return d.reason
		}
	}
	t.Errorf("%s\n got %q\nwant %q", about, got, want)
	return "wrong"
}

func differentPlace(ours []*syntax.Error, theirs []testenv.OracleError) string {
	for i, e := range ours {
		if len(e.Locations) != len(theirs[i].Locations) {
			return fmt.Sprint(e.Message, ": ", e.Locations, ", want ", theirs[i].Locations)
		}
		for j, l := range e.Locations {
			if testenv.OracleLocation(l) != theirs[i].Locations[j] {
				return fmt.Sprint(e.Message, ": ", l, ", want ", theirs[i].Locations[j])
			}
		}
	}
	return ""
}

type pair struct{ name, typ string }

// operation makes an operation of variables, each on a line of its own, and what
// is known of them, the types left out.
func operation(t *testing.T, g *generator, pairs []pair) ([]validate.Variable, string) {
	t.Helper()
	var vars []validate.Variable
	b := &strings.Builder{}
	b.WriteString("query (\n")
	for i, p := range pairs {
		hasDefault := g.IntN(6) == 0 && !strings.HasSuffix(p.typ, "!")
		vars = append(vars, validate.Variable{Name: p.name, HasDefault: hasDefault, Location: syntax.Location{Line: i + 2, Column: 1}})
		fmt.Fprintf(b, "$%s: %s", p.name, p.typ)
		if hasDefault {
			b.WriteString(" = null")
		}
		b.WriteString("\n")
	}
	b.WriteString(") { __typename }")
	return vars, b.String()
}

// A generator makes schemas, variables of their types and values that mostly fit.
type generator struct {
	*rand.Rand
	enums, inputs []string
	fields        map[string][]pair // by input
	oneOf         map[string]bool
}

func (g *generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g *generator) schema() string {
	g.enums, g.inputs, g.fields, g.oneOf = nil, nil, map[string][]pair{}, map[string]bool{}
	b := &strings.Builder{}
	b.WriteString("type Query { a(b: Int, c: Float, d: ID): Int }\nscalar Any\n")
	for i := range 1 + g.IntN(3) {
		name := fmt.Sprintf("Enum%d", i)
		g.enums = append(g.enums, name)
		fmt.Fprintf(b, "enum %s { A B %s_ONLY }\n", name, strings.ToUpper(name))
	}
	for i := range 1 + g.IntN(5) {
		g.inputs = append(g.inputs, fmt.Sprintf("Input%d", i))
	}
	for _, name := range g.inputs {
		g.input(b, name)
	}
	return b.String()
}

// input makes an input object. Only fields that may be null are of input types,
// so that values end.
func (g *generator) input(b *strings.Builder, name string) {
	g.oneOf[name] = g.IntN(4) == 0
	fmt.Fprintf(b, "input %s%s {", name, map[bool]string{true: " @oneOf"}[g.oneOf[name]])
	names := []string{"a", "b", "c", "dd", "a_b", "Z", "_x", "in", "e", "f", "g", "h"}
	for i := range 1 + g.IntN(len(names)-1) {
		typ := g.typ(g.oneOf[name])
		if input := g.inputIn(typ); input != "" && strings.HasSuffix(typ, "!") {
			typ = strings.TrimSuffix(typ, "!")
		}
		fmt.Fprintf(b, " %s: %s", names[i], typ)
		if text := g.defaultFor(typ); text != "" && !g.oneOf[name] {
			fmt.Fprintf(b, " = %s", text)
			typ += "="
		}
		g.fields[name] = append(g.fields[name], pair{names[i], typ})
	}
	b.WriteString(" }\n")
}

func (g *generator) inputIn(typ string) string {
	if name := strings.Trim(typ, "[]!"); strings.HasPrefix(name, "Input") {
		return name
	}
	return ""
}

func (g *generator) defaultFor(typ string) string {
	if g.IntN(4) > 0 {
		return ""
	}
	return map[string]string{"Int!": "1", "Float!": "1.5", "String!": `"x"`, "Boolean!": "true", "ID!": "1", "Int": "null", "Any": "{a: 1}"}[typ]
}

func (g *generator) typ(nullable bool) string {
	named := append([]string{"Int", "Float", "String", "Boolean", "ID", "Any"}, g.enums...)
	typ := g.pick(append(named, g.inputs...)...)
	for g.IntN(4) == 0 {
		typ = "[" + typ + map[bool]string{true: "!"}[g.IntN(3) == 0] + "]"
	}
	if !nullable && g.IntN(3) == 0 {
		typ += "!"
	}
	return typ
}

// variables makes variables and the JSON for them.
func (g *generator) variables() ([]pair, string) {
	var pairs []pair
	var members []string
	for i := range 1 + g.IntN(12) {
		p := pair{fmt.Sprintf("v%d", i), g.typ(false)}
		pairs = append(pairs, p)
		if g.IntN(8) > 0 {
			members = append(members, fmt.Sprintf("%q: %s", p.name, g.value(p.typ, 0)))
		}
	}
	if g.IntN(5) == 0 {
		members = append(members, `"extra": {"x": [1]}`)
	}
	if g.IntN(50) == 0 {
		members = append(members, `"v0": 1`)
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return pairs, "{" + strings.Join(members, ", ") + "}"
}

// value makes a value for a type that fits more often than not.
func (g *generator) value(typ string, depth int) string {
	if g.IntN(50) == 0 {
		return g.anything(0)
	}
	if inner, ok := strings.CutSuffix(typ, "!"); ok {
		return g.value(inner, depth)
	}
	if g.IntN(10) == 0 || depth > 4 {
		return "null"
	}
	if strings.HasPrefix(typ, "[") {
		return g.list(typ[1:len(typ)-1], depth)
	}
	switch {
	case strings.HasPrefix(typ, "Enum"):
		return g.pick(`"A"`, `"B"`, `"A"`, `"\u0042"`, `"`+strings.ToUpper(typ)+`_ONLY"`, `"ENUM0_ONLY"`)
	case strings.HasPrefix(typ, "Input"):
		return g.object(typ, depth)
	}
	return g.scalar(typ)
}

func (g *generator) list(of string, depth int) string {
	if g.IntN(5) == 0 {
		return g.value(of, depth)
	}
	var items []string
	for range g.IntN(4) {
		items = append(items, g.value(of, depth+1))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (g *generator) object(typ string, depth int) string {
	var members []string
	add := func(p pair) {
		members = append(members, fmt.Sprintf("%q: %s", p.name, g.value(strings.TrimSuffix(p.typ, "="), depth+1)))
	}
	fields := g.fields[typ]
	if g.oneOf[typ] && g.IntN(5) > 0 {
		add(fields[g.IntN(len(fields))])
		fields = nil
	}
	for _, p := range fields {
		if required := strings.HasSuffix(p.typ, "!"); required && g.IntN(20) > 0 || !required && g.IntN(3) == 0 {
			add(p)
		}
	}
	if g.IntN(60) == 0 && len(members) > 0 {
		members = append(members, members[0])
	}
	if g.IntN(20) == 0 {
		members = append(members, `"nosuch": 1`)
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ", ") + "}"
}

func (g *generator) scalar(typ string) string {
	switch typ {
	case "Int":
		return g.pick("0", "1", "-7", "2147483647", "-2147483648", "2147483648", "1.0", "1e3", "25e-1", "-0", "1e400")
	case "Float":
		return g.pick("0", "1.5", "-1e10", "1e308", "1e309", "5e-324", "123456789012345678901234567890", "0.000001", "0.0000001")
	case "String":
		return g.pick(`""`, `"x"`, `"\u00e9\n\"\\\/"`, `"😀"`, `"\ud83d\ude00"`)
	case "Boolean":
		return g.pick("true", "false")
	case "ID":
		return g.pick(`"a"`, "1", "1e21", "1.5", "9007199254740993", "-3", "1e400", "10.0")
	}
	return g.anything(0)
}

// anything makes any value.
func (g *generator) anything(depth int) string {
	switch kind := g.IntN(9); {
	case kind == 0 && depth < 4:
		var items []string
		for range g.IntN(14) {
			items = append(items, g.anything(depth+1))
		}
		return "[" + strings.Join(items, ",") + "]"
	case kind == 1 && depth < 4:
		var members []string
		for i := range g.IntN(4) {
			members = append(members, fmt.Sprintf("%q:%s", fmt.Sprintf("m\"é%d", i), g.anything(depth+1)))
		}
		return "{" + strings.Join(members, ",") + "}"
	case kind == 2:
		b, _ := json.Marshal(strings.Repeat(g.pick("long ", "é\x01", "😀\u2028\x7f"), 1+g.IntN(40)))
		return string(b)
	case kind < 5:
		return g.pick("true", "false", "null")
	case kind == 5:
		return g.scalar("Float")
	default:
		return g.scalar(g.pick("Int", "String", "ID"))
	}
}
