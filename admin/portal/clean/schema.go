package clean

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// graphQL prints a schema: comments are omitted, and no text of it has a meaning in
// HTML.
func graphQL(source string) (string, error) {
	doc, err := sdl.Parse(source)
	if doc == nil && err != nil {
		if wrong, ok := errors.AsType[*sdl.Errors](err); ok {
			return "", problemf("", "is no valid schema: %s", strings.Join(wrong.Texts()[:min(len(wrong.Texts()), 10)], "; "))
		}
		return "", fmt.Errorf("reading a schema: %w", err)
	}
	p := printer{doc: doc}
	for _, d := range doc.Definitions {
		if d.Kind == syntax.TypeSystemDefinition {
			p.definition(&doc.TypeDefs[d.Index])
		}
	}
	return strings.TrimSpace(p.b.String()) + "\n", nil
}

// A printer writes definitions of a schema.
type printer struct {
	doc *syntax.Document
	b   strings.Builder
}

func (p *printer) write(parts ...string) {
	for _, part := range parts {
		p.b.WriteString(part)
	}
}

// keywords are the keywords that begin definitions.
var keywords = map[syntax.TypeDefKind]string{
	syntax.SchemaDef: "schema", syntax.ScalarDef: "scalar ", syntax.ObjectDef: "type ", syntax.InterfaceDef: "interface ",
	syntax.UnionDef: "union ", syntax.EnumDef: "enum ", syntax.InputObjectDef: "input ", syntax.DirectiveDef: "directive @",
}

func (p *printer) definition(d *syntax.TypeDef) {
	p.description("", d.Description)
	if d.Extension {
		p.write("extend ")
	}
	p.write(keywords[d.Kind], p.doc.Text(d.Name))
	if d.Kind == syntax.DirectiveDef {
		p.arguments("", d.Inputs)
		if d.Repeatable {
			p.write(" repeatable")
		}
		p.names(" on ", " | ", d.Members)
		p.write("\n\n")
		return
	}
	p.names(" implements ", " & ", d.Interfaces)
	p.directives(d.Directives)
	p.names(" = ", " | ", d.Members)
	p.body(d)
	p.write("\n\n")
}

// names writes names after an opening, if there are any.
func (p *printer) names(opening, between string, r syntax.Range) {
	for i, name := range p.doc.Names[r.Lo:r.Hi] {
		if i == 0 {
			p.write(opening)
		} else {
			p.write(between)
		}
		p.write(p.doc.Text(name))
	}
}

// body writes the body of a definition in braces.
func (p *printer) body(d *syntax.TypeDef) {
	if d.Fields.Len()+d.Inputs.Len()+d.EnumValues.Len()+d.RootTypes.Len() == 0 {
		return
	}
	p.write(" {\n")
	for _, f := range p.doc.FieldDefs[d.Fields.Lo:d.Fields.Hi] {
		p.description("  ", f.Description)
		p.write("  ", p.doc.Text(f.Name))
		p.arguments("  ", f.Arguments)
		p.write(": ")
		p.typ(f.Type)
		p.directives(f.Directives)
		p.write("\n")
	}
	for _, in := range p.doc.InputDefs[d.Inputs.Lo:d.Inputs.Hi] {
		p.description("  ", in.Description)
		p.write("  ")
		p.input(&in)
		p.write("\n")
	}
	for _, v := range p.doc.EnumValues[d.EnumValues.Lo:d.EnumValues.Hi] {
		p.description("  ", v.Description)
		p.write("  ", p.doc.Text(v.Name))
		p.directives(v.Directives)
		p.write("\n")
	}
	for _, r := range p.doc.RootTypes[d.RootTypes.Lo:d.RootTypes.Hi] {
		p.write("  ", r.Operation.String(), ": ", p.doc.Text(r.Type), "\n")
	}
	p.write("}")
}

