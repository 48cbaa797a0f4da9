package change

import (
	"errors"

	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// Schema returns the schema of a GraphQL API; a supergraph without one is composed. The
// error is a *sdl.Errors, or a *definition.Problems of subgraphs that cannot be composed.
func Schema(api *definition.API) (*schema.Schema, error) {
	api, err := datagraph.Composed(api)
	if err != nil {
		return nil, err
	}
	return schema.Load(api.GraphQL.Schema)
}

// DataGraph returns what of the data sources or subgraphs of an API does not fit its
// schema, nothing of an API that is neither a data graph nor a supergraph.
func DataGraph(api *definition.API, s *schema.Schema) definition.Problems {
	if !api.IsDataGraph() && !api.IsSupergraph() {
		return nil
	}
	_, err := datagraph.Compile(api, s)
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		return *wrong
	}
	return nil
}
