// Package compose makes one schema of the schemas of several services (subgraphs) by the
// rules of Apollo Federation 1: the schema that clients of the supergraph see, and what a
// planner has to know about each subgraph.
//
// It reports all problems at once, each with the subgraphs and lines that it is about. The
// composition of the library that plans operations stops at its first problem and knows no
// lines, so it is not used here.
//
// # Rules
//
// An object type with @key is an entity. One subgraph defines it, and others extend it
// (extend type, or @extends), each with a @key that the definition has too. Fields that an
// extension declares @external are resolved elsewhere; those of its keys need not be declared
// so. Where all subgraphs that define an entity link Federation 2, several may define it.
//
// Any other type that several subgraphs define is shared: it must be the same in all of
// them, but for descriptions, order and deprecations, and cannot be extended. A type that
// one subgraph defines can be extended by others.
//
// The root types are merged under the names Query, Mutation and Subscription, whatever a
// subgraph calls them. A field that several subgraphs resolve must be @shareable in each of
// them or be part of a key. Every field of the schema has to be reachable from the root
// types, through keys where a type's fields are in several subgraphs.
//
// Directives of Federation 2: @shareable and @link are understood, @tag is accepted and has
// no effect on the schema of clients. All others are refused by name. Definitions of other
// directives are those of their subgraph and not part of the composed schema.
package compose

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// How much can be composed. A subgraph, and what comes of the composition, has the bounds
// of any other schema besides.
const (
	MaxSubgraphs = 1000
	MaxBytes     = 4 * sdl.MaxBytes // of all subgraphs together
	MaxName      = 256              // bytes of a subgraph's name
)

// A Subgraph is a service to be composed.
type Subgraph struct {
	Name string // unique in a composition
	SDL  string // its schema with the directives of federation, as its field _service.sdl returns it
}

// A Supergraph is the result of a composition. It does not depend on the order of the
// subgraphs.
type Supergraph struct {
	SDL       string     // the schema of clients; root types have the default names
	Subgraphs []Metadata // by name
}

// Metadata is what a planner has to know about a subgraph.
type Metadata struct {
	Name string
	// The schema of the subgraph's operations: what it extends is defined, directives of
	// federation are left out, root types have the default names. It has a query type in any
	// case, if need be with the field _service alone, and not the field _entities.
	SDL   string
	Types []Type // the composite types that it has fields of, by name
}

// A Type is what a subgraph knows about an object or interface type.
type Type struct {
	Name   string
	Root   bool     // Query, Mutation or Subscription
	Entity bool     // can be fetched by a key
	Fields []string // that the subgraph resolves, those of its keys included; sorted

	External []string    // fields that it declares and that other subgraphs resolve; sorted
	Given    []string    // those of Fields that are of keys of an entity that another subgraph defines; sorted
	Keys     []Key       // in the order of the schema
	Requires []Selection // by field
	Provides []Selection // by field
}

// A Key is a set of fields that identifies an entity.
type Key struct {
	Fields     string // such as: id organisation { id }
	Resolvable bool   // the subgraph answers _entities for it
}

// A Selection is a set of fields that @requires or @provides names.
type Selection struct {
	Field  string // that has the directive
	Fields string // such as: id organisation { id }
}

// Compose composes subgraphs. If there are problems, it returns all of them, sorted, and no
// supergraph. Neither depends on the order of the subgraphs.
func Compose(subgraphs []Subgraph) (*Supergraph, []Problem) {
	subgraphs = slices.SortedStableFunc(slices.Values(subgraphs), func(a, b Subgraph) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.SDL, b.SDL))
	})
	r := &report{}
	if !bounded(subgraphs, r) {
		return nil, r.sorted()
	}
	c := &composer{report: r, types: map[string]*typ{}}
	for i, s := range subgraphs {
		read := readSubgraph(s, r)
		read.index = i
		c.subgraphs = append(c.subgraphs, read)
	}
	if r.empty() {
		c.merge()
	}
	if !r.empty() {
		return nil, r.sorted()
	}
	text, lines := c.print()
	c.checkMerged(text, lines)
	if r.empty() {
		c.checkReachable()
	}
	if !r.empty() {
		return nil, r.sorted()
	}
	made := &Supergraph{SDL: text}
	for _, s := range c.subgraphs {
		made.Subgraphs = append(made.Subgraphs, s.metadata())
	}
	return made, nil
}

// bounded reports subgraphs that are too many, too large, or not told apart.
func bounded(sorted []Subgraph, r *report) bool {
	total := 0
	for i, s := range sorted {
		total += len(s.SDL)
		switch {
		case s.Name == "" || len(s.Name) > MaxName:
			r.add(Problem{Code: InvalidName, Message: "a subgraph must have a name of at most " + strconv.Itoa(MaxName) + " bytes", Places: []Place{{Subgraph: clip(s.Name)}}})
		case i > 0 && sorted[i-1].Name == s.Name:
			r.add(Problem{Code: DuplicateName, Message: "there can be only one subgraph named '" + s.Name + "'", Places: []Place{{Subgraph: s.Name}}})
		}
	}
	switch {
	case len(sorted) == 0:
		r.add(Problem{Code: NoSubgraphs, Message: "there are no subgraphs to compose"})
	case len(sorted) > MaxSubgraphs:
		r.add(Problem{Code: LimitExceeded, Message: "there are " + strconv.Itoa(len(sorted)) + " subgraphs, at most " + strconv.Itoa(MaxSubgraphs) + " are possible"})
	case total > MaxBytes:
		r.add(Problem{Code: LimitExceeded, Message: "the subgraphs have " + strconv.Itoa(total) + " bytes, at most " + strconv.Itoa(MaxBytes) + " are possible"})
	}
	return r.empty()
}
