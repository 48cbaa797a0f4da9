package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
	"github.com/sluicegate/sluice/internal/pace"
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
		failed, err := g.apply(ctx, b)
		if err != nil {
			return
		}
		src.Applied(b, failed)
	}
}

// Apply compiles a bundle beside the traffic and puts it in force in one step.
// It returns, by API id, why something is not served as written; under "" why
// the bundle as a whole was not applied. The definitions and policies of the
// bundle must not change any more: one that comes again as the same object is
// taken for unchanged.
func (g *Gateway) Apply(b *definition.Bundle) map[string]error {
	failed, _ := g.apply(context.Background(), b) // a context that does not end
	return failed
}

// apply is Apply until ctx ends, which is its only error.
func (g *Gateway) apply(ctx context.Context, b *definition.Bundle) (failed map[string]error, err error) {
	prev := g.current.Load()
	if prev != nil && prev.apis.Len() > 0 && len(b.APIs) == 0 && !b.ConfirmedEmpty {
		g.log.Error("configuration refused", "revision", b.Revision, "err", errEmpty)
		g.observe.Refused(b.Revision)
		return map[string]error{"": errEmpty}, nil
	}
	began := time.Now()
	bl := builder{customDomains: g.conf.CustomDomains, compile: g.stages.together().compile, prev: prev}
	if prev != nil {
		bl.pace = pace.New(g.conf.ReloadCPU)
	}
	next, change, err := bl.build(ctx, b)
	if err != nil {
		return nil, err
	}
	next.others = &serving{g, next}
	if g.stages.Handshakes != nil {
		g.stages.Handshakes.Came(change.came)
	}
	g.current.Store(next)
	if g.stages.Tunnels != nil {
		g.stages.Tunnels.Wake()
	}
	took := time.Since(began)
	g.report(prev, next, took)
	g.settle(next, change, func() { _ = bl.step() })
	if prev != nil {
		g.forget(prev.caches, next.caches)
	}
	return next.Failed, nil
}

// forget forgets the answers that are kept for APIs for which that was asked since
// the configuration before.
func (g *Gateway) forget(before, now map[string]int64) {
	for id, clear := range now {
		if before[id] != clear && g.stages.Cache != nil {
			g.stages.Cache.Invalidate(id)
			g.log.Info("kept answers are forgotten", "api", id)
		}
	}
}

// settleAtOnce is how many APIs are a small piece of work.
const settleAtOnce = 128

// settle lets go of what only APIs needed that have left. With many, it rests in
// between like everything that is done beside requests; it is not broken off.
func (g *Gateway) settle(next *Snapshot, c change, rest func()) {
	for came := range slices.Chunk(c.came, settleAtOnce) {
		g.swap(came, nil)
		rest()
	}
	for gone := range slices.Chunk(c.gone, settleAtOnce) {
		g.swap(nil, gone)
		rest()
	}
	g.stages.Pools.Swapped()
	g.observe.Drop(c.left)
	if c.graphs {
		graphs := make([]*pipeline.API, 0, next.graphs.Len())
		for _, api := range next.graphs.All() {
			graphs = append(graphs, api)
		}
		g.stages.GraphQL.Keep(graphs)
		g.observe.KeepOperations(graphs)
	}
}

// swap tells those who keep something for APIs which came and which are gone.
func (g *Gateway) swap(came, gone []*pipeline.API) {
	g.stages.Pools.Swap(came, gone)
	if g.stages.Handshakes != nil {
		g.stages.Handshakes.Gone(gone)
	}
	if g.stages.Calls != nil {
		g.stages.Calls.Swap(came, gone)
	}
	if g.stages.Cache != nil {
		g.stages.Cache.Swap(came, gone)
	}
}

func (g *Gateway) report(prev, next *Snapshot, took time.Duration) {
	g.observe.Applied(next.Revision, took, len(next.Failed))
	g.log.Info("serving", "revision", next.Revision, "apis", next.apis.Len(), "policies", next.policies.Len(), "took", took)
	for id, err := range next.Failed {
		if prev != nil && prev.Failed[id] != nil && prev.Failed[id].Error() == err.Error() {
			continue // said before
		}
		if next.API(id) != nil {
			g.log.Error("definition kept at its last good form", "api", id, "revision", next.Revision, "err", err)
		} else {
			g.log.Error("definition not served", "api", id, "revision", next.Revision, "err", err)
		}
	}
}
