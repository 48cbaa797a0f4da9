package validate

import (
	"hash/maphash"
	"math/bits"
	"unicode/utf8"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A nameIndex numbers the names of a document, equal ones alike, from 0. The zero value
// is ready; Reset comes first.
type nameIndex struct {
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

// reset forgets all names and takes another document.
func (n *nameIndex) reset(doc *syntax.Document) {
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

// number returns the number of a name.
func (n *nameIndex) number(at syntax.Span) uint32 {
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

func (n *nameIndex) grow() {
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

// hash returns a number that equal texts have in common.
func (n *nameIndex) hash(text []byte) uint64 { return maphash.Bytes(n.seed, text) }

// span returns where a name of that number stands for the first time.
func (n *nameIndex) span(number uint32) syntax.Span { return n.spans[number] }

// mix makes one hash of two, whose order counts.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9E3779B97F4A7C15, b^0xD6E8FEB86659FD93)
	return hi ^ lo
}

// maxEcho bounds, in bytes, what a message repeats of a document in one piece.
const maxEcho = 200

// echo returns a piece of a document as messages repeat it.
func echo(doc *syntax.Document, at syntax.Span) string {
	if at.End-at.Start > maxEcho+utf8.UTFMax {
		at.End = at.Start + maxEcho + utf8.UTFMax
	}
	return clip(doc.Text(at), maxEcho)
}

// clip returns text, cut to at most most bytes of whole characters and an ellipsis.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// variableName returns the name of a used variable without "$", which blanks may
// separate from it.
func variableName(doc *syntax.Document, use *syntax.Value) syntax.Span {
	name := syntax.Span{Start: use.Text.End, End: use.Text.End}
	for name.Start > use.Text.Start && isNameByte(doc.Source[name.Start-1]) {
		name.Start--
	}
	return name
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// sized returns a slice of n elements, whatever is in them, the given one if it
// has room.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// marks hold a number for small numbers, and can all be forgotten at once. The
// zero value is ready; Clear comes first.
type marks struct {
	slots []mark
	round uint32
}

type mark struct{ round, value uint32 }

// clear forgets all marks.
func (m *marks) clear() {
	m.round++
	if m.round == 0 {
		clear(m.slots)
		m.round = 1
	}
}

// get returns what i is marked with.
func (m *marks) get(i uint32) (uint32, bool) {
	if int(i) >= len(m.slots) || m.slots[i].round != m.round {
		return 0, false
	}
	return m.slots[i].value, true
}

// has reports whether i is marked.
func (m *marks) has(i uint32) bool {
	_, ok := m.get(i)
	return ok
}

// set marks i with a value.
func (m *marks) set(i, value uint32) {
	if int(i) >= len(m.slots) {
		grown := make([]mark, max(64, 2*(int(i)+1)))
		copy(grown, m.slots)
		m.slots = grown
	}
	m.slots[i] = mark{m.round, value}
}

// A numberTable holds a number for large numbers, and can be emptied at once. The zero
// value is ready; Reset comes first.
type numberTable struct {
	slots []tableSlot
	round uint32
	used  int
}

type tableSlot struct {
	key   uint64
	round uint32
	value uint32
}

// reset empties the table.
func (t *numberTable) reset() {
	t.round++
	t.used = 0
	if t.round == 0 {
		clear(t.slots)
		t.round = 1
	}
}

// at returns the place of a key's number, which is 0 for a new key. The next
// call invalidates it.
func (t *numberTable) at(key uint64) *uint32 {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	slot := t.find(key)
	if slot.round != t.round {
		*slot = tableSlot{key: key, round: t.round}
		t.used++
	}
	return &slot.value
}

func (t *numberTable) find(key uint64) *tableSlot {
	mask := len(t.slots) - 1
	hash := key * 0x9E3779B97F4A7C15
	for i := int(hash>>32) & mask; ; i = (i + 1) & mask {
		if slot := &t.slots[i]; slot.round != t.round || slot.key == key {
			return slot
		}
	}
}

func (t *numberTable) grow() {
	old := t.slots
	t.slots = make([]tableSlot, max(64, 4*len(old)))
	for _, slot := range old {
		if slot.round == t.round {
			*t.find(slot.key) = slot
		}
	}
}
