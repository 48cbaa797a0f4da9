package metrics

import "github.com/prometheus/client_golang/prometheus"

var (
	storeUp      = Describe("store_up", "Whether a shared store answers: 1 or 0.", "store")
	storeOutages = Describe("store_outages_total", "How often a shared store went away.", "store")
	storeWithout = Describe("store_decisions_without_total", "Decisions that were made while a shared store was away.", "store")
)

// A Store is the state of a shared store.
type Store struct {
	Name    string // such as counters
	Away    bool
	Outages uint64 // how often it went away
	Without uint64 // decisions that were made without it
}

// Stores returns the metrics of shared stores. now is called at every scrape.
func Stores(now func() []Store) prometheus.Collector {
	return New(func(ch chan<- prometheus.Metric) {
		for _, s := range now() {
			ch <- Flag(storeUp, !s.Away, s.Name)
			ch <- Counter(storeOutages, s.Outages, s.Name)
			ch <- Counter(storeWithout, s.Without, s.Name)
		}
	}, storeUp, storeOutages, storeWithout)
}
