package schema

import (
	"hash/maphash"
	"math/bits"
)

// fewNames is the largest number of inputs that a lookup scans, which is faster than
// hashing the name.
const fewNames = 8

// names finds rows by name: open addressing over indices. A slot holds a row's
// index plus one, 0 when it is free; at most half of them are taken.
type names struct {
	slots []uint32
	seed  maphash.Seed
}

// newNames makes a table for n rows.
func newNames(n int, seed maphash.Seed) names {
	return names{slots: make([]uint32, 1<<bits.Len(uint(2*n))), seed: seed}
}

// start returns where the search for a name of an owner begins. The seed is a
// secret of the process, so that no client can aim at one chain.
func (n *names) start(owner uint32, hash uint64) uint32 {
	hash ^= uint64(owner) * 0x9E3779B97F4A7C15
	hash ^= hash >> 32
	return uint32(hash) & n.mask()
}

func (n *names) mask() uint32 { return uint32(len(n.slots) - 1) }

// add puts row into the table. Rows are added once each.
func (n *names) add(owner uint32, name string, row uint32) {
	at := n.start(owner, maphash.String(n.seed, name))
	for n.slots[at] != 0 {
		at = (at + 1) & n.mask()
	}
	n.slots[at] = row + 1
}

// TypeNamed returns the type of a name.
func (s *Schema) TypeNamed(name []byte) (TypeID, bool) {
	for at := s.types.start(0, maphash.Bytes(s.types.seed, name)); ; at = (at + 1) & s.types.mask() {
		row := s.types.slots[at]
		if row == 0 {
			return NoType, false
		}
		if s.Types[row-1].Name == string(name) {
			return TypeID(row - 1), true
		}
	}
}

// FieldNamed returns the field of an object or interface type by name, __schema
// and __type of the query type included.
func (s *Schema) FieldNamed(t TypeID, name []byte) (FieldID, bool) {
	for at := s.fields.start(uint32(t), maphash.Bytes(s.fields.seed, name)); ; at = (at + 1) & s.fields.mask() {
		row := s.fields.slots[at]
		if row == 0 {
			return NoField, false
		}
		if f := &s.Fields[row-1]; f.Owner == t && f.Name == string(name) {
			return FieldID(row - 1), true
		}
	}
}

// InputNamed returns the index in Inputs of the argument or input field of a
// name, among those of one field, directive or input object.
func (s *Schema) InputNamed(among Span, name []byte) (int, bool) {
	if among.Hi-among.Lo > fewNames {
		return s.inputHashed(among, name)
	}
	for i := among.Lo; i < among.Hi; i++ {
		if s.Inputs[i].Name == string(name) {
			return int(i), true
		}
	}
	return -1, false
}

func (s *Schema) inputHashed(among Span, name []byte) (int, bool) {
	for at := s.inputs.start(among.Lo, maphash.Bytes(s.inputs.seed, name)); ; at = (at + 1) & s.inputs.mask() {
		row := s.inputs.slots[at]
		if row == 0 {
			return -1, false
		}
		if i := row - 1; i >= among.Lo && i < among.Hi && s.Inputs[i].Name == string(name) {
			return int(i), true
		}
	}
}

// ValueNamed reports whether an enum has a value of that name. ValueIndex also
// returns its row.
func (s *Schema) ValueNamed(t TypeID, name []byte) bool {
	_, ok := s.ValueIndex(t, name)
	return ok
}

// ValueIndex returns the index in Values of an enum's value.
func (s *Schema) ValueIndex(t TypeID, name []byte) (int, bool) {
	among := s.Types[t].Values
	for at := s.values.start(uint32(t), maphash.Bytes(s.values.seed, name)); ; at = (at + 1) & s.values.mask() {
		row := s.values.slots[at]
		if row == 0 {
			return -1, false
		}
		if i := row - 1; i >= among.Lo && i < among.Hi && s.Values[i].Name == string(name) {
			return int(i), true
		}
	}
}

// DirectiveNamed returns the index in Directives of the directive of a name,
// which is without "@".
func (s *Schema) DirectiveNamed(name []byte) (int, bool) {
	for at := s.directives.start(0, maphash.Bytes(s.directives.seed, name)); ; at = (at + 1) & s.directives.mask() {
		row := s.directives.slots[at]
		if row == 0 {
			return -1, false
		}
		if s.Directives[row-1].Name == string(name) {
			return int(row - 1), true
		}
	}
}

// index fills the tables that names are looked up in.
func (s *Schema) index() {
	seed := maphash.MakeSeed()
	s.types, s.fields, s.directives = newNames(len(s.Types), seed), newNames(len(s.Fields), seed), newNames(len(s.Directives), seed)
	s.inputs, s.values = newNames(s.manyInputs(), seed), newNames(len(s.Values), seed)
	for i := range s.Types {
		t := &s.Types[i]
		s.types.add(0, t.Name, uint32(i))
		s.indexInputs(t.Inputs)
		for v := t.Values.Lo; v < t.Values.Hi; v++ {
			s.values.add(uint32(i), s.Values[v].Name, v)
		}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		s.fields.add(uint32(f.Owner), f.Name, uint32(i))
		s.indexInputs(f.Arguments)
	}
	for i := range s.Directives {
		s.directives.add(0, s.Directives[i].Name, uint32(i))
		s.indexInputs(s.Directives[i].Arguments)
	}
}

// manyInputs counts the inputs that are looked up by hash.
func (s *Schema) manyInputs() (n int) {
	count := func(span Span) {
		if size := span.Hi - span.Lo; size > fewNames {
			n += int(size)
		}
	}
	for i := range s.Types {
		count(s.Types[i].Inputs)
	}
	for i := range s.Fields {
		count(s.Fields[i].Arguments)
	}
	for i := range s.Directives {
		count(s.Directives[i].Arguments)
	}
	return n
}

func (s *Schema) indexInputs(span Span) {
	if span.Hi-span.Lo <= fewNames {
		return
	}
	for i := span.Lo; i < span.Hi; i++ {
		s.inputs.add(span.Lo, s.Inputs[i].Name, i)
	}
}
