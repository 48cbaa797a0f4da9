package app

import (
	registry "github.com/sluicegate/sluice/gateway/live"
	"github.com/sluicegate/sluice/internal/connections"
	"github.com/sluicegate/sluice/internal/streamstate"
)

// openConnections are the GraphQL connections of the gateway in this process, none before
// it is created. It implements connections.Source.
type openConnections struct{ *live }

func (o openConnections) registry() *registry.Registry {
	if g := o.gateway.Load(); g != nil {
		return g.LiveConnections()
	}
	return new(registry.Registry)
}

// List implements connections.Source.
func (o openConnections) List(f connections.Filter) ([]connections.Connection, int) {
	return o.registry().List(f)
}

// Get implements connections.Source.
func (o openConnections) Get(id string) *connections.Connection { return o.registry().Get(id) }

// End implements connections.Source.
func (o openConnections) End(id, org string, how connections.End) bool {
	return o.registry().End(id, org, how)
}

// EndAll implements connections.Source.
func (o openConnections) EndAll(f connections.Filter, how connections.End) int {
	return o.registry().EndAll(f, how)
}

// answers returns what answers questions of the admin. The gateway has a name.
func (n *node) answers(name string) func(question string) any {
	desk := connections.Desk{Source: openConnections{n.live}}
	running := streamstate.Desk{Source: runningStreams{n}}
	return func(question string) any {
		if answer := running.Answer(question, name); answer != nil {
			return answer
		}
		if answer := desk.Answer(question, name); answer != nil {
			return answer
		}
		if answer := n.usage.Answer(question, name); answer != nil {
			return answer
		}
		return nil
	}
}
