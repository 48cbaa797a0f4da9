package main

import (
	"context"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// memorySamples is how often memory is read while answers of 64 KiB go through.
const memorySamples = 4

// measureMemory has large answers go through for minutes: memory must not grow.
func measureMemory(ctx context.Context, b *bench) error {
	b = b.withBody("64k")
	b.printf("### Memory (PSS, MiB) while answers of 64 KiB go through on %d connections, for %v\n\n| | at rest | from the start", b.conns, b.long)
	for i := range memorySamples {
		b.printf(" | %v", b.long*time.Duration(i+1)/memorySamples)
	}
	b.printf(" | last to first | requests | wrong |\n|---|---|---|---|---|---|---|---|---|---|\n")
	return b.oneByOne(ctx, b.memoryOf)
}

// memoryOf reads a contender's memory before, soon after the start, and at regular
// times under load.
func (b *bench) memoryOf(ctx context.Context, r *running) error {
	b.progress("memory of %s", r.name)
	rest, err := pssOf(ctx, r)
	if err != nil {
		return err
	}
	client := load.New(b.plan(r, b.conns))
	defer client.Close()
	client.Run(ctx, settle)
	sizes := make([]int64, 0, memorySamples+1)
	for range memorySamples + 1 {
		size, err := r.process.PSS()
		if err != nil {
			return err
		}
		if sizes = append(sizes, size); len(sizes) <= memorySamples {
			client.Run(ctx, b.long/memorySamples)
		}
	}
	b.printf("| %s | %.1f", r.name, float64(rest)/mib)
	for _, size := range sizes {
		b.printf(" | %.1f", float64(size)/mib)
	}
	stats := client.Stats()
	b.printf(" | **%.2f** | %d | %d |\n", float64(sizes[memorySamples])/float64(sizes[0]), stats.Good, stats.Bad)
	if err := client.FirstError(); err != nil {
		b.note("%s: first error: %v", r.name, err)
	}
	return ctx.Err()
}
