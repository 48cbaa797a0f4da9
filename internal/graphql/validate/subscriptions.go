package validate

import (
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A rootSet is what the outermost selection set of a subscription selects.
type rootSet struct {
	fields [][]uint32 // selections, those of one name in the answer together
	skips  []uint32   // places of @skip and @include
}

// checkSubscriptions checks that each subscription has one root field, which is
// not of introspection and not left to @skip or @include: an answer that could
// have none has no source of events.
func (v *Validator) checkSubscriptions() {
	for i := range v.doc.Operations {
		op := &v.doc.Operations[i]
		if op.Kind != syntax.Subscription || v.s.Subscription == schema.NoType || v.over {
			continue
		}
		var roots rootSet
		v.inputs.clear()
		v.graph.reached.clear()
		v.rootFields(op.Selections, &roots, 0)
		v.reportRoots(op, &roots)
	}
}

func (v *Validator) reportRoots(op *syntax.Operation, roots *rootSet) {
	who := "Anonymous Subscription"
	if op.Name.End > 0 {
		who = "Subscription " + v.quoted(op.Name)
	}
	if len(roots.skips) > 0 {
		v.report(who+" must not use `@skip` and `@include` directives in the top level selection.", roots.skips...)
		return
	}
	var others []uint32
	for i, fields := range roots.fields {
		if i > 0 {
			others = append(others, fields...)
		}
	}
	if len(others) > 0 {
		v.report(who+" must select only one top level field.", v.starts(others)...)
	}
	for _, fields := range roots.fields {
		name := v.doc.Bytes(v.doc.Selections[fields[0]].Name)
		if len(name) > 1 && name[0] == '_' && name[1] == '_' {
			v.report(who+" must not select an introspection top level field.", v.starts(fields)...)
		}
	}
}

// starts returns where selections start.
func (v *Validator) starts(selections []uint32) []uint32 {
	places := make([]uint32, 0, min(len(selections), maxPlaces))
	for _, i := range selections[:min(len(selections), maxPlaces)] {
		places = append(places, v.doc.Selections[i].Start)
	}
	return places
}

// rootFields gathers the fields that the root object has, each fragment once.
func (v *Validator) rootFields(set syntax.Range, roots *rootSet, depth int) {
	for i := set.Lo; i < set.Hi && depth < maxNesting && v.spend(1); i++ {
		sel := &v.doc.Selections[i]
		v.findSkips(sel.Directives, roots)
		switch sel.Kind {
		case syntax.Field:
			v.rootField(i, sel, roots)
		case syntax.InlineFragment:
			if sel.Name.End == 0 || v.rootIs(schema.TypeID(v.resolved[i])) {
				v.rootFields(sel.Selections, roots, depth+1)
			}
		case syntax.FragmentSpread:
			f := v.resolved[i]
			if f == syntax.None || v.graph.reached.has(f) {
				continue
			}
			v.graph.reached.set(f, 0)
			fragment := &v.doc.Fragments[f]
			if t, _ := v.s.TypeNamed(v.doc.Bytes(fragment.TypeCondition)); v.rootIs(t) {
				v.rootFields(fragment.Selections, roots, depth+1)
			}
		}
	}
}

// rootIs reports whether a fragment on a type applies to the root object.
func (v *Validator) rootIs(t schema.TypeID) bool {
	return t != schema.NoType && v.s.Possible(t).Has(v.s.Subscription)
}

func (v *Validator) rootField(i uint32, sel *syntax.Selection, roots *rootSet) {
	number := v.names.number(sel.ResponseKey())
	at, ok := v.inputs.get(number)
	if !ok {
		at = uint32(len(roots.fields))
		v.inputs.set(number, at)
		roots.fields = append(roots.fields, nil)
	}
	roots.fields[at] = append(roots.fields[at], i)
}

func (v *Validator) findSkips(uses syntax.Range, roots *rootSet) {
	for i := uses.Lo; i < uses.Hi; i++ {
		use := &v.doc.Directives[i]
		if name := string(v.doc.Bytes(use.Name)); name == "skip" || name == "include" {
			roots.skips = append(roots.skips, use.Start)
		}
	}
}
