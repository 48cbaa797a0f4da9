package origin

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
)

// A set holds addresses, as ranges that neither overlap nor hold pointers: a long
// list costs a search by halves, and the garbage collector nothing.
type set struct {
	v4 []span4
	v6 []span6
}

type (
	span4 struct{ from, to uint32 }
	span6 struct{ from, to [16]byte }
)

func newSet(prefixes []netip.Prefix) set {
	var s set
	for _, p := range prefixes {
		if p.Addr().Is4() {
			from := number(p.Addr())
			s.v4 = append(s.v4, span4{from, from | uint32(1<<(32-p.Bits())-1)})
			continue
		}
		from := p.Addr().As16()
		to := from
		for bit := p.Bits(); bit < 128; bit++ {
			to[bit/8] |= 0x80 >> (bit % 8)
		}
		s.v6 = append(s.v6, span6{from, to})
	}
	// Networks are within each other or apart, so that of those sorted by where they
	// begin, the larger first, one that is within another comes behind it.
	slices.SortFunc(s.v4, func(a, b span4) int {
		if a.from != b.from {
			return compare(a.from, b.from)
		}
		return compare(b.to, a.to)
	})
	slices.SortFunc(s.v6, func(a, b span6) int {
		if c := bytes.Compare(a.from[:], b.from[:]); c != 0 {
			return c
		}
		return bytes.Compare(b.to[:], a.to[:])
	})
	s.v4 = outer(s.v4, func(a, b span4) bool { return b.to <= a.to })
	s.v6 = outer(s.v6, func(a, b span6) bool { return bytes.Compare(b.to[:], a.to[:]) <= 0 })
	return s
}

// outer leaves the spans out that are within the one kept before them.
func outer[S any](spans []S, within func(a, b S) bool) []S {
	var kept []S
	for _, one := range spans {
		if n := len(kept); n == 0 || !within(kept[n-1], one) {
			kept = append(kept, one)
		}
	}
	return slices.Clip(kept)
}

func compare(a, b uint32) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

// has tells whether an address is in the set. An IPv4 address in IPv6 form is the
// IPv4 address; a zone does not count.
func (s *set) has(a netip.Addr) bool {
	a = a.Unmap()
	switch {
	case !a.IsValid():
		return false
	case a.Is4():
		return has4(s.v4, number(a))
	}
	return has6(s.v6, a.As16())
}

func has4(spans []span4, n uint32) bool {
	low, high := 0, len(spans) // spans[:low] begin at n or before, spans[high:] behind it
	for low < high {
		if mid := int(uint(low+high) >> 1); spans[mid].from <= n {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low > 0 && n <= spans[low-1].to
}

func has6(spans []span6, n [16]byte) bool {
	low, high := 0, len(spans)
	for low < high {
		if mid := int(uint(low+high) >> 1); bytes.Compare(spans[mid].from[:], n[:]) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low > 0 && bytes.Compare(n[:], spans[low-1].to[:]) <= 0
}
