package rules

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/rights"
)

// A world is a schema in a form that a reference can be written on in plain
// words, and the text of it.
type world struct {
	root       string
	fields     map[string][]string // by object and interface
	types      map[string]string   // by field name, the same wherever it is: "" is a scalar
	interfaces map[string][]string // by object and interface
	members    map[string][]string // by union
	objects    []string
	names      []string // of all composite types
}

// randomWorld makes a schema with a few of everything.
func randomWorld(rng *rand.Rand) *world {
	w := &world{root: "Query", fields: map[string][]string{}, types: map[string]string{}, interfaces: map[string][]string{}, members: map[string][]string{}}
	if rng.IntN(2) == 0 {
		w.root = "Start"
	}
	w.objects = []string{w.root}
	for i := range 2 + rng.IntN(4) {
		w.objects = append(w.objects, fmt.Sprint("O", i))
	}
	interfaces, unions := []string{"I0", "I1", "I2"}[:1+rng.IntN(3)], []string{"U0", "U1"}[:rng.IntN(3)]
	w.names = slices.Concat(w.objects, interfaces, unions)
	all := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range all[2:] {
		if w.types[name] = w.names[rng.IntN(len(w.names))]; rng.IntN(4) == 0 {
			w.types[name] = ""
		}
	}
	for i, name := range interfaces {
		w.fields[name] = some(rng, all, 1)
		if i > 0 && rng.IntN(2) == 0 {
			w.implement(name, interfaces[rng.IntN(i)])
		}
	}
	for _, name := range w.objects {
		w.fields[name] = some(rng, all, 1)
		for _, i := range some(rng, interfaces, 0) {
			w.implement(name, i)
		}
	}
	for _, name := range unions {
		w.members[name] = some(rng, w.objects, 1)
	}
	return w
}

// implement makes a type implement an interface and all of that one's.
func (w *world) implement(name, iface string) {
	for _, i := range append([]string{iface}, w.interfaces[iface]...) {
		if !slices.Contains(w.interfaces[name], i) {
			w.interfaces[name] = append(w.interfaces[name], i)
		}
		for _, f := range w.fields[i] {
			if !slices.Contains(w.fields[name], f) {
				w.fields[name] = append(w.fields[name], f)
			}
		}
	}
}

