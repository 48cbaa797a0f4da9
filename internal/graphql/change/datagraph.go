package change

import (
	"errors"

	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// DataGraph returns what of the data sources of an API does not fit its schema, nothing of
// an API that is no data graph.
func DataGraph(api *definition.API, s *schema.Schema) definition.Problems {
	if !api.IsDataGraph() {
		return nil
	}
	_, err := datagraph.Compile(api, s)
	if wrong, ok := errors.AsType[*definition.Problems](err); ok {
		return *wrong
	}
	return nil
}
