package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A conflict is two fields, or two groups with their fields inside, that cannot
// have one name.
type conflict struct {
	name   syntax.Span
	reason string
	a, b   []uint32 // selections
}

// describe returns the message and locations of a conflict.
func (m *merger) describe(c *conflict) mergeConflict {
	places := make([]uint32, 0, len(c.a)+len(c.b))
	for _, sel := range append(c.a, c.b...) {
		places = append(places, m.doc.Selections[sel].Start)
	}
	return mergeConflict{
		message: "Fields " + m.quoted(c.name) + " conflict because " + c.reason +
			". Use different aliases on the fields to fetch both if this was intentional.",
		places: places,
	}
}

// quoted returns a name of the document as messages have it.
func (m *merger) quoted(at syntax.Span) string { return `"` + echo(m.doc, at) + `"` }

// compare compares two entries with the same response name, and their selections.
func (m *merger) compare(exclusive bool, one, two uint32, found *[]conflict) {
	m.left--
	a, b := m.entries[one], m.entries[two]
	exclusive = exclusive || a.parent != b.parent && m.isObject(a.parent) && m.isObject(b.parent)
	if reason := m.differ(exclusive, &a, &b); reason != 0 {
		m.found = true
		if m.texts {
			*found = append(*found, conflict{m.doc.Selections[a.sel].ResponseKey(), m.reasonText(reason, &a, &b), []uint32{a.sel}, []uint32{b.sel}})
		}
		return
	}
	if m.doc.Selections[a.sel].SetStart == 0 || m.doc.Selections[b.sel].SetStart == 0 || !m.deeper() {
		return
	}
	var inside []conflict
	m.compareInside(exclusive, m.of[a.sel], m.of[b.sel], &inside)
	if len(inside) > 0 {
		*found = append(*found, m.conflictAround(&a, &b, inside))
	}
	m.depth--
}

// compareInside compares the sets of two fields of the same name.
func (m *merger) compareInside(exclusive bool, one, two uint32, found *[]conflict) {
	m.compareSets(exclusive, one, two, found)
	a, b := m.collect(one).spreads, m.collect(two).spreads
	for i := b.Lo; i < b.Hi && !m.done(); i++ {
		m.compareSpread(exclusive, one, m.spreads[i], found)
	}
	for i := a.Lo; i < a.Hi && !m.done(); i++ {
		m.compareSpread(exclusive, two, m.spreads[i], found)
	}
	for i := a.Lo; i < a.Hi; i++ {
		for j := b.Lo; j < b.Hi && !m.done(); j++ {
			m.compareFragments(exclusive, m.spreads[i], m.spreads[j], found)
		}
	}
}

// The reasons why two fields cannot have one name.
const (
	otherName = 1 + iota
	otherArguments
	otherTypes
)

// differ returns why two fields cannot have one name, apart from what they
// select, or 0.
func (m *merger) differ(exclusive bool, a, b *entry) int {
	one, two := &m.doc.Selections[a.sel], &m.doc.Selections[b.sel]
	if !exclusive {
		if string(m.doc.Bytes(one.Name)) != string(m.doc.Bytes(two.Name)) {
			return otherName
		}
		if !m.sameArguments(a.sel, b.sel) {
			return otherArguments
		}
	}
	x, known := m.answerType(a.field)
	y, too := m.answerType(b.field)
	if known && too && m.typesConflict(x, y) {
		return otherTypes
	}
	return 0
}

// answerType returns the type of a field, and false for __typename and those of
// introspection, which the reference does not look up here.
func (m *merger) answerType(f schema.FieldID) (schema.TypeRef, bool) {
	if int(f) >= len(m.s.Fields) || m.s.IsMeta(f) {
		return 0, false
	}
	return m.s.Fields[f].Type, true
}

// typesConflict reports whether values of two types cannot stand in one place.
// What composite types select is compared on its own.
func (m *merger) typesConflict(a, b schema.TypeRef) bool {
	for !a.IsNamed() || !b.IsNamed() {
		if a.IsList() != b.IsList() || a.IsNonNull() != b.IsNonNull() {
			return true
		}
		a, b = a.Inner(), b.Inner()
	}
	leaf := !m.s.Types[a.Type()].Kind.Composite() || !m.s.Types[b.Type()].Kind.Composite()
	return leaf && a != b
}

func (m *merger) isObject(t schema.TypeID) bool {
	return t != schema.NoType && m.s.Types[t].Kind == schema.Object
}

func (m *merger) reasonText(reason int, a, b *entry) string {
	switch reason {
	case otherName:
		return m.quoted(m.doc.Selections[a.sel].Name) + " and " + m.quoted(m.doc.Selections[b.sel].Name) + " are different fields"
	case otherArguments:
		return "they have differing arguments"
	default:
		if m.hide {
			return "they return conflicting types"
		}
		x, _ := m.answerType(a.field)
		y, _ := m.answerType(b.field)
		return `they return conflicting types "` + m.s.RefString(x) + `" and "` + m.s.RefString(y) + `"`
	}
}

// conflictAround makes one conflict of those inside two fields. It names the
// innermost fields when there are too many.
func (m *merger) conflictAround(a, b *entry, inside []conflict) conflict {
	c := conflict{name: m.doc.Selections[a.sel].ResponseKey(), a: []uint32{a.sel}, b: []uint32{b.sel}}
	for i := range inside {
		if i > 0 {
			c.reason += " and "
		}
		c.reason += "subfields " + m.quoted(inside[i].name) + " conflict because " + inside[i].reason
		if len(c.reason) > maxDetail {
			break
		}
	}
	if len(c.reason) > maxDetail {
		c.reason = clip(c.reason, maxDetail)
	}
	for i := range inside {
		c.a = appendLast(c.a, inside[i].a)
		c.b = appendLast(c.b, inside[i].b)
	}
	return c
}

// appendLast appends as many of the last elements as there is room for.
func appendLast(to, from []uint32) []uint32 {
	room := maxSide - len(to)
	return append(to, from[max(0, len(from)-room):]...)
}
