package sizing

import (
	"errors"
	"fmt"
	"math"
)

// A Load is what is to be carried, by all gateways together. Shares are in
// [0, 1], of all requests.
type Load struct {
	Requests    float64 // per second
	Governed    float64 // share with key, policy, rate and quota
	GraphQL     float64 // share of governed GraphQL operations
	Unseen      float64 // share of operations that the gateway has not seen
	Shared      bool    // keys and counters are in a store that gateways share
	AnswerKiB   float64 // body of an answer, at least 1 is reckoned
	RequestKiB  float64 // body of a request
	Keys        float64 // in use within a minute
	Connections float64 // of clients, idle ones included
	APIs        float64
	KeyWrites   float64 // keys created or changed, per second
}

// A Plant is what machines there are to carry it.
type Plant struct {
	Cores       float64 // of one gateway
	Gbit        float64 // of one gateway's network, each way
	Utilisation float64 // how much of a core, a store or a line is to be used, in (0, 1]
}

// A Plan is what a load needs.
type Plan struct {
	CPU        float64 // of the gateway for a request, µs
	Gateways   int
	GatewayMiB float64 // of each
	Inbound    float64 // Gbit/s into each gateway, from clients and upstreams; as much goes out

	Stores      int     // primaries; more than one form a cluster
	StoreCPU    float64 // cores that all of them use
	StoreMiB    float64 // of all of them
	StoreGbit   float64 // to and from all of them
	Lookups     float64 // sessions asked of the store, per second
	DatabaseCPU float64 // cores that Postgres uses
	Statements  float64 // of Postgres for gateways' polls, per second
	BundleMiB   float64 // that a gateway takes when it starts
}

// check names what of a load makes no sense.
func (l Load) check() error {
	var problems []error
	for _, v := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"Requests", l.Requests, math.MaxFloat64},
		{"Governed", l.Governed, 1},
		{"GraphQL", l.GraphQL, 1},
		{"Unseen", l.Unseen, 1},
		{"AnswerKiB", l.AnswerKiB, math.MaxFloat64},
		{"RequestKiB", l.RequestKiB, math.MaxFloat64},
		{"Keys", l.Keys, math.MaxFloat64},
		{"Connections", l.Connections, math.MaxFloat64},
		{"APIs", l.APIs, math.MaxFloat64},
		{"KeyWrites", l.KeyWrites, math.MaxFloat64},
	} {
		if !(v.value >= 0 && v.value <= v.most) {
			problems = append(problems, fmt.Errorf("%s is %v: must be in [0, %v]", v.name, v.value, v.most))
		}
	}
	if l.Unseen > l.GraphQL {
		problems = append(problems, fmt.Errorf("an Unseen of %v is more than a GraphQL of %v: it is a part of it", l.Unseen, l.GraphQL))
	}
	return errors.Join(problems...)
}

func (p Plant) check() error {
	switch {
	case !(p.Cores > 0):
		return fmt.Errorf("plant: Cores is %v: must be above 0", p.Cores)
	case !(p.Gbit > 0):
		return fmt.Errorf("plant: Gbit is %v: must be above 0", p.Gbit)
	case !(p.Utilisation > 0 && p.Utilisation <= 1):
		return fmt.Errorf("plant: Utilisation is %v: must be in (0, 1]", p.Utilisation)
	}
	return nil
}

// Plan says what a load needs. Its error names each value that makes no sense.
func (c Costs) Plan(l Load, on Plant) (Plan, error) {
	if err := errors.Join(l.check(), on.check()); err != nil {
		return Plan{}, fmt.Errorf("planning: %w", err)
	}
	p := Plan{Gateways: 1}
	// More gateways ask the store for more sessions, which costs them time too:
	// from few to as many as suffice. Each step adds one at least or is the last.
	for {
		c.gateway(l, &p)
		need := max(1, math.Ceil(l.Requests*p.CPU/1e6/c.coresOf(on)), math.Ceil(float64(p.Gateways)*p.Inbound/(on.Gbit*on.Utilisation)))
		if int(need) <= p.Gateways {
			break
		}
		p.Gateways = int(need)
	}
	c.memory(l, &p)
	c.store(l, on, &p)
	c.database(l, &p)
	return p, nil
}

