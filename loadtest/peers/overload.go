package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicegate/sluice/loadtest/load"
)

// What an overload is: so much more than a contender can do, for so long, by
// clients that wait no longer than patience. Afterwards half of what it can do
// must be served as if nothing had been.
const (
	overloadShare = 1.5
	overloadFor   = 10 * time.Second
	overloadSlice = time.Second
	patience      = 2 * time.Second
	afterShare    = 0.5
	afterFor      = 2 * time.Second
	crowd         = 4096 // connections, at most
)

// shedding are the answers of a server that refuses what it cannot do.
var shedding = []int{http.StatusServiceUnavailable, http.StatusTooManyRequests}

// measureOverload calls contenders beyond their capacity, and measures what they serve,
// and how fast.
func measureOverload(ctx context.Context, b *bench) error {
	release, err := b.pin()
	if err != nil {
		return err
	}
	defer release()
	b.printf("### Overload: %.0f %% of capacity for %v\n\n%s Calls arrive at random (Poisson) on up to %d connections, latency counts from when each was due; a call that finds no connection free is not made, and no call waits longer than %v.\n\n",
		overloadShare*100, overloadFor, b.placement(), crowd, patience)
	var all []*overload
	for _, c := range b.overloaded() {
		o, err := c.on.overloadOf(ctx, c.contender)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.leaveOut(c.name, err)
			continue
		}
		all = append(all, o)
	}
	b.printOverload(all)
	b.printSlices(all)
	return b.measureFairness(ctx)
}

// overloaded returns the contenders: one of each other proxy, and Sluice also with calls
// so expensive that client and upstream can overload it on a machine with two cores.
func (b *bench) overloaded() []onBench {
	dear := "Sluice, GraphQL, no operation seen before"
	all := append(b.contenders(), contender{dear, b.asking(true, startSluice(setup{keys: 1, policy: governed, graphql: true}))})
	var some []onBench
	for _, c := range b.chosen(all) {
		switch c.name {
		case "bare fasthttp, again", "nginx with Lua, key + rate + quota", "HAProxy, key + rate + quota":
		case dear:
			some = append(some, onBench{c, b.withBody("graphql")})
		default:
			some = append(some, onBench{c, b})
		}
	}
	return some
}

// onBench is a contender and the bench with its requests.
type onBench struct {
	contender
	on *bench
}

// withBody is the bench with other bodies.
func (b *bench) withBody(body string) *bench {
	other := *b
	other.body = body
	return &other
}

// overload is what one contender's came to.
type overload struct {
	name     string
	capacity sample
	during   *load.Outcome
	cpu      time.Duration // of the contender
	after    *load.Tally
}

// overloadOf starts a contender, measures its capacity, and exceeds it.
func (b *bench) overloadOf(ctx context.Context, c contender) (*overload, error) {
	r, err := c.start(ctx, b)
	if err != nil {
		return nil, err
	}
	defer r.stop()
	r.name = c.name
	return b.overwhelm(ctx, r, []load.Kind{b.kind(r)})
}

// overwhelm exceeds a contender's capacity with calls of some kinds.
func (b *bench) overwhelm(ctx context.Context, r *running, kinds []load.Kind) (*overload, error) {
	for k := range kinds {
		kinds[k].Refusals = shedding
	}
	if err := b.place(r); err != nil {
		return nil, err
	}
	client, err := load.NewOpen(load.OpenPlan{Addr: r.addr, Conns: crowd, Kinds: kinds, Apart: true, Unqueued: true, Patience: patience})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	got := &overload{name: r.name}
	if got.capacity, err = b.crowdedCapacity(ctx, r); err != nil {
		return nil, err
	}
	b.progress("overload of %s", r.name)
	before, err := r.process.CPU()
	if err != nil {
		return nil, err
	}
	got.during, err = client.Run(ctx, load.Pace{Rate: overloadShare * got.capacity.perSecond, For: overloadFor, Slice: overloadSlice, Seed: 1})
	if err != nil {
		return nil, err
	}
	after, err := r.process.CPU()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, r.process.Log())
	}
	got.cpu = after - before
	out, err := client.Run(ctx, load.Pace{Rate: afterShare * got.capacity.perSecond, For: afterFor, Seed: 2})
	if err != nil {
		return nil, err
	}
	got.after = out.Total()
	return got, nil
}

