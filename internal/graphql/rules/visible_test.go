package rules

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/graphql/visible"
)

// A remainder works out in plain words what is left of a world.
type remainder struct {
	*world
	passes func(t, f string) bool
	dead   map[string]bool // types that cannot be selected on
}

func (w *world) remainder(s *schema.Schema, table *Table) *remainder {
	r := &remainder{world: w, dead: map[string]bool{}, passes: func(t, f string) bool { return table.Passes(fieldOf(s, t, f)) }}
	for changed := true; changed; {
		changed = false
		for _, name := range w.names {
			if !r.dead[name] && len(r.left(name)) == 0 && (slices.Contains(w.objects, name) || len(r.living(w.possible(name))) == 0) {
				r.dead[name], changed = true, true
			}
		}
	}
	return r
}

// left returns the fields of a type that are left.
func (r *remainder) left(name string) (all []string) {
	for _, f := range r.fields[name] {
		if r.passes(name, f) && !r.dead[r.types[f]] {
			all = append(all, f)
		}
	}
	return all
}

func (r *remainder) living(objects []string) []string {
	return slices.DeleteFunc(slices.Clone(objects), func(o string) bool { return r.dead[o] })
}

// behind returns the objects that are found behind a type.
func (r *remainder) behind(name string) []string {
	return slices.DeleteFunc(r.living(r.possible(name)), func(o string) bool {
		return r.members[name] == nil && slices.ContainsFunc(r.left(name), func(f string) bool { return !slices.Contains(r.left(o), f) })
	})
}

// expresses reports whether what is left can express selections on a type.
func (r *remainder) expresses(on string, all []*sel) bool {
	for _, s := range all {
		into := on
		switch {
		case s.name == "__typename" || s.name == "__schema":
			continue
		case s.name != "":
			if !slices.Contains(r.left(on), s.name) {
				return false
			}
			into = r.types[s.name]
		case s.on != "":
			into = s.on
			if r.dead[into] || into != on && len(both(r.behind(on), r.behind(into))) == 0 {
				return false
			}
		}
		if s.sub != nil && !r.expresses(into, s.sub) {
			return false
		}
	}
	return true
}

// accepts reports whether a schema accepts an operation.
func accepts(t *testing.T, s *schema.Schema, text string) bool {
	t.Helper()
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(text), syntax.Limits{}); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var v validate.Validator
	return v.Check(s, &doc, validate.Options{}) == nil
}

// worldOf reads a world back from its schema.
func worldOf(s *schema.Schema) *world {
	w := &world{root: s.Types[s.Query].Name, fields: map[string][]string{}, types: map[string]string{}, interfaces: map[string][]string{}, members: map[string][]string{}}
	for id := range s.Types {
		t := &s.Types[id]
		if t.BuiltIn || !t.Kind.Composite() {
			continue
		}
		w.names = append(w.names, t.Name)
		if t.Kind == schema.Object {
			w.objects = append(w.objects, t.Name)
		}
		for object := range objects(s.Possible(schema.TypeID(id))) {
			if t.Kind == schema.Union {
				w.members[t.Name] = append(w.members[t.Name], s.Types[object].Name)
			}
		}
		for _, i := range s.Implements(schema.TypeID(id)) {
			w.interfaces[t.Name] = append(w.interfaces[t.Name], s.Types[i].Name)
		}
		for f := t.Fields.Lo; f < t.Fields.Hi; f++ {
			if s.IsMeta(schema.FieldID(f)) {
				continue
			}
			field := &s.Fields[f]
			w.fields[t.Name] = append(w.fields[t.Name], field.Name)
			if of := &s.Types[field.Type.Type()]; of.Kind.Composite() {
				w.types[field.Name] = of.Name
			} else {
				w.types[field.Name] = ""
			}
		}
	}
	return w
}

// What is left of a schema is valid. What it accepts passes the rules, and what passes
// them it accepts, unless no schema could say it.
func TestWhatIsVisibleIsWhatPasses(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 11))
		w := randomWorld(rng)
		s := load(t, w.sdl())
		doc, err := sdl.Parse(w.sdl())
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			l := randomLists(rng, w)
			may := l.access()
			may.FieldAccess = nil // depth has nothing to do with it
			table := Compile(s, may, Options{})
			left, r := visible.Cut(s, table.Passes), w.remainder(s, table)
			where := fmt.Sprintf("seed %d, allowed %v restricted %v of\n%s", seed, l.allowed, l.restricted, w.sdl())
			if left.Empty() != r.dead[w.root] {
				t.Fatalf("empty: %v\n%s", left.Empty(), where)
			}
			text, err := left.SDL(doc)
			if err != nil {
				t.Fatalf("%v\n%s", err, where)
			}
			if left.Empty() {
				count["empty"]++
				continue
			}
			cut, err := schema.Load(text)
			if err != nil {
				t.Fatalf("what is left is invalid: %v\n%s\nleft of %s", err, text, where)
			}
			compare(t, &comparison{s: s, cut: cut, table: table, r: r, count: count, where: text + "\nleft of " + where}, rng)
		}
	}
	t.Log(count)
	for kind, least := range map[string]int{"accepted": 500, "of the cut": 500, "restricted": 500, "inexpressible": 50} {
		if count[kind] < least {
			t.Errorf("only %d operations are %s: the test says little", count[kind], kind)
		}
	}
}

type comparison struct {
	s, cut *schema.Schema
	table  *Table
	r      *remainder
	count  map[string]int
	where  string
}

func compare(t *testing.T, c *comparison, rng *rand.Rand) {
	t.Helper()
	for range 12 {
		op := c.r.randomSelections(rng, c.r.root, 4)
		passes := c.table.Check(factsOf(t, c.s, text(op)), 0).Kind == None
		accepted, can := accepts(t, c.cut, text(op)), c.r.expresses(c.r.root, op)
		switch {
		case accepted && !passes:
			t.Fatalf("accepted, and does not pass:\n%s\n%s", text(op), c.where)
		case accepted != can:
			t.Fatalf("accepted: %v, can be expressed: %v:\n%s\n%s", accepted, can, text(op), c.where)
		case accepted:
			c.count["accepted"]++
		case passes:
			c.count["inexpressible"]++
		default:
			c.count["restricted"]++
		}
	}
	w := worldOf(c.cut)
	for range 12 {
		op := text(w.randomSelections(rng, w.root, 4))
		if !accepts(t, c.cut, op) {
			continue
		}
		if !accepts(t, c.s, op) {
			t.Fatalf("accepted by what is left alone:\n%s\n%s", op, c.where)
		}
		if v := c.table.Check(factsOf(t, c.s, op), 0); v.Kind != None {
			t.Fatalf("accepted, and does not pass (%+v):\n%s\n%s", v, op, c.where)
		}
		c.count["of the cut"]++
	}
}
