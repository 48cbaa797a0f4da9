package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// nameDefinitions checks the names of operations and fragments, and notes which
// fragment a name stands for: the last of that name.
func (v *Validator) nameDefinitions() {
	d := v.doc
	v.inputs.clear()
	for i := range d.Operations {
		op := &d.Operations[i]
		if op.Name.End > 0 {
			v.uniqueName(op.Name, "operation")
		} else if len(d.Operations) > 1 {
			v.report("This anonymous operation must be the only defined operation.", op.Start)
		}
	}
	v.inputs.clear()
	for i := range d.Fragments {
		name := d.Fragments[i].Name
		v.uniqueName(name, "fragment")
		v.fragments.set(v.names.number(name), uint32(i))
	}
}

// uniqueName reports a name that was there before among those of its kind.
func (v *Validator) uniqueName(at syntax.Span, kind string) {
	number := v.names.number(at)
	if first, twice := v.inputs.get(number); twice {
		v.report("There can be only one "+kind+" named "+v.quoted(at)+".", first, at.Start)
		return
	}
	v.inputs.set(number, at.Start)
}

// walkDefinitions checks the rules that need one definition only, and collects data
// for the others.
func (v *Validator) walkDefinitions() {
	for i := range v.doc.Operations {
		if v.over {
			return
		}
		v.walk(i, func() { v.operation(&v.doc.Operations[i]) })
	}
	for i := range v.doc.Fragments {
		if v.over {
			return
		}
		v.walk(len(v.doc.Operations)+i, func() { v.fragment(&v.doc.Fragments[i]) })
	}
}

// walk walks one definition.
func (v *Validator) walk(i int, inside func()) {
	v.around = definition{usages: syntax.Range{Lo: uint32(len(v.usages))}}
	inside()
	v.around.usages.Hi = uint32(len(v.usages))
	v.defs[i] = v.around
}

func (v *Validator) operation(op *syntax.Operation) {
	where := [...]schema.DirectiveLocation{schema.OnQuery, schema.OnMutation, schema.OnSubscription}[op.Kind]
	root := rootType(v.s, op.Kind)
	if root == schema.NoType {
		v.report("Schema is not configured to execute "+op.Kind.String()+" operation.", op.Start)
	}
	v.variableDefinitions(op.Variables)
	v.directives(op.Directives, where, schema.NoField)
	v.merge.define(op.Selections, root)
	v.selections(op.Selections, root, schema.NoField)
}

func (v *Validator) fragment(f *syntax.Fragment) {
	t := v.typeCondition(f.TypeCondition)
	if t != schema.NoType && !v.s.Types[t].Kind.Composite() {
		v.report("Fragment "+v.quoted(f.Name)+" cannot condition on non composite type "+v.quoted(f.TypeCondition)+".", f.TypeCondition.Start)
	}
	v.directives(f.Directives, schema.OnFragmentDefinition, schema.NoField)
	v.merge.define(f.Selections, t)
	v.selections(f.Selections, v.composite(t), schema.NoField)
}

// composite returns a type that fields can be selected on, else NoType.
func (v *Validator) composite(t schema.TypeID) schema.TypeID {
	if t == schema.NoType || !v.s.Types[t].Kind.Composite() {
		return schema.NoType
	}
	return t
}

// typeCondition returns the type of a name, and reports one that is unknown.
func (v *Validator) typeCondition(name syntax.Span) schema.TypeID {
	t, ok := v.s.TypeNamed(v.doc.Bytes(name))
	if !ok {
		v.report("Unknown type "+v.quoted(name)+"."+v.suggestTypes(name), name.Start)
	}
	return t
}

// selections checks a selection set on a type, NoType when it is not known, of a
// field.
func (v *Validator) selections(set syntax.Range, parent schema.TypeID, of schema.FieldID) {
	for i := set.Lo; i < set.Hi; i++ {
		if v.over {
			return
		}
		sel := &v.doc.Selections[i]
		switch sel.Kind {
		case syntax.Field:
			v.field(i, sel, parent)
		case syntax.FragmentSpread:
			v.spread(i, sel, parent)
			v.directives(sel.Directives, schema.OnFragmentSpread, of)
		case syntax.InlineFragment:
			inner := v.inlineFragment(sel, parent)
			v.resolved[i] = uint32(inner)
			v.directives(sel.Directives, schema.OnInlineFragment, of)
			v.selections(sel.Selections, v.composite(inner), of)
		}
	}
}

// inlineFragment returns the type of what is in the fragment.
func (v *Validator) inlineFragment(sel *syntax.Selection, parent schema.TypeID) schema.TypeID {
	if sel.Name.End == 0 {
		return parent
	}
	t := v.typeCondition(sel.Name)
	if t == schema.NoType {
		return t
	}
	switch {
	case !v.s.Types[t].Kind.Composite():
		v.report("Fragment cannot condition on non composite type "+v.quoted(sel.Name)+".", sel.Name.Start)
	case parent != schema.NoType && !v.overlap(t, parent):
		v.impossible("Fragment", sel, parent, t)
	}
	return t
}

