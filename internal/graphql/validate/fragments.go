package validate

import (
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A graph is which fragments are spread where.
type graph struct {
	spreads []uint32 // selections, by definition
	open    []syntax.Range
	reached marks
	queue   []uint32 // fragments, those that are reached

	visited []bool   // by fragment
	onPath  []uint32 // by fragment: its place on the path plus one, 0 when it is not on it
	path    []uint32 // selections that are spreads
	frames  []frame
	order   []uint32 // fragments, each after those that it spreads; of no use with cycles
	cyclic  bool

	totals []uint64 // by fragment: its fields with all that it spreads
}

// A frame is a fragment whose spreads are being followed.
type frame struct {
	fragment uint32
	next     uint32 // in graph.spreads
}

func (g *graph) reset(fragments int) {
	g.spreads, g.path, g.frames, g.order = g.spreads[:0], g.path[:0], g.frames[:0], g.order[:0]
	g.visited, g.onPath, g.totals = sized(g.visited, fragments), sized(g.onPath, fragments), sized(g.totals, fragments)
	clear(g.visited)
	clear(g.onPath)
	clear(g.totals)
	g.cyclic = false
}

// linkFragments builds the graph of spreads and checks that every fragment is used
// and none spreads itself.
func (v *Validator) linkFragments() {
	if len(v.doc.Fragments) == 0 {
		return
	}
	for i := range v.doc.Operations {
		v.defs[i].spreads = v.spreadsIn(v.doc.Operations[i].Selections)
	}
	for i := range v.doc.Fragments {
		v.defs[len(v.doc.Operations)+i].spreads = v.spreadsIn(v.doc.Fragments[i].Selections)
	}
	for i := range v.doc.Fragments {
		v.followSpreads(uint32(i))
	}
	v.reach(0, uint32(len(v.doc.Operations)))
	for i := range v.doc.Fragments {
		name := v.doc.Fragments[i].Name
		if f, _ := v.fragments.get(v.names.number(name)); !v.graph.reached.has(f) {
			v.report("Fragment "+v.quoted(name)+" is never used.", v.doc.Fragments[i].Start)
		}
	}
}

// spreadsIn gathers the spreads in a selection set, in the reference's order:
// those of a set before those of the sets in it, of which the last comes first.
// Which cycles are found depends on it.
func (v *Validator) spreadsIn(set syntax.Range) syntax.Range {
	g := &v.graph
	found := syntax.Range{Lo: uint32(len(g.spreads))}
	g.open = append(g.open[:0], set)
	for len(g.open) > 0 {
		set = g.open[len(g.open)-1]
		g.open = g.open[:len(g.open)-1]
		for i := set.Lo; i < set.Hi; i++ {
			if sel := &v.doc.Selections[i]; sel.Kind == syntax.FragmentSpread {
				g.spreads = append(g.spreads, i)
			} else if sel.SetStart > 0 {
				g.open = append(g.open, sel.Selections)
			}
		}
	}
	found.Hi = uint32(len(g.spreads))
	return found
}

// spreadsOf returns the spreads in a fragment.
func (v *Validator) spreadsOf(fragment uint32) syntax.Range {
	return v.defs[len(v.doc.Operations)+int(fragment)].spreads
}

// reach returns the fragments that operations [lo, hi) use. The next call
// invalidates the list.
func (v *Validator) reach(lo, hi uint32) []uint32 {
	g := &v.graph
	g.reached.clear()
	g.queue = g.queue[:0]
	for i := lo; i < hi; i++ {
		v.reachFrom(v.defs[i].spreads)
	}
	for at := 0; at < len(g.queue); at++ {
		v.reachFrom(v.spreadsOf(g.queue[at]))
	}
	return g.queue
}

func (v *Validator) reachFrom(spreads syntax.Range) {
	g := &v.graph
	if !v.spend(spreads.Len()) {
		return
	}
	for _, sel := range g.spreads[spreads.Lo:spreads.Hi] {
		if f := v.resolved[sel]; f != syntax.None && !g.reached.has(f) {
			g.reached.set(f, 0)
			g.queue = append(g.queue, f)
		}
	}
}

// followSpreads follows the spreads of a fragment and reports cycles. It uses an
// explicit stack, because paths can be long.
func (v *Validator) followSpreads(root uint32) {
	v.enter(root)
	g := &v.graph
	for len(g.frames) > 0 && !v.over {
		top := &g.frames[len(g.frames)-1]
		if top.next == v.spreadsOf(top.fragment).Hi {
			v.leave(top.fragment)
			continue
		}
		sel := g.spreads[top.next]
		top.next++
		to := v.resolved[sel]
		if to == syntax.None {
			continue
		}
		g.path = append(g.path, sel)
		if at := g.onPath[to]; at > 0 {
			g.cyclic = true
			v.reportCycle(g.path[at-1:])
		} else if v.enter(to) {
			continue
		}
		g.path = g.path[:len(g.path)-1]
	}
}

// enter begins with a fragment, unless it has been seen.
func (v *Validator) enter(fragment uint32) bool {
	g := &v.graph
	name, _ := v.fragments.get(v.names.number(v.doc.Fragments[fragment].Name)) // of equal names one is followed
	if g.visited[name] {
		return false
	}
	g.visited[name] = true
	g.onPath[name] = uint32(len(g.path)) + 1
	g.frames = append(g.frames, frame{fragment, v.spreadsOf(fragment).Lo})
	return true
}

func (v *Validator) leave(fragment uint32) {
	g := &v.graph
	name, _ := v.fragments.get(v.names.number(v.doc.Fragments[fragment].Name))
	g.onPath[name] = 0
	g.order = append(g.order, fragment)
	g.frames = g.frames[:len(g.frames)-1]
	if len(g.frames) > 0 {
		g.path = g.path[:len(g.path)-1]
	}
}

// reportCycle reports spreads of which the last leads back to where the first is.
func (v *Validator) reportCycle(cycle []uint32) {
	places := make([]uint32, 0, len(cycle))
	via := ""
	for i, sel := range cycle {
		places = append(places, v.doc.Selections[sel].Start)
		switch {
		case i == len(cycle)-1 || len(via) > maxDetail:
		case i == 0:
			via = " via " + v.quoted(v.doc.Selections[sel].Name)
		default:
			via += ", " + v.quoted(v.doc.Selections[sel].Name)
		}
	}
	last := v.doc.Selections[cycle[len(cycle)-1]].Name
	v.report("Cannot spread fragment "+v.quoted(last)+" within itself"+via+".", places...)
}

// checkExpansion bounds how large operations are once fragments are put where
// they are spread. Sums stop at the bound, so that no number is too large.
func (v *Validator) checkExpansion() bool {
	g, small := &v.graph, true
	for _, f := range g.order {
		g.totals[f] = v.expanded(&v.defs[len(v.doc.Operations)+int(f)])
	}
	for i := range v.doc.Operations {
		if v.expanded(&v.defs[i]) > uint64(v.o.MaxExpanded) {
			small = false
			v.report(tooComplex+"with its fragments expanded, an operation selects more than "+strconv.Itoa(v.o.MaxExpanded)+" fields.", v.doc.Operations[i].Start)
		}
	}
	return small
}

// expanded returns how many fields a definition has with all that it spreads, at
// most one more than are allowed.
func (v *Validator) expanded(d *definition) uint64 {
	total, most := d.fields, uint64(v.o.MaxExpanded)+1
	for _, sel := range v.graph.spreads[d.spreads.Lo:d.spreads.Hi] {
		if f := v.resolved[sel]; f != syntax.None {
			total = min(total+v.graph.totals[f], most)
		}
	}
	return min(total, most)
}
