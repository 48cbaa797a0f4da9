package graphql

import (
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// maxPlaces bounds the reported locations of a field.
const maxPlaces = 5

// A finder looks for locations in a valid document.
type finder struct {
	doc    syntax.Document
	schema *schema.Schema
	wanted schema.FieldID // NoField: any

	places  []syntax.Location // of wanted, the first ones
	deepest uint32            // offset of the most nested field
	level   int               // its depth
	left    int               // fields left to visit
}

// find searches the operation with a name. The ceilings bound the document, so
// left suffices.
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

// walk visits a selection set on a type.
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

// placeText formats locations as line:column.
func placeText(places ...syntax.Location) (text string) {
	for i, at := range places {
		if i > 0 {
			text += ", "
		}
		text += strconv.Itoa(at.Line) + ":" + strconv.Itoa(at.Column)
	}
	return text
}
