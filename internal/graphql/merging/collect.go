package merging

import (
	"github.com/sluicegate/sluice/internal/graphql/names"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// collect returns a set with its entries.
func (m *Merger) collect(id uint32) *fieldSet {
	set := &m.sets[id]
	if set.collected {
		return set
	}
	set.collected = true
	m.last.Clear()
	m.spread.Clear()
	set.entries.Lo, set.spreads.Lo = uint32(len(m.entries)), uint32(len(m.spreads))
	m.collectFrom(id, set.selections, set.parent)
	set.entries.Hi, set.spreads.Hi = uint32(len(m.entries)), uint32(len(m.spreads))
	return set
}

func (m *Merger) collectFrom(id uint32, from syntax.Range, parent schema.TypeID) {
	for i := from.Lo; i < from.Hi; i++ {
		sel := &m.doc.Selections[i]
		switch sel.Kind {
		case syntax.Field:
			m.collectField(id, i, parent)
		case syntax.InlineFragment:
			m.collectFrom(id, sel.Selections, schema.TypeID(m.resolved[i]))
		case syntax.FragmentSpread:
			if f := m.resolved[i]; f != syntax.None && !m.spread.Has(f) {
				m.spread.Set(f, 0)
				m.spreads = append(m.spreads, f)
			}
		}
	}
}

func (m *Merger) collectField(id, sel uint32, parent schema.TypeID) {
	e := entry{
		name:   m.names.Number(m.doc.Selections[sel].ResponseKey()),
		sel:    sel,
		parent: parent,
		field:  schema.FieldID(m.resolved[sel]),
		next:   syntax.None,
		first:  true,
	}
	if last, ok := m.last.Get(e.name); ok {
		if !m.texts && m.isCopy(id, &m.entries[last], &e) {
			return
		}
		e.first = false
		m.entries[last].next = uint32(len(m.entries))
	}
	m.last.Set(e.name, uint32(len(m.entries)))
	m.entries = append(m.entries, e)
}

// isCopy tells whether an entry is equal to one of its group, whose last one is
// given: it would add no conflict that the other one has not.
func (m *Merger) isCopy(id uint32, last, e *entry) bool {
	known := func(e *entry) bool {
		key := names.Mix(names.Mix(m.fieldHash(e.sel), uint64(e.parent)), uint64(id)<<32|uint64(e.name))
		seen := m.distinct.At(key)
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
func (m *Merger) fieldHash(i uint32) uint64 {
	if len(m.fields) == 0 {
		m.fields = names.Sized(m.fields, len(m.doc.Selections))
		clear(m.fields)
	}
	if m.fields[i] != 0 {
		return m.fields[i]
	}
	sel := &m.doc.Selections[i]
	hash := names.Mix(uint64(sel.Kind), m.names.Hash(m.doc.Bytes(sel.Name)))
	if sel.Kind == syntax.Field {
		hash = names.Mix(hash, m.names.Hash(m.doc.Bytes(sel.ResponseKey())))
		hash = names.Mix(hash, m.argumentsHash(i))
	}
	for inner := sel.Selections.Lo; inner < sel.Selections.Hi; inner++ {
		hash = names.Mix(hash, m.fieldHash(inner))
	}
	m.fields[i] = names.Mix(hash, uint64(sel.Selections.Len())) | 1
	return m.fields[i]
}

// sameArguments tells whether two fields are given the same.
func (m *Merger) sameArguments(a, b uint32) bool {
	one, two := m.doc.Selections[a].Arguments.Len(), m.doc.Selections[b].Arguments.Len()
	return one == two && (one == 0 || m.argumentsHash(a) == m.argumentsHash(b))
}

// argumentsHash returns a number that equal arguments have in common, in
// whatever order. It is worked out once for each field.
func (m *Merger) argumentsHash(i uint32) uint64 {
	if len(m.values) == 0 {
		m.values = names.Sized(m.values, len(m.doc.Selections))
		clear(m.values)
	}
	if m.values[i] == 0 {
		m.values[i] = m.fieldsHash(m.doc.Selections[i].Arguments) | 1
	}
	return m.values[i]
}

// fieldsHash is the hash of arguments or of an object's fields.
func (m *Merger) fieldsHash(fields syntax.Range) (sum uint64) {
	for i := fields.Lo; i < fields.Hi; i++ {
		arg := &m.doc.Arguments[i]
		sum += names.Mix(m.names.Hash(m.doc.Bytes(arg.Name)), m.valueHash(&m.doc.Values[arg.Value]))
	}
	return sum
}

func (m *Merger) valueHash(val *syntax.Value) uint64 {
	kind := uint64(val.Kind)
	switch val.Kind {
	case syntax.ListValue:
		hash := names.Mix(kind, uint64(val.Items.Len()))
		for i := val.Items.Lo; i < val.Items.Hi; i++ {
			hash = names.Mix(hash, m.valueHash(&m.doc.Values[i]))
		}
		return hash
	case syntax.ObjectValue:
		return names.Mix(kind, m.fieldsHash(val.Items))
	case syntax.VariableValue:
		return names.Mix(kind, m.names.Hash(m.doc.Bytes(names.Variable(m.doc, val))))
	default:
		m.scratch = m.doc.AppendString(m.scratch[:0], val)
		return names.Mix(kind, m.names.Hash(m.scratch))
	}
}
