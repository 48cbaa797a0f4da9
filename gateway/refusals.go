package gateway

import (
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// The steps of a request beside its stages, as explanations and traces name them.
var (
	framing    = &pipeline.StageKind{Name: "framing"}  // reading the request
	routing    = &pipeline.StageKind{Name: "route"}    // finding the API
	forwarding = &pipeline.StageKind{Name: "upstream"} // calling the upstream
)

// remember records why a request was refused: for explanations by its id, and for the
// admin.
func (g *Gateway) remember(ex *pipeline.Exchange) {
	if g.refusals != nil {
		ex.AsAsked()
		g.refusals.Add(ex)
		g.handover.Add(ex)
	}
}

// Refusal returns the record of a refused request by its id; false when there is
// none, or none any more.
func (g *Gateway) Refusal(id string) (*explain.Refusal, bool) { return g.refusals.Find(id) }
