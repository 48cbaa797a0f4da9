package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// hostile are compositions as large as they may be, each against one part of the work.
func hostile() map[string][]string {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	each := func(n int, f func(i int) string) (all []string) {
		for i := range n {
			all = append(all, f(i))
		}
		return all
	}
	const chained = link + "type Query { q%[1]d: T } type T @key(fields: \"k%[1]d\") @key(fields: \"k%[2]d\") { k%[1]d: ID! k%[2]d: ID! f%[1]d: Int }"
	return map[string][]string{
		"many subgraphs":                 each(compose.MaxSubgraphs, func(i int) string { return fmt.Sprintf("extend type Query { q%d: V } type V { a: Int }", i) }),
		"a chain of keys":                each(500, func(i int) string { return fmt.Sprintf(chained, i, i+1) }),
		"a chain of keys backwards":      each(500, func(i int) string { return fmt.Sprintf(chained, 500-i, 499-i) }),
		"a shared type with many fields": each(8, func(int) string { return "type Query { v: V @shareable } type V {" + list(30_000, " f#: Int") + "}" }),
		"a shared type with other fields in each": each(8, func(i int) string {
			return fmt.Sprintf("extend type Query { v%d: V } type V {%s}", i, list(20_000, fmt.Sprintf(" f%d_#: Int", i)))
		}),
		"a shared enum with many values": each(4, func(int) string { return "type Query { v: V @shareable } enum V {" + list(60_000, " V#") + "}" }),
		"a field with many arguments":    each(4, func(int) string { return "type Query { v(" + list(60_000, " a#: Int") + "): Int @shareable }" }),
		"many orphans": each(4, func(int) string {
			return "type Query { a: Int @shareable }" + list(19_000, " extend type T# { a: Int }")
		}),
		"many keys":            {"type Query { v: V } type V " + list(20_000, `@key(fields: "a#") `) + "{" + list(20_000, " a#: Int") + "}"},
		"a deep set of fields": {"type Query { v: V } type V @key(fields: \"" + strings.Repeat("v { ", 5000) + "\") { v: V }"},
		"a long set of fields": {"type Query { v: V } type V " + strings.Repeat(`@key(fields: "`+list(400, "a# ")+`") `, 1000) + "{" + list(400, " a#: Int") + "}"},
		"many members of unions": each(4, func(int) string {
			return "type Query { v: U @shareable }" + list(5_000, " type T# implements N { n: Int } interface N# { n: Int } ") + "interface N { n: Int } union U = " + list(4_999, "T# | ") + "T4999"
		}),
	}
}

// Large compositions end, with a result or with problems, and these are bounded.
func TestLargeCompositionsEnd(t *testing.T) {
	for name, texts := range hostile() {
		t.Run(name, func(t *testing.T) {
			var subgraphs []compose.Subgraph
			for i, text := range texts {
				subgraphs = append(subgraphs, compose.Subgraph{Name: fmt.Sprintf("s%04d", i), SDL: text})
			}
			made, found := compose.Compose(subgraphs)
			if (made == nil) != (len(found) > 0) || len(found) > 1001 {
				t.Errorf("%d problems and the supergraph %t", len(found), made != nil)
			}
			for i := range found {
				if len(found[i].String()) > 10_000 {
					t.Errorf("a problem of %d bytes", len(found[i].String()))
				}
			}
		})
	}
}
