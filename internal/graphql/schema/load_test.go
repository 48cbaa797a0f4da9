package schema_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/testenv"
)

func load(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// real returns the schemas that are looked for outside of the repository, as far
// as they are there.
func real(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range []string{"swapi", "github"} {
		if content, ok := testenv.Data(t, "schemas/"+name+".graphql"); ok {
			all[name] = string(content)
		}
	}
	return all
}

func typeOf(t testing.TB, s *schema.Schema, name string) schema.TypeID {
	t.Helper()
	id, ok := s.TypeNamed([]byte(name))
	if !ok {
		t.Fatalf("there is no type %s", name)
	}
	return id
}

func fieldOf(t testing.TB, s *schema.Schema, owner, name string) *schema.Field {
	t.Helper()
	id, ok := s.FieldNamed(typeOf(t, s, owner), []byte(name))
	if !ok {
		t.Fatalf("there is no field %s.%s", owner, name)
	}
	return &s.Fields[id]
}

const sample = `
interface Node { id: ID! }
interface Named implements Node { id: ID! name: String }
type Query { node(id: ID!, first: Int = 3): Node  user: User @deprecated search: [Hit!]! }
type User implements Node & Named { id: ID! name: String names: [[String!]]! friends(in: Filter = {text: "x", colour: RED}): [User] }
type Page implements Node { id: ID! }
union Hit = User
enum Colour { RED GREEN @deprecated }
input Filter { text: String! colour: Colour = RED old: Int @deprecated }
input Either @oneOf { a: Int b: Int }
directive @tag(name: String!) repeatable on FIELD | QUERY | OBJECT
extend type User { colour: Colour }
extend union Hit = Page
extend enum Colour { BLUE }
extend input Filter { more: Boolean }
`

func TestATypeIsWhatItsDefinitionAndExtensionsSay(t *testing.T) {
	s := load(t, sample)
	user := typeOf(t, s, "User")
	var fields []string
	for i := s.Types[user].Fields.Lo; i < s.Types[user].Fields.Hi; i++ {
		f := s.Fields[i]
		fields = append(fields, f.Name+": "+s.RefString(f.Type))
		if f.Owner != user {
			t.Errorf("%s belongs to type %d", f.Name, f.Owner)
		}
	}
	if want := []string{"id: ID!", "name: String", "names: [[String!]]!", "friends: [User]", "colour: Colour"}; !slices.Equal(fields, want) {
		t.Errorf("User has %q", fields)
	}
	if !s.ValueNamed(typeOf(t, s, "Colour"), []byte("BLUE")) || s.ValueNamed(typeOf(t, s, "Colour"), []byte("BLACK")) {
		t.Error("Colour does not have the values that it is defined with")
	}
	filter := s.Types[typeOf(t, s, "Filter")]
	if more, ok := s.InputNamed(filter.Inputs, []byte("more")); !ok || s.RefString(s.Inputs[more].Type) != "Boolean" {
		t.Error("Filter does not have what its extension adds")
	}
	text, _ := s.InputNamed(filter.Inputs, []byte("text"))
	old, _ := s.InputNamed(filter.Inputs, []byte("old"))
	if !s.Inputs[text].Required() || s.Inputs[old].Required() || !s.Inputs[old].Deprecated {
		t.Error("the fields of Filter are not required or deprecated as written")
	}
	in := s.Inputs[fieldOf(t, s, "User", "friends").Arguments.Lo]
	if !in.HasDefault || in.Default != `{text: "x", colour: RED}` {
		t.Errorf("the default value is %q", in.Default)
	}
	if !s.Types[typeOf(t, s, "Either")].OneOf || filter.OneOf || !fieldOf(t, s, "Query", "user").Deprecated {
		t.Error("oneOf and deprecations are not read")
	}
	tag, ok := s.DirectiveNamed([]byte("tag"))
	if d := s.Directives[tag]; !ok || !d.Repeatable || d.BuiltIn || !d.Allows(schema.OnField) || d.Allows(schema.OnMutation) || !d.Allows(schema.OnObject) {
		t.Errorf("the directive is %+v", s.Directives[tag])
	}
}

func TestCompositeTypesTurnOutToBeTheirObjects(t *testing.T) {
	s := load(t, sample)
	want := map[string]string{"Node": "User Page", "Named": "User", "Hit": "User Page", "User": "User", "Page": "Page", "Query": "Query", "Colour": "", "Filter": ""}
	for name, objects := range want {
		var got []string
		for id := range s.Types {
			if s.Possible(typeOf(t, s, name)).Has(schema.TypeID(id)) {
				got = append(got, s.Types[id].Name)
			}
		}
		slices.Sort(got)
		words := strings.Fields(objects)
		slices.Sort(words)
		if !slices.Equal(got, words) {
			t.Errorf("%s turns out to be %q", name, got)
		}
	}
	node, named, user := typeOf(t, s, "Node"), typeOf(t, s, "Named"), typeOf(t, s, "User")
	if got := s.Implements(user); !slices.Equal(got, []schema.TypeID{node, named}) {
		t.Errorf("User implements %d", got)
	}
}

func TestEveryObjectIsInItsOwnSetAndNoOther(t *testing.T) {
	var b strings.Builder
	b.WriteString("type Query { a: Int } ")
	for i := range 300 {
		fmt.Fprintf(&b, "type T%d { a: Int } ", i)
	}
	s := load(t, b.String())
	for id := range s.Types {
		for other := range s.Types {
			is := s.Types[id].Kind == schema.Object && id == other
			if s.Possible(schema.TypeID(id)).Has(schema.TypeID(other)) != is {
				t.Fatalf("%s can be %s: %v", s.Types[id].Name, s.Types[other].Name, !is)
			}
		}
	}
}

func TestEverySchemaHasWhatIntrospectionNeeds(t *testing.T) {
	s := load(t, `schema { query: Root mutation: Change } type Root { a: Int } type Change { a: Int } type Query { a: Int } type Subscription { a: Int }`)
	if s.Types[s.Query].Name != "Root" || s.Types[s.Mutation].Name != "Change" || s.Subscription != schema.NoType {
		t.Errorf("operations start from %d, %d and %d", s.Query, s.Mutation, s.Subscription)
	}
	for name, field := range map[string]schema.FieldID{"__schema": s.SchemaField, "__type": s.TypeField} {
		id, ok := s.FieldNamed(s.Query, []byte(name))
		if !ok || id != field || !s.IsMeta(id) {
			t.Errorf("%s is field %d", name, id)
		}
		if _, ok := s.FieldNamed(typeOf(t, s, "Query"), []byte(name)); ok {
			t.Errorf("%s is a field of a type that is no root", name)
		}
	}
	if got := s.RefString(s.Fields[s.SchemaField].Type); got != "__Schema!" {
		t.Errorf("__schema is %s", got)
	}
	if f := s.Fields[s.TypeField]; s.RefString(f.Type) != "__Type" || s.RefString(s.Inputs[f.Arguments.Lo].Type) != "String!" {
		t.Errorf("__type is %s", s.RefString(f.Type))
	}
	for _, name := range []string{"Int", "Float", "String", "Boolean", "ID", "__Schema", "__Type", "__Field", "__InputValue", "__EnumValue", "__Directive"} {
		if id := typeOf(t, s, name); !s.Types[id].BuiltIn {
			t.Errorf("%s counts as the schema's own", name)
		}
	}
	for _, name := range []string{"skip", "include", "deprecated", "specifiedBy", "oneOf"} {
		if i, ok := s.DirectiveNamed([]byte(name)); !ok || !s.Directives[i].BuiltIn {
			t.Errorf("@%s counts as the schema's own", name)
		}
	}
}

func TestRootsAreThoseOfTheDefaultNamesUnlessSaid(t *testing.T) {
	cases := map[string][3]string{
		"type Query { a: Int } type Mutation { a: Int } type Subscription { a: Int }":         {"Query", "Mutation", "Subscription"},
		"schema { query: Query } type Query { a: Int } type Mutation { a: Int }":              {"Query", "", ""},
		"extend schema { query: Other } type Other { a: Int } type Mutation { a: Int }":       {"Other", "Mutation", ""},
		"schema { query: A } extend schema { mutation: B } type A { a: Int } type B{ a: Int}": {"A", "B", ""},
	}
	for text, want := range cases {
		s := load(t, text)
		for i, id := range []schema.TypeID{s.Query, s.Mutation, s.Subscription} {
			got := ""
			if id != schema.NoType {
				got = s.Types[id].Name
			}
			if got != want[i] {
				t.Errorf("%s: root %d is %q", text, i, got)
			}
		}
	}
}

func TestASchemaMayDefineBuiltInsItself(t *testing.T) {
	s := load(t, `directive @skip(unless: Boolean) on FIELD scalar ID enum __TypeKind { MINE } type Query { a: ID }`)
	skip, _ := s.DirectiveNamed([]byte("skip"))
	if d := s.Directives[skip]; d.BuiltIn || s.Inputs[d.Arguments.Lo].Name != "unless" {
		t.Errorf("@skip is %+v", d)
	}
	if kind := typeOf(t, s, "__TypeKind"); s.ValueNamed(kind, []byte("MINE")) || !s.ValueNamed(kind, []byte("SCALAR")) {
		t.Error("a type of introspection was replaced")
	}
}

func TestEverythingIsFoundByItsNameWithoutAllocation(t *testing.T) {
	schemas := real(t)
	schemas["sample"] = sample
	var wide strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&wide, "a%d: Int ", i)
	}
	schemas["wide"] = "type Query { f(" + wide.String() + "): Int g(a1: Int): Int } input I {" + wide.String() + "} directive @d(" + wide.String() + ") on FIELD"
	for name, text := range schemas {
		s, _, err := schema.LoadServed(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { findAll(t, s) })
	}
}

