package validate

import (
	"bytes"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// An owner is what arguments are given to: a field or a directive.
type owner struct {
	among     schema.Span // in Schema.Inputs: what it takes
	known     bool        // what it takes is known, so that others are wrong
	resolved  bool        // its definition is known
	directive bool
	name      syntax.Span
	parent    schema.TypeID // of a field
	start     uint32
}

// arguments checks what a field or directive is given.
func (v *Validator) arguments(given syntax.Range, to owner) {
	v.uniqueArguments(given)
	var have bitmap
	for i := given.Lo; i < given.Hi && !v.over; i++ {
		arg := &v.doc.Arguments[i]
		at := position{ref: noRef, parent: noRef}
		if to.resolved {
			if n, ok := v.s.InputNamed(to.among, v.doc.Bytes(arg.Name)); ok {
				input := &v.s.Inputs[n]
				at.ref, at.defaulted = input.Type, input.HasDefault
				have.add(uint32(n) - to.among.Lo)
			} else if to.known {
				v.unknownArgument(arg, &to)
			}
		}
		v.value(arg.Value, at)
	}
	if !to.known {
		return
	}
	for i := to.among.Lo; i < to.among.Hi; i++ {
		input := &v.s.Inputs[i]
		if input.Required() && !have.has(i-to.among.Lo) && !v.gives(given, i-to.among.Lo, input.Name) {
			v.missingArgument(input, &to)
		}
	}
}

// bitmap holds which of the first 64 inputs of something are given.
type bitmap uint64

func (b *bitmap) add(i uint32)     { *b |= 1 << i } // of no effect from 64 on
func (b bitmap) has(i uint32) bool { return b&(1<<i) != 0 }

// gives looks for an input that a bitmap has no room for.
func (v *Validator) gives(given syntax.Range, i uint32, name string) bool {
	if i < 64 {
		return false
	}
	for at := given.Lo; at < given.Hi; at++ {
		if string(v.doc.Bytes(v.doc.Arguments[at].Name)) == name {
			return true
		}
	}
	return false
}

func (v *Validator) unknownArgument(arg *syntax.Argument, to *owner) {
	on := "directive " + `"@` + v.text(to.name) + `"`
	if !to.directive {
		on = `field "` + v.either("", v.s.Types[to.parent].Name+".") + v.text(to.name) + `"`
	}
	v.report("Unknown argument "+v.quoted(arg.Name)+" on "+on+"."+v.suggestInputs(arg.Name, to.among), arg.Start)
}

func (v *Validator) missingArgument(input *schema.Input, to *owner) {
	what := `Field "`
	if to.directive {
		what = `Directive "@`
	}
	what += v.text(to.name) + `"`
	v.report(v.either(what+" is missing a required argument.",
		what+` argument "`+input.Name+`" of type `+v.refQuoted(input.Type)+" is required, but it was not provided."), to.start)
}

// fewArguments is up to how many arguments are compared with each other, which
// is faster than numbering their names.
const fewArguments = 8

// uniqueArguments reports names that several arguments have.
func (v *Validator) uniqueArguments(given syntax.Range) {
	args := v.doc.Arguments[given.Lo:given.Hi]
	if len(args) <= fewArguments && !v.anyEqual(args) {
		return
	}
	v.inputs.clear()
	again := false
	for i := range args {
		number := v.names.number(args[i].Name)
		first, twice := v.inputs.get(number)
		if !twice {
			v.inputs.set(number, uint32(i))
		}
		again = again || twice && first != uint32(i)
	}
	if again {
		v.reportEqual(args)
	}
}

func (v *Validator) anyEqual(args []syntax.Argument) bool {
	for i := range args {
		for j := range i {
			if bytes.Equal(v.doc.Bytes(args[i].Name), v.doc.Bytes(args[j].Name)) {
				return true
			}
		}
	}
	return false
}

// reportEqual reports each name that several arguments have once.
func (v *Validator) reportEqual(args []syntax.Argument) {
	places := map[uint32][]uint32{}
	for i := range args {
		number := v.names.number(args[i].Name)
		places[number] = append(places[number], args[i].Name.Start)
	}
	for i := range args {
		at := args[i].Name
		if all := places[v.names.number(at)]; len(all) > 1 && all[0] == at.Start {
			v.report("There can be only one argument named "+v.quoted(at)+".", all...)
		}
	}
}

// directives checks the uses of directives at a place that is in, or is, a field.
func (v *Validator) directives(uses syntax.Range, where schema.DirectiveLocation, of schema.FieldID) {
	if uses.Len() > 1 {
		v.uniqueDirectives(uses)
	}
	for i := uses.Lo; i < uses.Hi && !v.over; i++ {
		use := &v.doc.Directives[i]
		to := owner{name: use.Name, start: use.Start, directive: true, parent: schema.NoType}
		n, ok := v.s.DirectiveNamed(v.doc.Bytes(use.Name))
		if ok {
			d := &v.s.Directives[n]
			to.among, to.known, to.resolved = d.Arguments, true, true
			if !d.Allows(where) {
				v.report(`Directive "@`+v.text(use.Name)+`" may not be used on `+where.String()+".", use.Start)
			}
		} else {
			v.report(`Unknown directive "@`+v.text(use.Name)+`".`, use.Start)
			// The reference takes the arguments for those of the field around.
			to.among, to.resolved = v.fieldRow(of).Arguments, of != schema.NoField
		}
		v.arguments(use.Arguments, to)
	}
}

// uniqueDirectives reports directives that are used again where they may be
// used once.
func (v *Validator) uniqueDirectives(uses syntax.Range) {
	v.inputs.clear()
	for i := uses.Lo; i < uses.Hi; i++ {
		use := &v.doc.Directives[i]
		n, ok := v.s.DirectiveNamed(v.doc.Bytes(use.Name))
		if !ok || v.s.Directives[n].Repeatable {
			continue
		}
		if first, twice := v.inputs.get(uint32(n)); twice {
			v.report(`The directive "@`+v.text(use.Name)+`" can only be used once at this location.`, first, use.Start)
			continue
		}
		v.inputs.set(uint32(n), use.Start)
	}
}
