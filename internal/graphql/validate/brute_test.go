package validate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// expansion is what an operation selects, worked out the long way: with sets of
// names, and nothing shared.
type expansion struct {
	s      *schema.Schema
	doc    *syntax.Document
	below  map[string]int // "Type.field" or "Type.field(objects)": levels beneath
	roots  map[string]int
	fields int
}

func (e *expansion) objects(t schema.TypeID) (names []string) {
	for o := range e.s.Types {
		if e.s.Possible(t).Has(schema.TypeID(o)) {
			names = append(names, e.s.Types[o].Name)
		}
	}
	return names
}

func intersect(a, b []string) (both []string) {
	for _, name := range a {
		if slices.Contains(b, name) {
			both = append(both, name)
		}
	}
	return both
}

// set returns how many levels a selection set on a type has, for objects.
func (e *expansion) set(set syntax.Range, t schema.TypeID, objects []string, outer, meta bool) (levels int) {
	for i := set.Lo; i < set.Hi; i++ {
		sel := &e.doc.Selections[i]
		condition, inner := sel.Name, sel.Selections
		if sel.Kind == syntax.FragmentSpread {
			for _, f := range e.doc.Fragments {
				if e.doc.Text(f.Name) == e.doc.Text(sel.Name) {
					condition, inner = f.TypeCondition, f.Selections
				}
			}
		}
		if sel.Kind != syntax.Field {
			on, left := t, objects
			if condition.End > 0 {
				on, _ = e.s.TypeNamed(e.doc.Bytes(condition))
				left = intersect(objects, e.objects(on))
			}
			levels = max(levels, e.set(inner, on, left, outer, meta))
			continue
		}
		levels = max(levels, e.field(sel, t, objects, outer, meta))
	}
	return levels
}

func (e *expansion) field(sel *syntax.Selection, t schema.TypeID, objects []string, outer, meta bool) int {
	e.fields++
	name := e.doc.Text(sel.Name)
	if name == "__typename" {
		return 0
	}
	id, _ := e.s.FieldNamed(t, []byte(name))
	of := e.s.Fields[id].Type.Type()
	below := 0
	if sel.SetStart > 0 {
		below = e.set(sel.Selections, of, e.objects(of), false, meta || e.s.IsMeta(id))
	}
	if meta {
		return below + 1
	}
	key := e.s.Types[t].Name + "." + name
	if len(objects) > 0 && len(objects) < len(e.objects(t)) {
		key += fmt.Sprint(objects)
	}
	e.below[key] = max(e.below[key], below)
	if outer && len(objects) > 0 {
		e.roots[name] = max(e.roots[name], below)
	}
	return below + 1
}

func TestFactsAreThoseOfABruteForceExpansion(t *testing.T) {
	compared, narrowed := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 21))
		s := loaded(t, schemaText(r))
		g := newOperations(r, s)
		var v Validator
		for range 100 {
			doc := parsed(t, g.document())
			if len(v.Check(s, doc, Options{})) > 0 {
				continue
			}
			f, err := v.Facts(s, doc, 0, Options{})
			if err != nil {
				t.Fatal(err)
			}
			op := &doc.Operations[0]
			e := expansion{s: s, doc: doc, below: map[string]int{}, roots: map[string]int{}}
			root := rootType(s, op.Kind)
			depth := e.set(op.Selections, root, e.objects(root), true, false)
			below, roots := told(s, f)
			if !maps.Equal(below, e.below) || !maps.Equal(roots, e.roots) || int(f.Depth) != depth {
				t.Fatalf("%s\n got %v, %v, depth %d\nwant %v, %v, depth %d", doc.Source, below, roots, f.Depth, e.below, e.roots, depth)
			}
			compared++
			narrowed += len(f.Narrowed)
		}
	}
	t.Logf("%d operations compared, %d narrowed fields", compared, narrowed)
	if compared < 500 || narrowed < 50 {
		t.Errorf("too few were compared to mean something: %d operations, %d narrowed fields", compared, narrowed)
	}
}

// told returns facts as an expansion has them.
func told(s *schema.Schema, f *Facts) (below, roots map[string]int) {
	below, roots = map[string]int{}, map[string]int{}
	name := func(id schema.FieldID) string { return s.Types[s.Fields[id].Owner].Name + "." + s.Fields[id].Name }
	for i, id := range f.Fields {
		below[name(id)] = int(f.Below[i])
	}
	for _, n := range f.Narrowed {
		var objects []string
		for _, id := range f.Objects[n.Objects.Lo:n.Objects.Hi] {
			objects = append(objects, strings.Split(name(id), ".")[0])
		}
		below[name(n.Field)+fmt.Sprint(objects)] = int(n.Below)
	}
	for _, root := range f.Roots {
		roots[s.Fields[root.Field].Name] = int(root.Below)
	}
	return below, roots
}
