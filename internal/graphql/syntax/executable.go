package syntax

// definition reads one definition, from its description if it has one.
func (p *parser) definition() {
	start := p.tok
	if start.kind == braceL {
		p.operation(start.start, Query)
		return
	}
	described := start.kind == text || start.kind == blockText
	if described {
		p.next()
	}
	switch {
	case described && p.tok.kind == braceL:
		p.fail(int(start.start), "Unexpected description, descriptions are not supported on shorthand queries.")
	case p.tok.kind != name:
		p.unexpected(p.tok)
	default:
		p.named(start, described)
	}
}

// named reads the definition that the current name announces. It starts at a
// description or at that name.
func (p *parser) named(start token, described bool) {
	keyword := p.src[p.tok.start:p.tok.end]
	switch string(keyword) {
	case "query":
		p.operation(start.start, Query)
		return
	case "mutation":
		p.operation(start.start, Mutation)
		return
	case "subscription":
		p.operation(start.start, Subscription)
		return
	case "fragment":
		p.fragment(start.start)
		return
	}
	kind, known := typeDefKind(keyword)
	switch {
	case known && described:
		p.typeDef(TypeDef{Kind: kind, Start: start.start, Description: p.keep(stringValue(start))})
	case known:
		p.typeDef(TypeDef{Kind: kind, Start: start.start, Description: None})
	case described:
		p.fail(int(start.start), "Unexpected description, only GraphQL definitions support descriptions.")
	case string(keyword) == "extend":
		p.extension(start.start)
	default:
		p.unexpected(p.tok)
	}
}

// define notes a definition, which is the last element of its slice.
func (p *parser) define(kind DefinitionKind, count int) {
	p.doc.Definitions = append(p.doc.Definitions, Definition{Kind: kind, Index: uint32(count - 1)})
}

// operation reads an operation from its keyword, or from "{" in the short form.
func (p *parser) operation(start uint32, kind OperationKind) {
	d := p.doc
	if len(d.Operations) >= p.lim.Operations {
		p.exceeded("operations", p.lim.Operations)
		return
	}
	op := Operation{Kind: kind, Start: start}
	if p.tok.kind == name {
		p.next()
		if p.tok.kind == name {
			op.Name = p.name()
		}
		op.Variables = p.variables()
		op.Directives = p.directives(false)
	}
	op.Selections = p.selectionSet()
	d.Operations = append(d.Operations, op)
	p.define(OperationDefinition, len(d.Operations))
}

// variables reads the definitions of variables, if there are any.
func (p *parser) variables() Range {
	if p.tok.kind != parenL {
		return Range{}
	}
	d := p.doc
	lo := uint32(len(d.Variables))
	p.next()
	for {
		d.Variables = append(d.Variables, p.variable())
		if p.err != nil || p.take(parenR) {
			return Range{lo, uint32(len(d.Variables))}
		}
	}
}

func (p *parser) variable() Variable {
	v := Variable{Start: p.tok.start, Default: None}
	if p.tok.kind == text || p.tok.kind == blockText {
		p.next()
	}
	p.want(dollar)
	v.Name = p.name()
	p.want(colon)
	v.Type = p.typeRef()
	if p.take(equals) {
		v.Default = p.keep(p.value(true))
	}
	v.Directives = p.directives(true)
	return v
}

// fragment reads the definition of a fragment from its keyword.
func (p *parser) fragment(start uint32) {
	d := p.doc
	if len(d.Fragments) >= p.lim.Fragments {
		p.exceeded("fragments", p.lim.Fragments)
		return
	}
	p.next()
	f := Fragment{Start: start}
	if p.stands("on") {
		p.unexpected(p.tok)
	}
	f.Name = p.name()
	p.wantKeyword("on")
	f.TypeCondition = p.name()
	f.Directives = p.directives(false)
	f.Selections = p.selectionSet()
	d.Fragments = append(d.Fragments, f)
	p.define(FragmentDefinition, len(d.Fragments))
}

// stands reports whether the current token is a name or a string of that value.
// Where a name is wanted a string is refused in either case; which of two
// messages says so depends on this.
func (p *parser) stands(value string) bool {
	if p.tok.kind == name {
		return p.is(value)
	}
	if p.tok.kind != text && p.tok.kind != blockText {
		return false
	}
	v := stringValue(p.tok)
	return p.doc.StringValue(&v) == value
}

// selectionSet reads a selection set, whose selections are contiguous: those of
// inner sets come to lie before them.
func (p *parser) selectionSet() Range {
	d := p.doc
	open := len(d.selections)
	p.depth++
	if p.depth > p.lim.Depth {
		p.exceeded("depth", p.lim.Depth)
		return Range{}
	}
	p.want(braceL)
	for p.err == nil {
		s := p.selection()
		d.selections = append(d.selections, s)
		if p.take(braceR) {
			break
		}
	}
	p.depth--
	lo := uint32(len(d.Selections))
	d.Selections = append(d.Selections, d.selections[open:]...)
	d.selections = d.selections[:open]
	return Range{lo, uint32(len(d.Selections))}
}

func (p *parser) selection() Selection {
	if p.tok.kind == spread {
		return p.spread()
	}
	s := Selection{Kind: Field, Start: p.here(), Name: p.name()}
	if p.take(colon) {
		s.Alias, s.Name = s.Name, p.name()
		p.aliases++
		if p.aliases > p.lim.Aliases {
			p.exceeded("aliases", p.lim.Aliases)
		}
	}
	s.Arguments = p.argumentList(false)
	s.Directives = p.directives(false)
	if p.tok.kind == braceL {
		s.SetStart = p.tok.start
		s.Selections = p.selectionSet()
	}
	return s
}

// spread reads the use of a fragment, or an inline fragment.
func (p *parser) spread() Selection {
	s := Selection{Kind: InlineFragment, Start: p.tok.start}
	p.next()
	on := p.takeKeyword("on")
	if !on && p.tok.kind == name {
		s.Kind, s.Name = FragmentSpread, p.name()
		s.Directives = p.directives(false)
		return s
	}
	if on {
		s.Name = p.name()
	}
	s.Directives = p.directives(false)
	s.SetStart = p.tok.start
	s.Selections = p.selectionSet()
	return s
}
