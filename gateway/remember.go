package gateway

import (
	"github.com/sluicegate/sluice/gateway/explain"
	"github.com/sluicegate/sluice/gateway/pipeline"
)

// The parts of a request's way that can end it.
const (
	inFraming uint8 = iota
	inRoute
	inEntry
	inRequest
	inForward
)

// remember keeps why a request was refused, for whoever asks with its id.
func (g *Gateway) remember(ex *pipeline.Exchange, part uint8) {
	if g.refusals != nil {
		g.refusals.Add(ex, explain.Place{List: part, Kind: kindOf(ex, part)})
	}
}

// noKind is the kind of what is on no list.
const noKind = 1<<8 - 1

// kindOf tells which stage of a list ended a request's way.
func kindOf(ex *pipeline.Exchange, part uint8) uint8 {
	kind := -1
	switch {
	case part == inEntry:
		kind = ex.API.EntryMade.Kind(int(ex.Stopped))
	case part == inRequest && ex.Open:
		kind = ex.Version.OpenMade.Kind(int(ex.Stopped))
	case part == inRequest:
		kind = ex.Version.RequestMade.Kind(int(ex.Stopped))
	}
	if kind < 0 {
		return noKind
	}
	return uint8(kind)
}

// nameOf returns what a stage is called.
func nameOf(at explain.Place) string {
	makers := requestStages
	switch at.List {
	case inFraming:
		return "framing"
	case inRoute:
		return "route"
	case inForward:
		return "upstream"
	case inEntry:
		makers = entryStages
	}
	if int(at.Kind) >= len(makers) {
		return "definition"
	}
	return makers[at.Kind].name
}

// Refusal returns what is remembered of the refused request with an id; false
// when that is nothing, or nothing any more.
func (g *Gateway) Refusal(id string) (*explain.Refusal, bool) { return g.refusals.Find(id, nameOf) }
