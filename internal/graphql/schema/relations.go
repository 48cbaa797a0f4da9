package schema

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// relate works out which types belong to which: the interfaces that each type
// implements, and the objects that each composite type can turn out to be.
func (c *compiler) relate() {
	n := len(c.types)
	c.possible, c.implements = make([]Set, n), make([][]TypeID, n)
	c.findInterfaces()
	objects := 0
	for objects < n && c.Types[objects].Kind == Object {
		objects++
	}
	words := objects/64 + 1
	c.possibleObjects(objects, words)
	for t := range c.Types {
		if kind := c.Types[t].Kind; kind == Interface || kind == Union {
			c.possible[t] = make(Set, words)
		}
	}
	for id := range objects {
		for _, iface := range c.implements[id] {
			c.possible[iface].add(TypeID(id))
		}
	}
	c.possibleMembers()
}

func (s Set) add(t TypeID) {
	if s != nil {
		s[t>>6] |= 1 << (t & 63)
	}
}

// possibleObjects gives each object the set of itself. A set of its own would
// take a bit for each object before it, so those whose last words are equal
// share one row of words, zeros but for its last: 64 rows do for all objects.
func (c *compiler) possibleObjects(objects, words int) {
	rows := make([]uint64, 64*words)
	for id := range objects {
		bit, word := id&63, id>>6
		row := rows[bit*words : (bit+1)*words]
		row[words-1] = 1 << bit
		c.possible[id] = Set(row[words-1-word:])
	}
}

func (c *compiler) findInterfaces() {
	for id := range c.types {
		for _, p := range c.types[id].parts {
			if p.def.Kind == syntax.ObjectDef || p.def.Kind == syntax.InterfaceDef {
				c.implement(TypeID(id), p)
			}
		}
		c.implements[id] = slices.Clip(c.implements[id])
	}
}

func (c *compiler) implement(id TypeID, p part) {
	for _, at := range p.doc.Names[p.def.Interfaces.Lo:p.def.Interfaces.Hi] {
		if iface, ok := c.ids[p.name(at)]; ok {
			c.implements[id] = append(c.implements[id], iface)
		}
	}
}

// possibleMembers fills in the members of unions.
func (c *compiler) possibleMembers() {
	for id := range c.types {
		if c.Types[id].Kind != Union {
			continue
		}
		for _, p := range c.types[id].parts {
			for _, at := range p.doc.Names[p.def.Members.Lo:p.def.Members.Hi] {
				if member, ok := c.ids[p.name(at)]; ok && c.Types[member].Kind == Object {
					c.possible[id].add(member)
				}
			}
		}
	}
}
