package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A reference holds an operation against lists by going through every object
// that every selection can turn out to be.
type reference struct {
	*world
	*lists
	base, limit int

	refused map[string]bool // "T.f" as selected
	deep    bool
}

// names reports whether a list names a field of a type.
func (r *reference) names(list []string, t, f string) bool {
	if f != "*" && !slices.Contains(r.world.fields[t], f) {
		return false
	}
	known := []string{t}
	if t == r.root && !slices.Contains(r.world.names, "Query") {
		known = append(known, "Query")
	}
	return slices.ContainsFunc(known, func(t string) bool { return slices.Contains(list, t+"."+f) || slices.Contains(list, t+".*") })
}

// own returns the limit of a field of a type, 0 without one.
func (r *reference) own(t, f string) int {
	if n := r.lists.fields[t+"."+f]; n != 0 || t != r.root || slices.Contains(r.world.names, "Query") {
		return n
	}
	return r.lists.fields["Query."+f]
}

// each goes through the fields of selections.
func (r *reference) each(on string, objects []string, all []*sel, do func(on string, objects []string, s *sel)) {
	for _, s := range all {
		switch {
		case s.name == "__typename":
		case s.name != "":
			do(on, objects, s)
		case s.on != "":
			r.each(s.on, both(objects, r.possible(s.on)), s.sub, do)
		default:
			r.each(on, objects, s.sub, do)
		}
	}
}

// levels counts the most nested fields.
func levels(all []*sel) (n int) {
	for _, s := range all {
		switch {
		case s.name == "__typename":
		case s.name != "":
			n = max(n, 1+levels(s.sub))
		default:
			n = max(n, levels(s.sub))
		}
	}
	return n
}

// run judges an operation.
func (r *reference) run(all []*sel) {
	r.refused, r.deep = map[string]bool{}, false
	if !r.reads(all) {
		return // introspection alone, of which there is nothing to say
	}
	r.each(r.root, []string{r.root}, all, func(_ string, objects []string, s *sel) {
		if len(objects) > 0 && r.own(r.root, s.name) == 0 && r.limit > 0 && r.base+1+levels(s.sub) > r.limit {
			r.deep = true
		}
	})
	r.visit(r.root, []string{r.root}, all)
}

// reads reports whether an operation selects more than introspection.
func (r *reference) reads(all []*sel) bool {
	return slices.ContainsFunc(all, func(s *sel) bool {
		return s.name == "" && r.reads(s.sub) || s.name != "" && !strings.HasPrefix(s.name, "__")
	})
}

func (r *reference) visit(on string, objects []string, all []*sel) {
	r.each(on, objects, all, func(on string, objects []string, s *sel) {
		if len(objects) == 0 {
			objects = r.possible(on)
		}
		if !r.passes(on, objects, s.name) {
			r.refused[on+"."+s.name] = true
		}
		for _, most := range r.limitsOn(on, objects, s.name) {
			r.deep = r.deep || most > 0 && r.base+levels(s.sub) > most
		}
		if t := r.types[s.name]; t != "" {
			r.visit(t, r.possible(t), s.sub)
		}
	})
}

func (r *reference) passes(on string, objects []string, field string) bool {
	if field == "__schema" {
		return true
	}
	if len(r.allowed) > 0 {
		every := len(objects) > 0
		for _, o := range objects {
			every = every && r.names(r.allowed, o, field)
		}
		return every || r.names(r.allowed, on, field)
	}
	if r.names(r.restricted, on, field) {
		return false
	}
	for _, o := range objects {
		for _, t := range append([]string{o}, r.interfaces[o]...) {
			if r.names(r.restricted, t, field) {
				return false
			}
		}
	}
	return true
}

func (r *reference) limitsOn(on string, objects []string, field string) []int {
	all := []int{r.own(on, field)}
	for _, o := range objects {
		for _, t := range append([]string{o}, r.interfaces[o]...) {
			all = append(all, r.own(t, field))
		}
	}
	return all
}