// some returns elements in their order, at least a number of them.
func some(rng *rand.Rand, of []string, least int) []string {
	var out []string
	for len(out) < least || len(out) == 0 && least > 0 {
		out = nil
		for _, s := range of {
			if rng.IntN(2) == 0 {
				out = append(out, s)
			}
		}
	}
	if least == 0 {
		for _, s := range of {
			if rng.IntN(3) == 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

// sdl writes the schema.
func (w *world) sdl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schema { query: %s }\n", w.root)
	for _, name := range w.names {
		if members := w.members[name]; members != nil {
			fmt.Fprintf(&b, "union %s = %s\n", name, strings.Join(members, " | "))
			continue
		}
		keyword, implements := "interface", ""
		if slices.Contains(w.objects, name) {
			keyword = "type"
		}
		if i := w.interfaces[name]; len(i) > 0 {
			implements = " implements " + strings.Join(i, " & ")
		}
		fmt.Fprintf(&b, "%s %s%s {", keyword, name, implements)
		for _, f := range w.fields[name] {
			t := w.types[f]
			if t == "" {
				t = "Int"
			}
			fmt.Fprintf(&b, " %s: %s", f, t)
		}
		b.WriteString(" }\n")
	}
	return b.String()
}

// possible returns the objects that a type can turn out to be.
func (w *world) possible(name string) []string {
	if members := w.members[name]; members != nil {
		return members
	}
	var out []string
	for _, o := range w.objects {
		if o == name || slices.Contains(w.interfaces[o], name) {
			out = append(out, o)
		}
	}
	return out
}

func both(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// A sel is a selection: a field, or a fragment when it has no name.
type sel struct {
	name  string
	alias bool
	named bool   // a fragment has a definition of its own
	on    string // type condition of a fragment, "" without one
	sub   []*sel
}

// randomSelections makes selections on a type, at least one.
func (w *world) randomSelections(rng *rand.Rand, on string, depth int) []*sel {
	var out []*sel
	for range 1 + rng.IntN(3) {
		if s := w.randomSelection(rng, on, depth); s != nil {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		out = append(out, &sel{name: "__typename"})
	}
	return out
}

func (w *world) randomSelection(rng *rand.Rand, on string, depth int) *sel {
	if on == w.root && depth > 2 && rng.IntN(10) == 0 {
		return &sel{name: "__schema", alias: rng.IntN(2) == 0, sub: []*sel{{name: "types", sub: []*sel{{name: "name"}}}}}
	}
	if fields := w.fields[on]; len(fields) > 0 && rng.IntN(5) > 1 {
		s := &sel{name: fields[rng.IntN(len(fields))], alias: rng.IntN(4) == 0}
		if t := w.types[s.name]; t != "" {
			if depth == 0 {
				return nil
			}
			s.sub = w.randomSelections(rng, t, depth-1)
		}
		return s
	}
	if rng.IntN(4) == 0 || depth == 0 {
		return &sel{name: "__typename"}
	}
	s := &sel{named: rng.IntN(3) == 0}
	into := on
	if t := w.names[rng.IntN(len(w.names))]; len(both(w.possible(on), w.possible(t))) > 0 {
		into, s.on = t, t
	} else if s.named {
		s.on = on
	}
	s.sub = w.randomSelections(rng, into, depth-1)
	return s
}

// text writes an operation.
func text(selections []*sel) string {
	var b, fragments strings.Builder
	n := 0
	var write func(b *strings.Builder, all []*sel)
	write = func(b *strings.Builder, all []*sel) {
		b.WriteString("{ ")
		for _, s := range all {
			switch {
			case s.name != "":
				if s.alias {
					b.WriteString("x_" + s.name + ": ")
				}
				b.WriteString(s.name + " ")
			case s.named:
				n++
				name := fmt.Sprint("F", n)
				var body strings.Builder
				write(&body, s.sub)
				fmt.Fprintf(&fragments, "fragment %s on %s %s\n", name, s.on, body.String())
				b.WriteString("..." + name + " ")
				continue
			case s.on != "":
				b.WriteString("... on " + s.on + " ")
			default:
				b.WriteString("... ")
			}
			if s.sub != nil {
				write(b, s.sub)
			}
		}
		b.WriteString("} ")
	}
	write(&b, selections)
	return b.String() + "\n" + fragments.String()
}

// factsOf reads the only operation of a document, which must be valid.
func factsOf(t testing.TB, s *schema.Schema, text string) *validate.Facts {
	t.Helper()
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(text), syntax.Limits{}); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var v validate.Validator
	if errs := v.Check(s, &doc, validate.Options{}); errs != nil {
		t.Fatalf("%v in\n%s", errs[0], text)
	}
	f, err := v.Facts(s, &doc, 0, validate.Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return f
}

func load(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Load(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return s
}

// lists is a key's lists, "T.f" or "T.*" each, and limits, "T.f" each.
type lists struct {
	allowed, restricted []string
	fields              map[string]int
}

// access writes lists as rights.
func (l *lists) access() *rights.Access {
	may := &rights.Access{AllowedTypes: items(l.allowed), RestrictedTypes: items(l.restricted)}
	for _, at := range slices.Sorted(maps.Keys(l.fields)) {
		t, f, _ := strings.Cut(at, ".")
		entry := definition.FieldAccess{TypeName: t, FieldName: f, Limits: definition.FieldLimits{MaxQueryDepth: l.fields[at]}}
		may.FieldAccess = append(may.FieldAccess, rights.Value[definition.FieldAccess]{Value: entry})
	}
	return may
}

func items(all []string) []rights.Item[definition.TypeFields] {
	var out []rights.Item[definition.TypeFields]
	for _, at := range all {
		t, f, _ := strings.Cut(at, ".")
		i := slices.IndexFunc(out, func(one rights.Item[definition.TypeFields]) bool { return one.Value.Name == t })
		if i < 0 {
			i = len(out)
			out = append(out, rights.Item[definition.TypeFields]{Value: definition.TypeFields{Name: t}})
		}
		out[i].Value.Fields = append(out[i].Value.Fields, f)
	}
	return out
}
