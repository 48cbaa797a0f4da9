package change

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/syntax"
	"github.com/sluicegate/sluice/internal/graphql/validate"
)

// An Operation is one that an API definition holds.
type Operation struct {
	Kind BreakKind // PersistedQuery or TrustedDocument
	Name string    // method and path of a persisted query, else ""
	Path string    // JSON path in the definition
	Text string
}

// Describe puts the operation's name before what is said of it.
func (o *Operation) Describe(problem *syntax.Error) string {
	text := problem.Error()
	if len(problem.Locations) > 0 {
		text = at(problem.Locations[0]) + text
	}
	if o.Name != "" {
		text = o.Name + ": " + text
	}
	return text
}

// Problems returns what is wrong with the operation by a schema, at least the
// first of it; none when it is valid.
func (o *Operation) Problems(s *schema.Schema) []*syntax.Error {
	var doc syntax.Document
	if err := syntax.Parse(&doc, []byte(o.Text), limits); err != nil {
		if known, ok := errors.AsType[*syntax.Error](err); ok {
			return []*syntax.Error{known}
		}
		return []*syntax.Error{{Message: err.Error()}}
	}
	var v validate.Validator
	return v.Check(s, &doc, validate.Options{Suggestions: true})
}

// limits bound what a stored operation may be, as generously as a machine can
// bear: the operator of the API wrote it.
var limits = syntax.Limits{Bytes: 1 << 20, Tokens: 100_000, Depth: 200, ValueDepth: 100}

func at(l syntax.Location) string { return fmt.Sprintf("%d:%d: ", l.Line, l.Column) }
