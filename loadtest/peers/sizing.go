package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sluicegate/sluice/bench/sizing"
	"github.com/sluicegate/sluice/internal/counter"
	"github.com/sluicegate/sluice/internal/credential"
	"github.com/sluicegate/sluice/internal/keystore"
	"github.com/sluicegate/sluice/loadtest/load"
)

// What the model of bench/sizing may be off by.
const offBy = 0.25

// sizes holds the model of bench/sizing against this machine.
type sizes struct {
	*bench
	costs sizing.Costs // of this machine, which is as fast as the bare proxy is here
	wrong []error
}

// measureSizing takes points that the model says something about: requests of
// several kinds, idle connections, and a store at its capacity.
func measureSizing(ctx context.Context, b *bench) error {
	s := &sizes{bench: b, costs: sizing.Measured()}
	b.printf("### The model of bench/SIZING.md beside this machine\n\n")
	for _, part := range []func(context.Context) error{s.requests, s.connections, s.store} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	b.endTable()
	return errors.Join(s.wrong...)
}

// point prints a row, and remembers what is too far off.
func (s *sizes) point(what, unit string, predicted, measured float64) {
	off := measured/predicted - 1
	s.printf("| %s | %.4g %s | %.4g %s | %+.0f %% |\n", what, predicted, unit, measured, unit, 100*off)
	if math.Abs(off) > offBy || math.IsNaN(off) {
		s.wrong = append(s.wrong, fmt.Errorf("%s: %.4g %s instead of %.4g: measure bench/sizing/costs.go anew", what, measured, unit, predicted))
	}
}

// requests compares what requests cost. The bare proxy, in the same rounds, says
// how fast the machine is.
func (s *sizes) requests(ctx context.Context) error {
	governed, shared := sizing.Load{Governed: 1, AnswerKiB: 1}, sizing.Load{Governed: 1, Shared: true, AnswerKiB: 1}
	all, err := s.round(ctx, "1k", []contender{
		{"bare", goProxy("bare")},
		{"keyless", startSluice(setup{})},
		{"key, rate and quota", startSluice(setup{keys: someKeys})},
		{"the same in a shared store", startSluice(setup{keys: someKeys, shared: true})},
	})
	if err != nil {
		return err
	}
	bare := median(column(all[0], cpuOf))
	s.costs = s.costs.On(bare)
	s.printf("The bare proxy costs %.1f µs here. GOMAXPROCS=%d.\n\n| | model | measured | |\n|---|---|---|---|\n", bare, s.procs)
	for _, one := range all[1:] {
		kind := map[string]sizing.Load{"key, rate and quota": governed, "the same in a shared store": shared}[one.name]
		kind.AnswerKiB = 1
		s.cost(one, kind)
		if one.store != nil {
			s.point("… of the store", "µs", s.costs.StoreCount, median(column(one, storeOf)))
		}
	}
	for _, kib := range []float64{16, 64} {
		all, err := s.round(ctx, fmt.Sprintf("%.0fk", kib), []contender{{fmt.Sprintf("keyless, %.0f KiB", kib), startSluice(setup{})}})
		if err != nil {
			return err
		}
		s.cost(all[0], sizing.Load{AnswerKiB: kib})
	}
	return nil
}

// round measures contenders beside each other.
func (s *sizes) round(ctx context.Context, body string, of []contender) ([]*series, error) {
	b := *s.bench
	b.body = body
	started, err := b.startAll(ctx, of)
	if err != nil {
		return nil, err
	}
	return b.rotate(ctx, started)
}

func (s *sizes) cost(one *series, of sizing.Load) {
	predicted, err := s.costs.Plan(of, sizing.Plant{Cores: 1, Gbit: 1e6, Utilisation: 1})
	if err != nil {
		s.wrong = append(s.wrong, err)
		return
	}
	s.point("CPU, "+one.name, "µs", predicted.CPU, median(column(one, cpuOf)))
}

// connections compares what idle ones take.
func (s *sizes) connections(ctx context.Context) error {
	if err := s.enoughFiles(); err != nil {
		return err
	}
	started, err := s.startAll(ctx, []contender{{"keyless", startSluice(setup{})}})
	if err != nil {
		return err
	}
	r := started[0]
	defer r.stop()
	client := load.New(s.plan(r, s.idle))
	defer client.Close()
	client.Once()
	if got := client.Stats(); got.Bad > 0 {
		return fmt.Errorf("%d of %d connections failed: %w", got.Bad, s.idle, client.FirstError())
	}
	full, err := pssOf(ctx, r)
	if err != nil {
		return err
	}
	p, err := s.costs.Plan(sizing.Load{Connections: float64(s.idle)}, sizing.Plant{Cores: 1, Gbit: 1, Utilisation: 1})
	if err == nil {
		s.point(fmt.Sprintf("memory with %d idle connections", s.idle), "MiB", p.GatewayMiB, float64(full)/mib)
	}
	return err
}

