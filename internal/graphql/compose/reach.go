package compose

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxSteps bounds the search for fields that cannot be reached: about a second.
const maxSteps = 20_000_000

// A reach is the search from the root types for what operations can get at.
type reach struct {
	c       *composer
	seen    map[string]bool
	pending []state
	objects map[objectsOf][]*part
	steps   int
}

// A state is an object that a plan has at hand: it can be had of each of some subgraphs.
type state struct {
	t  *typ
	at []*part // by subgraph
}

// objectsOf is an interface or union of a subgraph.
type objectsOf struct {
	in   *subgraph
	name string
}

// checkReachable reports fields that no plan can fetch, each with the subgraphs that an
// operation would be in.
func (c *composer) checkReachable() {
	r := &reach{c: c, seen: map[string]bool{}, objects: map[objectsOf][]*part{}}
	for _, name := range rootNames {
		if t := c.types[name]; t != nil {
			r.visit(state{t, t.parts})
		}
	}
	for len(r.pending) > 0 && !c.full() && r.steps < maxSteps {
		s := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		r.from(s)
	}
	if r.steps >= maxSteps {
		c.add(Problem{Code: LimitExceeded, Message: "there are too many ways between the subgraphs to check that every field can be reached"})
	}
}

func (r *reach) visit(s state) {
	key := append([]byte(s.t.name), 0)
	for _, p := range s.at {
		key = binary.BigEndian.AppendUint16(key, uint16(p.in.index))
	}
	if r.steps += len(key); !r.seen[string(key)] {
		r.seen[string(key)] = true
		r.pending = append(r.pending, s)
	}
}

// from follows the fields of an object.
func (r *reach) from(s state) {
	around := s.at
	switch {
	case s.t.root:
		around = s.t.parts // also below the root: a plan can begin anew there
	case s.t.entity:
		around = r.around(s)
	}
	here := make(map[*part]bool, len(around))
	for _, p := range around {
		here[p] = true
	}
	for _, f := range s.t.merged.fields {
		owners := slices.DeleteFunc(slices.Clone(s.t.owners[f.name]), func(p *part) bool { return !here[p] })
		r.steps += len(s.t.owners[f.name])
		if len(owners) > 0 {
			r.follow(f.of, owners)
			continue
		}
		r.c.add(Problem{
			Code: FieldUnreachable, Message: "the field '" + f.name + "' of the type named '" + s.t.name + "' cannot be reached",
			Detail: "when " + clip(s.at[0].in.name) + " returns the object, no key leads to a subgraph that resolves the field",
			Type:   s.t.name, Field: f.name, Places: append(fieldPlaces(s.t.owners[f.name], f.name), s.at[0].place()),
		})
	}
}

// follow goes on with the type of a field that some subgraphs resolve.
func (r *reach) follow(name string, owners []*part) {
	next := map[string][]*part{}
	for _, owner := range owners {
		p := owner.in.types[name]
		if p == nil {
			return // a built-in scalar
		}
		for _, object := range r.objectsOf(p) {
			next[object.name] = append(next[object.name], object)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(next)) {
		at := next[object]
		slices.SortFunc(at, func(a, b *part) int { return a.in.index - b.in.index })
		r.visit(state{r.c.types[object], at})
	}
}

// objectsOf returns the objects of a subgraph that a type can turn out to be.
func (r *reach) objectsOf(p *part) []*part {
	switch p.kind {
	case syntax.ObjectDef:
		return []*part{p}
	case syntax.InterfaceDef, syntax.UnionDef:
	default:
		return nil
	}
	key := objectsOf{p.in, p.name}
	if known, ok := r.objects[key]; ok {
		return known
	}
	r.steps += len(p.in.types)
	members := make(map[string]bool, len(p.members))
	for _, name := range p.members {
		members[name] = true
	}
	var found []*part
	for _, object := range p.in.types {
		if object.kind == syntax.ObjectDef && (members[object.name] || slices.Contains(object.interfaces, p.name)) {
			found = append(found, object)
		}
	}
	r.objects[key] = found
	return found
}

// around returns the subgraphs that keys lead to from an object, with those that it is in.
func (r *reach) around(s state) []*part {
	reached := slices.Clone(s.at)
	known := map[string]bool{} // fields of the object that can be had for a key
	enter := func(p *part) {
		for _, f := range p.fields {
			if !f.external || f.inKey {
				known[f.name] = true
			}
		}
		r.steps += len(p.fields)
	}
	for _, p := range reached {
		enter(p)
	}
	left := slices.DeleteFunc(slices.Clone(s.t.parts), func(p *part) bool { return slices.Contains(reached, p) })
	for grown := true; grown && r.steps < maxSteps; {
		before := len(left)
		left = slices.DeleteFunc(left, func(p *part) bool {
			r.steps += 1 + len(p.keys)
			if !p.entered(known) {
				return false
			}
			reached = append(reached, p)
			enter(p)
			return true
		})
		grown = len(left) < before
	}
	return reached
}

// entered reports whether all fields of one of the part's keys are known.
func (p *part) entered(known map[string]bool) bool {
	return slices.ContainsFunc(p.keys, func(k key) bool {
		return k.resolvable && !slices.ContainsFunc(k.fields, func(f selected) bool { return !known[f.name] })
	})
}
