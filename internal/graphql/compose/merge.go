package compose

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A composer merges subgraphs that are valid by themselves.
type composer struct {
	*report
	subgraphs []*subgraph // by name
	types     map[string]*typ
}

// A typ is a type of the composed schema.
type typ struct {
	name   string
	parts  []*part // by subgraph
	bases  []*part // those that define it
	kind   syntax.TypeDefKind
	root   bool
	entity bool
	merged *part
	owners map[string][]*part // those that resolve a field, by its name
}

// merge gathers the types of all subgraphs, checks that they fit, and merges them.
func (c *composer) merge() {
	for _, s := range c.subgraphs {
		for name, p := range s.types {
			t := c.types[name]
			if t == nil {
				t = &typ{name: name, owners: map[string][]*part{}}
				c.types[name] = t
			}
			t.parts = append(t.parts, p)
			if p.defined {
				t.bases = append(t.bases, p)
			}
		}
	}
	for _, t := range c.sortedTypes() {
		t.root = isRoot(t.name)
		c.mergeType(t)
	}
	for _, t := range c.sortedTypes() {
		c.checkSets(t)
	}
}

func (c *composer) sortedTypes() []*typ {
	all := make([]*typ, 0, len(c.types))
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		all = append(all, c.types[name])
	}
	return all
}

func (c *composer) mergeType(t *typ) {
	t.kind = t.parts[0].kind
	if len(t.bases) > 0 {
		t.kind = t.bases[0].kind
	}
	for _, p := range t.parts {
		t.entity = t.entity || p.defined && len(p.keys) > 0
	}
	if !c.kindsFit(t) || !c.partsFit(t) {
		return
	}
	if t.isShared() {
		c.checkShared(t)
	}
	t.merged = t.union()
	c.checkFields(t)
}

// isShared reports whether several subgraphs define the type, which then is the same in
// all of them.
func (t *typ) isShared() bool { return len(t.bases) > 1 && !t.root && !t.entity }

// kindsFit reports whether all parts are of one kind.
func (c *composer) kindsFit(t *typ) bool {
	other := slices.IndexFunc(t.parts, func(p *part) bool { return p.kind != t.kind })
	if other < 0 {
		return true
	}
	p := t.parts[other]
	problem := Problem{Code: KindMismatch, Message: mustBeIdentical(t.name), Type: t.name, Places: places(t.parts)}
	if !p.defined && len(t.bases) > 0 {
		problem.Message = "the type named '" + t.name + "' cannot be extended as another kind of type"
	}
	for i, p := range t.parts {
		problem.Detail += separator(i > 0) + "it is " + kindNames[p.kind] + " in " + clip(p.in.name)
	}
	c.add(problem)
	return false
}

// partsFit reports whether definitions and extensions go together.
func (c *composer) partsFit(t *typ) bool {
	var extensions []*part
	for _, p := range t.parts {
		if p.extended && (!p.defined || len(t.bases) > 1) {
			extensions = append(extensions, p)
		}
	}
	fail := func(code Code, message string, of []*part) bool {
		c.add(Problem{Code: code, Message: message, Type: t.name, Places: places(of)})
		return false
	}
	switch {
	case t.root:
	case len(t.bases) == 0:
		return fail(ExtensionWithoutBase, "the extension orphan named '"+t.name+"' was never resolved in the supergraph", t.parts)
	case t.entity && len(t.bases) > 1 && !t.manyOwners():
		return fail(EntityDefinedTwice, "the entity named '"+t.name+"' is defined in the subgraph(s) more than once", t.bases)
	case len(t.bases) > 1 && !t.entity && len(extensions) > 0:
		return fail(SharedTypeExtended, "the type named '"+t.name+"' cannot be extended because it is a shared type", append(slices.Clone(t.bases), extensions...))
	case t.kind == syntax.ObjectDef:
		return c.keysFit(t, extensions)
	}
	return true
}

// manyOwners reports whether all subgraphs that define an entity link Federation 2, and do
// so with a key.
func (t *typ) manyOwners() bool {
	return !slices.ContainsFunc(t.bases, func(p *part) bool { return !p.in.v2 || len(p.keys) == 0 })
}

// keysFit reports whether the extensions of an entity have keys, and no others do.
func (c *composer) keysFit(t *typ, extensions []*part) bool {
	fits := true
	for _, p := range extensions {
		problem := Problem{Type: t.name, Places: []Place{p.place(), t.bases[0].place()}}
		switch hasKey := len(p.keys) > 0; {
		case t.entity && !hasKey:
			problem.Code, problem.Message = ExtensionWithoutKey, "an extension of the entity named '"+t.name+"' does not have a key directive"
		case !t.entity && hasKey:
			problem.Code, problem.Message = KeyWithoutEntity, "the extension named '"+t.name+"' has a key directive but there is no entity of the same name"
		default:
			continue
		}
		fits = false
		c.add(problem)
	}
	return fits
}

