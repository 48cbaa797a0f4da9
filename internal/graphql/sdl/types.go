package sdl

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// roots checks the types that operations start from. Without a schema definition
// they are those of the default names.
func (c *checker) roots() {
	var roots [3]root
	var definition *syntax.TypeDef
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		if def.Kind != syntax.SchemaDef {
			continue
		}
		if !def.Extension && definition == nil {
			definition = def
		}
		for _, r := range c.doc.RootTypes[def.RootTypes.Lo:def.RootTypes.Hi] {
			if roots[r.Operation].name == "" {
				roots[r.Operation] = root{name: c.name(r.Type), at: r.Type.Start}
			}
		}
	}
	for kind, name := range []string{"Query", "Mutation", "Subscription"} {
		if t := c.typeAt[c.id(name)]; definition == nil && t != nil && t.defined {
			roots[kind] = root{name: name}
			if len(t.parts) > 0 {
				roots[kind].at = t.start()
			}
		}
	}
	if roots[syntax.Query].name == "" {
		at := uint32(0)
		if definition != nil {
			at = definition.Start
		}
		c.addf(at, nil, "Query root type must be provided.")
	}
	c.checkRoots(roots)
}

// A root is the type that one kind of operation starts from.
type root struct {
	name string // "": there is none
	at   uint32 // where that is said
}

func (c *checker) checkRoots(roots [3]root) {
	for kind, r := range roots {
		t := c.typeAt[c.id(r.name)]
		if r.name == "" || t == nil || !t.defined {
			continue
		}
		operation := []string{"Query", "Mutation", "Subscription"}[kind]
		if t.kind != syntax.ObjectDef {
			provided := " if provided"
			if operation == "Query" {
				provided = ""
			}
			c.addf(r.at, nil, "%s root type must be Object type%s, it cannot be %s.", operation, provided, r.name)
		}
		for other := range kind {
			if roots[other].name == r.name {
				c.addf(r.at, []uint32{roots[other].at}, `All root types must be different, "%s" type is used as %s and %s root types.`,
					r.name, syntax.OperationKind(other), syntax.OperationKind(kind))
			}
		}
	}
}

// directiveDefinitions checks what directives are defined as.
func (c *checker) directiveDefinitions() {
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		if def.Kind != syntax.DirectiveDef {
			continue
		}
		name := c.name(def.Name)
		c.checkName(name, def.Start)
		for i := def.Inputs.Lo; i < def.Inputs.Hi; i++ {
			input := &c.doc.InputDefs[i]
			arg := c.name(input.Name)
			c.checkName(arg, input.Start)
			if !c.isInput(input.Type) {
				c.addf(input.Start, nil, "The type of @%s(%s:) must be Input Type but got: %s.", name, arg, typeText(c.doc, input.Type))
			}
			if at, is := c.deprecatedAndRequired(input); is {
				c.addf(at, []uint32{c.doc.Types[input.Type].Text.Start}, "Required argument @%s(%s:) cannot be deprecated.", name, arg)
			}
		}
	}
}

// checkName reports a name that is reserved.
func (c *checker) checkName(name string, at uint32) {
	if strings.HasPrefix(name, "__") {
		c.addf(at, nil, `Name "%s" must not begin with "__", which is reserved by GraphQL introspection.`, name)
	}
}

// checkType checks what a type is made of.
func (c *checker) checkType(t *typ) {
	c.checkName(t.name, t.start())
	switch t.kind {
	case syntax.ObjectDef, syntax.InterfaceDef:
		c.filled(t, len(t.fields))
		for _, i := range t.fields {
			c.checkField(t, &c.doc.FieldDefs[i])
		}
		c.checkInterfaces(t)
	case syntax.UnionDef:
		c.filled(t, len(t.members))
		c.checkMembers(t)
	case syntax.EnumDef:
		c.checkValues(t)
	case syntax.InputObjectDef:
		c.filled(t, len(t.inputs))
		for _, i := range t.inputs {
			c.checkInputField(t, &c.doc.InputDefs[i])
		}
	}
}

// bodyKinds names kinds of types where their bodies are missing.
var bodyKinds = [...]string{
	syntax.ObjectDef:      "object",
	syntax.InterfaceDef:   "interface",
	syntax.UnionDef:       "union",
	syntax.EnumDef:        "enum",
	syntax.InputObjectDef: "input",
}

// filled reports a type that nothing belongs to, and one with nothing between its
// braces.
func (c *checker) filled(t *typ, n int) {
	if n == 0 || slices.ContainsFunc(t.parts, func(part *syntax.TypeDef) bool { return part.EmptyBody }) {
		c.addf(t.start(), t.starts(), "the %s named '%s' is invalid due to an empty body", bodyKinds[t.kind], t.name)
	}
}

func (c *checker) checkField(t *typ, f *syntax.FieldDef) {
	name := c.name(f.Name)
	c.checkName(name, f.Start)
	if !c.isOutput(f.Type) {
		c.addf(c.doc.Types[f.Type].Text.Start, nil, "The type of %s.%s must be Output Type but got: %s.", t.name, name, typeText(c.doc, f.Type))
	}
	for i := f.Arguments.Lo; i < f.Arguments.Hi; i++ {
		input := &c.doc.InputDefs[i]
		arg := c.name(input.Name)
		c.checkName(arg, input.Start)
		if !c.isInput(input.Type) {
			c.addf(c.doc.Types[input.Type].Text.Start, nil, "The type of %s.%s(%s:) must be Input Type but got: %s.",
				t.name, name, arg, typeText(c.doc, input.Type))
		}
		if at, is := c.deprecatedAndRequired(input); is {
			c.addf(at, []uint32{c.doc.Types[input.Type].Text.Start}, "Required argument %s.%s(%s:) cannot be deprecated.", t.name, name, arg)
		}
	}
}

