package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
)

// errEmpty refuses a bundle that would take everything out of service.
var errEmpty = errors.New("the new configuration has no API at all; the last one stays in force")

// Follow applies one bundle after another until ctx ends.
func (g *Gateway) Follow(ctx context.Context, src source.Source) {
	have := ""
	for {
		b, err := src.Next(ctx, have)
		if err != nil {
			return
		}
		have = b.Revision
		src.Applied(b, g.Apply(b))
	}
}

// Apply compiles a bundle beside the traffic and puts it in force in one step.
// It returns, by API id, why something is not served as written; under "" why
// the bundle as a whole was not applied.
func (g *Gateway) Apply(b *definition.Bundle) map[string]error {
	prev := g.current.Load()
	if prev != nil && len(prev.apis) > 0 && len(b.APIs) == 0 && !b.ConfirmedEmpty {
		g.log.Error("configuration refused", "revision", b.Revision, "err", errEmpty)
		g.observe.Refused(b.Revision)
		return map[string]error{"": errEmpty}
	}
	began := time.Now()
	next := build(&g.conf, g.stages.compile, prev, b)
	g.current.Store(next)
	took := time.Since(began)
	g.report(prev, next, took)
	live := slices.Collect(maps.Values(next.apis))
	g.stages.keep(live)
	g.observe.Keep(live)
	return next.Failed
}

func (g *Gateway) report(prev, next *Snapshot, took time.Duration) {
	g.observe.Applied(next.Revision, took, len(next.Failed))
	g.log.Info("serving", "revision", next.Revision, "apis", len(next.apis), "policies", next.policies.Len(), "took", took)
	for id, err := range next.Failed {
		if prev != nil && prev.Failed[id] != nil && prev.Failed[id].Error() == err.Error() {
			continue // said before
		}
		if next.apis[id] != nil {
			g.log.Error("definition kept at its last good form", "api", id, "revision", next.Revision, "err", err)
		} else {
			g.log.Error("definition not served", "api", id, "revision", next.Revision, "err", err)
		}
	}
}
