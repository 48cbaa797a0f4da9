package counter

import "github.com/sluicegate/sluice/internal/metrics"

// Health returns the state of the shared store for metrics. The store is always up if v
// is nil.
func (v *Valkey) Health() metrics.Store {
	s := metrics.Store{Name: "counters"}
	if v != nil {
		s.Away, s.Outages, s.Without = v.State().Away, uint64(v.stats.Outages.Load()), uint64(v.stats.Standby.Load())
	}
	return s
}
