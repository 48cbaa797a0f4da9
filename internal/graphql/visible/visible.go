// Package visible cuts a schema down to what may be used of it, for documentation,
// completion and introspection.
//
// The part that is left is a valid schema, and every operation that it accepts passes
// the field rules that it was cut by. Nearly every operation that passes them is
// accepted. The others select what no schema can express beside the rules:
//
//   - A field of an interface where fragments leave only some of its objects. It passes
//     where those objects have it, and the schema has one field for all. The same
//     operation with the field on the object is accepted.
//   - Nothing but __typename on an object of which no field passes. A schema has no type
//     without fields: the type goes, and with it the fields that return it.
//   - An object that does not have a field of its interface, which passes on the
//     interface alone. The schema has the field and not the relation, so that the object
//     is not found behind the interface.
//
// An interface without fields of which objects are left becomes a union of these.
package visible

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A Part is what is left of a schema. It is immutable.
type Part struct {
	*schema.Schema
	fields     []bool // by FieldID: it is left
	alive      []bool // by TypeID: values of the type can be selected on, or given
	unions     []bool // by TypeID: an interface that is left as a union
	implements [][]schema.TypeID
	shown      []bool // by TypeID: alive, and reached from the roots
}

// Cut returns the part of a schema with the fields that pass.
func Cut(s *schema.Schema, passes func(schema.FieldID) bool) *Part {
	p := &Part{
		Schema: s, fields: make([]bool, len(s.Fields)), alive: make([]bool, len(s.Types)), unions: make([]bool, len(s.Types)),
		implements: make([][]schema.TypeID, len(s.Types)), shown: make([]bool, len(s.Types)),
	}
	for f := range s.Fields {
		p.fields[f] = !s.IsMeta(schema.FieldID(f)) && (s.Types[s.Fields[f].Owner].BuiltIn || passes(schema.FieldID(f)))
	}
	for p.settle() {
	}
	p.relate()
	p.reach()
	return p
}

// Empty reports whether no query is left. There is no schema then.
func (p *Part) Empty() bool { return !p.alive[p.Query] }

// Has reports whether a field is left.
func (p *Part) Has(f schema.FieldID) bool { return p.fields[f] && p.shown[p.Fields[f].Owner] }

// settle finds which types are left with the fields that are, and takes out the fields
// that return any other. It reports whether it took out any.
func (p *Part) settle() (changed bool) {
	for t := range p.Types {
		id := schema.TypeID(t)
		p.alive[t] = !p.Types[t].Kind.Composite() || p.anyField(id)
	}
	for t := range p.Types {
		if kind := p.Types[t].Kind; (kind == schema.Interface || kind == schema.Union) && !p.alive[t] {
			p.alive[t] = p.anyObject(schema.TypeID(t))
			p.unions[t] = p.alive[t] && kind == schema.Interface
		}
	}
	for f := range p.fields {
		if p.fields[f] && !p.alive[p.Fields[f].Type.Type()] {
			p.fields[f], changed = false, true
		}
	}
	return changed
}

func (p *Part) anyField(t schema.TypeID) bool {
	for range p.fieldsOf(t) {
		return true
	}
	return false
}

func (p *Part) anyObject(t schema.TypeID) bool {
	for range p.objectsIn(t) {
		return true
	}
	return false
}

// fieldsOf yields the fields of a type that are left.
func (p *Part) fieldsOf(t schema.TypeID) iter.Seq[schema.FieldID] {
	span := p.Types[t].Fields
	return func(yield func(schema.FieldID) bool) {
		for f := span.Lo; f < span.Hi; f++ {
			if p.fields[f] && !yield(schema.FieldID(f)) {
				return
			}
		}
	}
}

// objectsIn yields the objects of the whole schema's interface or union that are left.
func (p *Part) objectsIn(t schema.TypeID) iter.Seq[schema.TypeID] {
	return func(yield func(schema.TypeID) bool) {
		for i, word := range p.Possible(t) {
			for ; word != 0; word &= word - 1 {
				if object := schema.TypeID(i*64 + bits.TrailingZeros64(word)); p.alive[object] && !yield(object) {
					return
				}
			}
		}
	}
}

