package values

import (
	"hash/maphash"
	"math/bits"

	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// fewVariables is up to how many variables are looked up one by one.
const fewVariables = 8

// seed is a secret of the process, so that no client can aim at one chain.
var seed = maphash.MakeSeed()

// A table finds variables by name: open addressing over indices plus one, 0
// where a slot is free. At most half of the slots are taken.
type table struct{ slots []uint32 }

func (t *table) fill(vars []validate.Variable) {
	t.slots = t.slots[:0]
	if len(vars) <= fewVariables {
		return
	}
	t.slots = append(t.slots, make([]uint32, 1<<bits.Len(uint(2*len(vars))))...)
	for i := range vars {
		at := t.start(maphash.String(seed, vars[i].Name))
		for t.slots[at] != 0 {
			at = t.after(at)
		}
		t.slots[at] = uint32(i) + 1
	}
}

func (t *table) start(hash uint64) uint64 { return hash & uint64(len(t.slots)-1) }
func (t *table) after(at uint64) uint64   { return (at + 1) & uint64(len(t.slots)-1) }

// index returns which of vars, those that the table was filled with, has a name;
// -1 when none has.
func (t *table) index(vars []validate.Variable, name []byte) int {
	if len(t.slots) == 0 {
		for i := range vars {
			if vars[i].Name == string(name) {
				return i
			}
		}
		return -1
	}
	for at := t.start(maphash.Bytes(seed, name)); ; at = t.after(at) {
		row := t.slots[at]
		if row == 0 {
			return -1
		}
		if vars[row-1].Name == string(name) {
			return int(row - 1)
		}
	}
}
