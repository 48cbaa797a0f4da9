package syntax

// keep puts a value where its parent refers to it by index.
func (p *parser) keep(v Value) uint32 {
	p.doc.Values = append(p.doc.Values, v)
	return uint32(len(p.doc.Values) - 1)
}

// stringValue is the value that a token of text is.
func stringValue(t token) Value {
	kind := StringValue
	if t.kind == blockText {
		kind = BlockStringValue
	}
	return Value{Kind: kind, Text: Span{t.start, t.end}}
}

// value reads a value, in which there is no variable if it is constant.
func (p *parser) value(constant bool) Value {
	t := p.tok
	if t.kind == dollar {
		return p.variableValue(constant)
	}
	p.literals++
	if p.literals > p.lim.Literals {
		p.exceeded("literals", p.lim.Literals)
	}
	v := Value{Text: Span{t.start, t.end}}
	switch p.tok.kind {
	case bracketL:
		return p.list(constant)
	case braceL:
		return p.object(constant)
	case integer:
		v.Kind = IntValue
	case float:
		v.Kind = FloatValue
	case text, blockText:
		v = stringValue(t)
	case name:
		v.Kind = kindOfName(p.src[t.start:t.end])
	default:
		p.unexpected(t)
		return v
	}
	p.next()
	return v
}

// kindOfName returns the kind of a name: true, false, null or an enum value.
func kindOfName(name []byte) ValueKind {
	switch string(name) {
	case "true", "false":
		return BooleanValue
	case "null":
		return NullValue
	default:
		return EnumValueKind
	}
}

func (p *parser) variableValue(constant bool) Value {
	start := p.tok
	p.next()
	if constant && p.err == nil {
		if p.tok.kind == name {
			p.fail(int(start.start), `Unexpected variable "$`+quoted(p.doc.Text(Span{p.tok.start, p.tok.end}))+`" in constant value.`)
		} else {
			p.unexpected(start)
		}
	}
	n := p.name()
	return Value{Kind: VariableValue, Text: Span{start.start, n.End}}
}

// list reads a list, whose items are contiguous in Values.
func (p *parser) list(constant bool) Value {
	d, start := p.doc, p.tok.start
	open := len(d.values)
	p.deeper()
	p.next()
	for p.err == nil && p.tok.kind != bracketR {
		v := p.value(constant)
		d.values = append(d.values, v)
	}
	v := Value{Kind: ListValue, Text: Span{start, p.tok.end}, Items: Range{Lo: uint32(len(d.Values))}}
	p.next()
	d.Values = append(d.Values, d.values[open:]...)
	d.values = d.values[:open]
	v.Items.Hi = uint32(len(d.Values))
	p.valueDepth--
	return v
}

// object reads an object, whose fields are contiguous in Arguments.
func (p *parser) object(constant bool) Value {
	d, start := p.doc, p.tok.start
	open := len(d.arguments)
	p.deeper()
	p.next()
	for p.err == nil && p.tok.kind != braceR {
		p.argument(constant)
	}
	v := Value{Kind: ObjectValue, Text: Span{start, p.tok.end}}
	p.next()
	v.Items = p.closeArguments(open)
	p.valueDepth--
	return v
}

// deeper opens a list or an object.
func (p *parser) deeper() {
	p.valueDepth++
	if p.valueDepth > p.lim.ValueDepth {
		p.exceeded("value depth", p.lim.ValueDepth)
	}
}

// argument reads one argument, or field of an object, onto the open ones.
func (p *parser) argument(constant bool) {
	a := Argument{Start: p.here(), Name: p.name()}
	p.want(colon)
	a.Value = p.keep(p.value(constant))
	p.doc.arguments = append(p.doc.arguments, a)
}

func (p *parser) closeArguments(open int) Range {
	d := p.doc
	lo := uint32(len(d.Arguments))
	d.Arguments = append(d.Arguments, d.arguments[open:]...)
	d.arguments = d.arguments[:open]
	return Range{lo, uint32(len(d.Arguments))}
}

// argumentList reads arguments in parentheses, if there are any.
func (p *parser) argumentList(constant bool) Range {
	if p.tok.kind != parenL {
		return Range{}
	}
	open := len(p.doc.arguments)
	p.next()
	for {
		p.argument(constant)
		if p.err != nil || p.take(parenR) {
			return p.closeArguments(open)
		}
	}
}

// directives reads uses of directives.
func (p *parser) directives(constant bool) Range {
	if p.tok.kind != at {
		return Range{}
	}
	d := p.doc
	lo := uint32(len(d.Directives))
	for p.tok.kind == at {
		if len(d.Directives) >= p.lim.Directives {
			p.exceeded("directives", p.lim.Directives)
			break
		}
		use := Directive{Start: p.tok.start}
		p.next()
		use.Name = p.name()
		use.Arguments = p.argumentList(constant)
		d.Directives = append(d.Directives, use)
	}
	return Range{lo, uint32(len(d.Directives))}
}

// typeRef reads a reference to a type: its index in Types.
func (p *parser) typeRef() uint32 {
	start := p.tok.start
	ref := TypeRef{Of: None}
	if p.tok.kind == bracketL {
		p.deeper()
		p.next()
		ref.Kind, ref.Of = ListType, p.typeRef()
		ref.Text = Span{start, p.tok.end}
		p.want(bracketR)
		p.valueDepth--
	} else {
		ref.Text = p.name()
	}
	index := p.keepType(ref)
	if p.tok.kind != bang {
		return index
	}
	ref = TypeRef{Kind: NonNullType, Text: Span{start, p.tok.end}, Of: index}
	p.next()
	return p.keepType(ref)
}

func (p *parser) keepType(ref TypeRef) uint32 {
	p.doc.Types = append(p.doc.Types, ref)
	return uint32(len(p.doc.Types) - 1)
}
