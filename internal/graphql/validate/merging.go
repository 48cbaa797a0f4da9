package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxComparisons bounds the comparisons of two fields or two sets of fields.
const maxComparisons = 200_000

const (
	maxSide   = 20 // fields on each side that a conflict names
	maxInside = 64 // reported conflicts in one place
)

// A mergeConflict is a set of fields that cannot share a response name.
type mergeConflict struct {
	message string
	places  []uint32 // where the fields start
}

// A merger finds conflicts between fields with the same response name. It reuses its
// allocations. Call reset first.
//
// Rule: GraphQL specification, September 2025, section 5.3.2.
//
// The order of comparisons is that of the reference implementation, because messages
// depend on it:
//
//   - the fields of each selection set, inline fragments included, are compared
//     with each other and with those of the fragments that are spread there;
//   - of fields with the same name, the selection sets are compared in turn;
//   - two fragments, or a set and a fragment, are compared once.
//
// The first pass skips fields that equal others in all parts and ends at the first
// conflict. Only then a second pass produces the messages.
type merger struct {
	s        *schema.Schema
	doc      *syntax.Document
	names    *nameIndex
	resolved []uint32
	hide     bool // texts contain no names but those of the document
	most     int  // conflicts to find
	out      []mergeConflict

	starts  []uint32   // by definition, operations before fragments: its first set
	sets    []fieldSet // in document order within each definition
	of      []uint32   // by selection: the set of a field
	entries []entry
	spreads []uint32 // fragments, by set

	texts    bool // this is the second pass
	found    bool // there is a conflict
	left     int  // comparisons
	taken    int  // comparisons, in both passes
	depth    int
	last     marks // by name in the answer: the last entry of the set that is collected
	heads    marks // by name in the answer: the first entry of the set that is compared
	spread   marks // by fragment: it is spread in the set that is collected
	matches  []match
	against  numberTable // a set and a fragment: compared, as exclusive or not
	pairs    numberTable // two fragments: the same
	distinct numberTable // hashes of entries in groups
	fields   []uint64
	values   []uint64
	scratch  []byte
}

// A fieldSet is a selection set, collected when it is first needed.
type fieldSet struct {
	selections syntax.Range
	parent     schema.TypeID
	collected  bool
	entries    syntax.Range
	spreads    syntax.Range
}

// An entry is a field of a set.
type entry struct {
	name   uint32 // number of its name in the answer
	sel    uint32
	parent schema.TypeID
	field  schema.FieldID
	next   uint32 // the next one of the same name, or None
	first  bool   // the first of its name
}

// A match is two groups of entries that have a name in common.
type match struct{ a, b uint32 }

// What has been compared.
const (
	asExclusive = 1 << iota
	asCommon
)

// Reset forgets all sets and makes room for those of as many selections.
func (m *merger) reset(selections int) {
	m.taken = 0
	m.sets, m.starts, m.of = m.sets[:0], m.starts[:0], sized(m.of, selections)
}

// Define notes the selection set of a definition on a type. All operations come
// before all fragments, and before each other's fields.
func (m *merger) define(set syntax.Range, parent schema.TypeID) {
	m.starts = append(m.starts, uint32(len(m.sets)))
	m.sets = append(m.sets, fieldSet{selections: set, parent: parent})
}

// Add notes the selection set of a field on a type.
func (m *merger) add(sel uint32, set syntax.Range, parent schema.TypeID) {
	m.of[sel] = uint32(len(m.sets))
	m.sets = append(m.sets, fieldSet{selections: set, parent: parent})
}

// begin starts a pass.
func (m *merger) begin(texts bool) {
	m.texts, m.found, m.left, m.depth = texts, false, maxComparisons, 0
	m.entries, m.spreads, m.matches = m.entries[:0], m.spreads[:0], m.matches[:0]
	m.against.reset()
	m.pairs.reset()
	m.distinct.reset()
	for i := range m.sets {
		m.sets[i].collected = false
	}
}

// done reports whether the pass ends early.
func (m *merger) done() bool { return m.left < 0 || m.found && !m.texts || len(m.out) >= m.most }

// conflicts compares all fields that are noted. It is false if there are too
// many to compare; a conflict that was found before is reported.
func (m *merger) conflicts(v *Validator) ([]mergeConflict, bool) {
	m.s, m.doc, m.names, m.resolved, m.out = v.s, v.doc, &v.names, v.resolved, nil
	m.hide, m.most = v.o.Hide, v.o.MaxErrors+1
	m.fields, m.values = m.fields[:0], m.values[:0]
	m.begin(false)
	m.pass()
	m.taken = maxComparisons - m.left
	if m.found {
		m.begin(true)
		m.pass()
		m.taken += maxComparisons - m.left
	}
	return m.out, m.left >= 0
}

// comparisons returns how many comparisons the last conflicts made.
func (m *merger) comparisons() int { return m.taken }

// plenty reports whether there are so many conflicts in one place that no more are
// reported.
func (m *merger) plenty(found []conflict) bool { return len(found) >= max(m.most, maxInside) }

