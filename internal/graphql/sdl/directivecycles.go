package sdl

import "github.com/sluicegate/sluice/internal/graphql/syntax"

// directiveCycles reports directives that their own definition uses: on their
// arguments, on the types of these, or on whatever those are made of.
func (c *checker) directiveCycles() {
	s := components{c: c, nodes: map[any]*node{}}
	for i := range c.doc.TypeDefs {
		def := &c.doc.TypeDefs[i]
		if d := c.directives[c.id(c.name(def.Name))]; def.Kind == syntax.DirectiveDef && d.def == def && s.nodes[d] == nil {
			s.visit(d)
		}
	}
}

// components finds, by Tarjan's algorithm, the directives and types that each
// lead to all others of their component.
type components struct {
	c     *checker
	nodes map[any]*node // by *directive or *typ
	stack []*node
}

// A node is a directive or a type on the way.
type node struct {
	of         any
	index, low int // in order of visits; the lowest that is reached, of those on the stack
	open       bool
	loops      bool // leads to itself
}

// visit goes through all that a directive or type uses.
func (s *components) visit(of any) *node {
	n := &node{of: of, index: len(s.nodes), low: len(s.nodes), open: true}
	s.nodes[of] = n
	s.stack = append(s.stack, n)
	s.eachUsed(of, func(used any) {
		next := s.nodes[used]
		switch {
		case next == nil:
			n.low = min(n.low, s.visit(used).low)
		case next.open:
			n.low = min(n.low, next.index)
			n.loops = n.loops || next == n
		}
	})
	if n.low == n.index {
		s.leave(n)
	}
	return n
}

// leave takes a component off the stack, and reports its directives when they
// lead to themselves.
func (s *components) leave(first *node) {
	from := len(s.stack) - 1
	for s.stack[from] != first {
		from--
	}
	for _, n := range s.stack[from:] {
		n.open = false
		if d, ok := n.of.(*directive); ok && (n.loops || len(s.stack)-from > 1) {
			s.c.addf(d.def.Start, nil, "Directive @%s must not use itself on its arguments, nor on the types that they are made of.", clip(d.name))
		}
	}
	s.stack = s.stack[:from]
}

// eachUsed calls do for each directive and input type that a definition uses.
func (s *components) eachUsed(of any, do func(any)) {
	switch of := of.(type) {
	case *directive:
		for i := of.def.Inputs.Lo; i < of.def.Inputs.Hi; i++ {
			s.inputUses(i, do)
		}
	case *typ:
		for _, part := range of.parts {
			s.directiveUses(part.Directives, do)
			for i := part.EnumValues.Lo; i < part.EnumValues.Hi; i++ {
				s.directiveUses(s.c.doc.EnumValues[i].Directives, do)
			}
			for i := part.Inputs.Lo; i < part.Inputs.Hi; i++ {
				s.inputUses(i, do)
			}
		}
	}
}

func (s *components) inputUses(i uint32, do func(any)) {
	input := &s.c.doc.InputDefs[i]
	s.directiveUses(input.Directives, do)
	if t := s.c.innermost(input.Type); t != nil && !t.builtIn {
		do(t)
	}
}

// directiveUses leaves out built-in directives: what they use is built in too.
func (s *components) directiveUses(uses syntax.Range, do func(any)) {
	for i := uses.Lo; i < uses.Hi; i++ {
		if d := s.c.directives[s.c.id(s.c.name(s.c.doc.Directives[i].Name))]; d != nil && d.doc == s.c.doc {
			do(d)
		}
	}
}
