package graph

import (
	"time"

	"github.com/wundergraph/graphql-go-tools/v2/pkg/ast"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/upstream"
	"github.com/sluicegate/sluice/internal/datagraph"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// A source is a data source or a subgraph that is compiled for an API.
type source struct {
	*datagraph.Source
	graph   *Graph
	kind    string // in errors
	headers []header
	timeout time.Duration
	origin  string            // scheme and host of all requests
	fetcher *upstream.Fetcher // nil: the source is topics
	streams pipeline.Stage    // calls the source for subscriptions; nil: it has none
	schema  *ast.Document     // the part of the schema that a REST source has
}

// A shape says what of a response of a REST source is taken, and under which keys: the
// selection of one field.
type shape struct {
	key      string // in the response
	mapping  datagraph.Mapping
	field    schema.FieldID
	on       []schema.TypeID // that the object must be one of; nil: any
	children []shape         // of an object; none for scalars
	typename bool            // the field is __typename
}
