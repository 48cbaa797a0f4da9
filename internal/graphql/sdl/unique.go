package sdl

import "github.com/sluicegate/sluice/internal/graphql/syntax"

// uniqueRoots reports second schema definitions, and second types for a kind of
// operation.
func (c *checker) uniqueRoots() {
	var seen [3]*syntax.RootType
	defined := false
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		if def.Kind != syntax.SchemaDef {
			continue
		}
		if !def.Extension && defined {
			c.addf(def.Start, nil, "Must provide only one schema definition.")
		}
		defined = defined || !def.Extension
		for r := def.RootTypes.Lo; r < def.RootTypes.Hi; r++ {
			root := &c.doc.RootTypes[r]
			if first := seen[root.Operation]; first != nil {
				c.addf(root.Start, []uint32{first.Start}, "only one %s type allowed", root.Operation)
				continue
			}
			seen[root.Operation] = root
		}
	}
}

// uniqueNames reports second definitions of a type or directive, and types in
// place of built-in ones. A built-in scalar that is defined as a scalar is let
// pass: exports of schemas do that.
func (c *checker) uniqueNames() {
	for _, t := range c.types {
		var first *syntax.TypeDef
		for _, def := range t.all {
			switch {
			case def.Extension:
			case first != nil:
				c.addf(def.Name.Start, []uint32{first.Name.Start}, "there can be only one type named '%s'", t.name)
			case t.builtIn && def.Kind != t.kind:
				c.addf(def.Name.Start, nil, "the built-in type '%s' cannot be defined as another kind of type", t.name)
				first = def
			default:
				first = def
			}
		}
	}
	c.members.clear()
	for i := range c.doc.TypeDefs {
		if def := &c.doc.TypeDefs[i]; def.Kind == syntax.DirectiveDef {
			name := c.name(def.Name)
			c.unique(c.id(name), def.Name.Start, `There can be only one directive named "@%s".`, name)
		}
	}
}

// unique reports a name that comes up for the second time since members was
// cleared.
func (c *checker) unique(id, at uint32, format string, args ...any) *fault {
	first, known := c.members.get(id)
	if !known {
		c.members.set(id, at)
		return &fault{}
	}
	return c.addf(at, []uint32{first}, format, args...)
}

// uniqueMembers reports second fields, arguments, enum values and members of
// unions.
func (c *checker) uniqueMembers() {
	for _, t := range c.types {
		c.members.clear()
		for _, def := range t.all {
			c.uniqueFields(t, def)
		}
		c.members.clear()
		for _, def := range t.all {
			for i := def.EnumValues.Lo; i < def.EnumValues.Hi; i++ {
				at := c.doc.EnumValues[i].Name
				f := c.unique(c.id(c.name(at)), at.Start, "enum value '%s.%s' can only be defined once", t.name, clip(c.name(at)))
				f.harmless = true
			}
		}
		for _, def := range t.all {
			for i := def.Fields.Lo; i < def.Fields.Hi; i++ {
				f := &c.doc.FieldDefs[i]
				c.uniqueArguments(f.Arguments, func() string { return t.name + "." + c.name(f.Name) })
			}
		}
	}
	for i := range c.doc.TypeDefs {
		if def := &c.doc.TypeDefs[i]; def.Kind == syntax.DirectiveDef {
			c.uniqueArguments(def.Inputs, func() string { return "@" + c.name(def.Name) })
		}
	}
}

// uniqueFields reports second fields and input fields. What a name was first
// defined as is in members: twice the index, and one more for an input field.
func (c *checker) uniqueFields(t *typ, def *syntax.TypeDef) {
	const format = "field '%s.%s' can only be defined once"
	for i := def.Fields.Lo; i < def.Fields.Hi; i++ {
		first, known := c.members.get(c.fieldIDs[i])
		if !known {
			c.members.set(c.fieldIDs[i], 2*i)
			continue
		}
		name := c.doc.FieldDefs[i].Name
		f := c.addf(name.Start, []uint32{c.memberAt(first)}, format, t.name, clip(c.name(name)))
		f.harmless = first&1 == 0 && c.sameField(&c.doc.FieldDefs[first/2], &c.doc.FieldDefs[i])
	}
	for i := def.Inputs.Lo; i < def.Inputs.Hi; i++ {
		first, known := c.members.get(c.inputIDs[i])
		if !known {
			c.members.set(c.inputIDs[i], 2*i+1)
			continue
		}
		name := c.doc.InputDefs[i].Name
		f := c.addf(name.Start, []uint32{c.memberAt(first)}, format, t.name, clip(c.name(name)))
		f.harmless = first&1 == 1 && c.sameInput(&c.doc.InputDefs[first/2], &c.doc.InputDefs[i])
	}
}

func (c *checker) memberAt(member uint32) uint32 {
	if member&1 == 1 {
		return c.doc.InputDefs[member/2].Name.Start
	}
	return c.doc.FieldDefs[member/2].Name.Start
}

