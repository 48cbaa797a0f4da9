package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/internal/sleep"
	"github.com/sluicegate/sluice/loadtest/load"
)

// The sizes that cost per request must not depend on.
const (
	manyAPIs = 100_000
	manyKeys = 1_000_000
	someKeys = 1000
)

// measureScale compares gateways with few and many objects. With many keys it
// distinguishes loaded from used keys: a million keys in turn are never in the
// processor's caches.
func measureScale(ctx context.Context, b *bench) error {
	for _, group := range []struct {
		title string
		all   []contender
	}{
		{"APIs loaded; the ratio is to 1", []contender{
			{"Sluice, 1 API", startSluice(setup{apis: 1})},
			{"Sluice, 100,000 APIs", startSluice(setup{apis: manyAPIs})},
		}},
		{"keys loaded; the ratio is to 1,000 of 1,000", []contender{
			{"Sluice, 1,000 keys in turn of 1,000", startSluice(setup{keys: someKeys, apis: 1})},
			{"Sluice, 1,000 keys in turn of 1,000,000", startSluice(setup{keys: manyKeys, asked: someKeys, apis: 1})},
			{"Sluice, 1,000,000 keys in turn, each used before", startSluice(setup{keys: manyKeys, apis: 1})},
		}},
	} {
		started, err := b.startAll(ctx, group.all)
		if err != nil {
			return err
		}
		all, err := b.rotate(ctx, started)
		if err != nil {
			return err
		}
		b.printf("### CPU time per request with many %s\n\n", group.title)
		b.printCPU(all)
	}
	return nil
}

// measureLoaded compares a gateway that has much of everything loaded with one that
// has nearly nothing: cost, memory, and what clients see of its background work.
func measureLoaded(ctx context.Context, b *bench) error {
	started, err := b.startAll(ctx, []contender{
		{"Sluice, empty", startSluice(setup{keys: someKeys, apis: 1})},
		{"Sluice, full", startSluice(setup{keys: manyKeys, apis: manyAPIs, policies: manyAPIs})},
	})
	if err != nil {
		return err
	}
	for _, r := range started {
		defer r.stop()
	}
	rest := make([]int64, len(started))
	for i, r := range started {
		if rest[i], err = pssOf(ctx, r); err != nil {
			return err
		}
	}
	all, err := b.takeTurns(ctx, started)
	if err != nil {
		return err
	}
	b.printf("### A full gateway (100,000 APIs, 100,000 policies, 1,000,000 keys, each used before) beside an empty one (1, 1, 1,000)\n\n")
	b.printCPU(all)
	b.printf("| | from start to service s | at rest, before any request MiB | after all keys were used MiB |\n|---|---|---|---|\n")
	for i, r := range started {
		used, err := pssOf(ctx, r)
		if err != nil {
			return err
		}
		b.printf("| %s | %.1f | %.0f | %.0f |\n", r.name, r.took.Seconds(), float64(rest[i])/mib, float64(used)/mib)
	}
	b.endTable()
	return b.loadedTails(ctx, started)
}

