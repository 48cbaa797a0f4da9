package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
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

const mib = 1 << 20

// settle is how long memory is left alone before it is read.
const settle = 3 * time.Second

// measureIdle reads what kept connections cost in memory that each had one
// answer and now wait.
func measureIdle(ctx context.Context, b *bench) error {
	if err := b.enoughFiles(b.idle); err != nil {
		return err
	}
	b.printf("### Memory, resident and shared fairly (PSS)\n\n| | at rest MiB | with %d idle connections MiB | KiB per connection |\n|---|---|---|---|\n", b.idle)
	return b.oneByOne(ctx, b.idleOf)
}

// oneByOne measures each contender while no other runs, and ends the table.
func (b *bench) oneByOne(ctx context.Context, measure func(context.Context, *running) error) error {
	for _, c := range b.chosen(b.contenders()) {
		started, err := b.startAll(ctx, []contender{c})
		if err == nil && len(started) > 0 {
			err = measure(ctx, started[0])
			started[0].stop()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.leaveOut(c.name, err)
		}
	}
	b.endTable()
	return nil
}

func (b *bench) idleOf(ctx context.Context, r *running) error {
	before := load.New(b.plan(r, b.conns))
	defer before.Close()
	before.Run(ctx, settle/3) // what it needs at work does not count as the connections'
	before.Close()
	rest, err := pssOf(ctx, r)
	if err != nil {
		return err
	}
	client := load.New(b.plan(r, b.idle))
	defer client.Close()
	client.Once()
	if s := client.Stats(); s.Bad > 0 {
		return fmt.Errorf("%d of %d connections failed: %w", s.Bad, b.idle, client.FirstError())
	}
	full, err := pssOf(ctx, r)
	if err != nil {
		return err
	}
	b.printf("| %s | %.1f | %.1f | **%.1f** |\n", r.name, float64(rest)/mib, float64(full)/mib, float64(full-rest)/1024/float64(b.idle))
	return nil
}

func pssOf(ctx context.Context, r *running) (int64, error) {
	if err := sleep.For(ctx, settle); err != nil {
		return 0, err
	}
	return r.process.PSS()
}

// enoughFiles checks that this process may open enough connections.
func (b *bench) enoughFiles(conns int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if need := uint64(conns + 256); limit.Cur < need {
		return fmt.Errorf("%d open files are allowed, %d are needed: raise it with ulimit -n, or have fewer with -idle", limit.Cur, need)
	}
	return nil
}
