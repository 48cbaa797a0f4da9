package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxComparisons bounds how often two fields, or two sets of fields, are held
// against each other.
const maxComparisons = 200_000

// maxSide is how many fields on each side a conflict names.
const maxSide = 20

// A merger finds fields that one answer would have under the same name although
// they are not the same. It goes as the reference does, whose texts depend on
// the order:
//
//   - the fields of each selection set, inline fragments included, are compared
//     with each other and with those of the fragments that are spread there;
//   - of fields with the same name, the selection sets are compared in turn;
//   - two fragments, or a set and a fragment, are compared once.
//
// The first pass leaves out fields that are equal to others in all their parts,
// and ends with the first conflict. Only then there is a second one, for the
// texts.
type merger struct {
	sets    []fieldSet // in document order within each definition
	of      []uint32   // by selection: the set of a field
	entries []entry
	spreads []uint32 // fragments, by set

	texts    bool // this is the second pass
	found    bool // there is a conflict
	left     int  // comparisons
	depth    int
	last     marks // by name in the answer: the last entry of the set that is collected
	heads    marks // by name in the answer: the first entry of the set that is compared
	spread   marks // by fragment: it is spread in the set that is collected
	matches  []match
	sets2    table // a set and a fragment: compared, as exclusive or not
	pairs    table // two fragments: the same
	distinct table // hashes of entries in groups
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
	first  bool   // there is none of that name before
}

// A match is two groups of entries that have a name in common.
type match struct{ a, b uint32 }

// What has been compared.
const (
	asExclusive = 1 << iota
	asCommon
)

func (m *merger) reset(selections int) {
	m.sets, m.of = m.sets[:0], sized(m.of, selections)
}

// add notes a selection set on a type.
func (m *merger) add(set syntax.Range, parent schema.TypeID) {
	m.sets = append(m.sets, fieldSet{selections: set, parent: parent})
}

// addOf notes the selection set of a field.
func (m *merger) addOf(sel uint32, set syntax.Range, parent schema.TypeID) {
	m.of[sel] = uint32(len(m.sets))
	m.add(set, parent)
}

// begin starts a pass.
func (m *merger) begin(texts bool) {
	m.texts, m.found, m.left, m.depth = texts, false, maxComparisons, 0
	m.entries, m.spreads, m.matches = m.entries[:0], m.spreads[:0], m.matches[:0]
	m.sets2.reset()
	m.pairs.reset()
	m.distinct.reset()
	for i := range m.sets {
		m.sets[i].collected = false
	}
}

// done tells whether the pass is over before its end.
func (m *merger) done() bool { return m.left < 0 || m.found && !m.texts }

// checkMerging reports fields that cannot be merged.
func (v *Validator) checkMerging() {
	m := &v.merge
	m.begin(false)
	m.fields, m.values = m.fields[:0], m.values[:0]
	v.mergePass()
	if m.found {
		before := len(v.problems)
		m.begin(true)
		v.mergePass()
		if m.left >= 0 || len(v.problems) > before {
			return
		}
	}
	if m.left < 0 {
		v.refuse("it has too many fields of the same name to compare")
	}
}

func (v *Validator) mergePass() {
	for _, d := range v.doc.Definitions {
		i := int(d.Index)
		if d.Kind == syntax.FragmentDefinition {
			i += len(v.doc.Operations)
		}
		for set := v.defs[i].sets.Lo; set < v.defs[i].sets.Hi; set++ {
			if v.over || v.merge.done() {
				return
			}
			v.mergeWithin(set)
		}
	}
}

// mergeWithin compares all that is in one set.
func (v *Validator) mergeWithin(id uint32) {
	m := &v.merge
	if in := m.sets[id].selections; in.Len() == 1 && v.doc.Selections[in.Lo].Kind != syntax.InlineFragment {
		return // nothing to compare with
	}
	set := v.collect(id)
	var found []conflict
	for a := set.entries.Lo; a < set.entries.Hi; a++ {
		if m.entries[a].first {
			v.compareGroup(a, &found)
		}
	}
	for i := set.spreads.Lo; i < set.spreads.Hi && !m.done(); i++ {
		v.compareSpread(false, id, m.spreads[i], &found)
		for j := i + 1; j < set.spreads.Hi && !m.done(); j++ {
			v.compareFragments(false, m.spreads[i], m.spreads[j], &found)
		}
	}
	for i := range found {
		v.reportConflict(&found[i])
	}
}

// compareGroup compares all entries of one name with each other.
func (v *Validator) compareGroup(a uint32, found *[]conflict) {
	m := &v.merge
	for ; a != syntax.None; a = m.entries[a].next {
		for b := m.entries[a].next; b != syntax.None && !m.done(); b = m.entries[b].next {
			v.compare(false, a, b, found)
		}
	}
}

// compareSets compares the entries of two sets, without their fragments. The
// fields are exclusive when no object has both.
func (v *Validator) compareSets(exclusive bool, one, two uint32, found *[]conflict) {
	m := &v.merge
	a, b := v.collect(one).entries, v.collect(two).entries
	if a.Len() == 0 || b.Len() == 0 {
		return
	}
	m.left -= 1 + (a.Len()+b.Len())/8
	m.heads.next()
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
		v.compareMatch(exclusive, m.matches[i], found)
	}
	m.matches = m.matches[:from]
}

func (v *Validator) compareMatch(exclusive bool, of match, found *[]conflict) {
	m := &v.merge
	for a := of.a; a != syntax.None; a = m.entries[a].next {
		for b := of.b; b != syntax.None && !m.done(); b = m.entries[b].next {
			v.compare(exclusive, a, b, found)
		}
	}
}

// compareSpread compares a set with a fragment and all that this spreads.
func (v *Validator) compareSpread(exclusive bool, id, fragment uint32, found *[]conflict) {
	m := &v.merge
	m.left--
	set := v.collect(id)
	if m.done() || set.entries.Len() == 0 || again(m.sets2.at(uint64(id)<<32|uint64(fragment)), exclusive) {
		return
	}
	other := v.setOf(fragment)
	if other == id || !v.deeper() {
		return
	}
	v.compareSets(exclusive, id, other, found)
	spreads := v.collect(other).spreads
	for i := spreads.Lo; i < spreads.Hi && !m.done(); i++ {
		v.compareSpread(exclusive, id, m.spreads[i], found)
	}
	m.depth--
}

// compareFragments compares two fragments and all that they spread.
func (v *Validator) compareFragments(exclusive bool, one, two uint32, found *[]conflict) {
	m := &v.merge
	m.left--
	if m.done() || one == two || again(m.pairs.at(uint64(min(one, two))<<32|uint64(max(one, two))), exclusive) || !v.deeper() {
		return
	}
	a, b := v.setOf(one), v.setOf(two)
	v.compareSets(exclusive, a, b, found)
	in := v.collect(b).spreads
	for i := in.Lo; i < in.Hi && !m.done(); i++ {
		v.compareFragments(exclusive, one, m.spreads[i], found)
	}
	in = v.collect(a).spreads
	for i := in.Lo; i < in.Hi && !m.done(); i++ {
		v.compareFragments(exclusive, m.spreads[i], two, found)
	}
	m.depth--
}

// again tells whether two things need not be compared any more, and notes that
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
func (v *Validator) setOf(fragment uint32) uint32 {
	return v.defs[len(v.doc.Operations)+int(fragment)].sets.Lo
}

// deeper bounds recursion. The caller takes one off the depth again.
func (v *Validator) deeper() bool {
	m := &v.merge
	if m.depth >= maxNesting {
		m.left = -1
		return false
	}
	m.depth++
	return true
}
