package validate

import (
	"math/bits"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A scope is the type that fields are selected on, and the objects that are
// still possible through the fragments around.
type scope struct {
	of      schema.TypeID
	objects int32 // allObjects, noObjects, or an index in scopes.sets
}

const (
	allObjects int32 = -1 // that the type can turn out to be
	noObjects  int32 = -2
)

// scopes hold the sets of objects that are neither all nor none of a type, each
// once.
type scopes struct {
	s     *schema.Schema
	sets  []syntax.Range // in words
	words []uint64
	known numberTable // hash of a set: its index plus one
}

func (s *scopes) reset(of *schema.Schema) {
	s.s, s.sets, s.words = of, s.sets[:0], s.words[:0]
	s.known.reset()
}

// set returns the objects of a scope.
func (s *scopes) set(of scope) schema.Set {
	switch of.objects {
	case allObjects:
		return s.s.Possible(of.of)
	case noObjects:
		return nil
	default:
		at := s.sets[of.objects]
		return schema.Set(s.words[at.Lo:at.Hi])
	}
}

// enter returns the scope within a fragment on a type.
func (s *scopes) enter(from scope, t schema.TypeID) scope {
	if t == from.of {
		return from
	}
	if s.s.Types[t].Kind == schema.Object {
		if s.set(from).Has(t) {
			return scope{t, allObjects}
		}
		return scope{t, noObjects}
	}
	return scope{t, s.both(s.set(from), s.s.Possible(t))}
}

// both returns the objects that are in both sets, of which the second is all
// that a type has.
func (s *scopes) both(a, all schema.Set) int32 {
	lo := uint32(len(s.words))
	any, whole := uint64(0), true
	for i, word := range all {
		left := uint64(0)
		if i < len(a) {
			left = word & a[i]
		}
		any |= left
		whole = whole && left == word
		s.words = append(s.words, left)
	}
	if any == 0 || whole {
		s.words = s.words[:lo]
		if whole {
			return allObjects
		}
		return noObjects
	}
	return s.kept(lo)
}

// kept returns the index of the set whose words start at lo, which may be known
// already.
func (s *scopes) kept(lo uint32) int32 {
	for len(s.words) > int(lo) && s.words[len(s.words)-1] == 0 {
		s.words = s.words[:len(s.words)-1]
	}
	set := schema.Set(s.words[lo:])
	hash := uint64(len(set))
	for _, word := range set {
		hash = mix(hash, word)
	}
	for ; ; hash++ {
		known := s.known.at(hash)
		if *known == 0 {
			s.sets = append(s.sets, syntax.Range{Lo: lo, Hi: uint32(len(s.words))})
			*known = uint32(len(s.sets))
			return int32(len(s.sets) - 1)
		}
		if i := int32(*known - 1); equal(s.set(scope{objects: i}), set) {
			s.words = s.words[:lo]
			return i
		}
	}
}

func equal(a, b schema.Set) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// each calls do for each object of a set.
func each(set schema.Set, do func(schema.TypeID)) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			do(schema.TypeID(i<<6 + bits.TrailingZeros64(word)))
		}
	}
}
