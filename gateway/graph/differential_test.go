package graph_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Generated operations have the answers that one service with all data gives.
func TestGeneratedOperationsOfSupergraphs(t *testing.T) {
	seed := rand.Uint64()
	if given := os.Getenv("SLUICE_TEST_SEED"); given != "" {
		if _, err := fmt.Sscan(given, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TEST_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, f := range federations {
		w := newSupergraph(t, f.subgraphs)
		root, entities := f.data()
		whole := newExecutor(served(t, w.sources, f.subgraphs, root, entities).SDL, root, entities, nil)
		for range 80 {
			c := generate(r, whole.schema)
			status, got := w.post(requestOf(c), nil)
			want := string(whole.answer([]byte(requestOf(c))))
			if status != 200 || !reflect.DeepEqual(readAnswer(t, got), readAnswer(t, want)) {
				t.Fatalf("%s: %s %s\n got %d %s\nwant %s\nasked\n%s", f.name, c.query, c.variables, status, got, want, strings.Join(w.asked(), "\n"))
			}
			w.asked()
		}
	}
}

// An operationMaker writes one valid operation.
type operationMaker struct {
	*rand.Rand
	schema    *schema.Schema
	out       strings.Builder
	heads     []string // definitions of variables
	values    []string // of variables, as members of JSON
	fragments []string
	keys      int // response keys that were made up
	fields    int
}

func generate(r *rand.Rand, s *schema.Schema) federationCase {
	m := operationMaker{Rand: r, schema: s}
	root, kind := s.Query, "query"
	if s.Mutation != schema.NoType && r.IntN(10) == 0 {
		root, kind = s.Mutation, "mutation"
	}
	m.set(root, 5, false)
	heads := ""
	if len(m.heads) > 0 {
		heads = "(" + strings.Join(m.heads, ", ") + ")"
	}
	return federationCase{
		query:     kind + heads + " " + m.out.String() + strings.Join(m.fragments, ""),
		variables: "{" + strings.Join(m.values, ", ") + "}",
	}
}

// set writes a selection set. Made-up keys only are those of sets that may meet others at
// the same place, whose fields must not be at odds.
func (m *operationMaker) set(t schema.TypeID, depth int, madeUp bool) {
	m.out.WriteString("{")
	some := false
	def := &m.schema.Types[t]
	for i := def.Fields.Lo; i < def.Fields.Hi; i++ {
		if f := schema.FieldID(i); m.IntN(3) == 0 && m.selectable(f, depth) {
			m.field(f, depth, madeUp)
			some = true
		}
	}
	if def.Kind != schema.Object {
		for i := range m.schema.Types {
			if one := schema.TypeID(i); m.schema.Possible(t).Has(one) && m.IntN(2) == 0 {
				m.fragment(one, depth)
				some = true
			}
		}
	} else if m.IntN(6) == 0 && depth > 1 {
		m.fragment(t, depth-1)
		some = true
	}
	if !some || m.IntN(5) == 0 {
		m.out.WriteString(" __typename")
	}
	m.out.WriteString(" }")
}

func (m *operationMaker) selectable(f schema.FieldID, depth int) bool {
	def := &m.schema.Fields[f]
	if m.schema.IsMeta(f) || def.Name == "secret" || m.fields > 60 {
		return false
	}
	return depth > 1 || !m.schema.Types[def.Type.Type()].Kind.Composite()
}

func (m *operationMaker) fragment(t schema.TypeID, depth int) {
	name := m.schema.Types[t].Name
	if m.IntN(3) > 0 {
		m.out.WriteString(" ... on " + name)
		m.directive()
		m.set(t, depth, true)
		return
	}
	m.keys++
	fragment := fmt.Sprint("F", m.keys)
	m.out.WriteString(" ..." + fragment)
	m.directive()
	rest := m.out.String()
	m.out.Reset()
	m.set(t, depth, true)
	m.fragments = append(m.fragments, " fragment "+fragment+" on "+name+" "+m.out.String())
	m.out.Reset()
	m.out.WriteString(rest)
}

func (m *operationMaker) field(f schema.FieldID, depth int, madeUp bool) {
	m.fields++
	def := &m.schema.Fields[f]
	m.out.WriteString(" ")
	if madeUp || m.IntN(4) == 0 {
		m.keys++
		fmt.Fprintf(&m.out, "k%d: ", m.keys)
	}
	m.out.WriteString(def.Name)
	m.arguments(def)
	m.directive()
	if t := def.Type.Type(); m.schema.Types[t].Kind.Composite() {
		m.set(t, depth-1, madeUp)
	}
}

func (m *operationMaker) arguments(def *schema.Field) {
	var all []string
	for _, in := range m.schema.Inputs[def.Arguments.Lo:def.Arguments.Hi] {
		if !in.Required() && m.IntN(2) == 0 {
			continue
		}
		literal, value := m.value(in.Type)
		if m.IntN(2) == 0 {
			name := m.variable(m.schema.RefString(in.Type), value)
			literal = "$" + name
		}
		all = append(all, in.Name+": "+literal)
	}
	if len(all) > 0 {
		m.out.WriteString("(" + strings.Join(all, ", ") + ")")
	}
}

// variable defines a variable and returns its name.
func (m *operationMaker) variable(t, value string) string {
	name := fmt.Sprint("v", len(m.values))
	m.heads = append(m.heads, "$"+name+": "+t)
	m.values = append(m.values, `"`+name+`": `+value)
	return name
}

func (m *operationMaker) directive() {
	if m.IntN(15) > 0 || len(m.heads) > 6 {
		return
	}
	value := []string{"true", "false"}[m.IntN(2)]
	if m.IntN(2) == 0 {
		value = "$" + m.variable("Boolean!", value)
	}
	m.out.WriteString([]string{" @skip", " @include"}[m.IntN(2)] + "(if: " + value + ")")
}

// value returns a value as a literal and as JSON.
func (m *operationMaker) value(t schema.TypeRef) (literal, value string) {
	if !t.IsNonNull() && m.IntN(8) == 0 {
		return "null", "null"
	}
	t = t.Nullable()
	if t.IsList() {
		literal, value = m.value(t.Inner())
		return "[" + literal + "]", "[" + value + "]"
	}
	switch def := &m.schema.Types[t.Type()]; def.Kind {
	case schema.Enum:
		literal = m.schema.Values[def.Values.Lo+uint32(m.IntN(int(def.Values.Hi-def.Values.Lo)))].Name
		return literal, `"` + literal + `"`
	case schema.InputObject:
		var literals, values []string
		for _, in := range m.schema.Inputs[def.Inputs.Lo:def.Inputs.Hi] {
			l, v := m.value(in.Type)
			literals, values = append(literals, in.Name+": "+l), append(values, `"`+in.Name+`": `+v)
		}
		return "{" + strings.Join(literals, ", ") + "}", "{" + strings.Join(values, ", ") + "}"
	default:
		switch def.Name {
		case "Boolean":
			literal = []string{"true", "false"}[m.IntN(2)]
		case "Int", "Float":
			literal = fmt.Sprint(1 + m.IntN(20))
		default:
			literal = `"` + []string{"1", "2", "p1", "p3", "c2"}[m.IntN(5)] + `"`
		}
		return literal, literal
	}
}