// What the store is asked for.
const (
	storeKeys    = 100_000
	storeCallers = 256
	storeRounds  = 5
	storeFor     = 700 * time.Millisecond

	storePatience = 10 * time.Second // what a busy machine may take is measured, not refused
)

// store compares a store's capacity and memory. Its clients are in this process.
func (s *sizes) store(ctx context.Context) error {
	dir, err := s.rig.Dir("sizing")
	if err != nil {
		return err
	}
	process, addr, err := s.startStore(ctx, dir)
	if err != nil {
		return err
	}
	defer process.Stop()
	keys, err := makeKeys(ctx, place{shared: addr}, []string{plenty}, storeKeys)
	if err != nil {
		return err
	}
	counts, err := counter.OpenValkey(ctx, counter.ValkeyOptions{Addresses: []string{addr}, Timeout: storePatience, Outage: counter.Closed})
	if err != nil {
		return err
	}
	defer counts.Close()
	take := func(ctx context.Context, i int) error {
		var left [2]counter.Count
		_, err := counts.Take(ctx, limitsOf(keys[i%len(keys)]), 1, left[:])
		return err
	}
	if _, err := callers(ctx, int64(len(keys)), 0, take); err != nil {
		return err
	}
	full, err := process.PSS()
	if err != nil {
		return err
	}
	s.point("memory of the store, 100,000 keys", "MiB", s.costs.StoreMiB+storeKeys*s.costs.KeyKiB/1024, float64(full)/mib)
	if err := s.storeCost(ctx, "rate and quota of a request, store, 256 waiting", s.costs.StoreFull, process.CPU, take); err != nil {
		return err
	}
	sessions, err := keystore.OpenValkey(keystore.ValkeyOptions{Addresses: []string{addr}, Timeout: storePatience})
	if err != nil {
		return err
	}
	defer sessions.Close()
	hasher := credential.Hasher{Algorithm: credential.SHA256, Prefix: credential.DefaultPrefix}
	get := func(ctx context.Context, i int) error {
		_, err := sessions.Get(ctx, hasher.Hash(keys[i%len(keys)]))
		return err
	}
	if err := s.storeCost(ctx, "a session, store", s.costs.StoreLookup, process.CPU, get); err != nil {
		return err
	}
	return s.storeCost(ctx, "a session, gateway's side", s.costs.Lookup, ownCPU, get)
}

// limitsOf are those of a key with a rate and a quota.
func limitsOf(key string) []counter.Limit {
	var name counter.Naming
	return []counter.Limit{
		{Key: name.Rate("", key, ""), Kind: counter.Rate, Max: 1e8, Period: time.Minute},
		{Key: name.Quota("", key), Kind: counter.Quota, Max: 1e9, Period: time.Hour},
	}
}

// storeCost compares what a call costs whom cpu reads, under as many callers as
// make it busy.
func (s *sizes) storeCost(ctx context.Context, what string, predicted float64, cpu func() (time.Duration, error), call func(context.Context, int) error) error {
	costs := make([]float64, storeRounds)
	for i := range costs {
		before, err := cpu()
		if err != nil {
			return err
		}
		n, err := callers(ctx, math.MaxInt64, storeFor, call)
		if err != nil {
			return err
		}
		after, err := cpu()
		if err != nil {
			return err
		}
		costs[i] = micros(after-before) / float64(n)
	}
	s.point(what, "µs", predicted, median(costs))
	return nil
}

// callers has many call at a time until they called so often, or for so long
// unless that is 0. It returns how often they did.
func callers(ctx context.Context, most int64, long time.Duration, call func(context.Context, int) error) (int64, error) {
	if long > 0 {
		limited, cancel := context.WithTimeout(ctx, long)
		defer cancel()
		ctx = limited
	}
	var begun, done atomic.Int64
	errs := make([]error, storeCallers)
	var running sync.WaitGroup
	for c := range errs {
		running.Go(func() {
			for i := begun.Add(1); i <= most && ctx.Err() == nil; i = begun.Add(1) {
				// A call that has begun is answered, and counts.
				if errs[c] = call(context.WithoutCancel(ctx), int(i)); errs[c] != nil {
					return
				}
				done.Add(1)
			}
		})
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err // the others say the same
		}
	}
	return done.Load(), nil
}

// ownCPU is the processor time of this process.
func ownCPU() (time.Duration, error) {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		return 0, fmt.Errorf("reading the CPU time of this process: %w", err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano()), nil
}
