package sdl

import (
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A Problem is one error in a schema.
type Problem struct {
	Message  string
	Location syntax.Location
	Related  []syntax.Location // other places that the problem is about, such as the first of two equal names

	// Harmless is true for an exact repetition of a definition, whose meaning is
	// clear. Published schemas contain such repetitions.
	Harmless bool
}

// String returns the problem as "line:column: message".
func (p *Problem) String() string {
	return fmt.Sprintf("%d:%d: %s", p.Location.Line, p.Location.Column, p.Message)
}

// Errors holds all errors in a schema, in the order of their positions. It has
// at least one problem.
type Errors struct{ Problems []*Problem }

// Harmless reports whether all problems are harmless.
func (e *Errors) Harmless() bool {
	return !slices.ContainsFunc(e.Problems, func(p *Problem) bool { return !p.Harmless })
}

// Error returns the first problem and how many more there are.
func (e *Errors) Error() string {
	if more := len(e.Problems) - 1; more > 0 {
		return fmt.Sprintf("invalid schema: %s (and %d more)", e.Problems[0], more)
	}
	return "invalid schema: " + e.Problems[0].String()
}

// Texts returns every problem as "line:column: message".
func (e *Errors) Texts() []string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return texts
}
