package syntax

// typeDefKind returns what a keyword defines.
func typeDefKind(keyword []byte) (kind TypeDefKind, ok bool) {
	switch string(keyword) {
	case "schema":
		return SchemaDef, true
	case "scalar":
		return ScalarDef, true
	case "type":
		return ObjectDef, true
	case "interface":
		return InterfaceDef, true
	case "union":
		return UnionDef, true
	case "enum":
		return EnumDef, true
	case "input":
		return InputObjectDef, true
	case "directive":
		return DirectiveDef, true
	default:
		return 0, false
	}
}

// extension reads an extension from "extend".
func (p *parser) extension(start uint32) {
	p.next()
	var kind TypeDefKind
	known := false
	if p.tok.kind == name {
		kind, known = typeDefKind(p.src[p.tok.start:p.tok.end])
	}
	if !known || kind == DirectiveDef {
		p.unexpected(p.tok)
		return
	}
	p.typeDef(TypeDef{Kind: kind, Extension: true, Start: start, Description: None})
}

// typeDef reads a definition or an extension from its keyword on, and adds it.
func (p *parser) typeDef(def TypeDef) {
	p.next()
	switch def.Kind {
	case SchemaDef:
		p.schemaDef(&def)
	case DirectiveDef:
		p.directiveDef(&def)
	default:
		def.Name = p.name()
		if def.Kind == ObjectDef || def.Kind == InterfaceDef {
			def.Interfaces = p.interfaces()
		}
		def.Directives = p.directives(true)
		p.members(&def)
	}
	if def.Extension && def.extendsNothing() {
		p.unexpected(p.tok)
	}
	p.doc.TypeDefs = append(p.doc.TypeDefs, def)
	p.define(TypeSystemDefinition, len(p.doc.TypeDefs))
}

func (t *TypeDef) extendsNothing() bool {
	return !t.EmptyBody && t.Interfaces.Len()+t.Directives.Len()+t.Fields.Len()+t.Inputs.Len()+
		t.EnumValues.Len()+t.RootTypes.Len()+t.Members.Len() == 0
}

func (p *parser) schemaDef(def *TypeDef) {
	def.Directives = p.directives(true)
	if p.tok.kind == braceL || !def.Extension {
		def.RootTypes = p.rootTypes()
	}
}

func (p *parser) directiveDef(def *TypeDef) {
	p.want(at)
	def.Name = p.name()
	if p.tok.kind == parenL {
		def.Inputs = p.inputs(parenR)
	}
	def.Repeatable = p.takeKeyword("repeatable")
	p.wantKeyword("on")
	def.Members = p.locations()
}

// members reads what kinds of types differ in.
func (p *parser) members(def *TypeDef) {
	opened := p.tok.kind == braceL
	switch def.Kind {
	case UnionDef:
		if p.take(equals) {
			def.Members = p.delimited(pipe)
		}
	case EnumDef:
		if opened {
			def.EnumValues = p.enumValues()
		}
	case InputObjectDef:
		if opened {
			def.Inputs = p.inputs(braceR)
		}
	case ObjectDef, InterfaceDef:
		if opened {
			def.Fields = p.fields()
		}
	}
	braces := def.Kind != UnionDef && def.Kind != ScalarDef
	def.EmptyBody = opened && braces && def.Fields.Len()+def.EnumValues.Len()+def.Inputs.Len() == 0
}

// openBody passes over the brace or parenthesis that opens a list of members,
// and reports whether there are any. Only a schema's bodies may be empty, for the
// rules of schemas to say so.
func (p *parser) openBody(closing tokenKind) bool {
	p.next()
	return !(p.emptyBodies && closing == braceR && p.take(braceR))
}

func (p *parser) interfaces() Range {
	if !p.takeKeyword("implements") {
		return Range{}
	}
	return p.delimited(ampersand)
}

// delimited reads names with a delimiter between them, and perhaps before them.
func (p *parser) delimited(by tokenKind) Range {
	d := p.doc
	lo := uint32(len(d.Names))
	p.take(by)
	for {
		d.Names = append(d.Names, p.name())
		if !p.take(by) {
			return Range{lo, uint32(len(d.Names))}
		}
	}
}

