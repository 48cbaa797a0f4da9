package schema

import (
	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// kinds gives the kind of a type by that of its definition.
var kinds = [...]Kind{
	syntax.ScalarDef:      Scalar,
	syntax.ObjectDef:      Object,
	syntax.InterfaceDef:   Interface,
	syntax.UnionDef:       Union,
	syntax.EnumDef:        Enum,
	syntax.InputObjectDef: InputObject,
}

// addType makes the rows of a type and of all that belongs to it.
func (c *compiler) addType(id TypeID) {
	m := &c.types[id]
	first := m.parts[0]
	c.forget()
	t := Type{
		Name:    c.texts.keep(m.name),
		Kind:    kinds[first.def.Kind],
		BuiltIn: first.builtIn,
		OneOf:   first.def.Kind == syntax.InputObjectDef && first.uses(first.def.Directives, "oneOf"),
	}
	t.Fields.Lo, t.Inputs.Lo, t.Values.Lo = uint32(len(c.Fields)), uint32(len(c.Inputs)), uint32(len(c.Values))
	switch t.Kind {
	case Object, Interface:
		c.addFields(id, m.parts)
		t.Inputs.Lo = uint32(len(c.Inputs)) // past the fields' arguments
	case InputObject:
		c.addInputFields(m.parts)
	case Enum:
		c.addValues(m.parts)
	}
	t.Fields.Hi, t.Inputs.Hi, t.Values.Hi = uint32(len(c.Fields)), uint32(len(c.Inputs)), uint32(len(c.Values))
	c.Types = append(c.Types, t)
}

func (c *compiler) addFields(owner TypeID, parts []part) {
	for _, p := range parts {
		for i := p.def.Fields.Lo; i < p.def.Fields.Hi; i++ {
			def := &p.doc.FieldDefs[i]
			if c.repeats(p.name(def.Name)) {
				continue
			}
			c.Fields = append(c.Fields, Field{
				Name:       c.texts.keep(p.name(def.Name)),
				Owner:      owner,
				Type:       c.ref(p.source, def.Type),
				Arguments:  c.addInputs(p.source, def.Arguments),
				Deprecated: p.deprecated(def.Directives),
			})
		}
	}
	if owner == c.Query {
		c.addMetaFields()
	}
}

// addMetaFields gives the query type the fields that introspection starts from.
func (c *compiler) addMetaFields() {
	ofSchema, _ := Named(c.ids["__Schema"]).NonNull()
	name, _ := Named(c.ids["String"]).NonNull()
	c.SchemaField = FieldID(len(c.Fields))
	c.TypeField = c.SchemaField + 1
	argument := uint32(len(c.Inputs))
	c.Inputs = append(c.Inputs, Input{Name: "name", Type: name})
	c.Fields = append(c.Fields,
		Field{Name: "__schema", Owner: c.Query, Type: ofSchema, Arguments: Span{argument, argument}},
		Field{Name: "__type", Owner: c.Query, Type: Named(c.ids["__Type"]), Arguments: Span{argument, argument + 1}})
}

// forget starts over with the names of a type. A map that was large once would
// take long to clear for each of the types that follow.
func (c *compiler) forget() {
	if len(c.known) > 256 {
		c.known = map[string]struct{}{}
	}
	clear(c.known)
}

// repeats reports whether the type that rows are made for has the name already.
func (c *compiler) repeats(name string) bool {
	n := len(c.known)
	c.known[name] = struct{}{}
	return len(c.known) == n
}

func (c *compiler) addInputFields(parts []part) {
	for _, p := range parts {
		for i := p.def.Inputs.Lo; i < p.def.Inputs.Hi; i++ {
			if !c.repeats(p.name(p.doc.InputDefs[i].Name)) {
				c.addInput(p.source, &p.doc.InputDefs[i])
			}
		}
	}
}

func (c *compiler) addInputs(s *source, defs syntax.Range) Span {
	lo := uint32(len(c.Inputs))
	for i := defs.Lo; i < defs.Hi; i++ {
		c.addInput(s, &s.doc.InputDefs[i])
	}
	return Span{lo, uint32(len(c.Inputs))}
}

func (c *compiler) addInput(s *source, def *syntax.InputDef) {
	input := Input{
		Name:       c.texts.keep(s.name(def.Name)),
		Type:       c.ref(s, def.Type),
		HasDefault: def.Default != syntax.None,
		Deprecated: s.deprecated(def.Directives),
	}
	if input.HasDefault {
		input.Default = c.texts.keep(s.name(s.doc.Values[def.Default].Text))
	}
	c.Inputs = append(c.Inputs, input)
}

func (c *compiler) addValues(parts []part) {
	for _, p := range parts {
		for i := p.def.EnumValues.Lo; i < p.def.EnumValues.Hi; i++ {
			def := &p.doc.EnumValues[i]
			if c.repeats(p.name(def.Name)) {
				continue
			}
			c.Values = append(c.Values, Value{
				Name:       c.texts.keep(p.name(def.Name)),
				Deprecated: p.deprecated(def.Directives),
			})
		}
	}
}

// addDirectives makes the rows of the directives. A schema may define a built-in
// directive itself; its definition is then the one that counts.
func (c *compiler) addDirectives() {
	known := map[string]bool{}
	for _, s := range c.sources {
		for i := range s.doc.TypeDefs {
			def := &s.doc.TypeDefs[i]
			name := s.name(def.Name)
			if def.Kind != syntax.DirectiveDef || known[name] {
				continue
			}
			known[name] = true
			c.Directives = append(c.Directives, Directive{
				Name:       c.texts.keep(name),
				Repeatable: def.Repeatable,
				BuiltIn:    s.builtIn,
				Arguments:  c.addInputs(s, def.Inputs),
				Locations:  s.locations(def.Members),
			})
		}
	}
}

// locations returns the places that a directive is defined for.
func (s *source) locations(names syntax.Range) (places Location) {
	for _, at := range s.doc.Names[names.Lo:names.Hi] {
		if place, ok := LocationNamed(s.name(at)); ok {
			places |= 1 << place
		}
	}
	return places
}

// deprecated reports whether the directives deprecate what they are on.
func (s *source) deprecated(directives syntax.Range) bool {
	_, is := sdl.Deprecation(s.doc, directives)
	return is
}

// uses reports whether one of the directives has the name.
func (s *source) uses(directives syntax.Range, name string) bool {
	for i := directives.Lo; i < directives.Hi; i++ {
		if s.name(s.doc.Directives[i].Name) == name {
			return true
		}
	}
	return false
}

// ref returns the reference that a document's type stands for.
func (c *compiler) ref(s *source, at uint32) TypeRef {
	var wrap uint64
	for shift := 0; ; shift += wrapBits {
		t := &s.doc.Types[at]
		switch t.Kind {
		case syntax.NonNullType:
			wrap |= wrapNonNull << shift
		case syntax.ListType:
			wrap |= wrapList << shift
		default:
			id, ok := c.ids[s.name(t.Text)]
			if !ok {
				id = NoType
			}
			return TypeRef(wrap<<32 | uint64(id))
		}
		at = t.Of
	}
}
