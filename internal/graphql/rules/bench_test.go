package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// large is a schema of 1,000 objects of ten fields each, every one with the
// interface Node and one of 50 others.
func large(b testing.TB) *schema.Schema {
	var t strings.Builder
	t.WriteString("interface Node { f0: Int }\n")
	for i := range 50 {
		fmt.Fprintf(&t, "interface I%d { f1: Int f2: Node }\n", i)
	}
	for i := range 1000 {
		fmt.Fprintf(&t, "type O%d implements Node & I%d { f0: Int f1: Int f2: Node", i, i%50)
		for f := 3; f < 10; f++ {
			fmt.Fprintf(&t, " f%d: O%d", f, (i+f)%1000)
		}
		t.WriteString(" }\n")
	}
	t.WriteString("type Query { a: O0 b: Node }\n")
	return load(b, t.String())
}

// operation is the facts of an operation that reads 20 fields.
func operation(s *schema.Schema) *validate.Facts {
	f := &validate.Facts{Depth: 4, Aliases: 1, RootFields: 2, Tokens: 60}
	add := func(owner, name string, below uint16) {
		f.Fields, f.Below = append(f.Fields, fieldOf(s, owner, name)), append(f.Below, below)
	}
	add("Query", "a", 3)
	add("Query", "b", 1)
	for i := range 9 {
		add(fmt.Sprint("O", i), "f3", 2)
		add(fmt.Sprint("O", i*50), "f1", 0)
	}
	f.Roots = []validate.Root{{Field: f.Fields[0], Below: 3}, {Field: f.Fields[1], Below: 1}}
	return f
}

// ruled are lists that the operation passes.
func ruled() *lists {
	return &lists{restricted: []string{"O900.*", "O901.f1", "I49.f2"}, fields: map[string]int{"Query.a": 9, "Node.f0": 3, "O5.f3": 4}}
}

func BenchmarkCheck(b *testing.B) {
	s := large(b)
	f := operation(s)
	may := ruled().access()
	may.Depth.Value, may.Tokens.Value = 9, 1000
	for name, table := range map[string]*Table{
		"lists":       Compile(s, (&lists{restricted: ruled().restricted}).access(), Options{}),
		"lists+depth": Compile(s, may, Options{DepthBase: 1}),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := table.Check(f, 20); v.Kind != None {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	s := large(b)
	for name, l := range map[string]*lists{"allow": {allowed: []string{"Query.*", "Node.f0", "O5.*"}}, "restrict": ruled()} {
		may := l.access()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compile(s, may, Options{})
			}
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	may := ruled().access()
	b.ReportAllocs()
	for b.Loop() {
		Digest(may, Options{})
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	s := load(t, continents)
	f := &validate.Facts{Fields: []schema.FieldID{fieldOf(s, "Country", "name")}, Below: []uint16{0}, Depth: 2}
	for _, l := range []*lists{{restricted: []string{"Country.code"}, fields: map[string]int{"Country.name": 5}}, {restricted: []string{"Country.name"}}, {allowed: []string{"Country.name"}}} {
		table := Compile(s, l.access(), Options{})
		if n := testing.AllocsPerRun(100, func() { table.Check(f, 1) }); n != 0 {
			t.Errorf("%v: %v allocations", l, n)
		}
	}
}
