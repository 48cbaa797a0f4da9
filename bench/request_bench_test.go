package bench

import "testing"

// BenchmarkRequest measures whole requests on one connection. Time includes
// client, upstream and the loopback between gateway and upstream; what a feature
// costs is the difference from its neighbours, "keyless" above all.
func BenchmarkRequest(b *testing.B) {
	w := newWorld(b, settings{})
	keys := shop(w)
	for _, r := range requests {
		b.Run(r.name, func(b *testing.B) {
			perRequest(b, r.warmed(b, w, keys))
		})
	}
}
