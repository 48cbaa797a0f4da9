package compose

import (
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A subgraph is one that was read.
type subgraph struct {
	name  string
	index int              // by name
	lines []uint32         // where lines begin, but the first
	types map[string]*part // by name; root types by their default names
	v2    bool             // links Federation 2
}

// A part is what one subgraph says about a type: its definition with its extensions, or
// its extensions alone.
type part struct {
	in          *subgraph
	name        string
	kind        syntax.TypeDefKind
	defined     bool // by this subgraph
	extended    bool // by this subgraph
	line        int
	description string

	interfaces []string
	fields     []*field // of objects and interfaces
	inputs     []*input // of input objects
	values     []*value // of enums
	members    []string // of unions
	keys       []key

	byName      map[string]*field // of fields
	oneOf       bool
	specifiedBy string
}

// A named is what fields, inputs and values of enums have in common.
type named struct {
	name        string
	line        int
	description string
	deprecated  string // the directive; "": it is not
}

func (n *named) self() *named { return n }

type field struct {
	named
	arguments []*input
	ref       string // the type: [Int!]!
	of        string // the type within
	list      bool

	external  bool
	shareable bool
	inKey     bool // of this subgraph's keys
	requires  *fieldSet
	provides  *fieldSet
}

// An input is an argument or an input field.
type input struct {
	named
	ref      string // the type
	required bool
	fallback string // the default value in one notation; "": none
}

// A value is a value of an enum.
type value struct{ named }

type key struct {
	fieldSet
	resolvable bool
}

func (p *part) place() Place { return Place{p.in.name, p.line} }

func (p *part) at(line int) Place { return Place{p.in.name, line} }

// text returns the input as it is compared.
func (in *input) text() string {
	if in.fallback == "" {
		return in.ref
	}
	return in.ref + " = " + in.fallback
}

// rootNames are the names of root types by the kind of their operations.
var rootNames = [...]string{syntax.Query: "Query", syntax.Mutation: "Mutation", syntax.Subscription: "Subscription"}

func isRoot(name string) bool { return slices.Contains(rootNames[:], name) }

// kindNames names kinds of types in messages.
var kindNames = [...]string{
	syntax.ScalarDef:      "a scalar",
	syntax.ObjectDef:      "an object",
	syntax.InterfaceDef:   "an interface",
	syntax.UnionDef:       "a union",
	syntax.EnumDef:        "an enum",
	syntax.InputObjectDef: "an input object",
}
