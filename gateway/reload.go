package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicegate/sluice/gateway/pipeline"
	"github.com/sluicegate/sluice/gateway/snapshot"
	"github.com/sluicegate/sluice/gateway/source"
	"github.com/sluicegate/sluice/internal/definition"
)

// errEmpty refuses a bundle that would take all APIs out of service.
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

// Apply compiles a bundle beside the traffic and puts it in force in one step. It
// returns, by API id, why an API is not served as written; under "" why the bundle
// as a whole was not applied. The definitions and policies of the bundle must not
// change afterwards: the same object in the next bundle is taken for unchanged.
func (g *Gateway) Apply(b *definition.Bundle) map[string]error {
	failed, _ := g.apply(context.Background(), b) // a context that does not end
	return failed
}

// apply is Apply until ctx ends, which is its only error.
func (g *Gateway) apply(ctx context.Context, b *definition.Bundle) (failed map[string]error, err error) {
	prev := g.Current()
	if prev != nil && prev.Len() > 0 && len(b.APIs) == 0 && !b.ConfirmedEmpty {
		g.log.Error("configuration refused", "revision", b.Revision, "err", errEmpty)
		g.observe.Refused(b.Revision)
		return map[string]error{"": errEmpty}, nil
	}
	began := time.Now()
	next, change, err := g.compiler.Build(ctx, prev, b, snapshot.Options{CustomDomains: g.conf.CustomDomains, CPU: g.conf.ReloadCPU})
	if err != nil {
		return nil, err
	}
	if g.handshakes != nil {
		g.handshakes.Came(change.Came)
	}
	g.current.Store(&serving{next, g})
	if g.stages.Tunnels != nil {
		g.stages.Tunnels.Wake()
	}
	took := time.Since(began)
	g.report(prev, next, took)
	g.release(next, change)
	if prev != nil && g.stages.Cache != nil {
		for _, id := range next.Invalidated(prev) {
			g.stages.Cache.Invalidate(id)
			g.log.Info("kept answers are forgotten", "api", id)
		}
	}
	return next.Failed, nil
}

// swapAtOnce is how many APIs are swapped between two pauses.
const swapAtOnce = 128

// release frees what only APIs needed that have left service. It pauses in between
// like all work beside traffic, and is not cancelled.
func (g *Gateway) release(next *snapshot.Snapshot, c snapshot.Change) {
	for came := range slices.Chunk(c.Came, swapAtOnce) {
		g.swap(came, nil)
		c.Rest()
	}
	for gone := range slices.Chunk(c.Gone, swapAtOnce) {
		g.swap(nil, gone)
		c.Rest()
	}
	g.stages.Pools.Swapped()
	g.observe.Drop(c.Left)
	g.sockets.Forget(c.Left)
	if c.Graphs {
		graphs := next.GraphQLAPIs()
		g.stages.GraphQL.Keep(graphs)
		g.stages.Graphs.Keep(graphs)
		g.observe.KeepOperations(graphs)
	}
}

// swap updates what is shared between APIs when some enter or leave service.
func (g *Gateway) swap(came, gone []*pipeline.API) {
	g.stages.Pools.Swap(came, gone)
	g.stages.Streams.Swap(came, gone)
	if g.handshakes != nil {
		g.handshakes.Gone(gone)
	}
	if g.stages.Calls != nil {
		g.stages.Calls.Swap(came, gone)
	}
	if g.stages.Cache != nil {
		g.stages.Cache.Swap(came, gone)
	}
}

func (g *Gateway) report(prev, next *snapshot.Snapshot, took time.Duration) {
	g.observe.Applied(next.Revision, took, len(next.Failed))
	g.log.Info("serving", "revision", next.Revision, "apis", next.Len(), "policies", next.Policies().Len(), "took", took)
	for id, err := range next.Failed {
		if prev != nil && prev.Failed[id] != nil && prev.Failed[id].Error() == err.Error() {
			continue // logged before
		}
		if next.API(id) != nil {
			g.log.Error("definition kept at its last good form", "api", id, "revision", next.Revision, "err", err)
		} else {
			g.log.Error("definition not served", "api", id, "revision", next.Revision, "err", err)
		}
	}
}
