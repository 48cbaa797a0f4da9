package syntax_test

import (
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/testenv"
)

// operation has 203 bytes, as many as a client's usually have.
const operation = `query Q($id: ID!, $n: Int = 10) { node(id: $id) { id ... on User @include(if: true) ` +
	`{ name friends(first: $n, filter: {a: 1, b: [2,3]}) { edges { node { id name } } } } ...F } } fragment F on Node { id }`

func BenchmarkParse(b *testing.B) {
	many := "{" + strings.Repeat(" alias: field(first: 10, after: $cursor) @include(if: $yes) { id name }", 500) + " }"
	for _, c := range []struct{ name, source string }{{"operation=203B", operation}, {"operation=35kB", many}} {
		b.Run(c.name, func(b *testing.B) { benchmark(b, []byte(c.source)) })
	}
}

func BenchmarkParseSchema(b *testing.B) {
	source, ok := testenv.Data(b, "schemas/github.graphql")
	if !ok {
		source = []byte(strings.Repeat("\"\"\"\nA type.\n\"\"\"\ntype A implements B {\n  \"\"\"\n  A field.\n  \"\"\"\n  c(d: Int = 1, e: [F!]): G! @deprecated\n}\n\n", 10_000))
	}
	benchmark(b, source)
}

func benchmark(b *testing.B, source []byte) {
	var doc syntax.Document
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		if err := syntax.Parse(&doc, source, syntax.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
