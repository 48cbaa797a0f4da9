package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// sample is one round of one contender, in CPU time per request.
type sample struct {
	proxy, store float64 // microseconds
	perSecond    float64
}

// series is all rounds of one contender.
type series struct {
	*running
	client  *load.Client
	samples []sample
	failed  error // why it takes no part any more
}

// warmUp comes before what is measured in each round: connections are made,
// caches filled, and the neighbour's last requests are over.
const warmUp = 150 * time.Millisecond

func measureCPU(ctx context.Context, b *bench) error {
	started, err := b.startAll(ctx, b.chosen(b.contenders()))
	if err != nil {
		return err
	}
	all, err := b.rotate(ctx, started)
	if err != nil {
		return err
	}
	b.printf("### CPU time per request, closed loop, %d rounds of %v; the ratio is to bare\n\n", b.rounds, b.round)
	b.printCPU(all)
	return nil
}

// rotate runs contenders in turns, each round beginning with another one, and stops them.
func (b *bench) rotate(ctx context.Context, started []*running) ([]*series, error) {
	for _, r := range started {
		defer r.stop()
	}
	return b.takeTurns(ctx, started)
}

// takeTurns is rotate without stopping the contenders.
func (b *bench) takeTurns(ctx context.Context, started []*running) ([]*series, error) {
	all := make([]*series, len(started))
	for i, r := range started {
		all[i] = &series{running: r, client: load.New(b.plan(r, b.conns))}
		defer all[i].client.Close()
	}
	// A first turn does not count. The contender with most keys is last in the list and
	// comes first, so that no connections idle for long.
	for _, s := range slices.Backward(all) {
		b.progress("first turn of %s", s.name)
		s.warm(ctx)
		_, s.failed = b.turn(ctx, s)
	}
	for round := range b.rounds {
		b.progress("round %d of %d", round+1, b.rounds)
		for i := range all {
			s := all[(round+i)%len(all)]
			if s.failed != nil {
				continue
			}
			got, err := b.turn(ctx, s)
			s.samples, s.failed = append(s.samples, got), err
		}
	}
	return b.lasted(ctx, all)
}

// warm shows every key once. Programs that compile themselves while they run do
// that in the meantime.
func (s *series) warm(ctx context.Context) {
	const enough, patience = 2000, 20 // answers, seconds
	for second := 0; ctx.Err() == nil && s.client.FirstError() == nil; second++ {
		good := s.client.Stats().Good
		if good >= uint64(len(s.keys)) && (good >= enough || second >= patience) {
			return
		}
		s.client.Run(ctx, time.Second)
	}
}

// lasted returns the contenders that responded in all rounds. The first one must, because
// the others are compared with it.
func (b *bench) lasted(ctx context.Context, all []*series) ([]*series, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var some []*series
	for i, s := range all {
		if s.failed != nil && i == 0 {
			return nil, s.failed
		}
		if s.failed != nil {
			b.leaveOut(s.name, s.failed)
			continue
		}
		some = append(some, s)
	}
	return some, nil
}

// reading is the state of a contender at one moment.
type reading struct {
	at           time.Time
	proxy, store time.Duration
	good         uint64
}

func (s *series) read() (reading, error) {
	r := reading{at: time.Now(), good: s.client.Stats().Good}
	var err error
	if r.proxy, err = s.process.CPU(); err != nil {
		return r, err
	}
	if s.store != nil {
		r.store, err = s.store.CPU()
	}
	return r, err
}

// turn is one round of one contender. It is read in the middle of the load.
func (b *bench) turn(ctx context.Context, s *series) (sample, error) {
	ended := make(chan struct{})
	go func() {
		s.client.Run(ctx, warmUp+b.round+warmUp/3)
		close(ended)
	}()
	time.Sleep(warmUp)
	from, err := s.read()
	time.Sleep(b.round)
	to, err2 := s.read()
	<-ended
	switch {
	case ctx.Err() != nil:
		return sample{}, ctx.Err()
	case err != nil:
		return sample{}, err
	case err2 != nil:
		return sample{}, err2
	case to.good == from.good:
		return sample{}, fmt.Errorf("%s answers nothing: %v\n%s", s.name, s.client.FirstError(), s.process.Log())
	}
	n := float64(to.good - from.good)
	return sample{
		proxy: micros(to.proxy-from.proxy) / n, store: micros(to.store-from.store) / n,
		perSecond: n / to.at.Sub(from.at).Seconds(),
	}, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// printCPU compares everybody with the first.
func (b *bench) printCPU(all []*series) {
	b.printf("| | CPU µs | ratio | of rounds, least – most | store CPU µs | requests/s | answered | wrong |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range all {
		ratios, own, store, rate := make([]float64, 0, b.rounds), column(s, cpuOf), "", column(s, rateOf)
		for i, round := range s.samples {
			ratios = append(ratios, round.proxy/all[0].samples[i].proxy)
		}
		if s.store != nil {
			store = fmt.Sprintf("%.1f", median(column(s, storeOf)))
		}
		stats := s.client.Stats()
		b.printf("| %s | %.1f | **%.2f** | %.2f – %.2f | %s | %.0f | %d | %d |\n",
			s.name, median(own), median(ratios), slices.Min(ratios), slices.Max(ratios), store, median(rate), stats.Good, stats.Bad)
		if err := s.client.FirstError(); err != nil {
			b.note("%s: first error: %v", s.name, err)
		}
	}
	b.endTable()
}

func cpuOf(s sample) float64   { return s.proxy }
func storeOf(s sample) float64 { return s.store }
func rateOf(s sample) float64  { return s.perSecond }

func column(s *series, of func(sample) float64) []float64 {
	values := make([]float64, len(s.samples))
	for i, one := range s.samples {
		values[i] = of(one)
	}
	return values
}

// median returns the middle of values, without changing them; 0 of none.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