// crowdedCapacity measures a contender's capacity with as many connections as in an
// overload, where it is far lower than with few, and without load shedding.
func (b *bench) crowdedCapacity(ctx context.Context, r *running) (sample, error) {
	crowded := *b
	crowded.conns = crowd
	b.progress("capacity of %s", r.name)
	if r.unshed == nil {
		return crowded.capacityOf(ctx, r)
	}
	twin, err := r.unshed(ctx, b)
	if err != nil {
		return sample{}, err
	}
	defer twin.stop()
	if err := b.place(twin); err != nil {
		return sample{}, err
	}
	if twin.name = r.name; r.ask != nil {
		r.ask(twin)
	}
	return crowded.capacityOf(ctx, twin)
}

// printOverload prints a row for each contender.
func (b *bench) printOverload(all []*overload) {
	b.printf("| | capacity/s | asked/s | served/s | of capacity %% | worst second %% | shed %% | not sent %% | given up %% | wrong | p50 ms | p99 ms | p99 of shed ms | CPU µs per call | client late, p99 ms | served of %.0f %% right after, %% |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n", afterShare*100)
	for _, o := range all {
		sum, seconds := o.during.Total(), overloadFor.Seconds()
		worst := sum.Served
		for i := range o.during.Slices {
			worst = min(worst, o.during.Slice(i).Served)
		}
		asked := float64(sum.Asked)
		b.printf("| %s | %.0f | %.0f | %.0f | **%.0f** | %.0f | %.1f | %.1f | %.1f | %d | %.2f | %.2f | %.2f | %.1f | %.2f | %.1f |\n",
			o.name, o.capacity.perSecond, asked/seconds, float64(sum.Served)/seconds,
			100*float64(sum.Served)/seconds/o.capacity.perSecond, 100*float64(worst)/overloadSlice.Seconds()/o.capacity.perSecond,
			100*float64(sum.Refused)/asked, 100*float64(sum.Unsent)/asked, 100*float64(sum.Late)/asked, sum.Bad,
			millis(sum.Latency.Quantile(0.5)), millis(sum.Latency.Quantile(0.99)), millis(sum.Refusal.Quantile(0.99)),
			micros(o.cpu)/float64(sum.Good+sum.Refused+sum.Bad), millis(o.during.Lag.Quantile(0.99)),
			100*float64(o.after.Good)/float64(o.after.Asked))
		if o.during.First != nil {
			b.note("%s: first error: %v", o.name, o.during.First)
		}
		if busy := o.capacity.proxy * o.capacity.perSecond / 1e6; busy < 0.9*float64(b.procs) {
			b.note("%s was on its core for %.0f %% of the time when its capacity was measured: client and upstream were the limit, and the capacity is greater.", o.name, busy*100)
		}
	}
	b.endTable()
}

// printSlices prints how the overload of Sluice went, second by second.
func (b *bench) printSlices(all []*overload) {
	for _, o := range all {
		if o.name != "Sluice, GraphQL, no operation seen before" {
			continue
		}
		b.printf("%s, second by second:\n\n| second | asked | served | shed | not sent | given up | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|---|\n", o.name)
		for i := range o.during.Slices {
			t := o.during.Slice(i)
			b.printf("| %d | %d | %d | %d | %d | %d | %.2f | %.2f |\n", i+1, t.Asked, t.Served, t.Refused, t.Unsent, t.Late, millis(t.Latency.Quantile(0.5)), millis(t.Latency.Quantile(0.99)))
		}
		b.endTable()
	}
}

// The load of keys and APIs in shares of capacity: one of them far above its share, the
// others low.
const (
	greedy      = 1.3
	quietKeys   = 20
	quietAPIs   = 5
	quietOfKeys = 0.2 // together
	quietOfAPIs = 0.2
)

