package sdl

import (
	"math"
	"strconv"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// defaults checks that default values are of the types that they are for.
func (c *checker) defaults() {
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		owner := c.name(def.Name)
		if def.Kind == syntax.DirectiveDef {
			c.defaultsOf(def.Inputs, "@"+owner, true)
			continue
		}
		c.defaultsOf(def.Inputs, owner, false)
		for f := def.Fields.Lo; f < def.Fields.Hi; f++ {
			field := &c.doc.FieldDefs[f]
			c.defaultsOf(field.Arguments, owner+"."+c.name(field.Name), true)
		}
	}
}

func (c *checker) defaultsOf(inputs syntax.Range, owner string, arguments bool) {
	for i := inputs.Lo; i < inputs.Hi && !c.full(); i++ {
		input := &c.doc.InputDefs[i]
		if input.Default == syntax.None {
			continue
		}
		name := owner + "." + c.name(input.Name)
		if arguments {
			name = owner + "(" + c.name(input.Name) + ":)"
		}
		l := literal{c: c, of: clip(name)}
		l.check(input.Default, input.Type)
	}
}

// A literal is a default value that is being checked.
type literal struct {
	c  *checker
	of string // what it is the default of
}

func (l *literal) wrong(v *syntax.Value, format string, args ...any) {
	l.c.addf(v.Text.Start, nil, "%s has an invalid default value: "+format, append([]any{l.of}, args...)...)
}

// text returns a value as written, for messages.
func (l *literal) text(v *syntax.Value) string { return clip(l.c.name(v.Text)) }

// check holds a value against a type.
func (l *literal) check(value, ref uint32) { l.checkFor(value, ref, ref) }

// checkFor holds a value against a type, where one that stands for a list of it
// is wanted: messages name that list.
func (l *literal) checkFor(value, ref, wanted uint32) {
	doc := l.c.doc
	v, t := &doc.Values[value], &doc.Types[ref]
	if t.Kind == syntax.NonNullType {
		if v.Kind == syntax.NullValue {
			l.wrong(v, `Expected value of type "%s", found null.`, typeText(doc, ref))
			return
		}
		ref, t = t.Of, &doc.Types[t.Of]
	}
	switch {
	case v.Kind == syntax.NullValue || l.c.full():
	case t.Kind == syntax.ListType && v.Kind == syntax.ListValue:
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			l.check(i, t.Of)
		}
	case t.Kind == syntax.ListType: // one value stands for a list of it
		l.checkFor(value, t.Of, wanted)
	default:
		l.checkNamed(v, l.c.innermost(ref), wanted)
	}
}

func (l *literal) checkNamed(v *syntax.Value, t *typ, wanted uint32) {
	switch {
	case t == nil:
	case t.kind == syntax.InputObjectDef && v.Kind != syntax.ObjectValue:
		name := typeText(l.c.doc, wanted)
		if v.Kind == syntax.ListValue {
			name = strings.TrimSuffix(name, "!") // as the reference implementation has it
		}
		l.wrong(v, `Expected value of type "%s", found %s.`, name, l.text(v))
	case t.kind == syntax.InputObjectDef:
		l.checkObject(v, t)
	case t.kind == syntax.EnumDef:
		l.checkEnum(v, t)
	case t.kind == syntax.ScalarDef && t.builtIn:
		l.checkScalar(v, t.name)
	}
}

func (l *literal) checkEnum(v *syntax.Value, t *typ) {
	if v.Kind != syntax.EnumValueKind {
		l.wrong(v, `Enum "%s" cannot represent non-enum value: %s.`, t.name, l.text(v))
		return
	}
	// The values of a built-in enum are not gathered.
	if _, ok := l.c.valueAt[[2]uint32{t.id, l.c.id(l.c.name(v.Text))}]; !ok && !t.builtIn {
		l.wrong(v, `Value "%s" does not exist in "%s" enum.`, l.text(v), t.name)
	}
}

func (l *literal) checkObject(v *syntax.Value, t *typ) {
	c := l.c
	fields := c.doc.Arguments[v.Items.Lo:v.Items.Hi]
	for _, field := range fields {
		i, ok := c.inputAt[[2]uint32{t.id, c.id(c.name(field.Name))}]
		if !ok {
			l.wrong(v, `Field "%s" is not defined by type "%s".`, clip(c.name(field.Name)), t.name)
			continue
		}
		l.check(field.Value, c.doc.InputDefs[i].Type)
	}
	if t.oneOf {
		l.checkOneOf(v, t)
	}
	// The fields are noted after they have been checked: objects inside of them note their own.
	c.others.clear()
	for _, field := range fields {
		c.others.set(c.id(c.name(field.Name)), 0)
	}
	for _, i := range t.required {
		if _, ok := c.others.get(c.inputIDs[i]); !ok && !c.full() {
			input := &c.doc.InputDefs[i]
			l.wrong(v, `Field "%s.%s" of required type "%s" was not provided.`, t.name, c.name(input.Name), typeText(c.doc, input.Type))
		}
	}
}

func (l *literal) checkOneOf(v *syntax.Value, t *typ) {
	if v.Items.Len() != 1 {
		l.wrong(v, `OneOf Input Object "%s" must specify exactly one key.`, t.name)
		return
	}
	field := &l.c.doc.Arguments[v.Items.Lo]
	if l.c.doc.Values[field.Value].Kind == syntax.NullValue {
		l.wrong(v, `Field "%s.%s" must be non-null.`, t.name, l.c.name(field.Name))
	}
}

// checkScalar holds a value against a scalar of the specification.
func (l *literal) checkScalar(v *syntax.Value, scalar string) {
	text := l.c.name(v.Text)
	switch scalar {
	case "Int":
		if v.Kind != syntax.IntValue {
			l.wrong(v, "Int cannot represent non-integer value: %s", l.text(v))
		} else if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			l.wrong(v, "Int cannot represent non 32-bit signed integer value: %s", l.text(v))
		}
	case "Float":
		number, err := strconv.ParseFloat(text, 64)
		if v.Kind != syntax.IntValue && v.Kind != syntax.FloatValue || err != nil || math.IsInf(number, 0) {
			l.wrong(v, "Float cannot represent non numeric value: %s", l.text(v))
		}
	case "String":
		if v.Kind != syntax.StringValue && v.Kind != syntax.BlockStringValue {
			l.wrong(v, "String cannot represent a non string value: %s", l.text(v))
		}
	case "Boolean":
		if v.Kind != syntax.BooleanValue {
			l.wrong(v, "Boolean cannot represent a non boolean value: %s", l.text(v))
		}
	case "ID":
		if v.Kind != syntax.StringValue && v.Kind != syntax.BlockStringValue && v.Kind != syntax.IntValue {
			l.wrong(v, "ID cannot represent a non-string and non-integer value: %s", l.text(v))
		}
	}
}
