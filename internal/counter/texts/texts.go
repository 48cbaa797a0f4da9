// Package texts joins short texts that are forgotten soon without an allocation for
// each of them.
package texts

import (
	"strings"
	"unsafe"
)

// A Block is memory for texts that lie one behind the other: a hundred of them cost
// one allocation, and that lives for as long as any of them. A nil *Block has each
// text lie alone; the zero value is empty. It is not safe for concurrent use.
type Block struct{ free []byte }

// size is how much memory is allocated at once, in bytes.
const size = 8 << 10

// Join returns the parts as one text.
func (b *Block) Join(parts ...string) string {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	if b == nil || length > size/8 {
		return strings.Join(parts, "")
	}
	if cap(b.free)-len(b.free) < length {
		b.free = make([]byte, 0, size)
	}
	from := len(b.free)
	for _, p := range parts {
		b.free = append(b.free, p...)
	}
	return unsafe.String(unsafe.SliceData(b.free[from:]), length) // nothing is written there again
}
