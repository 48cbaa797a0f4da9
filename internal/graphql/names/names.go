// Package names numbers the names of a document, and keeps what is known about
// numbers in memory that is used again.
package names

import (
	"hash/maphash"
	"math/bits"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Names numbers the names of a document, equal ones alike, from 0. The zero value
// is ready; Reset comes first.
type Names struct {
	doc   *syntax.Document
	seed  maphash.Seed // a secret of each validator, so that no client can aim at one chain
	slots []nameSlot
	round uint32 // slots of other rounds are free
	spans []syntax.Span
}

type nameSlot struct {
	hash   uint32
	round  uint32
	number uint32
}

// minSlots is how many slots there are at least: of names in usual documents.
const minSlots = 256

// Reset forgets all names and takes another document.
func (n *Names) Reset(doc *syntax.Document) {
	n.doc, n.spans = doc, n.spans[:0]
	if n.slots == nil {
		n.seed, n.slots = maphash.MakeSeed(), make([]nameSlot, minSlots)
	}
	n.round++
	if n.round == 0 {
		clear(n.slots)
		n.round = 1
	}
}

// Number returns the number of a name.
func (n *Names) Number(at syntax.Span) uint32 {
	name := n.doc.Bytes(at)
	hash := uint32(maphash.Bytes(n.seed, name))
	mask := uint32(len(n.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		slot := &n.slots[i]
		if slot.round != n.round {
			*slot = nameSlot{hash: hash, round: n.round, number: uint32(len(n.spans))}
			n.spans = append(n.spans, at)
			if 2*len(n.spans) > len(n.slots) {
				n.grow()
			}
			return uint32(len(n.spans) - 1)
		}
		if slot.hash == hash && string(n.doc.Bytes(n.spans[slot.number])) == string(name) {
			return slot.number
		}
	}
}

func (n *Names) grow() {
	old := n.slots
	n.slots = make([]nameSlot, 4*len(old))
	mask := uint32(len(n.slots) - 1)
	for _, slot := range old {
		if slot.round != n.round {
			continue
		}
		i := slot.hash & mask
		for n.slots[i].round == n.round {
			i = (i + 1) & mask
		}
		n.slots[i] = slot
	}
}

// Hash returns a number that equal texts have in common.
func (n *Names) Hash(text []byte) uint64 { return maphash.Bytes(n.seed, text) }

// Span returns where a name of that number stands for the first time.
func (n *Names) Span(number uint32) syntax.Span { return n.spans[number] }

// Mix makes one hash of two, whose order counts.
func Mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9E3779B97F4A7C15, b^0xD6E8FEB86659FD93)
	return hi ^ lo
}

// MaxEcho bounds, in bytes, what a message repeats of a document in one piece.
const MaxEcho = 200

// Text returns a piece of a document as messages repeat it.
func Text(doc *syntax.Document, at syntax.Span) string {
	if at.End-at.Start > MaxEcho+utf8.UTFMax {
		at.End = at.Start + MaxEcho + utf8.UTFMax
	}
	return Clip(doc.Text(at), MaxEcho)
}

// Clip returns text or, of one that is longer than most bytes, as many whole
// characters as fit, and an ellipsis.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Variable returns the name of a variable that is used, without "$", which may
// stand apart from it.
func Variable(doc *syntax.Document, use *syntax.Value) syntax.Span {
	name := syntax.Span{Start: use.Text.End, End: use.Text.End}
	for name.Start > use.Text.Start && isNameByte(doc.Source[name.Start-1]) {
		name.Start--
	}
	return name
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// Sized returns a slice of n elements, whatever is in them, the given one if it
// has room.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}
