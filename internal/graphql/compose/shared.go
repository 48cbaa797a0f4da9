package compose

import (
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

func mustBeIdentical(name string) string {
	return "the shared type named '" + name + "' must be identical in any subgraphs to federate"
}

// A member is what one subgraph says about one member of a type.
type member struct {
	text string // as it is compared
	line int
}

// A facet is a kind of members that subgraphs must agree about.
type facet struct {
	code Code
	what string // such as: the field
	of   func(p *part, add func(name string, m member))
}

// facets are those of all kinds of types. A part has no members of a facet that its kind
// does not have.
var facets = []facet{
	{InterfaceMismatch, "the interface", func(p *part, add func(string, member)) {
		for _, name := range p.interfaces {
			add(name, member{"implemented", p.line})
		}
	}},
	{FieldMismatch, "the field", func(p *part, add func(string, member)) {
		for _, f := range p.fields {
			add(f.name, member{f.ref, f.line})
		}
	}},
	{ArgumentMismatch, "the argument", func(p *part, add func(string, member)) {
		for _, f := range p.fields {
			for _, in := range f.arguments {
				add(f.name+"("+in.name+":)", member{in.text(), in.line})
			}
		}
	}},
	{InputMismatch, "the input field", func(p *part, add func(string, member)) {
		for _, in := range p.inputs {
			add(in.name, member{in.text(), in.line})
		}
		if p.kind == syntax.InputObjectDef {
			add("@oneOf", member{yesNo(p.oneOf), p.line})
		}
	}},
	{EnumMismatch, "the value", func(p *part, add func(string, member)) {
		for _, v := range p.values {
			add(v.name, member{"defined", v.line})
		}
	}},
	{UnionMismatch, "the member", func(p *part, add func(string, member)) {
		for _, name := range p.members {
			add(name, member{"a member", p.line})
		}
	}},
	{ScalarMismatch, "the URL", func(p *part, add func(string, member)) {
		if p.specifiedBy != "" {
			add("@specifiedBy", member{p.specifiedBy, p.line})
		}
	}},
}

func yesNo(is bool) string {
	if is {
		return "used"
	}
	return "not used"
}

// checkShared reports each difference between the definitions of a shared type.
func (c *composer) checkShared(t *typ) {
	for i := range facets {
		c.checkFacet(t, &facets[i], t.bases, mustBeIdentical(t.name))
	}
}

// checkFacet reports members that are not the same in all parts, each with what the parts
// say.
func (c *composer) checkFacet(t *typ, f *facet, parts []*part, message string) {
	said := make([]map[string]member, len(parts))
	var names []string
	known := map[string]bool{}
	for i, p := range parts {
		said[i] = map[string]member{}
		f.of(p, func(name string, m member) {
			said[i][name] = m
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		})
	}
	slices.Sort(names)
	for _, name := range names {
		if c.full() {
			return
		}
		first := said[0][name].text
		if !slices.ContainsFunc(said, func(m map[string]member) bool { return m[name].text != first }) {
			continue
		}
		p := Problem{Code: f.code, Message: message, Type: t.name, Field: name, Detail: f.what + " '" + clip(name) + "' is " + differences(parts, said, name)}
		for i, part := range parts {
			p.Places = append(p.Places, part.at(max(said[i][name].line, 1)))
			if said[i][name].line == 0 {
				p.Places[i] = part.place()
			}
		}
		c.add(p)
	}
}

// differences says which subgraphs say what about a member.
func differences(parts []*part, said []map[string]member, name string) string {
	var texts []string
	in := map[string][]string{}
	for i, p := range parts {
		text := said[i][name].text
		if text == "" {
			text = "missing"
		}
		if in[text] == nil {
			texts = append(texts, text)
		}
		in[text] = append(in[text], clip(p.in.name))
	}
	slices.Sort(texts)
	for i, text := range texts {
		texts[i] = clip(text) + " in " + shorten(strings.Join(in[text], ", "), maxText)
	}
	return strings.Join(texts, " and ")
}

// sameField reports a field of an entity or root type about which subgraphs disagree. A
// subgraph to which it is external must know it as it is resolved.
func (c *composer) sameField(t *typ, name string, parts []*part) {
	if len(parts) < 2 {
		return
	}
	external := slices.ContainsFunc(parts, func(p *part) bool { return p.byName[name].external })
	message := "the field '" + name + "' of the type named '" + t.name + "' must be the same in all subgraphs that have it"
	alone := make([]*part, 0, len(parts)) // each with this field only
	for _, p := range parts {
		alone = append(alone, &part{in: p.in, name: p.name, line: p.byName[name].line, fields: []*field{p.byName[name]}})
	}
	for _, f := range facets[1:3] { // the field and its arguments
		if external && f.code == FieldMismatch {
			f.code = ExternalMismatch
		}
		c.checkFacet(t, &f, alone, message)
	}
}