// loadedTails calls at a fixed rate at rest, for a time that includes garbage
// collections, and during reloads.
func (b *bench) loadedTails(ctx context.Context, started []*running) error {
	release, err := b.pin()
	if err != nil {
		return err
	}
	defer release()
	rate := 8000.0
	if len(b.rates) > 0 {
		rate = float64(b.rates[0])
	}
	b.printf("%s %.0f requests/s arrive at random (Poisson); latency counts from when each was due.\n\n", b.placement(), rate)
	b.printf("| | | took s | collections | p50 ms | p99 ms | p99.9 ms | to the empty one's | longest ms | CPU µs | shed | wrong |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	all := make([]*opening, len(started))
	for i, r := range started {
		if all[i], err = b.open(r); err != nil {
			return err
		}
		defer all[i].client.Close()
	}
	for _, e := range b.events() {
		if err := b.printEvent(ctx, all, rate, e); err != nil {
			return err
		}
	}
	b.endTable()
	return nil
}

// printEvent prints the latencies during an event. The last gateway, which has most to
// do, comes first, and the others are measured for as long, because pauses of a shared
// machine are proportional to time.
func (b *bench) printEvent(ctx context.Context, all []*opening, rate float64, e event) error {
	got := make([]doing, len(all))
	for i, o := range slices.Backward(all) {
		b.progress("%s: %s", o.name, e.name)
		var err error
		got[i], err = b.whileDoing(ctx, o, rate, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w\n%s", o.name, e.name, err, o.process.Log())
		}
		e.atLeast = max(e.atLeast, got[i].took)
	}
	for i, o := range all {
		b.printDoing(o.name, e.name, got[i], got[0].all.Latency.Quantile(0.999))
	}
	return nil
}

// event is background work of a gateway.
type event struct {
	name    string
	prepare func(*running) error
	do      func(context.Context, *running) error
	atLeast time.Duration // for which it is watched
}

func (b *bench) events() []event {
	rest := func(long time.Duration) func(context.Context, *running) error {
		return func(ctx context.Context, _ *running) error { return sleep.For(ctx, long) }
	}
	return []event{
		{name: "at rest", prepare: nothing, do: rest(quietFor)},
		{name: "five minutes", prepare: nothing, do: rest(5 * time.Minute)},
		{name: "one API added, SIGHUP", prepare: b.addOne, do: reload(addedOne)},
		{name: "every API changed, SIGHUP", prepare: b.changeAll, do: reload(addedToAll)},
	}
}

func (b *bench) printDoing(name, event string, got doing, empty time.Duration) {
	p999 := got.all.Latency.Quantile(0.999)
	b.printf("| %s | %s | %.1f | %d | %.2f | %.2f | %.2f | **%.2f** | %.1f | %.1f | %d | %d |\n", name, event, got.took.Seconds(), got.collections,
		millis(got.all.Latency.Quantile(0.5)), millis(got.all.Latency.Quantile(0.99)), millis(p999), float64(p999)/float64(max(empty, 1)),
		millis(got.all.Latency.Max()), got.cpu, got.all.Refused, got.all.Bad+got.all.Late)
	if got.first != nil {
		b.note("%s: %s: first error: %v", name, event, got.first)
	}
}

// quietFor is how long nothing happens, and window is how long results are
// gathered before it is seen whether what was waited for is over.
const (
	quietFor = 10 * time.Second
	window   = time.Second
)

// doing is what clients saw while a gateway did something.
type doing struct {
	all         *load.Tally
	took        time.Duration // what was done
	collections int
	cpu         float64 // microseconds per request
	first       error
}

// whileDoing calls at a rate until an event has ended, and for a window more.
func (b *bench) whileDoing(ctx context.Context, o *opening, rate float64, e event) (doing, error) {
	got := doing{all: new(load.Tally)}
	if err := e.prepare(o.running); err != nil {
		return got, err
	}
	if _, err := o.client.Run(ctx, load.Pace{Rate: rate, For: window, Seed: 1000}); err != nil {
		return got, err
	}
	before, err := o.process.CPU()
	if err != nil {
		return got, err
	}
	collected := o.process.Logged(collection)
	began, done := time.Now(), make(chan error, 1)
	go func() {
		err := e.do(ctx, o.running)
		got.took = time.Since(began)
		if err == nil {
			err = sleep.For(ctx, e.atLeast-got.took)
		}
		done <- err
	}()
	asked := uint64(0)
	for round, over := uint64(0), false; !over; round++ {
		select {
		case err := <-done:
			if err != nil {
				return got, err
			}
			over = true
		default:
		}
		out, err := o.client.Run(ctx, load.Pace{Rate: rate, For: window, Seed: round})
		if err != nil {
			if !over {
				<-done // it ends with ctx
			}
			return got, err
		}
		all := out.Total()
		got.all.Add(all)
		asked += all.Asked
		if got.first == nil {
			got.first = out.First
		}
	}
	after, err := o.process.CPU()
	got.collections = o.process.Logged(collection) - collected
	got.cpu = micros(after-before) / float64(max(asked, 1))
	return got, err
}

// collection begins the line that a gateway writes after each.
const collection = "gc "

// APIs that are added, for it to be seen when a reload is in force.
const (
	addedOne   = "added-one"
	addedToAll = "added-to-all"
)

func nothing(*running) error { return nil }

// addOne writes the definition of one API more.
func (b *bench) addOne(r *running) error {
	return writeAPI(filepath.Join(r.dir, "apps"), addedOne, b.api(addedOne, true))
}

// changeAll changes every definition, adds one, and syncs the disk, which is not the
// gateway's work.
func (b *bench) changeAll(r *running) error {
	apps := filepath.Join(r.dir, "apps")
	files, err := filepath.Glob(apps + "/api-*.json")
	if err != nil {
		return err
	}
	for i := range files {
		api := b.api(apiID(i+1), true)
		api["name"] = "changed"
		if err := writeAPI(apps, apiID(i+1), api); err != nil {
			return err
		}
	}
	defer syscall.Sync()
	return writeAPI(apps, addedToAll, b.api(addedToAll, true))
}

// reload makes a gateway read its files, and returns once a new API is served.
func reload(id string) func(context.Context, *running) error {
	return func(ctx context.Context, r *running) error {
		if err := syscall.Kill(r.process.Pid(), syscall.SIGHUP); err != nil {
			return fmt.Errorf("sending SIGHUP: %w", err)
		}
		return awaitAPI(ctx, r.addr, id)
	}
}
