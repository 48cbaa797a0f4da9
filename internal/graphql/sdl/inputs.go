package sdl

import (
	"strings"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// inputCycles reports input objects that can never be given, because they have
// to hold themselves.
func (c *checker) inputCycles() {
	s := cycles{c: c, at: map[*typ]int{}, done: map[*typ]bool{}}
	for _, t := range c.types {
		if t.kind == syntax.InputObjectDef && !t.builtIn {
			s.search(t)
		}
	}
}

// cycles searches input objects depth first. It goes through each once, and
// finds a cycle wherever a field leads back to an object that is being gone
// through.
type cycles struct {
	c    *checker
	path []*syntax.InputDef // the fields that lead to where the search is
	at   map[*typ]int       // objects being gone through: where the path from them begins
	done map[*typ]bool
}

func (s *cycles) search(t *typ) {
	if s.done[t] || s.c.full() {
		return
	}
	s.done[t] = true
	s.at[t] = len(s.path)
	for _, i := range t.inputs {
		s.follow(&s.c.doc.InputDefs[i])
	}
	delete(s.at, t)
}

func (s *cycles) follow(input *syntax.InputDef) {
	outer := &s.c.doc.Types[input.Type]
	if outer.Kind != syntax.NonNullType || s.c.doc.Types[outer.Of].Kind != syntax.NamedType {
		return
	}
	t := s.c.innermost(input.Type)
	if t == nil || t.kind != syntax.InputObjectDef {
		return
	}
	s.path = append(s.path, input)
	if from, open := s.at[t]; open {
		s.report(t, s.path[from:])
	} else {
		s.search(t)
	}
	s.path = s.path[:len(s.path)-1]
}

func (s *cycles) report(t *typ, path []*syntax.InputDef) {
	const most = 50 // fields that are named
	var names []string
	var at []uint32
	for _, input := range path[:min(len(path), most)] {
		names = append(names, s.c.name(input.Name))
		at = append(at, input.Start)
	}
	if len(path) > most {
		names = append(names, "…")
	}
	s.c.addf(at[0], at[1:], `Cannot reference Input Object "%s" within itself through a series of non-null fields: "%s".`,
		t.name, strings.Join(names, "."))
}
