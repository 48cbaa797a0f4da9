package compose

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// metadata says what a subgraph resolves.
func (s *subgraph) metadata() Metadata {
	m := Metadata{Name: s.name, SDL: s.print()}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if own := s.types[name]; len(own.fields) > 0 {
			m.Types = append(m.Types, own.metadata())
		}
	}
	return m
}

// print returns the types of the subgraph in SDL, and a query type in any case.
func (s *subgraph) print() string {
	p := &printer{}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if own := s.types[name]; !own.empty() {
			p.typ(own)
		}
	}
	if s.query().empty() {
		p.write("type Query {\n  _service: _Service!\n}\n\ntype _Service {\n  sdl: String\n}\n\n")
	}
	return strings.TrimSuffix(p.b.String(), "\n")
}

// Served returns the schema that operations of one subgraph are held against: its own with
// the fields _service and _entities of the query type, by which supergraphs get at it. If
// there are problems, it returns all of them, sorted, and no schema.
func Served(of Subgraph) (schema string, problems []Problem) {
	r := &report{}
	s := readSubgraph(of, r)
	if !r.empty() {
		return "", r.sorted()
	}
	var entities []string
	for name, p := range s.types {
		if len(p.keys) > 0 {
			entities = append(entities, name)
		}
	}
	slices.Sort(entities)
	query := *s.query()
	if len(entities) > 0 {
		representations := &input{named: named{name: "representations"}, ref: "[_Any!]!"}
		query.fields = append(slices.Clone(query.fields), &field{named: named{name: "_entities"}, arguments: []*input{representations}, ref: "[_Entity]!"})
		s.types["_Any"] = &part{name: "_Any", kind: syntax.ScalarDef}
		s.types["_Entity"] = &part{name: "_Entity", kind: syntax.UnionDef, members: entities}
	}
	sdlField := &field{named: named{name: "sdl"}, ref: "String"}
	query.fields = append(slices.Clone(query.fields), &field{named: named{name: "_service"}, ref: "_Service!"})
	s.types["_Service"] = &part{name: "_Service", kind: syntax.ObjectDef, fields: []*field{sdlField}}
	s.types[query.name] = &query
	return s.print(), nil
}

// query returns the query type, which may have no fields.
func (s *subgraph) query() *part {
	name := rootNames[syntax.Query]
	if p := s.types[name]; p != nil {
		return p
	}
	return &part{name: name, kind: syntax.ObjectDef}
}

// empty reports whether all members of the type are those of federation.
func (p *part) empty() bool {
	return len(p.fields)+len(p.inputs)+len(p.values)+len(p.members) == 0 && p.kind != syntax.ScalarDef
}

func (p *part) metadata() Type {
	t := Type{Name: p.name, Root: isRoot(p.name)}
	for _, k := range p.keys {
		t.Keys = append(t.Keys, Key{Fields: k.text, Resolvable: k.resolvable})
		t.Entity = t.Entity || k.resolvable
	}
	for _, f := range p.fields {
		if f.external && !f.inKey {
			t.External = append(t.External, f.name)
		} else {
			t.Fields = append(t.Fields, f.name)
			if f.inKey && (f.external || !p.defined) {
				t.Given = append(t.Given, f.name)
			}
		}
		if f.requires != nil {
			t.Requires = append(t.Requires, Selection{f.name, f.requires.text})
		}
		if f.provides != nil {
			t.Provides = append(t.Provides, Selection{f.name, f.provides.text})
		}
	}
	slices.Sort(t.Fields)
	slices.Sort(t.External)
	slices.Sort(t.Given)
	return t
}