func findAll(t *testing.T, s *schema.Schema) {
	inputs := func(what string, span schema.Span) {
		for i := span.Lo; i < span.Hi; i++ {
			if got, ok := s.InputNamed(span, []byte(s.Inputs[i].Name)); !ok || got != int(i) {
				t.Errorf("%s(%s:) is %d, not %d", what, s.Inputs[i].Name, got, i)
			}
		}
		if _, ok := s.InputNamed(span, []byte("nobody")); ok {
			t.Errorf("%s(nobody:) exists", what)
		}
	}
	for id, typ := range s.Types {
		if got := typeOf(t, s, typ.Name); got != schema.TypeID(id) {
			t.Errorf("type %s is %d, not %d", typ.Name, got, id)
		}
		for i := typ.Values.Lo; i < typ.Values.Hi; i++ {
			if got, ok := s.ValueIndex(schema.TypeID(id), []byte(s.Values[i].Name)); !ok || got != int(i) {
				t.Errorf("%s.%s is %d, not %d", typ.Name, s.Values[i].Name, got, i)
			}
		}
		if _, ok := s.FieldNamed(schema.TypeID(id), []byte("nobody")); ok {
			t.Errorf("%s.nobody exists", typ.Name)
		}
		inputs(typ.Name, typ.Inputs)
	}
	for id, f := range s.Fields {
		if got, ok := s.FieldNamed(f.Owner, []byte(f.Name)); !ok || got != schema.FieldID(id) {
			t.Errorf("%s.%s is %d, not %d", s.Types[f.Owner].Name, f.Name, got, id)
		}
		inputs(f.Name, f.Arguments)
	}
	for i, d := range s.Directives {
		if got, ok := s.DirectiveNamed([]byte(d.Name)); !ok || got != i {
			t.Errorf("@%s is %d, not %d", d.Name, got, i)
		}
		inputs(d.Name, d.Arguments)
	}
	for _, unknown := range []string{"", "Nobody", "query"} {
		if _, ok := s.TypeNamed([]byte(unknown)); ok {
			t.Errorf("there is a type %q", unknown)
		}
		if _, ok := s.DirectiveNamed([]byte(unknown)); ok {
			t.Errorf("there is a directive %q", unknown)
		}
	}
	widest := schema.Span{}
	for _, typ := range s.Types {
		if typ.Inputs.Hi-typ.Inputs.Lo > widest.Hi-widest.Lo {
			widest = typ.Inputs
		}
	}
	query, last := []byte("Query"), []byte(s.Fields[len(s.Fields)-1].Name)
	if n := testing.AllocsPerRun(100, func() {
		s.TypeNamed(query)
		s.FieldNamed(s.Query, last)
		s.InputNamed(widest, last)
		s.ValueNamed(0, last)
		s.DirectiveNamed(last)
	}); n > 0 {
		t.Errorf("looking names up allocates %v times", n)
	}
}

