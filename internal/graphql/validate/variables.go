package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A usage is a place where a variable is used.
type usage struct {
	name  uint32 // its number
	start uint32 // of "$"
	position
}

// use notes the use of a variable.
func (v *Validator) use(val *syntax.Value, at position) {
	v.usages = append(v.usages, usage{v.names.number(variableName(v.doc, val)), val.Text.Start, at})
}

// variableDefinitions checks the variables of an operation, apart from their
// use.
func (v *Validator) variableDefinitions(defs syntax.Range) {
	v.uniqueVariables(defs)
	for i := defs.Lo; i < defs.Hi && !v.over; i++ {
		def := &v.doc.Variables[i]
		ref := v.variableType(def)
		v.varTypes[i] = ref
		if ref != noRef && !v.s.Types[ref.Type()].Kind.Input() {
			at := v.doc.Types[def.Type].Text
			v.report(`Variable "$`+v.text(def.Name)+`" cannot be non-input type "`+clip(v.s.RefString(ref), maxEcho)+`".`, at.Start)
			ref = noRef
		}
		if def.Default != syntax.None {
			v.value(def.Default, position{ref: ref, parent: noRef})
		}
		v.directives(def.Directives, schema.OnVariableDefinition, schema.NoField)
	}
}

// uniqueVariables reports each name that several variables have once.
func (v *Validator) uniqueVariables(defs syntax.Range) {
	if defs.Len() < 2 {
		return
	}
	v.inputs.clear()
	var again []uint32
	for i := defs.Lo; i < defs.Hi; i++ {
		number := v.names.number(v.doc.Variables[i].Name)
		if first, twice := v.inputs.get(number); !twice {
			v.inputs.set(number, i)
		} else if first != syntax.None {
			again = append(again, number)
			v.inputs.set(number, syntax.None)
		}
	}
	for _, number := range again {
		v.reportVariables(defs, number)
	}
}

func (v *Validator) reportVariables(defs syntax.Range, number uint32) {
	if v.over {
		return
	}
	var places []uint32
	for i := defs.Lo; i < defs.Hi; i++ {
		if name := v.doc.Variables[i].Name; v.names.number(name) == number {
			places = append(places, name.Start)
		}
	}
	v.report(`There can be only one variable named "$`+v.text(v.names.span(number))+`".`, places...)
}

// variableType returns the type that a variable is defined with, noRef when it
// is unknown.
func (v *Validator) variableType(def *syntax.Variable) schema.TypeRef {
	ref, name, ok := typeRef(v.s, v.doc, def.Type)
	if ref == noRef {
		v.report("Unknown type "+v.quoted(name)+"."+v.suggestTypes(name), name.Start)
	} else if !ok {
		v.report(`Variable "$`+v.text(def.Name)+`" cannot be of a type with so many wrappers.`, v.doc.Types[def.Type].Text.Start)
		return noRef
	}
	return ref
}

// typeRef returns the reference that a document's type stands for, noRef when
// there is no type of that name; and false when it has too many wrappers.
func typeRef(s *schema.Schema, doc *syntax.Document, at uint32) (ref schema.TypeRef, name syntax.Span, ok bool) {
	var wrappers [schema.MaxWrappers]syntax.TypeRefKind
	n := 0
	for ; doc.Types[at].Kind != syntax.NamedType; at = doc.Types[at].Of {
		if n < len(wrappers) {
			wrappers[n] = doc.Types[at].Kind
		}
		n++
	}
	name = doc.Types[at].Text
	t, known := s.TypeNamed(doc.Bytes(name))
	if !known {
		return noRef, name, true
	}
	ref = schema.Named(t)
	for i := min(n, len(wrappers)) - 1; i >= 0; i-- {
		if wrappers[i] == syntax.ListType {
			ref, _ = ref.List()
		} else {
			ref, _ = ref.NonNull()
		}
	}
	return ref, name, n <= len(wrappers)
}

// variableMarks are by the number of a variable's name.
type variableMarks struct {
	defined marks // the variable's definition
	used    marks
}

