package syntax

import (
	"bytes"
	"unicode/utf8"
)

// Location returns the place of an offset in Source. Lines end with \n, \r\n or
// \r. It reads all that is before the offset.
func (d *Document) Location(at uint32) Location {
	before := d.Source[:min(int(at), len(d.Source))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	begin := bytes.LastIndexByte(before, '\n') + 1
	for i := nextReturn(before, 0); i >= 0; i = nextReturn(before, i+1) {
		if i+1 == len(before) || before[i+1] != '\n' {
			line++
			begin = max(begin, i+1)
		}
	}
	return Location{Line: line, Column: 1 + units(before[begin:])}
}

// nextReturn returns where the next \r is from i on, or -1. Most texts have none,
// and are searched faster than looked at.
func nextReturn(text []byte, i int) int {
	n := bytes.IndexByte(text[i:], '\r')
	if n < 0 {
		return n
	}
	return i + n
}

// units returns how long text is in UTF-16 code units. A byte that is not UTF-8
// is one.
func units(text []byte) (n int) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		i += size
		n += unitsOf(r)
	}
	return n
}

// unitsOf returns how many UTF-16 code units a character has.
func unitsOf(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}