// coresOf is what one gateway may use of its cores.
func (c Costs) coresOf(on Plant) float64 {
	if on.Cores <= 1 {
		return on.Cores * on.Utilisation
	}
	return on.Cores * on.Utilisation * c.Scaling
}

// gateway fills in what a request costs a gateway when there are so many.
func (c Costs) gateway(l Load, p *Plan) {
	governed := c.Governed
	if l.Shared {
		governed = c.Shared
	}
	p.CPU = (1-l.Governed)*c.Keyless + l.Governed*governed + l.GraphQL*c.GraphQL + l.Unseen*c.Unseen +
		c.body(l.AnswerKiB+l.RequestKiB)
	p.Lookups = l.lookups(p.Gateways)
	if l.Requests > 0 {
		p.CPU += p.Lookups / l.Requests * c.Lookup
	}
	kib := l.AnswerKiB + l.RequestKiB + 2*c.HeadKiB
	p.Inbound = l.Requests * kib * 8 * 1024 / 1e9 / float64(p.Gateways)
}

// body is what so much of bodies costs on top of a KiB.
func (c Costs) body(kib float64) float64 {
	switch {
	case kib <= 1:
		return 0
	case kib <= 16:
		return c.At16 * (kib - 1) / 15
	}
	return c.At16 + (c.At64-c.At16)*(kib-16)/48
}

// lookups is how many sessions the store is asked for: a gateway uses one for a
// minute, and asks again when it is wanted afterwards. Any request may come to
// any gateway.
func (l Load) lookups(gateways int) float64 {
	requests := l.Requests * l.Governed
	if !l.Shared || l.Keys == 0 || requests == 0 {
		return 0
	}
	pairs := float64(gateways) * l.Keys
	return pairs / (sessionSeconds + pairs/requests)
}

func (c Costs) memory(l Load, p *Plan) {
	known := l.Keys
	if each := l.Requests * l.Governed * sessionSeconds / float64(p.Gateways); l.Shared {
		known = min(known, each)
	}
	heap := l.APIs*c.APIKiB + known*(c.SessionKiB+c.LimitsKiB)
	p.GatewayMiB = c.GatewayMiB + (heap*c.HeapGrowth+l.Connections/float64(p.Gateways)*c.ConnKiB)/1024
}

// store fills in what the shared store needs. One server takes commands of many
// keys; a cluster takes one for each.
func (c Costs) store(l Load, on Plant, p *Plan) {
	if !l.Shared {
		return
	}
	requests := l.Requests * l.Governed
	cores := func(factor float64) float64 {
		return (requests*c.StoreCount*factor + p.Lookups*c.StoreLookup) / 1e6
	}
	p.StoreCPU = cores(1)
	if p.StoreCPU > on.Utilisation {
		p.StoreCPU = cores(c.StoreCluster)
	}
	p.Stores = max(1, int(math.Ceil(p.StoreCPU/on.Utilisation)))
	p.StoreMiB = float64(p.Stores)*c.StoreMiB + l.Keys*c.KeyKiB/1024
	p.StoreGbit = (requests*c.StoreBytes + p.Lookups*c.KeyKiB*1024) * 8 / 1e9
}

// database fills in what Postgres does. Requests never reach it.
func (c Costs) database(l Load, p *Plan) {
	p.Statements = float64(p.Gateways) * c.WritesPerFetch / pollSeconds
	p.DatabaseCPU = l.KeyWrites * c.KeyWriteMs / 1000
	p.BundleMiB = l.APIs * c.DefinitionKiB / 1024
}
