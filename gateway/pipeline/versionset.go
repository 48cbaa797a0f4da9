package pipeline

// A VersionSet is a set of versions of an API, by their places. It is immutable and
// shared between grants.
type VersionSet struct{ words []uint64 }

// NewVersionSet returns the set of the versions at these places.
func NewVersionSet(places []int) *VersionSet {
	s := &VersionSet{}
	for _, at := range places {
		for len(s.words) <= at/64 {
			s.words = append(s.words, 0)
		}
		s.words[at/64] |= 1 << (at % 64)
	}
	return s
}

// Has reports whether the version at a place is in the set.
func (s *VersionSet) Has(at int) bool {
	return at/64 < len(s.words) && s.words[at/64]>>(at%64)&1 != 0
}
