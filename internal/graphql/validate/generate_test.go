package validate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// schemaText writes a random schema in which fields of different types share
// names, so that fragments have something to conflict about.
func schemaText(r *rand.Rand) string {
	var b strings.Builder
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	wrap := func(name string) string {
		return pick("%s", "%s", "%s", "%s!", "[%s]", "[%s!]!", "[[%s]]")
	}
	of := func(names ...string) string { name := pick(names...); return fmt.Sprintf(wrap(name), name) }
	input := func() string {
		return pick(of("Int", "Float", "String", "Boolean", "ID", "E0", "E1", "Any", "In0", "In1", "One"),
			"Int = 3", `String! = "x"`, "[E0!] = [RED]", "In0", "ID!", "[Int!]!", "Boolean")
	}
	arguments := func() string {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprintf("(x: %s, y: %s, first: Int)", input(), input())
		case 1:
			return fmt.Sprintf("(y: %s)", input())
		default:
			return ""
		}
	}
	objects, interfaces := []string{"T0", "T1", "T2", "T3", "T4"}, []string{"I0", "I1", "I2"}
	output := func() string {
		return of(append([]string{"Int", "String", "E0", "Float", "Any", "U0", "U1", "I0", "I1", "Query"}, objects...)...)
	}
	shared := map[string]string{}
	for _, name := range []string{"id", "name", "kind", "of", "list"} {
		shared[name] = arguments() + ": " + output()
	}
	b.WriteString("scalar Any\nenum E0 { RED GREEN BLUE }\nenum E1 { RED ROUND }\n")
	fmt.Fprintf(&b, "input In0 { a: %s b: In1 c: Int! = 2 d: [In0!] }\ninput In1 { a: Int! b: [E0] one: One }\ninput One @oneOf { a: Int b: In1 c: [String!] }\n", input())
	b.WriteString("directive @tag(name: String!, n: Int = 1) repeatable on FIELD | QUERY | INLINE_FRAGMENT | FRAGMENT_DEFINITION\n")
	b.WriteString("directive @once(in: In0) on FIELD | QUERY | MUTATION | SUBSCRIPTION | FRAGMENT_SPREAD | VARIABLE_DEFINITION\n")
	owns := map[string][]string{}
	for _, name := range interfaces {
		for _, f := range slices.Sorted(maps.Keys(shared)) {
			if r.IntN(2) == 0 {
				owns[name] = append(owns[name], f)
			}
		}
		if len(owns[name]) == 0 {
			owns[name] = []string{"id"}
		}
		fmt.Fprintf(&b, "interface %s {", name)
		for _, f := range owns[name] {
			fmt.Fprintf(&b, " %s%s", f, shared[f])
		}
		b.WriteString(" }\n")
	}
	for _, name := range append([]string{"Query", "Mutation", "Subscription"}, objects...) {
		fields := map[string]string{}
		var clause strings.Builder
		for _, i := range interfaces {
			if name[0] == 'T' && r.IntN(2) == 0 {
				clause.WriteString(" & " + i)
				for _, f := range owns[i] {
					fields[f] = shared[f]
				}
			}
		}
		for _, f := range []string{"id", "name", "a", "b", "c", "d"} {
			if _, ok := fields[f]; !ok && r.IntN(3) > 0 {
				fields[f] = arguments() + ": " + output()
			}
		}
		fields["t"] = ": " + pick(objects...)
		fmt.Fprintf(&b, "type %s%s {", name, strings.Replace(clause.String(), " &", " implements", 1))
		for _, f := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&b, " %s%s", f, fields[f])
		}
		b.WriteString(" }\n")
	}
	b.WriteString("union U0 = T0 | T1 | T2\nunion U1 = T2 | T3\nextend type Query { all(f: Float, i: Int, s: String, b: Boolean, id: ID, e: E0, f1: E1): Int }\n")
	return b.String()
}

// An operations writes random documents that are mostly valid.
type operations struct {
	r         *rand.Rand
	s         *schema.Schema
	roots     []string // kinds of operations that the schema has
	variables map[string]string
	fragments []string
	composite []schema.TypeID
}

func newOperations(r *rand.Rand, s *schema.Schema) *operations {
	g := &operations{r: r, s: s, roots: []string{"query"}}
	if s.Mutation != schema.NoType {
		g.roots = append(g.roots, "mutation")
	}
	if s.Subscription != schema.NoType {
		g.roots = append(g.roots, "subscription")
	}
	for t := range s.Types {
		if s.Types[t].Kind.Composite() && !s.Types[t].BuiltIn {
			g.composite = append(g.composite, schema.TypeID(t))
		}
	}
	return g
}