func (c *checker) checkInputField(t *typ, input *syntax.InputDef) {
	name := c.name(input.Name)
	ofType := c.doc.Types[input.Type].Text.Start
	c.checkName(name, input.Start)
	if !c.isInput(input.Type) {
		c.addf(ofType, nil, "The type of %s.%s must be Input Type but got: %s.", t.name, name, typeText(c.doc, input.Type))
	}
	if at, is := c.deprecatedAndRequired(input); is {
		c.addf(at, []uint32{ofType}, "Required input field %s.%s cannot be deprecated.", t.name, name)
	}
	if !t.oneOf {
		return
	}
	if c.doc.Types[input.Type].Kind == syntax.NonNullType {
		c.addf(ofType, nil, "OneOf input field %s.%s must be nullable.", t.name, name)
	}
	if input.Default != syntax.None {
		c.addf(input.Start, nil, "OneOf input field %s.%s cannot have a default value.", t.name, name)
	}
}

// deprecatedAndRequired reports required arguments and input fields that are
// deprecated.
func (c *checker) deprecatedAndRequired(input *syntax.InputDef) (at uint32, is bool) {
	if !required(c.doc, input) {
		return 0, false
	}
	if _, deprecated := Deprecation(c.doc, input.Directives); !deprecated {
		return 0, false
	}
	return c.use(input.Directives, "deprecated").Start, true
}

// checkMembers checks the members of a union.
func (c *checker) checkMembers(t *typ) {
	c.eachTwice(len(t.members), func(i int) (uint32, uint32) {
		return t.members[i].to.id, t.members[i].at
	}, func(i int, at []uint32) {
		f := c.addf(at[1], without(at, 1), "union member '%s.%s' can only be defined once", t.name, t.members[i].to.name)
		f.harmless = true
	})
	c.members.clear()
	for _, m := range t.members {
		if m.to.kind != syntax.ObjectDef && c.first(m.to.id) {
			at := named(t.members, m.to)
			c.addf(at[0], at[1:], "Union type %s can only include Object types, it cannot include %s.", t.name, m.to.name)
		}
	}
}

// named returns where a list of types names one of them.
func named(all []link, t *typ) (at []uint32) {
	for _, l := range all {
		if l.to == t && len(at) < maxRelated {
			at = append(at, l.at)
		}
	}
	return at
}

func (c *checker) checkValues(t *typ) {
	n := 0
	for _, part := range t.parts {
		n += part.EnumValues.Len()
		for i := part.EnumValues.Lo; i < part.EnumValues.Hi; i++ {
			v := &c.doc.EnumValues[i]
			c.checkName(c.name(v.Name), v.Start)
		}
	}
	c.filled(t, n)
}

// innermost returns the type that a reference wraps, nil if it is not defined.
func (c *checker) innermost(ref uint32) *typ {
	t := &c.doc.Types[ref]
	for t.Kind != syntax.NamedType {
		t = &c.doc.Types[t.Of]
	}
	found := c.typeAt[c.id(c.name(t.Text))]
	if found == nil || !found.defined {
		return nil
	}
	return found
}

// isInput reports whether values of a type can be given. A type that does not
// exist is let pass: it is reported as such.
func (c *checker) isInput(ref uint32) bool {
	t := c.innermost(ref)
	return t == nil || slices.Contains([]syntax.TypeDefKind{syntax.ScalarDef, syntax.EnumDef, syntax.InputObjectDef}, t.kind)
}

// isOutput reports whether fields can be of a type, as isInput does.
func (c *checker) isOutput(ref uint32) bool {
	t := c.innermost(ref)
	return t == nil || t.kind != syntax.InputObjectDef
}

// typeText writes a type: [Int!]!.
func typeText(doc *syntax.Document, ref uint32) string {
	switch t := &doc.Types[ref]; t.Kind {
	case syntax.NonNullType:
		return typeText(doc, t.Of) + "!"
	case syntax.ListType:
		return "[" + typeText(doc, t.Of) + "]"
	default:
		return clip(doc.Text(t.Text))
	}
}

// Deprecation reports whether directives deprecate what they are on, and why. The
// reason is the directive's default when none is written.
func Deprecation(doc *syntax.Document, uses syntax.Range) (reason string, deprecated bool) {
	for i := uses.Lo; i < uses.Hi; i++ {
		use := &doc.Directives[i]
		if string(doc.Bytes(use.Name)) != "deprecated" {
			continue
		}
		for _, arg := range doc.Arguments[use.Arguments.Lo:use.Arguments.Hi] {
			if v := &doc.Values[arg.Value]; string(doc.Bytes(arg.Name)) == "reason" {
				return doc.StringValue(v), v.Kind != syntax.NullValue
			}
		}
		return "No longer supported", true
	}
	return "", false
}
