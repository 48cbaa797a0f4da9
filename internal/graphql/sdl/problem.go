package sdl

import (
	"fmt"
	"slices"

	"github.com/sluicegate/sluice/internal/graphql/syntax"
)

// A Problem is one thing that is wrong with a schema.
type Problem struct {
	Message  string
	Location syntax.Location
	Related  []syntax.Location // other places that the problem is about, such as the first of two equal names

	// Harmless tells that something is merely said twice in the same words, so
	// that it is clear what is meant. Published schemas have such repetitions.
	Harmless bool
}

// String returns the problem as "line:column: message".
func (p *Problem) String() string {
	return fmt.Sprintf("%d:%d: %s", p.Location.Line, p.Location.Column, p.Message)
}

// Errors is everything that is wrong with a schema, in order of position. It has
// at least one problem.
type Errors struct{ Problems []*Problem }

// Harmless tells whether all problems are harmless.
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
