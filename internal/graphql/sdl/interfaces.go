package sdl

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// checkInterfaces checks that a type implements its interfaces.
func (c *checker) checkInterfaces(t *typ) {
	c.eachTwice(len(t.interfaces), func(i int) (uint32, uint32) {
		return t.interfaces[i].to.id, t.interfaces[i].at
	}, func(i int, at []uint32) {
		if to := t.interfaces[i].to; to.kind == syntax.InterfaceDef && to != t {
			c.addf(at[0], at[1:], "Type %s can only implement %s once.", t.name, to.name)
		}
	})
	var ifaces []*typ
	c.members.clear()
	for _, l := range t.interfaces {
		if !c.first(l.to.id) || c.full() {
			continue
		}
		switch {
		case l.to.kind != syntax.InterfaceDef:
			at := named(t.interfaces, l.to)
			c.addf(at[0], at[1:], "Type %s must only implement Interface types, it cannot implement %s.", t.name, l.to.name)
		case l.to == t:
			at := named(t.interfaces, t)
			c.addf(at[0], at[1:], "Type %s cannot implement itself because it would create a circular reference.", t.name)
		default:
			ifaces = append(ifaces, l.to)
		}
	}
	for _, iface := range ifaces {
		c.checkAncestors(t, iface) // members holds all that t implements
	}
	c.members.clear()
	for _, i := range t.fields {
		c.members.set(c.fieldIDs[i], i)
	}
	for _, iface := range ifaces {
		c.checkImplements(t, iface)
	}
}

// checkAncestors checks that a type implements what its interface implements.
func (c *checker) checkAncestors(t, iface *typ) {
	for _, above := range iface.interfaces {
		if _, implemented := c.members.get(above.to.id); implemented || c.full() {
			continue
		}
		at := append(named(iface.interfaces, above.to), named(t.interfaces, iface)...)
		last := len(at) - 1
		if above.to == t {
			c.addf(at[last], at[:last], "Type %s cannot implement %s because it would create a circular reference.", t.name, iface.name)
			continue
		}
		c.addf(at[last], at[:last], "Type %s must implement %s because it is implemented by %s.", t.name, above.to.name, iface.name)
	}
}

// checkImplements checks that a type has the fields of its interface. What the
// type has is in members.
func (c *checker) checkImplements(t, iface *typ) {
	for _, i := range iface.fields {
		if c.full() {
			return
		}
		wanted := &c.doc.FieldDefs[i]
		have, ok := c.members.get(c.fieldIDs[i])
		if !ok {
			c.addf(t.start(), append(t.starts(), wanted.Start),
				"type '%s' does not implement field '%s' from interface '%s'", t.name, clip(c.name(wanted.Name)), iface.name)
			continue
		}
		m := match{c: c, t: t, iface: iface, have: &c.doc.FieldDefs[have], wanted: wanted}
		m.checkType()
		if m.wanted.Arguments.Len()+m.have.Arguments.Len() > 0 {
			m.checkArguments()
		}
	}
}

// A match compares a field with the interface's field of the same name.
type match struct {
	c            *checker
	t, iface     *typ
	have, wanted *syntax.FieldDef
}

func (m *match) field() string { return m.c.name(m.wanted.Name) }

func (m *match) checkType() {
	c := m.c
	if c.subtype(m.have.Type, m.wanted.Type) {
		return
	}
	c.addf(c.doc.Types[m.have.Type].Text.Start, []uint32{c.doc.Types[m.wanted.Type].Text.Start},
		"Interface field %s.%s expects type %s but %s.%s is type %s.", m.iface.name, m.field(), typeText(c.doc, m.wanted.Type),
		m.t.name, m.field(), typeText(c.doc, m.have.Type))
}

func (m *match) checkArguments() {
	c := m.c
	c.others.clear()
	for i := m.have.Arguments.Lo; i < m.have.Arguments.Hi; i++ {
		c.others.set(c.inputIDs[i], i)
	}
	for i := m.wanted.Arguments.Lo; i < m.wanted.Arguments.Hi; i++ {
		m.checkArgument(&c.doc.InputDefs[i], c.inputIDs[i])
	}
	c.others.clear()
	for i := m.wanted.Arguments.Lo; i < m.wanted.Arguments.Hi; i++ {
		c.others.set(c.inputIDs[i], i)
	}
	for i := m.have.Arguments.Lo; i < m.have.Arguments.Hi; i++ {
		arg := &c.doc.InputDefs[i]
		if _, ok := c.others.get(c.inputIDs[i]); !ok && required(c.doc, arg) {
			c.addf(arg.Start, []uint32{m.wanted.Start},
				"Object field %s.%s includes required argument %s that is missing from the Interface field %s.%s.",
				m.t.name, m.field(), c.name(arg.Name), m.iface.name, m.field())
		}
	}
}

// checkArgument checks that a field has an argument of its interface. What it
// has is in others.
func (m *match) checkArgument(wanted *syntax.InputDef, id uint32) {
	c := m.c
	name := c.name(wanted.Name)
	i, ok := c.others.get(id)
	if !ok {
		c.addf(m.have.Start, []uint32{wanted.Start}, "Interface field argument %s.%s(%s:) expected but %s.%s does not provide it.",
			m.iface.name, m.field(), name, m.t.name, m.field())
		return
	}
	have := &c.doc.InputDefs[i]
	if !c.equal(have.Type, wanted.Type) {
		c.addf(c.doc.Types[have.Type].Text.Start, []uint32{c.doc.Types[wanted.Type].Text.Start},
			"Interface field argument %s.%s(%s:) expects type %s but %s.%s(%s:) is type %s.", m.iface.name, m.field(), name,
			typeText(c.doc, wanted.Type), m.t.name, m.field(), name, typeText(c.doc, have.Type))
	}
}

// equal reports whether two references are to the same type.
func (c *checker) equal(a, b uint32) bool {
	for {
		x, y := &c.doc.Types[a], &c.doc.Types[b]
		if x.Kind != y.Kind {
			return false
		}
		if x.Kind == syntax.NamedType {
			return c.name(x.Text) == c.name(y.Text)
		}
		a, b = x.Of, y.Of
	}
}

// subtype reports whether whatever is of type sub is of type super too. Types that
// do not exist are let pass: they are reported as such.
func (c *checker) subtype(sub, super uint32) bool {
	for {
		x, y := &c.doc.Types[sub], &c.doc.Types[super]
		switch {
		case x.Kind == syntax.NonNullType && y.Kind != syntax.NonNullType:
			sub = x.Of
		case x.Kind != y.Kind:
			return false
		case x.Kind != syntax.NamedType:
			sub, super = x.Of, y.Of
		default:
			return c.name(x.Text) == c.name(y.Text) || c.turnsOut(c.innermost(super), c.innermost(sub))
		}
	}
}

// turnsOut reports whether a value of the abstract type can be of the other.
func (c *checker) turnsOut(abstract, t *typ) bool {
	switch {
	case abstract == nil || t == nil:
		return true
	case abstract.kind == syntax.UnionDef:
		return has(abstract.subs, t.id) && t.kind == syntax.ObjectDef
	default:
		return abstract.kind == syntax.InterfaceDef && has(t.supers, abstract.id)
	}
}

func has(sorted []uint32, id uint32) bool {
	_, ok := slices.BinarySearch(sorted, id)
	return ok
}
