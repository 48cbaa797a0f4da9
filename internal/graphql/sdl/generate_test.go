package sdl

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// A generator writes random schemas, most of them valid.
type generator struct {
	r                                       *rand.Rand
	objects, interfaces, unions, enums, ins []string
	fields                                  map[string]string // of interfaces: their text
	above                                   map[string][]string
}

func (g *generator) pick(of []string) string { return of[g.r.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

func (g *generator) wrap(name string) string {
	for range 3 {
		if g.chance(25) && !strings.HasSuffix(name, "!") {
			name += "!"
		}
		if g.chance(20) {
			name = "[" + name + "]"
		}
	}
	return name
}

func (g *generator) output() string {
	all := append([]string{"Int", "String", "ID", "Date"}, g.objects...)
	all = append(append(append(all, g.interfaces...), g.unions...), g.enums...)
	return g.wrap(g.pick(all))
}

// input returns an input type and, at times, a default value.
func (g *generator) input() string {
	switch g.r.IntN(8) {
	case 0:
		return "Int = 3"
	case 1:
		return `String! = "a"`
	case 2:
		return "[" + g.pick(g.enums) + "!] = [A, B]"
	case 3:
		return "Date = {a: 1, b: [null]}"
	case 4:
		return "In0 = {a0: 1}"
	case 5:
		return g.pick(g.ins)
	default:
		return g.wrap(g.pick([]string{"Int", "Float", "Boolean", "ID", "Date"}))
	}
}

func (g *generator) uses(place string) (text string) {
	if g.chance(85) {
		return ""
	}
	switch {
	case g.chance(50):
		return ` @tag(name: "x")` + strings.Repeat(` @tag(name: "y", n: 1)`, g.r.IntN(2))
	case g.chance(50):
		return " @once"
	case strings.Contains("FIELD VALUE", place):
		return ` @deprecated(reason: "old")`
	}
	return ""
}

func (g *generator) arguments() string {
	if g.chance(70) {
		return ""
	}
	var args []string
	for i := range 1 + g.r.IntN(3) {
		args = append(args, fmt.Sprintf("a%d: %s%s", i, g.input(), g.uses("ARG")))
	}
	return "(" + strings.Join(args, ", ") + ")"
}

func (g *generator) body(prefix string) string {
	var b strings.Builder
	for i := range 1 + g.r.IntN(4) {
		fmt.Fprintf(&b, "  %s%d%s: %s%s\n", prefix, i, g.arguments(), g.output(), g.uses("FIELD"))
	}
	return b.String()
}

// implementing returns the clause of a type and the fields that it owes.
func (g *generator) implementing(from []string) (clause, owed string) {
	if len(from) == 0 || g.chance(50) {
		return "", ""
	}
	seen := map[string]bool{}
	var names []string
	for _, name := range append([]string{g.pick(from)}, g.above[g.pick(from)]...) {
		for _, n := range append([]string{name}, g.above[name]...) {
			if !seen[n] {
				seen[n] = true
				names = append(names, n)
				owed += g.fields[n]
			}
		}
	}
	return " implements " + strings.Join(names, " & "), owed
}

func (g *generator) schema() string {
	g.objects, g.interfaces = numbered("T", 1+g.r.IntN(5)), numbered("I", g.r.IntN(4))
	g.unions, g.enums, g.ins = numbered("U", g.r.IntN(3)), numbered("E", 1+g.r.IntN(2)), numbered("In", 1+g.r.IntN(4))
	g.fields, g.above = map[string]string{}, map[string][]string{}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	add("scalar Date%s", g.uses("SCALAR"))
	add("directive @tag(name: String!, n: Int = 2) repeatable on FIELD_DEFINITION | OBJECT | INTERFACE | UNION | ENUM | ENUM_VALUE | SCALAR | INPUT_OBJECT | INPUT_FIELD_DEFINITION | ARGUMENT_DEFINITION | SCHEMA")
	add("directive @once on FIELD_DEFINITION | OBJECT | INTERFACE | UNION | ENUM | ENUM_VALUE | SCALAR | INPUT_OBJECT | INPUT_FIELD_DEFINITION | ARGUMENT_DEFINITION | SCHEMA")
	if g.chance(20) {
		add("schema%s { query: Query }", g.uses("SCHEMA"))
	}
	for i, name := range g.interfaces {
		clause, owed := g.implementing(g.interfaces[:i])
		above := strings.FieldsFunc(strings.TrimPrefix(clause, " implements "), func(r rune) bool { return r == '&' || r == ' ' })
		g.above[name] = append(g.above[name], above...)
		g.fields[name] = g.body(strings.ToLower(name) + "f")
		add("%sinterface %s%s%s {\n%s%s}", g.description(), name, clause, g.uses("INTERFACE"), g.fields[name], owed)
	}
	for _, name := range append([]string{"Query"}, g.objects...) {
		clause, owed := g.implementing(g.interfaces)
		add("%stype %s%s%s {\n%s%s}", g.description(), name, clause, g.uses("OBJECT"), g.body("f"), owed)
	}
	for _, name := range g.unions {
		add("union %s%s = %s", name, g.uses("UNION"), strings.Join(g.objects[:1+g.r.IntN(len(g.objects))], " | "))
	}
	for _, name := range g.enums {
		add("enum %s%s { A B%s C }", name, g.uses("ENUM"), g.uses("VALUE"))
	}
	for i, name := range g.ins {
		var fields strings.Builder
		for f := range 1 + g.r.IntN(3) {
			fields.WriteString(fmt.Sprintf(" a%d: %s%s", f, g.pick([]string{"Int", "Float", "ID", "[" + g.ins[i] + "!]"}), g.uses("FIELD")))
		}
		add("input %s%s {%s }", name, g.uses("INPUT_OBJECT"), fields.String())
	}
	if g.chance(40) {
		add("extend type %s {\n  extra: Int }", g.pick(g.objects))
	}
	if g.chance(20) {
		add("extend enum %s { D }", g.pick(g.enums))
	}
	g.r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, "\n\n")
}

func (g *generator) description() string {
	if g.chance(80) {
		return ""
	}
	return "\"\"\"\nWhat it is, \U0001F600.\n\"\"\" "
}

var (
	tokens = regexp.MustCompile(`@?\w+|"""(?s:.*?)"""|"[^"]*"|\.\.\.|[^\s\w]`)
	blocks = regexp.MustCompile(`\n\n`)
)

// mutate changes a schema in one place: a name for another one, a token left
// out or doubled, or a whole definition doubled, turned into an extension, or
// left out.
func (g *generator) mutate(text string) string {
	at := tokens.FindAllStringIndex(text, -1)
	if len(at) == 0 {
		return text
	}
	token := func() []int { return at[g.r.IntN(len(at))] }
	a, b := token(), token()
	switch g.r.IntN(10) {
	case 0:
		return text[:a[0]] + text[a[1]:]
	case 1:
		return text[:a[1]] + " " + text[a[0]:]
	case 2, 3, 4, 5:
		return text[:a[0]] + g.instead(text[a[0]:a[1]], text[b[0]:b[1]]) + text[a[1]:]
	case 6:
		return text + "\n\n" + g.pick([]string{
			"extend type T0 { f0: Int }", "extend type Nowhere { f0: Int }", "extend interface T0 { a: Int }", "type __T { a: Int }",
			"extend union U0 = T0", "union W = Query | In0", "input L0 { a: L1! b: L0! } input L1 { a: L0! c: L1! d: [L1!]! }",
			"input One @oneOf { a: Int! b: Int = 3 c: Int }", "directive @tag on FIELD", "extend schema { query: T0 }", "schema { mutation: T0 }",
			"type Req { f(a: Int! @deprecated): Int }", "input Req2 { a: Int! @deprecated(reason: null) b: ID! @deprecated }",
			"interface Loop implements Loop { a: Int }", "interface LA implements LB { a: Int } interface LB implements LA { a: Int }",
			"type Again implements I0 & I0 { a: Int }", "directive @need(a: Int! b: [T0]) on SCALAR", "scalar N @need", `scalar N @need(b: 1, b: {x: 1, x: 2}, c: 3)`,
			"enum Empty", "type Empty2", "union Empty3", "input Empty4", "interface Empty5", "extend type Empty2 @once", "type Of { a(x: Of): In0 }",
			"extend scalar Date @once", "extend scalar Date @specifiedBy(url: \"x\")", "type Dep { a: Int @deprecated @deprecated }",
			"directive @argh(a: Int! @deprecated) on FIELD", "extend input In0 { zz: In0! }", "scalar Int", "type Sub { a(a: Int, a: Int, a: Int): Int }",
			"interface Wants { a(x: Int, y: ID): T0 } type Gives implements Wants { a(x: String, z: Int!): ID }",
			"interface Wide { a: [Wide] } type Slim implements Wide { a: [Slim!]! } type Fat implements Wide { a: Slim }",
		})
	case 7:
		parts := blocks.Split(text, -1)
		return text + "\n\n" + g.pick(parts)
	case 8:
		parts := blocks.Split(text, -1)
		i := g.r.IntN(len(parts))
		parts[i] = "extend " + parts[i]
		return strings.Join(parts, "\n\n")
	default:
		parts := blocks.Split(text, -1)
		i := g.r.IntN(len(parts))
		return strings.Join(append(parts[:i:i], parts[i+1:]...), "\n\n")
	}
}

// instead returns what may stand in a token's place: another name for a name.
func (g *generator) instead(token, other string) string {
	if c := token[0]; c == '@' || c < 'A' {
		return token
	}
	if other[0] >= 'A' && g.chance(70) {
		return other
	}
	return g.pick([]string{"Unknown", "__x", "Int", "T0", "In0", "E0", "I0", "U0", "f0", "A", "type", "input", "enum", "__Type"})
}