func TestASchemaThatRepeatsItselfIsServedButNotSaved(t *testing.T) {
	const text = `type Query { a: E a: E b(x: In): U } enum E { A A B } union U = Query | Query input In { a: Int a: Int }`
	if _, err := schema.Load(text); err == nil {
		t.Error("it was loaded to be saved")
	}
	s, found, err := schema.LoadServed(text)
	if err != nil || len(found) != 4 {
		t.Fatalf("%v, %v", found, err)
	}
	query, in, e := s.Types[s.Query], s.Types[typeOf(t, s, "In")], s.Types[typeOf(t, s, "E")]
	if query.Fields.Hi-query.Fields.Lo != 4 || in.Inputs.Hi-in.Inputs.Lo != 1 || e.Values.Hi-e.Values.Lo != 2 {
		t.Errorf("the rows are %+v, %+v, %+v", query, in, e)
	}
	if _, _, err := schema.LoadServed("type Query { a: Int a: String }"); err == nil {
		t.Error("a field of two types is served")
	}
	if _, _, err := schema.LoadServed("type Query {"); err == nil {
		t.Error("what cannot be read is served")
	}
}

func TestAnErrorHoldsAllProblems(t *testing.T) {
	_, err := schema.Load("type Query { a: X b: Y }")
	found, ok := errors.AsType[*sdl.Errors](err)
	if want := []string{`1:17: Unknown type "X".`, `1:22: Unknown type "Y".`}; !ok || !slices.Equal(found.Texts(), want) {
		t.Errorf("%v", err)
	}
	if want := `reading a schema: invalid schema: 1:17: Unknown type "X". (and 1 more)`; err.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestReferencesAreWrittenAsTheyWereRead(t *testing.T) {
	deep := strings.Repeat("[", schema.MaxWrappers) + "Int" + strings.Repeat("]", schema.MaxWrappers)
	mixed := strings.Repeat("[", 8) + "Int" + strings.Repeat("!]", 8)
	for _, ref := range []string{"Int", "Int!", "[Int]", "[Int]!", "[Int!]", "[Int!]!", "[[Int]!]", deep, mixed} {
		s := load(t, "type Query { a: "+ref+" }")
		if got := s.RefString(fieldOf(t, s, "Query", "a").Type); got != ref {
			t.Errorf("%s became %s", ref, got)
		}
	}
	if schema.MaxWrappers != sdl.MaxWrappers {
		t.Error("what is checked is not what fits")
	}
	if got := load(t, sample).RefString(schema.Named(schema.NoType)); got != "" {
		t.Errorf("no type is %q", got)
	}
}

func TestALargeSchemaIsKeptInLittleMemory(t *testing.T) {
	text, ok := real(t)["github"]
	if !ok {
		return
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, _, err := schema.LoadServed(text)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d types, %d fields, %d inputs, %d values: %d KiB in %d objects", len(s.Types), len(s.Fields), len(s.Inputs), len(s.Values),
		kept>>10, int64(after.HeapObjects)-int64(before.HeapObjects))
	if kept > 4<<20 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(text)
}

func TestManyObjectsAreKeptInLittleMemory(t *testing.T) {
	var b strings.Builder
	b.WriteString("type Query { a: Int } ")
	for i := range 9_990 {
		fmt.Fprintf(&b, "type T%d { a: Int } union U%d = Query ", i, i)
	}
	text := b.String()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := load(t, text)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 24<<20 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(text)
}

func FuzzLoad(f *testing.F) {
	f.Add(sample)
	f.Add("type Query { a: Int a: Int } extend type Query implements I interface I { a: Int } type __Schema { a: Int }")
	f.Fuzz(func(t *testing.T, text string) {
		s, _, err := schema.LoadServed(text)
		if err != nil {
			return
		}
		if s.Query == schema.NoType {
			t.Fatal("there is no query type")
		}
		for i := range s.Fields {
			if s.RefString(s.Fields[i].Type) == "" {
				t.Errorf("field %s has no type", s.Fields[i].Name)
			}
		}
		for i := range s.Inputs {
			if s.RefString(s.Inputs[i].Type) == "" {
				t.Errorf("input %s has no type", s.Inputs[i].Name)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for name, text := range real(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := schema.LoadServed(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFieldNamed(b *testing.B) {
	s := load(b, sample)
	user, name := typeOf(b, s, "User"), []byte("friends")
	b.ReportAllocs()
	for b.Loop() {
		s.FieldNamed(user, name)
	}
}
