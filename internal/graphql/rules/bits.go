package rules

import "github.com/sluicegate/sluice/internal/graphql/schema"

// A fieldSet is a set of fields, a bit each.
type fieldSet []uint64

func newFieldSet(s *schema.Schema) fieldSet { return make(fieldSet, (len(s.Fields)+63)/64) }

func (b fieldSet) has(f schema.FieldID) bool { return b[f>>6]&(1<<(f&63)) != 0 }
func (b fieldSet) add(f schema.FieldID)      { b[f>>6] |= 1 << (f & 63) }

// addAll adds all fields of a type.
func (b fieldSet) addAll(t *schema.Type) {
	for f := t.Fields.Lo; f < t.Fields.Hi; f++ {
		b.add(schema.FieldID(f))
	}
}
