package validate

import (
	"bytes"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A position is a place that takes a value.
type position struct {
	ref       schema.TypeRef // the expected type, noRef if it is unknown
	parent    schema.TypeRef // the expected type of the enclosing list or object
	defaulted bool           // there is a default
}

// value checks a value and records its variables. If the whole value is invalid,
// its parts are not reported.
func (v *Validator) value(i uint32, at position) {
	val := &v.doc.Values[i]
	switch val.Kind {
	case syntax.VariableValue:
		v.use(val, at)
	case syntax.ListValue:
		v.list(val, at)
	case syntax.ObjectValue:
		v.object(val, at)
	case syntax.NullValue:
		if v.quiet == 0 && at.ref.IsNonNull() {
			v.unexpected(val, at.ref)
		}
	default:
		v.check(val, at.ref)
	}
}

func (v *Validator) list(val *syntax.Value, at position) {
	item := at.ref.Nullable()
	wrong := !item.IsList()
	if !wrong {
		item = item.Inner()
	} else {
		v.check(val, item)
		v.quiet++
	}
	for i := val.Items.Lo; i < val.Items.Hi && !v.over; i++ {
		v.value(i, position{ref: item, parent: at.ref})
	}
	if wrong {
		v.quiet--
	}
}

func (v *Validator) object(val *syntax.Value, at position) {
	v.uniqueFields(val.Items)
	among := schema.Span{}
	t := at.ref.Type()
	known := t != schema.NoType && v.s.Types[t].Kind == schema.InputObject
	if known {
		among = v.s.Types[t].Inputs
		if v.quiet == 0 {
			v.requiredFields(val, t)
		}
	} else {
		v.check(val, at.ref)
		v.quiet++
	}
	for i := val.Items.Lo; i < val.Items.Hi && !v.over; i++ {
		arg := &v.doc.Arguments[i]
		inner := position{ref: noRef, parent: at.ref}
		if n, ok := v.s.InputNamed(among, v.doc.Bytes(arg.Name)); ok {
			inner.ref, inner.defaulted = v.s.Inputs[n].Type, v.s.Inputs[n].HasDefault
		} else if known && v.quiet == 0 {
			v.report("Field "+v.quoted(arg.Name)+" is not defined by "+v.either("its type", "type "+v.typeQuoted(t))+"."+
				v.suggestInputs(arg.Name, among), arg.Start)
		}
		v.value(arg.Value, inner)
	}
	if !known {
		v.quiet--
	}
}

// requiredFields reports what an input object is not given, or too much of.
func (v *Validator) requiredFields(val *syntax.Value, t schema.TypeID) {
	among := v.s.Types[t].Inputs
	var have bitmap
	for i := val.Items.Lo; i < val.Items.Hi; i++ {
		if n, ok := v.s.InputNamed(among, v.doc.Bytes(v.doc.Arguments[i].Name)); ok {
			have.add(uint32(n) - among.Lo)
		}
	}
	for i := among.Lo; i < among.Hi; i++ {
		input := &v.s.Inputs[i]
		if input.Required() && !have.has(i-among.Lo) && !v.gives(val.Items, i-among.Lo, input.Name) {
			v.report(v.either("A required field was not provided.",
				`Field "`+v.s.Types[t].Name+"."+input.Name+`" of required type `+v.refQuoted(input.Type)+" was not provided."), val.Text.Start)
		}
	}
	if v.s.Types[t].OneOf {
		v.oneOf(val, t)
	}
}

func (v *Validator) oneOf(val *syntax.Value, t schema.TypeID) {
	if v.distinctNames(val.Items) != 1 {
		v.report("OneOf Input Object "+v.either("", v.typeQuoted(t)+" ")+"must specify exactly one key.", val.Text.Start)
		return
	}
	arg := &v.doc.Arguments[val.Items.Hi-1] // of equal names the last counts
	if v.doc.Values[arg.Value].Kind == syntax.NullValue {
		v.report(`Field "`+v.either("", v.s.Types[t].Name+".")+v.text(arg.Name)+`" must be non-null.`, val.Text.Start)
	}
}

// distinctNames returns how many names the fields of an object have, 2 for any
// number from there on.
func (v *Validator) distinctNames(fields syntax.Range) int {
	for i := fields.Lo; i < fields.Hi; i++ {
		if !bytes.Equal(v.doc.Bytes(v.doc.Arguments[i].Name), v.doc.Bytes(v.doc.Arguments[fields.Lo].Name)) {
			return 2
		}
	}
	return min(1, fields.Len())
}

// uniqueFields reports fields of an object that are given again.
func (v *Validator) uniqueFields(fields syntax.Range) {
	args := v.doc.Arguments[fields.Lo:fields.Hi]
	if len(args) <= fewArguments && !v.anyEqual(args) {
		return
	}
	v.inputs.clear()
	for i := range args {
		v.uniqueName(args[i].Name, "input field")
	}
}

func (v *Validator) unexpected(val *syntax.Value, ref schema.TypeRef) {
	found := v.print(val)
	v.report(v.either("Unexpected value "+found+".", "Expected value of type "+v.refQuoted(ref)+", found "+found+"."), val.Text.Start)
}

// check checks a whole value against a type.
func (v *Validator) check(val *syntax.Value, ref schema.TypeRef) {
	if v.quiet > 0 || ref.Type() == schema.NoType {
		return
	}
	t := &v.s.Types[ref.Type()]
	switch t.Kind {
	case schema.Enum:
		v.enum(val, ref.Type())
	case schema.Scalar:
		if t.BuiltIn {
			v.scalar(val, t.Name)
		}
	default:
		v.unexpected(val, ref)
	}
}

// scalar checks a value against a scalar of the specification. Other scalars accept
// every value.
func (v *Validator) scalar(val *syntax.Value, name string) {
	kind := val.Kind
	isText := kind == syntax.StringValue || kind == syntax.BlockStringValue
	ok, why := true, ""
	switch name {
	case "Int":
		ok, why = kind == syntax.IntValue, "a non-integer value"
		if ok && !v.is32Bit(val) {
			v.report(v.either("Unexpected value ", "Int cannot represent non 32-bit signed integer value: ")+v.print(val)+v.either(".", ""), val.Text.Start)
			return
		}
		why = "non-integer value"
	case "Float":
		ok, why = kind == syntax.IntValue || kind == syntax.FloatValue, "non numeric value"
	case "String":
		ok, why = isText, "a non string value"
	case "Boolean":
		ok, why = kind == syntax.BooleanValue, "a non boolean value"
	case "ID":
		ok, why = isText || kind == syntax.IntValue, "a non-string and non-integer value"
	}
	if !ok {
		v.report(v.either("Unexpected value "+v.print(val)+".", name+" cannot represent "+why+": "+v.print(val)), val.Text.Start)
	}
}

func (v *Validator) is32Bit(val *syntax.Value) bool {
	text := v.doc.Bytes(val.Text)
	if len(text) > len("-2147483648") {
		return false
	}
	_, err := strconv.ParseInt(string(text), 10, 32)
	return err == nil
}

func (v *Validator) enum(val *syntax.Value, t schema.TypeID) {
	if val.Kind != syntax.EnumValueKind {
		found := v.print(val)
		v.report(v.either("Unexpected value "+found+".",
			"Enum "+v.typeQuoted(t)+" cannot represent non-enum value: "+found+"."+v.suggestValues(found, t)), val.Text.Start)
		return
	}
	if name := v.doc.Bytes(val.Text); !v.s.ValueNamed(t, name) {
		v.report("Value "+v.quoted(val.Text)+" does not exist in "+v.either("the enum.", v.typeQuoted(t)+" enum."+v.suggestValues(v.text(val.Text), t)), val.Text.Start)
	}
}