// union returns a part that has the members of all parts, once each, definitions first.
// Of what subgraphs describe or deprecate differently, the first counts.
func (t *typ) union() *part {
	u := &part{name: t.name, kind: t.kind, byName: map[string]*field{}}
	inputs, values := map[string]*input{}, map[string]*value{}
	names := map[string]bool{}
	for _, p := range t.ordered() {
		u.oneOf = u.oneOf || p.oneOf
		u.description, u.specifiedBy = cmp.Or(u.description, p.description), cmp.Or(u.specifiedBy, p.specifiedBy)
		u.interfaces = unionOfNames(u.interfaces, names, p.interfaces)
		u.members = unionOfNames(u.members, names, p.members)
		for _, f := range p.fields {
			if have := u.byName[f.name]; have != nil {
				have.take(&f.named)
				mergeNamed(have.arguments, argumentsOf(have), f.arguments, clone)
				continue
			}
			merged := *f
			merged.arguments = mergeNamed(nil, map[string]*input{}, f.arguments, clone)
			u.byName[f.name], u.fields = &merged, append(u.fields, &merged)
		}
		u.inputs = mergeNamed(u.inputs, inputs, p.inputs, clone)
		u.values = mergeNamed(u.values, values, p.values, clone)
	}
	return u
}

// mergeNamed appends copies of what is not known yet, and gives what is known the
// description that it lacks.
func mergeNamed[T interface{ self() *named }](list []T, known map[string]T, more []T, clone func(T) T) []T {
	for _, m := range more {
		name := m.self().name
		if have, ok := known[name]; ok {
			have.self().take(m.self())
			continue
		}
		known[name] = clone(m)
		list = append(list, known[name])
	}
	return list
}

// take takes over a description and deprecation where there is none.
func (n *named) take(from *named) {
	n.description, n.deprecated = cmp.Or(n.description, from.description), cmp.Or(n.deprecated, from.deprecated)
}

func clone[T any](of *T) *T { return new(*of) }

func argumentsOf(f *field) map[string]*input {
	all := make(map[string]*input, len(f.arguments))
	for _, in := range f.arguments {
		all[in.name] = in
	}
	return all
}

func unionOfNames(list []string, known map[string]bool, more []string) []string {
	for _, name := range more {
		if !known[name] {
			known[name] = true
			list = append(list, name)
		}
	}
	return list
}

// ordered returns the parts, definitions first.
func (t *typ) ordered() []*part {
	all := slices.Clone(t.bases)
	for _, p := range t.parts {
		if !p.defined {
			all = append(all, p)
		}
	}
	return all
}

// checkFields notes who resolves each field, and checks that subgraphs agree about it.
func (c *composer) checkFields(t *typ) {
	keyed := map[*part]map[string]bool{}
	for _, p := range t.parts {
		names := map[string]bool{}
		for _, k := range p.keys {
			for _, f := range k.fields {
				names[f.name] = true
			}
		}
		keyed[p] = names
	}
	for _, f := range t.merged.fields {
		var owners, all []*part
		for _, p := range t.ordered() {
			own := p.byName[f.name]
			if own == nil {
				continue
			}
			all = append(all, p)
			own.inKey = keyed[p][f.name]
			if !own.external {
				owners = append(owners, p)
			}
		}
		t.owners[f.name] = owners
		if c.full() {
			return
		}
		if !t.isShared() && t.kind == syntax.ObjectDef {
			c.checkOwners(t, f.name, owners, all)
		}
		if !t.isShared() {
			c.sameField(t, f.name, all)
		}
	}
}

// checkOwners reports a field that no subgraph resolves, or more than may.
func (c *composer) checkOwners(t *typ, name string, owners, all []*part) {
	for _, p := range t.bases {
		if f := p.byName[name]; f != nil && f.external && len(t.bases) == 1 {
			c.add(Problem{
				Code: ExternalOnBase, Message: "the field '" + name + "' of the type named '" + t.name + "' must not be external where the type is defined",
				Type: t.name, Field: name, Places: fieldPlaces([]*part{p}, name),
			})
			return
		}
	}
	if len(owners) == 0 {
		c.add(Problem{
			Code: ExternalWithoutBase, Message: "the field '" + name + "' of the type named '" + t.name + "' is external, and no subgraph resolves it",
			Type: t.name, Field: name, Places: fieldPlaces(all, name),
		})
		return
	}
	alone := slices.ContainsFunc(owners, func(p *part) bool { f := p.byName[name]; return !f.shareable && !f.inKey })
	if len(owners) > 1 && alone {
		c.add(Problem{
			Code: FieldDefinedTwice, Message: "the field '" + name + "' of the type named '" + t.name + "' is resolved by more than one subgraph",
			Detail: "mark it @external where it is resolved elsewhere, or @shareable everywhere", Type: t.name, Field: name, Places: fieldPlaces(owners, name),
		})
	}
}

func places(of []*part) (all []Place) {
	for _, p := range of {
		all = append(all, p.place())
	}
	return all
}

func fieldPlaces(of []*part, name string) (all []Place) {
	for _, p := range of {
		if f := p.byName[name]; f != nil {
			all = append(all, p.at(f.line))
		} else {
			all = append(all, p.place())
		}
	}
	return all
}
