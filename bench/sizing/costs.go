// Package sizing says how many gateways, stores and databases a load needs. It is
// a model of few numbers, all of them measured; the tables of bench/SIZING.md are
// made of it.
package sizing

// Costs are what was measured. CPU is in µs of one core, user and system.
type Costs struct {
	Bare     float64 // the bare proxy: what another machine is compared by
	Keyless  float64 // a request, an answer of 1 KiB, everything on
	Governed float64 // the same with key, policy, rate and quota, counted in the gateway
	Shared   float64 // the same, counted in a shared store
	GraphQL  float64 // on top, for an operation that was seen before
	Unseen   float64 // on top of that, for one that was not
	At16     float64 // on top, for an answer of 16 KiB
	At64     float64 // on top, for an answer of 64 KiB; between these costs, and beyond, lines are drawn
	Lookup   float64 // on top, when a session is asked of the store
	Scaling  float64 // throughput of n cores by n times that of one

	StoreCount   float64 // CPU of the store for rate and quota of a request, 64 waiting at a time
	StoreFull    float64 // the same with so many waiting that commands are as full as they get
	StoreCluster float64 // factor on it in a cluster, where a command has one key's counters
	StoreLookup  float64 // CPU of the store for a session

	GatewayMiB float64 // a gateway at work with 1,000 APIs, before connections and keys
	ConnKiB    float64 // an idle client connection
	APIKiB     float64 // an API that was called, heap
	SessionKiB float64 // a session in the gateway's cache, heap
	LimitsKiB  float64 // a rate and a quota counted in the gateway, or a recalled one, heap
	HeapGrowth float64 // memory taken by heap in use, between collections
	StoreMiB   float64 // an empty store
	KeyKiB     float64 // a session, a rate and a quota in the store

	HeadKiB        float64 // head of a request, and of an answer, each
	StoreBytes     float64 // between gateway and store for a counted request, both ways
	DefinitionKiB  float64 // an API in a bundle
	WritesPerFetch float64 // statements that Postgres runs for one poll of a gateway
	KeyWriteMs     float64 // CPU of Postgres for one key written, outbox and audit included
}

// Settings of the product that the model takes into account.
const (
	sessionSeconds = 60 // keys.cache_ttl: how long a session is used before the store is asked again
	pollSeconds    = 30 // how often a gateway tells the admin that it is there
)

// Measured returns the costs on the machine of bench/README.md, and is the one
// place to change when they were measured anew; "make sizing" then writes the
// page. The tables that they come from are named beside them.
func Measured() Costs {
	return Costs{
		Bare:     14.0, // README, Peers, on an idle machine
		Keyless:  11.4, // the same table: its ratio times Bare
		Governed: 12.9, // … 1,000 keys in turn
		Shared:   15.9, // … with a shared store, 1,000 keys in turn
		GraphQL:  1.6,  // README, GraphQL, through processes: beside REST with the same body
		Unseen:   11.8, // the same table
		At16:     8.8,  // -what sizing: answers of 16 KiB beside such of 1
		At64:     24.5, // … of 64 KiB
		Lookup:   14.0, // -what sizing: a session, gateway's side
		Scaling:  0.95, // README, Peers, on two cores; more were not measured

		StoreCount:   5.4, // -what sizing: with a shared store, 1,000 keys in turn
		StoreFull:    4.6, // -what sizing: rate and quota of a request, 256 waiting
		StoreCluster: 1.7, // one command for each key against many in a script
		StoreLookup:  5.5, // -what sizing: a session, store

		GatewayMiB: 44,   // README, Peers, memory at rest
		ConnKiB:    5.6,  // the same table
		APIKiB:     2.45, // README, Bounds: definition, compiled, used
		SessionKiB: 0.6,  // the same table
		LimitsKiB:  0.4,  // the same table
		HeapGrowth: 2,    // the runtime collects when the heap has doubled
		StoreMiB:   8,    // the same process, empty
		KeyKiB:     0.75, // -what sizing: memory of the store

		HeadKiB:        0.25,
		StoreBytes:     220,
		DefinitionKiB:  0.45,
		WritesPerFetch: 1,
		KeyWriteMs:     2, // 400 keys created through REST, CPU of all of its processes; of a slower machine
	}
}

// On returns the costs on a machine where the bare proxy costs so much: CPU
// changes by that factor, memory not at all.
func (c Costs) On(bare float64) Costs {
	factor := bare / c.Bare
	for _, cost := range []*float64{
		&c.Bare, &c.Keyless, &c.Governed, &c.Shared, &c.GraphQL, &c.Unseen, &c.At16, &c.At64,
		&c.Lookup, &c.StoreCount, &c.StoreFull, &c.StoreLookup, &c.KeyWriteMs,
	} {
		*cost *= factor
	}
	return c
}