// sameField reports whether two definitions of a field say the same.
func (c *checker) sameField(a, b *syntax.FieldDef) bool {
	if !c.equal(a.Type, b.Type) || a.Arguments.Len() != b.Arguments.Len() {
		return false
	}
	for i := range a.Arguments.Hi - a.Arguments.Lo {
		if !c.sameInput(&c.doc.InputDefs[a.Arguments.Lo+i], &c.doc.InputDefs[b.Arguments.Lo+i]) {
			return false
		}
	}
	return true
}

// sameInput reports whether two definitions of an argument or input field say the
// same.
func (c *checker) sameInput(a, b *syntax.InputDef) bool {
	return c.name(a.Name) == c.name(b.Name) && c.equal(a.Type, b.Type) && c.defaultText(a) == c.defaultText(b)
}

func (c *checker) defaultText(input *syntax.InputDef) string {
	if input.Default == syntax.None {
		return ""
	}
	return c.name(c.doc.Values[input.Default].Text)
}

// uniqueArguments reports arguments that are defined more than once, each name
// at its second place.
func (c *checker) uniqueArguments(inputs syntax.Range, owner func() string) {
	if inputs.Len() < 2 {
		return
	}
	c.eachTwice(inputs.Len(), func(i int) (uint32, uint32) {
		at := inputs.Lo + uint32(i)
		return c.inputIDs[at], c.doc.InputDefs[at].Name.Start
	}, func(i int, at []uint32) {
		name := c.name(c.doc.InputDefs[inputs.Lo+uint32(i)].Name)
		c.addf(at[1], without(at, 1), `Argument "%s(%s:)" can only be defined once.`, owner(), name)
	})
}

// eachTwice calls report for each name that comes up more than once among n
// named things: with the second of them, and where all of them are.
func (c *checker) eachTwice(n int, named func(i int) (id, at uint32), report func(second int, at []uint32)) {
	var twice []int // the second of each name; others has the index in here plus one
	c.others.clear()
	for i := range n {
		id, _ := named(i)
		state, known := c.others.get(id)
		switch {
		case !known:
			c.others.set(id, 0)
		case state == 0 && len(twice) < maxProblems:
			twice = append(twice, i)
			c.others.set(id, uint32(len(twice)))
		}
	}
	if len(twice) == 0 {
		return
	}
	places := make([][]uint32, len(twice))
	for i := range n {
		id, at := named(i)
		if state, _ := c.others.get(id); state > 0 && len(places[state-1]) < maxRelated {
			places[state-1] = append(places[state-1], at)
		}
	}
	for i, second := range twice {
		report(second, places[i])
	}
}

// without returns the places but for one of them.
func without(at []uint32, i int) []uint32 {
	return append(append([]uint32(nil), at[:i]...), at[i+1:]...)
}

// extensions reports extensions of types that there are not, or that are of
// another kind. Of several definitions the last one counts here.
func (c *checker) extensions() {
	for _, t := range c.types {
		var last *syntax.TypeDef
		for _, def := range t.all {
			if !def.Extension {
				last = def
			}
		}
		for _, def := range t.all {
			switch {
			case !def.Extension:
			case last == nil:
				c.addf(def.Name.Start, nil, `Cannot extend type "%s" because it is not defined.`, t.name)
			case last.Kind != def.Kind:
				c.addf(def.Start, []uint32{last.Start}, `Cannot extend non-%s type "%s".`, kindNames[def.Kind], t.name)
			}
		}
	}
}

// kindNames names kinds of types in messages.
var kindNames = [...]string{
	syntax.ScalarDef:      "scalar",
	syntax.ObjectDef:      "object",
	syntax.InterfaceDef:   "interface",
	syntax.UnionDef:       "union",
	syntax.EnumDef:        "enum",
	syntax.InputObjectDef: "input object",
}

// knownTypes reports names of types that there are not.
func (c *checker) knownTypes() {
	for i := range c.doc.Types {
		if t := &c.doc.Types[i]; t.Kind == syntax.NamedType {
			c.knownType(t.Text)
		}
	}
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		c.knownNames(def.Interfaces)
		if def.Kind == syntax.UnionDef {
			c.knownNames(def.Members)
		}
	}
	for i := range c.doc.RootTypes {
		c.knownType(c.doc.RootTypes[i].Type)
	}
}

func (c *checker) knownNames(names syntax.Range) {
	for _, name := range c.doc.Names[names.Lo:names.Hi] {
		c.knownType(name)
	}
}

func (c *checker) knownType(name syntax.Span) {
	if t := c.typeAt[c.id(c.name(name))]; t == nil || !t.defined {
		c.addf(name.Start, nil, `Unknown type "%s".`, clip(c.name(name)))
	}
}

// objectLiterals reports object values that give a field twice.
func (c *checker) objectLiterals() {
	for i := range c.doc.Values {
		v := &c.doc.Values[i]
		if v.Kind != syntax.ObjectValue || v.Items.Len() < 2 {
			continue
		}
		c.members.clear()
		for _, field := range c.doc.Arguments[v.Items.Lo:v.Items.Hi] {
			name := c.name(field.Name)
			c.unique(c.id(name), field.Name.Start, `There can be only one input field named "%s".`, name)
		}
	}
}