// locations reads the places of a directive.
func (p *parser) locations() Range {
	d := p.doc
	lo := uint32(len(d.Names))
	p.take(pipe)
	for {
		start := p.tok
		place := p.name()
		if p.err == nil && !isLocation(d.Bytes(place)) {
			p.unexpected(start)
		}
		d.Names = append(d.Names, place)
		if !p.take(pipe) {
			return Range{lo, uint32(len(d.Names))}
		}
	}
}

func isLocation(place []byte) bool {
	switch string(place) {
	case "QUERY", "MUTATION", "SUBSCRIPTION", "FIELD", "FRAGMENT_DEFINITION", "FRAGMENT_SPREAD", "INLINE_FRAGMENT",
		"VARIABLE_DEFINITION", "SCHEMA", "SCALAR", "OBJECT", "FIELD_DEFINITION", "ARGUMENT_DEFINITION", "INTERFACE",
		"UNION", "ENUM", "ENUM_VALUE", "INPUT_OBJECT", "INPUT_FIELD_DEFINITION", "DIRECTIVE_DEFINITION":
		return true
	default:
		return false
	}
}

func (p *parser) rootTypes() Range {
	d := p.doc
	lo := uint32(len(d.RootTypes))
	p.want(braceL)
	for {
		d.RootTypes = append(d.RootTypes, p.rootType())
		if p.err != nil || p.take(braceR) {
			return Range{lo, uint32(len(d.RootTypes))}
		}
	}
}

func (p *parser) rootType() RootType {
	start := p.tok
	root := RootType{Start: start.start}
	operation := p.doc.Bytes(p.name())
	switch string(operation) {
	case "query":
		root.Operation = Query
	case "mutation":
		root.Operation = Mutation
	case "subscription":
		root.Operation = Subscription
	default:
		p.unexpected(start)
	}
	p.want(colon)
	root.Type = p.name()
	return root
}

func (p *parser) fields() Range {
	d := p.doc
	lo := uint32(len(d.FieldDefs))
	if !p.openBody(braceR) {
		return Range{lo, lo}
	}
	for {
		d.FieldDefs = append(d.FieldDefs, p.field())
		if p.err != nil || p.take(braceR) {
			return Range{lo, uint32(len(d.FieldDefs))}
		}
	}
}

func (p *parser) field() FieldDef {
	f := FieldDef{Start: p.here(), Description: p.description(), Name: p.name()}
	if p.tok.kind == parenL {
		f.Arguments = p.inputs(parenR)
	}
	p.want(colon)
	f.Type = p.typeRef()
	f.Directives = p.directives(true)
	return f
}

// inputs reads arguments or input fields up to a closing token.
func (p *parser) inputs(closing tokenKind) Range {
	d := p.doc
	lo := uint32(len(d.InputDefs))
	if !p.openBody(closing) {
		return Range{lo, lo}
	}
	for {
		d.InputDefs = append(d.InputDefs, p.input())
		if p.err != nil || p.take(closing) {
			return Range{lo, uint32(len(d.InputDefs))}
		}
	}
}

func (p *parser) input() InputDef {
	in := InputDef{Start: p.here(), Description: p.description(), Name: p.name(), Default: None}
	p.want(colon)
	in.Type = p.typeRef()
	if p.take(equals) {
		in.Default = p.keep(p.value(true))
	}
	in.Directives = p.directives(true)
	return in
}

func (p *parser) enumValues() Range {
	d := p.doc
	lo := uint32(len(d.EnumValues))
	if !p.openBody(braceR) {
		return Range{lo, lo}
	}
	for {
		d.EnumValues = append(d.EnumValues, p.enumValue())
		if p.err != nil || p.take(braceR) {
			return Range{lo, uint32(len(d.EnumValues))}
		}
	}
}

func (p *parser) enumValue() EnumValue {
	v := EnumValue{Start: p.here(), Description: p.description()}
	if p.stands("true") || p.stands("false") || p.stands("null") {
		p.fail(int(p.tok.start), p.described(p.tok)+" is reserved and cannot be used for an enum value.")
	}
	v.Name = p.name()
	v.Directives = p.directives(true)
	return v
}
