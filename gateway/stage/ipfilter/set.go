package ipfilter

import (
	"bytes"
	"net/netip"
	"slices"
	"sort"
)

// A set is a set of addresses: ranges in ascending order that do not overlap and
// hold no pointers, so that a long list costs a binary search, and the garbage
// collector nothing.
type set struct{ v4, v6 []span }

// span is a range of addresses, both ends included, in the form of netip.Addr.As16.
type span struct{ from, to [16]byte }

func newSet(prefixes []netip.Prefix) set {
	var s set
	for _, p := range prefixes {
		list, bits := &s.v6, p.Bits()
		if p.Addr().Is4() {
			list, bits = &s.v4, bits+96
		}
		from := p.Addr().As16()
		to := from
		for bit := bits; bit < 128; bit++ {
			to[bit/8] |= 0x80 >> (bit % 8)
		}
		*list = append(*list, span{from, to})
	}
	s.v4, s.v6 = disjoint(s.v4), disjoint(s.v6)
	return s
}

// disjoint sorts the ranges of networks and removes those within others. Two
// networks are disjoint or one contains the other, so that in order of their start,
// the larger first, one that is contained follows the one that contains it.
func disjoint(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if c := bytes.Compare(a.from[:], b.from[:]); c != 0 {
			return c
		}
		return bytes.Compare(b.to[:], a.to[:])
	})
	var kept []span
	for _, s := range spans {
		if n := len(kept); n == 0 || bytes.Compare(s.to[:], kept[n-1].to[:]) > 0 {
			kept = append(kept, s)
		}
	}
	return slices.Clip(kept)
}

// has reports whether an address is in the set. An IPv4 address in IPv6 form is the
// IPv4 address; the zone is ignored.
func (s *set) has(a netip.Addr) bool {
	a = a.Unmap()
	spans := s.v6
	switch {
	case !a.IsValid():
		return false
	case a.Is4():
		spans = s.v4
	}
	n := a.As16()
	after := sort.Search(len(spans), func(i int) bool { return bytes.Compare(spans[i].from[:], n[:]) > 0 })
	return after > 0 && bytes.Compare(n[:], spans[after-1].to[:]) <= 0
}
