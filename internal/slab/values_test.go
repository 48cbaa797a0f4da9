package slab

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
)

type counted struct {
	sum  uint64
	n    int64
	left bool
}

func (c *counted) Sum() uint64 { return c.sum }
func (c *counted) Leave()      { c.left = true }

// checkValues holds values against the blocks that they lie in.
func checkValues(t *testing.T, v *Values[counted, *counted], want map[string]int64) {
	t.Helper()
	there := 0
	for i, b := range v.blocks {
		there += bits.OnesCount64(b.there)
		for n := range b.values {
			if b.values[n].left == (b.there&(1<<n) != 0) {
				t.Fatalf("block %d, value %d: it does not know whether it has left", i, n)
			}
		}
	}
	all := 0
	for key, c := range v.All() {
		if used, known := want[string(key)]; !known || used != c.n {
			t.Fatalf("%q has %d, want %d, %v", key, c.n, used, known)
		}
		all++
	}
	if there != len(want) || all != len(want) || v.Len() != len(want) {
		t.Fatalf("%d values in blocks, %d by key, %d listed, want %d", there, v.Len(), all, len(want))
	}
}

// Whatever comes and goes, values are found by their keys as in a map, those that
// have left say so, and the memory of none serves another key.
func TestValuesAreFoundAsInAMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		var v Values[counted, *counted]
		want := make(map[string]int64)
		sum := func(key string) uint64 { return uint64(len(key)) + uint64(key[0]) } // many keys have the same
		known := make(map[*counted]string)
		for step := range 1500 {
			key := fmt.Sprint(r.IntN(80))
			c := v.Find(sum(key), key)
			if n, there := want[key]; there != (c != nil) || there && (c.n != n || c.left) {
				t.Fatalf("seed %d, step %d: key %s: %+v, want %d, %v", seed, step, key, c, n, there)
			}
			if c != nil {
				if other, taken := known[c]; taken && other != key {
					t.Fatalf("seed %d, step %d: the memory of key %s serves key %s", seed, step, other, key)
				}
				known[c] = key
			}
			switch op := r.IntN(20); {
			case op == 0:
				edge := r.Int64N(1000)
				v.Sweep(func(c *counted) bool { return c.n < edge })
				for key, n := range want {
					if n < edge {
						delete(want, key)
					}
				}
			case c == nil:
				want[key] = r.Int64N(1000)
				v.Add(sum(key), key, counted{sum: sum(key), n: want[key]})
			case op < 10:
				v.Drop(sum(key), key)
				delete(want, key)
				if !c.left {
					t.Fatal("a value that was dropped does not say so")
				}
			default:
				c.n++
				want[key]++
			}
			checkValues(t, &v, want)
		}
	}
}

func TestDroppingWhatIsNotThereDoesNothing(t *testing.T) {
	var v Values[counted, *counted]
	v.Drop(1, "a")
	v.Add(1, "a", counted{sum: 1, n: 5})
	v.Drop(1, "b")
	checkValues(t, &v, map[string]int64{"a": 5})
}

func TestBlocksOfValuesThatHaveLeftAreGivenUp(t *testing.T) {
	var v Values[counted, *counted]
	const n = 10_000
	for i := range n {
		v.Add(mix(i), fmt.Sprint(i), counted{sum: mix(i), n: int64(i)})
	}
	for i := range n {
		if i%100 != 0 {
			v.Drop(mix(i), fmt.Sprint(i))
		}
	}
	room := 0
	for _, b := range v.blocks {
		room += cap(b.values)
	}
	if room > 4*n/100+2*mostValues {
		t.Errorf("room for %d values is held for %d", room, v.Len())
	}
}
