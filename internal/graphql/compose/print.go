package compose

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A printer writes types in SDL.
type printer struct{ b strings.Builder }

// A start is the line at which the text of a type begins.
type start struct {
	line int
	of   *typ
}

// print returns the composed schema, and where its types begin.
func (c *composer) print() (text string, starts []start) {
	var b strings.Builder
	line := 1
	for _, t := range c.sortedTypes() {
		p := &printer{}
		p.typ(t.merged)
		starts = append(starts, start{line, t})
		line += strings.Count(p.b.String(), "\n")
		b.WriteString(p.b.String())
	}
	return strings.TrimSuffix(b.String(), "\n"), starts
}

// checkMerged holds the composed schema against the rules of schemas.
func (c *composer) checkMerged(text string, starts []start) {
	_, err := sdl.Parse(text)
	if err == nil {
		return
	}
	wrong, ok := errors.AsType[*sdl.Errors](err)
	if !ok {
		c.add(Problem{Code: InvalidSupergraph, Message: err.Error()})
		return
	}
	for _, p := range wrong.Problems {
		problem := Problem{Code: InvalidSupergraph, Message: p.Message, Detail: "in the composed schema"}
		i, exact := slices.BinarySearchFunc(starts, p.Location.Line, func(s start, line int) int { return cmp.Compare(s.line, line) })
		if !exact {
			i--
		}
		if i >= 0 && i < len(starts) && p.Location.Line > 1 {
			problem.Type, problem.Places = starts[i].of.name, places(starts[i].of.parts)
		}
		c.add(problem)
	}
}

func (p *printer) write(texts ...string) {
	for _, text := range texts {
		p.b.WriteString(text)
	}
}

func (p *printer) typ(t *part) {
	sdl.WriteDescription(&p.b, "", t.description)
	switch t.kind {
	case syntax.ScalarDef:
		p.write("scalar ", t.name)
		if t.specifiedBy != "" {
			p.write(" @specifiedBy(url: ", sdl.Quote(t.specifiedBy), ")")
		}
	case syntax.ObjectDef, syntax.InterfaceDef:
		p.write([]string{"type ", "interface "}[index(t.kind == syntax.InterfaceDef)], t.name)
		p.names(" implements ", " & ", t.interfaces)
		p.fields(t.fields)
	case syntax.UnionDef:
		p.write("union ", t.name)
		p.names(" = ", " | ", t.members)
	case syntax.EnumDef:
		p.write("enum ", t.name, " {\n")
		for _, v := range t.values {
			p.member(&v.named, "  ", v.name)
		}
		p.write("}")
	case syntax.InputObjectDef:
		p.write("input ", t.name, []string{"", " @oneOf"}[index(t.oneOf)], " {\n")
		p.inputs("  ", t.inputs)
		p.write("}")
	}
	p.write("\n\n")
}

func index(second bool) int {
	if second {
		return 1
	}
	return 0
}

func (p *printer) names(before, between string, names []string) {
	if len(names) > 0 {
		p.write(before, strings.Join(names, between))
	}
}

// member writes a member of a type, with its description and deprecation.
func (p *printer) member(n *named, indent string, text ...string) {
	sdl.WriteDescription(&p.b, indent, n.description)
	p.write(indent)
	p.write(text...)
	if n.deprecated != "" {
		p.write(" ", n.deprecated)
	}
	p.write("\n")
}

func (p *printer) fields(fields []*field) {
	p.write(" {\n")
	for _, f := range fields {
		if len(f.arguments) == 0 {
			p.member(&f.named, "  ", f.name, ": ", f.ref)
			continue
		}
		sdl.WriteDescription(&p.b, "  ", f.description)
		p.write("  ", f.name, "(\n")
		p.inputs("    ", f.arguments)
		p.member(&named{deprecated: f.deprecated}, "  ", "): ", f.ref)
	}
	p.write("}")
}

func (p *printer) inputs(indent string, ins []*input) {
	for _, in := range ins {
		p.member(&in.named, indent, in.name, ": ", in.text())
	}
}
