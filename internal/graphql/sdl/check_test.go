package sdl_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// texts returns what is wrong with a schema as clients are told.
func texts(t testing.TB, text string) []string {
	t.Helper()
	found := problems(t, text)
	all := make([]string, len(found))
	for i, p := range found {
		all[i] = p.String()
	}
	return all
}

func TestProblemsAreToldInTheWordsOfTheService(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"field", "type Query { foo: Int foo: Int }", []string{"1:23: field 'Query.foo' can only be defined once"}},
		{"input field", "type Query { a: Int } input I { b: Int } extend input I { b: Int }", []string{"1:59: field 'I.b' can only be defined once"}},
		{"type", "type Query { a: Int }\nscalar Query", []string{"2:8: there can be only one type named 'Query'"}},
		{"value", "type Query { a: Int } enum E { V V }", []string{"1:34: enum value 'E.V' can only be defined once"}},
		{"member", "type Query { a: Int } union U = Query | Query", []string{"1:41: union member 'U.Query' can only be defined once"}},
		{"query type", "schema { query: Query query: Query } type Query { a: Int }", []string{"1:23: only one query type allowed"}},
		{"mutation type", "schema { query: Query mutation: M mutation: M } type Query { a: Int } type M { a: Int }", []string{"1:35: only one mutation type allowed"}},
		{
			"subscription type", "schema { query: Query subscription: M } extend schema { subscription: M } type Query { a: Int } type M { a: Int }",
			[]string{"1:57: only one subscription type allowed"},
		},
		{"unknown type", "type Query { a: T }", []string{`1:17: Unknown type "T".`}},
		{
			"interface field", "interface I { f: Int } type Query implements I { a: Int }",
			[]string{"1:24: type 'Query' does not implement field 'f' from interface 'I'"},
		},
		{"empty bodies", "type Query interface I union U enum E input N", []string{
			"1:1: the object named 'Query' is invalid due to an empty body", "1:12: the interface named 'I' is invalid due to an empty body",
			"1:24: the union named 'U' is invalid due to an empty body", "1:32: the enum named 'E' is invalid due to an empty body",
			"1:39: the input named 'N' is invalid due to an empty body",
		}},
		{"nothing between braces", "type Query {} extend type Query { a: Int } interface I {} enum E {} input N {}", []string{
			"1:1: the object named 'Query' is invalid due to an empty body", "1:44: the interface named 'I' is invalid due to an empty body",
			"1:59: the enum named 'E' is invalid due to an empty body", "1:69: the input named 'N' is invalid due to an empty body",
		}},
		{"no query", "type T { a: Int }", []string{"1:1: Query root type must be provided."}},
		{"syntax", "type Query {\n  a: }", []string{`2:6: Syntax Error: Expected Name, found "}".`}},
		{
			"roots", "schema { query: T mutation: T } type T { a: Int }",
			[]string{`1:29: All root types must be different, "T" type is used as query and mutation root types.`},
		},
		{"built-in", "type Query { a: Int } type Int { a: Int }", []string{"1:28: the built-in type 'Int' cannot be defined as another kind of type"}},
		{"operation", "type Query { a: Int } { a } fragment F on Query { a }", []string{
			"1:23: a schema cannot hold operations, only definitions of types and directives",
			"1:29: a schema cannot hold fragments, only definitions of types and directives",
		}},
		{"argument's default", "type Query { a(b: Int! = null): Int }", []string{`1:26: Query.a(b:) has an invalid default value: Expected value of type "Int!", found null.`}},
		{
			"directive's default", "type Query { a: Int } directive @d(b: Int = A) on FIELD",
			[]string{`1:45: @d(b:) has an invalid default value: Int cannot represent non-integer value: A`},
		},
		{
			"default of itself", "type Query { a: Int } input I { a: I = {} }",
			[]string{"1:33: Invalid circular reference. The default value of Input Object field I.a references itself."},
		},
		{
			"default by way of others", "type Query { a: Int } input I { a: J = {b: [{}]} } input J { b: [K] = [] } input K { c: I = {}, d: K = {d: null} }",
			[]string{"1:33: Invalid circular reference. The default value of Input Object field I.a references itself via the default values of: K.c."},
		},
		{"defaults that end", "type Query { a(i: I = {}): Int } input I { a: I = {a: null} b: J! = {} } input J { b: [K!] = [{}, {c: 3}] } input K { c: Int = 3 }", nil},
		{
			"directive on itself", "type Query { a: Int } directive @d(a: Int @d) on ARGUMENT_DEFINITION",
			[]string{"1:23: Directive @d must not use itself on its arguments, nor on the types that they are made of."},
		},
		{"directive by way of others", "type Query { a: Int @d } directive @d(a: I) on ENUM_VALUE | FIELD_DEFINITION directive @e(a: E) on INPUT_FIELD_DEFINITION\n" +
			"directive @f(a: I) on SCALAR input I { a: I b: Int @e } enum E { A @d }", []string{
			"1:26: Directive @d must not use itself on its arguments, nor on the types that they are made of.",
			"1:78: Directive @e must not use itself on its arguments, nor on the types that they are made of.",
		}},
		{"several, by position", "type Query { b: X a: Y }\nextend type Z { a: X }", []string{
			`1:17: Unknown type "X".`, `1:22: Unknown type "Y".`, `2:13: Cannot extend type "Z" because it is not defined.`, `2:20: Unknown type "X".`,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := texts(t, c.text); !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAProblemNamesTheOtherPlacesThatItIsAbout(t *testing.T) {
	p := problems(t, "type Query {\n a: Int\n a: Int }")[0]
	if want := (syntax.Location{Line: 2, Column: 2}); len(p.Related) != 1 || p.Related[0] != want {
		t.Errorf("related are %v", p.Related)
	}
}

func TestOnlyWhatIsSaidTwiceInTheSameWordsIsHarmless(t *testing.T) {
	cases := map[string]bool{
		"type Query { a(b: [Int!] = [1]): Int a(b: [ Int! ] = [1]): Int }":                  true,
		"type Query { a: Int } enum E { A A } union U = Query | Query":                      true,
		"type Query { a: Int } input I { a: Int = 1 a: Int = 1 }":                           true,
		"type Query { a: Int a: Int! }":                                                     false,
		"type Query { a(b: Int): Int a: Int }":                                              false,
		"type Query { a(b: Int): Int a(c: Int): Int }":                                      false,
		"type Query { a: Int } input I { a: Int = 1 a: Int }":                               false,
		"type Query { a: Int } type Query { a: Int }":                                       false,
		"type Query { a: Int a: Int b: Unknown }":                                           false,
		"type Query { a: Int " + strings.Repeat("a: Int ", 1000) + "}":                      false, // more than are told
		"type Query { a: Int } type Twice { a: Int } input Twice { a: Int } enum E { A A }": false,
	}
	for text, harmless := range cases {
		doc, err := sdl.Parse(text)
		found, ok := errors.AsType[*sdl.Errors](err)
		if !ok || found.Harmless() != harmless || (doc != nil) != harmless {
			t.Errorf("%.100s: harmless is %v, the document %v", text, !harmless, doc != nil)
		}
	}
}

func TestASchemaIsNotLargerThanItMayBe(t *testing.T) {
	const root = "type Query { a: Int } "
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	brackets := func(n int) string { return strings.Repeat("[", n) + "Int" + strings.Repeat("]", n) }
	cases := []struct{ name, fits, not, want string }{
		{
			"bytes", root + strings.Repeat(" ", sdl.MaxBytes-len(root)), root + strings.Repeat(" ", sdl.MaxBytes-len(root)+1),
			"1:1: the schema exceeds the limit on bytes: at most 4194304",
		},
		{
			"definitions", root + list(sdl.MaxTypes-1, "scalar S%d "), root + list(sdl.MaxTypes, "scalar S%d "),
			"1:1: the schema has 20001 definitions, at most 20000 are possible",
		},
		{
			"fields", root + "type T {" + list(sdl.MaxFields-1, "f%d:Int ") + "}", root + "type T {" + list(sdl.MaxFields, "f%d:Int ") + "}",
			"1:1: the schema has 50001 fields, at most 50000 are possible",
		},
		{
			"arguments", root + "input T {" + list(sdl.MaxArguments, "f%d:Int ") + "}", root + "input T {" + list(sdl.MaxArguments+1, "f%d:Int ") + "}",
			"1:1: the schema has 200001 arguments and input fields, at most 200000 are possible",
		},
		{
			"values", root + "enum T {" + list(sdl.MaxValues, "V%d ") + "}", root + "enum T {" + list(sdl.MaxValues+1, "V%d ") + "}",
			"1:1: the schema has 200001 enum values, at most 200000 are possible",
		},
		{
			"wrappers", "type Query { a: " + brackets(sdl.MaxWrappers) + "}", "type Query { a: " + brackets(sdl.MaxWrappers+3) + "}",
			"1:19: a type can be in at most 16 lists and non-nulls",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := texts(t, c.fits); len(got) > 0 {
				t.Errorf("at the limit: %q", got[0])
			}
			if got := texts(t, c.not); len(got) != 1 || got[0] != c.want {
				t.Errorf("above the limit: %.300q", got)
			}
		})
	}
}

func TestTheReasonOfADeprecationIsRead(t *testing.T) {
	doc, err := sdl.Parse(`type Query { a: Int b: Int @deprecated c: Int @deprecated(reason: "a\"b") d: Int @deprecated(reason: null) }`)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		reason     string
		deprecated bool
	}{{"", false}, {"No longer supported", true}, {`a"b`, true}, {"", false}}
	for i, f := range doc.FieldDefs {
		reason, deprecated := sdl.Deprecation(doc, f.Directives)
		if deprecated != want[i].deprecated || deprecated && reason != want[i].reason {
			t.Errorf("%s: %q, %v", doc.Text(f.Name), reason, deprecated)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("type Query { a(b: [In!]! = [{c: 1}]): U @deprecated } input In @oneOf { c: Int } union U = Query")
	f.Add("interface I implements I & J { a: I } interface J implements I { a: J! } extend type Q implements I @skip(if: 3)")
	f.Add("schema { query: Q } directive @d(a: E = A) repeatable on SCALAR extend enum E { A } scalar S @d(a: {b: [null]})")
	f.Fuzz(func(t *testing.T, text string) {
		found := problems(t, text)
		if !slices.IsSortedFunc(found, func(a, b *sdl.Problem) int {
			return (a.Location.Line-b.Location.Line)*1_000_000 + a.Location.Column - b.Location.Column
		}) {
			t.Errorf("not in order: %v", found)
		}
	})
}
