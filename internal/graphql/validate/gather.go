package validate

import (
	"fmt"
	"math"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// Bounds of Facts, in addition to Options.MaxExpanded.
const (
	maxObjects       = 1 << 16 // of Facts.Objects
	maxVariableLists = 4096    // of Cost.lists
	fragmentsPerMost = 4       // selections of every kind for each field allowed
)

// A gatherer visits an operation with its fragments where they are spread, and
// collects Facts. The number of steps is bounded for every document.
type gatherer struct {
	s         *schema.Schema
	doc       *syntax.Document
	o         Options
	names     nameIndex
	fragments marks // by name: the fragment
	variables marks // by name: index among the operation's variables

	facts  Facts // slices are used again
	scopes scopes
	known  numberTable // field, or field and set of objects: index in facts.Fields or facts.Narrowed, plus one
	roots  numberTable // root field: index in facts.Roots plus one
	cost   costs

	root          schema.TypeID
	firstVariable uint32        // of the operation, in doc.Variables
	keys          []syntax.Span // names in the answer that the root's __typename is selected under
	starts        []uint32      // of variables
	locations     []syntax.Location
	fields        int // that are left of what is allowed
	selections    int
	err           error
}

// A level is a selection set with what is around it.
type level struct {
	scope  scope
	depth  int // of recursion
	outer  bool
	meta   bool   // beneath __schema or __type
	sizing sizing // the size of lists by the arguments of the enclosing field
}

// Facts returns the facts of an operation, by its index, of a document that Check
// accepted. The error is a *syntax.LimitError when the
// operation is too large once its fragments are put where they are spread.
func (v *Validator) Facts(s *schema.Schema, doc *syntax.Document, operation int, o Options) (*Facts, error) {
	g := &v.gatherer
	g.begin(s, doc, o)
	op := &doc.Operations[operation]
	g.facts.Kind, g.facts.Tokens = op.Kind, doc.Tokens
	g.root = rootType(s, op.Kind)
	if g.root == schema.NoType {
		return nil, fmt.Errorf("gathering facts: the schema has no type for operations of the kind %s", op.Kind)
	}
	g.defineVariables(op)
	g.facts.Directives += op.Directives.Len()
	g.facts.Depth = g.set(op.Selections, &level{scope: scope{g.root, allObjects}, outer: true})
	v.effort += fragmentsPerMost*g.o.MaxExpanded - g.selections
	if g.err != nil {
		return nil, g.err
	}
	g.finish(op)
	return g.retained(op), nil
}

func (g *gatherer) begin(s *schema.Schema, doc *syntax.Document, o Options) {
	g.s, g.doc, g.o, g.err = s, doc, o.withDefaults(), nil
	if g.o.SizeArguments == nil {
		g.o.SizeArguments = sizeArguments
	}
	g.names.reset(doc)
	g.fragments.clear()
	for i := range doc.Fragments {
		g.fragments.set(g.names.number(doc.Fragments[i].Name), uint32(i))
	}
	f := &g.facts
	*f = Facts{
		Fields: f.Fields[:0], Below: f.Below[:0], Narrowed: f.Narrowed[:0], Objects: f.Objects[:0],
		Roots: f.Roots[:0], Variables: f.Variables[:0],
	}
	g.scopes.reset(s)
	g.known.reset()
	g.roots.reset()
	g.cost.reset()
	g.keys = g.keys[:0]
	g.fields, g.selections = g.o.MaxExpanded, fragmentsPerMost*g.o.MaxExpanded
}

func (g *gatherer) exceed(what string, most int) {
	if g.err == nil {
		g.err = &syntax.LimitError{What: what, Max: most}
	}
}

// set visits a selection set and returns the number of its levels.
func (g *gatherer) set(set syntax.Range, at *level) (levels uint16) {
	if at.depth > maxNesting {
		g.exceed("nested fragments", maxNesting)
	}
	for i := set.Lo; i < set.Hi && g.err == nil; i++ {
		g.selections--
		if g.selections < 0 {
			g.exceed("expanded selections", fragmentsPerMost*g.o.MaxExpanded)
			break
		}
		sel := &g.doc.Selections[i]
		g.facts.Directives += sel.Directives.Len()
		switch sel.Kind {
		case syntax.Field:
			levels = max(levels, g.field(sel, at))
		case syntax.InlineFragment:
			levels = max(levels, g.inside(sel.Name, sel.Selections, at))
		case syntax.FragmentSpread:
			levels = max(levels, g.spread(sel, at))
		}
	}
	return levels
}

func (g *gatherer) spread(sel *syntax.Selection, at *level) uint16 {
	i, ok := g.fragments.get(g.names.number(sel.Name))
	if !ok {
		g.invalid("fragment", sel.Name)
		return 0
	}
	f := &g.doc.Fragments[i]
	g.facts.Directives += f.Directives.Len()
	return g.inside(f.TypeCondition, f.Selections, at)
}

// inside visits a fragment on a type, which is empty for the type of the enclosing
// set.
func (g *gatherer) inside(condition syntax.Span, set syntax.Range, at *level) uint16 {
	inner := *at
	inner.depth++
	if condition.End > 0 && !at.meta {
		t, ok := g.s.TypeNamed(g.doc.Bytes(condition))
		if !ok || !g.s.Types[t].Kind.Composite() {
			g.invalid("type", condition)
			return 0
		}
		inner.scope = g.scopes.enter(at.scope, t)
	}
	return g.set(set, &inner)
}

func (g *gatherer) invalid(what string, name syntax.Span) {
	if g.err == nil {
		g.err = fmt.Errorf("gathering facts: there is no %s %s", what, clip(g.doc.Text(name), maxEcho))
	}
}

// field notes a field and returns how many levels it is with those beneath.
func (g *gatherer) field(sel *syntax.Selection, at *level) uint16 {
	g.fields--
	if g.fields < 0 {
		g.exceed("expanded fields", g.o.MaxExpanded)
		return 0
	}
	if sel.Alias.End > 0 {
		g.facts.Aliases++
	}
	if at.outer {
		g.facts.RootFields++
	}
	name := g.doc.Bytes(sel.Name)
	switch {
	case string(name) == schema.Typename:
		if at.outer && at.scope.objects != noObjects {
			g.keys = append(g.keys, sel.ResponseKey())
		}
		return 0
	case at.meta:
		return deeper(g.set(sel.Selections, &level{meta: true, depth: at.depth + 1}))
	}
	id, ok := g.s.FieldNamed(at.scope.of, name)
	if !ok {
		g.invalid("field", sel.Name)
		return 0
	}
	place := g.note(id, at.scope)
	below := g.beneath(sel, id, at)
	g.noteBelow(place, below)
	if at.outer && at.scope.objects != noObjects {
		g.noteRoot(name, below)
	}
	return deeper(below)
}

// deeper returns one level more.
func deeper(levels uint16) uint16 {
	if levels == math.MaxUint16 {
		return levels
	}
	return levels + 1
}

// beneath visits the selections of a field.
func (g *gatherer) beneath(sel *syntax.Selection, id schema.FieldID, at *level) uint16 {
	f := &g.s.Fields[id]
	inner := level{depth: at.depth + 1}
	if g.s.IsMeta(id) {
		g.facts.Introspects = true
		inner.meta = true
		g.cost.field()
		return g.set(sel.Selections, &inner)
	}
	if sel.Selections.Len() == 0 {
		g.cost.field()
		return 0
	}
	inner.scope = scope{f.Type.Type(), allObjects}
	size := g.sizing(sel)
	if !isList(f.Type) {
		g.cost.field()
		inner.sizing = size
		return g.set(sel.Selections, &inner)
	}
	if !size.known {
		size = at.sizing
	}
	if !size.known {
		size.least = uint64(g.o.ListSize)
	}
	list := g.cost.open(size)
	below := g.set(sel.Selections, &inner)
	if !g.cost.close(list) {
		g.exceed("lists whose size is a variable", maxVariableLists)
	}
	return below
}

// isList reports whether a type is a list, whatever is not null.
func isList(r schema.TypeRef) bool { return r.Nullable().IsList() }