// pass compares within each set, in document order.
func (m *merger) pass() {
	for _, d := range m.doc.Definitions {
		i := int(d.Index)
		if d.Kind == syntax.FragmentDefinition {
			i += len(m.doc.Operations)
		}
		end := uint32(len(m.sets))
		if i+1 < len(m.starts) {
			end = m.starts[i+1]
		}
		for set := m.starts[i]; set < end && !m.done(); set++ {
			m.within(set)
		}
	}
}

// within compares all that is in one set.
func (m *merger) within(id uint32) {
	if in := m.sets[id].selections; in.Len() == 1 && m.doc.Selections[in.Lo].Kind != syntax.InlineFragment {
		return // nothing to compare with
	}
	set := m.collect(id)
	var found []conflict
	for a := set.entries.Lo; a < set.entries.Hi; a++ {
		if m.entries[a].first {
			m.compareGroup(a, &found)
		}
	}
	for i := set.spreads.Lo; i < set.spreads.Hi && !m.done(); i++ {
		m.compareSpread(false, id, m.spreads[i], &found)
		for j := i + 1; j < set.spreads.Hi && !m.done(); j++ {
			m.compareFragments(false, m.spreads[i], m.spreads[j], &found)
		}
	}
	for i := range found {
		m.out = append(m.out, m.describe(&found[i]))
	}
}

// compareGroup compares all entries of one name with each other.
func (m *merger) compareGroup(a uint32, found *[]conflict) {
	for ; a != syntax.None; a = m.entries[a].next {
		for b := m.entries[a].next; b != syntax.None && !m.done() && !m.plenty(*found); b = m.entries[b].next {
			m.compare(false, a, b, found)
		}
	}
}

// compareSets compares the entries of two sets, without their fragments. The
// fields are exclusive when no object has both.
func (m *merger) compareSets(exclusive bool, one, two uint32, found *[]conflict) {
	a, b := m.collect(one).entries, m.collect(two).entries
	if a.Len() == 0 || b.Len() == 0 {
		return
	}
	m.left -= 1 + (a.Len()+b.Len())/8
	m.heads.clear()
	for i := b.Lo; i < b.Hi; i++ {
		if e := &m.entries[i]; e.first {
			m.heads.set(e.name, i)
		}
	}
	from := len(m.matches)
	for i := a.Lo; i < a.Hi; i++ {
		if e := &m.entries[i]; e.first {
			if head, ok := m.heads.get(e.name); ok {
				m.matches = append(m.matches, match{i, head})
			}
		}
	}
	for i := from; i < len(m.matches) && !m.done(); i++ {
		m.compareMatch(exclusive, m.matches[i], found)
	}
	m.matches = m.matches[:from]
}

func (m *merger) compareMatch(exclusive bool, of match, found *[]conflict) {
	for a := of.a; a != syntax.None; a = m.entries[a].next {
		for b := of.b; b != syntax.None && !m.done() && !m.plenty(*found); b = m.entries[b].next {
			m.compare(exclusive, a, b, found)
		}
	}
}

// compareSpread compares a set with a fragment and all that this spreads.
func (m *merger) compareSpread(exclusive bool, id, fragment uint32, found *[]conflict) {
	m.left--
	set := m.collect(id)
	if m.done() || set.entries.Len() == 0 || again(m.against.at(uint64(id)<<32|uint64(fragment)), exclusive) {
		return
	}
	other := m.setOf(fragment)
	if other == id || !m.deeper() {
		return
	}
	m.compareSets(exclusive, id, other, found)
	spreads := m.collect(other).spreads
	for i := spreads.Lo; i < spreads.Hi && !m.done(); i++ {
		m.compareSpread(exclusive, id, m.spreads[i], found)
	}
	m.depth--
}

// compareFragments compares two fragments and all that they spread.
func (m *merger) compareFragments(exclusive bool, one, two uint32, found *[]conflict) {
	m.left--
	if m.done() || one == two || again(m.pairs.at(uint64(min(one, two))<<32|uint64(max(one, two))), exclusive) || !m.deeper() {
		return
	}
	a, b := m.setOf(one), m.setOf(two)
	m.compareSets(exclusive, a, b, found)
	in := m.collect(b).spreads
	for i := in.Lo; i < in.Hi && !m.done(); i++ {
		m.compareFragments(exclusive, one, m.spreads[i], found)
	}
	in = m.collect(a).spreads
	for i := in.Lo; i < in.Hi && !m.done(); i++ {
		m.compareFragments(exclusive, m.spreads[i], two, found)
	}
	m.depth--
}

// again reports whether two things need not be compared any more, and notes that
// they are. Fields that are not exclusive are compared more strictly.
func again(compared *uint32, exclusive bool) bool {
	if *compared&asCommon != 0 || exclusive && *compared != 0 {
		return true
	}
	*compared |= asCommon
	if exclusive {
		*compared = asExclusive
	}
	return false
}

// setOf returns the set of a fragment.
func (m *merger) setOf(fragment uint32) uint32 {
	return m.starts[len(m.doc.Operations)+int(fragment)]
}

// deeper bounds recursion. The caller takes one off the depth again.
func (m *merger) deeper() bool {
	if m.depth >= maxNesting {
		m.left = -1
		return false
	}
	m.depth++
	return true
}
