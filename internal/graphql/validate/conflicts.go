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

func (v *Validator) reportConflict(c *conflict) {
	v.report("Fields "+v.quoted(c.name)+" conflict because "+c.reason+
		". Use different aliases on the fields to fetch both if this was intentional.", v.starts(append(c.a, c.b...))...)
}

// compare holds two entries of the same name in the answer against each other,
// with what they select.
func (v *Validator) compare(exclusive bool, one, two uint32, found *[]conflict) {
	m := &v.merge
	m.left--
	a, b := m.entries[one], m.entries[two]
	exclusive = exclusive || a.parent != b.parent && v.isObject(a.parent) && v.isObject(b.parent)
	if reason := v.differ(exclusive, &a, &b); reason != 0 {
		m.found = true
		if m.texts {
			*found = append(*found, conflict{v.doc.Selections[a.sel].ResponseKey(), v.reasonText(reason, &a, &b), []uint32{a.sel}, []uint32{b.sel}})
		}
		return
	}
	if v.doc.Selections[a.sel].SetStart == 0 || v.doc.Selections[b.sel].SetStart == 0 || !v.deeper() {
		return
	}
	var inside []conflict
	v.compareInside(exclusive, m.of[a.sel], m.of[b.sel], &inside)
	if len(inside) > 0 {
		*found = append(*found, v.conflictAround(&a, &b, inside))
	}
	m.depth--
}

// compareInside compares the sets of two fields of the same name.
func (v *Validator) compareInside(exclusive bool, one, two uint32, found *[]conflict) {
	m := &v.merge
	v.compareSets(exclusive, one, two, found)
	a, b := v.collect(one).spreads, v.collect(two).spreads
	for i := b.Lo; i < b.Hi && !m.done(); i++ {
		v.compareSpread(exclusive, one, m.spreads[i], found)
	}
	for i := a.Lo; i < a.Hi && !m.done(); i++ {
		v.compareSpread(exclusive, two, m.spreads[i], found)
	}
	for i := a.Lo; i < a.Hi; i++ {
		for j := b.Lo; j < b.Hi && !m.done(); j++ {
			v.compareFragments(exclusive, m.spreads[i], m.spreads[j], found)
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
func (v *Validator) differ(exclusive bool, a, b *entry) int {
	one, two := &v.doc.Selections[a.sel], &v.doc.Selections[b.sel]
	if !exclusive {
		if string(v.doc.Bytes(one.Name)) != string(v.doc.Bytes(two.Name)) {
			return otherName
		}
		if !v.sameArguments(a.sel, b.sel) {
			return otherArguments
		}
	}
	if x, y := v.answerType(a.field), v.answerType(b.field); x != noRef && y != noRef && v.typesConflict(x, y) {
		return otherTypes
	}
	return 0
}

// answerType returns the type of a field, noRef for __typename and those of
// introspection, which the reference does not look up here.
func (v *Validator) answerType(f schema.FieldID) schema.TypeRef {
	if f == typenameField || v.s.IsMeta(f) {
		return noRef
	}
	return v.fieldRow(f).Type
}

// typesConflict tells whether values of two types cannot stand in one place.
// What composite types select is compared on its own.
func (v *Validator) typesConflict(a, b schema.TypeRef) bool {
	for !a.IsNamed() || !b.IsNamed() {
		if a.IsList() != b.IsList() || a.IsNonNull() != b.IsNonNull() {
			return true
		}
		a, b = a.Inner(), b.Inner()
	}
	leaf := !v.s.Types[a.Type()].Kind.Composite() || !v.s.Types[b.Type()].Kind.Composite()
	return leaf && a != b
}

func (v *Validator) isObject(t schema.TypeID) bool {
	return t != schema.NoType && v.s.Types[t].Kind == schema.Object
}

func (v *Validator) reasonText(reason int, a, b *entry) string {
	switch reason {
	case otherName:
		return v.quoted(v.doc.Selections[a.sel].Name) + " and " + v.quoted(v.doc.Selections[b.sel].Name) + " are different fields"
	case otherArguments:
		return "they have differing arguments"
	default:
		return "they return conflicting types" + v.either("", " "+v.refQuoted(v.answerType(a.field))+" and "+v.refQuoted(v.answerType(b.field)))
	}
}

// conflictAround makes one conflict of those inside two fields. It names the
// innermost fields when there are too many.
func (v *Validator) conflictAround(a, b *entry, inside []conflict) conflict {
	c := conflict{name: v.doc.Selections[a.sel].ResponseKey(), a: []uint32{a.sel}, b: []uint32{b.sel}}
	for i := range inside {
		if i > 0 {
			c.reason += " and "
		}
		c.reason += "subfields " + v.quoted(inside[i].name) + " conflict because " + inside[i].reason
		if len(c.reason) > maxDetail {
			break
		}
	}
	if len(c.reason) > maxDetail {
		c.reason = c.reason[:maxDetail] + "..."
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
