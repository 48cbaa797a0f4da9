package pipeline

import (
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/graphql/schema"
)

// API is one API definition, compiled. Published, it never changes; a reload
// that leaves the definition as it was carries the same *API over.
type API struct {
	Definition *definition.API
	Request    []Stage // in the gateway's stage order; a stage with nothing to do is absent
	Forward    Stage   // answers
	Upstream   Stage   // calls the upstream: Forward, or what Forward does so with
	Response   []Stage // what is done to an upstream's answer on its way back
	Refused    []Stage // what is done to a refusal's answer
	Meter      Meter   // counts the API's traffic; nil: it counts as nobody's

	Schema *schema.Schema // what Exchange.Operations refer to; nil when it is no GraphQL API
}

// A Meter records finished exchanges. Done runs on every request and does not
// allocate.
type Meter interface{ Done(ex *Exchange) }
