package checks

import (
	"errors"
	"fmt"

	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/change"
	"github.com/sluicegate/sluice/internal/graphql/schema"
	"github.com/sluicegate/sluice/internal/graphql/sdl"
)

// graphQL checks the schema of an API, and by it the operations that the
// definition holds. Places are lines and columns of the schema or operation, not
// of the file, where it is one long string.
func (v *Checks) graphQL(path string, api *definition.API) {
	if !api.IsGraphQL() {
		return
	}
	s, err := schema.Load(api.GraphQL.Schema)
	if wrong, ok := errors.AsType[*sdl.Errors](err); ok {
		for _, p := range wrong.Problems {
			v.add(path, fmt.Sprintf("%s:%d:%d", definition.SchemaPath, p.Location.Line, p.Location.Column), "%s", p.Message)
		}
		return
	}
	if err != nil {
		v.add(path, definition.SchemaPath, "%v", err)
		return
	}
	for _, o := range change.Operations(api) {
		for _, problem := range o.Problems(s) {
			v.add(path, o.Path, "%s", o.Describe(problem))
		}
	}
}
