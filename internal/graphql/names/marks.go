package names

// Marks hold a number for small numbers, and can all be forgotten at once. The
// zero value is ready; Clear comes first.
type Marks struct {
	slots []mark
	round uint32
}

type mark struct{ round, value uint32 }

// Clear forgets all marks.
func (m *Marks) Clear() {
	m.round++
	if m.round == 0 {
		clear(m.slots)
		m.round = 1
	}
}

// Get returns what i is marked with.
func (m *Marks) Get(i uint32) (uint32, bool) {
	if int(i) >= len(m.slots) || m.slots[i].round != m.round {
		return 0, false
	}
	return m.slots[i].value, true
}

// Has tells whether i is marked.
func (m *Marks) Has(i uint32) bool {
	_, ok := m.Get(i)
	return ok
}

// Set marks i with a value.
func (m *Marks) Set(i, value uint32) {
	if int(i) >= len(m.slots) {
		grown := make([]mark, max(64, 2*(int(i)+1)))
		copy(grown, m.slots)
		m.slots = grown
	}
	m.slots[i] = mark{m.round, value}
}