func (g *operations) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *operations) document() string {
	g.variables, g.fragments = map[string]string{}, nil
	kind := g.roots[0]
	if g.chance(30) {
		kind = g.roots[g.r.IntN(len(g.roots))]
	}
	root := map[string]schema.TypeID{"query": g.s.Query, "mutation": g.s.Mutation, "subscription": g.s.Subscription}[kind]
	var body string
	if kind == "subscription" && g.chance(80) {
		body = "{ " + g.field(root, 2) + " }"
	} else {
		body = g.set(root, 1+g.r.IntN(3))
	}
	head := kind
	if g.chance(60) {
		head += " Op"
	}
	if len(g.variables) > 0 {
		var vars []string
		for _, name := range slices.Sorted(maps.Keys(g.variables)) {
			vars = append(vars, "$"+name+": "+g.variables[name])
		}
		head += "(" + strings.Join(vars, ", ") + ")"
	}
	text := head + g.directive("query") + " " + body
	if head == "query" && g.chance(30) {
		text = body
	}
	for _, f := range g.fragments {
		if g.chance(20) {
			text = f + "\n" + text
		} else {
			text += "\n" + f
		}
	}
	if g.chance(3) {
		text += "\nquery Other { __typename }"
	}
	return text
}

func (g *operations) set(t schema.TypeID, depth int) string {
	var parts []string
	for range 1 + g.r.IntN(4) {
		switch {
		case depth > 0 && g.chance(12):
			parts = append(parts, g.inline(t, depth))
		case depth > 0 && g.chance(12):
			parts = append(parts, g.spread(t, depth))
		case g.s.Types[t].Kind == schema.Union || g.chance(5):
			parts = append(parts, "__typename")
		default:
			parts = append(parts, g.field(t, depth))
		}
	}
	return "{ " + strings.Join(parts, " ") + " }"
}

// related returns a type that overlaps with another.
func (g *operations) related(t schema.TypeID) schema.TypeID {
	v := Validator{s: g.s}
	for range 20 {
		if other := g.composite[g.r.IntN(len(g.composite))]; v.overlap(t, other) {
			return other
		}
	}
	return t
}

func (g *operations) inline(t schema.TypeID, depth int) string {
	if g.chance(20) {
		return "..." + g.directive("inline") + " " + g.set(t, depth-1)
	}
	other := g.related(t)
	return "... on " + g.s.Types[other].Name + g.directive("inline") + " " + g.set(other, depth-1)
}

func (g *operations) spread(t schema.TypeID, depth int) string {
	if len(g.fragments) > 0 && g.chance(15) {
		return fmt.Sprintf("...F%d", g.r.IntN(len(g.fragments)))
	}
	other := g.related(t)
	n := len(g.fragments)
	g.fragments = append(g.fragments, "")
	g.fragments[n] = fmt.Sprintf("fragment F%d on %s%s %s", n, g.s.Types[other].Name, g.directive("fragment"), g.set(other, depth-1))
	return fmt.Sprintf("...F%d%s", n, g.directive("spread"))
}

func (g *operations) field(t schema.TypeID, depth int) string {
	fields := g.s.Types[t].Fields
	for try := 0; fields.Lo < fields.Hi && try < 10; try++ {
		id := schema.FieldID(int(fields.Lo) + g.r.IntN(int(fields.Hi-fields.Lo)))
		f := &g.s.Fields[id]
		of := f.Type.Type()
		composite := g.s.Types[of].Kind.Composite()
		if composite && depth == 0 || g.s.IsMeta(id) && !g.chance(10) {
			continue
		}
		text := f.Name
		if g.chance(15) {
			text = []string{"a", "b", "name", "x"}[g.r.IntN(4)] + ": " + text
		}
		text += g.arguments(f.Arguments) + g.directive("field")
		if composite {
			text += " " + g.set(of, depth-1)
		}
		return text
	}
	return "__typename"
}

func (g *operations) arguments(among schema.Span) string {
	var args []string
	for i := among.Lo; i < among.Hi; i++ {
		if input := &g.s.Inputs[i]; input.Required() || g.chance(40) {
			args = append(args, input.Name+": "+g.value(input.Type, 3))
		}
	}
	if len(args) == 0 {
		return ""
	}
	return "(" + strings.Join(args, ", ") + ")"
}

func (g *operations) directive(place string) string {
	if !g.chance(6) {
		return ""
	}
	any := func(of ...string) string { return of[g.r.IntN(len(of))] }
	condition := any("true", "false", g.value(stringRef(g.s), 0))
	if condition[0] == '$' {
		g.variables[condition[1:]] = "Boolean!"
	} else if condition[0] == '"' {
		condition = "true"
	}
	if place == "query" || place == "fragment" {
		return any(` @tag(name: "x")`, ` @tag(name: "x") @tag(name: "y", n: 2)`)
	}
	return any(" @include(if: "+condition+")", " @skip(if: "+condition+")", ` @tag(name: "z")`, " @once")
}