func fieldOf(s *schema.Schema, t, f string) schema.FieldID {
	id, ok := s.TypeNamed([]byte(t))
	field, is := s.FieldNamed(id, []byte(f))
	if !ok || !is {
		panic("no field " + t + "." + f)
	}
	return field
}

func randomLists(rng *rand.Rand, w *world) *lists {
	pick := func(n int) []string {
		var out []string
		for range n {
			t := w.names[rng.IntN(len(w.names))]
			if fields := w.fields[t]; fields != nil {
				f := fields[rng.IntN(len(fields))]
				if t == w.root && rng.IntN(2) == 0 {
					t = "Query"
				}
				if rng.IntN(6) == 0 {
					f = "*"
				}
				out = append(out, t+"."+f)
			}
		}
		return out
	}
	l := &lists{fields: map[string]int{}}
	switch rng.IntN(3) {
	case 0:
		l.allowed = pick(12)
		l.restricted = pick(2)
	case 1:
		l.restricted = pick(3)
	}
	for _, at := range pick(rng.IntN(4)) {
		if !strings.HasSuffix(at, "*") && !(w.root != "Query" && strings.HasPrefix(at, "Query.")) {
			l.fields[at] = rng.IntN(5) - 1
		}
	}
	return l
}

// Every verdict is that of going through all objects that can come.
func TestVerdictsAreThoseOfTryingAllObjects(t *testing.T) {
	count := map[Kind]int{}
	for seed := range uint64(800) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := randomWorld(rng)
		s := load(t, w.sdl())
		for range 4 {
			r := &reference{world: w, lists: randomLists(rng, w), base: rng.IntN(2), limit: rng.IntN(6)}
			may := r.access()
			may.Depth.Value = r.limit
			table := Compile(s, may, Options{DepthBase: r.base})
			for range 10 {
				op := w.randomSelections(rng, w.root, 4)
				r.run(op)
				got := table.Check(factsOf(t, s, text(op)), 0)
				if what := disagreement(r, s, got); what != "" {
					t.Fatalf("seed %d: %s\n%s\n%s\nallowed %v restricted %v fields %v base %d limit %d",
						seed, what, w.sdl(), text(op), r.allowed, r.restricted, r.lists.fields, r.base, r.limit)
				}
				count[got.Kind]++
			}
		}
	}
	t.Log(count)
	for _, kind := range []Kind{None, Depth, Restricted, AllRestricted} {
		if count[kind] < 500 {
			t.Errorf("only %d verdicts of kind %d: the test says little", count[kind], kind)
		}
	}
}

func disagreement(r *reference, s *schema.Schema, v Verdict) string {
	switch {
	case r.deep != (v.Kind == Depth):
		return fmt.Sprintf("too deep: %v, and the verdict is %+v", r.deep, v)
	case r.deep:
		return ""
	case len(r.refused) == 0 && v == passed:
		return ""
	case v.Kind != Restricted && v.Kind != AllRestricted:
		return fmt.Sprintf("refused are %v, and the verdict is %+v", slices.Sorted(maps.Keys(r.refused)), v)
	}
	f := s.Fields[v.Field]
	at := s.Types[f.Owner].Name
	if !r.refused[at+"."+f.Name] {
		return fmt.Sprintf("refused are %v, and the verdict names %s.%s", slices.Sorted(maps.Keys(r.refused)), at, f.Name)
	}
	if whole := len(r.allowed) == 0 && r.names(r.restricted, at, "*"); whole && v.Kind != AllRestricted {
		return fmt.Sprintf("%s is restricted by *, and the verdict is %+v", at, v)
	}
	if v.Kind == AllRestricted && (len(r.allowed) > 0 || !r.names(r.restricted, at, "*")) {
		return fmt.Sprintf("%s is not restricted by *, and the verdict is %+v", at, v)
	}
	return ""
}
