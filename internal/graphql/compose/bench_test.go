package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/compose"
)

// world returns subgraphs that define ten types each, half of them entities, and extend
// entities of all others.
func world(subgraphs int) (all []compose.Subgraph) {
	for i := range subgraphs {
		var b strings.Builder
		fmt.Fprintf(&b, "enum Shared { A B C }\ninput Page { first: Int = 10 after: String }\nextend type Query { root%d(page: Page): [E%d_0] }\n", i, i)
		for n := range 10 {
			fmt.Fprintf(&b, "\"the type %d of %d\"\n", n, i)
			if n%2 == 0 {
				fmt.Fprintf(&b, "type E%d_%d @key(fields: \"id\") @key(fields: \"org { id }\") { id: ID! org: Org name: String kind: Shared\n", i, n)
			} else {
				fmt.Fprintf(&b, "type V%d_%d { id: ID! name: String kind: Shared\n", i, n)
			}
			for f := range 10 {
				fmt.Fprintf(&b, "  field%d(page: Page, a: Int = 3): [E%d_%d!] @deprecated(reason: \"old\")\n", f, i, f/2*2)
			}
			b.WriteString("}\n")
		}
		b.WriteString("type Org { id: ID! }\n")
		for n := range 5 {
			other := (i + n + 1) % subgraphs
			fmt.Fprintf(&b, "extend type E%d_%d @key(fields: \"id\") { id: ID! @external name: String @external of%d_%d: V%d_1 @requires(fields: \"name\") }\n", other, n*2, i, n, i)
		}
		all = append(all, compose.Subgraph{Name: fmt.Sprintf("subgraph%03d", i), SDL: b.String()})
	}
	return all
}

func BenchmarkCompose(b *testing.B) {
	for _, n := range []int{50, 200} {
		b.Run(fmt.Sprintf("subgraphs=%d", n), func(b *testing.B) {
			subgraphs := world(n)
			for b.Loop() {
				if made, found := compose.Compose(subgraphs); made == nil {
					b.Fatal(problems(found)[:min(len(found), 5)])
				}
			}
		})
	}
}
