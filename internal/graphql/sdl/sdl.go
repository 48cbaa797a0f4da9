// Package sdl reads schemas in GraphQL's schema definition language, holds them
// against the rules of type validation, and turns the answer of an introspection
// query into such text.
//
// Rules: GraphQL specification, September 2025, section 3.
package sdl

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// How large a schema can be.
const (
	MaxBytes     = 4 << 20 // of text
	MaxTypes     = 20_000  // definitions of types and directives, and extensions
	MaxFields    = 50_000  // of objects and interfaces
	MaxArguments = 200_000 // of fields and directives, and input fields
	MaxValues    = 200_000 // of enums
	MaxWrappers  = 16      // lists and non-nulls around one type
)

// maxNesting is how deep lists and objects in values, and lists in types, go.
const maxNesting = 100

// Parse reads the text of a schema and checks it. The error is an *Errors. Where
// that is harmless, the document is returned as well.
func Parse(text string) (*syntax.Document, error) {
	doc := &syntax.Document{}
	err := syntax.ParseSchema(doc, []byte(text), syntax.Limits{Bytes: MaxBytes, ValueDepth: maxNesting})
	if err != nil {
		return nil, &Errors{Problems: []*Problem{unreadable(err)}}
	}
	problems := Check(doc)
	if len(problems) == 0 {
		return doc, nil
	}
	found := &Errors{Problems: problems}
	if !found.Harmless() {
		doc = nil
	}
	return doc, found
}

// unreadable returns the error of a text that cannot be parsed.
func unreadable(err error) *Problem {
	p := &Problem{Message: err.Error(), Location: syntax.Location{Line: 1, Column: 1}}
	if limit, ok := errors.AsType[*syntax.LimitError](err); ok {
		p.Message = fmt.Sprintf("the schema exceeds the limit on %s: at most %d", limit.What, limit.Max)
	}
	if at, ok := errors.AsType[*syntax.Error](err); ok && len(at.Locations) > 0 {
		p.Location = at.Locations[0]
	}
	return p
}
