package script

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"
)

// Bounds of a Batch.
const (
	MaxItems  = 256 // MaxItems take the store about a millisecond.
	MaxKeys   = 768 // MaxKeys bounds batches whose items have many limits.
	maxShapes = 255
)

// itemSize is the size of an item in the argument, in bytes, without its keys.
const itemSize = 6

// A Form is a limit without its key, as the script needs it.
type Form struct {
	Rate   bool
	Max    int64
	Period int64 // microseconds; a quota with 0 never renews
	Group  int64 // the most calls in one group of a rate
}

// A Batch is what one run of take.lua counts. It must be Reset before its first use
// too. Forms that several items have in common are packed once.
type Batch struct {
	Keys []string // of all items, in their order

	items   []byte
	forms   []Form
	shapes  []span
	repeats bool // a key may stand in several items
	index   index
	packed  []byte // reused
}

// A span is where the forms of a shape are. A shape is the forms of an item, in the
// order of its keys.
type span struct{ at, n int }

// Reset empties b and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Keys)
	b.Keys, b.items, b.forms, b.shapes = b.Keys[:0], b.items[:0], b.forms[:0], b.shapes[:0]
	b.repeats = false
	b.index.reset()
}

// Len returns the number of items.
func (b *Batch) Len() int { return len(b.items) / itemSize }

// Fits reports whether another item with so many limits fits.
func (b *Batch) Fits(limits int) bool {
	return b.Len() < MaxItems && len(b.Keys)+limits <= MaxKeys && len(b.shapes) < maxShapes
}

// Latest returns the newest item whose first key is key, or -1. Rarely it returns
// one of another key with the same hash.
func (b *Batch) Latest(key string) int { return b.index.find(hashOf(key)) }

var seed = maphash.MakeSeed()

func hashOf(key string) uint64 { return maphash.String(seed, key) }

// HasShape reports whether an item has a shape.
func (b *Batch) HasShape(item, shape int) bool { return int(b.items[item*itemSize+4]) == shape+1 }

// Shape returns the number of the shape with these forms, which it adds if it is
// new.
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

// Forms returns the forms of an item. They belong to b.
func (b *Batch) Forms(item int) []Form {
	s := b.shapes[b.items[item*itemSize+4]-1]
	return b.forms[s.at : s.at+s.n]
}

// Open begins an item with a shape. Its keys are added next, in order.
func (b *Batch) Open(shape int) (item int) {
	b.items = append(b.items, 0, 0, 1, 0, byte(shape+1), 0)
	return b.Len() - 1
}

// Ask requests the ends of the periods of an item's quotas.
func (b *Batch) Ask(item int) { b.items[item*itemSize+5] = 1 }

// Key adds a key to the last item. first says that it is the item's first.
func (b *Batch) Key(key string, first bool) {
	item := int32(-1)
	if first {
		item = int32(b.Len() - 1)
	}
	b.Keys = append(b.Keys, key)
	if b.index.put(hashOf(key), item) {
		b.repeats = true
	}
}

// Count sets how many calls an item asks for, and how many of them each caller.
func (b *Batch) Count(item, calls, portion int) {
	at := b.item(item)
	binary.LittleEndian.PutUint16(at, uint16(calls))
	binary.LittleEndian.PutUint16(at[2:], uint16(max(portion, 1)))
}

// calls returns how many calls an item asks for.
func (b *Batch) calls(item int) int { return int(binary.LittleEndian.Uint16(b.item(item))) }

// Pack returns the script's argument for all items.
func (b *Batch) Pack() string {
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
	return string(p)
}

func (b *Batch) item(i int) []byte { return b.items[i*itemSize : (i+1)*itemSize] }

// appendItems packs items that differ in their keys only, as most items of a batch
// do.
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

// appendNumber packs a number as Lua reads it. Above 2^53 it is rounded.
func appendNumber(p []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(p, math.Float64bits(float64(n)))
}