// spread resolves the spread of a named fragment.
func (v *Validator) spread(i uint32, sel *syntax.Selection, parent schema.TypeID) {
	f, ok := v.fragments.get(v.names.number(sel.Name))
	if !ok {
		v.resolved[i] = syntax.None
		v.report("Unknown fragment "+v.quoted(sel.Name)+".", sel.Name.Start)
		return
	}
	v.resolved[i] = f
	t, ok := v.s.TypeNamed(v.doc.Bytes(v.doc.Fragments[f].TypeCondition))
	if ok && parent != schema.NoType && v.s.Types[t].Kind.Composite() && !v.overlap(t, parent) {
		v.impossible("Fragment "+v.quoted(sel.Name), sel, parent, t)
	}
}

func (v *Validator) impossible(what string, sel *syntax.Selection, parent, t schema.TypeID) {
	why := v.either("it can never apply.", "objects of type "+v.typeQuoted(parent)+" can never be of type "+v.typeQuoted(t)+".")
	v.report(what+" cannot be spread here as "+why, sel.Start)
}

// overlap reports whether an object can be of both types, which are composite.
func (v *Validator) overlap(a, b schema.TypeID) bool {
	if a == b {
		return true
	}
	if v.s.Types[a].Kind == schema.Object {
		return v.s.Possible(b).Has(a)
	}
	if v.s.Types[b].Kind == schema.Object {
		return v.s.Possible(a).Has(b)
	}
	of := v.s.Possible(b)
	for i, word := range v.s.Possible(a) {
		if i < len(of) && word&of[i] != 0 {
			return true
		}
	}
	return false
}

// field checks a field that is selected on a type, NoType when it is not known.
func (v *Validator) field(i uint32, sel *syntax.Selection, parent schema.TypeID) {
	v.around.fields++
	name := v.doc.Bytes(sel.Name)
	if string(name) == "__schema" || string(name) == "__type" {
		v.metas = append(v.metas, i)
	}
	id := fieldNamed(v.s, parent, name)
	v.resolved[i] = uint32(id)
	f := v.fieldRow(id)
	switch {
	case id != schema.NoField:
		v.leaf(sel, f.Type)
	case parent != schema.NoType:
		v.unknownField(sel, parent)
	}
	if sel.Arguments.Len() > 0 || f.Arguments.Lo < f.Arguments.Hi {
		known := id != schema.NoField
		v.arguments(sel.Arguments, owner{among: f.Arguments, known: known, resolved: known, name: sel.Name, parent: parent, start: sel.Start})
	}
	v.directives(sel.Directives, schema.OnField, id)
	if sel.SetStart > 0 {
		inner := v.composite(f.Type.Type())
		v.merge.add(i, sel.Selections, inner)
		v.selections(sel.Selections, inner, id)
	}
}

// fieldNamed returns the field of a name, typenameField for __typename, NoField
// when there is none or the type is not known.
func fieldNamed(s *schema.Schema, parent schema.TypeID, name []byte) schema.FieldID {
	if parent == schema.NoType {
		return schema.NoField
	}
	if string(name) == schema.Typename {
		return typenameField
	}
	id, _ := s.FieldNamed(parent, name)
	return id
}

// fieldRow returns the row of a field, that of an unknown field for NoField.
func (v *Validator) fieldRow(id schema.FieldID) *schema.Field {
	switch id {
	case schema.NoField:
		return &v.nothing
	case typenameField:
		return &v.typename
	default:
		return &v.s.Fields[id]
	}
}

func (v *Validator) unknownField(sel *syntax.Selection, parent schema.TypeID) {
	what := "field: " + v.text(sel.Name) + " not defined"
	v.report(v.either(what, what+" on type: "+v.s.Types[parent].Name+v.suggestFields(sel.Name, parent)), sel.Start)
}

// leaf checks that a field has a selection set if and only if its type has
// fields.
func (v *Validator) leaf(sel *syntax.Selection, ref schema.TypeRef) {
	composite := v.s.Types[ref.Type()].Kind.Composite()
	if composite == (sel.SetStart > 0) {
		return
	}
	name := v.text(sel.Name)
	if composite {
		v.report(`Field "`+name+`"`+v.either("", " of type "+v.refQuoted(ref))+
			` must have a selection of subfields. Did you mean "`+name+` { ... }"?`, sel.Start)
		return
	}
	why := v.either("its type", "type "+v.refQuoted(ref))
	v.report(`Field "`+name+`" must not have a selection since `+why+" has no subfields.", sel.SetStart)
}

// rootType returns the type that operations of a kind start from, or NoType.
func rootType(s *schema.Schema, kind syntax.OperationKind) schema.TypeID {
	return [...]schema.TypeID{s.Query, s.Mutation, s.Subscription}[kind]
}