// measureFairness exceeds capacity with calls of one key, and then of one API.
func (b *bench) measureFairness(ctx context.Context) error {
	b.printf("### Overload by one: %.0f %% of capacity asked for by it, %.0f %% by the quiet ones together\n\n", greedy*100, quietOfKeys*100)
	b.printf("| | | asked/s | served %% | shed %% | not sent %% | given up %% | wrong | p50 ms | p99 ms |\n|---|---|---|---|---|---|---|---|---|---|\n")
	builds := append([]string{""}, b.others...)
	for _, build := range builds {
		for _, c := range []struct {
			name  string
			on    *bench
			as    setup
			kinds func(*bench, *running) []load.Kind
		}{
			{"Sluice, 1 greedy key, 20 quiet", b, setup{keys: 1 + quietKeys, build: build}, (*bench).kindsOfKeys},
			{"Sluice, 1 greedy API, 5 quiet", b, setup{build: build, apis: max(b.many, 1+quietAPIs)}, (*bench).kindsOfAPIs},
			{
				"Sluice, GraphQL, 1 greedy key, 20 quiet", b.withBody("graphql"),
				setup{keys: 1 + quietKeys, policy: governed, graphql: true, build: build},
				(*bench).kindsOfOperations,
			},
		} {
			name := nameOf(c.name, build)
			if err := c.on.fairnessOf(ctx, name, c.as, c.kinds); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				b.leaveOut(name, err)
			}
		}
	}
	b.endTable()
	return nil
}

func (b *bench) fairnessOf(ctx context.Context, name string, as setup, kinds func(*bench, *running) []load.Kind) error {
	r, err := startSluice(as)(ctx, b)
	if err != nil {
		return err
	}
	defer r.stop()
	r.name = name
	got, err := b.overwhelm(ctx, r, kinds(b, r))
	if err != nil {
		return err
	}
	quiet, worst := new(load.Tally), got.during.Kind(1)
	for k := 1; k < len(got.during.Slices[0]); k++ {
		t := got.during.Kind(k)
		quiet.Add(t)
		if t.Good*worst.Asked < worst.Good*t.Asked {
			worst = t
		}
	}
	b.noteLag(name, millis(got.during.Lag.Quantile(0.99)))
	b.printShare(name, "greedy", got.during.Kind(0))
	b.printShare("", "quiet, together", quiet)
	b.printShare("", "quiet, the worst off", worst)
	if got.during.First != nil {
		b.note("%s: first error: %v", name, got.during.First)
	}
	return nil
}

func (b *bench) printShare(name, who string, t *load.Tally) {
	asked := float64(max(t.Asked, 1))
	b.printf("| %s | %s | %.0f | **%.1f** | %.1f | %.1f | %.1f | %d | %.2f | %.2f |\n", name, who, asked/overloadFor.Seconds(),
		100*float64(t.Good)/asked, 100*float64(t.Refused)/asked, 100*float64(t.Unsent)/asked, 100*float64(t.Late)/asked, t.Bad,
		millis(t.Latency.Quantile(0.5)), millis(t.Latency.Quantile(0.99)))
}

// kindsOfKeys are calls of one greedy key and of quiet ones.
func (b *bench) kindsOfKeys(r *running) []load.Kind {
	var kinds []load.Kind
	for i, key := range r.keys {
		kinds = append(kinds, load.Kind{Name: fmt.Sprintf("key %d", i), Weight: weight(i, quietKeys, quietOfKeys), Request: b.keyed(r.addr, []string{key}), Want: b.plan(r, 1).Want})
	}
	return kinds
}

// kindsOfOperations are operations of one greedy key and of quiet ones, none of
// which was seen before.
func (b *bench) kindsOfOperations(r *running) []load.Kind {
	keys := r.keys
	var kinds []load.Kind
	for i, key := range keys {
		r.keys = []string{key}
		kinds = append(kinds, load.Kind{Name: fmt.Sprintf("key %d", i), Weight: weight(i, quietKeys, quietOfKeys), Request: operations(r, true), Want: b.plan(r, 1).Want})
	}
	r.keys, r.ask = keys, askOperations(true)
	r.ask(r)
	return kinds
}

// kindsOfAPIs are calls of one greedy API and of quiet ones.
func (b *bench) kindsOfAPIs(r *running) []load.Kind {
	var kinds []load.Kind
	for i := range 1 + quietAPIs {
		request := []byte(b.headFor(r.addr, "/"+apiID(i)+"/"+b.body) + "\r\n")
		kinds = append(kinds, load.Kind{
			Name: apiID(i), Weight: weight(i, quietAPIs, quietOfAPIs), Want: b.plan(r, 1).Want,
			Request: func(dst []byte, _ uint64) []byte { return append(dst, request...) },
		})
	}
	return kinds
}

// weight is the share of the i-th: the first is greedy.
func weight(i, quiet int, together float64) float64 {
	if i == 0 {
		return greedy
	}
	return together / float64(quiet)
}
