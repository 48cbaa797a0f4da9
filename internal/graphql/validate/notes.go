package validate

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A place is where in Facts a field is noted: an index in Fields or, when it is
// negative, its complement in Narrowed.
type place int

// note notes that a field is selected in a scope.
func (g *gatherer) note(id schema.FieldID, in scope) place {
	f := &g.facts
	if in.objects < 0 {
		at := g.known.at(uint64(id))
		if *at == 0 {
			f.Fields, f.Below = append(f.Fields, id), append(f.Below, 0)
			*at = uint32(len(f.Fields))
		}
		return place(*at - 1)
	}
	at := g.known.at(uint64(in.objects+1)<<32 | uint64(id))
	if *at == 0 {
		objects := syntax.Range{Lo: uint32(len(f.Objects))}
		name := []byte(g.s.Fields[id].Name)
		each(g.scopes.set(in), func(t schema.TypeID) {
			if of, ok := g.s.FieldNamed(t, name); ok {
				f.Objects = append(f.Objects, of)
			}
		})
		objects.Hi = uint32(len(f.Objects))
		f.Narrowed = append(f.Narrowed, Narrowed{Field: id, Objects: objects})
		*at = uint32(len(f.Narrowed))
		if len(f.Objects) > maxObjects {
			g.exceed("objects that fragments on interfaces leave", maxObjects)
		}
	}
	return ^place(*at - 1)
}

// noteBelow notes how many levels are beneath a field.
func (g *gatherer) noteBelow(at place, levels uint16) {
	if at >= 0 {
		g.facts.Below[at] = max(g.facts.Below[at], levels)
		return
	}
	n := &g.facts.Narrowed[^at]
	n.Below = max(n.Below, levels)
}

// noteRoot notes a field of the outermost selection set, by the name that the
// root type has it under.
func (g *gatherer) noteRoot(name []byte, levels uint16) {
	id, _ := g.s.FieldNamed(g.root, name)
	f := &g.facts
	at := g.roots.at(uint64(id))
	if *at == 0 {
		f.Roots = append(f.Roots, Root{Field: id})
		*at = uint32(len(f.Roots))
	}
	root := &f.Roots[*at-1]
	root.Below = max(root.Below, levels)
}

// defineVariables notes the variables of an operation.
func (g *gatherer) defineVariables(op *syntax.Operation) {
	g.variables.clear()
	g.firstVariable = op.Variables.Lo
	if op.Variables.Len() == 0 {
		return
	}
	g.starts = g.starts[:0]
	for i := op.Variables.Lo; i < op.Variables.Hi; i++ {
		def := &g.doc.Variables[i]
		ref, _, _ := typeRef(g.s, g.doc, def.Type)
		g.variables.set(g.names.number(def.Name), uint32(len(g.facts.Variables)))
		g.facts.Variables = append(g.facts.Variables, Variable{Type: ref, HasDefault: def.Default != syntax.None})
		g.facts.Directives += def.Directives.Len()
		g.starts = append(g.starts, def.Start)
	}
	g.locations = locate(g.locations[:0], g.doc.Source, g.starts)
	for i, location := range g.locations {
		g.facts.Variables[i].Location = location
	}
}

// finish works out what follows from the whole.
func (g *gatherer) finish(op *syntax.Operation) {
	f := &g.facts
	f.OnlyIntrospects = f.Introspects && len(f.Narrowed) == 0
	for _, id := range f.Fields {
		f.OnlyIntrospects = f.OnlyIntrospects && g.s.IsMeta(id)
	}
	if len(f.Fields) == 0 && len(f.Narrowed) == 0 && op.Kind != syntax.Subscription && f.Directives == 0 {
		f.OnlyTypename = g.typenames()
	}
}

// typenames returns the "data" of an operation that selects nothing but
// __typename, "" when no fragment that it is in applies.
func (g *gatherer) typenames() string {
	value := `":"` + g.s.Types[g.root].Name + `"`
	var out []byte
	g.variables.clear() // from here on, by name in the answer
	for _, key := range g.keys {
		number := g.names.number(key)
		if g.variables.has(number) {
			continue
		}
		g.variables.set(number, 0)
		out = append(append(out, `,"`...), g.doc.Bytes(key)...)
		out = append(out, value...)
	}
	if len(out) == 0 {
		return ""
	}
	out[0] = '{'
	return string(append(out, '}'))
}

// A block is facts with room for those of usual operations, so that all of them
// are one piece of memory.
type block struct {
	facts     Facts
	variables [2]Variable
	fields    [16]schema.FieldID
	below     [16]uint16
	roots     [2]Root
}

// retained returns the facts in memory of their own, of which there is little
// more than is needed.
func (g *gatherer) retained(op *syntax.Operation) *Facts {
	b := &block{facts: g.facts}
	f := &b.facts
	f.Fields, f.Below = keptIn(b.fields[:], f.Fields), keptIn(b.below[:], f.Below)
	f.Roots, f.Variables = keptIn(b.roots[:], f.Roots), keptIn(b.variables[:], f.Variables)
	f.Narrowed, f.Objects = slices.Clone(f.Narrowed), slices.Clone(f.Objects)
	f.Cost = g.cost.retained()
	g.copyNames(op, f)
	return f
}

// keptIn returns a copy of what is in a slice, in room if it fits.
func keptIn[T any](room, of []T) []T {
	if len(of) > len(room) {
		return slices.Clone(of)
	}
	return room[:copy(room, of):len(of)]
}

// copyNames gives the names of the operation and its variables one text, which
// holds on to nothing else.
func (g *gatherer) copyNames(op *syntax.Operation, f *Facts) {
	size := op.Name.End - op.Name.Start
	for i := op.Variables.Lo; i < op.Variables.Hi; i++ {
		size += g.doc.Variables[i].Name.End - g.doc.Variables[i].Name.Start
	}
	var text strings.Builder
	text.Grow(int(size))
	keep := func(at syntax.Span) string {
		from := text.Len()
		text.Write(g.doc.Bytes(at))
		return text.String()[from:]
	}
	f.Name = keep(op.Name)
	for i := range f.Variables {
		f.Variables[i].Name = keep(g.doc.Variables[int(op.Variables.Lo)+i].Name)
	}
}

// Size returns about how many bytes the facts take.
func (f *Facts) Size() int {
	size := unsafe.Sizeof(block{}) + uintptr(len(f.Fields)+len(f.Objects))*unsafe.Sizeof(schema.FieldID(0)) +
		uintptr(len(f.Below))*unsafe.Sizeof(uint16(0)) + uintptr(len(f.Narrowed))*unsafe.Sizeof(Narrowed{}) +
		uintptr(len(f.Roots))*unsafe.Sizeof(Root{}) + uintptr(len(f.Variables))*unsafe.Sizeof(Variable{}) +
		uintptr(len(f.Cost.lists))*unsafe.Sizeof(costList{}) + uintptr(len(f.Cost.sizes))*unsafe.Sizeof(sizeVariable{})
	text := len(f.Name) + len(f.OnlyTypename)
	for i := range f.Variables {
		text += len(f.Variables[i].Name)
	}
	return int(size) + text
}