// value writes a value of a type: a literal, or a variable that it declares.
func (g *operations) value(ref schema.TypeRef, depth int) string {
	if depth > 0 && g.chance(20) {
		name := fmt.Sprintf("v%d", g.r.IntN(6))
		if g.variables[name] == "" {
			g.variables[name] = g.s.RefString(ref)
			if g.chance(10) && !ref.IsNonNull() {
				g.variables[name] += " = " + g.value(ref, 0)
			}
			return "$" + name
		}
	}
	if !ref.IsNonNull() && g.chance(5) {
		return "null"
	}
	ref = ref.Nullable()
	if ref.IsList() {
		if depth <= 0 || g.chance(20) {
			return "[]"
		}
		if g.chance(20) {
			return g.value(ref.Inner(), depth-1)
		}
		return "[" + g.value(ref.Inner(), depth-1) + ", " + g.value(ref.Inner(), depth-1) + "]"
	}
	return g.named(ref.Type(), depth)
}

func (g *operations) named(t schema.TypeID, depth int) string {
	row := &g.s.Types[t]
	switch row.Kind {
	case schema.Enum:
		return g.s.Values[int(row.Values.Lo)+g.r.IntN(int(row.Values.Hi-row.Values.Lo))].Name
	case schema.InputObject:
		var fields []string
		for i := row.Inputs.Lo; i < row.Inputs.Hi; i++ {
			input := &g.s.Inputs[i]
			if row.OneOf && len(fields) == 0 && (g.chance(50) || i+1 == row.Inputs.Hi) || !row.OneOf && (input.Required() || depth > 0 && g.chance(30)) {
				ref := input.Type
				if row.OneOf {
					ref, _ = ref.NonNull()
				}
				fields = append(fields, input.Name+": "+g.value(ref, depth-1))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	switch row.Name {
	case "Int":
		return fmt.Sprint(g.r.IntN(100) - 5)
	case "Float":
		return []string{"1.5", "3", "-2e10"}[g.r.IntN(3)]
	case "Boolean":
		return []string{"true", "false"}[g.r.IntN(2)]
	case "String":
		return []string{`"text"`, `"é\n\u0041\""`, `"""block"""`, `""`}[g.r.IntN(4)]
	case "ID":
		return []string{`"id"`, "7"}[g.r.IntN(2)]
	default:
		return []string{`"any"`, "{a: [1, {b: null}]}", "[]", "E"}[g.r.IntN(4)]
	}
}

var (
	tokens   = regexp.MustCompile(`"""(?s:.*?)"""|"(?:[^"\\]|\\.)*"|\.\.\.|-?\d[\w.+-]*|\w+|[^\s\w]`)
	literals = []string{"1", "-3.5", `"s"`, `"""b "x" """`, "true", "null", "RED", "NOPE", "[1, 2]", "{a: 1}", "{a: 1, a: 2}", "99999999999", "[]", "{}", "$v0", "$nope", "[$v1]", "{a: $v2}"}
)

// mutate changes a document in one place.
func (g *operations) mutate(text string) string {
	at := tokens.FindAllStringIndex(text, -1)
	i := g.r.IntN(len(at))
	put := func(i int, with string) string { return text[:at[i][0]] + with + text[at[i][1]:] }
	token := text[at[i][0]:at[i][1]]
	other := at[g.r.IntN(len(at))]
	switch g.r.IntN(12) {
	case 0:
		return put(i, "")
	case 1:
		return put(i, token+" "+token)
	case 2, 3:
		return put(i, text[other[0]:other[1]])
	case 4:
		return put(i, g.s.Types[g.r.IntN(len(g.s.Types))].Name)
	case 5:
		return put(i, g.s.Fields[g.r.IntN(len(g.s.Fields))].Name)
	case 6:
		return put(i, token+"s")
	case 7:
		return put(i, literals[g.r.IntN(len(literals))])
	case 8:
		return put(i, token+" "+[]string{"{ id }", "(x: 1)", "@once", "@nope(x: 1)", "@tag", "@skip", "@once @once", "... { id }", "... on T1 { name }", "...F0", "x: id", "__typename", "__schema { types { name } }"}[g.r.IntN(13)])
	case 9:
		return put(i, []string{"a: ", "x: ", "name: "}[g.r.IntN(3)]+token)
	case 10:
		// A part of the document again, elsewhere.
		from, to := at[i][0], at[min(len(at)-1, i+1+g.r.IntN(12))][1]
		return text[:other[0]] + " " + text[from:to] + " " + text[other[0]:]
	default:
		return put(i, []string{"!", "]", "[", "$v0", ":", "= 1", "Int", "String!"}[g.r.IntN(8)])
	}
}

// mutant returns a document that is changed in one to three places and still is
// one, by the grammar.
func (g *operations) mutant(text string) string {
	for left := 1 + g.r.IntN(3); left > 0; {
		changed := g.mutate(text)
		if syntax.Parse(&syntax.Document{}, []byte(changed), syntax.Limits{}) == nil {
			text = changed
			left--
		}
	}
	return text
}
