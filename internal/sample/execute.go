package sample

import (
	"encoding/json"
	"errors"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// object is a value with fields. A field's value is nil, a string, a bool, a
// number, an object, or a []any of these.
type object struct {
	typ string // name of its type, never of an interface
	get func(field string, args arguments) any
}

// arguments are those of one field, by name, as JSON has them; defaults are in.
type arguments map[string]any

// run is one operation on its way.
type run struct {
	schema    *schema.Schema
	doc       *syntax.Document
	variables map[string]any
	fields    int
	out       []byte
}

var errTooLarge = errors.New("the answer would be too large; ask for less")

// data runs the operation and writes the answer.
func (r *run) data(op *syntax.Operation, root object) ([]byte, error) {
	r.out = append(r.out, `{"data":`...)
	if err := r.object(root, []syntax.Range{op.Selections}); err != nil {
		return nil, err
	}
	return append(r.out, '}'), nil
}

// group is what is selected under one name of the answer.
type group struct {
	key    string
	fields []uint32 // in Selections
}

// collect lists what is selected on an object of a type, in the order of the
// answer.
func (r *run) collect(typ schema.TypeID, set syntax.Range, groups []group) []group {
	for i := set.Lo; i < set.Hi; i++ {
		sel := &r.doc.Selections[i]
		if !r.included(sel) {
			continue
		}
		switch sel.Kind {
		case syntax.Field:
			groups = addTo(groups, r.doc.Text(sel.ResponseKey()), i)
		case syntax.InlineFragment:
			if sel.Name.End == 0 || r.applies(typ, sel.Name) {
				groups = r.collect(typ, sel.Selections, groups)
			}
		case syntax.FragmentSpread:
			if f := r.fragment(r.doc.Text(sel.Name)); f != nil && r.applies(typ, f.TypeCondition) {
				groups = r.collect(typ, f.Selections, groups)
			}
		}
	}
	return groups
}

func addTo(groups []group, key string, field uint32) []group {
	for i := range groups {
		if groups[i].key == key {
			groups[i].fields = append(groups[i].fields, field)
			return groups
		}
	}
	return append(groups, group{key, []uint32{field}})
}

func (r *run) fragment(name string) *syntax.Fragment {
	for i := range r.doc.Fragments {
		if r.doc.Text(r.doc.Fragments[i].Name) == name {
			return &r.doc.Fragments[i]
		}
	}
	return nil
}

// applies tells whether an object of a type is of the type that a fragment is on.
func (r *run) applies(typ schema.TypeID, condition syntax.Span) bool {
	on, found := r.schema.TypeNamed(r.doc.Bytes(condition))
	return found && r.schema.Possible(on).Has(typ)
}

// included heeds @skip and @include.
func (r *run) included(sel *syntax.Selection) bool {
	for _, d := range r.doc.Directives[sel.Directives.Lo:sel.Directives.Hi] {
		name := r.doc.Text(d.Name)
		if name != "skip" && name != "include" {
			continue
		}
		for _, a := range r.doc.Arguments[d.Arguments.Lo:d.Arguments.Hi] {
			if on, _ := r.value(a.Value); on == (name == "skip") {
				return false
			}
		}
	}
	return true
}

// object writes what is selected of an object, by several selection sets that
// stand for the same place of the answer.
func (r *run) object(o object, sets []syntax.Range) error {
	typ, _ := r.schema.TypeNamed([]byte(o.typ))
	var groups []group
	for _, set := range sets {
		groups = r.collect(typ, set, groups)
	}
	r.out = append(r.out, '{')
	for i, g := range groups {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.out = append(appendJSON(r.out, g.key), ':')
		if err := r.field(typ, o, g); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

func (r *run) field(typ schema.TypeID, o object, g group) error {
	if r.fields++; r.fields > mostFields {
		return errTooLarge
	}
	first := &r.doc.Selections[g.fields[0]]
	name := r.doc.Text(first.Name)
	if name == schema.Typename {
		r.out = appendJSON(r.out, o.typ)
		return nil
	}
	id, _ := r.schema.FieldNamed(typ, []byte(name)) // it is there: the operation is valid
	var sets []syntax.Range
	for _, i := range g.fields {
		sets = append(sets, r.doc.Selections[i].Selections)
	}
	return r.complete(o.get(name, r.arguments(first, &r.schema.Fields[id])), sets)
}

// complete writes a value. The data is of the types that the schema says.
func (r *run) complete(value any, sets []syntax.Range) error {
	switch v := value.(type) {
	case object:
		return r.object(v, sets)
	case []any:
		r.out = append(r.out, '[')
		for i, one := range v {
			if i > 0 {
				r.out = append(r.out, ',')
			}
			if err := r.complete(one, sets); err != nil {
				return err
			}
		}
		r.out = append(r.out, ']')
		return nil
	}
	r.out = appendJSON(r.out, value)
	return nil
}

func appendJSON(out []byte, leaf any) []byte {
	text, err := json.Marshal(leaf)
	if err != nil {
		text = []byte("null") // the data has no such values
	}
	return append(out, text...)
}
