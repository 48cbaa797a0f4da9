package compose

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Code is the kind of a problem. Codes do not change between releases.
type Code string

// The codes of problems.
const (
	NoSubgraphs   Code = "NO_SUBGRAPHS"
	LimitExceeded Code = "LIMIT_EXCEEDED"
	InvalidName   Code = "INVALID_SUBGRAPH_NAME"
	DuplicateName Code = "DUPLICATE_SUBGRAPH_NAME"

	InvalidSubgraph Code = "INVALID_SUBGRAPH" // its schema is
	Unsupported     Code = "UNSUPPORTED_FEATURE"
	RootNameTaken   Code = "ROOT_NAME_TAKEN"

	ExtensionWithoutBase  Code = "EXTENSION_WITH_NO_BASE"
	ExtensionWithoutKey   Code = "KEY_MISSING_ON_EXTENSION"
	KeyWithoutEntity      Code = "KEY_MISSING_ON_BASE"
	EntityDefinedTwice    Code = "ENTITY_DEFINED_TWICE"
	SharedTypeExtended    Code = "SHARED_TYPE_EXTENDED"
	KindMismatch          Code = "KIND_MISMATCH"
	FieldMismatch         Code = "FIELD_TYPE_MISMATCH"
	ArgumentMismatch      Code = "ARGUMENT_MISMATCH"
	InterfaceMismatch     Code = "IMPLEMENTED_INTERFACE_MISMATCH"
	InputMismatch         Code = "INPUT_FIELD_MISMATCH"
	EnumMismatch          Code = "ENUM_MISMATCH"
	UnionMismatch         Code = "UNION_MISMATCH"
	ScalarMismatch        Code = "SCALAR_MISMATCH"
	FieldDefinedTwice     Code = "FIELD_DEFINED_TWICE"
	ExternalMismatch      Code = "EXTERNAL_TYPE_MISMATCH"
	ExternalWithoutBase   Code = "EXTERNAL_MISSING_ON_BASE"
	ExternalOnBase        Code = "EXTERNAL_USED_ON_BASE"
	InvalidFieldSet       Code = "INVALID_FIELD_SET"
	KeyUnknownField       Code = "KEY_INVALID_FIELD"
	KeyUnknownToBase      Code = "KEY_NOT_SPECIFIED"
	RequiresUnknownField  Code = "REQUIRES_INVALID_FIELD"
	RequiresNotExternal   Code = "REQUIRES_FIELDS_MISSING_EXTERNAL"
	ProvidesUnknownField  Code = "PROVIDES_INVALID_FIELD"
	ProvidesNotExternal   Code = "PROVIDES_FIELDS_MISSING_EXTERNAL"
	ProvidesNotOnEntity   Code = "PROVIDES_NOT_ON_ENTITY"
	InvalidSupergraph     Code = "INVALID_SUPERGRAPH" // the composed schema is
	FieldUnreachable      Code = "FIELD_UNREACHABLE"
	TooManyProblemsToList Code = "MORE_PROBLEMS"
)

// A Problem is one thing because of which subgraphs cannot be composed.
type Problem struct {
	Code    Code
	Message string  // the rule, with the type's name
	Detail  string  // what breaks it; "" where the message says it
	Type    string  // "": it is not about one type
	Field   string  // field, input field, enum value or union member; "": not about one
	Places  []Place // by subgraph and line; at most 20
}

// A Place is a place in the schema of a subgraph.
type Place struct {
	// Name of the subgraph.
	Subgraph string `json:"subgraph"`
	// Line of its schema, from 1; left out: the whole schema.
	Line int `json:"line,omitempty"`
}

// String returns the problem in one line: the message, the detail and the places.
func (p *Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Message)
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	for i, at := range p.Places {
		b.WriteString([]string{" (", ", "}[min(i, 1)] + at.String())
	}
	if len(p.Places) > 0 {
		b.WriteString(")")
	}
	return b.String()
}

// String returns the place as it is written in a sentence.
func (p Place) String() string {
	if p.Line == 0 {
		return p.Subgraph
	}
	return p.Subgraph + ", line " + strconv.Itoa(p.Line)
}

// Bounds on what is reported.
const (
	maxProblems = 1000
	maxPlaces   = 20
	maxDetail   = 800 // bytes
	maxText     = 200 // bytes of a name or value
)

// report gathers problems.
type report struct{ problems []Problem }

func (r *report) empty() bool { return len(r.problems) == 0 }

// full reports whether no more problems are recorded, so that checks can end.
func (r *report) full() bool { return len(r.problems) >= maxProblems }

func (r *report) add(p Problem) {
	if r.full() {
		return
	}
	p.Message, p.Detail = shorten(p.Message, maxDetail), shorten(p.Detail, maxDetail)
	slices.SortStableFunc(p.Places, comparePlaces)
	p.Places = slices.Compact(p.Places)
	p.Places = p.Places[:min(len(p.Places), maxPlaces)]
	r.problems = append(r.problems, p)
}

// sorted returns the problems by type, field and place.
func (r *report) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Code, b.Code),
			slices.CompareFunc(a.Places, b.Places, comparePlaces), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Detail, b.Detail),
		)
	})
	full := r.full()
	problems := slices.CompactFunc(r.problems, func(a, b Problem) bool {
		return a.Code == b.Code && a.Message == b.Message && a.Detail == b.Detail && slices.Equal(a.Places, b.Places)
	})
	if full {
		problems = append(problems, Problem{Code: TooManyProblemsToList, Message: fmt.Sprintf("there are more problems than the %d that are listed", len(problems))})
	}
	return problems
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Subgraph, b.Subgraph), cmp.Compare(a.Line, b.Line))
}

// clip returns a name or value for a message, short enough that others have room
// beside it.
func clip(text string) string { return shorten(text, maxText) }

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