// arguments writes definitions of arguments: on one line, unless one has a
// description.
func (p *printer) arguments(indent string, r syntax.Range) {
	if r.Len() == 0 {
		return
	}
	all := p.doc.InputDefs[r.Lo:r.Hi]
	described := false
	for i := range all {
		described = described || all[i].Description != syntax.None
	}
	p.write("(")
	for i := range all {
		switch {
		case described:
			p.write("\n")
			p.description(indent+"  ", all[i].Description)
			p.write(indent, "  ")
		case i > 0:
			p.write(", ")
		}
		p.input(&all[i])
	}
	if described {
		p.write("\n", indent)
	}
	p.write(")")
}

func (p *printer) input(in *syntax.InputDef) {
	p.write(p.doc.Text(in.Name), ": ")
	p.typ(in.Type)
	if in.Default != syntax.None {
		p.write(" = ")
		p.value(&p.doc.Values[in.Default])
	}
	p.directives(in.Directives)
}

func (p *printer) typ(index uint32) {
	t := &p.doc.Types[index]
	switch t.Kind {
	case syntax.ListType:
		p.write("[")
		p.typ(t.Of)
		p.write("]")
	case syntax.NonNullType:
		p.typ(t.Of)
		p.write("!")
	default:
		p.write(p.doc.Text(t.Text))
	}
}

func (p *printer) directives(r syntax.Range) {
	for _, d := range p.doc.Directives[r.Lo:r.Hi] {
		p.write(" @", p.doc.Text(d.Name))
		for i, a := range p.doc.Arguments[d.Arguments.Lo:d.Arguments.Hi] {
			if i == 0 {
				p.write("(")
			} else {
				p.write(", ")
			}
			p.write(p.doc.Text(a.Name), ": ")
			p.value(&p.doc.Values[a.Value])
		}
		if d.Arguments.Len() > 0 {
			p.write(")")
		}
	}
}

func (p *printer) value(v *syntax.Value) {
	switch v.Kind {
	case syntax.StringValue, syntax.BlockStringValue:
		p.text(inert(p.doc.StringValue(v)))
	case syntax.ListValue:
		p.write("[")
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			if i > v.Items.Lo {
				p.write(", ")
			}
			p.value(&p.doc.Values[i])
		}
		p.write("]")
	case syntax.ObjectValue:
		p.write("{")
		for i := v.Items.Lo; i < v.Items.Hi; i++ {
			if i > v.Items.Lo {
				p.write(", ")
			}
			a := &p.doc.Arguments[i]
			p.write(p.doc.Text(a.Name), ": ")
			p.value(&p.doc.Values[a.Value])
		}
		p.write("}")
	default:
		p.write(p.doc.Text(v.Text))
	}
}

// description writes a description before its definition: as a block string if it can
// be one unchanged.
func (p *printer) description(indent string, index uint32) {
	if index == syntax.None {
		return
	}
	text := inert(p.doc.StringValue(&p.doc.Values[index]))
	p.write(indent)
	if !plainBlock(text) {
		p.text(text)
		p.write("\n")
		return
	}
	p.write(`"""`, "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			p.write(indent, line)
		}
		p.write("\n")
	}
	p.write(indent, `"""`, "\n")
}

// plainBlock reports whether an indented block string has the same value as the text.
func plainBlock(text string) bool {
	if text == "" || strings.ContainsAny(text, "\r\\") || strings.Contains(text, `"""`) || strings.HasSuffix(text, `"`) {
		return false
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }) {
		return false
	}
	first, last := text[0], text[len(text)-1]
	for _, edge := range []byte{first, last} {
		if edge == ' ' || edge == '\t' || edge == '\n' {
			return false
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && strings.TrimSpace(line) == "" {
			return false
		}
	}
	return true
}

// text writes a string on one line.
func (p *printer) text(text string) {
	p.write(`"`)
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			p.write(`\`, string(r))
		case r == '\n':
			p.write(`\n`)
		case r == '\r':
			p.write(`\r`)
		case r == '\t':
			p.write(`\t`)
		case r < ' ' || r == 0x7f:
			p.write(fmt.Sprintf(`\u%04X`, r))
		default:
			p.write(string(r))
		}
	}
	p.write(`"`)
}
