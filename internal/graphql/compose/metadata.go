package compose

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// metadata says what a subgraph resolves.
func (c *composer) metadata(s *subgraph) Metadata {
	m := Metadata{Name: s.name}
	p := &printer{}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		own := s.types[name]
		if len(own.fields) > 0 || len(own.inputs)+len(own.values)+len(own.members) > 0 || own.kind == syntax.ScalarDef {
			p.typ(own)
		}
		if len(own.fields) > 0 {
			m.Types = append(m.Types, own.metadata())
		}
	}
	if query := s.types[rootNames[syntax.Query]]; query == nil || len(query.fields) == 0 {
		p.write("type Query {\n  _service: _Service!\n}\n\ntype _Service {\n  sdl: String\n}\n\n")
	}
	m.SDL = strings.TrimSuffix(p.b.String(), "\n")
	return m
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
	return t
}
