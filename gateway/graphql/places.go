package graphql

import (
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// maxPlaces bounds how many places of a field are told.
const maxPlaces = 5

// A finder looks for places in a document that is known to be valid.
type finder struct {
	doc    syntax.Document
	schema *schema.Schema
	wanted schema.FieldID // NoField: none in particular

	places  []syntax.Location // of wanted, the first ones
	deepest uint32            // where the most nested field is
	level   int               // of that
	left    int               // fields that may still be looked at
}

// find looks through the operation of a name. Texts were held against the
// ceilings before, so that left is enough.
func (s *Stage) findPlaces(text, name []byte, wanted schema.FieldID) *finder {
	f := &finder{schema: s.schema, wanted: wanted, left: max(s.opts.Ceilings.Fields, 10_000)}
	if syntax.Parse(&f.doc, text, s.opts.Ceilings.limits()) != nil {
		return f
	}
	at, unclear := validate.Select(&f.doc, string(name))
	if unclear != nil {
		return f
	}
	o := &f.doc.Operations[at]
	root := [...]schema.TypeID{syntax.Query: s.schema.Query, syntax.Mutation: s.schema.Mutation, syntax.Subscription: s.schema.Subscription}
	f.walk(root[o.Kind], o.Selections, 1)
	return f
}

// walk goes through a selection set on a type.
func (f *finder) walk(t schema.TypeID, set syntax.Range, level int) {
	for i := set.Lo; i < set.Hi && f.left > 0; i++ {
		sel := &f.doc.Selections[i]
		f.left--
		switch sel.Kind {
		case syntax.Field:
			f.field(t, sel, level)
		case syntax.InlineFragment:
			f.walk(f.condition(t, sel.Name), sel.Selections, level)
		case syntax.FragmentSpread:
			for j := range f.doc.Fragments {
				if spread := &f.doc.Fragments[j]; f.doc.Text(spread.Name) == f.doc.Text(sel.Name) {
					f.walk(f.condition(t, spread.TypeCondition), spread.Selections, level)
				}
			}
		}
	}
}

// condition returns the type that a fragment is on.
func (f *finder) condition(t schema.TypeID, name syntax.Span) schema.TypeID {
	if on, ok := f.schema.TypeNamed(f.doc.Bytes(name)); ok {
		return on
	}
	return t
}

func (f *finder) field(t schema.TypeID, sel *syntax.Selection, level int) {
	id, ok := f.schema.FieldNamed(t, f.doc.Bytes(sel.Name))
	if !ok {
		return // __typename
	}
	if level > f.level {
		f.level, f.deepest = level, sel.Start
	}
	if id == f.wanted && len(f.places) < maxPlaces {
		f.places = append(f.places, f.doc.Location(sel.Start))
	}
	f.walk(f.schema.Fields[id].Type.Type(), sel.Selections, level+1)
}

// placeText writes places as line:column.
func placeText(places ...syntax.Location) (text string) {
	for i, at := range places {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(at.Line) + ":" + strconv.Itoa(at.Column)
	}
	return text
}
