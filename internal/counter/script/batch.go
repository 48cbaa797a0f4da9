package script

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// Bounds of a Batch.
const (
	MaxItems  = 256 // MaxItems stop the store for about a millisecond.
	MaxKeys   = 768 // MaxKeys bounds batches whose items have many limits.
	maxShapes = 255
)

// itemSize is what take.lua must know of an item, but for its keys.
const itemSize = 6

// A Form is what the script must know of a limit, but for its key.
type Form struct {
	Rate   bool
	Max    int64
	Period int64 // microseconds; 0 on a quota: it never renews
	Group  int64 // calls that a group of a rate may hold
}

// A Batch is what one call of take.lua counts. It must be Reset before its first
// use too. Forms that many items have in common are packed once.
type Batch struct {
	Keys []string // of all items, in their order

	items   []byte
	forms   []Form
	shapes  []span
	repeats bool // a key may stand in several items
	index   index
	packed  []byte // reused from batch to batch
}

// A span is a shape: the forms of an item, in the order of its keys.
type span struct{ at, n int }

// Reset empties b, keeping its memory.
func (b *Batch) Reset() {
	clear(b.Keys)
	b.Keys, b.items, b.forms, b.shapes = b.Keys[:0], b.items[:0], b.forms[:0], b.shapes[:0]
	b.repeats = false
	b.index.reset()
}

// Len is the number of items.
func (b *Batch) Len() int { return len(b.items) / itemSize }

// Room tells whether another item of so many limits fits.
func (b *Batch) Room(limits int) bool {
	return b.Len() < MaxItems && len(b.Keys)+limits <= MaxKeys && len(b.shapes) < maxShapes
}

// Latest returns the newest item whose first key has a hash, or -1; hashes of
// different keys may be equal.
func (b *Batch) Latest(hash uint64) int { return b.index.find(hash) }

// HasShape tells whether an item has a shape.
func (b *Batch) HasShape(item, shape int) bool { return int(b.items[item*itemSize+4]) == shape+1 }

// Shape returns the number of a list of forms, which it notes if it is new.
func (b *Batch) Shape(forms []Form) int {
	for i, s := range b.shapes {
		if slices.Equal(b.forms[s.at:s.at+s.n], forms) {
			return i
		}
	}
	b.shapes = append(b.shapes, span{at: len(b.forms), n: len(forms)})
	b.forms = append(b.forms, forms...)
	return len(b.shapes) - 1
}

// Forms returns the forms of an item, which are b's.
func (b *Batch) Forms(item int) []Form {
	s := b.shapes[b.items[item*itemSize+4]-1]
	return b.forms[s.at : s.at+s.n]
}

// Open begins an item of a shape, whose keys are to be added in order.
func (b *Batch) Open(shape int) (item int) {
	b.items = append(b.items, 0, 0, 1, 0, byte(shape+1), 0)
	return b.Len() - 1
}

// Ask has the script tell when the periods of an item's quotas end.
func (b *Batch) Ask(item int) { b.items[item*itemSize+5] = 1 }

// Key adds a key to the last item. Keys that are equal have equal hashes.
func (b *Batch) Key(key string, hash uint64, first bool) {
	item := int32(-1)
	if first {
		item = int32(b.Len() - 1)
	}
	b.Keys = append(b.Keys, key)
	if b.index.put(hash, item) {
		b.repeats = true
	}
}

// Count sets how many calls an item asks for and in what portions; with none,
// the portion does not matter and must not be 0.
func (b *Batch) Count(item, calls, portion int) {
	at := b.item(item)
	binary.LittleEndian.PutUint16(at, uint16(calls))
	binary.LittleEndian.PutUint16(at[2:], uint16(max(portion, 1)))
}

// calls is how many an item asks for.
func (b *Batch) calls(item int) int { return int(binary.LittleEndian.Uint16(b.item(item))) }

// Pack returns the script's argument for all items, until b is packed again.
func (b *Batch) Pack() []byte {
	p := append(b.packed[:0], flag(b.repeats), byte(len(b.shapes)))
	for _, s := range b.shapes {
		p = appendShape(p, b.forms[s.at:s.at+s.n])
	}
	for i := 0; i < b.Len(); {
		item, many := b.item(i), 1
		for i++; i < b.Len() && bytes.Equal(b.item(i), item); i++ {
			many++
		}
		p = appendItems(p, many, item)
	}
	b.packed = p
	return p
}

func (b *Batch) item(i int) []byte { return b.items[i*itemSize : (i+1)*itemSize] }

// appendItems packs items of which the script must know the same, which most
// items of a batch are.
func appendItems(p []byte, many int, item []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(p, uint16(many)), item...)
}

// PackItem returns the script's argument for one item alone.
func (b *Batch) PackItem(item int) string {
	p := appendShape(append(b.packed[:0], 0, 1), b.Forms(item))
	b.packed = appendItems(p, 1, b.item(item))
	b.packed[len(b.packed)-2] = 1 // the only shape
	return string(b.packed)
}

func appendShape(p []byte, forms []Form) []byte {
	p = append(p, byte(len(forms)))
	for _, f := range forms {
		p = append(p, flag(f.Rate))
		p = appendNumber(p, f.Max)
		p = appendNumber(p, f.Period)
		p = appendNumber(p, f.Group)
	}
	return p
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// appendNumber packs a number as scripts read it. Beyond 2^53 it is rounded.
func appendNumber(p []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(p, math.Float64bits(float64(n)))
}
