package sdl

import (
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// maxFillings bounds the search for cycles of default values: how many fields
// that a value leaves out are looked at. Real schemas have some hundred.
const maxFillings = 2_000_000

// defaultCycles reports input fields whose default value would have to be put
// into itself: what it leaves out is filled with default values, and what they
// leave out again.
func (c *checker) defaultCycles() {
	f := fillings{c: c, left: maxFillings, at: map[uint32]int{}, done: map[uint32]bool{}, filled: map[*typ][]uint32{}}
	for _, t := range c.types {
		for _, i := range t.inputs {
			input := &c.doc.InputDefs[i]
			if of := c.innermost(input.Type); input.Default != syntax.None && of != nil && of.kind == syntax.InputObjectDef {
				f.filled[t] = append(f.filled[t], i)
			}
		}
	}
	for _, t := range c.types {
		for _, i := range f.filled[t] {
			f.fill(t, i)
		}
	}
}

// fillings searches default values depth first, each once.
type fillings struct {
	c      *checker
	left   int               // how many more fields may be looked at
	filled map[*typ][]uint32 // the fields of input objects that have an input object for a default value
	path   []string          // the fields whose default values are being gone through
	at     map[uint32]int    // where in path a field is
	done   map[uint32]bool
}

// fill goes through the default value of a field of t, which is put in where a
// value leaves the field out.
func (f *fillings) fill(t *typ, field uint32) {
	c := f.c
	input := &c.doc.InputDefs[field]
	if from, open := f.at[field]; open {
		via := ""
		if others := f.path[from+1:]; len(others) > 0 {
			via = " via the default values of: " + strings.Join(others[:min(len(others), maxRelated)], ", ")
		}
		c.addf(input.Start, nil, "Invalid circular reference. The default value of Input Object field %s references itself%s.", f.path[from], via)
		return
	}
	if f.done[field] || c.full() {
		return
	}
	f.done[field] = true
	f.at[field] = len(f.path)
	f.path = append(f.path, clip(t.name+"."+c.name(input.Name)))
	f.value(input.Default, c.innermost(input.Type))
	f.path = f.path[:len(f.path)-1]
	delete(f.at, field)
}

// value goes through a value of an input object or of a list of such.
func (f *fillings) value(value uint32, t *typ) {
	c := f.c
	v := &c.doc.Values[value]
	switch {
	case f.left == 0:
		return
	case v.Kind == syntax.ListValue:
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			f.value(i, t)
		}
		return
	case v.Kind != syntax.ObjectValue || t == nil || t.kind != syntax.InputObjectDef:
		return
	}
	given := map[uint32]bool{}
	for _, field := range c.doc.Arguments[v.Items.Lo:v.Items.Hi] {
		if i, ok := c.inputAt[[2]uint32{t.id, c.id(c.name(field.Name))}]; ok {
			given[i] = true
			f.value(field.Value, c.innermost(c.doc.InputDefs[i].Type))
		}
	}
	for _, i := range f.filled[t] {
		if f.left == 0 {
			return
		}
		if f.left--; f.left == 0 {
			c.addf(v.Text.Start, nil, "the default values of input objects leave out too many fields to be searched for cycles")
		}
		if !given[i] {
			f.fill(t, i)
		}
	}
}
