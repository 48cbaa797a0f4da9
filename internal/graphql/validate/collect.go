package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// collect returns a set with its entries.
func (v *Validator) collect(id uint32) *fieldSet {
	m := &v.merge
	set := &m.sets[id]
	if set.collected {
		return set
	}
	set.collected = true
	m.last.next()
	m.spread.next()
	set.entries.Lo, set.spreads.Lo = uint32(len(m.entries)), uint32(len(m.spreads))
	v.collectFrom(id, set.selections, set.parent)
	set.entries.Hi, set.spreads.Hi = uint32(len(m.entries)), uint32(len(m.spreads))
	return set
}

func (v *Validator) collectFrom(id uint32, from syntax.Range, parent schema.TypeID) {
	m := &v.merge
	for i := from.Lo; i < from.Hi; i++ {
		sel := &v.doc.Selections[i]
		switch sel.Kind {
		case syntax.Field:
			v.collectField(id, i, parent)
		case syntax.InlineFragment:
			v.collectFrom(id, sel.Selections, schema.TypeID(v.resolved[i]))
		case syntax.FragmentSpread:
			if f := v.resolved[i]; f != syntax.None && !m.spread.has(f) {
				m.spread.set(f, 0)
				m.spreads = append(m.spreads, f)
			}
		}
	}
}

func (v *Validator) collectField(id, sel uint32, parent schema.TypeID) {
	m := &v.merge
	e := entry{
		name:   v.names.number(v.doc.Selections[sel].ResponseKey()),
		sel:    sel,
		parent: parent,
		field:  schema.FieldID(v.resolved[sel]),
		next:   syntax.None,
		first:  true,
	}
	if last, ok := m.last.get(e.name); ok {
		if !m.texts && v.isCopy(id, &m.entries[last], &e) {
			return
		}
		e.first = false
		m.entries[last].next = uint32(len(m.entries))
	}
	m.last.set(e.name, uint32(len(m.entries)))
	m.entries = append(m.entries, e)
}

// isCopy tells whether an entry is equal to one of its group, whose last one is
// given: it would add no conflict that the other one has not.
func (v *Validator) isCopy(id uint32, last, e *entry) bool {
	known := func(e *entry) bool {
		key := mix(mix(v.fieldHash(e.sel), uint64(e.parent)), uint64(id)<<32|uint64(e.name))
		seen := v.merge.distinct.at(key)
		before := *seen != 0
		*seen = 1
		return before
	}
	if last.first {
		known(last)
	}
	return known(e)
}

// fieldHash returns a number that equal fields have in common: what they are
// called, are given and select. Directives are no part of it.
func (v *Validator) fieldHash(i uint32) uint64 {
	m := &v.merge
	if len(m.fields) == 0 {
		m.fields = sized(m.fields, len(v.doc.Selections))
		clear(m.fields)
	}
	if m.fields[i] != 0 {
		return m.fields[i]
	}
	sel := &v.doc.Selections[i]
	hash := mix(uint64(sel.Kind), v.names.hash(v.doc.Bytes(sel.Name)))
	if sel.Kind == syntax.Field {
		hash = mix(hash, v.names.hash(v.doc.Bytes(sel.ResponseKey())))
		hash = mix(hash, v.argumentsHash(i))
	}
	for inner := sel.Selections.Lo; inner < sel.Selections.Hi; inner++ {
		hash = mix(hash, v.fieldHash(inner))
	}
	m.fields[i] = mix(hash, uint64(sel.Selections.Len())) | 1
	return m.fields[i]
}

// sameArguments tells whether two fields are given the same.
func (v *Validator) sameArguments(a, b uint32) bool {
	one, two := v.doc.Selections[a].Arguments.Len(), v.doc.Selections[b].Arguments.Len()
	return one == two && (one == 0 || v.argumentsHash(a) == v.argumentsHash(b))
}

// argumentsHash returns a number that equal arguments have in common, in
// whatever order. It is worked out once for each field.
func (v *Validator) argumentsHash(i uint32) uint64 {
	m := &v.merge
	if len(m.values) == 0 {
		m.values = sized(m.values, len(v.doc.Selections))
		clear(m.values)
	}
	if m.values[i] == 0 {
		m.values[i] = v.fieldsHash(v.doc.Selections[i].Arguments) | 1
	}
	return m.values[i]
}

// fieldsHash is the hash of arguments or of an object's fields.
func (v *Validator) fieldsHash(fields syntax.Range) (sum uint64) {
	for i := fields.Lo; i < fields.Hi; i++ {
		arg := &v.doc.Arguments[i]
		sum += mix(v.names.hash(v.doc.Bytes(arg.Name)), v.valueHash(&v.doc.Values[arg.Value]))
	}
	return sum
}

func (v *Validator) valueHash(val *syntax.Value) uint64 {
	kind := uint64(val.Kind)
	switch val.Kind {
	case syntax.ListValue:
		hash := mix(kind, uint64(val.Items.Len()))
		for i := val.Items.Lo; i < val.Items.Hi; i++ {
			hash = mix(hash, v.valueHash(&v.doc.Values[i]))
		}
		return hash
	case syntax.ObjectValue:
		return mix(kind, v.fieldsHash(val.Items))
	case syntax.VariableValue:
		return mix(kind, v.names.hash(v.doc.Bytes(variableName(v.doc, val))))
	default:
		m := &v.merge
		m.scratch = v.doc.AppendString(m.scratch[:0], val)
		return mix(kind, v.names.hash(m.scratch))
	}
}
