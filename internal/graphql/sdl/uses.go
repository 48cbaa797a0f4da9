package sdl

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// The places in schemas where directives stand, as indices of places.
const (
	onSchema = iota
	onScalar
	onObject
	onFieldDefinition
	onArgumentDefinition
	onInterface
	onUnion
	onEnum
	onEnumValue
	onInputObject
	onInputFieldDefinition
)

// places names the places in schemas where directives stand.
var places = [...]string{
	onSchema:               "SCHEMA",
	onScalar:               "SCALAR",
	onObject:               "OBJECT",
	onFieldDefinition:      "FIELD_DEFINITION",
	onArgumentDefinition:   "ARGUMENT_DEFINITION",
	onInterface:            "INTERFACE",
	onUnion:                "UNION",
	onEnum:                 "ENUM",
	onEnumValue:            "ENUM_VALUE",
	onInputObject:          "INPUT_OBJECT",
	onInputFieldDefinition: "INPUT_FIELD_DEFINITION",
}

// placeOf gives the place of a definition's directives by its kind.
var placeOf = [...]int{
	syntax.SchemaDef:      onSchema,
	syntax.ScalarDef:      onScalar,
	syntax.ObjectDef:      onObject,
	syntax.InterfaceDef:   onInterface,
	syntax.UnionDef:       onUnion,
	syntax.EnumDef:        onEnum,
	syntax.InputObjectDef: onInputObject,
}

// directiveUses checks every use of a directive. A directive that is not
// repeatable stands once on a type, its extensions included, and once on the
// schema.
func (c *checker) directiveUses() {
	c.members.clear()
	for i := range c.doc.TypeDefs {
		if def := &c.doc.TypeDefs[i]; def.Kind == syntax.SchemaDef {
			c.usesAt(def.Directives, onSchema)
		}
	}
	for _, t := range c.types {
		c.members.clear()
		for _, def := range t.all {
			c.usesAt(def.Directives, placeOf[def.Kind])
		}
	}
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		for f := def.Fields.Lo; f < def.Fields.Hi; f++ {
			field := &c.doc.FieldDefs[f]
			c.usesOn(field.Directives, onFieldDefinition)
			c.usesOnInputs(field.Arguments, onArgumentDefinition)
		}
		if def.Kind == syntax.DirectiveDef {
			c.usesOnInputs(def.Inputs, onArgumentDefinition)
		} else {
			c.usesOnInputs(def.Inputs, onInputFieldDefinition)
		}
	}
	for i := range c.doc.EnumValues {
		c.usesOn(c.doc.EnumValues[i].Directives, onEnumValue)
	}
}

func (c *checker) usesOnInputs(inputs syntax.Range, place int) {
	for i := inputs.Lo; i < inputs.Hi; i++ {
		c.usesOn(c.doc.InputDefs[i].Directives, place)
	}
}

// usesOn checks the directives of what is in one place.
func (c *checker) usesOn(uses syntax.Range, place int) {
	if uses.Len() > 0 {
		c.members.clear()
		c.usesAt(uses, place)
	}
}

// usesAt checks directives. Those that members holds stand there already.
func (c *checker) usesAt(uses syntax.Range, place int) {
	for i := uses.Lo; i < uses.Hi; i++ {
		use := &c.doc.Directives[i]
		name := c.name(use.Name)
		c.useArguments(use)
		d := c.directives[c.id(name)]
		if d == nil {
			c.addf(use.Start, nil, `Unknown directive "@%s".`, name)
			continue
		}
		if d.places&(1<<place) == 0 {
			c.addf(use.Start, nil, `Directive "@%s" may not be used on %s.`, name, places[place])
		}
		if !d.repeatable {
			c.unique(c.id(name), use.Start, `The directive "@%s" can only be used once at this location.`, name)
		}
		c.useFits(use, d)
	}
}

// useArguments reports arguments of a directive that are given more than once.
func (c *checker) useArguments(use *syntax.Directive) {
	if use.Arguments.Len() < 2 {
		return
	}
	args := c.doc.Arguments[use.Arguments.Lo:use.Arguments.Hi]
	c.eachTwice(len(args), func(i int) (uint32, uint32) {
		return c.id(c.name(args[i].Name)), args[i].Name.Start
	}, func(i int, at []uint32) {
		c.addf(at[1], without(at, 1), `There can be only one argument named "%s".`, c.name(args[i].Name))
	})
}

// useFits reports arguments that the directive does not have, and those that it
// needs.
func (c *checker) useFits(use *syntax.Directive, d *directive) {
	c.others.clear()
	for i := use.Arguments.Lo; i < use.Arguments.Hi; i++ {
		arg := &c.doc.Arguments[i]
		name := c.name(arg.Name)
		c.others.set(c.id(name), 0)
		def := d.arguments[name]
		if def == nil {
			c.addf(arg.Start, nil, `Unknown argument "%s" on directive "@%s".`, name, d.name)
			continue
		}
		c.builtInArgument(d, arg)
	}
	for _, input := range d.required {
		if c.full() {
			return
		}
		if name := d.doc.Text(input.Name); !c.given(name) {
			c.addf(use.Start, nil, `Directive "@%s" argument "%s" of type "%s" is required, but it was not provided.`,
				d.name, name, typeText(d.doc, input.Type))
		}
	}
}

func (c *checker) given(name string) bool {
	_, ok := c.others.get(c.id(name))
	return ok
}

// builtInArgument reports an argument of a built-in directive that is not the
// text that it has to be. What other directives mean, only their users know.
func (c *checker) builtInArgument(d *directive, arg *syntax.Argument) {
	v := &c.doc.Values[arg.Value]
	isText := v.Kind == syntax.StringValue || v.Kind == syntax.BlockStringValue
	switch {
	case isText:
	case d.name == "deprecated" && v.Kind != syntax.NullValue, d.name == "specifiedBy":
		c.addf(v.Text.Start, nil, `Argument "%s" has invalid value %s.`, c.name(arg.Name), clip(c.name(v.Text)))
	}
}

// use returns the first use of a directive, or nil.
func (c *checker) use(uses syntax.Range, name string) *syntax.Directive {
	all := c.doc.Directives[uses.Lo:uses.Hi]
	i := slices.IndexFunc(all, func(d syntax.Directive) bool { return c.name(d.Name) == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}
