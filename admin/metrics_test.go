package admin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// gather returns the registered metrics by name, as text with their labels and
// values.
func gather(t testing.TB, s *Server) map[string]string {
	t.Helper()
	families, err := s.deps.Metrics.(*prometheus.Registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range families {
		var text strings.Builder
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				fmt.Fprintf(&text, "%s:%s ", l.GetName(), l.GetValue())
			}
			fmt.Fprintln(&text, m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
		texts[f.GetName()] = text.String()
	}
	return texts
}

// waiting returns how many gateways wait.
func waiting(t testing.TB, s *Server) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(gather(t, s)["sluice_admin_bundle_waiting"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}
