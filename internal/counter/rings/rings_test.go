package rings

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func groupsOf(r *Ring) []Group {
	var all []Group
	for i := range r.Len() {
		all = append(all, *r.At(i))
	}
	return all
}

// Whatever is done to them, rings hold what lists hold, each its own.
func TestRingsHoldWhatListsHold(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 7))
		var all Rings
		held := make(map[uint32][]Group)
		var numbers []uint32
		for step := range 1500 {
			if op := r.IntN(12); op == 0 || len(numbers) == 0 {
				number := all.Take()
				if _, taken := held[number]; taken || all.Of(number).Len() != 0 {
					t.Fatalf("seed %d, step %d: ring %d is taken twice, or not empty", seed, step, number)
				}
				held[number], numbers = nil, append(numbers, number)
			} else if op == 1 {
				i := r.IntN(len(numbers))
				all.Release(numbers[i])
				delete(held, numbers[i])
				numbers = slices.Delete(numbers, i, i+1)
			} else {
				change(r, op, &all, held, numbers[r.IntN(len(numbers))])
			}
			for number, want := range held {
				if got := groupsOf(all.Of(number)); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: ring %d holds %v, want %v", seed, step, number, got, want)
				}
			}
			if all.InUse() != len(held) {
				t.Fatalf("seed %d, step %d: %d in use, want %d", seed, step, all.InUse(), len(held))
			}
		}
	}
}

// change does one thing to a ring and to its list.
func change(r *rand.Rand, op int, all *Rings, held map[uint32][]Group, number uint32) {
	ring, list := all.Of(number), held[number]
	switch {
	case op == 2:
		ring.Clear()
		held[number] = nil
	case op == 3:
		ring.Shift(5)
		for i := range list {
			list[i].Last -= 5
		}
	case op < 7 && len(list) > 0:
		ring.Pop()
		held[number] = list[1:]
	default:
		g := Group{Last: r.Int64(), Calls: r.Int64N(9)}
		ring.Push(g)
		held[number] = append(slices.Clone(list), g)
	}
}

func TestNoRingIsEmpty(t *testing.T) {
	var all Rings
	none := all.Of(0)
	none.Clear()
	none.Shift(1)
	all.Release(0)
	if none.Len() != 0 || all.InUse() != 0 {
		t.Error("number 0 stands for a ring")
	}
}
