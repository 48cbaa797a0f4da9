package validate

import "github.com/sluicegate/sluice/internal/graphql/syntax"

// maxListDepth is how many lists of introspection are too many inside each
// other: each multiplies the answer by the size of the schema.
const maxListDepth = 3

// checkIntrospection bounds the nesting of lists beneath __schema and __type.
// Fragments have no cycles here.
func (v *Validator) checkIntrospection() {
	if len(v.metas) == 0 {
		return
	}
	deepest := v.graph.totals // what it held is not needed any more
	for _, f := range v.graph.order {
		deepest[f] = v.listDepth(v.doc.Fragments[f].Selections, deepest)
	}
	for _, i := range v.metas {
		if v.listDepth(v.doc.Selections[i].Selections, deepest) >= maxListDepth {
			v.report("Maximum introspection depth exceeded", v.doc.Selections[i].Start)
		}
	}
}

// listDepth returns how many lists are nested at most in a selection set,
// maxListDepth for any number from there on.
func (v *Validator) listDepth(set syntax.Range, fragments []uint64) (deepest uint64) {
	for i := set.Lo; i < set.Hi && v.spend(1); i++ {
		sel := &v.doc.Selections[i]
		depth := uint64(0)
		switch {
		case sel.Kind != syntax.FragmentSpread:
			depth = v.listDepth(sel.Selections, fragments)
			if sel.Kind == syntax.Field && isListOfTypes(v.doc.Bytes(sel.Name)) {
				depth++
			}
		case v.resolved[i] != syntax.None:
			depth = fragments[v.resolved[i]]
		}
		deepest = max(deepest, min(depth, maxListDepth))
	}
	return deepest
}

// isListOfTypes reports whether an introspection field leads from types to types.
func isListOfTypes(name []byte) bool {
	switch string(name) {
	case "fields", "interfaces", "possibleTypes", "inputFields":
		return true
	default:
		return false
	}
}