// checkVariables checks the variables of each operation against their uses,
// including those in fragments that it reaches.
func (v *Validator) checkVariables() {
	for i := range v.doc.Operations {
		op := &v.doc.Operations[i]
		v.vars.defined.clear()
		v.vars.used.clear()
		for d := op.Variables.Lo; d < op.Variables.Hi; d++ {
			v.vars.defined.set(v.names.number(v.doc.Variables[d].Name), d)
		}
		v.checkUses(op, &v.defs[i])
		for _, f := range v.reach(uint32(i), uint32(i+1)) {
			v.checkUses(op, &v.defs[len(v.doc.Operations)+int(f)])
		}
		for d := op.Variables.Lo; d < op.Variables.Hi && !v.over; d++ {
			name := v.doc.Variables[d].Name
			if !v.vars.used.has(v.names.number(name)) {
				v.report(`Variable "$`+v.text(name)+`" is never used`+v.inOperation("in", op)+".", v.doc.Variables[d].Start)
			}
		}
	}
}

// inOperation returns words that name an operation, none when it is anonymous.
func (v *Validator) inOperation(preposition string, op *syntax.Operation) string {
	if op.Name.End == 0 {
		return ""
	}
	return " " + preposition + " operation " + v.quoted(op.Name)
}

func (v *Validator) checkUses(op *syntax.Operation, of *definition) {
	if v.over || !v.spend(of.usages.Len()) {
		return
	}
	for i := of.usages.Lo; i < of.usages.Hi && !v.over; i++ {
		use := &v.usages[i]
		v.vars.used.set(use.name, 0)
		d, ok := v.vars.defined.get(use.name)
		if !ok {
			name := v.text(v.names.span(use.name))
			v.report(`Variable "$`+name+`" is not defined`+v.inOperation("by", op)+".", use.start, op.Start)
		} else if use.ref != noRef && v.varTypes[d] != noRef {
			v.checkPosition(use, d)
		}
	}
}

// checkPosition checks the type of a variable against the type expected at a use.
func (v *Validator) checkPosition(use *usage, d uint32) {
	def, ref := &v.doc.Variables[d], v.varTypes[d]
	if !fits(ref, v.hasDefault(def), use.position) {
		have := `Variable "$` + v.text(def.Name) + `" of type "` + v.s.RefString(ref) + `" used in position expecting `
		v.report(v.either(have+"another type.", have+"type "+v.refQuoted(use.ref)+"."), def.Start, use.start)
	}
	// A parent that may not be null is no input object to the reference.
	oneOf := use.parent != noRef && use.parent.IsNamed() && v.s.Types[use.parent.Type()].OneOf
	if oneOf && !ref.IsNonNull() {
		v.report(`Variable "$`+v.text(def.Name)+`" is of type "`+v.s.RefString(ref)+`" but must be non-nullable to be used for `+
			v.either("a OneOf Input Object.", "OneOf Input Object "+v.typeQuoted(use.parent.Type())+"."), def.Start, use.start)
	}
}

// hasDefault reports whether a variable has a default other than null.
func (v *Validator) hasDefault(def *syntax.Variable) bool {
	return def.Default != syntax.None && v.doc.Values[def.Default].Kind != syntax.NullValue
}

// fits reports whether a variable can be used at a place.
func fits(ref schema.TypeRef, hasDefault bool, at position) bool {
	if at.ref.IsNonNull() && !ref.IsNonNull() {
		return (hasDefault || at.defaulted) && within(ref, at.ref.Inner())
	}
	return within(ref, at.ref)
}

// within reports whether each value of a type is one of another, which is at most
// less strict about null.
func within(ref, of schema.TypeRef) bool {
	for ref != of {
		switch {
		case of.IsNonNull():
			if !ref.IsNonNull() {
				return false
			}
			of = of.Inner()
			ref = ref.Inner()
		case ref.IsNonNull():
			ref = ref.Inner()
		case of.IsList() && ref.IsList():
			of, ref = of.Inner(), ref.Inner()
		default:
			return false
		}
	}
	return true
}
