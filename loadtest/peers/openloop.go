package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// openConns bounds the connections of an open loop. They are opened when a call
// finds none idle, so there are few as long as the proxy keeps up.
const openConns = 1024

// An opening is a contender in an open loop.
type opening struct {
	*running
	client   *load.Open
	capacity float64 // requests per second, see capacities
	turns    []openTurn
	failed   error // why it takes no part any more
}

// openTurn is one round of one contender at one rate.
type openTurn struct {
	asked          float64 // per second
	p50, p99, p999 float64 // milliseconds
	cpu            float64 // microseconds per request
	store          float64
	lag            float64 // milliseconds by which the client was late, 99th percentile
	all            *load.Tally
	first          error
}

// openWarmUp comes before what is measured, at the same rate: connections are
// made, and the neighbour's last requests are over.
const openWarmUp = 200 * time.Millisecond

// measureOpenLoop runs open loops: at shares of each contender's capacity, and at rates
// that are the same for all.
func measureOpenLoop(ctx context.Context, b *bench) error {
	release, err := b.pin()
	if err != nil {
		return err
	}
	defer release()
	all, err := b.openAll(ctx, b.chosen(b.contenders()))
	if err != nil {
		return err
	}
	defer closeAll(all)
	b.printf("### Open loop\n\n%s Calls arrive at random (Poisson) on up to %d connections, and latency counts from when each was due. Medians of %d rounds of %v.\n\n",
		b.placement(), openConns, b.openRounds, b.openRound)
	if all, err = b.capacities(ctx, all); err != nil {
		return err
	}
	b.printf("| | requests/s | p50 ms | p99 ms | p99.9 ms | p99 to bare's | CPU µs | CPU to bare's | store µs | answered | shed | wrong | given up | client late, p99 ms |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, share := range b.shares {
		if err := b.openLevel(ctx, all, fmt.Sprintf("%d %% of its capacity", share), func(o *opening) float64 { return o.capacity * float64(share) / 100 }); err != nil {
			return err
		}
	}
	for _, rate := range b.rates {
		if err := b.openLevel(ctx, all, fmt.Sprintf("%d/s", rate), func(*opening) float64 { return float64(rate) }); err != nil {
			return err
		}
	}
	b.endTable()
	return nil
}

// openAll starts contenders, each on its cores, with a client for each.
func (b *bench) openAll(ctx context.Context, some []contender) ([]*opening, error) {
	started, err := b.startAll(ctx, some)
	if err != nil {
		return nil, err
	}
	var all []*opening
	for _, r := range started {
		o, err := b.open(r)
		if err != nil {
			b.leaveOut(r.name, err)
			r.stop()
			continue
		}
		all = append(all, o)
	}
	if len(all) == 0 {
		return nil, errors.New("no contender takes part")
	}
	return all, nil
}

// open pins a contender and makes a client for it.
func (b *bench) open(r *running) (*opening, error) {
	if err := b.place(r); err != nil {
		return nil, err
	}
	client, err := load.NewOpen(load.OpenPlan{Addr: r.addr, Conns: openConns, Kinds: []load.Kind{b.kind(r)}})
	if err != nil {
		return nil, err
	}
	return &opening{running: r, client: client}, nil
}

// kind is the sort of call that the closed loop makes as well.
func (b *bench) kind(r *running) load.Kind {
	p := b.plan(r, 1)
	return load.Kind{Name: r.name, Weight: 1, Request: p.Request, Want: p.Want, Refusals: shedding}
}

func closeAll(all []*opening) {
	for _, o := range all {
		o.client.Close()
		o.stop()
	}
}

// capacityRounds and capacityRound are how capacity is measured: closed loop, the
// median of some rounds.
const (
	capacityRounds = 3
	capacityRound  = time.Second
)

// capacities measures what each contender can do, and says so. Those that answer
// nothing are left out.
func (b *bench) capacities(ctx context.Context, all []*opening) ([]*opening, error) {
	b.printf("| capacity, closed loop, %d connections | requests/s | CPU µs | of a core %% |\n|---|---|---|---|\n", b.conns)
	var some []*opening
	for _, o := range all {
		b.progress("capacity of %s", o.name)
		got, err := b.capacityOf(ctx, o.running)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			b.leaveOut(o.name, err)
			continue
		}
		o.capacity = got.perSecond
		b.printf("| %s | %.0f | %.1f | %.0f |\n", o.name, got.perSecond, got.proxy, got.proxy*got.perSecond/1e4)
		some = append(some, o)
	}
	b.note("Where the share of a core is well below 100, client and upstream were the limit and the capacity is greater.")
	b.endTable()
	if len(some) == 0 {
		return nil, errors.New("no contender responds")
	}
	return some, nil
}

