package main

import (
	"context"

	"github.com/sluicegate/sluice/loadtest/gate"
	"github.com/sluicegate/sluice/loadtest/reloads"
	"github.com/sluicegate/sluice/loadtest/ways"
)

func measureWays(ctx context.Context, b *bench) error {
	return ways.Measure(ctx, ways.Bench{
		Site: b.site(), Conns: b.conns, Rounds: b.rounds, Round: b.round, Body: b.body, Only: b.only, Out: b.out, Progress: b.progress,
	})
}

// measureReloads does a thousand, in parts.
func measureReloads(ctx context.Context, b *bench) error {
	release, err := b.pin()
	if err != nil {
		return err
	}
	defer release()
	return reloads.Measure(ctx, reloads.Bench{
		Site: b.site(), Conns: b.conns, APIs: max(b.many, 2), Reloads: b.reloads, Parts: min(b.rounds, b.reloads), Body: b.body,
		Place: func(g *gate.Gate) error { return b.place(&running{process: g.Process}) },
		Out:   b.out, Progress: b.progress,
	})
}

func (b *bench) site() gate.Site {
	return gate.Site{Rig: b.rig, Program: b.bin + "/sluice", Env: b.goEnv(), Origin: b.origin}
}
