package script

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

func add(b *Batch, forms []Form, keys ...string) int {
	item := b.Open(b.Shape(forms))
	b.Count(item, 1, 1)
	for i, key := range keys {
		b.Key(key, i == 0)
	}
	return item
}

func TestBatchPacksACommonShapeOnceAndTellsKeysThatRepeat(t *testing.T) {
	one := []Form{{Max: 5, Period: 60e6, Group: 1}}
	two := []Form{{Rate: true, Max: 5, Period: 1e6, Group: 1}, one[0]}
	var b Batch
	for range 3 { // a batch is used again
		b.Reset()
		for i := range 200 {
			add(&b, two, fmt.Sprint("rate", i), fmt.Sprint("quota", i))
		}
		if got, want := len(b.Pack()), 2+1+2*25+2+6; got != want || b.repeats {
			t.Fatalf("200 items of one shape take %d bytes, repeat: %v, want %d", got, b.repeats, want)
		}
		b.Count(100, 2, 1)
		if got, want := len(b.Pack()), 2+1+2*25+3*(2+6); got != want {
			t.Errorf("with another item among them they take %d bytes, want %d", got, want)
		}
		add(&b, one, "quota7")
		if got := b.Pack(); got[0] != 1 || got[1] != 2 {
			t.Errorf("repeats %d, shapes %d, want 1 and 2", got[0], got[1])
		}
		if item := b.Latest("quota7"); item != 200 {
			t.Errorf("quota7 begins item %d, want 200", item)
		}
		if item := b.Latest("quota8"); item != -1 {
			t.Errorf("quota8 begins item %d, want none", item)
		}
		if item := b.Latest("rate8"); item != 8 {
			t.Errorf("rate8 begins item %d, want 8", item)
		}
		if got := b.PackItem(200); got[0] != 0 || got[1] != 1 || got[len(got)-2] != 1 || len(got) != 2+1+25+2+6 {
			t.Errorf("an item alone: %q", got)
		}
	}
}

func TestBatchIsFullAtItsBounds(t *testing.T) {
	var b Batch
	b.Reset()
	for i := 0; b.Fits(1); i++ {
		add(&b, []Form{{Max: int64(i)}}, fmt.Sprint(i))
	}
	if b.Len() != maxShapes {
		t.Errorf("%d items of different shapes, want %d", b.Len(), maxShapes)
	}
	b.Reset()
	for i := 0; b.Fits(16); i++ {
		keys := strings.Fields(strings.Repeat(fmt.Sprint(" ", i), 16))
		add(&b, make([]Form, 16), keys...)
	}
	if len(b.Keys) != MaxKeys {
		t.Errorf("%d keys, want %d", len(b.Keys), MaxKeys)
	}
}

// Places of an earlier batch are free, even when the turns begin again.
func TestIndexForgetsItsTurns(t *testing.T) {
	x := index{turn: ^uint32(0) - 1}
	for range 4 {
		x.reset()
		for i := range uint64(MaxKeys) {
			if x.put(i<<40|i*7, int32(i)) {
				t.Fatalf("turn %d: %d was there", x.turn, i)
			}
		}
		for i := range uint64(MaxKeys) {
			if got := x.find(i<<40 | i*7); got != int(i) {
				t.Fatalf("turn %d: %d found as %d", x.turn, i, got)
			}
		}
	}
}

// floats is a reply of the script.
func floats(numbers ...float64) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
	}
	return b
}

func TestRepliesAreDivided(t *testing.T) {
	var b Batch
	b.Reset()
	shape := b.Shape([]Form{{Rate: true, Max: 10, Period: 60e6, Group: 1}, {Max: 100}})
	for range 2 {
		b.Count(b.Open(shape), 3, 1)
	}
	long, short := []float64{2*256 + 1, 7, 1500, 2, 1e12}, []float64{-1 - 7, 50}
	for _, c := range []struct {
		numbers          []float64
		granted, refused int
		limits           [4]int64
	}{
		{long, 2, 1, [4]int64{7, 1500, 2, 1e12}},
		{short, 3, None, [4]int64{7, 60_000, 50, NotAsked}},
		{[]float64{-1, 0}, 3, None, [4]int64{0, 60_000, 0, NotAsked}},
	} {
		whole := floats(c.numbers...)
		for n := range whole {
			if r, rest, ok := b.Reply(0, whole[:n]); ok || r.numbers != nil || len(rest) != n {
				t.Errorf("%v: %d bytes are taken for a reply", c.numbers, n)
			}
		}
		r, rest, ok := b.Reply(1, append(whole, "rest"...))
		granted, refused := r.Outcome()
		var limits [4]int64
		limits[0], limits[1] = r.Limit(0)
		limits[2], limits[3] = r.Limit(1)
		if !ok || string(rest) != "rest" || granted != c.granted || refused != c.refused || limits != c.limits {
			t.Errorf("%v: %v, %d granted, %d refused, %v, rest %q", c.numbers, ok, granted, refused, limits, rest)
		}
	}
}
