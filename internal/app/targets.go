package app

import (
	"context"
	"fmt"

	"github.com/sluicegate/sluice/gateway/control"
)

// responseCache invalidates the response cache of a node's gateway, which is created
// later.
type responseCache struct{ node *node }

// Invalidate drops the cached responses of an API.
func (k responseCache) Invalidate(api string) { k.node.plane.cache.Invalidate(api) }

// upstreamHealth returns the component of /hello for targets and breakers. It contains
// no names.
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
