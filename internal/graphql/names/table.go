package names

// A Table holds a number for large numbers, and can be emptied at once. The zero
// value is ready; Reset comes first.
type Table struct {
	slots []tableSlot
	round uint32
	used  int
}

type tableSlot struct {
	key   uint64
	round uint32
	value uint32
}

// Reset empties the table.
func (t *Table) Reset() {
	t.round++
	t.used = 0
	if t.round == 0 {
		clear(t.slots)
		t.round = 1
	}
}

// At returns the place of a key's number, which is 0 for a new key. The next
// call invalidates it.
func (t *Table) At(key uint64) *uint32 {
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

func (t *Table) find(key uint64) *tableSlot {
	mask := len(t.slots) - 1
	hash := key * 0x9E3779B97F4A7C15
	for i := int(hash>>32) & mask; ; i = (i + 1) & mask {
		if slot := &t.slots[i]; slot.round != t.round || slot.key == key {
			return slot
		}
	}
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]tableSlot, max(64, 4*len(old)))
	for _, slot := range old {
		if slot.round == t.round {
			*t.find(slot.key) = slot
		}
	}
}