// capacityOf measures one contender in a closed loop, with the client of the open
// one: it costs least. Every key that there is was shown before.
func (b *bench) capacityOf(ctx context.Context, r *running) (sample, error) {
	client, err := load.NewOpen(load.OpenPlan{Addr: r.addr, Conns: b.conns, Kinds: []load.Kind{b.kind(r)}})
	if err != nil {
		return sample{}, err
	}
	defer client.Close()
	var samples []sample
	shown := uint64(0)
	for len(samples) < capacityRounds {
		before, err := costs(r)
		if err != nil {
			return sample{}, err
		}
		out, err := client.Run(ctx, load.Pace{For: capacityRound})
		if err != nil {
			return sample{}, err
		}
		after, err := costs(r)
		if err != nil {
			return sample{}, err
		}
		all := out.Total()
		if all.Good == 0 {
			return sample{}, fmt.Errorf("it answers nothing: %w\n%s", out.First, r.process.Log())
		}
		if shown += all.Good; shown == all.Good || shown < uint64(len(r.keys)) {
			continue // connections and caches
		}
		n := float64(all.Good)
		samples = append(samples, sample{proxy: micros(after[0]-before[0]) / n, store: micros(after[1]-before[1]) / n, perSecond: n / out.Took.Seconds()})
	}
	slices.SortFunc(samples, func(a, b sample) int { return int(a.perSecond - b.perSecond) })
	return samples[len(samples)/2], nil
}

// openLevel runs all contenders in turns, each at its rate, and prints a row for each.
func (b *bench) openLevel(ctx context.Context, all []*opening, title string, rate func(*opening) float64) error {
	for _, o := range all {
		o.turns = nil
	}
	for round := range b.openRounds {
		b.progress("open loop at %s, round %d of %d", title, round+1, b.openRounds)
		for i := range all {
			o := all[(round+i)%len(all)]
			if o.failed != nil {
				continue
			}
			got, err := b.openOnce(ctx, o, rate(o), uint64(round))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				o.failed = fmt.Errorf("at %s: %w\n%s", title, err, o.process.Log())
				b.leaveOut(o.name, o.failed)
			}
			o.turns = append(o.turns, got)
		}
	}
	if all[0].failed != nil {
		return fmt.Errorf("%s, which the others are compared with: %w", all[0].name, all[0].failed)
	}
	b.printf("| **%s** | | | | | | | | | | | | | |\n", title)
	for _, o := range all {
		if o.failed == nil {
			b.printOpen(o, all[0])
		}
	}
	return nil
}

// openOnce runs one round of a contender, after a warm-up that does not count.
func (b *bench) openOnce(ctx context.Context, o *opening, rate float64, seed uint64) (openTurn, error) {
	if _, err := o.client.Run(ctx, load.Pace{Rate: rate, For: openWarmUp, Seed: seed + 1000}); err != nil {
		return openTurn{}, err
	}
	before, err := costs(o.running)
	if err != nil {
		return openTurn{}, err
	}
	out, err := o.client.Run(ctx, load.Pace{Rate: rate, For: b.openRound, Seed: seed})
	if err != nil {
		return openTurn{}, err
	}
	after, err := costs(o.running)
	if err != nil {
		return openTurn{}, err
	}
	all := out.Total()
	n := max(float64(all.Asked), 1)
	return openTurn{
		asked: n / out.Took.Seconds(), all: all, first: out.First, lag: millis(out.Lag.Quantile(0.99)),
		p50: millis(all.Latency.Quantile(0.5)), p99: millis(all.Latency.Quantile(0.99)), p999: millis(all.Latency.Quantile(0.999)),
		cpu: micros(after[0]-before[0]) / n, store: micros(after[1]-before[1]) / n,
	}, nil
}

// printOpen prints a contender's rounds compared with the bare proxy's.
func (b *bench) printOpen(o, bare *opening) {
	of := func(value func(openTurn) float64) float64 { return medianOf(o.turns, value) }
	to := func(value func(openTurn) float64) float64 {
		ratios := make([]float64, len(o.turns))
		for i := range ratios {
			ratios[i] = value(o.turns[i]) / value(bare.turns[i])
		}
		return median(ratios)
	}
	p99, cpu := func(t openTurn) float64 { return t.p99 }, func(t openTurn) float64 { return t.cpu }
	store := ""
	if o.store != nil {
		store = fmt.Sprintf("%.1f", of(func(t openTurn) float64 { return t.store }))
	}
	var sum load.Tally
	for _, t := range o.turns {
		sum.Add(t.all)
		if t.first != nil {
			b.note("%s: first error: %v", o.name, t.first)
		}
	}
	b.printf("| %s | %.0f | %.2f | %.2f | %.2f | %.2f | %.1f | **%.2f** | %s | %d | %d | %d | %d | %.2f |\n", o.name, of(func(t openTurn) float64 { return t.asked }),
		of(func(t openTurn) float64 { return t.p50 }), of(p99), of(func(t openTurn) float64 { return t.p999 }), to(p99),
		of(cpu), to(cpu), store, sum.Good, sum.Refused, sum.Bad, sum.Late, of(func(t openTurn) float64 { return t.lag }))
}

// noteLag notes below a table that the client itself was late, in milliseconds at the
// 99th percentile.
func (b *bench) noteLag(name string, lag float64) {
	const much = 5
	if lag > much {
		b.note("%s: the client itself was late by %.0f ms (99th percentile); its core had not enough time for it.", name, lag)
	}
}

// medianOf is the median of one value of all turns.
func medianOf[T any](turns []T, value func(T) float64) float64 {
	values := make([]float64, len(turns))
	for i, t := range turns {
		values[i] = value(t)
	}
	return median(values)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
