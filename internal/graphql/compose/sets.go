package compose

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// checkSets checks what @key, @requires and @provides name.
func (c *composer) checkSets(t *typ) {
	for _, p := range t.parts {
		if c.full() {
			return
		}
		for i := range p.keys {
			c.checkKey(t, p, &p.keys[i])
		}
		for _, f := range p.fields {
			if f.requires != nil {
				c.checkRequires(t, p, f)
			}
			if f.provides != nil {
				c.checkProvides(t, p, f)
			}
		}
	}
}

func (c *composer) checkKey(t *typ, p *part, k *key) {
	s := &setCheck{c: c, in: p.in, set: &k.fieldSet, directive: "key", code: KeyUnknownField, owner: t.name}
	s.check(t.name, k.fields)
	if !t.entity || p.defined || len(t.bases) != 1 {
		return
	}
	base := t.bases[0]
	if !slices.ContainsFunc(base.keys, func(own key) bool { return own.sorted == k.sorted }) {
		s.fail(KeyUnknownToBase, "the definition in "+clip(base.in.name)+" does not have this key")
	}
}

func (c *composer) checkRequires(t *typ, p *part, f *field) {
	s := &setCheck{c: c, in: p.in, set: f.requires, directive: "requires", code: RequiresUnknownField, owner: t.name, field: f.name}
	s.check(t.name, f.requires.fields)
	if len(p.keys) == 0 {
		if !t.entity { // otherwise the missing key is reported
			s.fail(RequiresNotExternal, "the type has no key, so that it is never sent to this subgraph")
		}
		return
	}
	s.mustBeExternal(p, RequiresNotExternal)
}

func (c *composer) checkProvides(t *typ, p *part, f *field) {
	s := &setCheck{c: c, in: p.in, set: f.provides, directive: "provides", code: ProvidesUnknownField, owner: t.name, field: f.name}
	of, whole := p.in.types[f.of], c.types[f.of]
	if of == nil || of.kind != syntax.ObjectDef || !whole.entity {
		s.fail(ProvidesNotOnEntity, "'"+clip(f.of)+"' is not an entity")
		return
	}
	s.check(f.of, f.provides.fields)
	s.mustBeExternal(of, ProvidesNotExternal)
}

// mustBeExternal reports fields of the set that the subgraph resolves itself. Those of its
// keys may be either.
func (s *setCheck) mustBeExternal(p *part, code Code) {
	for _, sel := range s.set.fields {
		if f := p.byName[sel.name]; f != nil && !f.external && !f.inKey {
			s.fail(code, "'"+clip(p.name+"."+sel.name)+"' must be marked @external in this subgraph")
		}
	}
}
