package app

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/gateway/control"
	"github.com/sluicegate/sluice/gateway/observe"
)

// targets tells metrics how the targets of APIs are.
func (pl *plane) targets() []observe.Target {
	known := pl.calls.Targets()
	all := make([]observe.Target, len(known))
	for i, t := range known {
		all[i] = observe.Target(t)
	}
	return all
}

// breakers tells metrics how the circuit breakers of APIs are.
func (pl *plane) breakers() []observe.Breaker {
	known := pl.calls.Breakers()
	all := make([]observe.Breaker, len(known))
	for i, b := range known {
		all[i] = observe.Breaker(b)
	}
	return all
}

// keptAnswers are those of a node's gateway, which is made later than what needs
// them.
type keptAnswers struct{ node *node }

// Invalidate forgets the answers of an API.
func (k keptAnswers) Invalidate(api string) { k.node.plane.cache.Invalidate(api) }

// upstreamHealth is what /hello says of targets and breakers. It names none.
func (n *node) upstreamHealth() control.Component {
	return control.Component{Name: "upstreams", Kind: "system", Check: func(context.Context) (control.Health, string) {
		away, open := 0, 0
		targets, breakers := n.plane.calls.Targets(), n.plane.calls.Breakers()
		for _, t := range targets {
			if !t.Up {
				away++
			}
		}
		for _, b := range breakers {
			if b.Open {
				open++
			}
		}
		text := fmt.Sprintf("%d of %d targets that are looked after are called, %d of %d breakers are open", len(targets)-away, len(targets), open, len(breakers))
		if away+open > 0 {
			return control.Warn, text
		}
		return control.Pass, text
	}}
}
