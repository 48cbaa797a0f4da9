package rules

import (
	"iter"
	"math/bits"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/rights"
)

// maxUnknown bounds Table.Unknown: enough to see what is wrong with a list.
const maxUnknown = 20

// Compile makes the table of what a key may do with an API of a schema. may is
// nil for an API without keys, which has no rules but those of o and can always
// be introspected. The schema must be the one that operations' facts are of;
// nothing of may is held on to. Equal rules give equal tables: see Digest.
func Compile(s *schema.Schema, may *rights.Access, o Options) *Table {
	t := &Table{
		TrustedOnly: o.TrustedOnly,
		schema:      s,
		base:        int64(o.DepthBase),
		limits:      limitsOf(may, o.Limits),
		most:        o.Limits.Depth,
	}
	if may == nil {
		return t
	}
	t.TrustedOnly = o.TrustedOnly || may.TrustedDocumentsOnly.Value
	t.hidden = o.HidesSchema || may.DisableIntrospection.Value
	c := compiler{Schema: s}
	t.fields = c.lists(may)
	t.bounded, t.bounds = c.bounds(may)
	t.Unknown = c.unknown
	return t
}

// A compiler finds what lists name in a schema.
type compiler struct {
	*schema.Schema
	unknown []string
}

// fielded returns the type of a name, if it is one that has fields.
func (c *compiler) fielded(member, name string) (schema.TypeID, bool) {
	t, ok := c.TypeNamed([]byte(name))
	if !ok {
		t, ok = c.RootNamed(name)
	}
	switch {
	case !ok:
		c.miss(member, "no type "+name)
	case c.Types[t].Kind != schema.Object && c.Types[t].Kind != schema.Interface:
		c.miss(member, "type "+name+" has no fields of its own")
		return t, false
	}
	return t, ok
}

// field returns the field of a type by name.
func (c *compiler) field(member string, t schema.TypeID, name string) (schema.FieldID, bool) {
	f, ok := c.FieldNamed(t, []byte(name))
	if !ok {
		c.miss(member, "no field "+name+" on type "+c.Types[t].Name)
	}
	return f, ok
}

func (c *compiler) miss(member, what string) {
	switch n := len(c.unknown); {
	case n < maxUnknown:
		c.unknown = append(c.unknown, member+": "+what)
	case n == maxUnknown:
		c.unknown = append(c.unknown, "and others")
	}
}

// sameField returns the field of another type that has the name of a field.
func (c *compiler) sameField(t schema.TypeID, field schema.FieldID) (schema.FieldID, bool) {
	return c.FieldNamed(t, []byte(c.Fields[field].Name))
}

// ofObjects calls do with the same field of every object of an interface.
func (c *compiler) ofObjects(field schema.FieldID, do func(schema.FieldID)) {
	for object := range objects(c.Possible(c.Fields[field].Owner)) {
		if f, ok := c.sameField(object, field); ok {
			do(f)
		}
	}
}

// ofInterfaces calls do with the same field of every interface of an object.
func (c *compiler) ofInterfaces(field schema.FieldID, do func(schema.FieldID)) {
	for _, t := range c.Implements(c.Fields[field].Owner) {
		if f, ok := c.sameField(t, field); ok {
			do(f)
		}
	}
}

// objects yields the types of a set.
func objects(set schema.Set) iter.Seq[schema.TypeID] {
	return func(yield func(schema.TypeID) bool) {
		for i, word := range set {
			for ; word != 0; word &= word - 1 {
				if !yield(schema.TypeID(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
