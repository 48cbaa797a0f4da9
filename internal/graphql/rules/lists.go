package rules

import (
	"slices"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/rights"
)

// fieldLists is an allow list or a block list.
type fieldLists struct {
	allows bool            // it is an allow list
	listed fieldSet        // what the list names
	passes fieldSet        // what may be selected where all objects of its type can come
	whole  []schema.TypeID // of which the list names every field by "*", in order
}

// check returns the verdict on the first field that does not pass.
func (l *fieldLists) check(s *schema.Schema, f *validate.Facts) Verdict {
	for _, field := range f.Fields {
		if !l.passes.has(field) {
			return l.refuse(s, field)
		}
	}
	for i := range f.Narrowed {
		if n := &f.Narrowed[i]; !l.passesNarrowed(n.Field, f.Objects[n.Objects.Lo:n.Objects.Hi]) {
			return l.refuse(s, n.Field)
		}
	}
	return passed
}

// passesNarrowed reports whether a field of an interface may be selected where
// only the objects of some fields can come.
func (l *fieldLists) passesNarrowed(field schema.FieldID, objects []schema.FieldID) bool {
	if l.allows && l.listed.has(field) {
		return true
	}
	for _, of := range objects {
		if !l.passes.has(of) {
			return false
		}
	}
	return true
}

func (l *fieldLists) refuse(s *schema.Schema, field schema.FieldID) Verdict {
	kind := Restricted
	if _, whole := slices.BinarySearch(l.whole, s.Fields[field].Owner); whole {
		kind = AllRestricted
	}
	return Verdict{Kind: kind, Field: field}
}

// lists compiles the list that counts, if there is one.
func (c *compiler) lists(may *rights.Access) *fieldLists {
	l := &fieldLists{allows: len(may.AllowedTypes) > 0}
	switch {
	case l.allows:
		c.list(l, "allowed_types", may.AllowedTypes)
		c.closeAllowed(l)
	case len(may.RestrictedTypes) > 0:
		c.list(l, "restricted_types", may.RestrictedTypes)
		c.closeRestricted(l)
	default:
		return nil
	}
	// Introspection is not for lists to rule.
	for _, meta := range []schema.FieldID{c.SchemaField, c.TypeField} {
		if meta != schema.NoField {
			l.passes.add(meta)
		}
	}
	return l
}

// list fills in what a list names.
func (c *compiler) list(l *fieldLists, member string, types []rights.Item[definition.TypeFields]) {
	l.listed = newFieldSet(c.Schema)
	for i := range types {
		entry := &types[i].Value
		t, ok := c.fielded(member, entry.Name)
		if !ok {
			continue
		}
		for _, name := range entry.Fields {
			if name == "*" {
				l.listed.addAll(&c.Types[t])
				l.whole = append(l.whole, t)
			} else if f, ok := c.field(member, t, name); ok {
				l.listed.add(f)
			}
		}
	}
	slices.Sort(l.whole)
	l.whole = slices.Compact(l.whole)
}

// closeAllowed lets fields of interfaces pass that every object lists.
func (c *compiler) closeAllowed(l *fieldLists) {
	l.passes = slices.Clone(l.listed)
	for t := range c.Types {
		of := &c.Types[t]
		if of.Kind != schema.Interface {
			continue
		}
		for f := schema.FieldID(of.Fields.Lo); f < schema.FieldID(of.Fields.Hi); f++ {
			if !l.listed.has(f) && c.allObjects(schema.TypeID(t), f, l.listed) {
				l.passes.add(f)
			}
		}
	}
}

// allObjects reports whether every object of an interface has its field in a set.
// An interface without objects does not.
func (c *compiler) allObjects(t schema.TypeID, field schema.FieldID, in fieldSet) bool {
	any := false
	for object := range objects(c.Possible(t)) {
		f, ok := c.sameField(object, field)
		if !ok || !in.has(f) {
			return false
		}
		any = true
	}
	return any
}

// closeRestricted refuses what a block list names, what that makes refused on
// objects, and what that makes refused on interfaces.
func (c *compiler) closeRestricted(l *fieldLists) {
	refused := slices.Clone(l.listed)
	for f := range c.Fields {
		if field := schema.FieldID(f); l.listed.has(field) && c.Types[c.Fields[f].Owner].Kind == schema.Interface {
			c.ofObjects(field, refused.add)
		}
	}
	all := slices.Clone(refused)
	for f := range c.Fields {
		if field := schema.FieldID(f); refused.has(field) && c.Types[c.Fields[f].Owner].Kind == schema.Object {
			c.ofInterfaces(field, all.add)
		}
	}
	l.passes = all
	for i := range all {
		l.passes[i] = ^all[i]
	}
}
