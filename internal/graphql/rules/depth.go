package rules

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/validate"
	"github.com/sluicegate/sluice/internal/rights"
)

// A bound limits the depth below a field. Limits include the base; 0 is no limit.
type bound struct {
	field  schema.FieldID
	listed int  // of the key's list
	max    int  // what holds where all objects of the field's type can come
	apart  bool // it is a root field that the limit on operations does not count
}

// checkDepth returns the verdict on the depth of an operation. Limits of fields are
// reported first, because they are more specific.
func (t *Table) checkDepth(f *validate.Facts) Verdict {
	if f.OnlyIntrospects {
		return passed
	}
	if t.bounded != nil {
		if v := t.checkBounds(f); v.Kind != None {
			return v
		}
	}
	if t.limits.Depth > 0 {
		if v := t.tooDeep(t.deepest(f), t.limits.Depth, schema.NoField); v.Kind != None {
			return v
		}
	}
	return t.tooDeep(int(f.Depth), t.most, schema.NoField)
}

func (t *Table) tooDeep(levels, most int, field schema.FieldID) Verdict {
	if found := t.base + int64(levels); most > 0 && found > int64(most) {
		return Verdict{Kind: Depth, Field: field, Found: found, Max: int64(most)}
	}
	return passed
}

// deepest returns the most nested levels of the root fields that have no limit
// of their own.
func (t *Table) deepest(f *validate.Facts) (levels int) {
	for i := range f.Roots {
		if r := &f.Roots[i]; !t.boundOf(r.Field).apart {
			levels = max(levels, int(r.Below)+1)
		}
	}
	return levels
}

func (t *Table) checkBounds(f *validate.Facts) Verdict {
	for i, field := range f.Fields {
		if !t.bounded.has(field) {
			continue
		}
		if v := t.tooDeep(int(f.Below[i]), t.boundOf(field).max, field); v.Kind != None {
			return v
		}
	}
	for i := range f.Narrowed {
		n := &f.Narrowed[i]
		most := t.boundOf(n.Field).listed
		for _, object := range f.Objects[n.Objects.Lo:n.Objects.Hi] {
			most = stricter(most, t.boundOf(object).max)
		}
		if v := t.tooDeep(int(n.Below), most, n.Field); v.Kind != None {
			return v
		}
	}
	return passed
}

// boundOf returns the bound of a field, a zero one when it has none, which most
// fields do not have.
func (t *Table) boundOf(field schema.FieldID) bound {
	if t.bounded == nil || !t.bounded.has(field) {
		return bound{}
	}
	i, ok := slices.BinarySearchFunc(t.bounds, field, func(b bound, f schema.FieldID) int { return cmp.Compare(b.field, f) })
	if !ok {
		return bound{}
	}
	return t.bounds[i]
}

// bounds compiles the limits of fields: which fields have one, and the limits in
// the order of their fields.
func (c *compiler) bounds(may *rights.Access) (fieldSet, []bound) {
	all := make(boundMap)
	for i := range may.FieldAccess {
		const member = "field_access_rights"
		entry := &may.FieldAccess[i].Value
		most := entry.Limits.MaxQueryDepth
		if t, ok := c.fielded(member, entry.TypeName); ok && most != 0 {
			if f, ok := c.field(member, t, entry.FieldName); ok {
				b := all.at(f)
				b.listed = stricter(b.listed, max(most, 0))
				b.apart = t == c.Query || t == c.Mutation || t == c.Subscription
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	c.spread(all)
	bounded, sorted := newFieldSet(c.Schema), make([]bound, 0, len(all))
	for f, b := range all {
		bounded.add(f)
		sorted = append(sorted, *b)
	}
	slices.SortFunc(sorted, func(a, b bound) int { return cmp.Compare(a.field, b.field) })
	return bounded, sorted
}

// spread finds what the listed limits mean for objects, and those of objects for
// interfaces.
func (c *compiler) spread(all boundMap) {
	for _, f := range slices.Collect(maps.Keys(all)) {
		b := all[f]
		b.max = stricter(b.max, b.listed)
		if c.Types[c.Fields[f].Owner].Kind == schema.Interface {
			c.ofObjects(f, func(of schema.FieldID) { all.tighten(of, b.listed) })
		}
	}
	for _, f := range slices.Collect(maps.Keys(all)) {
		if b := all[f]; c.Types[c.Fields[f].Owner].Kind == schema.Object {
			c.ofInterfaces(f, func(of schema.FieldID) { all.tighten(of, b.max) })
		}
	}
}

// A boundMap is bounds while they are found out.
type boundMap map[schema.FieldID]*bound

func (m boundMap) at(f schema.FieldID) *bound {
	if m[f] == nil {
		m[f] = &bound{field: f}
	}
	return m[f]
}

func (m boundMap) tighten(f schema.FieldID, most int) {
	if most > 0 {
		b := m.at(f)
		b.max = stricter(b.max, most)
	}
}