// relate finds which types still have all that their interfaces ask for. It begins with
// all relations and takes out those that do not hold, until all do.
func (p *Part) relate() {
	for t := range p.Types {
		if p.isDeclared(schema.TypeID(t)) {
			for _, i := range p.Schema.Implements(schema.TypeID(t)) {
				if p.isDeclared(i) {
					p.implements[t] = append(p.implements[t], i)
				}
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for t, all := range p.implements {
			kept := all[:0:len(all)]
			for _, i := range all {
				if p.satisfies(schema.TypeID(t), i) {
					kept = append(kept, i)
				}
			}
			changed = changed || len(kept) < len(all)
			p.implements[t] = kept
		}
	}
}

// isDeclared reports whether a type is left with fields.
func (p *Part) isDeclared(t schema.TypeID) bool {
	kind := p.Types[t].Kind
	return p.alive[t] && !p.unions[t] && (kind == schema.Object || kind == schema.Interface)
}

// satisfies reports whether a type has the fields of an interface, with types that the
// interface permits.
func (p *Part) satisfies(t, iface schema.TypeID) bool {
	for f := range p.fieldsOf(iface) {
		own, ok := p.FieldNamed(t, []byte(p.Fields[f].Name))
		if !ok || !p.fields[own] || !p.isSubtype(p.Fields[own].Type, p.Fields[f].Type) {
			return false
		}
	}
	return true
}

// isSubtype reports whether a field may have the type sub where an interface has super.
func (p *Part) isSubtype(sub, super schema.TypeRef) bool {
	switch {
	case sub == super:
		return true
	case super.IsNonNull():
		return sub.IsNonNull() && p.isSubtype(sub.Inner(), super.Inner())
	case sub.IsNonNull():
		return p.isSubtype(sub.Inner(), super)
	case super.IsList() || sub.IsList():
		return super.IsList() && sub.IsList() && p.isSubtype(sub.Inner(), super.Inner())
	}
	return p.isOne(sub.Type(), super.Type())
}

// isOne reports whether a type is one of an interface or union.
func (p *Part) isOne(t, of schema.TypeID) bool {
	if t == of {
		return true
	}
	if p.Types[of].Kind == schema.Union || p.unions[of] {
		return p.Possible(of).Has(t) && p.Types[t].Kind == schema.Object
	}
	return slices.Contains(p.implements[t], of)
}

// members yields the objects of an interface or union.
func (p *Part) members(t schema.TypeID) iter.Seq[schema.TypeID] {
	return func(yield func(schema.TypeID) bool) {
		for object := range p.objectsIn(t) {
			if p.isOne(object, t) && !yield(object) {
				return
			}
		}
	}
}

// reach finds the types that operations can name: those that fields return and arguments
// take, and the interfaces and unions of objects, on which fragments can be.
func (p *Part) reach() {
	around := make([][]schema.TypeID, len(p.Types)) // interfaces and unions of an object
	for t := range p.Types {
		if kind := p.Types[t].Kind; p.alive[t] && (kind == schema.Interface || kind == schema.Union) {
			for object := range p.members(schema.TypeID(t)) {
				around[object] = append(around[object], schema.TypeID(t))
			}
		}
	}
	var queue []schema.TypeID
	visit := func(t schema.TypeID) {
		if t != schema.NoType && p.alive[t] && !p.shown[t] {
			p.shown[t] = true
			queue = append(queue, t)
		}
	}
	for _, root := range []schema.TypeID{p.Query, p.Mutation, p.Subscription} {
		visit(root)
	}
	for i := range p.Directives {
		if p.isUsable(&p.Directives[i]) {
			p.visitInputs(p.Directives[i].Arguments, visit)
		}
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		p.visitAround(t, visit)
		for _, other := range around[t] {
			visit(other)
		}
	}
}

// visitAround visits what a type refers to.
func (p *Part) visitAround(t schema.TypeID, visit func(schema.TypeID)) {
	switch p.Types[t].Kind {
	case schema.Object, schema.Interface, schema.Union:
		for f := range p.fieldsOf(t) {
			visit(p.Fields[f].Type.Type())
			p.visitInputs(p.Fields[f].Arguments, visit)
		}
		for _, i := range p.implements[t] {
			visit(i)
		}
		if p.Types[t].Kind != schema.Object {
			for object := range p.members(t) {
				visit(object)
			}
		}
	case schema.InputObject:
		p.visitInputs(p.Types[t].Inputs, visit)
	}
}

func (p *Part) visitInputs(span schema.Span, visit func(schema.TypeID)) {
	for _, input := range p.Inputs[span.Lo:span.Hi] {
		visit(input.Type.Type())
	}
}

// isUsable reports whether operations can have a directive.
func (p *Part) isUsable(d *schema.Directive) bool {
	return d.Locations&(1<<(schema.OnVariableDefinition+1)-1) != 0
}
