package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

func load(t testing.TB, text string) *schema.Schema {
	t.Helper()
	if !strings.Contains(text, "type Query") && !strings.Contains(text, "schema {") {
		text += " type Query { any: Int }"
	}
	s, err := schema.Load(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

func TestChangesAreNamedWithTheirLevelAndPlace(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing", `type Query { a(b: Int = 1): [Int!]! }`, `"text" type Query { "more" a(b: Int = 1): [Int!]! }`, ``},
		{"type removed", `type A { a: Int } type Query { a: A }`, `type Query { a: Int }`, "breaking A: A was removed.|breaking Query.a: Query.a changed type from A to Int."},
		{"type added", ``, `type A { a: Int }`, "safe A: A was added."},
		{"kind changed", `type A { a: Int }`, `input A { a: Int }`, "breaking A: A changed from an Object type to an Input type."},
		{"union", `type A { a: Int } type B { a: Int } union U = A`, `type A { a: Int } type B { a: Int } union U = B`, "breaking U: A was removed from union type U.|dangerous U: B was added to union type U."},
		{"enum", `enum E { A B C }`, `enum E { B C @deprecated D }`, "breaking E.A: A was removed from enum type E.|dangerous E.D: D was added to enum type E.|safe E.C: E.C was deprecated."},
		{"interface lost", `interface I { a: Int } type A implements I { a: Int }`, `interface I { a: Int } type A { a: Int }`, "breaking A: A no longer implements interface I."},
		{"interface gained", `interface I { a: Int } type A { a: Int }`, `interface I { a: Int } type A implements I { a: Int }`, "dangerous A: I added to interfaces implemented by A."},
		{"field", `type A { a: Int b: Int }`, `type A { b: Int c: Int }`, "breaking A.a: A.a was removed.|safe A.c: A.c was added."},
		{"output becomes non-null", `type A { a: [Int] }`, `type A { a: [Int!]! }`, "safe A.a: A.a changed type from [Int] to [Int!]!."},
		{"output becomes null", `type A { a: [Int!]! }`, `type A { a: [Int]! }`, "breaking A.a: A.a changed type from [Int!]! to [Int]!."},
		{"list to one", `type A { a: [Int] }`, `type A { a: Int }`, "breaking A.a: A.a changed type from [Int] to Int."},
		{"argument", `type A { a(b: Int, c: Int): Int }`, `type A { a(c: Int, d: Int, e: Int!, f: Int! = 1): Int }`, "breaking A.a(b:): A.a arg b was removed.|breaking A.a(e:): A required arg e on A.a was added.|dangerous A.a(d:): An optional arg d on A.a was added.|dangerous A.a(f:): An optional arg f on A.a was added."},
		{"argument narrows", `type A { a(b: Int): Int }`, `type A { a(b: Int!): Int }`, "breaking A.a(b:): A.a arg b has changed type from Int to Int!."},
		{"argument widens", `type A { a(b: [Int!]!): Int }`, `type A { a(b: [Int]): Int }`, "safe A.a(b:): A.a arg b has changed type from [Int!]! to [Int]."},
		{"default", `type A { a(b: [Int] = [1,2], c: Int! = 1, d: Int): Int }`, `type A { a(b: [Int] = [1, 3], c: Int!, d: Int = 2): Int }`, "breaking A.a(c:): A.a arg c lost its default value and has to be given now.|dangerous A.a(b:): A.a arg b has changed defaultValue from [1 2] to [1 3].|safe A.a(d:): A.a arg d has changed defaultValue from none to 2."},
		{"default's layout", `input I { x: Int y: String } type A { a(b: I = {x: 1, y: "a, b"}): Int }`, `input I { x: Int y: String } type A { a(b: I = { x:1 y: "a, b" }): Int }`, ""},
		{"input", `input I { a: Int b: Int }`, `input I { b: Int! c: Int d: Int! }`, "breaking I.a: I.a was removed.|breaking I.b: I.b changed type from Int to Int!.|breaking I.d: A required field d on input type I was added.|dangerous I.c: An optional field c on input type I was added."},
		{"one of", `input I { a: Int b: Int }`, `input I @oneOf { a: Int b: Int }`, "breaking I: Input type I now takes exactly one of its fields."},
		{"root", `schema { query: Q } type Q { a: Int } type M { a: Int }`, `schema { query: Q mutation: M } type Q { a: Int } type M { a: Int }`, "safe M: A mutation type was added: M."},
		{"root lost", `schema { query: Q mutation: M } type Q { a: Int } type M { a: Int }`, `schema { query: Q } type Q { a: Int } type M { a: Int }`, "breaking M: There is no mutation type any more; it was M."},
		{"root renamed", `schema { query: Q } type Q { a: Int } type R { a: Int }`, `schema { query: R } type Q { a: Int } type R { a: Int }`, "dangerous Q: The query type changed from Q to R."},
		{"directive", `directive @a on FIELD directive @b(x: Int) repeatable on FIELD | QUERY`, `directive @b(y: Int!) on FIELD directive @c on FIELD`, "breaking @a: @a was removed.|breaking @b: QUERY was removed from @b.|breaking @b: Repeatable flag was removed from @b.|breaking @b(x:): x was removed from @b.|breaking @b(y:): A required arg y on directive @b was added.|safe @c: @c was added."},
		{"no longer deprecated", `type A { a: Int @deprecated b: Int }`, `type A { a: Int b: Int }`, "safe A.a: A.a is no longer deprecated."},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			changes := Compare(load(t, c.old), load(t, c.new))
			for _, one := range changes {
				got = append(got, fmt.Sprintf("%s %s: %s", one.Level, one.Place, one.Message))
			}
			if text := strings.Join(got, "|"); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.ReplaceAll(text, "|", "\n"), strings.ReplaceAll(c.want, "|", "\n"))
			}
			if n := strings.Count("|"+c.want, "|breaking "); CountBreaking(changes) != n {
				t.Errorf("%d are breaking, want %d", CountBreaking(changes), n)
			}
		})
	}
}

// TestAChangeAndItsReverseAreBothSeen compares with a schema that has everything:
// whatever is there on one side alone is a change in both directions.
func TestAChangeAndItsReverseAreBothSeen(t *testing.T) {
	full := load(t, `
		interface I { a: Int } type A implements I { a: Int b(x: Int! y: In = {z: 1}): E } type B { a: Int }
		union U = A | B  enum E { V W }  input In { z: Int } scalar S directive @d(x: Int) on FIELD
		type Query { u: U } type Mutation { m(s: S): Int }`)
	less := load(t, `interface I { a: Int } type A { a: Int b(y: In): E } type B { a: Int }
		union U = B enum E { W } input In { z: Int! } type Query { u: U }`)
	if there, back := Compare(full, less), Compare(less, full); len(there) < 8 || len(back) < 8 {
		t.Errorf("%d changes there and %d back", len(there), len(back))
	}
	for _, s := range []*schema.Schema{full, less} {
		if same := Compare(s, s); len(same) > 0 {
			t.Errorf("a schema differs from itself: %v", same)
		}
	}
	first := Compare(full, less)
	if !slices.IsSortedFunc(first, func(a, b Change) int { return a.Level.rank() - b.Level.rank() }) {
		t.Errorf("breaking changes are not first: %v", first)
	}
}
