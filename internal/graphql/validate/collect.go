package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// collect returns a set with its entries.
func (m *merger) collect(id uint32) *fieldSet {
	set := &m.sets[id]
	if set.collected {
		return set
	}
	set.collected = true
	m.last.clear()
	m.spread.clear()
	set.entries.Lo, set.spreads.Lo = uint32(len(m.entries)), uint32(len(m.spreads))
	m.collectFrom(id, set.selections, set.parent)
	set.entries.Hi, set.spreads.Hi = uint32(len(m.entries)), uint32(len(m.spreads))
	return set
}

func (m *merger) collectFrom(id uint32, from syntax.Range, parent schema.TypeID) {
	for i := from.Lo; i < from.Hi; i++ {
		sel := &m.doc.Selections[i]
		switch sel.Kind {
		case syntax.Field:
			m.collectField(id, i, parent)
		case syntax.InlineFragment:
			m.collectFrom(id, sel.Selections, schema.TypeID(m.resolved[i]))
		case syntax.FragmentSpread:
			if f := m.resolved[i]; f != syntax.None && !m.spread.has(f) {
				m.spread.set(f, 0)
				m.spreads = append(m.spreads, f)
			}
		}
	}
}

func (m *merger) collectField(id, sel uint32, parent schema.TypeID) {
	e := entry{
		name:   m.names.number(m.doc.Selections[sel].ResponseKey()),
		sel:    sel,
		parent: parent,
		field:  schema.FieldID(m.resolved[sel]),
		next:   syntax.None,
		first:  true,
	}
	if last, ok := m.last.get(e.name); ok {
		if !m.texts && m.isCopy(id, &m.entries[last], &e) {
			return
		}
		e.first = false
		m.entries[last].next = uint32(len(m.entries))
	}
	m.last.set(e.name, uint32(len(m.entries)))
	m.entries = append(m.entries, e)
}

// isCopy reports whether an entry is equal to one of its group, whose last one is
// given: it would add no conflict that the other one has not.
func (m *merger) isCopy(id uint32, last, e *entry) bool {
	known := func(e *entry) bool {
		key := mix(mix(m.fieldHash(e.sel), uint64(e.parent)), uint64(id)<<32|uint64(e.name))
		seen := m.distinct.at(key)
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
func (m *merger) fieldHash(i uint32) uint64 {
	if len(m.fields) == 0 {
		m.fields = sized(m.fields, len(m.doc.Selections))
		clear(m.fields)
	}
	if m.fields[i] != 0 {
		return m.fields[i]
	}
	sel := &m.doc.Selections[i]
	hash := mix(uint64(sel.Kind), m.names.hash(m.doc.Bytes(sel.Name)))
	if sel.Kind == syntax.Field {
		hash = mix(hash, m.names.hash(m.doc.Bytes(sel.ResponseKey())))
		hash = mix(hash, m.argumentsHash(i))
	}
	for inner := sel.Selections.Lo; inner < sel.Selections.Hi; inner++ {
		hash = mix(hash, m.fieldHash(inner))
	}
	m.fields[i] = mix(hash, uint64(sel.Selections.Len())) | 1
	return m.fields[i]
}

// sameArguments reports whether two fields are given the same.
func (m *merger) sameArguments(a, b uint32) bool {
	one, two := m.doc.Selections[a].Arguments.Len(), m.doc.Selections[b].Arguments.Len()
	return one == two && (one == 0 || m.argumentsHash(a) == m.argumentsHash(b))
}

// argumentsHash returns a number that equal arguments have in common, in
// whatever order. It is worked out once for each field.
func (m *merger) argumentsHash(i uint32) uint64 {
	if len(m.values) == 0 {
		m.values = sized(m.values, len(m.doc.Selections))
		clear(m.values)
	}
	if m.values[i] == 0 {
		m.values[i] = m.fieldsHash(m.doc.Selections[i].Arguments) | 1
	}
	return m.values[i]
}

// fieldsHash is the hash of arguments or of an object's fields.
func (m *merger) fieldsHash(fields syntax.Range) (sum uint64) {
	for i := fields.Lo; i < fields.Hi; i++ {
		arg := &m.doc.Arguments[i]
		sum += mix(m.names.hash(m.doc.Bytes(arg.Name)), m.valueHash(&m.doc.Values[arg.Value]))
	}
	return sum
}

func (m *merger) valueHash(val *syntax.Value) uint64 {
	kind := uint64(val.Kind)
	switch val.Kind {
	case syntax.ListValue:
		hash := mix(kind, uint64(val.Items.Len()))
		for i := val.Items.Lo; i < val.Items.Hi; i++ {
			hash = mix(hash, m.valueHash(&m.doc.Values[i]))
		}
		return hash
	case syntax.ObjectValue:
		return mix(kind, m.fieldsHash(val.Items))
	case syntax.VariableValue:
		return mix(kind, m.names.hash(m.doc.Bytes(variableName(m.doc, val))))
	default:
		m.scratch = m.doc.AppendString(m.scratch[:0], val)
		return mix(kind, m.names.hash(m.scratch))
	}
}
