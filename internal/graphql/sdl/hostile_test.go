package sdl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// hostile are schemas as large as they may be, each against one kind of check.
func hostile() map[string]string {
	const root = "type Query { a: Int }\n"
	repeat := func(n int, f func(i int) string) string {
		var b strings.Builder
		b.WriteString(root)
		for i := range n {
			b.WriteString(f(i))
			if b.Len() > sdl.MaxBytes-64<<10 {
				break
			}
		}
		return b.String()
	}
	list := func(n int, between, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteString(between)
			}
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	chain := func(n int, format string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(format, i, (i+1)%n) }
	}
	many := 19_000
	return map[string]string{
		"unknown types":      root + "type A {" + list(49_000, " ", "a%d: Zzz") + "}",
		"one field, often":   root + "type A {" + strings.Repeat("a: Int ", 49_000) + "}",
		"one argument often": root + "type A { a(" + strings.Repeat("a: Int ", 199_000) + "): Int }",
		"twice each":         root + "type A { a(" + list(90_000, " ", "a%[1]d: Int a%[1]d: Int") + "): Int }",
		"one value, often":   root + "enum E {" + strings.Repeat("A ", 199_000) + "}",
		"members twice":      repeat(many, func(i int) string { return fmt.Sprintf("type T%d{a:Int}", i) }) + "union U = " + strings.Repeat(list(many, "|", "T%d")+"|", 15) + "Query",
		"one type, often":    repeat(many, func(int) string { return "scalar A " }),
		"directives":         root + "scalar A " + strings.Repeat("@a ", 1_300_000),
		"directive, often":   root + "directive @a(" + list(10_000, " ", "a%d: Int") + ") on SCALAR scalar A " + strings.Repeat("@a ", 1_000_000),
		"repeatable":         root + "directive @a(" + list(10_000, " ", "a%d: Int") + ") repeatable on SCALAR scalar A " + strings.Repeat("@a ", 1_000_000),
		"required arguments": root + "directive @a(" + list(10_000, " ", "a%d: Int!") + ") repeatable on SCALAR scalar A " + strings.Repeat("@a ", 1_000_000),
		"input ring":         repeat(many, chain(many, "input I%d { a: I%d! }")),
		"input bush":         repeat(500, func(i int) string { return fmt.Sprintf("input I%d {", i) + list(300, " ", "a%[1]d: I%[1]d!") + "}" }),
		"objects in lists":   root + "input I {" + list(100_000, " ", "a%d: Int") + "} input J { a: [I] = [" + strings.Repeat("{}", 900_000) + "] }",
		"required in lists":  root + "input I {" + list(100_000, " ", "a%d: Int!") + "} input J { a: [I] = [" + strings.Repeat("{}", 900_000) + "] }",
		"long name":          root + "type " + strings.Repeat("a", 4_000_000) + " { a: B c: D }",
		"implementations": repeat(1000, func(i int) string { return fmt.Sprintf("interface I%d {", i) + list(22, " ", "f%d: Int") + "}" }) +
			strings.TrimPrefix(repeat(1000, func(i int) string {
				return fmt.Sprintf("type T%d implements ", i) + list(650, "&", "I%d") + "{" + list(22, " ", "f%d: Int") + "}"
			}), root),
		"ancestors": repeat(700, func(i int) string {
			clause := ""
			if i > 0 {
				clause = " implements " + list(i, "&", "I%d")
			}
			return fmt.Sprintf("interface I%d%s{a:Int}", i, clause)
		}) + strings.TrimPrefix(repeat(600, func(i int) string { return fmt.Sprintf("type T%d implements ", i) + list(700, "&", "I%d") + "{a:Int}" }), root),
		"unions": repeat(9_000, func(i int) string { return fmt.Sprintf("type T%d{a:Int}", i) }) +
			strings.TrimPrefix(repeat(9_900, func(i int) string { return fmt.Sprintf("union U%d=T1|T8999 ", i) }), root),
		"fillings":       root + "input I {" + list(60_000, " ", "a%d: J = {}") + "} input J { b: Int } input K { a: [I] = [" + strings.Repeat("{}", 900_000) + "] }",
		"defaults":       root + "input I {" + list(90_000, " ", "a%d: I = {}") + "}",
		"directive ring": repeat(many, chain(many, "directive @d%d(a: Int @d%d) on FIELD ")),
		"extensions":     repeat(many, func(i int) string { return fmt.Sprintf("extend type Query{f%d:Int}", i) }),
	}
}

func TestAHostileSchemaIsToldOfInBoundedSpace(t *testing.T) {
	t.Parallel()
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			if len(text) > sdl.MaxBytes {
				t.Fatalf("%d bytes", len(text))
			}
			start := time.Now()
			found := problems(t, text)
			t.Logf("%d KiB, %v, %d problems", len(text)>>10, time.Since(start), len(found))
			if len(found) > 1001 {
				t.Errorf("%d problems", len(found))
			}
			if len(found) == 1001 && found[1000].Message != "there are more problems than the 1000 that are listed" {
				t.Errorf("the last one is %s", found[1000])
			}
			for _, p := range found {
				if len(p.Message) > 1000 || len(p.Related) > 50 {
					t.Fatalf("a message of %d bytes, %d places", len(p.Message), len(p.Related))
				}
			}
		})
	}
}
